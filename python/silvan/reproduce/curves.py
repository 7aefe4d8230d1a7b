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
"""A row of a table of points, by the names of its columns."""

_MOST_POINTS = 100
"""Points of a curve over time."""

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
        Title of the chart; curves of one chart are drawn together.
    unit : str
        Unit of y.
    axis : str
        Name of x, with its unit.
    label : str
        Name of the curve within the chart.
    points : tuple of CurvePoint
        Measured values.
    paper : tuple of tuple of float
        The paper's numbers for the same quantity, each as x and y.
    names : tuple of str
        Names of x = 0, 1, ...; empty if x is a quantity. All curves of a chart have the same.
    colour : str
        Its colour in the figures, such as ``#0072B2``; empty if that follows from its label
        (``CC on``, ``CC off``), or if figures do not show it.
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
    """A column of a table of points that is drawn as a curve.

    Attributes
    ----------
    column : str
        The column with y.
    chart, unit : str
        Title of the chart, and the unit of y.
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
        Name of x, with its unit.
    lines : sequence of Line
        Points to draw. A point without a finite number is omitted.

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


def over_time(
    chart: str,
    unit: str,
    label: str,
    times_ms: FloatArray,
    values: FloatArray,
    cases: Sequence[str],
) -> Curve:
    """Make a curve over the time of a run.

    Parameters
    ----------
    chart, unit, label : str
        As in :class:`Curve`.
    times_ms : ndarray of float
        Times in milliseconds.
    values : ndarray of float
        The value at each. Beyond 100 of them, neighbouring ones are averaged, and the time is that
        of the last of them.
    cases : sequence of str
        Labels of the cases whose runs it comes from.

    Examples
    --------
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

    Parameters
    ----------
    chart, unit, label : str
        As in :class:`Curve`.
    measured : Mapping
        By name one value per seed, and labels of the cases whose runs they come from.
    paper : Mapping
        The paper's number for some of the names.

    Examples
    --------
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
    """Give curves the colours of the figures.

    Parameters
    ----------
    drawn : sequence of Curve
        The curves.
    colour_of : callable
        Returns the colour of a curve of some label; nothing leaves it to the page.
    """
    return [replace(curve, colour=colour_of(curve.label)) for curve in drawn]


def _number(value: float | str) -> float | None:
    return None if isinstance(value, str) or not math.isfinite(value) else float(value)
