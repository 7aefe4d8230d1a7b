"""The DCMS and other schemes on gran2012's forests."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

import silvan
from silvan.inputs.toml_text import TomlValue
from silvan.reproduce.registry import study
from silvan.results.receive_rates import jain_index
from silvan_papers.forests import FORESTS, forest_cases, tabulate_forests
from silvan_papers.mizero2017_forests import SCHEMES, _dcms

SMALL: Mapping[str, TomlValue] = {
    "fabric.generator": "k-ary-n-tree",
    "fabric.k": 4,
    "fabric.n": 2,
    "traffic.nodes.hotspots": 2,
    "run.duration": "1 ms",
    "probe.interval": "50 us",
}
TWO = {name: SCHEMES[name] for name in ("CC off", "Marking_Rate 0 (Table I)")}


def test_thresholds_of_the_papers_own_interval_are_the_papers() -> None:
    theirs = study("mizero2017", "experiment2").to_dict()["control"]["dcms"]
    ours = study("mizero2017", "fat-tree-648").override(_dcms(1_250_000)).to_dict()["control"]
    for key in ("interval", "congestion-threshold", "rate-reduction-threshold", "low-duration"):
        assert ours["dcms"][key] == theirs[key], key
    # Links are half as fast.
    change = "utilization-change-threshold"
    assert 2 * ours["dcms"][change] == theirs[change]
    assert ours["ib-cc"]["switch"]["marking-rate"] == 128


def test_the_table_agrees_with_the_counters_of_the_hosts() -> None:
    base = study("mizero2017", "fat-tree-648")
    results = {
        case.label: (silvan.run(base.override({**case.overrides, **SMALL})),)
        for case in forest_cases("fat-tree-648", TWO)
    }
    table = tabulate_forests(results, TWO, whole=True)
    assert [row[:2] for row in table.rows] == [(kind, name) for kind in FORESTS for name in TWO]
    for row, (result,) in zip(table.rows, results.values(), strict=True):
        rates = result.measures
        assert row[4] == pytest.approx(rates["total_gbps"])
        if str(row[0]).startswith("moving"):
            assert row[2] != row[2], "no host is a hotspot all the time"
            assert row[3] == pytest.approx(rates["total_gbps"] / 16)
        else:
            assert row[2] == pytest.approx(rates["hotspots_gbps"])
            assert row[3] == pytest.approx(rates["other_receivers_gbps"])
        assert 0 < float(row[5]) <= 1


def test_an_even_share_has_index_one() -> None:
    assert jain_index([3.0, 3.0, 3.0]) == pytest.approx(1)
    assert jain_index([3.0, 0.0, 0.0]) == pytest.approx(1 / 3)
