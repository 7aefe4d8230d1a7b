"""A missing need is listed, and fails in continuous integration; no test is left out silently."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gate import PATIENCE_S

ROOT = Path(__file__).resolve().parents[1]

CONFTEST = """\
from tests import needs

needs.known()["unicorn"] = (lambda: False, "sudo apt-get install unicorn")


def pytest_configure(config):
    config.pluginmanager.register(needs.Needs(), "needs")
"""
TESTS = """\
import pytest


@pytest.mark.needs({need!r})
@pytest.mark.parametrize("number", [1, 2])
def test_that_needs(number):
    pass


def test_that_needs_nothing():
    pass


@pytest.mark.slow
def test_that_is_slow():
    pass
"""


def run_tests(
    folder: Path, *words: str, need: str = "unicorn", ci: bool = False
) -> tuple[int, str]:
    """Run the small suite, and return its exit status and what it prints."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_one.py").write_text(TESTS.format(need=need))
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    needs\n    slow\n")
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *words],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(ROOT)} | ({"CI": "1"} if ci else {}),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("--numprocesses", "2")], ids=["one", "two"])
def test_a_missing_need_is_listed(tmp_path: Path, words: tuple[str, ...]) -> None:
    status, output = run_tests(tmp_path, *words)
    assert status == 0, output
    assert "not run: 2 tests need unicorn: sudo apt-get install unicorn" in output
    assert "2 passed, 2 skipped" in output


@pytest.mark.slow
def test_a_missing_need_fails_in_continuous_integration(tmp_path: Path) -> None:
    status, output = run_tests(tmp_path, ci=True)
    assert status == 1
    assert "2 passed, 2 errors" in output
    assert "needs unicorn (sudo apt-get install unicorn)" in output


@pytest.mark.slow
def test_an_unknown_need_is_an_error(tmp_path: Path) -> None:
    status, output = run_tests(tmp_path, need="unicron")
    assert status == 4
    assert "unknown need unicron; known: root, network, " in output


@pytest.mark.slow
def test_the_fast_tier_is_what_has_no_marker(tmp_path: Path) -> None:
    status, output = run_tests(tmp_path, "-m", "not slow and not needs")
    assert status == 0, output
    assert "1 passed, 3 deselected" in output


def test_no_test_is_left_out_by_other_means() -> None:
    # `skip`, `skipif` and `importorskip` would hide a test from the summary.
    words = ("mark.skip", "pytest.skip", "importorskip", "unittest.skip")
    files = [path for path in (ROOT / "tests").rglob("*.py") if path.name != "needs.py"]
    found = [
        f"{path.relative_to(ROOT)}: {word}"
        for path in files
        for word in words
        if path != Path(__file__) and word in path.read_text("utf-8")
    ]
    assert found == []


def test_continuous_integration_runs_with_ci_set() -> None:
    assert "export CI=" in (ROOT / ".ci" / "run").read_text("utf-8")


def test_every_debian_package_is_a_need() -> None:
    from tests.needs import known

    assert {"root", "network", "opensm", "strace"} <= set(known())
    with pytest.raises(KeyError):
        known()["unicorn"]
