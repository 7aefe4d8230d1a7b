"""Receive rates of runs as numbers to compute with: both averaging windows, every seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from silvan.reproduce.experiment import Measurement, Results
from silvan.results.receive_rates import (
    PS_PER_MS,
    BoolArray,
    FloatArray,
    Window,
    is_hotspot,
    mean_receive_rate_gbps,
)
from silvan.results.result import Result

STEADY_MS = 30
"""Steady-state window in ms; a shorter run is averaged as a whole."""

Quantity = FloatArray
"""Two rows (whole run, steady-state window), one column per seed, from seed 1 on."""


def whole_window(result: Result) -> Window:
    """Return the averaging window that gran2012 seems to have used: the whole run.

    Table II agrees with the whole 0.1 s, in which trees that have yet to dissolve count.
    """
    return Window(0, result.scenario.duration_ps)


def steady_window(result: Result) -> Window:
    """Give the window in which congestion control has had time to dissolve the trees."""
    end = result.scenario.duration_ps
    return Window(max(0, end - STEADY_MS * PS_PER_MS), end)


def windows_in_words(results: Results) -> tuple[str, str]:
    """Name both averaging windows of an experiment whose runs have the same length."""
    result = next(iter(results.values()))[0]
    whole, steady = whole_window(result), steady_window(result)
    length = f"{whole.length_ps / PS_PER_MS:g} ms"
    if steady == whole:
        return (
            f"the whole run of {length}",
            f"the same, as the run is not longer than {STEADY_MS} ms",
        )
    return f"the whole run of {length}", f"its last {STEADY_MS} ms"


@dataclass(frozen=True, slots=True)
class Rates:
    """Receive rates of one case in Gbit/s; ``tmax`` bounds the others' rate."""

    everyone: Quantity
    hotspots: Quantity
    others: Quantity
    total: Quantity
    tmax: Quantity


def rates(runs: Sequence[Result]) -> Rates:
    """Average the receive rates of a case's runs, one per seed."""
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
    """Average the rate in Gbit/s of ``"all"`` hosts, ``"hotspots"`` or ``"others"``."""

    def group(result: Result) -> BoolArray:
        hotspots = is_hotspot(result)
        return {"all": np.ones_like(hotspots), "hotspots": hotspots, "others": ~hotspots}[hosts]

    return np.array(
        [
            [mean_receive_rate_gbps(run, group(run), window(run)) for run in runs]
            for window in (whole_window, steady_window)
        ]
    )


def ratio_of_pairs(over: Quantity, under: Quantity) -> Quantity:
    """Divide seed by seed, for the seeds that both quantities have.

    Equal seeds mean equal placements and moves, whose chance cancels out: at a lifetime of 2 ms
    each rate differs by 3 % from seed to seed, and the ratio by 1 %.

    >>> ratio_of_pairs(np.array([[6.0], [8.0]]), np.array([[1.0, 2.0], [1.0, 2.0]])).tolist()
    [[6.0], [8.0]]
    """
    seeds = min(over.shape[1], under.shape[1])
    return ratio(over[:, :seeds], under[:, :seeds])


def ratio(over: Quantity, under: Quantity) -> Quantity:
    """Divide seed by seed; a ratio over 0 is not a number.

    If only one quantity has a seed, the mean of the other is used. With fixed hotspots rates
    without control differ by 16 % by placement, and those with control by less than 1 %, so a
    single pair would have the whole scatter.

    >>> ratio(np.array([[6.0], [8.0]]), np.array([[1.0, 2.0], [1.0, 2.0]])).tolist()
    [[6.0, 3.0], [8.0, 4.0]]
    """
    seeds = max(over.shape[1], under.shape[1])
    above, below = (_extended(one, seeds) for one in (over, under))
    return np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0)


def _extended(quantity: Quantity, seeds: int) -> Quantity:
    missing = seeds - quantity.shape[1]
    means = quantity.mean(axis=1, keepdims=True)
    return np.concatenate((quantity, np.repeat(means, missing, axis=1)), axis=1)


def mean_of(quantities: Sequence[Quantity]) -> Quantity:
    """Average over several points seed by seed, for the seeds that all points have.

    >>> mean_of([np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[3.0], [5.0]])]).tolist()
    [[2.0], [4.0]]
    """
    seeds = min(one.shape[1] for one in quantities)
    return np.asarray(np.mean([one[:, :seeds] for one in quantities], axis=0))


def spread(values: FloatArray) -> float | str:
    """Give the sample standard deviation over the seeds, or an empty text for a single seed."""
    return float(values.std(ddof=1)) if len(values) > 1 else ""


def measurement(
    target: str, quantity: Quantity | tuple[FloatArray, FloatArray], note: str = ""
) -> Measurement:
    """Put a quantity, or its values in each of the two windows, next to a target."""
    whole, steady = (tuple(values.tolist()) for values in quantity)
    return Measurement(target, whole, steady, note)


def farthest(quantities: Mapping[int, Quantity], value: float) -> tuple[FloatArray, FloatArray]:
    """Return the point farthest from a value by its mean, for each window and seed."""

    def worst(window: int) -> FloatArray:
        rows = (quantity[window] for quantity in quantities.values())
        return max(rows, key=lambda row: abs(float(row.mean()) - value))

    return worst(0), worst(1)


def mean_curve(quantities: Mapping[int, Quantity], window: int) -> dict[int, float]:
    """Average a curve over the seeds, in window 0 (whole) or 1 (steady)."""
    return {at: float(quantity[window].mean()) for at, quantity in quantities.items()}
