"""A scheme in a file that `silvan compare` adds: whose runs are made, and its feedback."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

import silvan
from silvan.folders import MANIFEST
from tests.conftest import Command
from tests.test_arena import ARENA, SMALL
from tests.test_guide import ROOT

HALF = ROOT / "examples" / "python-scheme" / "half.py"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "small.toml").write_text(SMALL)
    (tmp_path / "arena.toml").write_text(ARENA)
    (tmp_path / "half.py").write_text(HALF.read_text())
    return tmp_path


def kept(folder: Path, pattern: str) -> set[Path]:
    return set(folder.glob(pattern))


def rows(path: Path) -> dict[tuple[str, str, str], str]:
    with path.open(newline="") as lines:
        return {
            (row["case"], row["scheme"], row["quantity"]): row["mean"]
            for row in csv.DictReader(lines)
        }


def test_adding_a_scheme_to_an_arena_costs_only_its_own_runs(
    command: Command, folder: Path
) -> None:
    """Oracle: two cases with one seed are two runs for each scheme."""
    words = ("compare", "arena.toml", "--arena", "--quick", "--schemes")
    done = command(*words, "hpcc", cwd=folder)
    assert "4 runs made" in done.stderr, done.stderr
    done = command(*words, "hpcc,half.py", cwd=folder)
    assert "2 runs made" in done.stderr, done.stderr
    # The added scheme has the parameters of its separate runs.
    step = ("--set", "control.python.parameters.step=0.5")
    done = command(*words, "hpcc,half.py", *step, cwd=folder)
    assert "2 runs made" in done.stderr, done.stderr


def test_adding_a_scheme_to_a_comparison_costs_only_its_own_run(
    command: Command, folder: Path
) -> None:
    """Oracle: one run for each scheme, in a separate folder."""
    words = ("compare", "small.toml", "--json", "--schemes")
    assert command(*words, "ib-cc", cwd=folder).status == 0
    before = kept(folder, "out/runs/*/*")
    assert len(before) == 2
    done = command(*words, "ib-cc,half.py", cwd=folder)
    assert done.status == 0, done.stderr
    assert [one["scheme"] for one in json.loads(done.stdout)] == ["none", "ib-cc", "half.py"]
    after = kept(folder, "out/runs/*/*")
    assert before < after
    assert len(after) == 3


def test_an_added_scheme_gets_the_feedback_that_its_file_needs(
    command: Command, folder: Path
) -> None:
    """Oracle: the same scheme in Rust, which has acknowledgements by default."""
    words = ("compare", "arena.toml", "--arena", "--quick", "--schemes", "half,half.py")
    assert command(*words, cwd=folder).status == 0
    (path,) = kept(folder, "out/arena-small/**/arena.csv")
    found = rows(path)
    for case in ("incast", "slower"):
        for quantity in (
            "other_receivers_gbps",
            "hotspot_utilisation",
            "other_latency_mean_us",
            "objective",
        ):
            assert found[case, "half.py", quantity] == found[case, "half", quantity]
        assert float(found[case, "half.py", "control_packets"]) == 1


def test_set_chooses_another_carrier_than_the_file(command: Command, folder: Path) -> None:
    """Oracle: notifications are of marked packets only, acknowledgements of all."""
    carrier = ("--set", "control.feedback.carrier=cnp")
    words = ("compare", "small.toml", "--schemes", "half.py", "--json")
    done = command(*words, *carrier, cwd=folder)
    assert done.status == 0, done.stderr
    assert json.loads(done.stdout)[-1]["control_packets"] < 1
    # Without the carrier, a scheme that only notes feedback has what the scenario states.
    (folder / "half.py").write_text(re.sub("CARRIER = .*\n", "", HALF.read_text()))
    done = command(*words, "--overwrite", cwd=folder)
    assert json.loads(done.stdout)[-1]["control_packets"] < 1


def test_a_scheme_is_run_as_it_is_compared(command: Command, folder: Path) -> None:
    """Oracle: the effective scenario of the run."""
    done = command("run", "small.toml", "--scheme", "half.py", "--out", "run", cwd=folder)
    assert done.status == 0, done.stderr
    (manifest,) = kept(folder, f"run/**/{MANIFEST}")
    scenario = silvan.Result.read(manifest.parent).scenario
    assert scenario.to_dict()["control"]["feedback"]["carrier"] == "ack-per-packet"


@pytest.mark.parametrize(
    ("file", "messages"),
    [
        ("nofile.py", ("nofile.py", "--schemes")),
        ("carrier.py", ("pigeon", "carrier")),
    ],
)
def test_a_wrong_file_is_refused(
    command: Command, folder: Path, file: str, messages: tuple[str, ...]
) -> None:
    (folder / "carrier.py").write_text(HALF.read_text().replace("ack-per-packet", "pigeon"))
    for kind in (("small.toml",), ("arena.toml", "--arena", "--quick")):
        done = command("compare", *kind, "--schemes", f"hpcc,{file}", cwd=folder)
        assert done.status == 2, done.stderr
        for message in messages:
            assert message in done.stderr
