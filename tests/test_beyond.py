"""Studies beyond gran2012: valid, optional, and drawn from measurements."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from silvan.execution.cache import cached_runs
from silvan.reproduce import Experiment, experiments
from silvan.reproduce.registry import study
from silvan_papers.gran2012_beyond import EXPERIMENTS, FABRICS
from tests.conftest import Command

IDS = [one.id for one in EXPERIMENTS]


def test_extras_are_run_only_when_asked_for() -> None:
    assert not {one.id for one in experiments("gran2012")} & set(IDS)
    assert [one.id for one in experiments("gran2012", "beyond")] == [*IDS, "beyond.pruning"]
    assert [one.id for one in experiments("gran2012", "beyond.torus")] == ["beyond.torus"]


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=IDS)
def test_every_case_is_a_valid_scenario(experiment: Experiment) -> None:
    labels = [case.label for case in experiment.cases]
    assert len(set(labels)) == len(labels)
    for case in experiment.cases:
        scenario = study("gran2012", case.study).override(case.overrides)
        assert scenario.override(experiment.quick).duration_ps < scenario.duration_ps


def test_the_grids_are_as_large_as_the_figure_says() -> None:
    for fabric, overrides in FABRICS.items():
        facts = study("gran2012", "table2").override(overrides).describe()
        assert facts["hosts"] == (120 if fabric == "fat tree" else 128)
        assert not facts["has_credit_loop"]


def test_a_figure_shows_what_was_measured(tmp_path: Path) -> None:
    torus = next(one for one in EXPERIMENTS if one.id == "beyond.torus")
    runs = []
    for case in torus.cases:
        scenario = study("gran2012", case.study).override(case.overrides)
        runs.append((scenario.override({"run.duration": "500 us"}), 1))
    results = dict(cached_runs(tmp_path / "runs", runs))
    by_label = {case.label: [results[index]] for index, case in enumerate(torus.cases)}
    png, svg, numbers = torus.draw(by_label, tmp_path)
    assert png.stat().st_size > 10_000
    assert "CC off" in svg.read_text("utf-8")
    rows = list(csv.DictReader(numbers.read_text("utf-8").splitlines()))
    assert len(rows) == len(torus.cases)
    for row in rows:
        (result,) = by_label[f"{row['fabric']}, {row['case']}"]
        delivered = sum(result.hosts["delivered_bytes"].to_pylist())
        rate = delivered * 8 / 500e-6 / 1e9 / result.hosts.num_rows
        assert float(row["all_gbps"]) == pytest.approx(rate)


def test_an_unknown_extra_names_those_known(command: Command) -> None:
    done = command("reproduce", "gran2012", "--only", "beyond.nothing")
    assert done.status != 0
    assert "beyond.torus" in done.stderr
