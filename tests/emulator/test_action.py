"""The action for continuous integration starts a fabric, as a runner calls it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from pathlib import Path

import yaml

from tests.conftest import silvan_command
from tests.emulator.conftest import REAL_TOOLS

pytestmark = REAL_TOOLS

ACTION = Path(__file__).resolve().parents[2] / "action"


def started(folder: Path, scenario: str) -> tuple[subprocess.CompletedProcess[str], Path]:
    """Run the step that starts a fabric; the sockets are named after the folder."""
    programs = folder / "silvan" / "bin"
    programs.mkdir(parents=True)
    silvan = programs / "silvan"
    call = f'exec {shlex.join(silvan_command())} "$@"'
    silvan.write_text(f"#!/bin/sh\necho $$ > {folder}/pid\n{call}\n")
    silvan.chmod(0o755)
    inputs = yaml.safe_load((ACTION / "action.yml").read_text("utf-8"))["inputs"]
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "RUNNER_TEMP": str(folder),
        "GITHUB_OUTPUT": str(folder / "output"),
        "SCENARIO": scenario,
        "SOCKNAME": f"action-{os.getpid()}",
        "OPTIONS": inputs["options"]["default"],
    }
    done = subprocess.run(
        [str(ACTION / "start")], env=environment, capture_output=True, text=True, cwd=folder
    )
    return done, programs / "in-fabric"


def test_following_steps_see_the_fabric(tmp_path: Path) -> None:
    """Oracle: ibnetdiscover counts the six switches and sixteen hosts of the example."""
    done, attached = started(tmp_path, "two-tier")
    try:
        assert done.returncode == 0, done.stderr
        seen = subprocess.run(
            [str(attached), "ibnetdiscover"], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        assert sum(line.startswith("Switch") for line in seen) == 6
        assert sum(line.startswith("Ca") for line in seen) == 16
        assert (tmp_path / "output").read_text().startswith(f"log={tmp_path}")
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGTERM)


def test_a_scenario_that_is_wrong_fails_the_step(tmp_path: Path) -> None:
    (tmp_path / "wrong.toml").write_text('[fabric]\ngenerator = "no"\n')
    done, attached = started(tmp_path, "wrong.toml")
    assert done.returncode == 1
    assert "error: wrong.toml:2" in done.stderr
    assert not attached.exists()
