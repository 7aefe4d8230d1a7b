"""Receive rates of hosts: which hosts count, over which time, and how fair they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from silvan.results.result import Result

PS_PER_MS = 1_000_000_000

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of simulated time, its start included and its end not."""

    start_ps: int
    end_ps: int

    @property
    def length_ps(self) -> int:
        """Length in picoseconds."""
        return self.end_ps - self.start_ps

    def __str__(self) -> str:
        return f"{self.start_ps / PS_PER_MS:g} to {self.end_ps / PS_PER_MS:g} ms"


def is_hotspot(result: Result) -> BoolArray:
    """Tell for each host whether it is a hotspot at the start, in the order of ``hosts``."""
    roles = result.hosts["role"].to_pylist()
    return np.array([role.startswith("hotspot") for role in roles], dtype=np.bool_)


def hotspots(result: Result) -> BoolArray:
    """Tell for each host whether it is a hotspot throughout the run, in the order of ``hosts``.

    These are the hosts with the role ``hotspot`` and the roots of programs of the kind ``incast``.
    Of hotspots that move there are none.
    """
    traffic = result.scenario.to_dict()["traffic"]
    moves = traffic.get("nodes", {}).get("hotspot-lifetime", "unlimited") != "unlimited"
    roots = np.zeros(result.hosts.num_rows, dtype=np.bool_)
    for _, kind, rank in _ranks(result):
        roots[rank["host"]] |= kind == "incast" and rank["rank"] == 0
    if not moves:
        return roots | is_hotspot(result)
    fixed = {entry["to"] for entry in traffic.get("incast", [])}
    targets = np.array([name in fixed for name in result.hosts["name"].to_pylist()], dtype=np.bool_)
    both: BoolArray = roots | targets
    return both


def other_receivers(result: Result) -> BoolArray:
    """Return for each host, in the order of ``hosts``, if it is a receiver but no hotspot.

    A receiver is a host that some traffic is sent to. If the run waits for programs, a host that
    runs programs counts if the run waits for one of them that is no incast.
    """
    others = receives(result) & ~hotspots(result)
    waited_for = np.zeros(result.hosts.num_rows, dtype=np.bool_)
    runs, waits = waited_for.copy(), False
    for program, kind, rank in _ranks(result):
        runs[rank["host"]] = True
        waits |= not program["background"]
        waited_for[rank["host"]] |= not program["background"] and kind != "incast"
    return others & (waited_for | ~runs) if waits else others


def _ranks(result: Result) -> Iterator[tuple[dict[str, Any], str | None, dict[str, Any]]]:
    if "programs" not in result.tables:
        return
    stated = result.scenario.to_dict()["traffic"].get("program", [])
    kinds = {one["name"]: one["kind"] for one in stated}
    programs = result.programs.to_pylist()
    for rank in result.ranks.to_pylist():
        program = programs[rank["program"]]
        yield program, kinds.get(program["name"]), rank


def receives(result: Result) -> BoolArray:
    """Tell for each host whether it is a destination of some traffic, in the order of ``hosts``."""
    return np.array(result.hosts["receives"].to_pylist(), dtype=np.bool_)


def measured_ps(result: Result) -> int:
    """Compute the time over which the rates of a run are averaged, in picoseconds.

    It starts at the end of the warm-up. It ends with the run or, where all traffic consists of
    flows, sequences and programs that have ended, with the last delivery. At least 1: a run of
    programs without work ends at the start.
    """
    warm_up_ps = result.scenario.warm_up_ps
    end_ps = int(result.summary.get("simulated_ps", result.scenario.duration_ps))
    last_ps = _last_end_ps(result)
    if last_ps is not None and last_ps > warm_up_ps:
        end_ps = min(end_ps, last_ps)
    return end_ps - warm_up_ps if end_ps > warm_up_ps else max(end_ps, 1)


def _last_end_ps(result: Result) -> int | None:
    import pyarrow.compute as pc

    names = result.classes["name"].to_pylist()
    ending: set[str] = set()
    last_ps = 0
    for name in ("flows", "sequences", "programs"):
        table = result.tables.get(name)
        if table is None or not table.num_rows:
            continue
        if not pc.all(table["finished"]).as_py():
            return None
        ending |= set(pc.unique(table["name"]).to_pylist())
        last_ps = max(last_ps, pc.max(table["end_ps"]).as_py())
    return last_ps if names and ending.issuperset(names) else None


def delivered(result: Result) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Lay the host series of a run with a probe interval out as a matrix.

    Returns the end of each interval in picoseconds, and the bytes delivered, one row per interval
    and one column per host.
    """
    series = result.host_series
    hosts = result.hosts.num_rows
    times = series["time_ps"].to_numpy().reshape(-1, hosts)
    if times.size and (times != times[:, :1]).any():
        raise ValueError("the host series does not hold every host at every instant")
    return times[:, 0], series["delivered_bytes"].to_numpy().reshape(-1, hosts)


def class_delivered(result: Result) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Lay the class series of a run with ``probe.classes`` out as a matrix.

    Returns the end of each interval in picoseconds, and the bytes delivered, one row per interval
    and one column per traffic class.

    Raises
    ------
    ValueError
        The run was made without ``probe.classes``.
    """
    series = result.tables.get("class_series")
    if series is None:
        raise ValueError("the run has no class series: set probe.classes")
    classes = result.classes.num_rows
    times = series["time_ps"].to_numpy().reshape(-1, classes)
    return times[:, 0], series["delivered_bytes"].to_numpy().reshape(-1, classes)


def jain_index(rates: npt.ArrayLike) -> float:
    """Compute Jain's fairness index: (sum of x)² / (n · sum of x²).

    1 if all have the same, 1/n if one has all (R. Jain, D. Chiu, W. Hawe, "A quantitative measure
    of fairness and discrimination", DEC-TR-301, 1984).

    Parameters
    ----------
    rates : array_like of float
        Amount of each, in any unit.

    Returns
    -------
    float
        The index; not a number if no host has anything.

    Examples
    --------
    >>> jain_index([3, 3, 3]), jain_index([1, 0, 0, 0])
    (1.0, 0.25)
    """
    values = np.asarray(rates, dtype=np.float64)
    squares = float((values**2).sum())
    return float(values.sum()) ** 2 / (values.size * squares) if squares else float("nan")


def jain_index_series(
    result: Result,
    *,
    of: Literal["hosts", "classes"] = "hosts",
    members: BoolArray | None = None,
    window_ps: int | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Compute Jain's fairness index over time, from what was delivered in a sliding window.

    Parameters
    ----------
    result : Result
        A run with a probe interval, and with ``probe.classes`` for classes.
    of : {"hosts", "classes"}
        Whose deliveries are compared: those to each host, or those of each traffic class. Flows
        that are entries of their own are classes.
    members : ndarray of bool, optional
        Hosts or classes that count; all by default.
    window_ps : int, optional
        Length of the window in picoseconds, a multiple of the probe interval; by default one
        interval.

    Returns
    -------
    times_ms : ndarray of float
        Middle of each window, in milliseconds.
    index : ndarray of float
        The index; not a number where nothing was delivered.
    """
    times_ps, delivered_bytes = delivered(result) if of == "hosts" else class_delivered(result)
    if members is not None:
        delivered_bytes = delivered_bytes[:, members]
    times_ms, rates = sliding_rates_gbps(times_ps, delivered_bytes, window_ps)
    return times_ms, np.array([jain_index(row) for row in rates])


def sliding_rates_gbps(
    times_ps: npt.NDArray[np.uint64],
    delivered_bytes: npt.NDArray[np.uint64],
    window_ps: int | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Average deliveries over a window that slides along in steps of the probe interval.

    Parameters
    ----------
    times_ps : ndarray of uint64
        End of each probe interval, in picoseconds.
    delivered_bytes : ndarray of uint64
        Bytes in each interval, one row per interval.
    window_ps : int, optional
        Length of the window in picoseconds; by default one interval.

    Returns
    -------
    times_ms : ndarray of float
        Middle of each window, in milliseconds.
    rates_gbps : ndarray of float
        Mean rate within it in Gbit/s, one row per window.

    Raises
    ------
    ValueError
        The window is not a multiple of the probe interval, or longer than the run.
    """
    interval_ps = int(times_ps[0])
    steps, rest = divmod(window_ps or interval_ps, interval_ps)
    if rest or not 0 < steps <= len(times_ps):
        raise ValueError(f"a window of {window_ps} ps does not fit intervals of {interval_ps} ps")
    sums = np.concatenate(
        (np.zeros((1, delivered_bytes.shape[1])), delivered_bytes.cumsum(axis=0, dtype=np.float64))
    )
    edges = np.concatenate(([0.0], times_ps.astype(np.float64)))
    starts, ends = edges[:-steps], edges[steps:]
    lengths = ends - starts
    if window_ps is not None and (lengths != window_ps).any():
        raise ValueError(f"intervals of different lengths do not fit a window of {window_ps} ps")
    return (starts + ends) / 2 / PS_PER_MS, (sums[steps:] - sums[:-steps]) * 8e3 / lengths[:, None]


def delivered_within(result: Result, window: Window) -> npt.NDArray[np.uint64]:
    """Add up what each host received in a window, in the order of the ``hosts`` table.

    Raises
    ------
    ValueError
        The window does not start and end at probe instants.
    """
    times_ps, delivered_bytes = delivered(result)
    ends = times_ps.astype(np.int64)
    inside = (ends > window.start_ps) & (ends <= window.end_ps)
    starts = np.concatenate(([0], ends[:-1]))
    if (ends - starts)[inside].sum() != window.length_ps:
        raise ValueError(f"the probe interval does not divide the window from {window}")
    return np.asarray(delivered_bytes[inside].sum(axis=0), dtype=np.uint64)


def mean_receive_rate_gbps(result: Result, hosts: BoolArray, window: Window) -> float:
    """Average the receive rate over hosts and time.

    Parameters
    ----------
    result : Result
        A run whose probe interval divides the window.
    hosts : ndarray of bool
        Hosts that count, in the order of the ``hosts`` table.
    window : Window
        When.

    Returns
    -------
    float
        Mean payload rate per host, in Gbit/s.

    Raises
    ------
    ValueError
        The window does not start and end at probe instants.
    """
    total_bytes = int(delivered_within(result, window)[hosts].sum())
    return total_bytes * 8e3 / window.length_ps / max(int(hosts.sum()), 1)


def receive_rate_series_gbps(result: Result, hosts: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Average the receive rate over some hosts, interval by interval.

    ``hosts`` is true for hosts that count, in the order of the ``hosts`` table. Returns the middle
    of each interval in milliseconds, and the mean payload rate per host in Gbit/s.
    """
    times_ps, delivered_bytes = delivered(result)
    ends = times_ps.astype(np.float64)
    starts = np.concatenate(([0.0], ends[:-1]))
    mean_bytes = delivered_bytes[:, hosts].mean(axis=1)
    return (starts + ends) / 2 / PS_PER_MS, mean_bytes * 8e3 / (ends - starts)
