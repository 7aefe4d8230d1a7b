"""Fuzz targets are listed where they are built and described, and the readers in Python hold."""

from __future__ import annotations

import random
import re
import tomllib
from pathlib import Path

import pytest

from tests.test_documents import load_tool

ROOT = Path(__file__).resolve().parents[1]


def test_each_target_is_built_and_described() -> None:
    targets = {path.stem for path in (ROOT / "fuzz" / "targets").glob("*.rs")}
    manifest = tomllib.loads((ROOT / "fuzz" / "Cargo.toml").read_text("utf-8"))
    assert {one["name"] for one in manifest["bin"]} == targets
    heavy = {one["name"] for one in manifest["bin"] if "required-features" in one}
    assert heavy == load_tool("fuzz").WITH_ENGINE
    page = (ROOT / "fuzz" / "README.md").read_text("utf-8")
    named = {
        name
        for row in re.findall(r"^\|([^|]*)\|", page, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    }
    assert named == targets | set(load_tool("fuzz_files").READERS)


def test_seeds_exist() -> None:
    tool = load_tool("fuzz")
    for patterns in tool.SEEDS.values():
        for pattern in patterns:
            assert list(ROOT.glob(pattern)), pattern


READERS = sorted(load_tool("fuzz_files").READERS)


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_unchanged_files_are_read(tmp_path: Path, name: str) -> None:
    reader = load_tool("fuzz_files").READERS[name]()
    for file, data in reader.files.items():
        (tmp_path / file).write_bytes(data)
    reader.read(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_changed_files_are_read_or_refused(tmp_path: Path, name: str) -> None:
    runs, finds = load_tool("fuzz_files").fuzz(name, 3, tmp_path)
    assert runs > 0
    assert finds == 0


def test_changes_are_those_of_the_seed() -> None:
    tool = load_tool("fuzz_files")
    first, second = (
        [tool.changed(b"0123456789", random.Random(seed)) for seed in range(50)] for _ in range(2)
    )
    assert first == second
    assert len(set(first)) > 25
