"""Runs in parallel processes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import silvan
from silvan.execution.processes import Pool, Returned
from silvan.execution.worker_process import echo
from silvan.execution.workers import Job, run_jobs
from silvan.folders import MANIFEST
from tests.conftest import INCAST

SCENARIO = silvan.Scenario.from_toml(INCAST).override(
    {"traffic.incast": [], "traffic.uniform": [{"load": 0.5}]}
)


@pytest.mark.slow
def test_runs_in_other_processes_equal_runs_in_this_one(tmp_path: Path) -> None:
    jobs = [Job(SCENARIO, seed, tmp_path / str(seed)) for seed in (1, 2, 3)]
    apart = dict(run_jobs(jobs, workers=2))
    here = dict(run_jobs(jobs, workers=1))
    assert set(apart) == set(here) == {0, 1, 2}
    for index, job in enumerate(jobs):
        assert apart[index].seed == job.seed
        assert apart[index].tables == here[index].tables
        assert job.folder is not None
        assert silvan.Result.read(job.folder).tables == here[index].tables


@pytest.mark.slow
def test_an_error_in_a_worker_arrives_whole_and_stops_the_others(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    endless = SCENARIO.override({"run.duration": "1000 s", "probe.interval": "1 s"})
    jobs = [Job(SCENARIO, 1, tmp_path / "file" / "run"), Job(endless, 2, tmp_path / "endless")]
    with pytest.raises(silvan.OutputError, match="cannot write") as caught:
        dict(run_jobs(jobs, workers=2))
    assert caught.value.hint is not None
    assert not (tmp_path / "endless" / MANIFEST).exists()


def test_a_caller_that_stops_early_stops_the_workers(tmp_path: Path) -> None:
    endless = SCENARIO.override({"run.duration": "1000 s", "probe.interval": "1 s"})
    jobs = [Job(SCENARIO, 1, tmp_path / "1"), Job(endless, 2, tmp_path / "2")]
    finished = run_jobs(jobs, workers=2)
    index, _ = next(finished)
    assert index == 0
    finished.close()
    assert [path.name for path in tmp_path.iterdir()] == ["1"]


@pytest.mark.parametrize("workers", [1, 2])
def test_the_end_of_every_job_is_reported_however_short_it_is(workers: int) -> None:
    seen: dict[int, silvan.Progress] = {}
    jobs = [Job(SCENARIO, 1), Job(SCENARIO, 2)]
    results = dict(run_jobs(jobs, workers=workers, on_progress=seen.__setitem__))
    assert set(seen) == {0, 1}
    for index, last in seen.items():
        assert last.simulated_ps == last.duration_ps == SCENARIO.duration_ps
        assert last.packet_hops == results[index].summary["packet_hops"]


@pytest.fixture
def pythons_own_handler() -> Iterator[None]:
    """Have Ctrl-C mean what Python makes of it; modules that other tests import change that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("pythons_own_handler")
def test_a_lost_interrupt_is_raised_again() -> None:
    with Pool(1) as pool:
        pool.submit(1, echo, "hello")
        with suppress(KeyboardInterrupt):
            # As a compiled module does if its import is interrupted.
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            pool.wait()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_pool_leaves_another_handler_alone() -> None:
    seen = []
    before = signal.signal(signal.SIGINT, lambda number, _: seen.append(number))
    try:
        with Pool(1) as pool:
            pool.submit(1, echo, "hello")
            signal.raise_signal(signal.SIGINT)
            assert pool.wait() == [Returned(1, "hello")]
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]
