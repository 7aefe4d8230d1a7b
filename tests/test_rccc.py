"""Credit from the receiver, against what its rate and its order derive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import silvan
from tests.conftest import ddr_scenario
from tests.published import (
    AS_THE_REFERENCE,
    FORWARDING_US,
    LAST_ACK_US,
    controlled,
    edr_switch,
    part_of_link,
)

ROOT = Path(__file__).parent.parent
WIRE, MTU = 2074, 2048
# EDR: 100 Gbit/s are 12,500 bytes in a microsecond.
BYTES_PER_US = 12_500
NAMES = ["rccc", "rccc+shortest"]


def switch(hosts: int, **sections: Any) -> silvan.Scenario:
    return edr_switch(hosts, "512 KiB", **sections)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("senders", [1, 2, 16])
def test_a_receiver_takes_what_it_pulls_and_no_queue_is_left(name: str, senders: int) -> None:
    """
    Oracle: the pulls' part of the link, 0.99.

    In turn, shares are equal.
    """
    traffic = {"incast": [{"to": "host-0000"}]}
    result = silvan.run(controlled(switch(senders + 1, traffic=traffic), name))
    assert part_of_link(result, 0) == pytest.approx(0.99, abs=0.0005)
    sent = np.array(result.hosts["injected_bytes"].to_pylist()[1:], dtype=float)
    if name == "rccc":
        assert sent / sent.mean() == pytest.approx(1, abs=0.002)
    # A pull for each packet, but for those on their way at either end.
    packets = result.hosts["delivered_packets"].to_pylist()[0]
    pulls = sum(result.hosts["grants_received"].to_pylist())
    assert pulls == pytest.approx(packets, abs=20 * senders)
    series = result.tables["port_series"]
    of_receiver = np.array(series["ports_row"]) == 0
    late = np.array(series["time_ps"]) >= result.scenario.warm_up_ps
    assert np.array(series["queued_bytes"])[of_receiver & late].max() <= WIRE


def test_a_slow_sink_is_pulled_at_its_own_rate() -> None:
    """Oracle: the sink's rate, of payload; a victim on the same switch has a separate link."""
    scenario = controlled(
        switch(
            4,
            host={"sink-rate": "40 Gbit/s"},
            traffic={
                "flow": [{"from": f"host-000{number}", "to": "host-0000"} for number in (1, 2, 3)],
            },
        ),
        "rccc",
    )
    result = silvan.run(scenario)
    us = (scenario.duration_ps - scenario.warm_up_ps) / 1e6
    received = result.hosts["delivered_bytes"].to_pylist()[0]
    assert received == pytest.approx(0.99 * us * 5_000, rel=0.001)


def test_a_victim_keeps_what_the_hotspot_leaves() -> None:
    """
    Oracle: the hotspot gives each of its three senders a third of its link.

    The victim has the rest of the cable that one of them shares with it; without control it gets
    as much as the hot flow.
    """
    scenario = ddr_scenario(
        fabric={"generator": "xgft", "children": [4, 2], "parents": [1, 2], "routing": "d-mod-k"},
        link={"speed": "EDR"},
        switch={"buffer": "64 KiB"},
        traffic={
            "flow": [
                {"name": "hot", "from": "host-0000", "to": "host-0004"},
                {"name": "local-1", "from": "host-0005", "to": "host-0004"},
                {"name": "local-2", "from": "host-0007", "to": "host-0004"},
                {"name": "victim", "from": "host-0001", "to": "host-0006"},
            ]
        },
        run={"warm-up": "1 ms", "duration": "3 ms"},
    )
    for chosen, victim in ((scenario, 1 / 3), (controlled(scenario, "rccc"), 2 / 3)):
        result = silvan.run(chosen)
        assert part_of_link(result, 6) == pytest.approx(victim, rel=0.02)


@pytest.mark.parametrize(("name", "times"), [("rccc", 2), ("rccc+shortest", 1)])
def test_the_shortest_backlog_ends_first(tmp_path: Path, name: str, times: int) -> None:
    """
    Oracle: the order.

    A message that starts beside one ten times as long has half of the link where flows take turns,
    and all of it where the shortest is first, but for what the long one always has: a packet to say
    that it is there, and one or two that the schedule is ahead. The first window of the long one is
    not asked for.
    """
    short, long = 500 * MTU, 5_000 * MTU
    file = tmp_path / "two.cm"
    file.write_text(
        f"Nodes 3\nConnections 2\n1->0 start 0 size {long}\n2->0 start 0 size {short}\n"
    )
    program = {"name": "two", "kind": "connections", "file": str(file)}
    scenario = controlled(switch(3, traffic={"program": [program]}, run={"duration": "5 ms"}), name)
    result = silvan.run(scenario)
    ends_us = sorted(set(np.array(result.tables["program_ops"]["end_ps"].to_pylist()) / 1e6))
    alone_us = 500 * WIRE / BYTES_PER_US / 0.99
    window_us = scenario.base_rtt_s * 1e6
    of_long = 0 if times == 2 else 3 * WIRE / (window_us * BYTES_PER_US)
    least_us = times * alone_us - window_us
    assert least_us < ends_us[0] < times * alone_us * (1 + of_long) + window_us
    # The link never waits.
    assert ends_us[-1] == pytest.approx(11 * alone_us, abs=3 * window_us)


@pytest.mark.parametrize("name", NAMES)
def test_nobody_starves_and_a_burst_is_forgotten(name: str) -> None:
    """
    Oracle: the link's rate.

    Seven hosts send for 2 ms to one that an eighth sends to all the time. In turn, each gets the
    same; in the other order, one that is not the shortest still has a packet on its way at any
    time. After they have ended the eighth gets the link back.
    """
    scenario = switch(
        9,
        traffic={
            "flow": [
                {"from": f"host-{number:04}", "to": "host-0000", "end": f"{stop} ms"}
                for number, stop in zip(range(1, 9), [4, *[2] * 7], strict=True)
            ],
        },
        run={"warm-up": "2100 us", "duration": "4 ms"},
    )
    result = silvan.run(controlled(scenario, name))
    assert part_of_link(result, 0) > 0.98
    burst = silvan.run(
        controlled(scenario, name).override({"run.warm-up": "0 ms", "run.duration": "2 ms"})
    )
    sent = np.array(burst.hosts["injected_bytes"].to_pylist()[1:], dtype=float)
    assert sent.min() > (0.8 if name == "rccc" else 0.5) * sent.mean()


def test_an_idle_flow_waits_for_nothing() -> None:
    """Oracle: the latency of a packet alone; a window covers a message at each time."""
    traffic = {"flow": [{"from": "host-0001", "to": "host-0000", "load": 0.01}]}
    scenario = switch(2, traffic=traffic, probe={"latency": "host"})
    means = [
        silvan.run(one).hosts["latency_mean_ns"].to_pylist()[0]
        for one in (scenario, controlled(scenario, "rccc"))
    ]
    assert means[0] == means[1]
    assert scenario.base_rtt_s > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("transfers", "bound_us"),
    [("one", 177), ("incast-16", 2_460), ("incast-128", 20_900), ("incast-1024", 8_950)],
)
def test_transfers_end_when_the_reference_simulators_do(transfers: str, bound_us: float) -> None:
    """Oracle: the bounds that Ultra Ethernet's reference simulator publishes."""
    scenario = silvan.Scenario.from_file(ROOT / "studies" / "nscc" / "bounds.toml")
    file = str(ROOT / "studies" / "nscc" / f"{transfers}.cm")
    keys = {"control.scheme": "rccc", "control.feedback.carrier": "cnp"}
    result = silvan.run(scenario.override({"traffic.program.0.file": file, **keys}))
    end_us = max(result.tables["program_ops"]["end_ps"].to_pylist()) / 1e6
    assert end_us == pytest.approx(bound_us, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("transfers", "result_us", "within"),
    [("one", 177.4, 0.005), ("incast-16", 2_464.4, 0.01), ("incast-128", 20_891.4, 0.005)],
)
def test_transfers_end_as_the_reference_simulators_did(
    transfers: str, result_us: float, within: float
) -> None:
    """Oracle: results in the reference's repository (validate_uec_rcv.out)."""
    scenario = silvan.Scenario.from_file(ROOT / "studies" / "nscc" / "bounds.toml")
    keys = {
        **AS_THE_REFERENCE,
        "traffic.program.0.file": str(ROOT / "studies" / "nscc" / f"{transfers}.cm"),
        "control.scheme": "rccc",
        "control.feedback.carrier": "cnp",
        "control.rccc.window": "225 kB",
    }
    result = silvan.run(scenario.override(keys))
    end_us = max(result.tables["program_ops"]["end_ps"].to_pylist()) / 1e6
    assert end_us + LAST_ACK_US + FORWARDING_US == pytest.approx(result_us, rel=within)


@pytest.mark.parametrize(
    ("key", "value", "hint"),
    [
        ("pull-rate", 1.5, "0.99"),
        ("pull-rate", 0.0, "0.99"),
        ("window", "0 B", "150 kB"),
        ("base-rtt", "0 ns", "12 us"),
        ("order", "fifo", "round-robin"),
    ],
)
def test_impossible_parameters_are_refused(key: str, value: object, hint: str) -> None:
    keys = {"control.scheme": "rccc", f"control.rccc.{key}": value}
    with pytest.raises(silvan.errors.ScenarioError, match=key) as raised:
        switch(2, traffic={"incast": [{"to": "host-0000"}]}).override(keys).describe()
    assert hint in str(raised.value) or hint in str(raised.value.hint)


TREE = {"generator": "xgft", "children": [4, 2], "parents": [1, 1], "routing": "d-mod-k"}


def oversubscribed(marks: bool, **keys: Any) -> silvan.Result:
    """Let four hosts send to four others over one cable; base round trips are 4 us, 50 kB."""
    scenario = ddr_scenario(
        fabric=TREE,
        link={"speed": "EDR"},
        switch={"buffer": "1 MiB"},
        traffic={"flow": [{"from": f"host-000{i}", "to": f"host-000{i + 4}"} for i in range(4)]},
        probe={"interval": "5 us", "ports": True},
        run={"warm-up": "2 ms", "duration": "6 ms"},
        control={
            "scheme": "rccc",
            "feedback": {"carrier": "none"},
            "rccc": {"base-rtt": "4 us", "marks": marks},
        },
    )
    return silvan.run(scenario.override(keys))


def waiting(result: silvan.Result) -> float:
    """Mean bytes that wait at the fullest port after the warm-up."""
    series = result.tables["port_series"]
    rows, queued = np.array(series["ports_row"]), np.array(series["queued_bytes"])
    later = np.array(series["time_ps"]) >= result.scenario.warm_up_ps
    return float(max(queued[later & (rows == row)].mean() for row in set(rows)))


def test_marks_shorten_the_queue_in_front_of_a_cable_that_is_no_receivers() -> None:
    """
    Oracle: the windows of four senders, and the queue at which three packets of ten are marked.

    No receiver is slower than its pulls, so that without marks all windows but what is on its way
    wait. With marks from one to four products of 50 kB, three of ten are at 95 kB.
    """
    without, with_marks = oversubscribed(False), oversubscribed(True)
    product = 4 * 12_500
    assert 3 * product < waiting(without) < 4 * product
    assert waiting(with_marks) == pytest.approx(product * (1 + 0.3 * 3), rel=0.15)
    received = [sum(one.hosts["delivered_bytes"].to_pylist()) for one in (without, with_marks)]
    assert 0.85 < received[1] / received[0] < 1
    # No flow starves, and marks send nothing.
    shares = with_marks.hosts["delivered_bytes"].to_pylist()[4:]
    assert min(shares) > 0.9 * max(shares)
    assert sum(with_marks.hosts["becn_received"].to_pylist()) == 0
    assert sum(with_marks.hosts["fecn_received"].to_pylist()) > 0


def test_marks_change_nothing_where_the_receiver_is_the_bottleneck() -> None:
    """Oracle: RCCC without marks, whose queue at the receiver's port is empty."""
    keys = {"traffic.flow": [], "traffic.incast": [{"to": "host-0000"}]}
    plain, marked = (oversubscribed(marks, **keys) for marks in (False, True))
    received = [one.hosts["delivered_bytes"].to_pylist()[0] for one in (plain, marked)]
    assert received[1] == pytest.approx(received[0], rel=0.001)


@pytest.mark.parametrize("senders", [16, 64, 128, 250])
def test_a_burst_of_marked_windows_is_over_when_its_queue_is(senders: int) -> None:
    """
    Oracle: the pulls' part of the link, 0.99, as without marks.

    First windows make a long queue in front of the receiver, and nearly all of them are marked. No
    pull that is decided on meanwhile may bind the receiver for long after the queue has gone.
    """
    scenario = switch(senders + 1, traffic={"incast": [{"to": "host-0000"}]})
    scenario = controlled(scenario, "rccc+marks")
    whole = silvan.run(scenario.override({"run.warm-up": "0 us"}))
    assert whole.hosts["fecn_received"].to_pylist()[0] > senders
    marked = silvan.run(scenario)
    assert part_of_link(marked, 0) == pytest.approx(0.99, abs=0.001)


def test_marks_hold_no_message_back_after_the_first_windows_of_a_thousand_senders() -> None:
    """
    Oracle: the link's time for first windows of eleven packets, and for sixteen pulls of each flow.

    A window is 42 kB, and eleven packets are on their way before the credit is used up. Of 100 kB
    fourteen packets remain; two more pulls give the window back after the end. First windows are
    nearly all marked. The last packets are not to wait until the rate that marks have left at that
    time has sent all pulls: at a hundredth of the link, 34 ms.
    """
    scenario = ddr_scenario(
        fabric={"generator": "xgft", "children": [32, 33], "parents": [1, 32]},
        link={"speed": "EDR"},
        switch={"buffer": "64 KiB"},
        packet={"mtu": "4 KiB"},
        traffic={"program": [{"kind": "incast", "hosts": 1025, "bytes": "100 kB"}]},
        run={"duration": "100 ms"},
    )
    packet_us = (4096 + 26) / BYTES_PER_US
    result = silvan.run(controlled(scenario, "rccc+marks"))
    (completion_ps,) = result.tables["programs"]["completion_ps"].to_pylist()
    expected_us = 1024 * packet_us * (11 + 16 / 0.99)
    assert completion_ps / 1e6 == pytest.approx(expected_us, rel=0.01)


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ({"control.rccc.k-min": "10 kB"}, "control.rccc.k-min"),
        (
            {
                "control.rccc.marks": True,
                "control.rccc.k-min": "1 MB",
                "control.rccc.k-max": "1 MB",
            },
            "control.rccc.k-max",
        ),
    ],
)
def test_thresholds_that_mark_nothing_are_refused(keys: Any, key: str) -> None:
    with pytest.raises(silvan.ScenarioError) as caught:
        oversubscribed(False, **keys)
    assert caught.value.key == key
