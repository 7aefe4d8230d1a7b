"""The prediction of congestion that was measured on Leonardo, in a reduced form."""

from __future__ import annotations

import csv
import itertools
from collections import Counter
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

import silvan
from silvan.reproduce.registry import study
from silvan_papers.leonardo2025 import (
    CONGESTION,
    compared,
    kendall_tau,
    placements_tau,
    predictions,
    share_within,
    slowest_us,
    write_predictions,
)
from silvan_papers.leonardo2025_jobs import LEAVES_PER_CELL, RAILS, SIZES, cells, jobs, label

QUIET = "2025-12-15_13-35-04-380838"
BESIDE = "2025-12-15_13-35-09-363597"


def frozen() -> list[dict[str, str]]:
    """Read the predictions that were made before they were compared."""
    path = resources.files("silvan_papers").joinpath("studies", "leonardo2025", "predictions.csv")
    return list(csv.DictReader(path.read_text("utf-8").splitlines()))


def test_every_job_and_size_has_its_prediction() -> None:
    rows = frozen()
    found = {(row["job"], int(row["bytes"])) for row in rows}
    assert found == set(itertools.product(jobs(), SIZES))
    assert len(rows) == len(found)
    assert all(row["victim"] == jobs()[row["job"]].victim for row in rows)
    assert all(float(row["mean_us"]) > 0 for row in rows)


def test_jobs_are_whole() -> None:
    """Oracle: the measurements' own description of the placements."""
    every = jobs()
    assert len(every) == 215
    for job in every.values():
        nodes = (*job.victims, *job.aggressors)
        assert len({node.name for node in nodes}) == len(nodes)
        assert all(node.leaf in range(LEAVES_PER_CELL) for node in nodes)
        most = max(Counter((node.cell, node.leaf) for node in nodes).values())
        assert most <= (2 if job.nodes <= 64 else 3)
    assert {row["job"] for row in cells()} <= set(every)


def test_programs_are_where_the_jobs_were() -> None:
    """Oracle: the leaf that the fabric itself gives each host."""
    job = jobs()[BESIDE]
    (case,) = (case for case in CONGESTION.cases if case.label == label(job, 64, aggressors=True))
    scenario = study("leonardo2025", case.study).override(case.overrides)
    graph = scenario.to_networkx()
    used = sorted({node.cell for node in (*job.victims, *job.aggressors)})
    programs = scenario.tables["traffic"]["program"]
    for program, nodes in zip(programs, (job.victims, job.aggressors), strict=True):
        for place, node in enumerate(nodes):
            rails = program["hosts"][RAILS * place : RAILS * (place + 1)]
            leaves = {leaf for host in rails for leaf in graph.neighbors(host)}
            digits = len(str(len(used) - 1)) if len(used) > 10 else 2
            group = f"{used.index(node.cell):0{digits}}"
            assert leaves == {f"group-{group}-leaf-{node.leaf:02}"}


def test_cells_have_a_cable_for_each_pair_and_spine() -> None:
    job = next(one for one in jobs().values() if one.nodes == 128)
    (case,) = (
        case
        for case in CONGESTION.cases
        if case.label == label(job, 64, aggressors=job.aggressor != "none")
    )
    graph = study("leonardo2025", case.study).override(case.overrides).to_networkx()
    spines = [name for name in graph if "spine" in name]
    for spine in spines[:: len(spines) // 7]:
        groups = [name.split("-")[1] for name in graph.neighbors(spine) if "spine" in name]
        assert len(groups) == len(set(groups)) == case.overrides["fabric.global-per-spine"]


def test_states_are_combined_by_their_shares_of_time() -> None:
    """Oracle: iterations counted over many bursts and pauses."""
    job = next(one for one in jobs().values() if one.pause_s == 0.01 and one.burst_s == 0.1)
    operation = (len(job.aggressors) - 1) * (2 << 20) * 8 / 196.5e9
    burst_us = np.ceil(0.1 / operation) * operation * 1e6
    with_us, without_us = 50.0, 10.0
    done = burst_us / with_us + 10_000 / without_us
    assert job.mean_us(with_us, without_us) == pytest.approx((burst_us + 10_000) / done)
    steady = next(one for one in jobs().values() if one.aggressor == "Inc" and not one.pause_s)
    assert steady.mean_us(with_us, without_us) == with_us


def test_scores() -> None:
    generator = np.random.default_rng(5)
    one, other = generator.random(40), generator.random(40)
    pairs = list(itertools.combinations(range(40), 2))
    by_hand = sum(np.sign((one[i] - one[j]) * (other[i] - other[j])) for i, j in pairs)
    assert kendall_tau(one.tolist(), other.tolist()) == pytest.approx(by_hand / len(pairs))
    assert share_within([1.29, 1.31, 1 / 1.29, 0.5], 1.3) == 0.5
    perfect = {(row["job"], int(row["bytes"])): float(row["mean_us"]) for row in cells()}
    found = compared(perfect)
    assert share_within([cell.factor for cell in found], 1.001) == 1.0
    assert placements_tau(found) == 1.0
    assert sum(cell.is_slow for cell in found) == 167


def test_a_job_is_predicted_and_written(tmp_path: Path) -> None:
    """Oracle: the frozen prediction, made by the same scenario."""
    wanted = {label(jobs()[QUIET], size, aggressors=False) for size in (64, 262144)}
    chosen = [case for case in CONGESTION.cases if case.label in wanted]
    results = {
        case.label: [silvan.run(study("leonardo2025", case.study).override(case.overrides))]
        for case in chosen
    }
    found = predictions(results)
    assert set(found) == {(QUIET, 64), (QUIET, 262144)}
    for result in results.values():
        assert 0 < slowest_us(result[0], steady=True) < 2 * slowest_us(result[0])
    before = {(row["job"], int(row["bytes"])): float(row["mean_us"]) for row in frozen()}
    for key, value in found.items():
        assert value == pytest.approx(before[key], rel=1e-3)
    write_predictions(found, tmp_path / "predictions.csv")
    header, *rows = (tmp_path / "predictions.csv").read_text().splitlines()
    assert header == "job,victim,bytes,mean_us"
    assert len(rows) == 2
