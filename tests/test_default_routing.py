"""The default routing and lanes of fabrics."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from typing import TYPE_CHECKING, Any

import networkx as nx
import pytest

import silvan

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command

DRAGONFLY = {
    "generator": "dragonfly",
    "switches-per-group": 4,
    "hosts-per-switch": 2,
    "global-per-switch": 2,
}
PLUS = {
    "generator": "dragonfly-plus",
    "leaves-per-group": 4,
    "spines-per-group": 4,
    "hosts-per-leaf": 4,
    "global-per-spine": 4,
}
CHOICES = ["table", "ecmp", "adaptive", "spray-random", "valiant", "ugal-l", "ugal-g", "par"]


def paths(scenario: silvan.Scenario) -> list[list[tuple[str, str]]]:
    """Cables between switches, in their direction, on the path of each pair of hosts."""
    graph = scenario.to_networkx()
    kinds = nx.get_node_attributes(graph, "kind")
    hosts = [node for node, kind in kinds.items() if kind == "host"]
    peers = {}
    for a, b, keys in graph.edges(data=True):
        peers[a, keys["ends"][a]] = b
        peers[b, keys["ends"][b]] = a
    ports = scenario.egress_ports()
    found = []
    for source, target in permutations(range(len(hosts)), 2):
        at, cables = peers[hosts[source], 1], []
        while kinds[to := peers[at, ports[at][target]]] == "switch":
            cables.append((at, to))
            at = to
        found.append(cables)
    return found


def group(switch: str) -> str:
    return switch.partition("-switch")[0].partition("-leaf")[0].partition("-spine")[0]


def test_a_dragonfly_takes_one_cable_between_groups() -> None:
    """
    Oracle: counts by hand. Each host sends a packet to each of 71 others.

    A cable inside a group carries 2 x 2 paths between its switches, 2 x 16 to the hosts of the two
    groups behind the other switch, and 2 x 16 back: 68. A cable between groups carries 8 x 8.
    """
    scenario = silvan.Scenario(fabric={**DRAGONFLY, "groups": 9})
    facts = scenario.describe()
    assert (facts["routing"], facts["data_vls"]) == ("group-minimal", 2)
    assert facts["routing_reason"] == "the default of dragonfly"
    loads: Counter[tuple[str, str]] = Counter()
    for path in paths(scenario):
        assert sum(group(a) != group(b) for a, b in path) <= 1
        loads.update(path)
    inside = {load for (a, b), load in loads.items() if group(a) == group(b)}
    between = {load for (a, b), load in loads.items() if group(a) != group(b)}
    assert (max(inside), between) == (68, {64})


def test_a_dragonfly_plus_is_loaded_evenly() -> None:
    """Oracle: 16 hosts of a group, 5 groups joined by 4 cables each: 16 x 16 / 4 pairs on each."""
    scenario = silvan.Scenario(fabric={**PLUS, "groups": 5})
    facts = scenario.describe()
    assert (facts["routing"], facts["data_vls"]) == ("group-minimal", 1)
    loads = Counter(cable for path in paths(scenario) for cable in path)
    between = {load for (a, b), load in loads.items() if group(a) != group(b)}
    assert between == {64}


@pytest.mark.parametrize(
    "fabric",
    [
        DRAGONFLY,
        {**PLUS, "leaves-per-group": 2, "spines-per-group": 2, "hosts-per-leaf": 2},
        {"generator": "slim-fly", "q": 5, "hosts-per-switch": 1},
        {"generator": "jellyfish", "switches": 12, "hosts-per-switch": 2, "cables-per-switch": 4},
        {"generator": "leaf-spine", "leaf-hosts": [4, 4], "spine-cables": [2, 2]},
    ],
    ids=lambda fabric: fabric["generator"],
)
def test_tables_are_the_same_under_every_path_choice(fabric: dict[str, Any]) -> None:
    expected = silvan.Scenario(fabric=fabric).egress_ports()
    for choice in CHOICES:
        scenario = silvan.Scenario(fabric={**fabric, "path-choice": choice})
        assert scenario.egress_ports() == expected, choice
        assert scenario.warnings == []
        assert not scenario.describe()["has_credit_loop"]


@pytest.mark.parametrize("generator", ["torus", "hyper-x"])
def test_a_change_of_the_tables_is_named(generator: str) -> None:
    fabric = {"generator": generator, "sizes": [3, 3], "hosts-per-switch": 1}
    assert silvan.Scenario(fabric={**fabric, "path-choice": "ugal-l"}).warnings == []
    scenario = silvan.Scenario(fabric={**fabric, "path-choice": "adaptive"})
    (warning,) = scenario.warnings
    assert warning.startswith("fabric.path-choice: dimension-order leaves switches no choice")
    assert scenario.describe()["routing"] == "min-hop"
    written = {**fabric, "path-choice": "adaptive", "routing": "min-hop"}
    assert silvan.Scenario(fabric=written).warnings == []


@pytest.mark.parametrize(
    ("fabric", "lanes"),
    [
        ({"generator": "torus", "sizes": [5, 5], "hosts-per-switch": 1}, 2),
        ({"generator": "torus", "sizes": [4, 4], "hosts-per-switch": 1}, 1),
        ({"generator": "mesh", "sizes": [5, 5], "hosts-per-switch": 1}, 1),
        ({**DRAGONFLY, "path-choice": "ugal-l"}, 4),
        ({**DRAGONFLY, "path-choice": "par"}, 5),
        ({"generator": "leaf-spine", "leaf-hosts": [2, 2], "spine-cables": [1, 1]}, 1),
    ],
)
def test_lanes_are_as_many_as_the_routes_need(fabric: dict[str, Any], lanes: int) -> None:
    """Oracle: the table of docs/guide/topologies.md; and one lane less is refused."""
    scenario = silvan.Scenario(fabric=fabric)
    assert scenario.to_dict()["vl"]["data-vls"] == lanes
    assert scenario == silvan.Scenario(fabric=fabric, vl={"data-vls": lanes})
    if lanes > 1:
        with pytest.raises(silvan.ScenarioError, match="can deadlock"):
            silvan.Scenario(fabric=fabric, vl={"data-vls": lanes - 1})


def test_the_dragonfly_saturates_where_its_hosts_do(command: Command, tmp_path: Path) -> None:
    """Oracle: 15/16, the last step of the bisection below the payload of a host's link, 0.987."""
    path = tmp_path / "df.toml"
    path.write_text(
        silvan.Scenario(
            name="df",
            fabric={**DRAGONFLY, "groups": 9},
            traffic={"uniform": [{"load": 0.5}]},
            run={"warm-up": "200 us", "duration": "600 us"},
        ).to_toml()
    )
    found = command("saturate", str(path), "--json")
    assert found.status == 0
    assert "0.938" in found.stdout or "0.9375" in found.stdout
