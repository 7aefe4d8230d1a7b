"""A whole reproduction: runs, numbers next to the paper's, figures, and what is kept of them."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from silvan import _silvan
from silvan.errors import OutputError
from silvan.execution.cache import build_id
from silvan.folders import unwritable, write_text
from silvan.reproduce.curves import Curve
from silvan.reproduce.experiment import Experiment, PointTable, ShapeRow, TargetRow, compare
from silvan.reproduce.plan import FinishedRun, ReproductionPlan
from silvan.reproduce.registry import find_paper
from silvan.results.result import Result


@dataclass(frozen=True, slots=True)
class RunCost:
    """Identity and cost of one run."""

    label: str
    scenario_hash: str
    seed: int
    version: str
    wall_s: float
    events: int
    packet_hops: int
    folder: Path

    @property
    def key(self) -> tuple[str, int]:
        """Key of the run: scenario and seed."""
        return self.scenario_hash, self.seed

    @classmethod
    def of(cls, run: FinishedRun, result: Result) -> RunCost:
        """Take the cost from a run's summary."""
        return cls(
            run.label,
            result.scenario.hash,
            result.seed,
            result.version,
            float(result.summary["wall_s"]),
            int(result.summary["events"]),
            int(result.summary["packet_hops"]),
            run.folder,
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of one experiment; some runs may belong to other experiments, too."""

    id: str
    title: str
    windows: tuple[str, str]
    rows: tuple[TargetRow | ShapeRow, ...]
    points: PointTable | None
    curves: tuple[Curve, ...]
    figures: tuple[Path, ...]
    cases: Mapping[str, tuple[RunCost, ...]]


def evaluate(
    paper: str,
    experiment: Experiment,
    runs: Mapping[str, Sequence[FinishedRun]],
    figures: Path,
) -> Outcome:
    """Measure and draw an experiment whose runs are finished."""
    results = {label: [Result.read(run.folder) for run in some] for label, some in runs.items()}
    points = experiment.tabulate(results) if experiment.tabulate else None
    return Outcome(
        experiment.id,
        experiment.title,
        experiment.windows_of(results),
        rows=tuple(compare(find_paper(paper).targets, experiment.measure(results))),
        points=points,
        curves=(
            *(experiment.plot(points) if experiment.plot and points else ()),
            *(experiment.trace(results) if experiment.trace else ()),
        ),
        figures=tuple(experiment.draw(results, figures)),
        cases={
            label: tuple(
                RunCost.of(run, result) for run, result in zip(some, results[label], strict=True)
            )
            for label, some in runs.items()
        },
    )


def stem(name: str, only: str) -> str:
    """Name a file of a reproduction; a part never replaces the whole.

    >>> stem("report", ""), stem("report", "fig9")
    ('report', 'report-fig9')
    """
    return f"{name}-{re.sub(r'[^A-Za-z0-9._-]', '-', only)}" if only else name


def all_costs(outcomes: Sequence[Outcome]) -> list[RunCost]:
    """List the runs of all experiments, each once."""
    costs = {one.key: one for each in outcomes for some in each.cases.values() for one in some}
    return list(costs.values())


def claim_folder(plan: ReproductionPlan, figures: Path, *, overwrite: bool) -> None:
    """Prevent a mixture of figures of different versions or changes in a folder."""
    wanted = {
        "paper": plan.paper,
        "version": _silvan.version(),
        "quick": plan.quick,
        "overrides": dict(plan.overrides),
    }
    for path in sorted(figures.glob(f"{stem('reproduction', '')}*.json")):
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            different = [key for key, value in wanted.items() if found[key] != value]
            files = [name for one in found["experiments"] for name in one["files"]]
        except (OSError, ValueError, TypeError, KeyError):
            continue
        if not different:
            continue
        if not overwrite:
            key = different[0]
            raise OutputError(
                f"{path}: the reproduction there has another {key}: {found[key]}; this one has "
                f"{wanted[key]}",
                hint="name another folder with --out, or replace what is there with --overwrite",
            )
        report = path.name.replace("reproduction", "report", 1)
        for name in (*files, Path(report).with_suffix(".html").name, path.name):
            try:
                (figures / Path(name).name).unlink(missing_ok=True)
            except OSError as error:
                raise unwritable(figures / name, error) from None


def manifest(plan: ReproductionPlan, outcomes: Sequence[Outcome], figures: Path) -> dict[str, Any]:
    """Describe a reproduction in plain values: simulator, numbers, curves, runs and files."""
    costs = all_costs(outcomes)
    places = {one.key: place for place, one in enumerate(costs)}
    return {
        "paper": plan.paper,
        "quick": plan.quick,
        "overrides": dict(plan.overrides),
        "version": _silvan.version(),
        "build": build_id(),
        "experiments": [
            {
                "id": one.id,
                "title": one.title,
                "windows": list(one.windows),
                "targets": [row.to_dict() for row in one.rows],
                "points": _plain(one.points) if one.points else None,
                "curves": [curve.to_dict() for curve in one.curves],
                "files": [path.name for path in one.figures],
                "cases": {
                    label: [places[run.key] for run in some] for label, some in one.cases.items()
                },
            }
            for one in outcomes
        ],
        "runs": [
            {
                "label": one.label,
                "scenario_hash": one.scenario_hash,
                "seed": one.seed,
                "version": one.version,
                "wall_s": one.wall_s,
                "events": one.events,
                "packet_hops": one.packet_hops,
                "folder": os.path.relpath(one.folder, figures),
            }
            for one in costs
        ],
    }


def _plain(points: PointTable) -> dict[str, Any]:
    rows = [
        [None if isinstance(one, float) and not math.isfinite(one) else one for one in row]
        for row in points.rows
    ]
    return {"header": list(points.header), "rows": rows}


def write_manifest(plan: ReproductionPlan, outcomes: Sequence[Outcome], path: Path) -> Path:
    """Write the manifest as JSON."""
    values = manifest(plan, outcomes, path.parent)
    write_text(path, json.dumps(values, indent=1, allow_nan=False) + "\n")
    return path
