"""pft2021's studies in a reduced form."""

from __future__ import annotations

import pytest

import silvan
from silvan.inputs.toml_text import TomlValue
from silvan.reproduce import ShapeRow, compare, find_paper
from silvan.reproduce.experiment import Measurement
from silvan.reproduce.registry import study
from silvan_papers.pft2021_gpcnet import FIG5, PAPERS_BEST, STRATEGIES, Processes, factors
from silvan_papers.pft2021_interface import FIG1, fixed_rate, gap


def test_figure_1_follows_the_formula_on_its_own_and_in_the_engine() -> None:
    """Oracle: equation (1)."""
    results = {
        case.label: [
            silvan.run(study("pft2021", case.study).override({**case.overrides, **FIG1.quick}))
        ]
        for case in FIG1.cases
    }
    rows = compare(find_paper("pft2021").targets, FIG1.measure(results))
    assert [row.target.id for row in rows] == ["fig1a", "fig1b"]
    for row in rows:
        assert isinstance(row, ShapeRow)
        assert row.within_tolerance, row.verdict.whole.facts


def test_shifts_cut_off_what_falls_off_on_the_right() -> None:
    assert [gap(used, n=8) for used in (0, 255, 256, 767, 768)] == [0, 0, 1, 2, 3]
    assert gap(592, m=18) == 592 * 2**18
    assert fixed_rate(0, n=8) == 1


def test_a_throttled_incast_leaves_the_switch_credits() -> None:
    """Oracle: with f(c) far above the share of the receiver's link, c stays near the threshold."""
    scenario = silvan.Scenario(
        fabric={"generator": "single-switch", "hosts": 5},
        link={"speed": "EDR"},
        switch={"buffer": "64 KiB"},
        packet={"mtu": "2 KiB"},
        traffic={"incast": [{"to": "host-0000"}]},
        control={
            "scheme": "pft",
            "pft": {
                "threshold": "fixed",
                "interval": "fixed",
                "enter": 200,
                "escape": 200,
                "m": 0,
                "n": 0,
            },
        },
        probe={"ports": True, "interval": "10 us"},
        run={"duration": "1 ms", "warm-up": "200 us"},
    )
    throttled = silvan.run(scenario)
    free = silvan.run(scenario.override({"control.scheme": "none"}))

    def waiting(result: silvan.Result) -> int:
        """Give the most bytes that wait for the receiver after the warm-up."""
        series = result.tables["port_series"].to_pylist()
        return max(int(row["queued_bytes"]) for row in series if row["time_ps"] > 2e8)

    # Four senders, each with about 200 credits of 64 bytes in the switch, or with all 1024.
    assert waiting(free) > 3.8 * 64 * 1024
    assert waiting(throttled) < 4.4 * 64 * 300
    received = throttled.hosts["delivered_bytes"][0].as_py()
    assert received == pytest.approx(free.hosts["delivered_bytes"][0].as_py(), rel=0.01)


SMALL: dict[str, TomlValue] = {
    "fabric": {"generator": "single-switch", "hosts": 12},
    "traffic.gpcnet": {
        "ranks-per-host": 2,
        "rings": 2,
        "warm-up": 1,
        "latency-iterations": 4,
        "bandwidth-iterations": 1,
        "allreduce-iterations": 1,
        "bandwidth-bytes": "16 KiB",
        "settle": "100 us",
    },
}


def test_the_control_factor_is_equation_2() -> None:
    """Oracle: means over the marks of the benchmark, row by row."""
    cases = {"none": "none", "AT-FI n=6, 0x250 0x200": "pft"}
    results = {
        name: [silvan.run(study("pft2021", "gpcnet").override({**SMALL, "control.scheme": scheme}))]
        for name, scheme in cases.items()
    }

    def ratio(result: silvan.Result) -> float:
        spans: dict[str, list[float]] = {}
        for row in result.tables["program_marks"].to_pylist():
            spans.setdefault(row["label"], []).append(row["end_ps"] - row["begin_ps"])
        # One iteration of bandwidth in each ring, so that a rank's mean is its rate.
        rates = [1 / span for span in spans["rr-bandwidth-sync"]]
        return (sum(rates) / len(rates)) / (sum(spans["rr-latency"]) / len(spans["rr-latency"]))

    ((name, factor),) = factors(results).items()
    assert factor.tolist() == pytest.approx([ratio(results[name][0]) / ratio(results["none"][0])])
    # Two ranks on each host that measures, in two rings.
    jobs = results["none"][0].tables["programs"].to_pylist()
    measuring = sum(job["ranks"] for job in jobs if not job["background"])
    assert measuring >= 4
    assert len(Processes.of(results["none"][0]).delays_us) == 2 * measuring


def test_a_factor_pairs_runs_with_the_same_placement() -> None:
    """Oracle: B / D of each run, divided seed by seed; the stated number is the paper's own."""
    scenario = study("pft2021", "gpcnet").override({**SMALL, "control.scheme": "none"})
    runs = [silvan.run(scenario, seed=seed) for seed in (1, 2, 3)]
    assert len({round(Processes.of(run).ratio, 6) for run in runs}) == 3, "placements differ"
    results = {
        "none": runs,
        PAPERS_BEST: runs,
        "FT-FI n=6, 0x100 0x80": [runs[1], runs[0], runs[2]],
        "FT-RI m=18, 0x100 0x80": runs[:1],
        "AT-FI n=6, 0x100 0x80": runs[:1],
    }
    found = factors(results)
    assert found[PAPERS_BEST].tolist() == [1, 1, 1]
    swapped = Processes.of(runs[1]).ratio / Processes.of(runs[0]).ratio
    assert found["FT-FI n=6, 0x100 0x80"].tolist() == pytest.approx([swapped, 1 / swapped, 1])
    assert found["FT-RI m=18, 0x100 0x80"].tolist() == [1]
    (stated, _) = FIG5.measure(results)
    assert isinstance(stated, Measurement)
    assert list(stated.values) == [1, 1, 1]
    # x + 1/x is above 2, so the swapped runs look best by chance alone, and are only noted.
    assert "FT-FI n=6" in stated.note


def test_the_grid_has_every_strategy_and_the_papers_best() -> None:
    labels = [case.label for case in FIG5.cases]
    assert len(labels) == len(set(labels))
    assert labels[:2] == ["none", PAPERS_BEST]
    assert all(case.seeds >= 3 for case in FIG5.cases)
    settings = next(case.overrides for case in FIG5.cases if case.label == PAPERS_BEST)
    assert settings["control.pft.m"] == 18
    assert (settings["control.pft.enter"], settings["control.pft.escape"]) == (0x250, 0x2A0)
    for strategy in STRATEGIES:
        assert sum(one.startswith(strategy) for one in labels) >= 4
