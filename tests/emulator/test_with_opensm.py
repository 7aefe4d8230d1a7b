"""OpenSM in the live fabric, so that tools that ask a subnet manager find one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Command
from tests.emulator.conftest import LINE, REAL_TOOLS
from tests.gate import PATIENCE_S
from tests.needs import PATH

pytestmark = REAL_TOOLS


@pytest.fixture
def line_file(tmp_path: Path) -> Path:
    """Write the small fabric to a file."""
    file = tmp_path / "line.toml"
    file.write_text(LINE)
    return file


ASK = "saquery && sminfo && ibqueryerrors --data && perfquery -G $(ibstat -p | head -1)"


def test_tools_find_the_subnet_manager(line_file: Path, process: Command) -> None:
    shell = ("sh", "-c", f"PATH={PATH}; {ASK}")
    done = process("emulate", line_file, "--opensm", "--", *shell, cwd=line_file.parent)
    assert done.status == 0, done.stderr
    assert "SMINFO_MASTER" in done.stdout
    assert "nodes checked" in done.stdout
    # All nodes, in an answer of several packets.
    names = re.findall(r"NodeDescription\.+(\w+)", done.stdout)
    assert sorted(names) == ["a", "b", "c", "d", "left", "right"]
    assert "# Port counters: Lid" in done.stdout
    assert "OpenSM manages the subnet" in done.stderr

    alone = process("emulate", line_file, "--", *shell, cwd=line_file.parent)
    assert alone.status != 0
    assert "OpenSM" not in alone.stderr


def test_the_end_of_opensm_is_reported(line_file: Path, process: Command) -> None:
    # Without a subnet manager sminfo fails. OpenSM closes its port before it ends.
    wait = "pkill -P $PPID opensm; while pgrep -P $PPID opensm; do sleep 0.1; done; sminfo"
    shell = ("sh", "-c", f"PATH={PATH}; {wait}")
    done = process("emulate", line_file, "--opensm", "--", *shell, cwd=line_file.parent)
    assert done.status != 0
    assert "OpenSM has ended with status" in done.stderr
    assert "no subnet manager any more" in done.stderr


def test_a_blank_fabric_is_brought_up(line_file: Path, process: Command) -> None:
    words = ("emulate", line_file, "--blank", "--opensm", "--", "sminfo")
    done = process(*words, cwd=line_file.parent)
    assert done.status == 0, done.stderr
    assert "SMINFO_MASTER" in done.stdout


def run_shell(file: Path, *words: str, path: str = PATH) -> subprocess.CompletedProcess[str]:
    """Open a shell in the fabric, ask for the subnet manager in it, and leave."""
    return subprocess.run(
        [sys.executable, "-m", "silvan", "emulate", str(file), *words],
        cwd=file.parent,
        env=os.environ | {"SHELL": "/bin/sh", "PATH": path},
        input=f"PATH={PATH} sminfo\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_a_shell_has_a_subnet_manager_unless_it_is_turned_off(line_file: Path) -> None:
    done = run_shell(line_file)
    assert done.returncode == 0, done.stderr
    assert "SMINFO_MASTER" in done.stdout
    for off in ("--no-opensm", "--blank"):
        alone = run_shell(line_file, off)
        assert alone.returncode != 0
        assert "OpenSM" not in alone.stderr


def test_a_missing_opensm_is_named_with_what_installs_it(
    line_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import silvan.live.live_programs
    from silvan.live.emulation import Emulation

    empty = tmp_path / "bin"
    empty.mkdir()
    monkeypatch.setattr(silvan.live.live_programs, "PATH", str(empty))
    assert shutil.which("opensm", path=PATH)
    assert not silvan.live.live_programs.has_opensm()
    scenario = silvan.Scenario.from_file(line_file)
    with (
        Emulation(scenario, sockname=f"test-missing-{os.getpid()}") as emulation,
        pytest.raises(silvan.EmulationError, match="opensm is not installed") as caught,
        silvan.live.live_programs.opensm(emulation, tmp_path),
    ):
        raise AssertionError
    assert caught.value.hint == silvan.live.live_programs.INSTALL
