"""Several runs at once: one process per core, each run on its own.

Ctrl-C reaches only the caller, which then stops the workers; runs that were finished by then have
been written and are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from silvan import _silvan
from silvan.errors import SimulationError
from silvan.execution.processes import Died, Pool, Raised, Report, cores
from silvan.execution.run_threads import threads_of_last, useful_threads
from silvan.execution.simulation import Progress, simulate
from silvan.folders import Origin
from silvan.inputs.scenario import Scenario

if TYPE_CHECKING:
    from silvan.results.result import Result

OnProgress = Callable[[int, Progress], object]
"""Called with the index of a job and how far it has come."""


@dataclass(frozen=True, slots=True)
class Job:
    """A run to do.

    Attributes
    ----------
    scenario : Scenario
        Scenario to simulate.
    seed : int
        Seed of the run.
    folder : Path, optional
        Folder for the result, which is written at the end of the run.
    threads : int, optional
        Threads of the run, 0 for as many as suit it; by default the scenario's. Of several runs
        at once each uses one, and the last few as many as there are cores for them, but no more
        than are given here.
    """

    scenario: Scenario
    seed: int
    folder: Path | None = None
    threads: int | None = None

    @property
    def origin(self) -> Origin:
        """Scenario and version that the result comes from."""
        return Origin(self.scenario.name, self.scenario.hash, _silvan.version())


def run_jobs(
    jobs: Sequence[Job],
    *,
    workers: int | None = None,
    on_progress: OnProgress | None = None,
) -> Generator[tuple[int, Result], None, None]:
    """Do runs in parallel, and give each result as soon as it is there.

    Parameters
    ----------
    jobs : sequence of Job
        Jobs to run.
    workers : int, optional
        Processes at once; by default one per core. A single run, or a single worker, needs
        no other process, unless its scheme is in Python: a loop in it that does not end can be
        stopped only with its process.
    on_progress : callable, optional
        Called from time to time with the index of a job and its progress.

    Yields
    ------
    tuple of int and Result
        Index of the job, and its result. Results come as they finish, in any order.

    Raises
    ------
    SilvanError
        A run failed, or its result could not be written. The other runs are stopped.
    KeyboardInterrupt
        Ctrl-C was pressed. Running jobs are stopped and nothing of them is written.
    """
    processors = min(workers or cores(), cores())
    count = min(workers or cores(), len(jobs))
    if count <= 1 and not any(job.scenario.has_python_scheme for job in jobs):
        for index, job in enumerate(jobs):
            yield index, _do(job, partial(_tell, on_progress, index))
        return
    with Pool(count) as pool:
        waiting = list(enumerate(jobs))[::-1]
        while waiting or not pool.is_idle:
            while waiting and pool.has_room:
                index, job = waiting.pop()
                if count > 1:
                    share = threads_of_last(len(waiting) + 1, len(jobs), processors)
                    threads = useful_threads(job.scenario, min(share, job.threads or share))
                    job = replace(job, threads=threads)
                pool.submit(index, _do, job)
            for event in pool.wait():
                match event:
                    case Report(index, progress):
                        _tell(on_progress, index, progress)
                    case Raised(_, error):
                        raise error
                    case Died(index, how):
                        job = jobs[index]
                        raise SimulationError(
                            f"the worker process of seed {job.seed} ended ({how})",
                            hint="its scheme in Python may have ended it, or memory was used up"
                            if job.scenario.has_python_scheme
                            else "the machine may be out of memory; run fewer seeds at once",
                        )
                    case _:
                        yield event.key, event.value


def _do(job: Job, progress: Callable[[Progress], object]) -> Result:
    result = simulate(job.scenario, job.seed, progress=progress, threads=job.threads)
    if job.folder is not None:
        result.write(job.folder)
    return result


def _tell(on_progress: OnProgress | None, index: int, state: Progress) -> None:
    if on_progress is not None:
        on_progress(index, state)
