"""Work of any worker on a point of a sweep, in this machine or in another."""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from silvan.errors import SimulationError
from silvan.execution.run_threads import useful_threads
from silvan.execution.simulation import Progress, simulate
from silvan.inputs.scenario import Scenario

if TYPE_CHECKING:
    from silvan.execution.processes import Pool
    from silvan.results.result import Result


def too_long(limit_s: float) -> str:
    """Say in one line that a task took longer than it may."""
    return f"not finished within the time limit of {limit_s:g} s"


@dataclass(frozen=True, slots=True)
class Task:
    """Input of a worker; ``measure`` is ``MODULE:FUNCTION``, by default a sweep's."""

    text: str
    seed: int
    tables: bool
    limit_s: float | None = None
    measure: str = "silvan.results.measures:row_measures"
    threads: int | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """Output of a worker; measures up to ``events`` are equal for equal scenarios."""

    measures: dict[str, Any]
    wall_s: float
    processor_s: float
    simulator: str
    idle_scheme: str | None
    result: Result | None


def run_task(task: Task, report: Callable[[Progress], object] | None = None) -> Finished:
    """Do one point; an exception of ``report`` stops the run."""
    from silvan.execution.cache import build_id

    # Before the clock starts: imports are no part of the point.
    build, measure = build_id(), _function(task.measure)
    begun_s = time.process_time()
    scenario = Scenario.from_toml(task.text).single_run(task.seed)
    threads = None if task.threads is None else useful_threads(scenario, task.threads)
    result = simulate(scenario, task.seed, progress=report, threads=threads)
    return Finished(
        measures=measure(result),
        wall_s=result.summary["wall_s"],
        processor_s=time.process_time() - begun_s,
        simulator=build,
        idle_scheme=result.summary.get("idle_scheme"),
        result=result if task.tables else None,
    )


def run_apart(task: Task) -> Finished:
    """Do a point on a cluster's worker, in a process that ends at its time limit."""
    if task.limit_s is None:
        return run_task(task)
    from silvan.execution.processes import Died, Raised, Returned

    pool = _pool()
    pool.submit(0, run_task, task)
    deadline = time.monotonic() + task.limit_s
    while (left := deadline - time.monotonic()) > 0:
        for event in pool.wait(left):
            match event:
                case Returned(_, Finished() as finished):
                    return finished
                case Raised(_, error):
                    raise error
                case Died(_, how):
                    raise SimulationError(f"its worker process was {how}")
                case _:
                    pass
    pool.kill(0)
    raise SimulationError(too_long(task.limit_s))


def _pool() -> Pool:
    if not hasattr(_threads, "pool"):
        from silvan.execution.processes import Pool

        _threads.pool = Pool(1)
    pool: Pool = _threads.pool
    return pool


_threads = threading.local()


def _function(name: str) -> Callable[[Result], dict[str, Any]]:
    module, _, function = name.partition(":")
    found: Callable[[Result], dict[str, Any]] = getattr(importlib.import_module(module), function)
    return found
