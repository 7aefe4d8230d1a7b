"""The check of cheap rows: any difference from the record fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from silvan.reproduce import experiments
from tests.test_documents import load_tool

tool = load_tool("check_rows")

ROW = {"id": "a", "within_tolerance": True, "measured": 2.0}


@pytest.fixture
def cheap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make one experiment the only one, and give the file that its command writes."""
    one = tool.Cheap("gran2012", "table2")
    monkeypatch.setattr(tool, "CHEAP", (one,))
    monkeypatch.setattr(tool, "RECORD", tmp_path / "record.toml")
    monkeypatch.setattr(tool, "reproduce", lambda *_: "")
    manifest: Path = one.manifest(tmp_path / "out")
    manifest.parent.mkdir(parents=True)
    return manifest


def write(manifest: Path, **changed: object) -> None:
    rows = [ROW | changed]
    manifest.write_text(json.dumps({"experiments": [{"targets": rows}]}))


def test_a_difference_from_the_record_fails(
    cheap: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: str) -> tuple[int, str]:
        status: int = tool.main(["--out", str(tmp_path / "out"), *words])
        return status, capsys.readouterr().err

    write(cheap)
    status, errors = run()
    assert status == 1
    assert "gran2012 --only table2: a: not recorded" in errors
    assert "hint: make check-papers" in errors
    assert run("--record") == (0, "")
    assert run() == (0, "")

    write(cheap, measured=2.00001)
    assert run() == (0, "")
    write(cheap, measured=2.0001)
    status, errors = run()
    assert status == 1
    assert "a: 2.0 recorded, now 2.0001" in errors
    write(cheap, within_tolerance=False)
    status, errors = run()
    assert status == 1
    assert "a: within its tolerance True, now False" in errors


def test_a_record_keeps_the_other_rows(cheap: Path, tmp_path: Path) -> None:
    record = tmp_path / "record.toml"
    record.write_text('[gran2012]\n"b" = { within_tolerance = false }\n')
    write(cheap)
    assert tool.main(["--out", str(tmp_path / "out"), "--record"]) == 0
    assert tool.read(record)["gran2012"].keys() == {"a", "b"}


def test_a_command_that_fails_fails_the_check(
    cheap: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tool, "reproduce", lambda *_: "exit status 2")
    assert tool.main([]) == 1
    assert "gran2012 --only table2: exit status 2" in capsys.readouterr().err
    assert not cheap.exists()


def test_the_cheap_experiments_exist_and_have_records() -> None:
    for one in tool.CHEAP:
        assert experiments(one.paper, one.prefix)
        rows = tool.read(one.record())[one.paper]
        assert sum(name.startswith(one.prefix) for name in rows) >= 2, one
