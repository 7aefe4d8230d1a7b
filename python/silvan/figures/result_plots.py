"""Figures of one result: ``result.plot``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from silvan.errors import SilvanError
from silvan.figures import style
from silvan.measures import (
    delivered,
    hotspots,
    measured_ps,
    other_receivers,
    sliding_rates_gbps,
)
from silvan.run_measures import percentile

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from silvan.measures import FloatArray
    from silvan.result import Result

_COLOURS = ("#0072B2", "#D55E00", *style.SHADES)
_HOTSPOTS, _OTHERS = "#D55E00", "#0072B2"
_SIZE = (7.2, 3.6)
_SHARES = (("median", 0.5), ("99th percentile", 0.99), ("99.9th percentile", 0.999))


class ResultPlots:
    """Figures of one result, in matplotlib.

    A notebook shows a figure that is the last value of a cell; ``figure.savefig(path)`` writes it.

    Parameters
    ----------
    result : Result
        What to draw.

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

    def __init__(self, result: Result, page: style.Page = style.SCREEN) -> None:
        self._result = result
        self._page = page

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
        return ResultPlots(self._result, style.Page(width, title))

    def _figure(self, width_in: float, height_in: float) -> AbstractContextManager[Figure]:
        return self._page.figure(width_in, height_in, self._result.scenario.name)

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
        curves = {}
        if hosts is None:
            for name, members, colour in (
                ("hotspots", hotspots(self._result), _HOTSPOTS),
                ("other receivers", other_receivers(self._result), _OTHERS),
            ):
                if members.any():
                    curves[f"{name} (mean)"] = (np.flatnonzero(members), colour)
        else:
            for number, name in enumerate(hosts):
                colour = _COLOURS[number % len(_COLOURS)]
                curves[name] = (np.array([self._host(name)]), colour)
        times_ms, rates = sliding_rates_gbps(*delivered(self._result))
        with self._figure(*_SIZE) as figure:
            axes = figure.subplots()
            for name, (columns, colour) in curves.items():
                _curve(axes, times_ms, rates[:, columns].mean(axis=1), colour, name)
            _over_time(axes, "receive rate (Gbit/s)")
        return figure

    def queues(self, ports: Sequence[str] | None = None, *, most: int = 6) -> Figure:
        """Draw what waits for output ports over time.

        Parameters
        ----------
        ports : sequence of str, optional
            Ports as ``"node:port"``; by default those with the largest queues.
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
        tables = self._result.tables
        if "port_series" not in tables and ("forest" not in tables or ports is not None):
            raise SilvanError(
                f"{self._result.scenario.name}: the run did not sample the queues of ports",
                hint="set probe.ports = true, or give the scenario a table [probe.trees]",
            )
        with self._figure(*_SIZE) as figure:
            axes = figure.subplots()
            if "port_series" in tables:
                for number, (name, times_ms, queued) in enumerate(self._queues(ports, most)):
                    colour = _COLOURS[number % len(_COLOURS)]
                    _curve(axes, times_ms, queued / 1024, colour, name)
            else:
                forest = tables["forest"]
                for name, column, colour in (
                    ("in congestion trees", "queued_bytes", _HOTSPOTS),
                    ("all that waits", "waiting_bytes", _OTHERS),
                ):
                    waiting = forest[column].to_numpy() / 1024
                    _curve(axes, _ms(forest["time_ps"]), waiting, colour, name)
            _over_time(axes, "queue (KiB)")
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
        ports = self._result.ports
        hosts = set(self._result.hosts["name"].to_pylist())
        nodes = ports["node"].to_pylist()
        switches = list(dict.fromkeys(node for node in nodes if node not in hosts))
        rows = {switch: row for row, switch in enumerate(switches)}
        numbers = ports["port"].to_numpy()
        rates_gbps = ports["xmit_bytes"].to_numpy() * 8e3 / measured_ps(self._result)
        shares = 100 * rates_gbps / ports["link_gbps"].to_numpy()
        columns = max(int(numbers[i]) for i, node in enumerate(nodes) if node in rows)
        shown = np.full((len(switches), columns), np.nan)
        for node, number, share in zip(nodes, numbers, shares, strict=True):
            if node in rows:
                shown[rows[node], int(number) - 1] = share
        height = min(12.0, 1.6 + 0.25 * len(switches))
        with self._figure(_SIZE[0], height) as figure:
            axes = figure.subplots()
            axes.grid(visible=False)
            drawn = axes.pcolormesh(
                np.arange(columns + 1) + 0.5,
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
            figure.colorbar(drawn, ax=axes, label="utilisation (%)")
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
        table = self._result.tables.get("host_latencies")
        if table is None:
            raise SilvanError(
                f"{self._result.scenario.name}: the run did not keep latencies by host",
                hint='set probe.latency = "host"',
            )
        receivers, ends, packets = (table[name].to_numpy() for name in ("host", "to_ns", "packets"))
        names = self._result.hosts["name"].to_pylist()
        if hosts is None:
            totals = np.bincount(receivers, weights=packets, minlength=len(names))
            order = np.argsort(-totals, kind="stable")[:most]
            hosts = [names[host] for host in order if totals[host]]
        with self._figure(*_SIZE) as figure:
            axes = figure.subplots()
            for number, name in enumerate(hosts):
                own = receivers == self._host(name)
                share = packets[own].cumsum() / max(1, packets[own].sum())
                colour = _COLOURS[number % len(_COLOURS)]
                if own.any():
                    # Each curve starts at 0.
                    latencies_us = np.append(ends[own][:1], ends[own]) / 1e3
                    share = np.append(0, share)
                else:
                    latencies_us = share
                axes.step(latencies_us, share, where="post", color=colour, label=name)
            axes.set_xscale("log")
            axes.set_ylim(0, 1.02)
            axes.set_xlabel("latency (µs)")
            axes.set_ylabel("share of packets")
            _legend(axes)
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
        names, completion, _, _ = self._flows()
        with self._figure(*_SIZE) as figure:
            axes = figure.subplots()
            for number, name in enumerate(dict.fromkeys(names)):
                own = completion[names == name]
                finished = np.sort(own[np.isfinite(own)])
                share = np.arange(len(finished) + 1) / len(own)
                times_us = np.append(finished[:1], finished) / 1e6
                colour = _COLOURS[number % len(_COLOURS)]
                axes.step(times_us, share[: len(times_us)], where="post", color=colour, label=name)
            axes.set_xscale("log")
            axes.set_ylim(0, 1.02)
            axes.set_xlabel("flow completion time (µs)")
            axes.set_ylabel("share of flows")
            _legend(axes)
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
        _, _, slowdown, sizes = self._flows()
        order = np.argsort(sizes, kind="stable")
        # Flows of one size are in one group.
        starts = np.searchsorted(
            sizes[order], sizes[order][np.arange(groups) * len(order) // groups]
        )
        parts = np.split(order, np.unique(starts)[1:])
        with self._figure(*_SIZE) as figure:
            axes = figure.subplots()
            for (text, share), colour in zip(_SHARES, _COLOURS, strict=False):
                places = np.array([sizes[part].mean() for part in parts])
                values = np.array([percentile(np.sort(slowdown[part]), share) for part in parts])
                known = np.isfinite(values)
                axes.plot(places[known], values[known], ".-", color=colour, label=text)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.yaxis.set_minor_locator(NullLocator())
            axes.set_xlabel("flow size (bytes)")
            axes.set_ylabel("slowdown")
            _legend(axes)
        return figure

    def _flows(self) -> tuple[npt.NDArray[np.str_], FloatArray, FloatArray, FloatArray]:
        """Give class, completion time in ps, slowdown and size of flows after the warm-up.

        Times and slowdowns of unfinished flows are infinite.
        """
        table = self._result.flows
        table = table.filter(table["measured"])
        if not table.num_rows:
            raise SilvanError(
                f"{self._result.scenario.name}: no flow started after the warm-up",
                hint="set a shorter run.warm-up",
            )
        completion, slowdown = (
            np.nan_to_num(table[name].to_numpy(zero_copy_only=False).astype(np.float64), nan=np.inf)
            for name in ("completion_ps", "slowdown")
        )
        sizes = table["bytes"].to_numpy().astype(np.float64)
        return np.array(table["name"].to_pylist()), completion, slowdown, sizes

    def _host(self, name: str) -> int:
        """Find a host by its name."""
        names: list[str] = self._result.hosts["name"].to_pylist()
        if name not in names:
            raise SilvanError(
                f"{self._result.scenario.name} has no host {name!r}",
                hint='result.hosts["name"] lists the hosts',
            )
        return names.index(name)

    def _queues(
        self, ports: Sequence[str] | None, most: int
    ) -> list[tuple[str, FloatArray, FloatArray]]:
        """Give the name, sample times and queued bytes of ports."""
        series = self._result.tables["port_series"]
        of_port = self._result.ports
        names = [
            f"{node}:{port}"
            for node, port in zip(
                of_port["node"].to_pylist(), of_port["port"].to_pylist(), strict=True
            )
        ]
        rows = series["ports_row"].to_numpy()
        queued = series["queued_bytes"].to_numpy()
        times_ms = _ms(series["time_ps"])
        if ports is None:
            peaks = np.zeros(len(names), dtype=queued.dtype)
            np.maximum.at(peaks, rows, queued)
            chosen = [int(row) for row in np.argsort(-peaks.astype(np.int64), kind="stable")[:most]]
        else:
            unknown = [name for name in ports if name not in names]
            if unknown:
                raise SilvanError(
                    f"{self._result.scenario.name} has no port {unknown[0]!r}",
                    hint=f"name ports by node and number, such as {names[0]!r}",
                )
            chosen = [names.index(name) for name in ports]
        return [(names[row], times_ms[rows == row], queued[rows == row]) for row in chosen]


def _ms(times_ps: pa.ChunkedArray) -> FloatArray:
    """Convert times to milliseconds."""
    milliseconds: FloatArray = times_ps.to_numpy().astype(np.float64) / 1e9
    return milliseconds


def _curve(axes: Axes, times_ms: FloatArray, values: FloatArray, colour: str, name: str) -> None:
    """Draw a quantity over time; a single sample is a dot."""
    marker = "o" if len(times_ms) == 1 else ""
    axes.plot(times_ms, values, color=colour, marker=marker, label=name)


def _over_time(axes: Axes, quantity: str) -> None:
    """Label the axes of a quantity over time."""
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("simulated time (ms)")
    axes.set_ylabel(quantity)
    _legend(axes)


def _legend(axes: Axes) -> None:
    """Explain the curves, if there are any."""
    if axes.get_legend_handles_labels()[0]:
        style.legend_below(axes, columns=min(3, len(axes.get_lines())))
