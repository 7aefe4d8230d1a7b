"""The studies of gran2012: their traffic, and their numbers from runs whose rates are known."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import silvan
from silvan.reproduce import (
    Case,
    ClauseResult,
    Experiment,
    Measurement,
    Verdict,
    experiments,
    find_paper,
)
from silvan.reproduce.plan import make_plan
from silvan.reproduce.registry import study
from silvan.reproduce.shapes import Clause, judge
from silvan_papers.gran2012_cases import (
    MOVES,
    P_PERCENT,
    lifetime_ms,
    moving_silent,
    moving_windy,
    windy,
)
from silvan_papers.quantities import (
    farthest,
    mean_of,
    rates,
    ratio,
    ratio_of_pairs,
    windows_in_words,
)
from tests.conftest import made_up_result

HOTSPOTS = np.arange(648) < 8
INJECTION_GBPS = 13.5

Rate = Callable[[Case], tuple[float, float]]
"""Rates of a hotspot and of another host in a case, in Gbit/s."""


def experiment(name: str) -> Experiment:
    """Find one experiment."""
    (one,) = experiments("gran2012", name)
    return one


_SCENARIOS: dict[str, silvan.Scenario] = {}


def scenario(case: Case) -> silvan.Scenario:
    """Build the scenario of a case, once for all tests: checking a large fabric takes time."""
    if case.label not in _SCENARIOS:
        _SCENARIOS[case.label] = study("gran2012", case.study).override(case.overrides)
    return _SCENARIOS[case.label]


def nodes(case: Case) -> dict[str, float | str]:
    """Give the table of V, C and B nodes of a case."""
    table: dict[str, float | str] = scenario(case).to_dict()["traffic"]["nodes"]
    return table


def control_of(case: Case) -> str:
    """Tell whether congestion control is on or off in a case."""
    return "off" if case.overrides.get("control.scheme") == "none" else "on"


def made_up(one: Experiment, rate: Rate) -> dict[str, list[silvan.Result]]:
    """Make a result for each case: the rates of a hotspot and of another host in Gbit/s."""
    results = {}
    for case in one.cases:
        hot, other = rate(case)
        rates_gbps = np.where(HOTSPOTS, hot, other)
        results[case.label] = [
            made_up_result(scenario(case), seed, HOTSPOTS, rates_gbps, interval_ms=10)
            for seed in range(1, case.seeds + 1)
        ]
    return results


def measured(one: Experiment, rate: Rate) -> dict[str, float]:
    """Measure made-up results: the numbers by target."""
    found = one.measure(made_up(one, rate))
    return {item.id: item.values[0] for item in found if isinstance(item, Measurement)}


def verdicts(one: Experiment, rate: Rate) -> dict[str, tuple[bool, str]]:
    """Judge made-up results: what was found by target."""
    found = one.measure(made_up(one, rate))
    return {
        item.id: (item.whole.holds, item.whole.facts) for item in found if isinstance(item, Verdict)
    }


def p_of(case: Case) -> int:
    """Give the share p of a case, in per cent."""
    p = case.overrides["traffic.nodes.p"]
    assert isinstance(p, int)
    return p


def moves_of(case: Case) -> int:
    """Give how often the hotspots move in 0.1 s."""
    lifetime = case.overrides["traffic.nodes.hotspot-lifetime"]
    assert isinstance(lifetime, str)
    return round(1e11 / float(lifetime.removesuffix(" ps")))


@pytest.mark.parametrize("b_percent", [25, 50, 75, 100])
@pytest.mark.parametrize("p_percent", P_PERCENT)
def test_tmax_has_a_closed_form(b_percent: int, p_percent: int) -> None:
    # In a large network: the shares of V nodes, and of B nodes times the part that they send to
    # all.
    one = scenario(windy(b_percent, p_percent, "on"))
    b, p = b_percent / 100, p_percent / 100
    expected = INJECTION_GBPS * (0.2 * (1 - b) + b * (1 - p))
    # Counts of hosts are whole, and a host does not send to itself.
    assert one.tmax_gbps(seed=7) == pytest.approx(expected, abs=INJECTION_GBPS / 648)


def test_every_figure_has_the_points_of_the_paper() -> None:
    assert tuple(range(0, 101, 10)) == P_PERCENT
    assert (lifetime_ms(MOVES[0]), lifetime_ms(MOVES[-1])) == (10, 1)
    cases = {one.id: len(one.cases) for one in experiments("gran2012", "fig")}
    assert cases["fig5"] == cases["fig6"] == cases["fig7"] == cases["fig8"] == 11 * 2
    assert cases["fig9a"] == cases["fig9b"] == 10 * 2
    assert cases["fig10"] == 3 * 10 * 2


@pytest.mark.parametrize(
    ("case", "v", "c", "b"),
    [
        (windy(25, 60, "on"), 0.15, 0.6, 0.25),
        (windy(100, 60, "on"), 0, 0, 1),
        (moving_silent(60, 10, "on"), 0.6, 0.4, 0),
        (moving_windy(60, 10, "on"), 0, 0, 1),
    ],
)
def test_nodes_are_divided_as_the_paper_says(case: Case, v: float, c: float, b: float) -> None:
    table = nodes(case)
    assert [table["v"], table["c"], table["b"]] == pytest.approx([v, c, b])
    assert table["hotspots"] == 8


@pytest.mark.parametrize("moves", MOVES)
def test_hotspots_move_as_often_as_asked(moves: int) -> None:
    case = moving_silent(20, moves, "off")
    lifetime_ps = float(str(case.overrides["traffic.nodes.hotspot-lifetime"]).split()[0])
    # The slots of one run, the last of which ends with the run and not before.
    assert -(-scenario(case).duration_ps // int(lifetime_ps)) == moves


def test_nothing_but_traffic_and_control_differs_from_table2() -> None:
    base = study("gran2012", "table2").to_dict()
    for one in experiments("gran2012", "fig"):
        for case in (one.cases[0], one.cases[-1]):
            tables = scenario(case).to_dict()
            names = ["fabric", "link", "switch", "host", "packet"]
            # Runs that look at congestion trees are short, and no numbers are read off them.
            if "trees" not in tables["probe"]:
                names += ["probe", "run"]
            for name in names:
                assert tables[name] == base[name], (one.id, name)
            if control_of(case) == "on":
                assert tables["control"] == base["control"]


def test_figure_5_measures_what_its_targets_say() -> None:
    # Constant rates, so that every number follows by hand.
    one = experiment("fig5")
    off = {0: 0.5, 10: 0.4}
    on = {0: 4.5, 10: 3.0}

    def rate(case: Case) -> tuple[float, float]:
        p = p_of(case)
        if control_of(case) == "off":
            return 13.6, off.get(p, 0.2)
        return (13.0 if p == 30 else 13.3), on.get(p, 2.0)

    numbers = measured(one, rate)
    tmax = {p: scenario(windy(25, p, "on")).tmax_gbps(1) for p in P_PERCENT}
    assert numbers["fig5a.p0.on"] == pytest.approx(4.5)
    assert numbers["fig5a.p0.off"] == pytest.approx(0.5)
    assert numbers["fig5a.p0.tmax"] == pytest.approx(5.4, rel=1e-3)
    assert numbers["fig5a.p10.on_over_tmax"] == pytest.approx(3.0 / tmax[10])
    assert numbers["fig5a.p10.on_over_off"] == pytest.approx(3.0 / 0.4)
    high = [2.0 / tmax[p] for p in (60, 70, 80, 90, 100)]
    assert numbers["fig5a.p60.on_over_tmax"] == pytest.approx(np.mean(high))
    assert numbers["fig5a.p60.on_over_off"] == pytest.approx(10)
    assert numbers["fig5b.off"] == pytest.approx(13.6)
    assert numbers["fig5b.on"] == pytest.approx(13.0), "the one that is farthest from 13.3"
    assert numbers["fig5a.p0.on_over_off"] == pytest.approx(9)
    assert numbers["fig5a.p0.on_over_tmax"] == pytest.approx(4.5 / tmax[0])
    assert numbers["fig5a.least_gain"] == pytest.approx(10)
    kept = (10 * 13.3 + 13.0) / 11 / 13.6
    assert numbers["fig5b.on_over_off"] == pytest.approx(kept)
    total = (8 * 13.3 + 640 * 2.0) / (8 * 13.6 + 640 * 0.2)
    assert numbers["fig5c.p60"] == numbers["fig5c.p100"] == pytest.approx(total)


@pytest.mark.parametrize(("peak", "holds"), [(60, True), (70, True), (40, False)])
def test_the_peaks_of_figure_5_are_judged_by_their_place(peak: int, *, holds: bool) -> None:
    def rate(case: Case) -> tuple[float, float]:
        return 13.6, 0.2 if control_of(case) == "off" else tent(case, peak)

    found = verdicts(experiment("fig5"), rate)
    for name in ("fig5a.peak", "fig5c.peak"):
        assert found[name] == (holds, f"largest at p = {peak}: {'yes' if holds else 'no'}")


def test_percentages_of_table_2_follow_from_its_rates() -> None:
    rates = {
        "nohot.cc_off": (2.7, 2.7),
        "nohot.cc_on": (2.7, 2.7),
        "hot.cc_off": (13.6, 0.17),
        "hot.cc_on": (13.3, 2.25),
    }
    numbers = measured(experiment("table2"), lambda case: rates[case.label])
    assert numbers["table2.hot.hotspots_on_over_off"] == pytest.approx(13.3 / 13.6)
    assert numbers["table2.hot.nonhotspots_on_over_off"] == pytest.approx(2.25 / 0.17)
    assert numbers["table2.hot.nonhotspots_of_alone"] == pytest.approx(2.25 / 2.7)
    totals = [8 * hot + 640 * other for hot, other in ((13.3, 2.25), (13.6, 0.17))]
    assert numbers["table2.total.on_over_off"] == pytest.approx(totals[0] / totals[1])


@pytest.mark.parametrize(
    ("of_tmax", "hotspot_gbps", "uniform_gbps", "holds"),
    [
        (0.96, 13.3, 13.3, (True, True)),
        (0.94, 13.3, 13.3, (False, True)),
        (0.96, 13.2, 13.3, (True, False)),
        # A drop of 2.9 % at p = 0, and one of 3.1 %.
        (0.96, 13.3, 13.2, (True, True)),
        (0.96, 13.3, 13.17, (True, False)),
    ],
)
def test_figure_8_is_judged_by_its_rules(
    of_tmax: float, hotspot_gbps: float, uniform_gbps: float, holds: tuple[bool, bool]
) -> None:
    one = experiment("fig8")

    def rate(case: Case) -> tuple[float, float]:
        if control_of(case) == "off":
            return 13.6, 0.1
        hotspot = hotspot_gbps if p_of(case) else uniform_gbps
        return hotspot, of_tmax * INJECTION_GBPS * (1 - p_of(case) / 100)

    found = verdicts(one, rate)
    assert (found["fig8a.high_p"][0], found["fig8b"][0]) == holds


def tent(case: Case, peak: int) -> float:
    """Give a gain that rises up to a peak and falls again, more steeply with more B nodes."""
    b = float(str(case.overrides["traffic.nodes.b"]))
    return 100 + 10 * b - 0.4 * b * abs(p_of(case) - peak)


@pytest.mark.parametrize(("peak", "holds"), [(60, True), (70, True), (30, False)])
def test_figures_6_and_7_are_judged_by_the_place_of_the_peak(peak: int, *, holds: bool) -> None:
    one = experiment("fig6_7")

    def rate(case: Case) -> tuple[float, float]:
        gain = 1.0 if control_of(case) == "off" else tent(case, peak)
        return gain, gain

    found, facts = verdicts(one, rate)["fig6_7"]
    assert found is holds, facts
    assert f"50: {peak}, 75: {peak}" in facts


def test_figure_9_measures_all_hosts() -> None:
    def rate(case: Case) -> tuple[float, float]:
        return 13.6, 0.3 if control_of(case) == "off" else 0.6 - moves_of(case) / 1000

    numbers = measured(experiment("fig9a"), rate)

    def everyone(other: float) -> float:
        return (8 * 13.6 + 640 * other) / 648

    assert numbers["fig9a.10ms.on"] == pytest.approx(everyone(0.59))
    assert numbers["fig9a.10ms.off"] == pytest.approx(everyone(0.3))
    assert numbers["fig9a.2ms.on_over_off"] == pytest.approx(everyone(0.55) / everyone(0.3))
    assert numbers["fig9a.1ms.on_over_off"] == pytest.approx(everyone(0.5) / everyone(0.3))


@pytest.mark.parametrize(
    ("off", "on", "holds"),
    [
        (lambda moves: 0.3 + moves / 200, lambda moves: 0.6 + moves / 300, True),
        # The rate without CC falls; then on/off rises.
        (lambda moves: 0.6 - moves / 300, lambda moves: 0.9 + moves / 300, False),
        (lambda moves: 0.3 + moves / 300, lambda moves: 0.3 + moves / 100, False),
    ],
)
def test_figure_9_is_judged_over_the_lifetimes(
    off: Callable[[int], float], on: Callable[[int], float], *, holds: bool
) -> None:
    def rate(case: Case) -> tuple[float, float]:
        return 13.6, (off if control_of(case) == "off" else on)(moves_of(case))

    for figure in ("fig9a", "fig9b"):
        found, facts = verdicts(experiment(figure), rate)[f"{figure}.lifetime"]
        assert found is holds, facts


@pytest.mark.parametrize(
    ("gain", "holds"),
    [
        (lambda moves: 2 - moves / 200, True),
        (lambda moves: 1 + moves / 200, False),
        (lambda moves: 1.5 - moves / 150, False),
    ],
)
def test_figure_10_is_judged_by_its_rules(gain: Callable[[int], float], *, holds: bool) -> None:
    def rate(case: Case) -> tuple[float, float]:
        value = 1.0 if control_of(case) == "off" else gain(moves_of(case))
        return value, value

    found, facts = verdicts(experiment("fig10"), rate)["fig10"]
    assert found is holds, facts


def test_every_target_is_measured_by_its_experiment() -> None:
    asked = {target for target in find_paper("gran2012").targets if not target.startswith("table2")}
    given = set()
    for one in experiments("gran2012", "fig"):
        given |= {item.id for item in one.measure(made_up(one, lambda _case: (13.0, 1.0)))}
    assert given == asked


@pytest.mark.slow
def test_quick_points_suffice_for_every_number_and_figure(tmp_path: Path) -> None:
    curves = [one for one in experiments("gran2012", "fig") if one.tabulate is not None]
    assert len(curves) > 5
    for one in curves:
        results = made_up(one, lambda _case: (13.0, 1.0))
        fewer = {case.label: results[case.label] for case in one.cases if case.quick}
        assert len(fewer) < len(results)
        assert [item.id for item in one.measure(fewer)] == [
            item.id for item in one.measure(results)
        ]
        assert one.tabulate is not None
        table = one.tabulate(fewer)
        assert len(table.rows) == len(fewer) // 2
        # A figure of each kind; drawing takes longer than the other tests together.
        if one.id in ("fig5", "fig6_7", "fig10"):
            paths = one.draw(fewer, tmp_path)
            assert {path.suffix for path in paths} == {".png", ".svg", ".csv"}
            csv = (tmp_path / f"{one.id}.csv").read_text().splitlines()
            assert csv[0] == ",".join(table.header)
            assert len(csv) == 1 + len(table.rows)


def test_equal_runs_are_planned_once() -> None:
    some = [experiment("fig6"), experiment("fig6_7")]
    plan = make_plan("gran2012", some, seeds=2)
    # 25, 50 and 75 % B nodes, eleven values of p, control off and on, two seeds.
    assert len(plan.runs) == len({(one.scenario.hash, one.seed) for one in plan.runs}) == 132
    assert sorted(one.seed for one in plan.runs) == [1] * 66 + [2] * 66
    for label, places in plan.needs["fig6"].items():
        assert plan.needs["fig6_7"][label] == places
        assert [plan.runs[place].seed for place in places] == [1, 2]
    weights = [one.weight for one in plan.runs]
    assert weights == sorted(weights, reverse=True)


def test_rates_average_each_window() -> None:
    one = windy(25, 0, "on")
    result = made_up_result(scenario(one), 1, HOTSPOTS, np.where(HOTSPOTS, 13.6, 2.0))
    found = rates([result, result])
    np.testing.assert_allclose(found.others, np.full((2, 2), 2.0))
    np.testing.assert_allclose(found.hotspots, np.full((2, 2), 13.6))
    np.testing.assert_allclose(found.total, np.full((2, 2), 8 * 13.6 + 640 * 2.0))


def test_a_ratio_pairs_equal_seeds_and_uses_the_mean_for_seeds_that_were_not_run() -> None:
    off = np.array([[1.0, 2.0, 4.0], [1.0, 2.0, 4.0]])
    on = np.array([[8.0, 12.0, 16.0], [4.0, 4.0, 4.0]])
    np.testing.assert_array_equal(ratio(on, off), [[8, 6, 4], [4, 2, 1]])
    # One seed with control: it covers the others.
    np.testing.assert_array_equal(ratio(on[:, :1], off), [[8, 4, 2], [4, 2, 1]])
    # Two of three: the mean of 8 and 12 replaces the third.
    np.testing.assert_array_equal(ratio(on[:, :2], off), [[8, 6, 2.5], [4, 2, 1]])
    np.testing.assert_array_equal(ratio(on, off[:, :1]), [[8, 12, 16], [4, 4, 4]])
    # With moving hotspots only the pairs count.
    np.testing.assert_array_equal(ratio_of_pairs(on[:, :1], off), [[8], [4]])
    np.testing.assert_array_equal(ratio_of_pairs(on, off), ratio(on, off))
    np.testing.assert_array_equal(mean_of([on, off[:, :2]]), [[4.5, 7], [2.5, 3]])


@pytest.mark.parametrize("name", ["table2", "fig5", "fig6", "fig8", "fig9a", "fig9b", "fig10"])
def test_numbers_that_rest_on_control_off_have_five_seeds(name: str) -> None:
    """Oracle: the ids of the targets, which say whether a number rests on a run with CC off."""
    one = experiment(name)
    for case in one.cases:
        assert case.seeds >= (3 if control_of(case) == "off" else 1), case.label
    found = one.measure(made_up(one, lambda _case: (13.0, 1.0)))
    for item in found:
        if isinstance(item, Measurement):
            rests_on_off = "off" in item.id or item.id.startswith(("fig5c", "fig8c"))
            assert len(item.values) >= (5 if rests_on_off else 1), item.id


def test_stated_ratios_are_of_the_same_seeds() -> None:
    seeds = {case.label: case.seeds for one in experiments("gran2012", "fig") for case in one.cases}
    for point in ("25 % B, p = 10", "25 % B, p = 60", "100 % B, p = 0", "100 % B, p = 90"):
        assert seeds[f"{point}, CC on"] == seeds[f"{point}, CC off"] == 5
    for point in ("20 % V, 10 moves", "20 % V, 50 moves", "60 % V, 100 moves"):
        assert seeds[f"{point}, CC on"] == seeds[f"{point}, CC off"] == 5


def test_the_spread_over_the_seeds_is_in_the_table() -> None:
    one = experiment("fig6")
    results = made_up(one, lambda _case: (13.0, 1.0))
    label = "50 % B, p = 30, CC off"
    case = next(each for each in one.cases if each.label == label)
    values = (1.0, 2.0, 4.0)
    results[label] = [
        made_up_result(scenario(case), seed, HOTSPOTS, np.where(HOTSPOTS, 13.6, rate), 10)
        for seed, rate in enumerate(values, start=1)
    ]
    assert one.tabulate is not None
    table = one.tabulate(results)
    rows = [dict(zip(table.header, row, strict=True)) for row in table.rows]
    row = next(each for each in rows if each["p_percent"] == 30)
    assert (row["seeds_off"], row["seeds_on"]) == (3, 1)
    assert row["others_off_gbps"] == pytest.approx(statistics.fmean(values))
    assert row["others_off_gbps_sd"] == pytest.approx(statistics.stdev(values))
    assert row["others_on_gbps_sd"] == ""
    assert row["others_on_over_off"] == pytest.approx(statistics.fmean([1, 1 / 2, 1 / 4]))
    assert row["others_on_over_off_sd"] == pytest.approx(statistics.stdev([1, 1 / 2, 1 / 4]))


def test_windows_are_named_by_the_length_of_the_run() -> None:
    one = windy(25, 0, "on")

    def named(duration: str) -> tuple[str, str]:
        shorter = scenario(one).override({"run.duration": duration})
        return windows_in_words({"a": [made_up_result(shorter, 1, HOTSPOTS, np.ones(648))]})

    assert named("100 ms") == ("the whole run of 100 ms", "its last 30 ms")
    assert named("5 ms")[0] == "the whole run of 5 ms"
    assert "its last" not in named("5 ms")[1]


def test_the_farthest_point_is_chosen_in_each_window() -> None:
    # Means over the seeds: 2 and 9 at one point, 2.1 and 5 at the other.
    curves = {0: np.array([[1.0, 3.0], [9.0, 9.0]]), 10: np.array([[2.1, 2.1], [5.0, 5.0]])}
    whole, steady = farthest(curves, 2.0)
    np.testing.assert_array_equal(whole, [2.1, 2.1])
    np.testing.assert_array_equal(steady, [9.0, 9.0])


def test_a_shape_holds_where_all_its_clauses_do() -> None:
    clauses = [
        Clause("first", lambda window: ClauseResult(True, f"a{window}")),
        Clause("second", lambda window: ClauseResult(window == 0, f"b{window}")),
    ]
    found = judge("t", clauses)
    assert found.rule == "(1) first; (2) second"
    assert found.whole == ClauseResult(True, "(1) a0: yes; (2) b0: yes")
    assert found.steady == ClauseResult(False, "(1) a1: yes; (2) b1: no")
