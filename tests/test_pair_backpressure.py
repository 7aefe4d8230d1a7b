"""Backpressure on pairs of endpoints, against what windows and a shared cable derive."""

from __future__ import annotations

from typing import Any

import pytest

import silvan
from silvan.baselines import baselines
from silvan.errors import ScenarioError
from tests.test_congestion_isolation import flows
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


@pytest.mark.parametrize(
    ("source", "load", "expected"), [(0, 1.0, 2 / 3), (1, 1.0, 2 / 3), (1, 0.6, 0.6)]
)
def test_a_victim_has_what_the_hotspot_leaves(source: int, load: float, expected: float) -> None:
    """
    Oracle: three pairs with equal windows share the hotspot's link.

    The victim has the rest of its host's link or of the cable, or what it sends.
    """
    ends = (("hot", 0, 4), ("local-1", 5, 4), ("local-2", 7, 4), ("victim", source, 6))
    part = rates(backpressure().override(flows(*ends, victim=load)))
    assert part["victim"] == pytest.approx(expected, rel=0.01)
    assert part["hot"] == pytest.approx(1 / 3, rel=0.01)
    assert part["hot"] + part["local-1"] + part["local-2"] == pytest.approx(1, rel=0.01)


@pytest.mark.parametrize("senders", [2, 4, 8, 16])
def test_a_hotspot_is_full_and_fair(senders: int) -> None:
    """
    Oracle: a threshold of a round trip keeps the link full when windows are halved.

    Pairs that are marked alike have equal shares.
    """
    hosts = senders + 1
    scenario = silvan.Scenario(
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
    part = rates(scenario)
    assert sum(part.values()) == pytest.approx(1, rel=0.01)


def test_a_pair_regains_its_link_within_round_trips_of_doubled_steps() -> None:
    """
    Oracle: from two packets, steps of 1, 2, 4, ... regain 25 packets in five round trips.

    A round trip takes less than 4 us, and the queue of the hotspot, 25 packets for each of four
    pairs, empties in 17 us: from 50 us after the burst on, the pair that stays has its link.
    """
    scenario = silvan.Scenario(
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
    every = {one.name: one for one in baselines(scenario)}
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


def test_other_carriers_are_refused() -> None:
    with pytest.raises(ScenarioError, match="acknowledged"):
        backpressure(**{"control.feedback.carrier": "cnp"})
