"""A whole reproduction: runs, numbers next to the paper's, figures, and what is kept of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from silvan import _silvan
from silvan.cache import build_id
from silvan.errors import OutputError
from silvan.folders import unwritable, write_text
from silvan.reproduce.experiment import Experiment, PointTable, ShapeRow, TargetRow, compare
from silvan.reproduce.plan import FinishedRun, ReproductionPlan
from silvan.reproduce.registry import find_paper
from silvan.result import Result


@dataclass(frozen=True, slots=True)
class RunCost:
    """What one run was and what it cost.

    Attributes
    ----------
    label : str
        Experiment, case and seed.
    scenario_hash : str
        SHA-256 of the effective scenario.
    seed : int
        Seed of the run.
    version : str
        Version of silvan that ran it.
    wall_s : float
        Time on the wall clock, in seconds.
    events, packet_hops : int
        Events processed, and links crossed by packets.
    """

    label: str
    scenario_hash: str
    seed: int
    version: str
    wall_s: float
    events: int
    packet_hops: int

    @classmethod
    def of(cls, label: str, result: Result) -> RunCost:
        """Take the cost from a run's summary."""
        return cls(
            label,
            result.scenario.hash,
            result.seed,
            result.version,
            float(result.summary["wall_s"]),
            int(result.summary["events"]),
            int(result.summary["packet_hops"]),
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one experiment.

    Attributes
    ----------
    id, title : str
        The experiment's.
    windows : tuple of str
        Its two averaging windows in words.
    rows : tuple of TargetRow or ShapeRow
        The paper's statements next to what was measured.
    points : PointTable, optional
        The figure's points.
    figures : tuple of Path
        The files drawn.
    costs : tuple of RunCost
        The experiment's runs; some may belong to others too.
    scenario : str
        Effective scenario of the first case, as TOML.
    """

    id: str
    title: str
    windows: tuple[str, str]
    rows: tuple[TargetRow | ShapeRow, ...]
    points: PointTable | None
    figures: tuple[Path, ...]
    costs: tuple[RunCost, ...]
    scenario: str


def evaluate(
    paper: str,
    experiment: Experiment,
    runs: Mapping[str, Sequence[FinishedRun]],
    figures: Path,
) -> Outcome:
    """Measure and draw an experiment whose runs are finished.

    Parameters
    ----------
    paper : str
        The paper that it is of.
    experiment : Experiment
        The experiment.
    runs : Mapping
        Its runs of each case, one per seed, by the case's label.
    figures : Path
        Folder of the figures; it must exist.

    Returns
    -------
    Outcome
        Everything that there is to show.

    Raises
    ------
    OutputError
        A run cannot be read, or a figure cannot be written.
    """
    results = {label: [Result.read(run.folder) for run in some] for label, some in runs.items()}
    return Outcome(
        experiment.id,
        experiment.title,
        experiment.windows_of(results),
        rows=tuple(compare(find_paper(paper).targets, experiment.measure(results))),
        points=experiment.tabulate(results) if experiment.tabulate else None,
        figures=tuple(experiment.draw(results, figures)),
        costs=tuple(
            RunCost.of(run.label, result)
            for label, some in runs.items()
            for run, result in zip(some, results[label], strict=True)
        ),
        scenario=next(iter(results.values()))[0].scenario.to_toml(),
    )


def stem(name: str, only: str) -> str:
    """Name a file of a reproduction, such that a part never replaces the whole.

    Examples
    --------
    >>> stem("report", ""), stem("report", "fig9")
    ('report', 'report-fig9')
    """
    return f"{name}-{re.sub(r'[^A-Za-z0-9._-]', '-', only)}" if only else name


def all_costs(outcomes: Sequence[Outcome]) -> list[RunCost]:
    """List the runs of all experiments, each once."""
    costs = {(one.scenario_hash, one.seed): one for each in outcomes for one in each.costs}
    return list(costs.values())


def claim_folder(plan: ReproductionPlan, figures: Path, *, overwrite: bool) -> None:
    """Make sure that figures of different versions or changes do not get mixed in a folder.

    Parameters
    ----------
    plan : ReproductionPlan
        What is reproduced.
    figures : Path
        Folder of its figures, reports and manifests.
    overwrite : bool
        Whether to remove what other reproductions have written instead of refusing.

    Raises
    ------
    OutputError
        The folder holds another reproduction, or cannot be written.
    """
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


def manifest(plan: ReproductionPlan, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Say what a reproduction consists of: simulator, numbers, runs and files.

    Returns
    -------
    dict
        Plain values, for JSON.
    """
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
                "files": [path.name for path in one.figures],
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
            }
            for one in all_costs(outcomes)
        ],
    }


def write_manifest(plan: ReproductionPlan, outcomes: Sequence[Outcome], path: Path) -> Path:
    """Write the manifest as JSON.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    write_text(path, json.dumps(manifest(plan, outcomes), indent=1, allow_nan=False) + "\n")
    return path
