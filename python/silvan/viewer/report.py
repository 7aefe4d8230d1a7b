"""Reports of the page: measurements, curves, and as many of their runs as fit."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from silvan.errors import OutputError
from silvan.folders import write_text
from silvan.results.result import Result
from silvan.viewer.page import Block, document, embedded, facts_block, table_block
from silvan.viewer.shapes import Curve, Target, require_fields, require_places, require_shape

MOST_RUN_BYTES = 12_000_000

MOST_CELLS_OF_RUN = 1_000_000

MOST_UNREADABLE = 20

_RECORDED = ("forest", "port_series")


@dataclass(frozen=True, slots=True)
class ReportRun:
    """A run behind the numbers of a report: ``scenario`` with ``settings``."""

    label: str
    seed: int
    hash: str
    scenario: str
    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, str | float] = field(default_factory=dict)
    folder: Path | None = None

    def __post_init__(self) -> None:
        require_fields(self)

    @property
    def file(self) -> str:
        """Name of the scenario's file: its own for each scenario of a report."""
        return f"{self.name}-{self.hash[:8]}.toml" if not self.settings else f"{self.name}.toml"

    @property
    def command(self) -> str:
        """The command that makes the run with all that a map shows."""
        words = ["silvan", "run", self.file]
        for key, value in self.settings.items():
            words += ["--set", f"{key}={value}"]
        words += ["--seed", str(self.seed), "--record", "view", "--out", "results"]
        return shlex.join(words)


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a report; None is no value.

    ``runs`` are indexes by row. ``deviations`` maps a column of means to its deviations or
    intervals, which the page shows together. Columns in ``file_only`` are in CSV only.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | float | None]]
    runs: Sequence[Sequence[int]] = ()
    deviations: Mapping[int, int] = field(default_factory=dict)
    file_only: Sequence[int] = ()

    def __post_init__(self) -> None:
        require_fields(self)

    def to_dict(self) -> dict[str, Any]:
        """Give the table as plain values, for JSON."""
        return {
            "title": self.title,
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
            "runs": [list(row) for row in self.runs],
            "deviations": dict(self.deviations),
            "file_only": list(self.file_only),
        }


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report: an experiment, a comparison, a sweep; figures are SVG."""

    id: str
    title: str
    command: str
    notes: Sequence[str] = ()
    targets: Sequence[Mapping[str, Any]] = ()
    tables: Sequence[Table] = ()
    curves: Sequence[Mapping[str, Any]] = ()
    figures: Sequence[Path] = ()
    cases: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_fields(self)
        require_shape(self.targets, Sequence[Target], f"{self.id}: targets")
        require_shape(self.curves, Sequence[Curve], f"{self.id}: curves")

    def to_dict(self) -> dict[str, Any]:
        """Give the section as plain values, for JSON, its drawings within."""
        return {
            "id": self.id,
            "title": self.title,
            "command": self.command,
            "notes": list(self.notes),
            "targets": list(self.targets),
            "tables": [table.to_dict() for table in self.tables],
            "curves": list(self.curves),
            "figures": [_image(path) for path in self.figures],
            "cases": {label: list(places) for label, places in self.cases.items()},
        }


@dataclass(frozen=True, slots=True)
class SweepPoints:
    """Points of a sweep, in the order of the report's runs, for curves over a chosen key."""

    keys: Sequence[str]
    measures: Sequence[str]
    points: pa.Table


@dataclass(frozen=True, slots=True)
class Report:
    """Result of a reproduction, a comparison or a sweep, and silvan's version and command."""

    title: str
    made_by: str
    sections: Sequence[Section]
    runs: Sequence[ReportRun]
    warnings: Sequence[str] = ()
    notes: Sequence[str] = ()
    sweep: SweepPoints | None = None

    def __post_init__(self) -> None:
        require_fields(self)
        for section in self.sections:
            for name, places in section.cases.items():
                require_places(places, len(self.runs), f"{section.id}: cases.{name}")


def write_report(report: Report, path: Path) -> Path:
    """Write the page of a report."""
    places, runs, blocks, unreadable = _runs_that_fit(report.runs)
    blocks.append(table_block("report-runs", _run_table(report.runs, places)))
    facts: dict[str, Any] = {
        "title": report.title,
        "made_by": report.made_by,
        "warnings": [*report.warnings, *unreadable],
        "notes": list(report.notes),
        "sections": [section.to_dict() for section in report.sections],
        "sweep": None,
    }
    if report.sweep is not None:
        facts["sweep"] = {"keys": list(report.sweep.keys), "measures": list(report.sweep.measures)}
        blocks.append(table_block("report-points", report.sweep.points))
    blocks.insert(0, facts_block(report.title, runs, report=facts))
    write_text(path, document(report.title, blocks))
    return path


def with_places(curve: Mapping[str, Any], cases: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """Replace the cases of each point by the places of their runs."""
    points = [
        {**{key: point[key] for key in ("x", "y", "spread")}, "runs": _places(point, cases)}
        for point in curve["points"]
    ]
    return {**curve, "points": points}


def _places(point: Mapping[str, Any], cases: Mapping[str, Sequence[int]]) -> list[int]:
    return [place for case in point["cases"] for place in cases.get(case, ())]


def _runs_that_fit(
    runs: Sequence[ReportRun],
) -> tuple[dict[int, int], list[dict[str, Any]], list[Block], list[str]]:
    kept = [
        (place, one.folder)
        for place, one in enumerate(runs)
        if one.folder is not None and one.folder.is_dir()
    ]
    places: dict[int, int] = {}
    facts: list[dict[str, Any]] = []
    blocks: list[Block] = []
    unreadable: list[str] = []
    left = MOST_RUN_BYTES
    for place, folder in sorted(kept, key=partial(_rank, runs)):
        try:
            made, data = embedded(
                Result.read(folder),
                len(facts),
                label=runs[place].label,
                most_cells=MOST_CELLS_OF_RUN,
            )
        except OutputError as error:
            unreadable.append(f"{runs[place].label} has no map: {error}")
            continue
        left -= sum(len(block.text) for block in data)
        if left < 0:
            break
        places[place] = len(facts)
        facts.append(made)
        blocks += data
    if len(unreadable) > MOST_UNREADABLE:
        more = len(unreadable) - MOST_UNREADABLE
        unreadable[MOST_UNREADABLE:] = [f"{more} more runs have tables that cannot be read"]
    return places, facts, blocks, unreadable


def _rank(runs: Sequence[ReportRun], kept: tuple[int, Path]) -> tuple[bool, int, int]:
    place, folder = kept
    is_bare = not any((folder / f"{name}.parquet").is_file() for name in _RECORDED)
    return is_bare, runs[place].seed, place


def _run_table(runs: Sequence[ReportRun], places: Mapping[int, int]) -> pa.Table:
    return pa.table(
        {
            "label": pa.array([one.label for one in runs], pa.utf8()),
            "seed": pa.array([float(one.seed) for one in runs], pa.float64()),
            "hash": pa.array([one.hash for one in runs], pa.utf8()),
            "file": pa.array([one.file for one in runs], pa.utf8()),
            "command": pa.array([one.command for one in runs], pa.utf8()),
            "scenario": pa.array([one.scenario for one in runs], pa.utf8()).dictionary_encode(),
            "facts": pa.array([json.dumps(dict(one.facts)) for one in runs], pa.utf8()),
            "place": pa.array([places.get(place, -1) for place in range(len(runs))], pa.int32()),
        }
    )


def _image(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise OutputError(
            f"{path}: cannot read this drawing of the report: {reason}",
            hint="repeat the command that made the report; finished runs are kept",
        ) from None
    return f"data:image/svg+xml;base64,{base64.b64encode(data).decode('ascii')}"
