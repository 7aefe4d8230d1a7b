"""Figures of results: ``result.plot``, and :func:`plot` of several results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from silvan.errors import SilvanError
from silvan.figures import style
from silvan.results.measures import percentile
from silvan.results.receive_rates import (
    delivered,
    hotspots,
    measured_ps,
    other_receivers,
    sliding_rates_gbps,
)
from silvan.results.run_labels import run_labels

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from silvan.results.receive_rates import FloatArray
    from silvan.results.result import Result

_COLOURS = ("#0072B2", "#D55E00", *style.SHADES)
_HOTSPOTS, _OTHERS = "#D55E00", "#0072B2"
_SIZE = (7.2, 3.6)
_SHARES = (("median", 0.5), ("99th percentile", 0.99), ("99.9th percentile", 0.999))


_DASHES = ("-", "--", ":", "-.")
"""Strokes of a run's parts if each run has a colour."""

_LETTER = 0.52 / 72

_HANDLE = 6

_PARTS_OF_RUN = 2


def plot(results: Sequence[Result], labels: Sequence[str] = ()) -> ResultPlots:
    """Draw several results in the same axes, to compare them.

    Each run has a colour, and each of its curves a stroke. Maps of utilisation are next to each
    other.

    Parameters
    ----------
    results : sequence of Result
        One to six results.
    labels : sequence of str, optional
        Names of the runs; by default the facts in which they differ.

    Returns
    -------
    ResultPlots
        Figures of all results, such as ``silvan.plot([first, second]).receive_rates()``.

    Raises
    ------
    SilvanError
        There are no results, too many, or not a label for each.

    Examples
    --------
    >>> import silvan
    >>> scenario = silvan.Scenario(
    ...     fabric={"generator": "single-switch", "hosts": 4},
    ...     traffic={"incast": [{"to": "host-0000"}]},
    ...     probe={"interval": "10 us"},
    ...     run={"duration": "100 us"},
    ... )
    >>> slow = scenario.override({"host.sink-rate": "100 Gbit/s"})
    >>> figure = silvan.plot([silvan.run(scenario), silvan.run(slow)]).receive_rates()
    >>> figure.axes[0].get_legend_handles_labels()[1]
    ['host.sink-rate unlimited', 'host.sink-rate 100 Gbit/s']
    """
    if not 0 < len(results) <= len(style.CURVES):
        raise SilvanError(
            f"{len(results)} results: 1 to {len(style.CURVES)} fit into a figure",
            hint="name some of them",
        )
    names = list(labels) or run_labels(results)
    if len(names) != len(results):
        raise SilvanError(f"{len(results)} results and {len(names)} labels")
    return ResultPlots(results, names)


class ResultPlots:
    """Figures of a result, in matplotlib.

    A notebook shows a figure that is the last value of a cell; ``figure.savefig(path)`` writes it.

    Parameters
    ----------
    results : sequence of Result
        One result, or several in the same axes.
    labels : sequence of str
        Their names.
    page : Page, optional
        Width and title of the figures.

    Examples
    --------
    >>> import silvan
    >>> scenario = silvan.Scenario(
    ...     fabric={"generator": "single-switch", "hosts": 4},
    ...     traffic={"incast": [{"to": "host-0000"}]},
    ...     probe={"interval": "10 us"},
    ...     run={"duration": "100 us"},
    ... )
    >>> figure = silvan.run(scenario).plot.receive_rates()
    >>> figure.axes[0].get_ylabel()
    'receive rate (Gbit/s)'
    """

    def __init__(
        self, results: Sequence[Result], labels: Sequence[str], page: style.Page = style.SCREEN
    ) -> None:
        self._results = list(results)
        self._labels = list(labels)
        self._page = page
        self._run_colours = style.run_colours(
            [one.scenario.to_dict()["control"]["scheme"] != "none" for one in results]
        )

    def sized(self, width: str, *, title: bool = False) -> ResultPlots:
        """Return the figures in another width.

        Parameters
        ----------
        width : str
            ``"column"`` (3.5 in) or ``"page"`` (7.16 in) of a paper, or ``"screen"``.
        title : bool, optional
            Whether figures have a title.

        Raises
        ------
        SilvanError
            There is no such width.

        Examples
        --------
        ``result.plot.sized("column").fct_cdf()``
        """
        if width not in style.WIDTHS_IN:
            raise SilvanError(
                f"there is no width {width!r}", hint=f"widths: {', '.join(style.WIDTHS_IN)}"
            )
        return ResultPlots(self._results, self._labels, style.Page(width, title))

    def _figure(self, width_in: float, height_in: float) -> AbstractContextManager[Figure]:
        names = dict.fromkeys(result.scenario.name for result in self._results)
        title = next(iter(names)) if len(names) == 1 else ""
        return self._page.figure(width_in, height_in, title)

    def _parts(self, most: int) -> int:
        return most if len(self._results) == 1 else min(most, _PARTS_OF_RUN)

    def _look(self, run: int, part: int, name: str, parts: int, colour: str = "") -> dict[str, Any]:
        if len(self._results) == 1:
            colour = colour or _COLOURS[part % len(_COLOURS)]
            return {"color": colour, "linestyle": "-", "label": name}
        label = self._labels[run]
        return {
            "color": self._run_colours[run],
            "linestyle": _DASHES[part % len(_DASHES)],
            "label": f"{label}: {name}" if parts > 1 else label,
        }

    def _needed(self, table: str, reason: str, hint: str) -> None:
        for result in self._results:
            if table not in result.tables:
                raise SilvanError(f"{result.scenario.name}: {reason}", hint=hint)

    def receive_rates(self, hosts: Sequence[str] | None = None) -> Figure:
        """Draw the receive rates over time.

        Parameters
        ----------
        hosts : sequence of str, optional
            Names of hosts, each with a curve of its own; by default there are two curves, the mean
            of the hotspots and that of the other receivers.

        Returns
        -------
        Figure
            The rates in Gbit/s in each probe interval, at its middle.

        Raises
        ------
        SilvanError
            There is no such host.
        """
        with self._figure(*_SIZE) as figure:
            axes = figure.subplots()
            for run, result in enumerate(self._results):
                curves = _groups(result) if hosts is None else _hosts(result, hosts)
                times_ms, rates = sliding_rates_gbps(*delivered(result))
                for part, (name, columns, colour) in enumerate(curves):
                    look = self._look(run, part, name, len(curves), colour)
                    _curve(axes, times_ms, rates[:, columns].mean(axis=1), look)
            _over_time(axes, "receive rate (Gbit/s)", len(self._results))
        return figure

    def queues(self, ports: Sequence[str] | None = None, *, most: int = 6) -> Figure:
        """Draw what waits for output ports over time.

        Parameters
        ----------
        ports : sequence of str, optional
            Ports as ``"node:port"``; by default those with the largest queues, without empty ones.
        most : int, optional
            Number of ports drawn by default.

        Returns
        -------
        Figure
            The bytes that wait for each port, from the table ``port_series``. Without this table:
            the bytes in congestion trees and all that wait in switches, from the table ``forest``.

        Raises
        ------
        SilvanError
            The result has neither table, or no such port.
        """
        sampled = all("port_series" in result.tables for result in self._results)
        if not sampled:
            for result in self._results:
                if "forest" not in result.tables or ports is not None:
                    raise SilvanError(
                        f"{result.scenario.name}: the run did not sample the queues of ports",
                        hint="set probe.ports = true, or give the scenario a table [probe.trees]",
                    )
        if sampled and ports is None:
            every = [_peaks(result) for result in self._results]
            peaks = {
                name: max(one[name] for one in every)
                for name in every[0]
                if all(name in one for one in every)
            }
            # Ports without a queue are omitted if others have one.
            shown = {name: peak for name, peak in peaks.items() if peak} or peaks
            ports = sorted(shown, key=lambda name: -shown[name])[: self._parts(most)]
        with self._figure(*_SIZE) as figure:
            axes = figure.subplots()
            for run, result in enumerate(self._results):
                queues = _queues(result, ports or []) if sampled else _waiting(result)
                for part, (name, times_ms, queued, colour) in enumerate(queues):
                    look = self._look(run, part, name, len(queues), colour)
                    _curve(axes, times_ms, queued / 1024, look)
            _over_time(axes, "queue (KiB)", len(self._results))
        return figure

    def utilisation(self) -> Figure:
        """Draw the utilisation of each output port of the switches as a map.

        Returns
        -------
        Figure
            One row per switch, one column per port. Colours: wire bytes sent from the warm-up to
            the end, relative to what the cable can carry in this time, from 0 to 100 %. White: a
            port without a cable.
        """
        maps = [_utilisation(result) for result in self._results]
        rows = max(len(switches) for switches, _ in maps)
        height = min(12.0, 1.6 + 0.25 * rows)
        with self._figure(_SIZE[0] * (0.2 + 0.8 * len(maps)), height) as figure:
            panels = figure.subplots(1, len(maps), squeeze=False)[0]
            for axes, (switches, shown), label in zip(panels, maps, self._labels, strict=True):
                axes.grid(visible=False)
                drawn = axes.pcolormesh(
                    np.arange(shown.shape[1] + 1) + 0.5,
                    np.arange(len(switches) + 1) - 0.5,
                    shown,
                    cmap="viridis",
                    vmin=0,
                    vmax=100,
                )
                style.name_parts(
                    drawn,
                    [
                        f"{switch}:{port + 1}\n"
                        + ("no cable" if np.isnan(share) else f"utilisation (%): {share:.4g}")
                        for switch, row in zip(switches, shown, strict=True)
                        for port, share in enumerate(row)
                    ],
                )
                axes.invert_yaxis()
                step = -(-len(switches) // 40)
                axes.set_yticks(range(0, len(switches), step), switches[::step])
                axes.set_xlabel("output port")
                axes.xaxis.set_major_locator(MaxNLocator(integer=True))
                if len(maps) > 1:
                    axes.set_title(label)
            figure.colorbar(drawn, ax=list(panels), label="utilisation (%)")
        return figure

    def latency_cdf(self, hosts: Sequence[str] | None = None, *, most: int = 6) -> Figure:
        """Draw the distribution of the latencies of packets, by receiving host.

        Parameters
        ----------
        hosts : sequence of str, optional
            Names of hosts; by default those that received most packets.
        most : int, optional
            Number of hosts drawn by default.

        Returns
        -------
        Figure
            For each host the share of its packets whose latency is at most the value on the
            horizontal axis. The histograms decide the resolution: 1/128 of a latency.

        Raises
        ------
        SilvanError
            The run kept no latencies by host, or there is no such host.
        """
        self._needed(
            "host_latencies",
            "the run did not keep latencies by host",
            'set probe.latency = "host"',
        )
        if hosts is None:
            totals: Counter[str] = Counter()
            for result in self._results:
                table = result.tables["host_latencies"]
                names = result.hosts["name"].to_pylist()
                packets = np.bincount(table["host"].to_numpy(), weights=table["packets"].to_numpy())
                totals.update({names[host]: int(packets[host]) for host in packets.nonzero()[0]})
            shared = set[str].intersection(
                *(set(result.hosts["name"].to_pylist()) for result in self._results)
            )
            busiest = (name for name, _ in totals.most_common() if name in shared)
            hosts = list(islice(busiest, self._parts(most)))
        with self._figure(*_SIZE) as figure:
            axes = figure.subplots()
            for run, result in enumerate(self._results):
                receivers, ends, packets = (
                    result.tables["host_latencies"][name].to_numpy()
                    for name in ("host", "to_ns", "packets")
                )
                for part, name in enumerate(hosts):
                    own = receivers == _host(result, name)
                    share = packets[own].cumsum() / max(1, packets[own].sum())
                    if own.any():
                        # Each curve starts at 0.
                        latencies_us = np.append(ends[own][:1], ends[own]) / 1e3
                        share = np.append(0, share)
                    else:
                        latencies_us = share
                    look = self._look(run, part, name, len(hosts))
                    axes.step(latencies_us, share, where="post", **look)
            axes.set_xscale("log")
            axes.set_ylim(0, 1.02)
            axes.set_xlabel("latency (µs)")
            axes.set_ylabel("share of packets")
            _legend(axes, len(self._results))
        return figure

    def fct_cdf(self) -> Figure:
        """Draw the distribution of the completion times of flows (FCT), by traffic class.

        Returns
        -------
        Figure
            For each class the share of its flows that started after the warm-up and whose
            completion time is at most the value on the horizontal axis. A curve of a class with
            unfinished flows ends below 1.

        Raises
        ------
        SilvanError
            The run has no such flows.
        """
        flows = [_flows(result) for result in self._results]
        classes = list(dict.fromkeys(str(name) for names, *_ in flows for name in names))
        with self._figure(*_SIZE) as figure:
            axes = figure.subplots()
            for run, (names, completion, _, _) in enumerate(flows):
                for part, name in enumerate(classes):
                    own = completion[names == name]
                    if not len(own):
                        continue
                    finished = np.sort(own[np.isfinite(own)])
                    share = np.arange(len(finished) + 1) / len(own)
                    times_us = np.append(finished[:1], finished) / 1e6
                    look = self._look(run, part, name, len(classes))
                    axes.step(times_us, share[: len(times_us)], where="post", **look)
            axes.set_xscale("log")
            axes.set_ylim(0, 1.02)
            axes.set_xlabel("flow completion time (µs)")
            axes.set_ylabel("share of flows")
            _legend(axes, len(self._results))
        return figure

    def slowdown_by_size(self, *, groups: int = 20) -> Figure:
        """Draw the slowdown of flows by their size: median, 99th and 99.9th percentile.

        Parameters
        ----------
        groups : int, optional
            Groups of flows with neighbouring sizes and about as many flows each.

        Returns
        -------
        Figure
            A point of each group at its mean size. Unfinished flows are infinitely slow, so a
            percentile that depends on them has no point.

        Raises
        ------
        SilvanError
            The run has no flows that started after the warm-up.
        """
        flows = [_flows(result) for result in self._results]
        with self._figure(*_SIZE) as figure:
            axes = figure.subplots()
            for run, (_, _, slowdown, sizes) in enumerate(flows):
                parts = _by_size(sizes, groups)
                places = np.array([sizes[part].mean() for part in parts])
                for number, (text, share) in enumerate(_SHARES):
                    values = np.array(
                        [percentile(np.sort(slowdown[part]), share) for part in parts]
                    )
                    known = np.isfinite(values)
                    look = self._look(run, number, text, len(_SHARES))
                    axes.plot(places[known], values[known], marker=".", **look)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.yaxis.set_minor_locator(NullLocator())
            axes.set_xlabel("flow size (bytes)")
            axes.set_ylabel("slowdown")
            _legend(axes, len(self._results))
        return figure


def _groups(result: Result) -> list[tuple[str, npt.NDArray[np.intp], str]]:
    return [
        (f"{name} (mean)", np.flatnonzero(members), colour)
        for name, members, colour in (
            ("hotspots", hotspots(result), _HOTSPOTS),
            ("other receivers", other_receivers(result), _OTHERS),
        )
        if members.any()
    ]


def _hosts(result: Result, names: Sequence[str]) -> list[tuple[str, npt.NDArray[np.intp], str]]:
    return [(name, np.array([_host(result, name)]), "") for name in names]


def _host(result: Result, name: str) -> int:
    names: list[str] = result.hosts["name"].to_pylist()
    if name not in names:
        raise SilvanError(
            f"{result.scenario.name} has no host {name!r}",
            hint='result.hosts["name"] lists the hosts',
        )
    return names.index(name)


def _flows(
    result: Result,
) -> tuple[npt.NDArray[np.str_], FloatArray, FloatArray, FloatArray]:
    """Return class, completion time (ps, infinite if unfinished), slowdown and size of flows."""
    table = result.flows
    table = table.filter(table["measured"])
    if not table.num_rows:
        raise SilvanError(
            f"{result.scenario.name}: no flow started after the warm-up",
            hint="set a shorter run.warm-up",
        )
    completion, slowdown = (
        np.nan_to_num(table[name].to_numpy(zero_copy_only=False).astype(np.float64), nan=np.inf)
        for name in ("completion_ps", "slowdown")
    )
    sizes = table["bytes"].to_numpy().astype(np.float64)
    return np.array(table["name"].to_pylist()), completion, slowdown, sizes


def _by_size(sizes: FloatArray, groups: int) -> list[npt.NDArray[np.intp]]:
    order = np.argsort(sizes, kind="stable")
    starts = np.searchsorted(sizes[order], sizes[order][np.arange(groups) * len(order) // groups])
    return np.split(order, np.unique(starts)[1:])


def _utilisation(result: Result) -> tuple[list[str], FloatArray]:
    ports = result.ports
    hosts = set(result.hosts["name"].to_pylist())
    nodes = ports["node"].to_pylist()
    switches = list(dict.fromkeys(node for node in nodes if node not in hosts))
    rows = {switch: row for row, switch in enumerate(switches)}
    numbers = ports["port"].to_numpy()
    rates_gbps = ports["xmit_bytes"].to_numpy() * 8e3 / measured_ps(result)
    shares = 100 * rates_gbps / ports["link_gbps"].to_numpy()
    columns = max(int(numbers[i]) for i, node in enumerate(nodes) if node in rows)
    shown = np.full((len(switches), columns), np.nan)
    for node, number, share in zip(nodes, numbers, shares, strict=True):
        if node in rows:
            shown[rows[node], int(number) - 1] = share
    return switches, shown


def _port_names(result: Result) -> list[str]:
    ports = result.ports
    nodes, numbers = ports["node"].to_pylist(), ports["port"].to_pylist()
    return [f"{node}:{port}" for node, port in zip(nodes, numbers, strict=True)]


def _peaks(result: Result) -> dict[str, int]:
    series, names = result.tables["port_series"], _port_names(result)
    queued = series["queued_bytes"].to_numpy()
    peaks = np.zeros(len(names), dtype=queued.dtype)
    np.maximum.at(peaks, series["ports_row"].to_numpy(), queued)
    return dict(zip(names, map(int, peaks), strict=True))


def _queues(result: Result, ports: Sequence[str]) -> list[tuple[str, FloatArray, FloatArray, str]]:
    series, names = result.tables["port_series"], _port_names(result)
    rows = series["ports_row"].to_numpy()
    queued = series["queued_bytes"].to_numpy()
    times_ms = _ms(series["time_ps"])
    for name in ports:
        if name not in names:
            raise SilvanError(
                f"{result.scenario.name} has no port {name!r}",
                hint=f"name ports by node and number, such as {names[0]!r}",
            )
    chosen = [(name, rows == names.index(name)) for name in ports]
    return [(name, times_ms[own], queued[own], "") for name, own in chosen]


def _waiting(result: Result) -> list[tuple[str, FloatArray, FloatArray, str]]:
    forest = result.tables["forest"]
    times_ms = _ms(forest["time_ps"])
    return [
        ("in congestion trees", times_ms, forest["queued_bytes"].to_numpy(), _HOTSPOTS),
        ("all that waits", times_ms, forest["waiting_bytes"].to_numpy(), _OTHERS),
    ]


def _ms(times_ps: pa.ChunkedArray) -> FloatArray:
    milliseconds: FloatArray = times_ps.to_numpy().astype(np.float64) / 1e9
    return milliseconds


def _curve(axes: Axes, times_ms: FloatArray, values: FloatArray, look: dict[str, Any]) -> None:
    marker = "o" if len(times_ms) == 1 else ""
    axes.plot(times_ms, values, marker=marker, **look)


def _ends(axes: Axes) -> tuple[float, float]:
    curves = [(np.asarray(line.get_xdata()), np.asarray(line.get_ydata())) for line in axes.lines]
    ends = (times[-1] for times, _ in curves if len(times))
    lasts = (times[values != 0].max(initial=0) for times, values in curves)
    return float(max(ends, default=0)), float(max(lasts, default=0))


def _over_time(axes: Axes, quantity: str, runs: int) -> None:
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    end_ms, last_ms = _ends(axes)
    # Flows may end long before the run.
    is_short = 0 < last_ms < end_ms / 2
    if is_short:
        axes.set_xlim(right=min(end_ms, 1.25 * last_ms))
    rest = f", then zero until {end_ms:g}" if is_short else ""
    axes.set_xlabel(f"simulated time (ms){rest}")
    axes.set_ylabel(quantity)
    _legend(axes, runs)


def _legend(axes: Axes, runs: int = 1) -> None:
    _, labels = axes.get_legend_handles_labels()
    if labels:
        figure = axes.get_figure(root=True)
        assert figure is not None
        size = mpl.rcParams["font.size"] * _LETTER
        entry_in = size * (max(map(len, labels)) + _HANDLE)
        fitting = max(1, int(figure.get_figwidth() / entry_in))
        style.legend_below(axes, columns=min(runs if runs > 1 else 3, fitting, len(labels)))
