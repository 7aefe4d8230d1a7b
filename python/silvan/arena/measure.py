"""What is measured of each run of the arena, in the process that runs it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from silvan.comparison import PROGRAMS, QUANTITIES, Quantity, Sampled
from silvan.measures import PS_PER_MS
from silvan.result import Result

MEASURE = "silvan.arena.measure:numbers"
"""Names :func:`numbers`, for workers."""

ARENA_QUANTITIES: Sequence[Quantity] = (
    *QUANTITIES[:3],
    PROGRAMS,
    Quantity("flows_ms", "flows\nend, ms", "less", 3),
    Quantity("slowdown_p50", "slowdown\nmedian", "less"),
    Quantity("slowdown_p99", "slowdown\n99 %", "less"),
    *QUANTITIES[3:7],
    Quantity("queued_mb", "most queued\nMB", "less", 3),
    QUANTITIES[7],
)
"""What schemes are compared by in the arena, in the order of its tables."""

_OF_OTHERS = ("dissolved_ms", "recovered_ms")
_OF_RUN = ("packet_hops", "simulated_ps")

FORMULA_NAMES: Sequence[str] = (
    *(one.name for one in ARENA_QUANTITIES if one.name not in _OF_OTHERS),
    *_OF_RUN,
)
"""What an objective can be a formula of: :func:`numbers`, which need no other scheme's run."""

_SERIES = ("times_ms", "victims_gbps", "tree_ports")


def numbers(result: Result) -> dict[str, Any]:
    """Measure a run as plain values, for JSON.

    Parameters
    ----------
    result : Result
        The run of a scenario that is :func:`silvan.comparison.watched`.

    Returns
    -------
    dict
        What needs no other run, by the name of its quantity, None where there is no such thing;
        in ``series`` what the times of recovery follow from; and what the run took.
    """
    sampled = Sampled.at(result)
    flows = _flows(result)
    own = {**sampled.own, **flows, "queued_mb": _queued_mb(result)}
    if flows:
        # The run ends when the fabric is empty: there is no steady rate, of a hotspot neither.
        own |= {"victims_gbps": math.nan, "hotspot_utilisation": math.nan}
    return {
        **{name: None if math.isnan(value) else value for name, value in own.items()},
        "series": {name: getattr(sampled, name).tolist() for name in _SERIES},
        **{name: result.summary[name] for name in _OF_RUN},
    }


def as_sampled(read: Mapping[str, Any]) -> Sampled:
    """Return what :func:`numbers` has written, for the times that need the other schemes' runs."""
    series = {name: np.asarray(read["series"][name], dtype=np.float64) for name in _SERIES}
    own = {
        one.name: math.nan if read.get(one.name) is None else float(read[one.name])
        for one in ARENA_QUANTITIES
        if one.name in read
    }
    return Sampled(series["times_ms"], series["victims_gbps"], series["tree_ports"], own)


def _flows(result: Result) -> dict[str, float]:
    """Measure flows with a size that started after the warm-up.

    A flow that is not finished when the run ends makes the largest slowdowns and the end infinite,
    as far as they depend on it: leaving it out would reward a scheme that starves flows.
    """
    table = result.tables.get("flows")
    if table is None:
        return {}
    rows = [row for row in table.to_pylist() if row["measured"] and row["bytes"]]
    if not rows:
        return {}
    slowdowns = sorted(math.inf if row["slowdown"] is None else row["slowdown"] for row in rows)
    ends = [math.inf if row["end_ps"] is None else row["end_ps"] for row in rows]
    return {
        "flows_ms": max(ends) / PS_PER_MS,
        "slowdown_p50": _rank(slowdowns, 0.5),
        "slowdown_p99": _rank(slowdowns, 0.99),
    }


def _rank(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that a share of the values does not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def _queued_mb(result: Result) -> float:
    """Find the most bytes that waited in all switches at one sample."""
    waiting = result.forest["waiting_bytes"].to_numpy()
    return float(waiting.max(initial=0)) / 1e6
