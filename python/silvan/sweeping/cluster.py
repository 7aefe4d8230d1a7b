"""Points of a sweep on a Dask cluster: one that is running, or one of Slurm jobs."""

from __future__ import annotations

import shutil
import signal
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

from silvan.errors import SchedulerError, describe
from silvan.execution.cache import build_id
from silvan.sweeping.outcome import Failed, Outcome, Succeeded
from silvan.sweeping.work import Finished, Task, run_apart

if TYPE_CHECKING:
    from dask_jobqueue import SLURMCluster
    from distributed import Client, Future

ANSWER_S = 60

# Waiting tasks per thread: no worker is idle, and a hundred thousand points do not fill the
# scheduler's memory.
_AHEAD = 4


def run_on_cluster(address: str, tasks: Sequence[Task]) -> Iterator[Outcome]:
    """Run tasks on a Dask cluster, and yield outcomes as they end."""
    from distributed import as_completed

    with _connected(address) as client:
        _require_same_build(client)
        sweep = uuid.uuid4().hex
        waiting = iter(enumerate(tasks))
        indices: dict[str, int] = {}

        def submit(number: int) -> list[Future[Finished]]:
            futures = []
            for index, task in islice(waiting, number):
                key = f"silvan-{sweep}-{index}"
                indices[key] = index
                futures.append(client.submit(run_apart, task, key=key, pure=False))
            return futures

        threads = sum(client.nthreads().values())
        running = as_completed(submit(_AHEAD * max(threads, 8)), loop=client.loop)
        for future in running:
            try:
                outcome = _outcome(indices.pop(future.key), future)
                running.update(submit(1))
            except (CancelledError, OSError):
                raise SchedulerError(
                    f"{address}: the cluster is gone",
                    hint="start it again and repeat the command; finished points are kept",
                ) from None
            yield outcome


@contextmanager
def _connected(address: str) -> Iterator[Client]:
    from distributed import Client
    from distributed.comm.addressing import get_address_host_port

    try:
        # A client of a meaningless address would take minutes to close.
        get_address_host_port(address, strict=True)
        client = Client(address, timeout=ANSWER_S, set_as_default=False, name="silvan-sweep")
    except (OSError, ValueError, TypeError) as error:
        raise SchedulerError(
            f"{address}: no Dask scheduler answers there: {describe(error)}",
            hint="start one with dask scheduler, and give its address as tcp://HOST:PORT",
        ) from None
    with client:
        yield client


def _require_same_build(client: Client) -> None:
    builds: dict[str, Any] = client.run(build_id, on_error="return")
    for worker, build in builds.items():
        if isinstance(build, Exception):
            raise SchedulerError(
                f"the worker at {worker} cannot use silvan: {describe(build)}",
                hint="install the same silvan on all machines with workers",
            )
        _require_build(worker, build)


def _require_build(worker: str, build: str) -> None:
    if build != build_id():
        raise SchedulerError(
            f"the worker at {worker} has silvan {build}, this is {build_id()}",
            hint="install the same silvan on all machines with workers",
        )


def _outcome(index: int, future: Future[Finished]) -> Outcome:
    from distributed import KilledWorker

    if future.status != "error":
        finished = future.result()
        # A worker may have come since the sweep began.
        _require_build("one of the cluster", finished.simulator)
        return Succeeded(index, finished)
    error = future.exception()
    if isinstance(error, KilledWorker):
        attempts = error.allowed_failures + 1
        return Failed(index, "its worker process died, each time", attempts)
    return Failed(index, describe(error) if error else "no reason given", 1)


@contextmanager
def slurm_scheduler(jobs: int | None = None) -> Iterator[str]:
    """Run Slurm jobs (``jobqueue.slurm``) as workers; yield the address of their scheduler."""
    cluster = slurm_cluster()

    async def submit() -> None:
        cluster.scale(jobs=jobs or 1)
        # Waits until the jobs are submitted; raises an exception if one is refused.
        await cluster

    try:
        cluster.sync(submit)
        yield cluster.scheduler_address
    except (OSError, RuntimeError) as error:
        raise SchedulerError(
            f"Slurm takes no jobs: {describe(error)}",
            hint="check jobqueue.slurm in the configuration of Dask",
        ) from None
    finally:
        _close(cluster)


def _close(cluster: SLURMCluster) -> None:
    from distributed import Status

    try:
        cluster.close()
    except AssertionError:
        # Dask asserts that every job has started, also after a refusal.
        if (scheduler := cluster.scheduler) is not None:
            cluster.sync(scheduler.close)
        cluster.status = Status.closed


def slurm_cluster() -> SLURMCluster:
    """Make a cluster of Slurm jobs, none of which is submitted yet."""
    interrupts = signal.getsignal(signal.SIGINT)
    import dask.config
    from dask_jobqueue import SLURMCluster

    # Importing dask-jobqueue makes Ctrl-C end the process successfully.
    if signal.getsignal(signal.SIGINT) is not interrupts:
        signal.signal(signal.SIGINT, interrupts)
    if shutil.which("sbatch") is None:
        raise SchedulerError(
            "there is no Slurm here: sbatch is not found",
            hint="start the sweep where jobs are submitted, or name another --scheduler",
        )
    # Each run uses one core; the site's configuration wins.
    defaults: dict[str, Any] = {"cores": 1, "memory": "4 GiB"}
    missing = {
        key: value
        for key, value in defaults.items()
        if dask.config.get(f"jobqueue.slurm.{key}", None) is None
    }
    try:
        # A free port allows several sweeps on one machine.
        return SLURMCluster(scheduler_options={"dashboard_address": ":0"}, **missing)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise SchedulerError(
            f"the configuration of Slurm jobs is wrong: {describe(error)}",
            hint="check jobqueue.slurm in the configuration of Dask",
        ) from None
