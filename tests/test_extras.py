"""Without an extra silvan runs, and what needs the extra names it before any run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from silvan.extras import EXTRAS
from tests.conftest import Outcome, silvan_command
from tests.gate import PATIENCE_S

ROOT = Path(__file__).resolve().parents[1]

# An import of a module whose entry is None fails as if the module were not installed. Every
# process, also a worker, runs this file when it starts.
_WITHOUT = """\
import sys
sys.modules.update(dict.fromkeys({modules!r}))
"""
_SCHEME = """\
import silvan


def scheme(setup):
    return silvan.Callbacks(1, on_credit=lambda state, now, host, used, capacity: None)
"""


def run_without(modules: tuple[str, ...], *words: str | Path, cwd: Path) -> Outcome:
    """Run a command in processes that cannot import some modules."""
    return _run_without(modules, silvan_command(*words), cwd)


def run_python_without(modules: tuple[str, ...], program: str, *, cwd: Path) -> Outcome:
    """Run a program in a process that cannot import some modules."""
    return _run_without(modules, [sys.executable, "-c", program], cwd)


def _run_without(modules: tuple[str, ...], call: list[str], cwd: Path) -> Outcome:
    folder = cwd / "without"
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(_WITHOUT.format(modules=modules))
    environment = os.environ | {"PYTHONPATH": str(folder)}
    done = subprocess.run(
        call,
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ("figures", ["plot", "result"]),
        ("figures", ["compare", "incast.toml"]),
        ("figures", ["reproduce", "gran2012", "--only", "table2", "--quick"]),
        ("cluster", ["sweep", "incast.toml", "--seeds", "2", "--scheduler", "tcp://127.0.0.1:1"]),
        ("cluster", ["sweep", "incast.toml", "--seeds", "2", "--scheduler", "slurm"]),
        ("schemes", ["sweep", "incast.toml", "--seeds", "2", "--scheme", "scheme.py"]),
    ],
)
def test_a_command_names_the_extra_that_it_needs(
    incast_file: Path, extra: str, words: list[str]
) -> None:
    folder = incast_file.parent
    (folder / "scheme.py").write_text(_SCHEME)
    done = run_without(EXTRAS[extra], *words, cwd=folder)
    assert done.status == 2, done.stderr
    error, hint = done.stderr.splitlines()
    assert error.startswith("error: ")
    assert error.endswith(f"need {', '.join(EXTRAS[extra])}, which is not installed")
    assert hint == f"hint: pip install 'silvan[{extra}]'"
    assert list(folder.rglob("*.parquet")) == []


@pytest.mark.slow
def test_a_run_needs_no_extra(incast_file: Path) -> None:
    everything = tuple(module for modules in EXTRAS.values() for module in modules)
    folder = incast_file.parent
    done = run_without(everything, "run", incast_file, "--out", "results", cwd=folder)
    assert done.status == 0, done.stderr
    assert run_without(everything, "--help", cwd=folder).status == 0
    words = ("sweep", incast_file, "--grid", "switch.latency=100 ns,200 ns")
    assert run_without(everything, *words, cwd=folder).status == 0
    assert run_without(everything, "plot", "--help", cwd=folder).status == 0
