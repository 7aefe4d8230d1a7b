"""Fabrics from graphs of networkx have its nodes, cables and distances."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import networkx as nx
import pytest

import silvan


def tree() -> nx.Graph:
    """Two levels of switches, three of them with hosts."""
    graph = nx.complete_bipartite_graph(2, 3)
    graph.add_edges_from((f"h{switch}-{n}", switch) for switch in (2, 3, 4) for n in range(3))
    return graph


def torn_mesh() -> nx.Graph:
    """A tree of uneven depth, nodes named by tuples."""
    graph = nx.Graph([((0, 0), (0, 1)), ((0, 1), (1, 1)), ((1, 1), (2, 1)), ((1, 1), (1, 2))])
    hosts = [("a", (0, 0)), ("b", (0, 1)), ("c", (2, 1)), ("d", (2, 1)), ("e", (1, 2))]
    graph.add_edges_from(hosts)
    return graph


@pytest.mark.parametrize(
    "graph", [tree(), torn_mesh(), nx.star_graph(6)], ids=["tree", "mesh", "star"]
)
def test_counts_and_distances_are_those_of_networkx(graph: nx.Graph) -> None:
    facts = silvan.Scenario.from_networkx(graph).describe()
    hosts = [node for node, degree in graph.degree if degree == 1]
    assert facts["hosts"] == len(hosts)
    assert facts["switches"] == graph.number_of_nodes() - len(hosts)
    assert facts["links"] == graph.number_of_edges()
    lengths = [nx.shortest_path_length(graph, *pair) for pair in permutations(hosts, 2)]
    assert facts["max_hops"] == max(lengths)
    assert facts["mean_hops"] == pytest.approx(sum(lengths) / len(lengths))


def test_each_packet_takes_a_shortest_path() -> None:
    graph = tree()
    scenario = silvan.Scenario.from_networkx(
        graph,
        name="graph",
        traffic={"flow": [{"from": "h2-0", "to": "h4-1", "bytes": "40 KiB"}]},
        run={"duration": "1 ms"},
    )
    summary = silvan.run(scenario).summary
    assert summary["delivered_bytes"] == 40 * 1024
    hops = nx.shortest_path_length(graph, "h2-0", "h4-1")
    assert summary["packet_hops"] == hops * summary["delivered_packets"]


def test_attributes_are_keys_of_switches_hosts_and_cables() -> None:
    graph = nx.Graph()
    graph.add_node("s", kind="switch", ports=8, lid=9, colour="red")
    graph.add_node("a", kind="host", port_guid="0x10")
    graph.add_node("only", kind="switch")
    graph.add_edge("a", "s", speed="QDR", width="1x", length="7 m", weight=3)
    graph.add_edges_from([("b", "s"), ("s", "only")])
    fabric = silvan.Scenario.from_networkx(graph, fabric={"unreachable": "error"}).to_dict()[
        "fabric"
    ]
    assert fabric["routing"] == "d-mod-k"
    switches = {one["name"]: one for one in fabric["switch"]}
    assert (switches["s"]["ports"], switches["s"]["lid"]) == (8, 9)
    assert switches["only"]["ports"] == 1
    hosts = {one["name"]: one for one in fabric["host"]}
    assert set(hosts) == {"a", "b"}
    assert int(hosts["a"]["port-guid"], 16) == 0x10
    cable = fabric["cable"][0]
    assert (cable["speed"], cable["width"], cable["length"]) == ("QDR", "1x", "7 m")
    ends = {frozenset((one["from"], one["to"])) for one in fabric["cable"]}
    assert ends == {frozenset(("a", "s:1")), frozenset(("b", "s:2")), frozenset(("s:3", "only:1"))}


def test_parallel_edges_are_parallel_cables() -> None:
    graph = nx.MultiGraph([("s", "t"), ("s", "t"), ("a", "s"), ("b", "t")])
    assert silvan.Scenario.from_networkx(graph).describe()["links"] == 4


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (nx.DiGraph([("a", "s"), ("s", "b")]), "the graph is directed"),
        (nx.Graph(), "the graph has no nodes"),
        ({"a": "s"}, "is not a graph of networkx"),
        (nx.Graph([(1, "s"), ("1", "s")]), "nodes 1 and '1' have the same name 1"),
        (nx.Graph([("a", "s"), ("s", "s")]), "node s has an edge to itself"),
        (nx.star_graph(255), "switch 0 has 255 edges, but a switch has at most 254 ports"),
    ],
)
def test_an_impossible_graph_is_refused(graph: Any, message: str) -> None:
    with pytest.raises(silvan.ScenarioError, match=message) as caught:
        silvan.Scenario.from_networkx(graph)
    assert caught.value.hint


def test_impossible_attributes_are_refused() -> None:
    graph = nx.star_graph(3)
    graph.nodes[0]["kind"] = "host"
    with pytest.raises(silvan.ScenarioError, match="host 0 has 3 edges"):
        silvan.Scenario.from_networkx(graph)
    graph.nodes[0]["kind"] = "hub"
    with pytest.raises(silvan.ScenarioError, match="node 0: kind is 'hub'"):
        silvan.Scenario.from_networkx(graph)
    graph.nodes[0]["kind"] = "switch"
    graph.edges[0, 1]["length"] = 7
    with pytest.raises(silvan.ScenarioError, match="length"):
        silvan.Scenario.from_networkx(graph)


def test_routes_that_can_deadlock_are_refused() -> None:
    ring = nx.cycle_graph(5)
    ring.add_edges_from((f"h{n}", n) for n in range(5))
    shortest = {"routing": "min-hop"}
    with pytest.raises(silvan.ScenarioError, match="can deadlock"):
        silvan.Scenario.from_networkx(ring, fabric=shortest).describe()
    silvan.Scenario.from_networkx(ring, fabric={**shortest, "allow-credit-loops": True}).describe()


def test_an_irregular_graph_has_routes_without_deadlock_on_one_lane() -> None:
    """
    Oracle: the paths of networkx in the states (switch, has turned down) below one root.

    A switch of the Petersen graph has three neighbours and is two cables at most from each other.
    The root is switch 0, as all are alike: its neighbours have rank 1, the others rank 2.
    """
    graph = nx.petersen_graph()
    graph.add_edges_from((f"h{n}", n) for n in range(10))
    scenario = silvan.Scenario.from_networkx(graph)
    facts = scenario.describe()
    assert facts["routing"] == "up-down"
    reason = "the switches form no fat tree; fat-tree needs a tree: "
    assert facts["routing_reason"].startswith(reason)
    assert facts["data_vls"] == 1
    assert not facts["has_credit_loop"]
    # Names are added in the order of nodes, and equal ranks are ordered by it.
    switches = nx.petersen_graph()
    rank = nx.single_source_shortest_path_length(switches, 0)
    states = nx.DiGraph()
    for a, b in [*switches.edges, *(edge[::-1] for edge in switches.edges)]:
        is_up = (rank[b], b) < (rank[a], a)
        states.add_edge((a, True), (b, is_up))
        if not is_up:
            states.add_edge((a, False), (b, False))
    legal = dict(nx.all_pairs_shortest_path_length(states))
    least = {
        (a, b): min(legal[a, True].get((b, up), 99) for up in (True, False))
        for a, b in permutations(range(10), 2)
    }
    mean = sum(least.values()) / len(least) + 2
    assert facts["mean_hops"] >= mean - 1e-9
    assert facts["mean_hops"] <= 1.1 * mean
    named = silvan.Scenario.from_networkx(graph, fabric={"routing": "up-down", "roots": ["9"]})
    assert named.describe()["mean_hops"] == pytest.approx(facts["mean_hops"], rel=0.1)
    with pytest.raises(silvan.ScenarioError, match="no switch named"):
        silvan.Scenario.from_networkx(graph, fabric={"routing": "up-down", "roots": ["x"]})
