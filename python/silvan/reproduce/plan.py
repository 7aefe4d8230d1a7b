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

# Contribution of eight hotspots among 648 hosts to the mean of all, approximately.
_HOTSPOTS_GBPS = 0.2
_PS_PER_S = 1e12


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run, of one or several experiments.

    Attributes
    ----------
    label : str
        Experiment, case and seed, for people.
    scenario : Scenario
        Scenario to simulate.
    seed : int
        Seed of the run.
    weight : float
        About how long it takes, compared with others: what is delivered at most decides.
    """

    label: str
    scenario: Scenario
    seed: int
    weight: float


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """Folder of the result of a planned run.

    Attributes
    ----------
    label : str
        Experiment, case and seed, for people.
    folder : Path
        Folder of the result.
    """

    label: str
    folder: Path


@dataclass(frozen=True, slots=True)
class ReproductionPlan:
    """All runs of some experiments of a paper.

    Attributes
    ----------
    paper : str
        The paper's short name.
    quick : bool
        True if runs and points were reduced.
    runs : list of PlannedRun
        The runs, the longest first, so that no core idles for long at the end.
    needs : dict
        For each experiment, by id, the places in ``runs`` of each case, by label.
    overrides : Mapping
        Values by dotted key that every scenario was changed by.
    """

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
        """Tell where the finished runs of one experiment are.

        Parameters
        ----------
        experiment : str
            The experiment's id.
        root : Path
            Folder of finished runs.

        Returns
        -------
        Mapping
            The runs of each case, one per seed, by the case's label.
        """
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
    """Plan all runs of some experiments.

    Two cases with equal scenarios share their runs.

    Parameters
    ----------
    paper : str
        The paper's short name.
    experiments : sequence of Experiment
        Experiments to run.
    seeds : int, optional
        Seeds of every case; by default as many as each case asks for, or one if quick.
    quick : bool
        Reduce the runs and the points as each experiment says.
    overrides : Mapping, optional
        Values by dotted key, set over those of every case.

    Returns
    -------
    ReproductionPlan
        The runs.

    Raises
    ------
    ScenarioError
        A study is invalid.
    """
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
            # Building a fabric takes time, and some experiments share many cases.
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
