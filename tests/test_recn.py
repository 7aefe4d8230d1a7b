"""Set-aside queues of RECN and FBICM, against what shared and separate buffers derive."""

from __future__ import annotations

from typing import Any

import pytest

import silvan
from silvan.comparing.baselines import fitting
from silvan.errors import ScenarioError
from tests.separate_buffers import (
    BEHIND_ONE_SPINE,
    LEFT_BY_HOTSPOT,
    check_parting_behind_one_spine,
    check_what_the_hotspot_leaves,
    flows,
)
from tests.test_vl_mapping import LEAVES, TORUS, TREE, crossing, rates

VARIANTS = ("recn", "fbicm")
# Two leaves of eight hosts below two spines, and three leaves of four. Hosts with even numbers are
# reached over one spine.
WIDE = {"generator": "xgft", "children": [8, 2], "parents": [1, 2], "routing": "d-mod-k"}
THREE = {"generator": "xgft", "children": [4, 3], "parents": [1, 2], "routing": "d-mod-k"}


def set_aside(variant: str, queues: int, fabric: Any = TREE, **keys: Any) -> silvan.Scenario:
    """Set up a scheme with so many set-aside queues, each with 16 KiB, as lane 0 has."""
    scheme = {"control.scheme": "recn", "control.recn.variant": variant}
    return crossing(1 + queues, fabric, **{"switch.buffer": "16 KiB", **scheme, **keys})


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("queues", [1, 3])
@pytest.mark.parametrize(("source", "load", "expected"), LEFT_BY_HOTSPOT)
def test_a_victim_has_what_the_hotspot_leaves(
    variant: str, queues: int, source: int, load: float, expected: float
) -> None:
    check_what_the_hotspot_leaves(set_aside(variant, queues), source, load, expected)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("hot", "victim"), BEHIND_ONE_SPINE)
def test_flows_part_wherever_the_hotspot_is(variant: str, hot: int, victim: int) -> None:
    check_parting_behind_one_spine(set_aside(variant, 1, LEAVES), hot, victim)


@pytest.mark.parametrize("variant", ["none", *VARIANTS])
@pytest.mark.parametrize("queues", [1, 2, 3])
def test_blocking_returns_with_more_roots_than_queues(variant: str, queues: int) -> None:
    """
    Oracle: two hotspots give each of their four inputs a quarter of their links.

    With a queue for each, the victim has the rest of the cable. With one queue, the second
    hotspot's flow shares lane 0 with the victim: both enter the buffer behind the cable in turn.
    """
    ends = [("hot-1", 0, 8), ("hot-2", 1, 10), ("victim", 2, 12)]
    ends += [(f"first-{host}", host, 8) for host in (9, 11, 13)]
    ends += [(f"second-{host}", host, 10) for host in (12, 14, 15)]
    scenario = set_aside("recn" if variant == "none" else variant, queues, WIDE)
    if variant == "none":
        scenario = scenario.override({"control.scheme": "none"})
    part = rates(scenario.override(flows(*ends)))
    separate = variant != "none" and queues >= 2
    assert part["victim"] == pytest.approx(1 / 2 if separate else 1 / 4, rel=0.01)
    assert part["hot-1"] == pytest.approx(1 / 4, rel=0.01)
    assert part["hot-2"] == pytest.approx(1 / 4, rel=0.01)


@pytest.mark.parametrize(
    ("variant", "queues", "expected"),
    [("recn", 1, 1 / 2), ("fbicm", 2, 1 / 2), ("fbicm", 1, 1 / 4)],
)
def test_a_root_inside_takes_a_queue_of_recn_and_one_for_each_destination_of_fbicm(
    variant: str, queues: int, expected: float
) -> None:
    """
    Oracle: the spine's port to the third leaf gives each of its two inputs half of its link.

    The two flows from the first leaf share a half, and the victim has the rest of their cable. With
    one queue for two destinations, the second flow waits on lane 0 with the victim, which then has
    as much as it. Both flows of the root fill a buffer alike, but for the few packets of the victim
    in it: the more room, the fewer they are.
    """
    ends = [("first", 0, 8), ("second", 1, 10), ("other", 4, 8), ("victim", 2, 6)]
    keys = {"switch.buffer": "256 KiB"}
    part = rates(set_aside(variant, queues, THREE, **keys).override(flows(*ends)))
    assert part["victim"] == pytest.approx(expected, rel=0.01)
    assert part["first"] + part["second"] == pytest.approx(1 / 2, rel=0.01)
    assert part["other"] == pytest.approx(1 / 2, rel=0.01)


@pytest.mark.parametrize("variant", VARIANTS)
def test_queues_are_freed_when_the_hotspot_has_ended(variant: str) -> None:
    """Oracle: what is offered arrives, and a later hotspot gets the only queue."""
    part = rates(
        set_aside(variant, 1).override(
            {
                "traffic.flow": [
                    {"name": "stays", "from": "host-0000", "to": "host-0004", "load": 0.9},
                    {"from": "host-0005", "to": "host-0004", "end": "500 us"},
                    {"from": "host-0007", "to": "host-0004", "end": "500 us"},
                    {"name": "hot", "from": "host-0001", "to": "host-0006", "start": "2 ms"},
                    {"name": "local-1", "from": "host-0005", "to": "host-0006", "start": "2 ms"},
                    {"name": "local-2", "from": "host-0007", "to": "host-0006", "start": "2 ms"},
                ],
                "run.warm-up": "5 ms",
                "run.duration": "8 ms",
            }
        )
    )
    assert part["hot"] == pytest.approx(1 / 3, rel=0.01)
    # The rest of the cable.
    assert part["stays"] == pytest.approx(2 / 3, rel=0.01)


def test_compared_with_the_memory_of_one_lane() -> None:
    """Oracle: the buffer of the scenario, which the lanes share."""
    one_lane = crossing(0, **{"control.scheme": "none"})
    every = {one.name: one for one in fitting(one_lane).every}
    (memory,) = {
        one["bytes"] for one in one_lane.describe()["input_buffers"] if not one["in_hosts"]
    }
    for name in VARIANTS:
        scenario = one_lane.override(every[name].overrides)
        assert scenario.vl.share_buffer
        buffers = scenario.describe()["input_buffers"]
        shared = {one["bytes"] for one in buffers if not one["in_hosts"]}
        assert shared == {memory // scenario.vl.data_vls}
    for other in (
        {"switch.queueing": "fifo"},
        {"switch.output-buffer": {"size": "8 KiB"}},
        {"fabric.path-choice": "adaptive"},
    ):
        names = {one.name for one in fitting(one_lane.override(other)).every}
        assert "dftree" in names
        assert not names & set(VARIANTS)


@pytest.mark.parametrize(
    ("queues", "fabric", "keys", "message"),
    [
        (0, TREE, {}, "one data lane"),
        (1, TORUS, {}, "from deadlock"),
        (1, TREE, {"fabric.path-choice": "adaptive"}, "several paths"),
        (1, TREE, {"switch.queueing": "fifo"}, "single queues"),
        (1, TREE, {"switch.output-buffer": {"size": "8 KiB"}}, "output buffers"),
    ],
)
def test_fabrics_without_what_it_needs_are_refused(
    queues: int, fabric: Any, keys: dict[str, Any], message: str
) -> None:
    with pytest.raises(ScenarioError, match=message) as caught:
        set_aside("recn", queues, fabric, **keys)
    assert caught.value.key == "control.recn.variant"
    assert caught.value.hint
