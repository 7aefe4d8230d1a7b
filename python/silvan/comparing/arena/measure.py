"""Measurements of each run of the arena, in the process that runs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from silvan.comparing.comparison import Sampled
from silvan.results.measures import MEASURES
from silvan.results.result import Result

MEASURE = "silvan.comparing.arena.measure:numbers"

_SERIES = ("times_ms", "tree_ports")


def numbers(result: Result) -> dict[str, Any]:
    """Return all measures of a run by name, and the trees' samples in ``series``, for JSON."""
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
