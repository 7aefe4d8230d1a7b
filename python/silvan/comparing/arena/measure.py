"""Measurements of each run of the arena, in the process that runs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from silvan.comparing.comparison import Sampled
from silvan.results.measures import MEASURES
from silvan.results.result import Result

MEASURE = "silvan.comparing.arena.measure:numbers"
"""Names :func:`numbers`, for workers."""

_SERIES = ("times_ms", "tree_ports")


def numbers(result: Result) -> dict[str, Any]:
    """Measure a run as plain values, for JSON.

    Parameters
    ----------
    result : Result
        The run of a scenario that is :func:`silvan.comparing.comparison.with_probes`.

    Returns
    -------
    dict
        All measures by name, and in ``series`` the samples of the congestion trees.
    """
    sampled = Sampled.at(result)
    return {
        **sampled.own,
        "series": {name: getattr(sampled, name).tolist() for name in _SERIES},
    }


def as_sampled(read: Mapping[str, Any]) -> Sampled:
    """Return what :func:`numbers` has written."""
    series = {name: np.asarray(read["series"][name], dtype=np.float64) for name in _SERIES}
    own = {name: float(read[name]) for name in MEASURES if read.get(name) is not None}
    return Sampled(series["times_ms"], series["tree_ports"], own)
