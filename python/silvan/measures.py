"""Numbers of interest, computed from the tables of a result."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from silvan.result import Result

PS_PER_MS = 1_000_000_000

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of simulated time, its start included and its end not.

    Attributes
    ----------
    start_ps, end_ps : int
        Simulated time in picoseconds.
    """

    start_ps: int
    end_ps: int

    def __str__(self) -> str:
        return f"{self.start_ps / PS_PER_MS:g} to {self.end_ps / PS_PER_MS:g} ms"


def is_hotspot(result: Result) -> BoolArray:
    """Tell for each host whether it is a hotspot, in the order of the ``hosts`` table."""
    roles = result.hosts["role"].to_pylist()
    return np.array([role.startswith("hotspot") for role in roles], dtype=np.bool_)


def receive_rates_gbps(result: Result) -> dict[str, float]:
    """Average the receive rates from the warm-up to the end of a run.

    Parameters
    ----------
    result : Result
        A run.

    Returns
    -------
    dict
        ``hotspots_gbps`` and ``other_hosts_gbps``: mean payload rate per host, left out where
        there are no such hosts. ``total_gbps``: the sum over all hosts.
    """
    span_ps = result.scenario.duration_ps - result.scenario.warm_up_ps
    rates = result.hosts["delivered_bytes"].to_numpy().astype(np.float64) * 8e3 / span_ps
    hotspots = is_hotspot(result)
    groups = {"hotspots": rates[hotspots], "other_hosts": rates[~hotspots]}
    means = {f"{name}_gbps": float(group.mean()) for name, group in groups.items() if group.size}
    return {**means, "total_gbps": float(rates.sum())}


def delivered(result: Result) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Lay the host series out as a matrix.

    Parameters
    ----------
    result : Result
        A run with a probe interval.

    Returns
    -------
    times_ps : ndarray of uint64
        End of each interval, in picoseconds.
    delivered_bytes : ndarray of uint64
        Bytes delivered, one row per interval and one column per host.
    """
    series = result.host_series
    hosts = result.hosts.num_rows
    times = series["time_ps"].to_numpy().reshape(-1, hosts)
    if times.size and (times != times[:, :1]).any():
        raise ValueError("the host series does not hold every host at every instant")
    return times[:, 0], series["delivered_bytes"].to_numpy().reshape(-1, hosts)


def mean_receive_rate_gbps(result: Result, hosts: BoolArray, window: Window) -> float:
    """Average the receive rate over hosts and time.

    Parameters
    ----------
    result : Result
        A run whose probe interval divides the window.
    hosts : ndarray of bool
        Which hosts, in the order of the ``hosts`` table.
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
    times_ps, delivered_bytes = delivered(result)
    ends = times_ps.astype(np.int64)
    inside = (ends > window.start_ps) & (ends <= window.end_ps)
    length_ps = window.end_ps - window.start_ps
    starts = np.concatenate(([0], ends[:-1]))
    if (ends - starts)[inside].sum() != length_ps:
        raise ValueError(f"the probe interval does not divide the window from {window}")
    total_bytes = int(delivered_bytes[inside][:, hosts].sum())
    return total_bytes * 8e3 / length_ps / max(int(hosts.sum()), 1)


def receive_rate_series_gbps(result: Result, hosts: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Average the receive rate over hosts, interval by interval.

    Parameters
    ----------
    result : Result
        A run with a probe interval.
    hosts : ndarray of bool
        Which hosts, in the order of the ``hosts`` table.

    Returns
    -------
    times_ms : ndarray of float
        Middle of each interval, in milliseconds.
    rates_gbps : ndarray of float
        Mean payload rate per host in each interval, in Gbit/s.
    """
    times_ps, delivered_bytes = delivered(result)
    ends = times_ps.astype(np.float64)
    starts = np.concatenate(([0.0], ends[:-1]))
    mean_bytes = delivered_bytes[:, hosts].mean(axis=1)
    return (starts + ends) / 2 / PS_PER_MS, mean_bytes * 8e3 / (ends - starts)
