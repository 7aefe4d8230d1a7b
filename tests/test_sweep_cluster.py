"""Sweeps on a Dask cluster of real processes, and on jobs of a stand-in for Slurm."""

from __future__ import annotations

import gc
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import silvan
from silvan.sweeping import cluster as module
from tests.conftest import INCAST, silvan_command
from tests.gate import PATIENCE_S, Gate, wait_until

if TYPE_CHECKING:
    from distributed import LocalCluster, SpecCluster

pytestmark = pytest.mark.slow

KEY = "switch.latency"
GRID = {KEY: [f"{number} ns" for number in range(50, 66)]}


@pytest.fixture(scope="module")
def dask() -> Iterator[LocalCluster]:
    """Start a scheduler and two worker processes with a nanny each."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as cluster:
        yield cluster


def test_a_killed_worker_costs_no_point(dask: LocalCluster, tmp_path: Path) -> None:
    path, out = tmp_path / "waiting.toml", tmp_path / "out"
    gate = Gate.make(tmp_path / "gate")
    path.write_text(INCAST + gate.control)
    words = silvan_command(
        "sweep",
        path,
        *("--grid", f"{KEY}={','.join(GRID[KEY])}"),
        *("--scheduler", dask.scheduler_address, "--out", out),
    )
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: len(gate.waiting()) == 2, "two workers have begun")
    victim = dask.workers[0].pid
    assert victim in gate.waiting()
    os.kill(victim, signal.SIGKILL)
    gate.open()
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, stderr
    assert victim != dask.workers[0].pid
    here = silvan.sweep(silvan.Scenario.from_file(path), GRID).points
    there = pq.read_table(out / "points.parquet")
    assert there.drop(["wall_s"]) == here.drop(["wall_s"])


def test_failures_and_tables_come_back_from_a_cluster(dask: LocalCluster, tmp_path: Path) -> None:
    from tests.test_sweep import RING

    result = silvan.sweep(
        silvan.Scenario.from_toml(RING),
        {"traffic.permutation.0.shift": [1, 2]},
        scheduler=dask.scheduler_address,
        out=tmp_path,
        tables=True,
    )
    assert [failure.values for failure in result.failures] == [{"traffic.permutation.0.shift": 2}]
    assert result.failures[0].error.startswith("deadlock at ")
    (digest,) = result.points["hash"].to_pylist()
    kept = silvan.Result.read(tmp_path / "tables" / digest[:16])
    assert kept.tables == silvan.run(kept.scenario).tables


def test_a_point_on_a_cluster_has_a_time_limit(dask: LocalCluster, tmp_path: Path) -> None:
    from tests.test_scheme_failures import SCENARIO, USLEEP, WAITING, scheme_text

    (tmp_path / "mine.py").write_text(scheme_text("release", *WAITING) + USLEEP)
    (tmp_path / "incast.toml").write_text(SCENARIO)
    result = silvan.sweep(
        silvan.Scenario.from_file(
            tmp_path / "incast.toml",
            overrides={
                "control.scheme": "python",
                "control.python.file": str(tmp_path / "mine.py"),
            },
        ),
        {"control.python.parameters.which": [1, 2, 3]},
        scheduler=dask.scheduler_address,
        point_timeout_s=20,
    )
    assert result.points["control.python.parameters.which"].to_pylist() == [1, 3]
    (failure,) = result.failures
    assert failure.error == "not finished within the time limit of 20 s"


def test_workers_with_another_build_are_refused(
    dask: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "build_id", another_build)
    with pytest.raises(silvan.SchedulerError, match="has silvan") as caught:
        silvan.sweep(silvan.Scenario.from_toml(INCAST), scheduler=dask.scheduler_address, seeds=2)
    assert caught.value.hint == "install the same silvan on all machines with workers"


def another_build() -> str:
    """Stand in for a build on a machine that is behind; each process gives another."""
    return f"0.0.0-{os.getpid()}"


def test_a_cluster_that_goes_away_loses_nothing(tmp_path: Path) -> None:
    from distributed import LocalCluster

    path, out = tmp_path / "half.toml", tmp_path / "out"
    # The second point waits at the gate, so that the sweep cannot end before the cluster.
    gate = Gate.make(tmp_path / "gate")
    path.write_text(INCAST + gate.control)
    grid = ("--grid", "control.scheme=none,python")
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as cluster:
        words = silvan_command(
            *("sweep", path, *grid, "--scheduler", cluster.scheduler_address, "--out", out)
        )
        process = subprocess.Popen(
            words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        wait_until(lambda: gate.waiting() and list(out.glob("points/*.json")), "half is finished")
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    asking, error, hint = stderr.splitlines()
    assert asking == f"asking the scheduler at {cluster.scheduler_address}, for 60 s at most"
    assert error == f"error: {cluster.scheduler_address}: the cluster is gone"
    assert "finished points are kept" in hint
    assert pq.read_table(out / "points.parquet").num_rows == 1


def test_no_scheduler_at_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_S", 0.5)
    with pytest.raises(silvan.SchedulerError, match="no Dask scheduler answers") as caught:
        silvan.sweep(silvan.Scenario.from_toml(INCAST), scheduler="tcp://127.0.0.1:1")
    assert "\n" not in str(caught.value)


def test_slurm_is_missing_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(silvan.SchedulerError, match="sbatch is not found"):
        silvan.sweep(silvan.Scenario.from_toml(INCAST), scheduler="slurm")


def test_ctrl_c_stays_what_it_was() -> None:
    # In a separate process, as only the first import does it.
    code = """
import contextlib, signal
from silvan.errors import SchedulerError
from silvan.sweeping.cluster import slurm_cluster
# A shell's background jobs start with it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
with contextlib.suppress(SchedulerError):
    slurm_cluster().close()
import dask_jobqueue
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_dask_jobqueue_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dask_jobqueue", None)
    with pytest.raises(silvan.MissingExtraError, match="need dask_jobqueue") as caught:
        silvan.sweep(silvan.Scenario.from_toml(INCAST), scheduler="slurm")
    assert caught.value.hint == "pip install 'silvan[cluster]'"


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put an sbatch on the path that runs each job at once, on this machine."""
    jobs = tmp_path / "slurm"
    jobs.mkdir()
    script = {
        "sbatch": f"""\
number=$$
cp "$1" {jobs}/$number.job
setsid bash {jobs}/$number.job >{jobs}/$number.log 2>&1 &
echo $! >{jobs}/$number.pid
echo "Submitted batch job $number"
""",
        "scancel": f"kill -- -$(cat {jobs}/$1.pid)\n",
    }
    for name, text in script.items():
        path = jobs / name
        path.write_text("#!/bin/bash\n" + text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{jobs}:{os.environ['PATH']}")
    return jobs


def test_the_job_that_is_given_to_slurm(slurm: Path) -> None:
    import dask.config

    # The first import registers a configuration: not while this one is in force.
    import dask_jobqueue

    assert dask_jobqueue
    assert slurm.is_dir()
    site = {"jobqueue.slurm.queue": "long", "jobqueue.slurm.cores": 2}
    with dask.config.set(site), module.slurm_cluster() as cluster:
        script = cluster.job_script()
        address = cluster.scheduler_address
    lines = script.splitlines()
    assert "#SBATCH -p long" in lines
    assert "#SBATCH --cpus-per-task=2" in lines
    assert "#SBATCH --mem=4G" in lines
    (call,) = [line for line in lines if "distributed.cli.dask_worker" in line]
    assert call.startswith(sys.executable)
    assert address in call


def test_a_sweep_on_slurm_jobs(slurm: Path, tmp_path: Path) -> None:
    scenario = silvan.Scenario.from_toml(INCAST)
    grid = {KEY: GRID[KEY][:4]}
    there = silvan.sweep(scenario, grid, scheduler="slurm", workers=2, out=tmp_path / "out")
    here = silvan.sweep(scenario, grid)
    assert there.points.drop(["wall_s"]) == here.points.drop(["wall_s"])
    assert len(list(slurm.glob("*.job"))) == 2


def _clusters() -> list[SpecCluster]:
    from distributed import SpecCluster

    return [thing for thing in gc.get_objects() if isinstance(thing, SpecCluster)]


def test_slurm_that_takes_no_job(slurm: Path) -> None:
    (slurm / "sbatch").write_text("#!/bin/bash\necho 'invalid account' >&2\nexit 1\n")
    with pytest.raises(silvan.SchedulerError, match="Slurm takes no jobs") as caught:
        silvan.sweep(silvan.Scenario.from_toml(INCAST), scheduler="slurm")
    assert "invalid account" in str(caught.value)
    assert not [cluster for cluster in _clusters() if cluster.status.name == "closing"]
