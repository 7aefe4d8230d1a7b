"""The check of all papers: it fails when a command does, and when a target is lost."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from silvan.reproduce import find_paper
from tests.gate import PATIENCE_S
from tests.test_documents import ROOT, load_tool

pytestmark = pytest.mark.slow

tool = load_tool("check_papers")


def run(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Check gran2010 in its short form against a record of its own."""
    return subprocess.run(
        [
            sys.executable,
            ROOT / "python" / "tools" / "check_papers.py",
            "gran2010",
            "--quick",
            *("--out", tmp_path / "out"),
            *("--record-file", tmp_path / "record.toml"),
            *words,
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )


def test_a_check_fails_where_the_record_is_not_met(tmp_path: Path) -> None:
    # Nothing is done within no time, and nothing is written.
    stopped = run(tmp_path, "--record", "--minutes", "0")
    assert stopped.returncode == 1
    assert "stopped at the time limit" in stopped.stderr
    assert not (tmp_path / "record.toml").exists()

    missing = run(tmp_path)
    assert missing.returncode == 1
    assert "no record" in missing.stderr

    written = run(tmp_path, "--record")
    assert written.returncode == 0, written.stderr
    text = (tmp_path / "record.toml").read_text()
    record = tomllib.loads(text)["gran2010"]
    assert record.keys() <= find_paper("gran2010").targets.keys()
    assert tool.as_toml(tomllib.loads(text)) == text
    assert run(tmp_path).returncode == 0

    # A target that was within its tolerance in the record, but is not now.
    lost = next(name for name, entry in record.items() if not entry["within_tolerance"])
    line = next(one for one in text.splitlines() if one.startswith(f'"{lost}"'))
    changed = text.replace(line, line.replace("false", "true"))
    (tmp_path / "record.toml").write_text(changed)
    failed = run(tmp_path)
    assert failed.returncode == 1
    assert f"gran2010: {lost}: no longer within its tolerance" in failed.stderr
    assert (tmp_path / "record.toml").read_text() == changed

    # A command that fails.
    (tmp_path / "file").write_text("")
    broken = run(tmp_path, "--out", str(tmp_path / "file"))
    assert broken.returncode == 1
    assert "gran2010: exit status" in broken.stderr


@pytest.mark.parametrize(
    ("old", "new", "lost", "listed"),
    [
        (
            {"within_tolerance": True, "measured": 1.0},
            {"within_tolerance": True, "measured": 1.001},
            0,
            0,
        ),
        (
            {"within_tolerance": True, "measured": 1.0},
            {"within_tolerance": True, "measured": 1.02},
            0,
            1,
        ),
        (
            {"within_tolerance": True, "measured": 1.0},
            {"within_tolerance": False, "measured": 1.5},
            1,
            1,
        ),
        (
            {"within_tolerance": False, "measured": 1.0},
            {"within_tolerance": False, "measured": 1.0},
            0,
            0,
        ),
        ({"within_tolerance": False}, {"within_tolerance": True}, 0, 1),
        ({"within_tolerance": True}, {"within_tolerance": False}, 1, 0),
        ({"within_tolerance": True}, None, 1, 0),
        (None, {"within_tolerance": False}, 0, 1),
    ],
)
def test_what_fails_and_what_is_only_listed(
    old: dict[str, float] | None, new: dict[str, float] | None, lost: int, listed: int
) -> None:
    recorded = {"a": old} if old else {}
    found = {"a": new} if new else {}
    assert len(list(tool.regressions(recorded, found))) == lost
    assert len(list(tool.changes(recorded, found))) == listed
