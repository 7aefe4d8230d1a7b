"""What README and the user guide tell people to type works."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.conftest import Command

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# These need a cluster; they have tests with one.
ELSEWHERE = "--scheduler"
# These take minutes; they have tests of their own with less to do.
SLOW = ("silvan reproduce",)


def blocks(page: Path, language: str) -> list[str]:
    """Find the listings in one language."""
    return [text for name, text in BLOCK.findall(page.read_text()) if name == language]


def commands(page: Path) -> list[str]:
    """Find the calls of silvan."""
    lines = [line for text in blocks(page, "") for line in text.splitlines()]
    calls = [line.removeprefix(".venv/bin/") for line in lines]
    return [
        call
        for call in calls
        if call.startswith("silvan ") and not call.startswith(SLOW) and ELSEWHERE not in call
    ]


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder that holds the scenarios of the guide, and the files that they name."""
    for page, name in [("first-steps.md", "incast.toml"), ("real-fabrics.md", "real.toml")]:
        (scenario,) = blocks(ROOT / "docs" / "guide" / page, "toml")
        (tmp_path / name).write_text(scenario)
    for folder in ("real-fabric", "programs", "own-scheme"):
        shutil.copytree(ROOT / "examples" / folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_programs_run_in_order(page: Path, workplace: Path, command: Command) -> None:
    for call in commands(page):
        outcome = command(*shlex.split(call)[1:], cwd=workplace)
        assert outcome.status == 0, f"{call}: {outcome.stderr}"
    if page.name == "results.md":
        assert command("run", "incast.toml", "--out", "results", cwd=workplace).status == 0
    for program in blocks(page, "python"):
        exec(compile(program, str(page), "exec"), {})


def test_scenarios_in_listings_are_valid(workplace: Path, command: Command) -> None:
    listings = [text for page in PAGES for text in blocks(page, "toml")]
    assert listings
    for number, text in enumerate(listings):
        path = workplace / f"{number}.toml"
        path.write_text(text)
        outcome = command("validate", path)
        assert outcome.status == 0, outcome.stderr
