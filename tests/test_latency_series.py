"""Latencies of the packets that arrive in each probe interval."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import silvan
from tests.conftest import ddr_scenario

ONE_SWITCH: dict[str, object] = {"generator": "single-switch", "hosts": 6}
TREE: dict[str, object] = {"generator": "k-ary-n-tree", "k": 2, "n": 3}


def scenario(warm_up: str = "0 us", fabric: Mapping[str, object] = ONE_SWITCH) -> silvan.Scenario:
    return ddr_scenario(
        fabric=fabric,
        traffic={"incast": [{"to": "host-0000"}], "uniform": [{"load": 0.3}]},
        probe={"latency": "host", "interval": "20 us"},
        run={"duration": "200 us", "warm-up": warm_up},
    )


def bins(table: object, *, after_ps: int = 0) -> Counter[tuple[int, int]]:
    """Packets by interval of latencies."""
    found: Counter[tuple[int, int]] = Counter()
    for row in table.to_pylist():  # type: ignore[attr-defined]
        if row.get("time_ps", after_ps + 1) > after_ps:
            found[row["from_ns"], row["to_ns"]] += row["packets"]
    return found


def test_all_intervals_together_have_the_packets_of_all_hosts() -> None:
    tables = silvan.run(scenario()).tables
    assert bins(tables["latency_series"]) == bins(tables["host_latencies"])


def test_a_warm_up_divides_the_packets() -> None:
    whole, warmed = (silvan.run(scenario(warm_up)).tables for warm_up in ("0 us", "60 us"))
    assert bins(warmed["latency_series"], after_ps=60_000_000) == bins(warmed["host_latencies"])
    assert warmed["latency_series"] == whole["latency_series"]


def test_a_run_until_an_instant_has_the_packets_up_to_it() -> None:
    """Oracle: runs that end earlier."""
    whole = silvan.run(scenario()).tables["latency_series"]
    for microseconds in (20, 100):
        shorter = scenario().override({"run.duration": f"{microseconds} us"})
        expected = bins(silvan.run(shorter).tables["host_latencies"])
        rows = [row for row in whole.to_pylist() if row["time_ps"] <= microseconds * 1_000_000]
        found: Counter[tuple[int, int]] = Counter()
        for row in rows:
            found[row["from_ns"], row["to_ns"]] += row["packets"]
        assert found == expected


def test_threads_have_the_same_latencies() -> None:
    one, two = (silvan.run(scenario(fabric=TREE), threads=count) for count in (1, 2))
    assert two.summary["threads"] == 2
    assert one.tables["latency_series"].num_rows > 0
    assert one.tables["latency_series"] == two.tables["latency_series"]
