"""pft2021's studies in a reduced form."""

from __future__ import annotations

import pytest

import silvan
from silvan.reproduce import ShapeRow, compare, load_targets
from silvan.reproduce.cache import study
from silvan.reproduce.pft2021_interface import FIG1, fixed_rate, gap


def test_figure_1_follows_the_formula_on_its_own_and_in_the_engine() -> None:
    """Oracle: equation (1)."""
    results = {
        case.label: [
            silvan.run(study("pft2021", case.study).override({**case.overrides, **FIG1.quick}))
        ]
        for case in FIG1.cases
    }
    rows = compare(load_targets("pft2021"), FIG1.measure(results))
    assert [row.target.id for row in rows] == ["fig1a", "fig1b"]
    for row in rows:
        assert isinstance(row, ShapeRow)
        assert row.within, row.verdict.whole.facts


def test_shifts_cut_off_what_falls_off_on_the_right() -> None:
    assert [gap(used, n=8) for used in (0, 255, 256, 767, 768)] == [0, 0, 1, 2, 3]
    assert gap(592, m=18) == 592 * 2**18
    assert fixed_rate(0, n=8) == 1


def test_a_throttled_incast_leaves_the_switch_credits() -> None:
    """Oracle: with f(c) far above the share of the receiver's link, c stays near the threshold."""
    scenario = silvan.Scenario(
        fabric={"generator": "single-switch", "hosts": 5},
        link={"speed": "EDR"},
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
