"""Topologies have the graphs, diameters and bisections of their papers.

Second implementation: networkx. The bisection is the least number of cables between switches that
separate two halves of the hosts, where the hosts of a switch stay together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations

import networkx as nx
import numpy as np
import pytest

import silvan
from tests.conftest import ddr_scenario


def fabric_graph(**keys: object) -> nx.MultiGraph:
    return ddr_scenario(fabric={**keys, "allow-credit-loops": True}).to_networkx()


def switches_of(graph: nx.MultiGraph) -> nx.MultiGraph:
    kinds = graph.nodes(data="kind")
    return graph.subgraph(node for node, kind in kinds if kind == "switch")


def leaves_of(graph: nx.MultiGraph) -> list[str]:
    """Switches with hosts."""
    hosts = [node for node, kind in graph.nodes(data="kind") if kind == "host"]
    return sorted({next(iter(graph[host])) for host in hosts})


def diameter(graph: nx.MultiGraph) -> int:
    lengths = dict(nx.all_pairs_shortest_path_length(switches_of(graph)))
    leaves = leaves_of(graph)
    return max(int(lengths[one][other]) for one in leaves for other in leaves)


def cut(graph: nx.MultiGraph, half: set[str]) -> int:
    """The fewest cables that separate the leaves of a half from the others."""
    network = nx.DiGraph()
    for one, other in switches_of(graph).edges():
        for ends in ((one, other), (other, one)):
            capacity = network.get_edge_data(*ends, {"capacity": 0})["capacity"]
            network.add_edge(*ends, capacity=capacity + 1)
    for leaf in leaves_of(graph):
        ends = ("source", leaf) if leaf in half else (leaf, "sink")
        network.add_edge(*ends, capacity=10**6)
    return int(nx.maximum_flow_value(network, "source", "sink"))


def halves(leaves: list[str]) -> Iterator[set[str]]:
    first, *others = leaves
    for rest in combinations(others, len(leaves) // 2 - 1):
        yield {first, *rest}


def bisection(graph: nx.MultiGraph) -> int:
    return min(cut(graph, half) for half in halves(leaves_of(graph)))


DRAGONFLY = {"switches-per-group": 3, "hosts-per-switch": 1, "global-per-switch": 1}
PLUS = {"hosts-per-leaf": 1, "spines-per-group": 2, "global-per-spine": 2}

CASES = [
    # g groups with m cables for each pair: m (g / 2)^2.
    pytest.param({"generator": "dragonfly", **DRAGONFLY, "groups": 4}, 3, 4, id="dragonfly"),
    pytest.param(
        {"generator": "dragonfly", **DRAGONFLY, "groups": 4, "wiring": "consecutive"},
        3,
        4,
        id="dragonfly-consecutive",
    ),
    pytest.param(
        {"generator": "dragonfly-plus", **PLUS, "leaves-per-group": 2, "groups": 4},
        3,
        4,
        id="dragonfly-plus",
    ),
    # S switches in the dimension that is cut, K cables, N switches: K S N / 4.
    pytest.param(
        {"generator": "hyper-x", "sizes": [4, 2], "hosts-per-switch": 1}, 2, 4, id="hyper-x"
    ),
    pytest.param(
        {"generator": "hyper-x", "sizes": [4, 2], "cables": [1, 3], "hosts-per-switch": 1},
        2,
        8,
        id="hyper-x-cables",
    ),
    pytest.param(
        {"generator": "hyper-x", "sizes": [2, 2, 2], "hosts-per-switch": 1}, 3, 4, id="cube"
    ),
    # Half of the leaves times their cables upwards.
    pytest.param(
        {"generator": "leaf-spine", "leaf-hosts": [4] * 6, "spine-cables": [1, 2]},
        2,
        9,
        id="leaf-spine",
    ),
    # GPUs times half of the servers; with pods the cables of half of the leaves, if fewer.
    pytest.param(
        {"generator": "rail-optimised", "servers": 6, "gpus-per-server": 3}, 2, 9, id="rails"
    ),
    pytest.param(
        {
            "generator": "rail-optimised",
            "servers": 8,
            "gpus-per-server": 3,
            "servers-per-pod": 4,
            "spines": 2,
        },
        4,
        6,
        id="pods",
    ),
    # In a fat tree: half of the cables at the top.
    pytest.param({"generator": "xgft", "children": [4, 8], "parents": [1, 2]}, 2, 8, id="xgft"),
]


@pytest.mark.parametrize(("keys", "expected_diameter", "expected_bisection"), CASES)
def test_closed_forms(
    keys: dict[str, object], expected_diameter: int, expected_bisection: int
) -> None:
    graph = fabric_graph(**keys)
    assert diameter(graph) == expected_diameter
    assert bisection(graph) == expected_bisection


def test_hyper_x_is_a_product_of_complete_graphs() -> None:
    graph = fabric_graph(generator="hyper-x", sizes=[3, 4], **{"hosts-per-switch": 1})
    hamming = nx.cartesian_product(nx.complete_graph(3), nx.complete_graph(4))
    assert nx.is_isomorphic(nx.Graph(switches_of(graph)), hamming)


def test_slim_fly_of_five_is_the_graph_of_hoffman_and_singleton() -> None:
    graph = nx.Graph(switches_of(fabric_graph(generator="slim-fly", q=5)))
    assert nx.is_isomorphic(graph, nx.hoffman_singleton_graph())


@pytest.mark.parametrize("q", [4, 5, 7, 8, 9])
def test_bisection_of_slim_fly_is_between_its_bounds(q: int) -> None:
    """At least q^3 / 2, by the second eigenvalue q of the Laplacian.

    A cut of columns of both halves has q (q^2 + 1) / 2, or q^3 / 2 for an even q.
    """
    graph = fabric_graph(generator="slim-fly", q=q, **{"hosts-per-switch": 1})
    switches = nx.Graph(switches_of(graph))
    adjacent = nx.to_numpy_array(switches)
    eigenvalues = np.linalg.eigvalsh(np.diag(adjacent.sum(axis=0)) - adjacent)
    assert eigenvalues[1] == pytest.approx(q)
    half = set()
    for node in switches:
        _, side, column, _ = node.split("-")
        if int(column) < (q // 2 if side == "0" else q - q // 2):
            half.add(node)
    assert len(half) == q * q
    assert nx.cut_size(switches, half) == q * (q * q + q % 2) // 2


def test_jellyfish_is_as_wide_as_random_graphs_are() -> None:
    """Nearly all graphs of N nodes and degree r have a bisection of N (r / 4 - sqrt(r ln 2) / 2).

    Their diameter is at most 1 + log((2 + e) r N ln N) / log(r - 1) (Singla et al. 2012, section
    4.1, from B. Bollobas).
    """
    nodes, degree = 64, 12
    keys = {"switches": nodes, "hosts-per-switch": 1, "cables-per-switch": degree}
    graphs = []
    for seed in range(4):
        graph = nx.Graph(switches_of(fabric_graph(generator="jellyfish", seed=seed, **keys)))
        graphs.append(graph)
        width = nodes * (degree / 4 - math.sqrt(degree * math.log(2)) / 2)
        half, other = nx.community.kernighan_lin_bisection(graph, seed=seed)
        assert len(half) == len(other)
        assert nx.cut_size(graph, half) >= width
        reach = math.log(2.001 * degree * nodes * math.log(nodes)) / math.log(degree - 1)
        assert nx.diameter(graph) <= 1 + math.ceil(reach)
    edges = [frozenset(map(frozenset, graph.edges())) for graph in graphs]
    assert len(set(edges)) == 4
    again = fabric_graph(generator="jellyfish", seed=3, **keys)
    assert frozenset(map(frozenset, switches_of(again).edges())) == edges[3]


def test_levels_have_their_own_links() -> None:
    graph = fabric_graph(
        generator="dragonfly",
        **DRAGONFLY,
        **{
            "local-link": {"speed": "NDR"},
            "global-link": {"rate": "1.6 Tbit/s", "latency": "300 ns"},
        },
    )
    found = {(None, None, "DDR"): 0, (None, None, "NDR"): 0, ("1.6 Tbit/s", "300 ns", "DDR"): 0}
    for _, _, keys in graph.edges(data=True):
        found[keys.get("rate"), keys.get("latency"), keys["speed"]] += 1
    # Hosts; three cables in each of 4 groups; one for each pair of groups.
    assert list(found.values()) == [12, 12, 6]


def test_a_graph_and_back() -> None:
    graph = fabric_graph(generator="rail-optimised", servers=3, spines=2)
    back = silvan.Scenario.from_networkx(graph, fabric={"routing": "d-mod-k"})
    assert nx.utils.graphs_equal(_without_ends(back.to_networkx()), _without_ends(graph))


def _without_ends(graph: nx.MultiGraph) -> nx.MultiGraph:
    """Ports are numbered in the order of the edges."""
    for _, _, keys in graph.edges(data=True):
        del keys["ends"]
    return graph


def test_a_message_on_a_link_of_any_rate_takes_its_time() -> None:
    """Oracle: bytes divided by the rate, twice the latency, and the packets in the switch."""
    scenario = ddr_scenario(
        fabric={"generator": "single-switch", "hosts": 2},
        link={"rate": "3.6 Tbit/s", "latency": "100 ns"},
        switch={"latency": "50 ns"},
        packet={"mtu": "2 KiB", "header": "0 B"},
        traffic={"sequence": [{"from": "host-0000", "to": ["host-0001"], "message": "2 KiB"}]},
        run={"duration": "1 ms"},
    )
    (row,) = silvan.run(scenario).sequences.to_pylist()
    serialisation = 2048 * 8 / 3.6
    assert row["end_ps"] == pytest.approx(serialisation + 2 * 100_000 + 50_000, abs=2)


def test_a_parameter_that_does_not_fit_has_a_place_and_a_hint() -> None:
    text = '[fabric]\ngenerator = "dragonfly"\nswitches-per-group = 4\nhosts-per-switch = 2\n'
    text += "global-per-switch = 2\ngroups = 10\n"
    with pytest.raises(silvan.ScenarioError) as caught:
        silvan.Scenario.from_toml(text)
    message = str(caught.value)
    assert (
        "6: fabric.groups: dragonfly: 10 groups, but 4 switches with 2 global ports each" in message
    )
    assert caught.value.hint == "write 2 to 9"
