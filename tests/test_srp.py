"""Speculative packets and reservations, against what schedules and lanes derive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import silvan
from silvan.errors import ScenarioError
from tests.conftest import ddr_scenario
from tests.published import controlled, edr_switch, part_of_link

WIRE, MTU = 2074, 2048
# EDR: 100 Gbit/s are 12,500 bytes in a microsecond.
BYTES_PER_US = 12_500
NAMES = ["srp", "srp+smsrp", "srp+lhrp"]
TREE = {"generator": "xgft", "children": [4, 2], "parents": [1, 2], "routing": "d-mod-k"}


def switch(hosts: int, **sections: Any) -> silvan.Scenario:
    return edr_switch(hosts, "256 KiB", **sections)


def messages(result: silvan.Result) -> int:
    """Reservations and grants that have arrived; there is no such column without either."""
    hosts = result.hosts
    received = hosts["grants_received"] if "grants_received" in hosts.column_names else []
    return sum(int(str(count)) for count in received)


def sent_again(result: silvan.Result) -> float:
    """Payload that was sent again, or was on its way at the end, over that which arrived."""
    sent = sum(result.hosts["injected_bytes"].to_pylist())
    received = sum(result.hosts["delivered_bytes"].to_pylist())
    return float(sent / received - 1)


@pytest.mark.parametrize(
    ("name", "senders", "least"),
    [
        *((name, senders, 0.999) for name in ("srp", "srp+lhrp") for senders in (2, 4, 16)),
        # All senders of SMSRP can wait for a grant at once.
        ("srp+smsrp", 2, 0.98),
        ("srp+smsrp", 4, 0.93),
        ("srp+smsrp", 16, 0.999),
    ],
)
def test_a_hotspot_stays_busy_its_queue_is_bounded_and_shares_are_equal(
    name: str, senders: int, least: float
) -> None:
    """Oracles: a full link, and the bound of the rule that discards.

    The bound is `threshold` in LHRP and the link's bytes in `timeout` in the others, with a packet
    that has just been let in and one that has a reservation.
    """
    scenario = controlled(switch(senders + 1, traffic={"incast": [{"to": "host-0000"}]}), name)
    result = silvan.run(scenario)
    assert least < part_of_link(result, 0) < 1.001
    srp = scenario.to_dict()["control"]["srp"]
    of_timeout = float(srp["timeout"].removesuffix(" us")) * BYTES_PER_US
    most = 64 * 1024 if name == "srp+lhrp" else of_timeout
    series = result.tables["port_series"]
    of_receiver = np.array(series["ports_row"]) == 0
    assert np.array(series["queued_bytes"])[of_receiver].max() <= most + 2 * WIRE
    sent = np.array(result.hosts["injected_bytes"].to_pylist()[1:], dtype=float)
    assert sent / sent.mean() == pytest.approx(1, abs=0.05)
    assert sent_again(result) > 0


def test_each_block_of_srp_has_a_reservation_and_a_grant() -> None:
    """Oracle: two messages for each block, whose last packet may be more than the block needs."""
    scenario = controlled(switch(5, traffic={"incast": [{"to": "host-0000"}]}), "srp")
    result = silvan.run(scenario)
    block = int(scenario.to_dict()["control"]["srp"]["reservation"].removesuffix(" B"))
    packets = result.hosts["delivered_packets"].to_pylist()[0]
    blocks = packets / -(-block // MTU)
    assert messages(result) == pytest.approx(2 * blocks, abs=8)


@pytest.mark.parametrize(
    ("name", "hot", "victim"),
    [
        ("none", 1 / 3, 1 / 3),
        # SRP: each sender has a third of the hotspot, and the victim the rest of the cable.
        ("srp", 1 / 3, 2 / 3),
        # LHRP sends at once: the two flows share the cable, and the hotspot takes what comes.
        ("srp+lhrp", 1 / 2, 1 / 2),
    ],
)
def test_a_victim_beside_a_flow_to_a_hotspot(name: str, hot: float, victim: float) -> None:
    """Oracle: the shares above; what is discarded has taken its part of the cable in LHRP."""
    scenario = ddr_scenario(
        fabric=TREE,
        link={"speed": "EDR"},
        switch={"buffer": "256 KiB"},
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
    result = silvan.run(controlled(scenario, name))
    whole = 2_000 * BYTES_PER_US * MTU / WIRE
    part = {row["name"]: row["delivered_bytes"] / whole for row in result.classes.to_pylist()}
    assert part["hot"] == pytest.approx(hot, rel=0.01)
    assert part["victim"] == pytest.approx(victim, rel=0.01)
    assert part_of_link(result, 4) == pytest.approx(1, abs=0.001)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "choice", "least", "most"),
    [
        ("srp", "table", 0.7, 1.0),
        ("srp+smsrp", "table", 0.7, 1.0),
        # The tables lead all to a hotspot over one spine, so that the last switch has no queue.
        ("srp+lhrp", "table", 0.0, 0.3),
        ("srp+lhrp", "adaptive", 0.85, 1.0),
    ],
)
def test_hosts_beside_eight_hotspots_on_two_levels(
    name: str, choice: str, least: float, most: float
) -> None:
    """Oracle: hosts that send at random could have the part of their links that hotspots leave.

    LHRP discards at the last switch alone. Load in excess of a cable before that switch grows a
    tree there.
    """
    scenario = ddr_scenario(
        fabric={
            **{"generator": "xgft", "children": [12, 12], "parents": [1, 12]},
            **{"routing": "d-mod-k", "path-choice": choice},
        },
        link={"speed": "EDR"},
        switch={"buffer": "128 KiB"},
        traffic={"nodes": {"v": 0.2, "c": 0.8, "b": 0.0, "hotspots": 8}},
        run={"warm-up": "500 us", "duration": "1 ms"},
    )
    result = silvan.run(controlled(scenario, name))
    whole = 500 * BYTES_PER_US * MTU / WIRE
    received = sorted(got / whole for got in result.hosts["delivered_bytes"].to_pylist())
    assert min(received[-8:]) > 0.9
    senders = 29
    assert least < sum(received[:-8]) / senders < most


def test_a_hotspot_stays_busy_on_links_with_pfc() -> None:
    """Oracle: the link, whose packets have Ethernet's headers; nothing is lost."""
    scenario = switch(
        6,
        link={"speed": "EDR", "flow-control": "pfc"},
        vl={"data-vls": 2, "high": [[0, 255]], "low": [[1, 255]], "limit-high": 8},
        control={"scheme": "srp"},
        traffic={"incast": [{"to": "host-0000"}]},
    )
    result = silvan.run(scenario)
    wire = MTU + scenario.packet.header.bytes
    received = result.hosts["delivered_bytes"].to_pylist()[0]
    assert received == pytest.approx(2_000 * BYTES_PER_US * MTU / wire, rel=0.001)
    assert sent_again(result) > 0.1


@pytest.mark.parametrize("name", NAMES)
def test_without_congestion_nothing_is_slower(name: str) -> None:
    """
    Oracles: a full link, and the time of a flow alone on an empty fabric.

    SMSRP and LHRP send no message then, and nothing is discarded.
    """
    flows = [
        {"name": "long", "from": "host-0001", "to": "host-0000"},
        {"name": "short", "from": "host-0002", "to": "host-0003", "bytes": "20 kB"},
    ]
    result = silvan.run(controlled(switch(4, traffic={"flow": flows}), name))
    assert part_of_link(result, 0) == pytest.approx(1, abs=0.001)
    (short,) = result.flows.to_pylist()
    assert short["completion_ps"] == short["ideal_ps"]
    assert sent_again(result) == pytest.approx(0, abs=0.001)
    if name != "srp":
        assert messages(result) == 0


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ({"control.srp.timeout": "0 s"}, "control.srp.timeout"),
        ({"control.srp.threshold": "0 B"}, "control.srp.threshold"),
        ({"control.srp.reservation": "4 GiB"}, "control.srp.reservation"),
        ({"vl.data-vls": 1}, "control.srp.protocol"),
        (
            {"fabric": {"generator": "torus", "sizes": [3, 3], "hosts-per-switch": 1}},
            "control.srp.protocol",
        ),
    ],
)
def test_what_it_cannot_work_with_is_refused(keys: dict[str, Any], key: str) -> None:
    base = ddr_scenario(control={"scheme": "srp"}, vl={"data-vls": 2})
    with pytest.raises(ScenarioError) as refused:
        base.override(keys)
    assert refused.value.key == key
    assert refused.value.hint


@pytest.mark.slow
def test_the_twin_of_lhrp_in_python_sends_the_same_packets() -> None:
    """Oracle: LHRP in Python: a schedule for each port, and what each flow has to send again."""
    flows = [{"name": f"f{host}", "from": f"host-000{host}", "to": "host-0000"} for host in (1, 2)]
    scenario = controlled(switch(4, traffic={"flow": flows}), "srp+lhrp")
    built_in = silvan.run(scenario)
    hosts, threshold = 4, 64 * 1024
    # The end of each port's schedule; then by source and destination what was discarded, and
    # whether the next packet is one of that.
    schedule, waits, again = 0, 1, 1 + hosts

    def select_discard(  # type: ignore[no-untyped-def]
        state,
        now,
        port_vl,
        queued_bytes,
        has_credit,
        source,
        destination,
        sl,
        wire_bytes,
        sent,
        waited,
    ):
        if waited or port_vl % 2 == 0:
            return -1
        at = max(state[schedule, port_vl // 2], now)
        state[schedule, port_vl // 2] = at + wire_bytes * 80
        if queued_bytes < threshold:
            return -1
        return int((at - now + 999) // 1000)

    def on_nack(  # type: ignore[no-untyped-def]
        state, now, source, destination, sl, payload, notice, grants
    ):
        state[waits + source, destination] += payload
        return True

    def resend_time(  # type: ignore[no-untyped-def]
        state, now, source, destination, sl, payload, notice, nacked
    ):
        at = nacked + notice * 1000
        state[again + source, destination] = 1 if at <= now else 0
        return at

    def release(state, now, source, destination, sl):  # type: ignore[no-untyped-def]
        return silvan.NEVER if state[waits + source, destination] > 0 else now

    def select_vl(state, now, source, destination, sl, vl):  # type: ignore[no-untyped-def]
        return 0 if state[again + source, destination] > 0 else 1

    def on_send(  # type: ignore[no-untyped-def]
        state, now, source, destination, sl, wire_time, payload
    ):
        if state[again + source, destination] > 0:
            state[again + source, destination] = 0
            state[waits + source, destination] -= payload

    twin = silvan.Callbacks(
        np.zeros((1 + 2 * hosts, 2 * hosts)),
        select_discard=select_discard,
        on_nack=on_nack,
        resend_time=resend_time,
        release=release,
        select_vl=select_vl,
        on_send=on_send,
    )
    lanes = {f"vl.{key}": value for key, value in scenario.to_dict()["vl"].items()}
    mine = silvan.run(scenario.override({"control.scheme": "none", **lanes}), control=twin)
    assert mine.classes.equals(built_in.classes)
    for column in ("xmit_bytes", "xmit_wait_ps"):
        assert mine.ports[column].to_pylist() == built_in.ports[column].to_pylist()
    assert sent_again(mine) == sent_again(built_in) > 0.1
