"""A paper that another package announces is reproduced by the command."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.conftest import Command

MODULE = """\
from pathlib import Path
from silvan.reproduce import Case, Experiment, Measurement, Paper, Target


def measure(results):
    (run,) = results["three to one"]
    rate = run.measures["total_gbps"]
    return [Measurement("incast.total", (rate,), (rate,))]


PAPER = Paper(
    "mine2027",
    Path(__file__).parent,
    {"incast.total": Target("incast.total", "total receive rate, Gbit/s", 13.5, 0.02)},
    (
        Experiment(
            "incast",
            "Three hosts send to one",
            (Case("three to one", "incast", 1),),
            ("whole", "steady"),
            {},
            "",
            measure,
            lambda results, folder: (),
        ),
    ),
)
"""
STUDY = """\
name = "incast"
[fabric]
generator = "single-switch"
hosts = 4
[host]
sink-rate = "13.5 Gbit/s"
[[traffic.incast]]
to = "host-0000"
[run]
warm-up = "100 us"
duration = "500 us"
"""


def write_package(site: Path, module: str = MODULE) -> Path:
    """Install a package with a paper, as pip would, into a separate folder."""
    info = site / "mine-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[silvan.papers]\nmine2027 = mine2027:PAPER\n")
    (site / "mine2027.py").write_text(module)
    (site / "incast.toml").write_text(STUDY)
    return site


@pytest.mark.slow
def test_a_paper_of_another_package_is_reproduced(
    tmp_path: Path, process: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = [str(write_package(tmp_path / "site")), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, search)))
    done = process("reproduce", "mine2027", "--json", "--out", "out", cwd=tmp_path)
    assert done.status == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert row["id"] == "incast.total"
    assert row["measured"] == pytest.approx(13.5, rel=0.02)
    assert row["within_tolerance"]


def test_without_the_package_the_command_lists_the_installed_papers(
    tmp_path: Path, command: Command
) -> None:
    done = command("reproduce", "mine2027", cwd=tmp_path)
    assert done.status == 2
    assert "mine2027" in done.stderr
    assert "gran2010, gran2012, leonardo2025, mizero2017, pft2021, santos2003" in done.stderr
