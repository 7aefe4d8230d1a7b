"""An experiment of a paper: what to run, what to measure, what to draw."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from silvan.inputs.toml_text import TomlValue
from silvan.inputs.wording import significant
from silvan.reproduce.targets import Target
from silvan.results.result import Result

if TYPE_CHECKING:
    from silvan.reproduce.curves import Curve

Results = Mapping[str, Sequence[Result]]
"""Runs of each case, one per seed, by label."""


@dataclass(frozen=True, slots=True)
class Case:
    """A scenario of a study, run with seeds from 1 up."""

    label: str
    study: str
    seeds: int
    overrides: Mapping[str, TomlValue] = field(default_factory=dict)
    quick: bool = True


@dataclass(frozen=True, slots=True)
class Measurement:
    """A quantity in the paper's window and in the steady state of every run."""

    id: str
    values: tuple[float, ...]
    steady: tuple[float, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class ClauseResult:
    """Result of a rule on curves in one window."""

    holds: bool
    facts: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """A shape of a paper, judged by a rule on means over the seeds in both windows."""

    id: str
    rule: str
    whole: ClauseResult
    steady: ClauseResult


@dataclass(frozen=True, slots=True)
class PointTable:
    """Points of a figure: columns with units, and rows."""

    header: tuple[str, ...]
    rows: tuple[tuple[float | str, ...], ...]

    def in_words(self) -> tuple[list[str], list[list[str]]]:
        """Write values for people, as mean ± standard deviation.

        A column ``x_sd`` is part of ``x``; steady-state columns are omitted.

        >>> PointTable(("p", "x", "x_sd"), ((0, 0.5, 0.125), (10, 1.0, ""))).in_words()
        (['p', 'x'], [['0', '0.5 ± 0.12'], ['10', '1']])
        """
        names = [name for name in self.header if not name.endswith(("_sd", "_steady"))]

        def cell(values: Mapping[str, float | str], name: str) -> str:
            deviation = values.get(f"{name}_sd", "")
            text = significant(values[name])
            return text if isinstance(deviation, str) else f"{text} ± {deviation:.2g}"

        rows = [dict(zip(self.header, row, strict=True)) for row in self.rows]
        return names, [[cell(values, name) for name in names] for values in rows]


@dataclass(frozen=True, slots=True)
class Experiment:
    """A table or figure of a paper.

    Its id begins those of its targets. ``windows`` are the paper's and the steady-state one in
    words. ``quick`` are overrides for short cases. ``tabulate`` returns points, ``plot`` their
    curves, ``trace`` curves over time or names.
    """

    id: str
    title: str
    cases: tuple[Case, ...]
    windows: tuple[str, str] | Callable[[Results], tuple[str, str]]
    quick: Mapping[str, TomlValue]
    quick_note: str
    measure: Callable[[Results], Sequence[Measurement | Verdict]]
    draw: Callable[[Results, Path], Sequence[Path]]
    tabulate: Callable[[Results], PointTable] | None = None
    plot: Callable[[PointTable], Sequence[Curve]] | None = None
    trace: Callable[[Results], Sequence[Curve]] | None = None

    def windows_of(self, results: Results) -> tuple[str, str]:
        """Name both averaging windows of some runs."""
        return self.windows(results) if callable(self.windows) else self.windows


@dataclass(frozen=True, slots=True)
class TargetRow:
    """A paper's number next to the measured one: mean and sample deviation over the seeds."""

    target: Target
    measured: float
    spread: float | None
    steady: float
    values: tuple[float, ...]
    note: str = ""

    @property
    def rel_diff(self) -> float:
        """Relative difference from the paper's number."""
        return self._rel_diff(self.measured)

    @property
    def within_tolerance(self) -> bool:
        """True if the difference is within the tolerance."""
        return self._within(self.measured)

    @property
    def within_tolerance_steady(self) -> bool:
        """True if the difference is within the tolerance in the steady-state window."""
        return self._within(self.steady)

    def _rel_diff(self, value: float) -> float:
        assert self.target.value is not None
        return value / self.target.value - 1

    def _within(self, value: float) -> bool:
        assert self.target.tol is not None
        return abs(self._rel_diff(value)) <= self.target.tol

    def to_dict(self) -> dict[str, Any]:
        """Give the row as plain values, for JSON."""
        return {
            "id": self.target.id,
            "what": self.target.what,
            "paper": self.target.value,
            "measured": self.measured,
            "spread": self.spread,
            "rel_diff": self.rel_diff,
            "within_tolerance": self.within_tolerance,
            "tol": self.target.tol,
            "calibrated": self.target.calibrate,
            "steady": self.steady,
            "within_tolerance_steady": self.within_tolerance_steady,
            "values": list(self.values),
            "note": self.note,
        }


@dataclass(frozen=True, slots=True)
class ShapeRow:
    """Shape of a paper's curve, and if the measured curve has it."""

    target: Target
    verdict: Verdict

    @property
    def within_tolerance(self) -> bool:
        """True if the rule holds in the paper's averaging window."""
        return self.verdict.whole.holds

    @property
    def within_tolerance_steady(self) -> bool:
        """True if the rule holds in the steady-state window."""
        return self.verdict.steady.holds

    def to_dict(self) -> dict[str, Any]:
        """Give the row as plain values, for JSON; the numbers of a :class:`TargetRow` are null."""
        return {
            "id": self.target.id,
            "what": self.target.shape,
            "paper": None,
            "measured": None,
            "spread": None,
            "rel_diff": None,
            "within_tolerance": self.within_tolerance,
            "tol": None,
            "calibrated": self.target.calibrate,
            "steady": None,
            "within_tolerance_steady": self.within_tolerance_steady,
            "values": [],
            "rule": self.verdict.rule,
            "found": self.verdict.whole.facts,
            "found_steady": self.verdict.steady.facts,
        }


def compare(
    targets: Mapping[str, Target], measured: Sequence[Measurement | Verdict]
) -> list[TargetRow | ShapeRow]:
    """Join measurements with the targets of their ids, in the order of the targets."""
    order = {name: position for position, name in enumerate(targets)}
    return [_row(targets[one.id], one) for one in sorted(measured, key=lambda one: order[one.id])]


def _row(target: Target, one: Measurement | Verdict) -> TargetRow | ShapeRow:
    if isinstance(one, Verdict):
        return ShapeRow(target, one)
    return TargetRow(
        target=target,
        measured=statistics.fmean(one.values),
        spread=statistics.stdev(one.values) if len(one.values) > 1 else None,
        steady=statistics.fmean(one.steady),
        values=one.values,
        note=one.note,
    )
