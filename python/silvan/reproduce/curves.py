"""The curves of a figure, with the runs behind each point and the numbers that the paper states."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from silvan.reproduce.experiment import PointTable
from silvan.results.receive_rates import FloatArray

Row = Mapping[str, float | str]

_MOST_POINTS = 100

SPREAD = "_sd"
"""Suffix of a column with the standard deviation of another."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A measured point: the mean over the seeds, and its sample standard deviation."""

    x: float
    y: float
    spread: float | None
    cases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve of a figure; those of one chart are drawn together.

    ``paper`` has the paper's points. ``names`` are of x = 0, 1, ..., equal in a chart; empty for a
    quantity. An empty ``colour`` follows from the label, or figures do not show the curve.
    """

    chart: str
    unit: str
    axis: str
    label: str
    points: tuple[CurvePoint, ...]
    paper: tuple[tuple[float, float], ...] = ()
    names: tuple[str, ...] = ()
    colour: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Give the curve as plain values, for JSON."""
        return {
            "chart": self.chart,
            "unit": self.unit,
            "axis": self.axis,
            "label": self.label,
            "points": [
                {"x": one.x, "y": one.y, "spread": one.spread, "cases": list(one.cases)}
                for one in self.points
            ],
            "paper": [list(one) for one in self.paper],
            "names": list(self.names),
            "colour": self.colour,
        }


@dataclass(frozen=True, slots=True)
class Line:
    """A column of points that is drawn as a curve, with labels and the paper's points."""

    column: str
    chart: str
    unit: str
    label: Callable[[Row], str]
    cases: Callable[[Row], Sequence[str]]
    paper: Callable[[str], Sequence[tuple[float, float]]] = lambda _label: ()


def curves(table: PointTable, x: str, axis: str, lines: Sequence[Line]) -> list[Curve]:
    """Make the curves of a table of points; points without a finite number are omitted.

    >>> table = PointTable(("p", "rate", "rate_sd"), ((0, 0.5, 0.1), (10, 1.0, "")))
    >>> line = Line("rate", "Rate", "Gbit/s", lambda row: "CC on", lambda row: [f"p = {row['p']}"])
    >>> (curve,) = curves(table, "p", "p (%)", [line])
    >>> [(one.x, one.y, one.spread, one.cases) for one in curve.points]
    [(0.0, 0.5, 0.1, ('p = 0',)), (10.0, 1.0, None, ('p = 10',))]
    """
    rows = [dict(zip(table.header, row, strict=True)) for row in table.rows]
    made = []
    for line in lines:
        groups: dict[str, list[CurvePoint]] = {}
        for row in rows:
            at, value = _number(row[x]), _number(row[line.column])
            if at is not None and value is not None:
                spread = _number(row.get(line.column + SPREAD, ""))
                point = CurvePoint(at, value, spread, tuple(line.cases(row)))
                groups.setdefault(line.label(row), []).append(point)
        for label, points in groups.items():
            ordered = tuple(sorted(points, key=lambda one: one.x))
            paper = tuple((float(at), float(y)) for at, y in line.paper(label))
            made.append(Curve(line.chart, line.unit, axis, label, ordered, paper))
    return made


def over_time(
    chart: str,
    unit: str,
    label: str,
    times_ms: FloatArray,
    values: FloatArray,
    cases: Sequence[str],
) -> Curve:
    """Make a curve over the time of a run. Beyond 100 values, neighbours are averaged.

    >>> curve = over_time("Trees", "", "CC on", np.arange(200.0), np.arange(200.0), [])
    >>> [(one.x, one.y) for one in curve.points[:2]], len(curve.points)
    ([(1.0, 0.5), (3.0, 2.5)], 100)
    """
    starts = np.arange(0, len(values), max(1, -(-len(values) // _MOST_POINTS)))
    ends = np.append(starts[1:], len(values))
    means = np.add.reduceat(values, starts) / (ends - starts)
    points = (
        CurvePoint(float(at), float(value), None, tuple(cases))
        for at, value in zip(times_ms[ends - 1], means, strict=True)
    )
    return Curve(chart, unit, "ms", label, tuple(points))


def by_name(
    chart: str,
    unit: str,
    label: str,
    measured: Mapping[str, tuple[Sequence[float], Sequence[str]]],
    paper: Mapping[str, float],
) -> Curve:
    """Make the points of a chart over names.

    >>> curve = by_name("Rates", "Gbit/s", "CC on", {"a": ([1, 3], []), "b": ([], [])}, {"b": 5})
    >>> [(one.x, one.y) for one in curve.points], curve.paper, curve.names
    ([(0.0, 2.0)], ((1.0, 5.0),), ('a', 'b'))
    """
    names = tuple(measured)
    points = (
        CurvePoint(
            float(place),
            float(np.mean(values)),
            float(np.std(values, ddof=1)) if len(values) > 1 else None,
            tuple(cases),
        )
        for place, (values, cases) in enumerate(measured.values())
        if len(values)
    )
    stated = tuple((float(names.index(name)), float(value)) for name, value in paper.items())
    return Curve(chart, unit, "", label, tuple(points), stated, names)


def coloured(drawn: Sequence[Curve], colour_of: Callable[[str], str]) -> list[Curve]:
    """Give curves the colours of the figures."""
    return [replace(curve, colour=colour_of(curve.label)) for curve in drawn]


def _number(value: float | str) -> float | None:
    return None if isinstance(value, str) or not math.isfinite(value) else float(value)
