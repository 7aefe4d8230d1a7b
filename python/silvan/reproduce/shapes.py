"""Rules that say what it takes for a curve to have the shape that a paper draws or describes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from silvan.reproduce.experiment import ClauseResult, Verdict

Curve = Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Clause:
    """A condition of a shape, checked in window 0 (paper) or 1 (steady)."""

    rule: str
    check: Callable[[int], ClauseResult]


def judge(target: str, clauses: Sequence[Clause]) -> Verdict:
    """Judge a shape by all of its clauses."""

    def find(window: int) -> ClauseResult:
        found = [clause.check(window) for clause in clauses]
        words = [f"{one.facts}: {'yes' if one.holds else 'no'}" for one in found]
        return ClauseResult(all(one.holds for one in found), _listed(words))

    return Verdict(target, _listed([clause.rule for clause in clauses]), find(0), find(1))


def rises(values: Sequence[float]) -> bool:
    """Tell whether each value is above the one before.

    >>> rises([1.0, 2.0, 4.0]), rises([1.0, 1.0])
    (True, False)
    """
    return all(after > before for before, after in pairwise(values))


def peak(curve: Curve) -> int:
    """Find the point at which a curve is highest; of several, the first.

    >>> peak({0: 1.0, 50: 3.0, 100: 2.0})
    50
    """
    return max(curve, key=lambda at: curve[at])


def trend(curve: Curve) -> float:
    """Fit a straight line by least squares, and give its slope per unit of the points.

    >>> round(trend({10: 3.0, 20: 2.5, 30: 2.0}), 6)
    -0.05
    """
    at = np.array(list(curve), dtype=np.float64)
    values = np.array(list(curve.values()))
    centred = at - at.mean()
    return float(centred @ (values - values.mean()) / (centred @ centred))


def words(curve: Curve, digits: int = 2) -> str:
    """Write a curve's values in a row.

    >>> words({0: 1.0, 10: 2.345})
    '1.00, 2.35'
    """
    return ", ".join(f"{value:.{digits}f}" for value in curve.values())


def _listed(items: Sequence[str]) -> str:
    if len(items) == 1:
        return items[0]
    return "; ".join(f"({number}) {item}" for number, item in enumerate(items, start=1))
