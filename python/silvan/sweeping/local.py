"""Points of a sweep on the cores of this machine."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from silvan.errors import describe
from silvan.execution.processes import Died, Pool, Raised, Report, cores
from silvan.execution.run_threads import threads_of_last
from silvan.sweeping.outcome import Failed, Outcome, Succeeded
from silvan.sweeping.work import Task, run_task, too_long

ATTEMPTS = 3
"""Attempts at a point whose worker dies."""


def run_here(tasks: Sequence[Task], workers: int | None = None) -> Iterator[Outcome]:
    """Run tasks in processes, and yield outcomes as they end."""
    waiting = deque(range(len(tasks)))
    deaths = [0] * len(tasks)
    deadlines: dict[int, float] = {}
    most = workers or cores()
    with Pool(min(most, max(len(tasks), 1))) as pool:
        while waiting or not pool.is_idle:
            while waiting and pool.has_room:
                index = waiting.popleft()
                task = tasks[index]
                if most > 1:
                    share = threads_of_last(len(waiting) + 1, len(tasks), min(most, cores()))
                    if deaths[index]:
                        # Several threads need more memory, which may have been too little.
                        share = 1
                    task = replace(task, threads=min(share, task.threads or share))
                pool.submit(index, run_task, task)
                if task.limit_s is not None:
                    deadlines[index] = time.monotonic() + task.limit_s
            for event in pool.wait(_left(deadlines)):
                if not isinstance(event, Report):
                    deadlines.pop(event.key, None)
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
            for index in [one for one, at in deadlines.items() if at <= time.monotonic()]:
                del deadlines[index]
                pool.kill(index)
                yield Failed(index, too_long(tasks[index].limit_s or 0.0), deaths[index] + 1)


def _left(deadlines: Mapping[int, float]) -> float | None:
    if not deadlines:
        return None
    return max(min(deadlines.values()) - time.monotonic(), 0)
