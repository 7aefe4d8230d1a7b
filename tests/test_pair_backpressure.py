"""Backpressure on pairs of endpoints, against what windows and a shared cable derive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import silvan
from silvan.comparing.baselines import fitting
from silvan.errors import ScenarioError
from tests.conftest import ddr_scenario
from tests.separate_buffers import LEFT_BY_HOTSPOT, check_what_the_hotspot_leaves, flows
from tests.test_vl_mapping import TREE, crossing, rates

# Payload of a packet.
MTU = 2048


def backpressure(fabric: Any = TREE, **keys: Any) -> silvan.Scenario:
    """Set up the scheme with one lane."""
    scheme = {
        "control.scheme": "pair-backpressure",
        "control.feedback.carrier": "ack-per-packet",
    }
    return crossing(1, fabric, **{**scheme, **keys})


@pytest.mark.parametrize(("source", "load", "expected"), LEFT_BY_HOTSPOT)
def test_a_victim_has_what_the_hotspot_leaves(source: int, load: float, expected: float) -> None:
    """Oracle: three pairs with equal windows share the hotspot's link."""
    check_what_the_hotspot_leaves(backpressure(), source, load, expected)


@pytest.mark.parametrize("senders", [2, 4, 8, 16])
def test_a_hotspot_is_full_and_fair(senders: int) -> None:
    """
    Oracle: a threshold of a round trip keeps the link full when windows are halved.

    Pairs that are marked alike have equal shares.
    """
    hosts = senders + 1
    scenario = ddr_scenario(
        fabric={"generator": "single-switch", "hosts": hosts},
        link={"speed": "EDR"},
        traffic={
            "flow": [
                {"name": f"flow-{host}", "from": f"host-{host:04}", "to": "host-0000"}
                for host in range(1, hosts)
            ]
        },
        run={"warm-up": "1 ms", "duration": "5 ms"},
    ).override(
        {
            "control.scheme": "pair-backpressure",
            "control.feedback.carrier": "ack-per-packet",
            "control.pair-backpressure.window": f"{25 * MTU} B",
        }
    )
    part = rates(scenario)
    assert sum(part.values()) == pytest.approx(1, rel=0.01)
    for share in part.values():
        assert share == pytest.approx(1 / senders, rel=0.01)


def test_congestion_inside_the_fabric_marks_nothing() -> None:
    """Oracle: four pairs of a leaf share one cable to hosts that could take more."""
    ends = [("one", 0, 4), ("two", 1, 6), ("three", 2, 4), ("four", 3, 6)]
    scenario = backpressure().override(flows(*ends))
    result = silvan.run(scenario)
    assert sum(result.ports["fecn_marked"].to_pylist()) == 0
    assert sum(result.hosts["becn_received"].to_pylist()) == 0
    part = rates(scenario)
    assert sum(part.values()) == pytest.approx(1, rel=0.01)


def test_a_pair_regains_its_link_within_round_trips_of_doubled_steps() -> None:
    """
    Oracle: from two packets, steps of 1, 2, 4, ... regain 25 packets in five round trips.

    A round trip takes less than 4 us, and the queue of the hotspot, 25 packets for each of four
    pairs, empties in 17 us: from 50 us after the burst on, the pair that stays has its link.
    """
    scenario = ddr_scenario(
        fabric={"generator": "single-switch", "hosts": 5},
        link={"speed": "EDR"},
        traffic={
            "flow": [
                {"name": "stays", "from": "host-0001", "to": "host-0000"},
                *(
                    {"from": f"host-{host:04}", "to": "host-0000", "end": "1 ms"}
                    for host in (2, 3, 4)
                ),
            ]
        },
        run={"warm-up": "1050 us", "duration": "1550 us"},
    ).override(
        {
            "control.scheme": "pair-backpressure",
            "control.feedback.carrier": "ack-per-packet",
            "control.pair-backpressure.window": f"{25 * MTU} B",
        }
    )
    assert rates(scenario)["stays"] == pytest.approx(1, rel=0.01)


def test_compared_with_the_window_of_the_fabric() -> None:
    """Oracle: a pair alone fills its link, and the first window is no more than it needs."""
    scenario = crossing(1, **{"control.scheme": "none"}).override(flows(("alone", 0, 4)))
    every = {one.name: one for one in fitting(scenario).every}
    settings = every["pair-backpressure"].overrides
    part = rates(scenario.override(settings))
    assert part["alone"] == pytest.approx(1, rel=0.01)
    less = scenario.override({**settings, "control.pair-backpressure.window": "8 KiB"})
    assert rates(less)["alone"] < 0.6


@pytest.mark.parametrize(
    ("keys", "key", "message"),
    [
        ({"control.pair-backpressure.window": "2 KiB"}, "window", "4096 B"),
        ({"control.pair-backpressure.least-window": 0}, "least-window", "stop a pair"),
        ({"control.pair-backpressure.increase": 0}, "increase", "above 0"),
    ],
)
def test_what_it_cannot_work_with_is_refused(keys: dict[str, Any], key: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message) as caught:
        backpressure(**keys)
    assert caught.value.key == f"control.pair-backpressure.{key}"
    assert caught.value.hint


def twin(to_hosts: list[bool], hosts: int, window: int, threshold: int) -> silvan.Callbacks:
    """Write the scheme again, for one lane. The last row has the ports that lead to hosts."""
    in_flight, opening, step, begun, fell = range(5)
    state = np.zeros((hosts + 1, max(hosts, len(to_hosts)), 5))
    state[:hosts, :, opening] = window
    state[:hosts, :, step] = MTU
    state[hosts, : len(to_hosts), 0] = to_hosts

    def on_departure(  # type: ignore[no-untyped-def]
        state, now, port_vl, queued_bytes, has_credit, wire_bytes, marked, input_port
    ):
        return queued_bytes > threshold and state[-1, port_vl, 0] > 0

    def release(state, now, source, destination, sl):  # type: ignore[no-untyped-def]
        pair = state[source, destination]
        is_open = pair[in_flight] == 0 or pair[in_flight] + MTU <= pair[opening]
        return now if is_open else silvan.NEVER

    def on_send(state, now, source, destination, sl, wire_time, payload):  # type: ignore[no-untyped-def]
        pair = state[source, destination]
        if pair[begun] == 0:
            pair[begun] = now
        pair[in_flight] += payload

    def on_ack(  # type: ignore[no-untyped-def]
        state, now, source, destination, sl, acknowledged, marked, sent, endpoint, path, hops
    ):
        pair = state[source, destination]
        pair[in_flight] -= acknowledged
        if marked:
            if sent >= pair[fell]:
                pair[opening] = max(pair[opening] / 2, 2 * MTU)
                pair[fell] = now
            pair[step], pair[begun] = MTU, now
        elif pair[opening] < window:
            if sent >= pair[begun]:
                pair[step], pair[begun] = 2 * pair[step], now
            pair[opening] = min(pair[opening] + pair[step] * acknowledged / pair[opening], window)
        return True

    return silvan.Callbacks(
        state, on_departure=on_departure, release=release, on_send=on_send, on_ack=on_ack
    )


@pytest.mark.slow
def test_the_twin_in_python_moves_the_same_packets() -> None:
    """Oracle: the scheme in Python. A hotspot that ends lets windows grow again."""
    window, threshold = 25 * MTU, 12 * MTU
    scenario = backpressure(
        **{
            "control.pair-backpressure.window": f"{window} B",
            "control.pair-backpressure.threshold": f"{threshold} B",
            "traffic.flow": [
                {"name": "hot", "from": "host-0000", "to": "host-0004"},
                {"name": "local-1", "from": "host-0005", "to": "host-0004", "load": 0.5},
                {"name": "local-2", "from": "host-0007", "to": "host-0004", "end": "1500 us"},
                {"name": "victim", "from": "host-0000", "to": "host-0006"},
                {"name": "back", "from": "host-0006", "to": "host-0001", "load": 0.7},
            ],
        }
    )
    built_in = silvan.run(scenario)
    marks = sum(built_in.hosts["becn_received"].to_pylist())
    assert marks > 100
    # Each mark comes back; those of a round trip are on their way when counting begins and ends.
    assert abs(sum(built_in.ports["fecn_marked"].to_pylist()) - marks) <= 100
    to_hosts = [
        row["peer"].startswith("host-") and not row["node"].startswith("host-")
        for row in built_in.ports.to_pylist()
    ]
    mine = silvan.run(
        scenario.override({"control.scheme": "none"}), control=twin(to_hosts, 8, window, threshold)
    )
    assert mine.classes.equals(built_in.classes)
    assert mine.hosts["becn_received"].equals(built_in.hosts["becn_received"])
    for column in ("xmit_bytes", "xmit_wait_ps"):
        assert mine.ports[column].to_pylist() == built_in.ports[column].to_pylist()
