"""A sweep that is killed, again and again, loses nothing and ends with the same points."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
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
from tests.gate import PATIENCE_S, Gate, wait_until

pytestmark = pytest.mark.slow

LATENCIES = [f"{number} ns" for number in range(50, 62)]
KEY = "switch.latency"


def sweep_words(path: Path, out: Path) -> list[str]:
    return silvan_command(
        "sweep", path, "--grid", f"{KEY}={','.join(LATENCIES)}", "--out", out, "--workers", "2"
    )


def finished(out: Path) -> dict[str, float]:
    """Give the hash of every finished point, and the time its run took, which no other run has."""
    if not (out / store.MANIFEST).exists():
        return {}
    manifest = json.loads((out / store.MANIFEST).read_text())
    digests = store.digests_of(manifest)
    return {digest: row.wall_s for digest, row in read_rows(out, [KEY], digests).items()}


def children(pid: int) -> list[int]:
    """List the processes that a process has started."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(word) for word in text.split()]


# System calls of the sweep's own process, and the number of the call that kills it. Every start
# writes the manifest first. The last ones kill the sweep during gathering: of 12 points and the
# manifest two are left to be renamed, or their files to be removed.
MOMENTS = [
    *[("fsync", 1), ("rename", 1), ("rename", 2), ("fsync", 4), ("rename", 4), ("unlink", 4)],
    *[("fsync", 8), ("rename", 5)],
]


@pytest.mark.needs("strace")
def test_killed_at_any_moment_a_sweep_still_ends_the_same(
    incast_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "killed"
    words = sweep_words(incast_file, out)
    before: dict[str, float] = {}
    counts = []
    for call, number in MOMENTS:
        tracer = ["strace", "-qq", "-o", str(tmp_path / "trace"), "-e", f"trace={call}"]
        tracer += ["-e", f"inject={call}:signal=SIGKILL:when={number}"]
        done = subprocess.run([*tracer, *words], capture_output=True, timeout=PATIENCE_S)
        assert done.returncode == -signal.SIGKILL, (call, number, done.stderr)
        now = finished(out)
        assert before.items() <= now.items(), "a finished point was lost or run again"
        before = now
        counts.append(len(now))
    assert counts[0] == 0
    assert 0 < counts[3] < len(LATENCIES), "some were finished before others were begun"
    last = subprocess.run(words, capture_output=True, timeout=PATIENCE_S)
    assert last.returncode == 0, last.stderr
    assert before.items() <= finished(out).items()

    whole = silvan.sweep(silvan.Scenario.from_file(incast_file), {KEY: LATENCIES}).points
    killed = pq.read_table(out / store.POINTS)
    assert killed.num_rows == len(LATENCIES)
    for name in whole.column_names:
        if name != "wall_s":
            assert column_bytes(killed[name]) == column_bytes(whole[name]), name
    left = {path.name for path in out.iterdir()}
    assert left == {"points", store.MANIFEST, store.POINTS, "report.html"}
    assert list((out / "points").iterdir()) == []


def column_bytes(column: pa.ChunkedArray) -> list[bytes | None]:
    """Give the bytes of a column's buffers."""
    buffers = column.combine_chunks().buffers()
    return [None if buffer is None else buffer.to_pybytes() for buffer in buffers]


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate.make(tmp_path / "gate")


@pytest.fixture
def waiting_file(gate: Gate, tmp_path: Path) -> Path:
    """Write a scenario whose runs wait at the gate."""
    path = tmp_path / "waiting.toml"
    path.write_text(INCAST + gate.control)
    return path


def test_points_of_a_killed_worker_are_run_again(
    gate: Gate, waiting_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    process = subprocess.Popen(
        sweep_words(waiting_file, out), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    wait_until(lambda: len(gate.waiting()) == 2, "two workers have begun")
    assert set(gate.waiting()) == set(children(process.pid))
    os.kill(gate.waiting()[0], signal.SIGKILL)
    gate.open()
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, stderr
    assert len(finished(out)) == len(LATENCIES)


def test_workers_end_with_a_killed_sweep(waiting_file: Path, gate: Gate, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = subprocess.Popen(
        sweep_words(waiting_file, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_until(lambda: len(gate.waiting()) == 2, "two workers have begun")
    process.kill()
    process.wait()
    gate.open()
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in gate.waiting()), "they end")


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


def test_a_point_whose_worker_has_died_is_tried_again_on_one_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from silvan.sweeping import local
    from silvan.sweeping.work import Task

    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[1]))
    monkeypatch.setattr(local, "cores", lambda: 2)
    monkeypatch.setattr(local, "run_task", die_on_several_threads)
    task = Task(silvan.Scenario.from_toml(INCAST).to_toml(), 1, tables=False)
    (outcome,) = local.run_here([task])
    assert isinstance(outcome, Succeeded)


def die_on_several_threads(task: object, report: object) -> object:
    """Stand in for a run whose parts take too much memory; called in the workers."""
    from silvan.sweeping.work import Task, run_task

    assert isinstance(task, Task)
    if task.threads != 1:
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
    incast_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = sweep_words(incast_file, out)
    # The system refuses every file over one block of 1 KiB: the manifest does not fit.
    limited = ["bash", "-c", 'ulimit -f 1 && exec "$@"', "bash", *words]
    done = subprocess.run(limited, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 2
    error, hint = done.stderr.splitlines()
    assert error == f"error: {out / store.MANIFEST}: cannot write: file too large"
    assert hint.startswith("hint: make room")
    assert not [path for path in out.rglob("*") if path.is_file() and path.name != ".lock"]
