"""An experiment of a paper: what to run, what to measure, what to draw."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from silvan.reproduce.targets import Target
from silvan.result import Result
from silvan.toml_text import TomlValue

Results = Mapping[str, Sequence[Result]]
"""The runs of each case, one per seed, by the case's label."""


@dataclass(frozen=True, slots=True)
class Case:
    """One scenario, run with several seeds.

    Attributes
    ----------
    label : str
        Name within the experiment.
    study : str
        Study file of the paper, without its suffix.
    seeds : int
        Number of runs, with seeds from 1 up.
    overrides : Mapping
        Values by dotted key, set over the study's.
    """

    label: str
    study: str
    seeds: int
    overrides: Mapping[str, TomlValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Measurement:
    """One quantity, measured in every run.

    Attributes
    ----------
    id : str
        The target that it belongs beside.
    values : tuple of float
        One value per seed, averaged over the paper's window.
    late : tuple of float
        One value per seed, averaged over the last part of the run.
    """

    id: str
    values: tuple[float, ...]
    late: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Experiment:
    """A table or figure of a paper.

    Attributes
    ----------
    id : str
        First part of the ids of its targets.
    title : str
        What it shows.
    cases : tuple of Case
        What to run.
    windows : str
        The two averaging windows in words: the paper's, then the late one.
    quick : Mapping
        Overrides that make every case short.
    quick_note : str
        What is lost by them.
    measure : callable
        Computes the measurements from the runs.
    draw : callable
        Draws the runs into a folder, and returns the files written.
    """

    id: str
    title: str
    cases: tuple[Case, ...]
    windows: tuple[str, str]
    quick: Mapping[str, TomlValue]
    quick_note: str
    measure: Callable[[Results], Sequence[Measurement]]
    draw: Callable[[Results, Path], Sequence[Path]]


@dataclass(frozen=True, slots=True)
class Row:
    """A paper's number beside ours.

    Attributes
    ----------
    target : Target
        What the paper states.
    measured : float
        Mean over the seeds, in the paper's averaging window.
    spread : float, optional
        Sample standard deviation over the seeds; None for a single seed.
    late : float
        Mean over the seeds, in the late window.
    values : tuple of float
        One value per seed, in the paper's averaging window.
    """

    target: Target
    measured: float
    spread: float | None
    late: float
    values: tuple[float, ...]

    @property
    def rel_diff(self) -> float:
        """Relative difference from the paper's number."""
        assert self.target.value is not None
        return self.measured / self.target.value - 1

    @property
    def within(self) -> bool:
        """Whether the difference is within what we aim for."""
        assert self.target.tol is not None
        return abs(self.rel_diff) <= self.target.tol

    def to_dict(self) -> dict[str, Any]:
        """Give the row as plain values, for JSON."""
        return {
            "id": self.target.id,
            "what": self.target.what,
            "paper": self.target.value,
            "measured": self.measured,
            "spread": self.spread,
            "rel_diff": self.rel_diff,
            "within": self.within,
            "tol": self.target.tol,
            "calibrated": self.target.calibrate,
            "late": self.late,
            "values": list(self.values),
        }


def compare(targets: Mapping[str, Target], measurements: Sequence[Measurement]) -> list[Row]:
    """Put measurements beside the targets of the same id.

    Parameters
    ----------
    targets : Mapping
        Targets by id.
    measurements : sequence of Measurement
        What was measured.

    Returns
    -------
    list of Row
        One row per measurement, in the order of the targets.

    Raises
    ------
    KeyError
        A measurement belongs to no target.
    """
    order = {name: position for position, name in enumerate(targets)}
    return [
        Row(
            target=targets[one.id],
            measured=statistics.fmean(one.values),
            spread=statistics.stdev(one.values) if len(one.values) > 1 else None,
            late=statistics.fmean(one.late),
            values=one.values,
        )
        for one in sorted(measurements, key=lambda one: order[one.id])
    ]
