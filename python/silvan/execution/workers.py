"""Several runs at once, one process per core. Finished runs survive Ctrl-C."""

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


@dataclass(frozen=True, slots=True)
class Job:
    """A run to do; ``threads`` 0 means as many as suit it."""

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
    """Run jobs in parallel, one process per core by default; yield index and result of each."""
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
