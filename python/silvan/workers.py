"""Several runs at once: one process per core, each run on its own.

Workers are spawned afresh, never forked, so they share no state with the caller. Ctrl-C
reaches only the caller, which then asks the workers to stop; runs that were finished by then
have been written and are kept.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from silvan.errors import SimulationError
from silvan.scenario import Scenario
from silvan.simulation import Progress, run

if TYPE_CHECKING:
    from silvan.result import Result

OnProgress = Callable[[int, Progress], object]
"""Called with the index of a job and how far it has come."""

News: TypeAlias = "queue.SimpleQueue[tuple[int, Future[Result]] | None]"
"""What the caller waits for: a job that is done, by index, or None for Ctrl-C."""


@dataclass(frozen=True, slots=True)
class Job:
    """One run to do.

    Attributes
    ----------
    scenario : Scenario
        What to simulate.
    seed : int
        Seed of the run.
    folder : Path, optional
        Where to write the result as soon as it is there.
    """

    scenario: Scenario
    seed: int
    folder: Path | None = None


def cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0))


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
        What to run.
    workers : int, optional
        Processes at once; by default one per core. A single run, or a single worker, needs
        no other process.
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
    count = min(workers or cores(), len(jobs))
    if count <= 1:
        for index, job in enumerate(jobs):
            yield index, _do(job, partial(_tell, on_progress, index))
        return
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    reports: SimpleQueue[tuple[int, Progress] | None] = context.SimpleQueue()
    listener = threading.Thread(target=_listen, args=(reports, on_progress), daemon=True)
    listener.start()
    news: News = queue.SimpleQueue()
    with _interrupts_to(lambda: news.put(None)):
        pool = ProcessPoolExecutor(
            count, mp_context=context, initializer=_start_worker, initargs=(stop, reports)
        )
        try:
            with _interrupts_blocked():
                for index, job in enumerate(jobs):
                    future = pool.submit(_do_in_worker, index, job)
                    future.add_done_callback(partial(_put_news, news, index))
            for _ in jobs:
                event = news.get()
                if event is None:
                    raise KeyboardInterrupt
                index, future = event
                yield index, future.result()
        except BrokenProcessPool:
            raise SimulationError(
                "a worker process ended without a word",
                hint="the machine may be out of memory; run fewer seeds at once",
            ) from None
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
            reports.put(None)
            listener.join()
            reports.close()


def _put_news(news: News, index: int, future: Future[Result]) -> None:
    news.put((index, future))


@contextmanager
def _interrupts_to(tell: Callable[[], None]) -> Iterator[None]:
    """Have Ctrl-C call a function instead of raising an exception.

    A process pool does not survive an exception in any of its lines: one that strikes while it
    holds a lock leaves that lock taken for ever, and its shutdown waits for it.
    """
    if threading.current_thread() is not threading.main_thread():
        # Signals are for the main thread; none arrives here.
        yield
        return
    before = signal.signal(signal.SIGINT, lambda _number, _frame: tell())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Hold Ctrl-C back, also from processes that are started meanwhile, and for good from those.

    A terminal sends Ctrl-C to all processes; only the caller decides what it means.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _do(job: Job, progress: Callable[[Progress], object]) -> Result:
    result = run(job.scenario, seed=job.seed, progress=progress)
    if job.folder is not None:
        result.write(job.folder)
    return result


def _tell(on_progress: OnProgress | None, index: int, state: Progress) -> None:
    if on_progress is not None:
        on_progress(index, state)


def _listen(
    reports: SimpleQueue[tuple[int, Progress] | None], on_progress: OnProgress | None
) -> None:
    while (report := reports.get()) is not None:
        _tell(on_progress, *report)


class _Stopped(Exception):
    """The caller wants no more results."""


# Set once in every worker process by its initialiser; a process pool has no other way to hand
# synchronisation objects to its workers.
_stop: Event
_reports: SimpleQueue[tuple[int, Progress] | None]


def _start_worker(stop: Event, reports: SimpleQueue[tuple[int, Progress] | None]) -> None:
    global _stop, _reports
    _stop, _reports = stop, reports
    threading.Thread(target=_end_with_caller, daemon=True).start()


def _end_with_caller() -> None:
    """End this worker when its caller has gone without saying so."""
    caller = multiprocessing.parent_process()
    if caller is not None:
        caller.join()
        os._exit(1)


def _do_in_worker(index: int, job: Job) -> Result:
    def report(state: Progress) -> None:
        if _stop.is_set():
            raise _Stopped
        _reports.put((index, state))

    if _stop.is_set():
        raise _Stopped
    return _do(job, report)
