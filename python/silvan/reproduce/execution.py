"""Carrying out a plan: runs and figures side by side, in worker processes."""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from silvan.errors import EvaluationError, OutputError, SilvanError, SimulationError
from silvan.execution.cache import finished_result
from silvan.execution.processes import Died, Event, Pool, Raised, Report, cores
from silvan.execution.run_threads import threads_of_last, useful_threads
from silvan.execution.simulation import Progress, simulate
from silvan.execution.workers import Job, OnProgress
from silvan.reproduce.plan import FinishedRun, ReproductionPlan
from silvan.reproduce.registry import experiments
from silvan.reproduce.reproduction import Outcome, evaluate

_KEPT = "finished runs and figures are kept; repeat the command to try the rest again"


@dataclass(frozen=True, slots=True)
class RunDone:
    """A run is finished; ``is_new`` if it was run now."""

    index: int
    is_new: bool


@dataclass(frozen=True, slots=True)
class Evaluating:
    """All runs of an experiment are finished, and it is being measured and drawn."""

    experiment: str


@dataclass(frozen=True, slots=True)
class Evaluated:
    """An experiment has been measured and drawn."""

    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Failed:
    """An experiment could not be measured or drawn."""

    experiment: str
    error: SilvanError


Step: TypeAlias = RunDone | Evaluating | Evaluated | Failed


def carry_out(
    plan: ReproductionPlan, root: Path, figures: Path, on_progress: OnProgress | None = None
) -> Generator[Step, None, None]:
    """Do all runs of a plan; evaluate each experiment as soon as its runs are finished."""
    agenda = _Agenda(plan)
    with Pool(min(cores(), len(plan.runs) + len(plan.needs))) as pool:
        while agenda.is_open or not pool.is_idle:
            while agenda.is_open and pool.has_room:
                if agenda.ready:
                    name = agenda.ready.popleft()
                    needed = plan.finished(name, root)
                    pool.submit(agenda.key(name), _evaluate, plan.paper, name, needed, figures)
                    yield Evaluating(name)
                elif agenda.runs:
                    index = agenda.runs.popleft()
                    job = plan.job(index, root)
                    share = threads_of_last(len(agenda.runs) + 1, len(plan.runs), cores())
                    job = replace(job, threads=useful_threads(job.scenario, share))
                    pool.submit(index, _finish, job)
                else:
                    break
            for event in pool.wait():
                if isinstance(event, Report):
                    if on_progress is not None:
                        on_progress(event.key, event.progress)
                elif event.key < len(plan.runs):
                    done = _run_done(plan, event)
                    agenda.finish(done.index)
                    yield done
                else:
                    yield _evaluation(agenda.experiment(event.key), event)


class _Agenda:
    def __init__(self, plan: ReproductionPlan) -> None:
        self._names = list(plan.needs)
        self._count = len(plan.runs)
        self._missing = {
            name: {place for places in cases.values() for place in places}
            for name, cases in plan.needs.items()
        }
        self.runs = deque(range(self._count))
        self.ready: deque[str] = deque()

    @property
    def is_open(self) -> bool:
        return bool(self.runs or self.ready)

    def key(self, experiment: str) -> int:
        return self._count + self._names.index(experiment)

    def experiment(self, key: int) -> str:
        return self._names[key - self._count]

    def finish(self, run: int) -> None:
        for name, missing in self._missing.items():
            if run in missing:
                missing.remove(run)
                if not missing:
                    self.ready.append(name)


def _run_done(plan: ReproductionPlan, event: Event) -> RunDone:
    match event:
        case Raised(_, error):
            raise error
        case Died(index, how):
            raise SimulationError(
                f"{plan.runs[index].label}: the worker process ended ({how})",
                hint="the machine may be out of memory; finished runs are kept",
            )
        case Report():
            raise AssertionError("a report ends nothing")
        case _:
            return RunDone(event.key, is_new=event.value)


def _evaluation(experiment: str, event: Event) -> Evaluated | Failed:
    match event:
        case Raised(_, SilvanError() as error):
            return Failed(experiment, error)
        case Raised(_, error):
            raise error
        case Died(_, how):
            message = f"{experiment}: cannot be measured or drawn: the worker process ended ({how})"
            return Failed(experiment, EvaluationError(message, _KEPT))
        case Report():
            raise AssertionError("a report ends nothing")
        case _:
            return Evaluated(event.value)


def _finish(job: Job, progress: Callable[[Progress], object]) -> bool:
    assert job.folder is not None
    if finished_result(job.folder) is not None:
        return False
    simulate(job.scenario, job.seed, progress=progress, threads=job.threads).write(job.folder)
    return True


def _evaluate(
    paper: str,
    name: str,
    runs: Mapping[str, Sequence[FinishedRun]],
    figures: Path,
    progress: Callable[[Progress], object],
) -> Outcome:
    """Evaluate an experiment, and name it in any error."""
    del progress
    (experiment,) = experiments(paper, name)
    try:
        return evaluate(paper, experiment, runs, figures)
    except OutputError:
        raise
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        raise EvaluationError(
            f"{name}: cannot be measured or drawn: {type(error).__name__}: {error} "
            f"({Path(place.filename).name}, line {place.lineno})",
            _KEPT,
        ) from error
