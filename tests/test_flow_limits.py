"""Samples of the limits that congestion control sets to flows."""

from __future__ import annotations

from collections import defaultdict

import pytest

import silvan

TIMER_PS = 150 * 1_024_000
"""An expiry of CCTI_Timer lowers each CCTI by one."""


ONE_SWITCH = 'generator = "single-switch"\nhosts = 7'
TREE = 'generator = "k-ary-n-tree"\nk = 2\nn = 3'


def incast(fabric: str = ONE_SWITCH, **changes: object) -> silvan.Scenario:
    """Six hosts send to the seventh, and stop after the fourth of 20 samples."""
    text = f"""
name = "limits"
[fabric]
{fabric}
[[traffic.incast]]
to = "host-0006"
end = "614400 ns"
[control]
scheme = "ib-cc"
[control.ib-cc.adapter]
ccti-timer = 150
[probe]
interval = "153600 ns"
flow-limits = true
[run]
duration = "3072 us"
"""
    return silvan.Scenario.from_toml(text).override(
        {key.replace("__", ".").replace("_", "-"): value for key, value in changes.items()}
    )


def courses(result: silvan.Result) -> dict[tuple[int, int, int], dict[int, int]]:
    """CCTI of each flow by sample."""
    found: dict[tuple[int, int, int], dict[int, int]] = defaultdict(dict)
    for row in result.tables["flow_limits"].to_pylist():
        assert row["time_ps"] % TIMER_PS == 0
        sample = row["time_ps"] // TIMER_PS
        found[row["source"], row["destination"], row["sl"]][sample] = row["ccti"]
    return found


def test_index_falls_by_one_per_timer_when_senders_stop() -> None:
    flows = courses(silvan.run(incast()))
    assert set(flows) == {(source, 6, 0) for source in range(6)}
    for course in flows.values():
        # The last notifications are in by the sixth sample; a flow at 0 has no row.
        first = course[6]
        assert first > 2
        expected = {6 + fallen: first - fallen for fallen in range(first)}
        assert {at: ccti for at, ccti in course.items() if at >= 6} == {
            at: ccti for at, ccti in expected.items() if at <= 20
        }


def test_rates_are_those_of_the_table() -> None:
    table = {"shape": "linear", "slope": 1.0}
    scenario = incast(control__ib_cc__adapter__cct=table)
    rows = silvan.run(scenario).tables["flow_limits"].to_pylist()
    # A slope of 1 delays by as many packet times as the index says.
    assert [row["rate"] for row in rows] == pytest.approx(
        [1 / (1 + row["ccti"]) for row in rows], rel=1e-3
    )


def test_limits_of_service_levels_have_no_destination() -> None:
    scenario = incast().override({"control.ib-cc.adapter.level": "sl"})
    table = silvan.run(scenario).tables["flow_limits"]
    assert table.num_rows > 0
    assert table["destination"].null_count == table.num_rows


def test_without_control_no_flow_is_limited() -> None:
    scenario = incast().override({"control.scheme": "none"})
    assert silvan.run(scenario).tables["flow_limits"].num_rows == 0


def test_without_the_probe_there_is_no_table_and_the_rest_is_the_same() -> None:
    recorded = silvan.run(incast())
    plain = silvan.run(incast().override({"probe.flow-limits": False}))
    assert "flow_limits" not in plain.tables
    assert {name: table for name, table in recorded.tables.items() if name != "flow_limits"} == (
        dict(plain.tables)
    )


def test_threads_sample_the_same_limits() -> None:
    one, two = (silvan.run(incast(TREE), threads=count) for count in (1, 2))
    assert two.summary["threads"] == 2
    assert one.tables["flow_limits"].num_rows > 0
    assert one.tables["flow_limits"] == two.tables["flow_limits"]
