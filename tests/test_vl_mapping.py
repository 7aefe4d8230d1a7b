"""Lanes by destination and output, against what shared and separate buffers derive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import silvan
from silvan.comparing.baselines import fitting
from silvan.errors import ScenarioError
from tests.conftest import ddr_scenario

# Two leaves of four hosts below two spines. By destination modulo two, hosts 4 and 6 are reached
# over the same spine.
HOT, VICTIM = "host-0004", "host-0006"
TREE = {"generator": "xgft", "children": [4, 2], "parents": [1, 2], "routing": "d-mod-k"}
TORUS = {"generator": "torus", "sizes": [3, 3], "hosts-per-switch": 1}


def crossing(lanes: int = 2, fabric: Any = TREE, **keys: Any) -> silvan.Scenario:
    """Let host-0000 send to a hotspot of three senders, and host-0001 next to it.

    With 0 lanes the scenario does not write how many it has.
    """
    scenario = ddr_scenario(
        fabric=fabric,
        link={"speed": "EDR"},
        switch={"buffer": "64 KiB"},
        vl={"data-vls": lanes} if lanes else {},
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
    """Rate of each class, as a share of the rate that a host may send."""
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
        # Hosts side by side: 4 to 7 are a group of two, and 4 and 6 are not of one of four.
        ("flow2sl", 2, False),
        ("flow2sl", 4, True),
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
        (1, TREE, "flow2sl", "one data lane", "vl.data-vls"),
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
    """Oracle: the buffer of the scenario, which the lanes share."""
    one_lane = crossing(0, **{"control.scheme": "none"})
    settings = {one.name: one for one in fitting(one_lane).every}["vftree"].overrides
    scenario = one_lane.override(settings)
    assert scenario.switch.buffer == one_lane.switch.buffer
    assert (scenario.vl.data_vls, scenario.vl.share_buffer) == (8, True)
    torus = crossing(2, TORUS, **{"control.scheme": "none"})
    assert "vftree" not in {one.name for one in fitting(torus).every}


@pytest.mark.parametrize(("hot", "victim"), [(4, 6), (5, 7), (6, 4)])
def test_flows_to_a_hotspot_leave_the_others_their_lane(hot: int, victim: int) -> None:
    """
    Oracle: as above: a third of the cable for the hotspot's flow, the rest for the victim.

    Both are behind one spine, whichever the hotspot is, and the hotspot's link is full.
    """
    scenario = crossing(2, **{"control.scheme": "dftree", "switch.buffer": "32 KiB"})
    others = [host for host in (4, 5, 6, 7) if host not in (hot, victim)]
    scenario = scenario.override(
        {
            "traffic.flow": [
                {"name": "hot", "from": "host-0000", "to": f"host-000{hot}"},
                {"name": "local-1", "from": f"host-000{others[0]}", "to": f"host-000{hot}"},
                {"name": "local-2", "from": f"host-000{others[1]}", "to": f"host-000{hot}"},
                {"name": "victim", "from": "host-0001", "to": f"host-000{victim}"},
            ]
        }
    )
    part = rates(scenario)
    assert part["victim"] == pytest.approx(2 / 3, rel=0.02)
    assert part["hot"] == pytest.approx(1 / 3, rel=0.02)
    assert part["hot"] + part["local-1"] + part["local-2"] == pytest.approx(1, rel=0.01)


def test_a_hotspot_that_ends_gives_its_lane_back() -> None:
    """
    Oracle: what is offered arrives, and no packet is marked any more.

    Until 5 ms the link has also carried what waited for the hotspot.
    """
    keys = {"control.scheme": "dftree", "control.dftree.hold": "200 us", "switch.buffer": "32 KiB"}
    scenario = crossing(2, **keys).override(
        {
            "traffic.flow": [
                {"name": "stays", "from": "host-0000", "to": HOT, "load": 0.9},
                {"from": "host-0005", "to": HOT, "end": "500 us"},
                {"from": "host-0007", "to": HOT, "end": "500 us"},
            ],
            "run.warm-up": "5 ms",
            "run.duration": "8 ms",
        }
    )
    result = silvan.run(scenario)
    (stays,) = (row for row in result.classes.to_pylist() if row["name"] == "stays")
    assert stays["delivered_bytes"] == pytest.approx(0.9 * 3e3 * 12_500 * 2048 / 2074, rel=0.01)
    assert stays["marked_packets"] == 0


@pytest.mark.slow
def test_the_twin_in_python_moves_the_same_packets() -> None:
    """Oracle: dFtree in Python; port p is row p of the table of ports, and has lanes 2p, 2p + 1."""
    scenario = crossing(2, **{"control.scheme": "dftree", "switch.buffer": "32 KiB"})
    built_in = silvan.run(scenario)
    to_hosts = [row["peer"].startswith("host-") for row in built_in.ports.to_pylist()]
    hosts, threshold, hold = 8, 16 * 1024, 1e9
    state = np.zeros((hosts + 1, len(to_hosts)))
    state[hosts] = to_hosts

    def on_departure(state, now, port_vl, queued_bytes, has_credit, wire_bytes, marked, input_port):  # type: ignore[no-untyped-def]
        return queued_bytes >= threshold and state[hosts, port_vl // 2] > 0

    def select_vl(state, now, source, destination, sl, vl):  # type: ignore[no-untyped-def]
        return 1 if now < state[source, destination] else 0

    def on_feedback(state, now, source, destination, sl, acknowledged, marked):  # type: ignore[no-untyped-def]
        if marked:
            state[source, destination] = now + hold
        return False

    twin = silvan.Callbacks(
        state, on_departure=on_departure, select_vl=select_vl, on_feedback=on_feedback
    )
    feedback = {"control.scheme": "none", "control.feedback.coalesce": "50 us"}
    mine = silvan.run(scenario.override(feedback), control=twin)
    assert mine.classes.equals(built_in.classes)
    assert mine.ports["xmit_bytes"].to_pylist() == built_in.ports["xmit_bytes"].to_pylist()


@pytest.mark.parametrize(
    ("lanes", "fabric", "message"), [(1, TREE, "one data lane"), (2, TORUS, "from deadlock")]
)
def test_fabrics_without_a_lane_for_hotspots_are_refused(
    lanes: int, fabric: Any, message: str
) -> None:
    with pytest.raises(ScenarioError, match=message) as caught:
        crossing(lanes, fabric, **{"control.scheme": "dftree"})
    assert caught.value.key == "control.dftree.threshold"
    assert caught.value.hint


# Three leaves of three hosts below two spines. Odd destinations are reached over one spine, whose
# port n leads to leaf n.
LEAVES = {"generator": "xgft", "children": [3, 3], "parents": [1, 2], "routing": "d-mod-k"}


def by_output(mapping: str, lanes: int, hot: int, victim: int) -> silvan.Scenario:
    """Send from two hosts of a leaf: to a hotspot of three senders, and past it over the spine."""
    first = hot // 3 * 3
    source = 3 if first == 0 else 0
    others = [host for host in range(first, first + 3) if host != hot]
    flows = [(source, hot), (others[0], hot), (others[1], hot), (source + 1, victim)]
    names = ("hot", "local-1", "local-2", "victim")
    return ddr_scenario(
        fabric=LEAVES,
        link={"speed": "EDR"},
        switch={"buffer": "64 KiB"},
        vl={"data-vls": lanes} if lanes > 1 else {},
        control={"scheme": "vl-mapping", "vl-mapping": {"mapping": mapping}},
        traffic={
            "flow": [
                {"name": name, "from": f"host-000{source}", "to": f"host-000{to}"}
                for name, (source, to) in zip(names, flows, strict=True)
            ]
        },
        run={"warm-up": "1 ms", "duration": "3 ms"},
    )


@pytest.mark.parametrize(
    ("mapping", "lanes", "hot", "victim", "separate"),
    [
        # The spine's ports 2 and 3 are different modulo two, 1 and 3 are not.
        ("obqa", 2, 3, 7, True),
        ("obqa", 2, 1, 7, False),
        ("obqa", 3, 1, 7, True),
        ("voqsw", 5, 1, 7, True),
        # One output of the spine: the queue of the hotspot's flow ends in another switch.
        ("obqa", 2, 3, 5, False),
        ("voqsw", 5, 3, 5, False),
    ],
)
def test_lanes_by_output_part_flows_that_part_at_the_next_switch(
    mapping: str, lanes: int, hot: int, victim: int, separate: bool
) -> None:
    """
    Oracle: as above: a third of the link for each flow to the hotspot.

    On one lane of the spine's input the victim gets as much, on its own the rest of the cable.
    """
    measured = rates(by_output(mapping, lanes, hot, victim))
    assert measured["hot"] == pytest.approx(1 / 3, rel=0.01)
    assert measured["victim"] == pytest.approx(2 / 3 if separate else 1 / 3, rel=0.01)


@pytest.mark.parametrize(
    ("mapping", "lanes", "fabric", "message"),
    [
        ("obqa", 2, {**TREE, "path-choice": "ecmp"}, "several outputs"),
        ("voqsw", 5, TREE, "each of 6 ports"),
        ("obqa", 2, TORUS, "from deadlock"),
    ],
)
def test_fabrics_without_lanes_by_output_are_refused(
    mapping: str, lanes: int, fabric: Any, message: str
) -> None:
    with pytest.raises(ScenarioError, match=message) as refused:
        crossing(lanes, fabric, **{"control.vl-mapping.mapping": mapping})
    assert refused.value.key == "control.vl-mapping.mapping"
    assert refused.value.hint


@pytest.mark.slow
def test_the_twin_in_python_has_the_same_lanes_by_output() -> None:
    """Oracle: OBQA in Python, which finds a port's number in the table of ports."""
    lanes = 2
    scenario = by_output("obqa", lanes, 3, 7)
    built_in = silvan.run(scenario)
    state = np.array([row["port"] for row in built_in.ports.to_pylist()], dtype=float)

    def select_next_vl(  # type: ignore[no-untyped-def]
        state,
        now,
        input_port,
        output_port,
        next_input_port,
        next_output_port,
        source,
        destination,
        sl,
        vl,
    ):
        if next_output_port < 0:
            return 0
        return int(state[next_output_port] - 1) % lanes

    twin = silvan.Callbacks(state, select_next_vl=select_next_vl)
    mine = silvan.run(scenario.override({"control.scheme": "none"}), control=twin)
    assert mine.classes.equals(built_in.classes)
    assert mine.ports["xmit_bytes"].to_pylist() == built_in.ports["xmit_bytes"].to_pylist()


@pytest.mark.parametrize("seed", range(3))
def test_no_flow_starves_with_lanes_by_output(seed: int) -> None:
    """
    Oracle: round-robin. A port serves at most six inputs in turn and a cable four hosts.

    So each flow has a 24th of a link, or what it offers; no host gets more than its link.
    """
    random = np.random.default_rng(seed)
    hosts = range(8)
    ends = [(source, (source + 1 + int(random.integers(7))) % 8) for source in hosts]
    loads = [round(float(random.uniform(0.02, 1)), 2) for _ in hosts]
    scenario = crossing(2, **{"control.vl-mapping.mapping": "obqa"}).override(
        {
            "traffic.flow": [
                {
                    "name": f"f{source}",
                    "from": f"host-000{source}",
                    "to": f"host-000{to}",
                    "load": load,
                }
                for (source, to), load in zip(ends, loads, strict=True)
            ]
        }
    )
    part = rates(scenario)
    for source, load in enumerate(loads):
        assert part[f"f{source}"] >= 0.95 * min(load, 1 / 24)
    for host in hosts:
        assert sum(part[f"f{source}"] for source, to in ends if to == host) <= 1.001
