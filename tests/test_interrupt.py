"""Ctrl-C: the run stops soon, finished seeds are kept, nothing is half-written."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import silvan
from tests.conftest import INCAST, silvan_command

PATIENCE_S = 60
"""Long enough for any machine; only a hang takes so long."""


def interrupted(
    words: list[str | Path],
    *,
    when: Path,
    grace_s: float,
    pattern: str | None = None,
    number: signal.Signals = signal.SIGINT,
) -> tuple[int, str]:
    """Start a command, send a signal some time after a file, or one of a pattern, is there."""
    process = subprocess.Popen(
        silvan_command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + PATIENCE_S
    while not (any(when.glob(pattern)) if pattern else when.exists()):
        assert time.monotonic() < deadline, "the first run never finished"
        time.sleep(0.05)
    time.sleep(grace_s)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert stdout == ""
    return process.returncode, stderr


def test_a_single_run_stops_and_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "endless.toml"
    path.write_text(INCAST.replace('"200 us"', '"1000 s"').replace('"50 us"', '"1 s"'))
    out = tmp_path / "out"
    status, stderr = interrupted(["run", path, "--out", out], when=out, grace_s=1.5)
    assert status == 130
    assert stderr == "stopped; results that were finished are kept\n"
    assert list(out.iterdir()) == []


def test_finished_seeds_are_kept(tmp_path: Path) -> None:
    # More seeds than can finish; each is long enough for the signal to meet some of them running.
    path = tmp_path / "many.toml"
    path.write_text(INCAST.replace('"200 us"', '"200 ms"').replace('"50 us"', '"100 ms"'))
    out = tmp_path / "out"
    words: list[str | Path] = ["run", path, "--seeds", "1000", "--seed", "1", "--out", out]
    status, stderr = interrupted(words, when=out / "seed-1" / "manifest.json", grace_s=0)
    assert status == 130
    assert "Traceback" not in stderr
    folders = sorted(out.iterdir())
    assert 1 <= len(folders) < 1000
    for folder in folders:
        assert silvan.Result.read(folder).scenario.name == "incast"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_reproduction_keeps_its_finished_runs(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    words: list[str | Path] = ["reproduce", "gran2012", "--only", "fig9a", "--quick"]
    words += ["--out", tmp_path]
    runs = tmp_path / "runs"
    ended, stderr = interrupted(
        words, when=runs, pattern="*/[!.]*/manifest.json", grace_s=0, number=number
    )
    assert ended == status
    assert "Traceback" not in stderr
    assert list((tmp_path / "gran2012-quick").iterdir()) == [], "no figure, no report"
    manifests = list(runs.glob("*/[!.]*/manifest.json"))
    assert 1 <= len(manifests) < 6, "fewer than all runs"
    for manifest in manifests:
        assert silvan.Result.read(manifest.parent).scenario.name == "gran2012-moving"


def test_a_stopped_sweep_keeps_its_points_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "many.toml"
    path.write_text(INCAST.replace('"200 us"', '"20 ms"').replace('"50 us"', '"20 ms"'))
    out = tmp_path / "out"
    words: list[str | Path] = ["sweep", path, "--out", out, "--workers", "2", "--seeds"]
    status, stderr = interrupted([*words, "5000"], when=out / "points", grace_s=5)
    assert status == 130
    assert stderr == "stopped; results that were finished are kept\n"
    kept = pq.read_table(out / "points.parquet").num_rows
    assert kept < 5000
    seen: list[silvan.SweepProgress] = []
    grown = silvan.sweep(
        silvan.Scenario.from_file(path), seeds=kept + 2, out=out, progress=seen.append
    )
    assert seen[0].kept == kept
    assert grown.points.num_rows == kept + 2
