"""Receive rates of runs as numbers to compute with: both averaging windows, every seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from silvan.measures import (
    PS_PER_MS,
    BoolArray,
    FloatArray,
    Window,
    is_hotspot,
    mean_receive_rate_gbps,
)
from silvan.reproduce.experiment import Measurement
from silvan.result import Result

LATE_MS = 30
"""Length of the late averaging window, in milliseconds; a shorter run is averaged as a whole."""

Quantity = FloatArray
"""Values of one quantity: two rows for the whole run and its late window, one column per seed.

Two quantities of the same seeds may be added or divided: a ratio is one of runs with the same
placement of hosts, whose chance cancels out."""


def whole_window(result: Result) -> Window:
    """Give the averaging window that gran2012 seems to have used: from the first packet on.

    The paper does not say over which part of a run it averages. Its Table II agrees with the whole
    of 0.1 s, in which the trees that congestion control has yet to dissolve still count.
    """
    return Window(0, result.scenario.duration_ps)


def late_window(result: Result) -> Window:
    """Give the window in which congestion control has had time to dissolve the trees."""
    end = result.scenario.duration_ps
    return Window(max(0, end - LATE_MS * PS_PER_MS), end)


@dataclass(frozen=True, slots=True)
class Rates:
    """Receive rates of one case.

    Attributes
    ----------
    everyone, hotspots, others : ndarray of float
        Mean per host of the group, in Gbit/s; both windows by seeds. Hotspots are those at the
        start.
    total : ndarray of float
        Sum over all hosts, in Gbit/s.
    tmax : ndarray of float
        What the others could receive at most, in Gbit/s.
    """

    everyone: Quantity
    hotspots: Quantity
    others: Quantity
    total: Quantity
    tmax: Quantity


def rates(runs: Sequence[Result]) -> Rates:
    """Average the receive rates of a case's runs.

    Parameters
    ----------
    runs : sequence of Result
        One run per seed.

    Returns
    -------
    Rates
        All groups of hosts, in both windows.
    """
    everyone = group_rate(runs, "all")
    tmax = [run.scenario.tmax_gbps(run.seed) for run in runs]
    return Rates(
        everyone=everyone,
        hotspots=group_rate(runs, "hotspots"),
        others=group_rate(runs, "others"),
        total=everyone * runs[0].hosts.num_rows,
        tmax=np.array([tmax, tmax]),
    )


def group_rate(runs: Sequence[Result], hosts: str) -> Quantity:
    """Average the receive rate of ``"all"`` hosts, the ``"hotspots"`` or the ``"others"``.

    Returns
    -------
    ndarray of float
        Mean per host in Gbit/s, both windows by seeds; 0 where the group is empty.
    """

    def group(result: Result) -> BoolArray:
        hotspots = is_hotspot(result)
        return {"all": np.ones_like(hotspots), "hotspots": hotspots, "others": ~hotspots}[hosts]

    return np.array(
        [
            [mean_receive_rate_gbps(run, group(run), window(run)) for run in runs]
            for window in (whole_window, late_window)
        ]
    )


def ratio(over: Quantity, under: Quantity) -> Quantity:
    """Divide; where there is nothing to divide by, the ratio is not a number."""
    return np.divide(over, under, out=np.full_like(over, np.nan), where=under > 0)


def measurement(
    target: str, quantity: Quantity | tuple[FloatArray, FloatArray], note: str = ""
) -> Measurement:
    """Put a quantity, or its values in each of the two windows, beside a target."""
    whole, late = (tuple(values.tolist()) for values in quantity)
    return Measurement(target, whole, late, note)


def farthest(quantities: Mapping[int, Quantity], value: float) -> tuple[FloatArray, FloatArray]:
    """Take from several points the one that is farthest from a value, window by window.

    Where a paper states one number for many points, this is the strictest way to compare.

    Parameters
    ----------
    quantities : Mapping
        A quantity per point.
    value : float
        What all should be.

    Returns
    -------
    tuple of ndarray of float
        For each window the values, one per seed, of the point whose mean over them is farthest.
    """

    def worst(window: int) -> FloatArray:
        rows = (quantity[window] for quantity in quantities.values())
        return max(rows, key=lambda row: abs(float(row.mean()) - value))

    return worst(0), worst(1)


def mean_curve(quantities: Mapping[int, Quantity], window: int) -> dict[int, float]:
    """Average a curve over the seeds, in window 0 (whole) or 1 (late)."""
    return {at: float(quantity[window].mean()) for at, quantity in quantities.items()}
