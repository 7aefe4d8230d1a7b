"""The document checker finds what it should, and README's commands exist."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


def load_tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        f"tools.{name}", ROOT / "python" / "tools" / f"{name}.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up by its name.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


check = load_tool("check_documents")


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("[here](there.md)", 0),
        ("[gone](gone.md)", 1),
        ("[part](there.md#second-part)", 0),
        ("[part](there.md#third-part)", 1),
        ("[own](#its-own)\n# Its own", 0),
        ("```\n[in a listing](gone.md)\n```", 0),
        ("[web](https://example.org/x)", 0),
    ],
)
def test_broken_links_are_found(tmp_path: Path, text: str, problems: int) -> None:
    (tmp_path / "there.md").write_text("# First\n## Second part\n")
    page = tmp_path / "page.md"
    page.write_text(text)
    assert len(list(check.broken_links(page, text))) == problems


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("`tests/conftest.py`", 0),
        ("`tests/gone.py`", 1),
        ("`tests/*.py`", 0),
        ("`13.5 Gbit/s` and `bits/s`", 0),
    ],
)
def test_missing_paths_are_found(text: str, problems: int) -> None:
    assert len(list(check.missing_paths(ROOT / "README.md", text, {"tests"}))) == problems


def test_words_are_counted_without_marks_of_tables() -> None:
    assert check.count_words("| one | two three | - 4 |\n|---|---|\n\n```\nfive\n```\n") == 5
    assert check.is_counted(ROOT / "docs" / "model.md")
    assert not check.is_counted(ROOT / "docs" / "reference" / "cli.md")


@pytest.mark.parametrize(("words", "problems"), [(1001, 1), (1000, 0), (0, 0)])
def test_more_words_than_the_ceiling_are_an_error(words: int, problems: int) -> None:
    assert len(list(check.wrong_ceiling(words, 1000))) == problems


def test_a_ceiling_far_above_the_words_is_an_error() -> None:
    assert list(check.wrong_ceiling(10_000, 10_000 + check.SLACK)) == []
    (problem,) = check.wrong_ceiling(10_000, 10_001 + check.SLACK)
    assert "lower MOST_WORDS" in problem


def test_readme_names_the_two_commands() -> None:
    readme = (ROOT / "README.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    for target in ("run", "test"):
        assert f"make {target}" in readme
        assert f"\n{target}:" in makefile


def test_words_of_our_own_are_few() -> None:
    words = (ROOT / "python" / "tools" / "words.txt").read_text().splitlines()
    assert len(words) <= 15
    assert all(re.fullmatch(r"[a-z]+->.+", word) for word in words)
