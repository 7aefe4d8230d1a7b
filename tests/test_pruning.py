"""The time that congestion control takes to remove a tree has a lower bound."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest

from silvan.reproduce.registry import study
from silvan_papers.gran2012_pruning import CONTRIBUTORS, pruning_bound
from tests.conftest import Command

TABLE2 = study("gran2012", "table2")


@pytest.mark.parametrize(("contributors", "bound_ms"), [(49, 6), (65, 13), (69, 15), (81, 27)])
def test_the_bound_by_hand(contributors: int, bound_ms: float) -> None:
    """Oracle: a BECN every 1.2 N µs, a step down every 153.6 µs, rounded as by hand."""
    share_us = 1.2047 * contributors
    index = (share_us / 1.037 - 1) / 0.95
    found_index, found_ms = pruning_bound(TABLE2, contributors)
    assert found_index == pytest.approx(index, rel=1e-3)
    assert found_ms == pytest.approx(index / (1 / share_us - 1 / 153.6) / 1000, rel=1e-2)
    assert found_ms == pytest.approx(bound_ms, abs=1)


def test_the_ratio_of_two_bounds_does_not_depend_on_the_slope() -> None:
    steeper = TABLE2.override({"control.ib-cc.adapter.cct": {"shape": "linear", "slope": 1.9}})
    ratios = [pruning_bound(one, 81)[1] / pruning_bound(one, 65)[1] for one in (TABLE2, steeper)]
    assert ratios[0] == pytest.approx(ratios[1]) == pytest.approx(2.09, abs=0.01)


def test_more_than_127_contributors_are_never_slowed_down_enough() -> None:
    # A BECN every 1.2 N µs is rarer than the timer's steps of 153.6 µs.
    assert math.isfinite(pruning_bound(TABLE2, 127)[1])
    assert pruning_bound(TABLE2, 128)[1] == math.inf


@pytest.mark.slow
def test_no_tree_is_removed_before_the_bound(command: Command, tmp_path: Path) -> None:
    """Oracle: the time is above the bound, and below twice the bound plus the time to drain."""
    outcome = command("reproduce", "gran2012", "--only", "beyond.pruning", "--out", tmp_path)
    assert outcome.status == 0, outcome.stderr
    text = (tmp_path / "gran2012" / "beyond-pruning.csv").read_text()
    rows = {int(row["contributors"]): row for row in csv.DictReader(text.splitlines())}
    assert rows.keys() == CONTRIBUTORS.keys()
    for contributors, row in rows.items():
        bound_ms, gone_ms = float(row["bound_ms"]), float(row["gone_ms"])
        assert bound_ms == pytest.approx(pruning_bound(TABLE2, contributors)[1])
        drained_ms = float(row["backlog_mib"]) * 2**20 * 8 / 13.6e6
        assert bound_ms < gone_ms < 2 * bound_ms + drained_ms
    gone = [float(row["gone_ms"]) for row in rows.values()]
    assert gone == sorted(gone)
