"""Carrying out a reproduction: figures next to runs, and what an error in one of them stops."""

from __future__ import annotations

import os
import signal
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from silvan.reproduce import experiments
from silvan.reproduce.execution import Evaluated, Evaluating, Failed, RunDone, carry_out
from silvan.reproduce.plan import ReproductionPlan, make_plan
from silvan.results.result import Result
from tests.conftest import Command, made_up_result
from tests.test_interrupt import interrupted

pytestmark = pytest.mark.slow

HOTSPOTS = np.arange(648) < 8


def finished_plan(root: Path, prefix: str, *, without: str = "") -> ReproductionPlan:
    """Plan quick reproductions whose runs exist already.

    Runs of the experiment ``without`` lack the table that all rates are computed from.
    """
    plan = make_plan("gran2012", experiments("gran2012", prefix), quick=True)
    for one, folder in zip(plan.runs, plan.folders(root), strict=True):
        result = made_up_result(one.scenario, one.seed, HOTSPOTS, np.where(HOTSPOTS, 13.6, 0.5))
        if without and one.label.startswith(without):
            tables = {key: table for key, table in result.tables.items() if key != "host_series"}
            result = Result(one.scenario, one.seed, tables, result.summary)
        result.write(folder)
    return plan


def test_an_experiment_is_drawn_when_its_runs_are_there(tmp_path: Path) -> None:
    plan = finished_plan(tmp_path / "runs", "fig9")
    steps = list(carry_out(plan, tmp_path / "runs", tmp_path))
    for name in ("fig9a", "fig9b"):
        start = steps.index(Evaluating(name))
        places = {place for some in plan.needs[name].values() for place in some}
        assert places <= {one.index for one in steps[:start] if isinstance(one, RunDone)}
        (outcome,) = (
            one.outcome
            for one in steps[start:]
            if isinstance(one, Evaluated) and one.outcome.id == name
        )
        assert [path.name for path in outcome.figures] == [
            f"{name}.{suffix}" for suffix in ("png", "svg", "csv")
        ]
        assert all(path.is_file() for path in outcome.figures)
    done = [one for one in steps if isinstance(one, RunDone)]
    assert sorted(one.index for one in done) == list(range(len(plan.runs)))
    assert not any(one.is_new for one in done)
    assert len(steps) == len(done) + 4


def test_an_error_in_one_figure_is_told_and_stops_no_other(
    command: Command, tmp_path: Path
) -> None:
    finished_plan(tmp_path / "runs", "fig9", without="fig9a")
    outcome = command(
        "reproduce", "gran2012", "--only", "fig9", "--quick", "--out", tmp_path, "--json"
    )
    assert outcome.status == 1
    assert outcome.stdout == ""
    error, hint = outcome.stderr.splitlines()[-2:]
    assert error.startswith("error: fig9a: cannot be measured or drawn: KeyError: 'host_series' (")
    assert hint.startswith("hint: finished runs and figures are kept")
    drawn = sorted(path.name for path in (tmp_path / "gran2012-quick").iterdir())
    assert drawn == ["fig9b.csv", "fig9b.png", "fig9b.svg"], "and no report, which would lack one"


def test_a_worker_that_dies_over_a_figure_is_told(tmp_path: Path) -> None:
    plan = finished_plan(tmp_path / "runs", "fig9a")
    steps = []
    for step in carry_out(plan, tmp_path / "runs", tmp_path):
        steps.append(step)
        if isinstance(step, Evaluating):
            for process in Path("/proc/self/task").glob("*/children"):
                for pid in process.read_text().split():
                    os.kill(int(pid), signal.SIGKILL)
    failed = steps[-1]
    assert isinstance(failed, Failed)
    assert failed.experiment == "fig9a"
    assert "the worker process ended (killed by SIGKILL)" in str(failed.error)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_what_is_drawn_when_the_command_ends_is_whole(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    # All figures, so that most are still to be drawn when the first one is there.
    finished_plan(tmp_path / "runs", "fig")
    words: list[str | Path] = ["reproduce", "gran2012", "--only", "fig", "--quick"]
    figures = tmp_path / "gran2012-quick"
    ended, stderr = interrupted(
        [*words, "--out", tmp_path], lambda _: any(figures.glob("*.png")), number
    )
    assert ended == status
    assert "Traceback" not in stderr
    assert not list(figures.glob("report*"))
    assert list(figures.glob("*.png"))
    for drawing in figures.glob("*.svg"):
        ET.parse(drawing)
