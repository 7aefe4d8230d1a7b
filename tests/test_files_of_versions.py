"""Files of released versions are read; those of newer ones are refused with advice."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sqlite3
import tomllib
from pathlib import Path

import pytest

import silvan
from silvan.errors import DiagnosisError, OutputError
from silvan.live.ring import RingFile
from tests.conftest import Command
from tests.test_documents import load_tool

FOLDER = Path(__file__).resolve().parent / "files_of_versions"
VERSIONS = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
each = pytest.mark.parametrize("version", VERSIONS)


def test_this_version_has_files() -> None:
    assert load_tool("versions").version() in VERSIONS


@each
def test_a_result_is_read_and_shown(version: str, command: Command) -> None:
    folder = FOLDER / version / "result"
    result = silvan.Result.read(folder)
    assert result.version == version
    assert result.seed == 1
    assert result.hosts["delivered_bytes"].to_pylist()[0] > 0
    outcome = command("run", FOLDER / version / "scenario.toml", "--json")
    assert outcome.status == 0, outcome.stderr


def is_part(part: object, whole: object) -> bool:
    """Decide whether each key of nested tables is in others, with an equal value."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and is_part(value, whole[key]) for key, value in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) == len(whole) and all(map(is_part, part, whole))
    return part == whole


@each
def test_a_scenario_means_what_it_meant(version: str) -> None:
    """Oracle: keys that the version has written have their values, and tables their columns."""
    folder = FOLDER / version
    written = tomllib.loads((folder / "scenario.toml").read_text("utf-8"))
    scenario = silvan.Scenario.from_file(folder / "scenario.toml")
    assert is_part(written, scenario.to_dict())
    before, now = silvan.Result.read(folder / "result"), silvan.run(scenario, seed=1)
    for name, table in before.tables.items():
        assert set(table.column_names) <= set(now.tables[name].column_names)


@each
def test_a_ring_file_is_read(version: str) -> None:
    with RingFile(FOLDER / version / "ring") as ring:
        assert ring.times_ns() == [10**9, 2 * 10**9]
        assert [moment.at_ns for moment in ring.moments()] == [10**9, 2 * 10**9]


@each
def test_a_journal_has_its_form(version: str) -> None:
    """Oracle: the rules of the journal; tests of the crate silvan-dcms restore from it."""
    header, *entries = (FOLDER / version / "journal").read_text().splitlines()
    for line in (header, *entries):
        digest, _, record = line.partition(" ")
        assert hashlib.sha256(record.encode()).hexdigest()[:16] == digest
    assert json.loads(header.partition(" ")[2]) == {"version": 2, "changes": len(entries)}


@each
def test_a_state_folder_is_shown(version: str, tmp_path: Path, command: Command) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / "lock").touch()
    for name in ("journal", "status"):
        shutil.copy2(FOLDER / version / name, state)
    config = tmp_path / "dcms.toml"
    config.write_text('[state]\nfolder = "state"\n')
    outcome = command("dcms", config, "--status")
    assert outcome.status == 1, outcome.stderr
    words = " ".join(outcome.stdout.split())
    assert re.search(r"low S2:23 for \S+ s, victims S1:1, which have lost 2 GB", words), words
    assert "S2:23: 0, 128 is to be restored" in outcome.stdout


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Copy the files of the newest version."""
    return Path(shutil.copytree(FOLDER / VERSIONS[-1], tmp_path / "files"))


def test_a_result_of_a_newer_version_names_what_to_install(copy: Path) -> None:
    path = copy / "result" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["version"] = "999.1.0"
    path.write_text(json.dumps(manifest))
    # It has nothing that this version does not know.
    assert silvan.Result.read(copy / "result").version == "999.1.0"
    manifest["scenario"] += "\n[wormholes]\ncount = 2\n"
    path.write_text(json.dumps(manifest))
    with pytest.raises(OutputError, match="wormholes") as caught:
        silvan.Result.read(copy / "result")
    assert "silvan 999.1.0 has written it" in str(caught.value.hint)
    assert "install 999.1.0" in str(caught.value.hint)


def test_a_ring_file_of_a_newer_version_is_refused(copy: Path) -> None:
    with sqlite3.connect(copy / "ring") as database:
        database.execute("pragma user_version = 99")
    database.close()
    with pytest.raises(DiagnosisError, match="version 99") as caught:
        RingFile(copy / "ring")
    assert "a newer silvan has written it" in str(caught.value.hint)
