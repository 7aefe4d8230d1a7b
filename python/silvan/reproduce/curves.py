"""The curves of a figure, with the runs behind each point and the numbers that the paper states."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from silvan.reproduce.experiment import PointTable

Row = Mapping[str, float | str]
"""A row of a table of points, by the names of its columns."""

SPREAD = "_sd"
"""End of the name of a column with the standard deviation over the seeds of another column."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A measured point of a curve.

    Attributes
    ----------
    x, y : float
        Its place; y is the mean over the seeds.
    spread : float, optional
        Sample standard deviation over the seeds; None for a single seed.
    cases : tuple of str
        Labels of the cases whose runs it comes from.
    """

    x: float
    y: float
    spread: float | None
    cases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve of a figure.

    Attributes
    ----------
    chart : str
        What the chart shows; curves of one chart are drawn together.
    unit : str
        Unit of y.
    axis : str
        What x is, with its unit.
    label : str
        Name of the curve within the chart.
    points : tuple of CurvePoint
        What was measured.
    paper : tuple of tuple of float
        The paper's numbers for the same quantity, each as x and y.
    """

    chart: str
    unit: str
    axis: str
    label: str
    points: tuple[CurvePoint, ...]
    paper: tuple[tuple[float, float], ...] = ()

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
        }


@dataclass(frozen=True, slots=True)
class Line:
    """A column of a table of points that is drawn as a curve.

    Attributes
    ----------
    column : str
        The column with y.
    chart, unit : str
        What the chart shows, and the unit of y.
    label : callable
        Names the curve that a row belongs to.
    cases : callable
        Labels of the cases whose runs a row comes from.
    paper : callable, optional
        The paper's numbers for the curve of this name, each as x and y.
    """

    column: str
    chart: str
    unit: str
    label: Callable[[Row], str]
    cases: Callable[[Row], Sequence[str]]
    paper: Callable[[str], Sequence[tuple[float, float]]] = lambda _label: ()


def curves(table: PointTable, x: str, axis: str, lines: Sequence[Line]) -> list[Curve]:
    """Make the curves of a table of points.

    Parameters
    ----------
    table : PointTable
        The points.
    x : str
        The column with x.
    axis : str
        What x is, with its unit.
    lines : sequence of Line
        What to draw. A point without a finite number is left out.

    Returns
    -------
    list of Curve
        The curves in the order of the lines, and of their first points.

    Examples
    --------
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


def _number(value: float | str) -> float | None:
    return None if isinstance(value, str) or not math.isfinite(value) else float(value)
