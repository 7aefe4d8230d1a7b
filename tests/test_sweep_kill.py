"""A sweep that is killed, again and again, loses nothing and ends with the same points."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import silvan
from silvan.errors import OutputError
from silvan.folders import unwritable, write_text
from silvan.sweeping import store
from silvan.sweeping.outcome import Failed, Outcome, Succeeded
from silvan.sweeping.plan import plan
from silvan.sweeping.store import read_rows
from tests.conftest import INCAST, silvan_command

PATIENCE_S = 120
"""Long enough for any machine; only a hang takes so long."""

LATENCIES = [f"{number} ns" for number in range(50, 98)]
KEY = "switch.latency"
MOST_KILLS = 6


@pytest.fixture
def long_file(tmp_path: Path) -> Path:
    """Write a scenario whose run takes some tenths of a second."""
    path = tmp_path / "long.toml"
    path.write_text(INCAST.replace('"200 us"', '"50 ms"').replace('"50 us"', '"50 ms"'))
    return path


def sweep_words(path: Path, out: Path) -> list[str]:
    return silvan_command(
        "sweep", path, "--grid", f"{KEY}={','.join(LATENCIES)}", "--out", out, "--workers", "2"
    )


def finished(out: Path) -> dict[str, float]:
    """Give the hash of every finished point, and the time its run took, which no other run has."""
    if not (out / store.MANIFEST).exists():
        return {}
    json.loads((out / store.MANIFEST).read_text())
    while True:
        try:
            return {digest: row.wall_s for digest, row in read_rows(out, [KEY]).items()}
        except OutputError as error:
            # A sweep that is going on gathers its points in one file and removes theirs.
            if "no such file" not in str(error):
                raise


def children(pid: int) -> list[int]:
    """List the processes that a process has started."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(word) for word in text.split()]


def test_killed_at_random_moments_a_sweep_still_ends_the_same(
    long_file: Path, tmp_path: Path
) -> None:
    draw = random.Random(1)
    out = tmp_path / "killed"
    words = sweep_words(long_file, out)
    before: dict[str, float] = {}
    kills = 0
    while True:
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if kills == MOST_KILLS:
            break
        # Some points further than the last time, so that a slow machine gets there, too; and
        # then at any moment, be it while a point is written or before the first one starts. All
        # these steps are well under the number of points, so that a fast machine is killed, too.
        aim = len(before) + draw.randrange(6)
        while process.poll() is None and len(finished(out)) < aim:
            time.sleep(0.02)
        time.sleep(draw.uniform(0, 0.3))
        if process.poll() is not None:
            break
        process.kill()
        process.communicate()
        kills += 1
        now = finished(out)
        assert before.items() <= now.items(), "a finished point was lost or run again"
        before = now
    _, stderr = process.communicate()
    assert process.returncode == 0, stderr
    assert kills >= 3
    assert before.items() <= finished(out).items()

    whole = silvan.sweep(silvan.Scenario.from_file(long_file), {KEY: LATENCIES}).points
    killed = pq.read_table(out / store.POINTS)
    assert killed.num_rows == len(LATENCIES)
    for name in whole.column_names:
        if name != "wall_s":
            assert column_bytes(killed[name]) == column_bytes(whole[name]), name
    left = {path.name for path in out.iterdir()}
    assert left == {".lock", "points", store.MANIFEST, store.POINTS}
    assert list((out / "points").iterdir()) == []


def column_bytes(column: pa.ChunkedArray) -> list[bytes | None]:
    """Give the bytes of a column's buffers."""
    buffers = column.combine_chunks().buffers()
    return [None if buffer is None else buffer.to_pybytes() for buffer in buffers]


def test_points_of_a_killed_worker_are_run_again(long_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = subprocess.Popen(
        sweep_words(long_file, out), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + PATIENCE_S
    while not list(out.glob("points/*.json")):
        assert time.monotonic() < deadline, "no point was ever finished"
        time.sleep(0.01)
    workers = children(process.pid)
    assert len(workers) == 2
    os.kill(workers[0], signal.SIGKILL)
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, stderr
    assert len(finished(out)) == len(LATENCIES)


def test_workers_end_with_a_killed_sweep(long_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = subprocess.Popen(
        sweep_words(long_file, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + PATIENCE_S
    while len(workers := children(process.pid)) < 2:
        assert time.monotonic() < deadline, "the workers were never started"
        time.sleep(0.01)
    process.kill()
    process.wait()
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        assert time.monotonic() < deadline, "a worker outlives its sweep"
        time.sleep(0.01)


def test_a_point_that_kills_its_workers_is_given_up_after_three(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from silvan.sweeping import local
    from silvan.sweeping.work import Task

    scenario = silvan.Scenario.from_toml(INCAST)
    tasks = [Task(scenario.to_toml(), seed, tables=False) for seed in (1, 2, 3, 4)]
    # The workers must find this file.
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[1]))
    monkeypatch.setattr(local, "run_task", die_for_seed_2)
    outcomes: list[Outcome] = list(local.run_here(tasks, 2))
    assert sorted(one.index for one in outcomes) == [0, 1, 2, 3]
    assert [one for one in outcomes if isinstance(one, Failed)] == [
        Failed(1, "its worker process was killed by SIGKILL", 3)
    ]
    assert sum(isinstance(one, Succeeded) for one in outcomes) == 3


def die_for_seed_2(task: object, report: object) -> object:
    """Stand in for a run that takes too much memory; called in the workers."""
    from silvan.sweeping.work import Task, run_task

    assert isinstance(task, Task)
    if task.seed == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return run_task(task)


def test_a_full_disk_ends_the_sweep_and_keeps_what_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = silvan.Scenario.from_toml(INCAST)
    grid = {KEY: LATENCIES[:6]}
    real = write_text
    written: list[Path] = []

    def write_until_full(path: Path, text: str) -> None:
        if path.parent.name == "points":
            if len(written) == 3:
                raise unwritable(path, OSError(errno.ENOSPC, "No space left on device"))
            written.append(path)
        real(path, text)

    monkeypatch.setattr(store, "write_text", write_until_full)
    with pytest.raises(OutputError, match="no space left on device") as caught:
        silvan.sweep(scenario, grid, out=tmp_path / "out")
    assert caught.value.hint is not None
    assert "what was finished is kept" in caught.value.hint
    before = finished(tmp_path / "out")
    assert set(before) == {path.stem for path in written}
    monkeypatch.undo()
    silvan.sweep(scenario, grid, out=tmp_path / "out")
    after = finished(tmp_path / "out")
    assert before.items() < after.items()
    assert set(after) == {point.hash for point in plan(scenario, grid).points}


def test_a_file_that_may_not_grow_is_reported_and_nothing_is_half_written(
    long_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = sweep_words(long_file, out)
    # The system refuses every file over one block of 1 KiB: the manifest does not fit.
    limited = ["bash", "-c", 'ulimit -f 1 && exec "$@"', "bash", *words]
    done = subprocess.run(limited, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 2
    error, hint = done.stderr.splitlines()
    assert error == f"error: {out / store.MANIFEST}: cannot write: file too large"
    assert hint.startswith("hint: make room")
    assert not [path for path in out.rglob("*") if path.is_file() and path.name != ".lock"]
