"""Lanes by destination, against what shared and separate buffers derive."""

from __future__ import annotations

from typing import Any

import pytest

import silvan
from silvan.baselines import baselines
from silvan.errors import ScenarioError

# Two leaves of four hosts below two spines. By destination modulo two, hosts 4 and 6 are reached
# over the same spine.
HOT, VICTIM = "host-0004", "host-0006"
TREE = {"generator": "xgft", "children": [4, 2], "parents": [1, 2], "routing": "d-mod-k"}
TORUS = {"generator": "torus", "sizes": [3, 3], "hosts-per-switch": 1}


def crossing(lanes: int = 2, fabric: Any = TREE, **keys: Any) -> silvan.Scenario:
    """Let host-0000 send to a hotspot of three senders, and host-0001 next to it."""
    scenario = silvan.Scenario(
        fabric=fabric,
        link={"speed": "EDR"},
        switch={"buffer": "64 KiB"},
        vl={"data-vls": lanes},
        traffic={
            "flow": [
                {"name": "hot", "from": "host-0000", "to": HOT},
                {"name": "local-1", "from": "host-0005", "to": HOT},
                {"name": "local-2", "from": "host-0007", "to": HOT},
                {"name": "victim", "from": "host-0001", "to": VICTIM},
            ]
        },
        run={"warm-up": "1 ms", "duration": "3 ms"},
    )
    return scenario.override({"control.scheme": "vl-mapping", **keys})


def rates(scenario: silvan.Scenario) -> dict[str, float]:
    """What each class receives, as a part of what a host may send."""
    result = silvan.run(scenario)
    us = (scenario.duration_ps - scenario.warm_up_ps) / 1e6
    most = us * scenario.link_gbps * 1e3 / 8 * 2048 / 2074
    return {row["name"]: row["delivered_bytes"] / most for row in result.classes.to_pylist()}


@pytest.mark.parametrize(
    ("mapping", "lanes", "separate"),
    [
        # Without control: the same fabric and traffic.
        ("none", 2, False),
        # 4 and 6 are equal modulo two, not modulo three.
        ("dbbm", 2, False),
        ("dbbm", 3, True),
        # Digits above the spine's: 4 is 10, 6 is 11.
        ("vftree", 2, True),
        ("voqnet", 8, True),
    ],
)
def test_a_victim_has_what_the_hotspot_leaves(mapping: str, lanes: int, separate: bool) -> None:
    """
    Oracle: the hotspot gives each of its three inputs a third of its link.

    On the same lane, packets of both flows enter the buffer behind the spine in turn, so the
    victim gets as much as the hot flow; on its own it gets the rest of the way up.
    """
    keys = {"control.vl-mapping.mapping": mapping}
    scenario = crossing(lanes=lanes, **({"control.scheme": "none"} if mapping == "none" else keys))
    measured = rates(scenario)
    assert measured["hot"] == pytest.approx(1 / 3, rel=0.01)
    assert measured["victim"] == pytest.approx(2 / 3 if separate else 1 / 3, rel=0.01)


@pytest.mark.parametrize(
    ("lanes", "fabric", "mapping", "message", "hint"),
    [
        (1, TREE, "vftree", "one data lane", "vl.data-vls"),
        (2, TREE, "voqnet", "each of 8 hosts", "smaller fabric"),
        (2, TORUS, "dbbm", "from deadlock", "fat tree"),
    ],
)
def test_a_fabric_without_lanes_for_it_is_refused(
    lanes: int, fabric: Any, mapping: str, message: str, hint: str
) -> None:
    """Oracle: what each mapping needs."""
    with pytest.raises(ScenarioError) as refused:
        crossing(lanes, fabric, **{"control.vl-mapping.mapping": mapping})
    assert refused.value.key == "control.vl-mapping.mapping"
    assert message in str(refused.value)
    assert hint in str(refused.value.hint)


def test_compared_with_the_memory_of_one_lane() -> None:
    """Oracle: lanes times their buffers are the buffer of the scenario."""
    one_lane = crossing(1, **{"control.scheme": "none"})
    settings = {one.name: one for one in baselines(one_lane)}["vftree"].overrides
    scenario = one_lane.override(settings)
    assert scenario.vl.data_vls * scenario.switch.buffer.bytes == one_lane.switch.buffer.bytes
    torus = crossing(1, TORUS, **{"control.scheme": "none"})
    assert "vftree" not in {one.name for one in baselines(torus)}
