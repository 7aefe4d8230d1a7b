"""The check of all papers: it fails when a command does, and when a target is lost."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from tests.test_documents import load_tool
from tests.test_own_paper import MODULE, write_package

tool = load_tool("check_papers")

# The second target cannot be met: three hosts send to one at no more than the rate of its sink.
TARGETS = """\
    {
        "incast.total": Target("incast.total", "total receive rate, Gbit/s", 13.5, 0.02),
        "incast.twice": Target("incast.twice", "twice as much, Gbit/s", 27.0, 0.02),
    },
"""
BOTH = """\
    return [Measurement(f"incast.{name}", (rate,), (rate,)) for name in ("total", "twice")]
"""


@pytest.fixture
def paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Install a paper of one short run, where commands find it."""
    lines = MODULE.splitlines(keepends=True)
    (measured,) = (line for line in lines if "return [Measurement" in line)
    (targets,) = (line for line in lines if 'Target("incast.total"' in line)
    text = MODULE.replace(measured, BOTH).replace(targets, TARGETS)
    search = [str(write_package(tmp_path / "site", text)), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, search)))
    return "mine2027"


@pytest.mark.slow
def test_a_check_fails_where_the_record_is_not_met(
    paper: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "record.toml", tmp_path / "out"

    def run(*words: str, into: Path = out) -> tuple[int, str]:
        files = ["--out", str(into), "--record-file", str(file)]
        status = tool.main([paper, "--quick", *files, *words])
        return status, capsys.readouterr().err

    # Nothing is done within no time, and nothing is written.
    status, errors = run("--record", "--minutes", "0")
    assert status == 1
    assert "stopped at the time limit" in errors
    assert not file.exists()

    status, errors = run()
    assert status == 1
    assert "no record" in errors

    # A command that fails.
    (tmp_path / "file").write_text("")
    status, errors = run(into=tmp_path / "file")
    assert status == 1
    assert f"{paper}: exit status 2" in errors

    # From now on, what the command has written is there.
    monkeypatch.setattr(tool, "reproduce", lambda *_: "")
    assert run("--record") == (0, "")
    text = file.read_text()
    record = tomllib.loads(text)[paper]
    within = {name: entry["within_tolerance"] for name, entry in record.items()}
    assert within == {"incast.total": True, "incast.twice": False}
    assert tool.as_toml(tomllib.loads(text)) == text
    assert run() == (0, "")

    # A target that was within its tolerance in the record, but is not now.
    changed = text.replace("within_tolerance = false", "within_tolerance = true")
    file.write_text(changed)
    status, errors = run()
    assert status == 1
    assert f"{paper}: incast.twice: no longer within its tolerance" in errors
    assert file.read_text() == changed


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
