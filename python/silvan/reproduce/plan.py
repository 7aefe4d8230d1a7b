"""Runs of the experiments of a paper: each once, even if several experiments need it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from silvan.execution.cache import run_folder
from silvan.execution.workers import Job
from silvan.inputs.scenario import Scenario
from silvan.inputs.toml_text import TomlValue
from silvan.reproduce.experiment import Case, Experiment
from silvan.reproduce.registry import study

# Approximate contribution of eight hotspots among 648 hosts to the mean.
_HOTSPOTS_GBPS = 0.2
_PS_PER_S = 1e12


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run of one or several experiments; ``weight`` is its relative duration."""

    label: str
    scenario: Scenario
    seed: int
    weight: float


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """Folder of a planned run's result."""

    label: str
    folder: Path


@dataclass(frozen=True, slots=True)
class ReproductionPlan:
    """All runs of some experiments, the longest first; ``needs`` are indexes into ``runs``."""

    paper: str
    quick: bool
    runs: list[PlannedRun]
    needs: dict[str, dict[str, list[int]]]
    overrides: Mapping[str, TomlValue] = field(default_factory=dict)

    @property
    def change(self) -> str:
        """Say in a word why the numbers cannot be compared with the paper's, if they cannot."""
        return "changed" if self.overrides else "quick" if self.quick else ""

    def folders(self, root: Path) -> list[Path]:
        """Name the folders of the runs' results under a root."""
        return [run_folder(root, one.scenario, one.seed) for one in self.runs]

    def job(self, place: int, root: Path) -> Job:
        """Give one run with the folder for its result under a root."""
        one = self.runs[place]
        return Job(one.scenario, one.seed, run_folder(root, one.scenario, one.seed))

    def finished(self, experiment: str, root: Path) -> Mapping[str, Sequence[FinishedRun]]:
        """Return the finished runs of an experiment, one per seed, by case."""
        folders = self.folders(root)
        return {
            label: [FinishedRun(self.runs[place].label, folders[place]) for place in places]
            for label, places in self.needs[experiment].items()
        }


def make_plan(
    paper: str,
    experiments: Sequence[Experiment],
    *,
    seeds: int | None = None,
    quick: bool = False,
    overrides: Mapping[str, TomlValue] | None = None,
) -> ReproductionPlan:
    """Plan all runs of some experiments; cases with equal scenarios share their runs."""
    runs: dict[tuple[str, int], PlannedRun] = {}
    needs: dict[str, dict[str, list[tuple[str, int]]]] = {}
    scenarios: dict[str, Scenario] = {}
    for experiment in experiments:
        of_cases = needs[experiment.id] = {}
        for case in experiment.cases:
            if quick and not case.quick:
                continue
            changes = {
                **case.overrides,
                **(experiment.quick if quick else {}),
                **(overrides or {}),
            }
            # Building a fabric takes time, and experiments share many cases.
            key = f"{case.study} {sorted(changes.items())}"
            if key not in scenarios:
                scenarios[key] = study(paper, case.study).override(changes)
            scenario = scenarios[key]
            count = seeds or (1 if quick else case.seeds)
            of_cases[case.label] = [(scenario.hash, seed) for seed in range(1, count + 1)]
            for name in of_cases[case.label]:
                if name not in runs:
                    runs[name] = _planned(experiment, case, scenario, seed=name[1])
    names = sorted(runs, key=lambda name: -runs[name].weight)
    places = {name: place for place, name in enumerate(names)}
    return ReproductionPlan(
        paper,
        quick,
        runs=[runs[name] for name in names],
        needs={
            experiment: {label: [places[name] for name in some] for label, some in cases.items()}
            for experiment, cases in needs.items()
        },
        overrides=overrides or {},
    )


def _planned(experiment: Experiment, case: Case, scenario: Scenario, seed: int) -> PlannedRun:
    label = f"{experiment.id}: {case.label}, seed {seed}"
    gigabits = (scenario.tmax_gbps(seed) + _HOTSPOTS_GBPS) * scenario.duration_ps / _PS_PER_S
    return PlannedRun(label, scenario, seed, gigabits)
