"""The fixture for tests of programs that use InfiniBand, and faults from files."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import silvan
from silvan.errors import EmulationError, ScenarioError
from silvan.example_files import copy_example, example
from silvan.testing import FabricFactory, fabric
from tests.conftest import Command, silvan_command
from tests.emulator.conftest import LINE, REAL_TOOLS, values
from tests.gate import wait_until

__all__ = ["fabric"]

ROOT = Path(__file__).resolve().parents[2]

FAULTS = """\
[[fault]]
do = "degrade"
at = "0 s"
port = "left:5"
width = "1x"

[[fault]]
do = "symbol-errors"
at = "0 s"
port = "right:8"
per-second = 1e6
"""


@REAL_TOOLS
@pytest.mark.slow
def test_tools_see_the_faults_of_a_file(fabric: FabricFactory, tmp_path: Path) -> None:
    faults = tmp_path / "faults.toml"
    faults.write_text(FAULTS)
    (tmp_path / "line.toml").write_text(LINE)
    running = fabric(tmp_path / "line.toml", opensm=True, faults=faults)
    # OpenSM has made the link Active at its lower width; iblinkinfo says what it could be.
    links = running.run("iblinkinfo", "-l").stdout
    slow = [line for line in links.splitlines() if '"left"' in line and re.search(r"\b5\[", line)]
    assert len(slow) == 1
    assert re.search(r"1X .*Active/.*Could be 4X", slow[0])
    right = re.search(r"(\d+)\s+8\[  \].*\"left\"", links)
    assert right is not None
    counters = values(running.run("perfquery", right[1], "8").stdout)
    assert int(counters["SymbolErrorCounter"]) > 0
    # By hand: as new.
    running.control("restore", port="left:5")
    assert running.control("status")["links_down"] == []


@REAL_TOOLS
@pytest.mark.slow
def test_what_the_guide_shows_runs(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "guide" / "emulator.md").read_text()
    blocks = dict(re.findall(r"^```(toml|python)\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL))
    (tmp_path / "faults.toml").write_text(blocks["toml"])
    (tmp_path / "test_mine.py").write_text(blocks["python"])
    copy_example(example("incast"), tmp_path)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


@REAL_TOOLS
@pytest.mark.slow
def test_failures_of_a_tool_are_errors(fabric: FabricFactory) -> None:
    running = fabric(silvan.Scenario.from_toml(LINE))
    with pytest.raises(subprocess.CalledProcessError) as failed:
        running.run("perfquery", "40000")
    assert failed.value.returncode > 0
    assert "40000" in "".join(failed.value.__notes__)
    assert running.run("perfquery", "40000", check=False).returncode > 0
    with pytest.raises(EmulationError, match="there is no program "):
        running.run("no-such-tool")


def test_a_program_is_found_from_the_current_folder(
    fabric: FabricFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Oracle: the shell, which finds a path with a slash from where the test is."""
    (tmp_path / "line.toml").write_text(LINE)
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\ncat /sys/class/infiniband/silvan0/ports/1/lid; echo "$1"; pwd\n')
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    running = fabric("line.toml")
    lid, word, folder = running.run("./program", "./program").stdout.split()
    assert int(lid, 16) > 0
    assert (word, folder) == ("./program", str(running.folder))


def test_time_is_real_or_follows_programs(fabric: FabricFactory, tmp_path: Path) -> None:
    (tmp_path / "line.toml").write_text(LINE)
    running = fabric(tmp_path / "line.toml", time="auto")
    assert running.control("status")["links_down"] == []
    with pytest.raises(ValueError, match='"real" or "auto", not 2'):
        fabric(tmp_path / "line.toml", time=2)


def test_several_fabrics_run_at_once_and_end_with_the_test(fabric: FabricFactory) -> None:
    scenario = silvan.Scenario.from_toml(LINE)
    one, two = fabric(scenario), fabric(scenario, overrides={"run.seed": 7}, blank=True)
    assert one.emulation.sockname != two.emulation.sockname
    assert one.control("status")["ports_not_active"] == []
    assert two.control("status")["ports_not_active"] != []


def test_a_file_of_faults_that_does_not_hold_is_refused(
    fabric: FabricFactory, tmp_path: Path
) -> None:
    faults = tmp_path / "faults.toml"
    faults.write_text('[[fault]]\ndo = "cut"\nat = "1 s"\nport = "lefd:5"\n')
    with pytest.raises(ScenarioError, match=r"faults.toml:4.*there is no port"):
        fabric(silvan.Scenario.from_toml(LINE), faults=faults)
    with pytest.raises(ScenarioError, match=r"other.toml: cannot read the file of faults"):
        fabric(silvan.Scenario.from_toml(LINE), faults=tmp_path / "other.toml")
    faults.write_bytes(b"\n\xff\xfe")
    with pytest.raises(ScenarioError, match=r"faults.toml:2: the file is not UTF-8 text"):
        fabric(silvan.Scenario.from_toml(LINE), faults=faults)


@pytest.mark.slow
def test_the_example_of_two_tiers_is_up_with_opensm(process: Command) -> None:
    words = ("emulate", "--example", "two-tier", "--opensm", "--")
    done = process(*words, "ibnetdiscover", "-l")
    assert done.status == 0, done.stderr
    kinds = [line.split()[0] for line in done.stdout.splitlines()]
    assert (kinds.count("Ca"), kinds.count("Switch")) == (16, 6)
    # Without a subnet manager there is no answer.
    assert "SMINFO_MASTER" in process(*words, "sminfo").stdout


@pytest.mark.slow
def test_an_example_is_emulated_without_a_file(
    command: Command, process: Command, tmp_path: Path
) -> None:
    done = process("emulate", "--example", "incast", "--no-opensm", "--", "true")
    assert done.status == 0
    assert "no effect" not in done.stderr
    retry = ("--set", "host.retry.timeout=14")
    done = process("emulate", "--example", "incast", *retry, "--no-opensm", "--", "true")
    assert "host.retry has no effect in the live fabric" in done.stderr
    assert command("emulate", "--example", "incats", "--", "true").status == 2
    refused = command("emulate", "--example", "all-reduce", "--", "true")
    assert refused.status == 2
    assert command("emulate").status == 2
    faults = tmp_path / "faults.toml"
    faults.write_text('[[fault]]\ndo = "slow"\nat = "0 s"\nhost = "host-0000"\nrate = "1 Gbit/s"\n')
    words = ("emulate", "--example", "incast", "--faults", str(faults), "--no-opensm")
    # The command ends when its input does.
    with subprocess.Popen(
        silvan_command(*words, "--", "cat"),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stderr
        assert running.stdin
        said = "at 0.000000 s: slow receiver host-0000"
        assert any(said in line for line in running.stderr)
        running.stdin.close()
        running.stderr.read()
    assert running.returncode == 0
    faults.unlink()
    missing = command(*words, "--", "true")
    assert missing.status == 2
    assert "faults.toml" in missing.stderr


def test_any_scheme_acts_in_the_live_fabric(fabric: FabricFactory) -> None:
    """Oracle: a run. HPCC gives the victim several times its rate without control."""
    victim = silvan.Scenario.from_file(example("victim").path).override(
        {"control.scheme": "hpcc", "run.duration": "2 ms", "run.warm-up": "0 s"}
    )
    rates = {}
    for row in silvan.run(victim).classes.to_pylist():
        rates[row["name"]] = row["delivered_bytes"] / 2e-3
    running = fabric(victim, time_scale=0.01)
    wait_until(lambda: running.control("status")["simulated_s"] > 0.002, "2 ms have passed")
    running.control("pause")
    passed = running.control("status")["simulated_s"]
    for flow in running.control("flows"):
        assert flow["delivered_bytes"] / passed == pytest.approx(rates[flow["flow"]], rel=0.02)
