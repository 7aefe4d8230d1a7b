"""The digests of drawn scenarios are the same in each run, and a table that differs is named."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.test_documents import load_tool

tool = load_tool("digest_tables")


def run(monkeypatch: pytest.MonkeyPatch, *options: str | Path) -> int:
    monkeypatch.setattr(sys, "argv", ["digest_tables.py", "--count", "4", *map(str, options)])
    return int(tool.main())


def test_a_changed_table_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    digests = tmp_path / "digests.json"
    assert run(monkeypatch, "--write", digests) == 0
    assert run(monkeypatch, "--compare", digests) == 0
    assert "0 digests differ" in capsys.readouterr().out

    tables = json.loads(digests.read_text())
    tables[2]["hosts"] = "0" * 16
    digests.write_text(json.dumps(tables))
    assert run(monkeypatch, "--compare", digests) == 1
    assert "scenario 2: table hosts differs" in capsys.readouterr().err


def test_the_scenarios_cover_every_scheme_and_are_not_refused() -> None:
    """Oracle: the same seed draws the same scenarios, and hardly any of them is impossible."""
    drawn = [tool.drawn(tool.random.Random(f"1/{number}")) for number in range(200)]
    assert {sections["control"]["scheme"] for sections in drawn} == set(tool.SCHEMES)
    refused = [sections for sections in drawn[:20] if "error" in tool.digest(sections)]
    assert len(refused) <= 2
