"""Points of a sweep on the cores of this machine."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from silvan.processes import Died, Pool, Raised, Report, cores
from silvan.sweeping.outcome import Failed, Outcome, Succeeded, describe
from silvan.sweeping.work import Task, run_task

ATTEMPTS = 3
"""How often a point is tried whose worker dies."""


def run_here(tasks: Sequence[Task], workers: int | None = None) -> Iterator[Outcome]:
    """Run tasks in processes of this machine.

    Parameters
    ----------
    tasks : sequence of Task
        What to run.
    workers : int, optional
        Processes at once; by default one per core.

    Yields
    ------
    Outcome
        What came of each task, in the order in which they end.
    """
    waiting = deque(range(len(tasks)))
    deaths = [0] * len(tasks)
    with Pool(min(workers or cores(), max(len(tasks), 1))) as pool:
        while waiting or not pool.is_idle:
            while waiting and pool.has_room:
                index = waiting.popleft()
                pool.submit(index, run_task, tasks[index])
            for event in pool.wait():
                match event:
                    case Report():
                        pass
                    case Died(index, how):
                        deaths[index] += 1
                        if deaths[index] < ATTEMPTS:
                            waiting.append(index)
                        else:
                            yield Failed(index, f"its worker process was {how}", ATTEMPTS)
                    case Raised(index, error):
                        yield Failed(index, describe(error), deaths[index] + 1)
                    case _:
                        yield Succeeded(event.key, event.value)
