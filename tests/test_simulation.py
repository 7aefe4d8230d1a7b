"""Running: seeds, progress, and exceptions on the way."""

from __future__ import annotations

import threading

import pytest

import silvan
from silvan.inputs.toml_text import TomlValue
from tests.conftest import INCAST

RANDOM = silvan.Scenario.from_toml(INCAST).override(
    {"traffic.incast": [], "traffic.uniform": [{"load": 0.5}], "run.duration": "1 ms"}
)
LONG = RANDOM.override({"run.duration": "100 s", "probe.interval": "1 s"})


def test_equal_seeds_give_equal_results() -> None:
    first, second = (silvan.run(RANDOM, seed=7) for _ in range(2))
    assert first.tables == second.tables


def test_other_seeds_give_other_results() -> None:
    first, second = (silvan.run(RANDOM, seed=seed) for seed in (7, 8))
    assert first.hosts != second.hosts


def test_the_scenario_s_own_seed_is_the_default() -> None:
    result = silvan.run(RANDOM)
    assert result.seed == 3
    assert result.tables == silvan.run(RANDOM, seed=3).tables


class Enough(Exception):
    """Raised by a progress callback."""


def test_progress_grows_and_its_exception_ends_the_run() -> None:
    seen: list[silvan.Progress] = []

    def watch(state: silvan.Progress) -> None:
        seen.append(state)
        if len(seen) == 3:
            raise Enough

    with pytest.raises(Enough):
        silvan.run(LONG, progress=watch)
    assert len(seen) == 3
    assert seen[0].simulated_ps < seen[1].simulated_ps < seen[2].simulated_ps
    assert seen[0].packet_hops < seen[1].packet_hops < seen[2].packet_hops
    assert all(state.duration_ps == LONG.duration_ps for state in seen)


def test_other_threads_go_on_during_a_run() -> None:
    ticks = 0
    stop = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not stop.wait(0.001):
            ticks += 1

    ticks_between_reports: list[int] = []

    def watch(_: silvan.Progress) -> None:
        ticks_between_reports.append(ticks)
        if len(ticks_between_reports) == 4:
            raise Enough

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        with pytest.raises(Enough):
            silvan.run(LONG, progress=watch)
    finally:
        stop.set()
        thread.join()
    # With the lock held throughout, the ticks could only come in while the callback runs.
    assert ticks_between_reports[-1] - ticks_between_reports[0] > 3


def _delivered_by_class(result: silvan.Result) -> dict[str, int]:
    rows = result.classes.to_pylist()
    return {row["name"]: row["delivered_bytes"] for row in rows}


@pytest.mark.parametrize("send_queue", ["per-destination", "fifo"])
def test_a_throttled_message_blocks_others_in_a_fifo_only(send_queue: str) -> None:
    flow = {"from": "host-0000", "message": "2 KiB"}
    overrides: dict[str, TomlValue] = {
        "fabric.hosts": 8,
        "traffic.incast": [{"to": "host-0007", "from": ["host-0001", "host-0002", "host-0003"]}],
        "traffic.flow": [
            {"name": "congested", "to": "host-0007", **flow},
            {"name": "free", "to": "host-0006", **flow},
        ],
        "control.scheme": "ib-cc",
        "control.ib-cc.adapter.cct": {"shape": "linear", "slope": 1.0},
        "host.send-queue": send_queue,
        "run.duration": "4 ms",
    }
    scenario = silvan.Scenario.from_toml(INCAST).override(overrides)
    delivered = _delivered_by_class(silvan.run(scenario))
    if send_queue == "fifo":
        # Messages alternate; what differs is inside the switch and the receiver's buffer.
        assert abs(delivered["free"] - delivered["congested"]) < 64 * 2048
    else:
        assert delivered["free"] > 3 * delivered["congested"]


def test_messages_to_oneself_are_counted_and_stay_in_the_host() -> None:
    traffic: dict[str, TomlValue] = {
        "traffic.incast": [],
        "traffic.flow": [{"from": "host-0000", "to": "host-0000", "load": "4 Gbit/s"}],
        "run.duration": "1 ms",
    }
    scenario = silvan.Scenario.from_toml(INCAST)
    with pytest.raises(silvan.ScenarioError, match=r"traffic\.flow\.0\.to"):
        scenario.override(traffic)
    result = silvan.run(scenario.override({**traffic, "traffic.loopback": True}))
    host = result.hosts.to_pylist()[0]
    # 4 Gbit/s for 1 ms, but for the last message.
    assert 500_000 - 2 * 4096 <= host["delivered_bytes"] <= 500_000
    assert sum(row["xmit_pkts"] for row in result.ports.to_pylist()) == 0
