"""Changed fabrics, and paths by tables, against closed forms and a second implementation."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping

import networkx
import numpy as np
import pytest

import silvan
from silvan.inputs.fabric_lists import FabricLists, with_fabric
from silvan.live.emulation import Emulation
from silvan.live.opensm_routing import free_sockname
from silvan.planning.paths import LANE_GBPS, Paths, cable_gbps
from silvan.planning.whatif import with_hotspots
from tests.conftest import ddr_scenario

SMALL = {"generator": "leaf-spine", "leaf-hosts": [3, 2, 4], "spine-cables": [2, 1]}


def scenario(fabric: Mapping[str, object]) -> silvan.Scenario:
    return ddr_scenario(fabric=fabric, traffic={"nodes": {"v": 0.2, "c": 0.8, "hotspots": 1}})


def own_tables(one: silvan.Scenario) -> str:
    with Emulation(one, sockname=free_sockname(), paused=True) as emulation:
        return str(emulation.control("tables")["tables"])


def paths_of(one: silvan.Scenario) -> Paths:
    return Paths(FabricLists.of(one), own_tables(one))


def walked(one: silvan.Scenario, tables: str) -> dict[tuple[str, str], list[tuple[str, int]]]:
    """Follow each path node by node over a graph of networkx: the ports between switches."""
    graph = one.to_networkx()
    beyond = {
        (name, values["ends"][name]): other
        for first, second, values in graph.edges(data=True)
        for name, other in ((first, second), (second, first))
    }
    by_lid = {node["lid"]: name for name, node in graph.nodes(data=True)}
    table: dict[tuple[str, str], int] = {}
    switch = ""
    for line in tables.splitlines():
        if heading := re.match(r"Unicast lids .* Lid (\d+) ", line):
            switch = by_lid[int(heading[1])]
        elif line.startswith("0x"):
            table[switch, by_lid[int(line[:6], 16)]] = int(line.split()[1])
    hosts = [name for name, node in graph.nodes(data=True) if node["kind"] == "host"]
    found = {}
    for source, destination in itertools.permutations(hosts, 2):
        (at,) = graph[source]
        ports = []
        while True:
            port = table[at, destination]
            if beyond[at, port] == destination:
                break
            ports.append((at, port))
            at = beyond[at, port]
        found[source, destination] = ports
    return found


def test_rates_of_cables_are_those_of_the_simulation() -> None:
    for speed, width in itertools.product(LANE_GBPS, ("1x", "4x")):
        link = {"speed": speed, "width": width}
        one = ddr_scenario(fabric={"generator": "single-switch", "hosts": 2}, link=link)
        (rate, _) = (cable_gbps(cable) for cable in FabricLists.of(one).cables)
        assert rate == pytest.approx(one.link_gbps, rel=1e-8), speed


@pytest.mark.parametrize("shift", [1, 5, 18, 100, 323, 647])
def test_a_fat_tree_with_d_mod_k_carries_every_shift_in_full(shift: int) -> None:
    paths = _fat_tree()
    hosts = np.arange(648)
    assert paths.shares(hosts, (hosts + shift) % 648).tolist() == [1.0] * 648


def test_paths_of_a_fat_tree_are_spread_evenly() -> None:
    paths = _fat_tree()
    # 18 hosts of a leaf send to the 630 hosts of other leaves over 18 cables.
    balance = paths.balance()
    assert (balance.max_paths, balance.mean_paths, balance.ratio) == (630, 630, 1)
    assert (paths.unconnected_pairs, paths.looping_pairs, paths.pairs) == (0, 0, 648 * 647)
    assert paths.most_cables == 4
    assert paths.service_levels == 1


_cached: list[Paths] = []


def _fat_tree() -> Paths:
    if not _cached:
        _cached.append(paths_of(scenario({"generator": "fat-tree-648", "routing": "d-mod-k"})))
    return _cached[0]


@pytest.mark.parametrize(("hosts", "cables"), [(4, 2), (6, 2), (2, 1), (3, 3)])
def test_oversubscription_divides_the_rate(hosts: int, cables: int) -> None:
    fabric = {"leaf-hosts": [hosts, hosts], "spine-cables": [1] * cables}
    paths = paths_of(scenario({"generator": "leaf-spine", "routing": "d-mod-k", **fabric}))
    everyone = np.arange(2 * hosts)
    shares = paths.shares(everyone, (everyone + hosts) % (2 * hosts))
    assert shares.mean() == pytest.approx(cables / hosts)


def test_many_to_one_share_the_last_cable() -> None:
    paths = paths_of(scenario({"generator": "single-switch", "hosts": 6}))
    shares = paths.shares(np.arange(1, 6), np.zeros(5, dtype=np.int64))
    assert shares == pytest.approx([0.2] * 5)
    assert paths.bisection(20, 1).mean == 1.0
    assert paths.balance().ratio == 1.0


@pytest.mark.parametrize("routing", ["d-mod-k", "min-hop"])
def test_balance_and_bisection_equal_a_second_implementation(routing: str) -> None:
    one = scenario({**SMALL, "routing": routing})
    tables = own_tables(one)
    paths = Paths(FabricLists.of(one), tables)
    ways = walked(one, tables)
    counts = dict.fromkeys(paths.channels, 0)
    for ports in ways.values():
        for port in ports:
            counts[port] += 1
    assert paths.balance().max_paths == max(counts.values())
    assert paths.balance().mean_paths == pytest.approx(sum(counts.values()) / len(counts))

    generator, means = np.random.default_rng(7), []
    for _ in range(50):
        order = generator.permutation(9)
        flows = [
            (paths.hosts[a], paths.hosts[b]) for a, b in zip(order[:4], order[4:8], strict=True)
        ]
        load = dict.fromkeys(paths.channels, 0)
        for flow in flows:
            for port in ways[flow]:
                load[port] += 1
        means.append(sum(1 / max([1, *(load[port] for port in ways[flow])]) for flow in flows) / 4)
    bisection = paths.bisection(50, 7)
    assert bisection.mean == pytest.approx(sum(means) / 50)
    assert bisection.lowest == pytest.approx(min(means))


def test_equal_seeds_give_equal_permutations() -> None:
    paths = paths_of(scenario({**SMALL, "routing": "d-mod-k"}))
    assert paths.bisection(30, 5) == paths.bisection(30, 5)
    assert paths.bisection(30, 5) != paths.bisection(30, 6)


def test_paths_that_end_or_loop_are_counted() -> None:
    one = scenario({**SMALL, "routing": "d-mod-k"})
    lists, tables = FabricLists.of(one), own_tables(one)
    lid, leaf = lists.nodes["host-0008"]["lid"], lists.nodes["leaf-00"]["lid"]

    def changed(port: int) -> Paths:
        lines, at = [], 0
        for line in tables.splitlines():
            if heading := re.match(r"Unicast lids .* Lid (\d+) ", line):
                at = int(heading[1])
            if at == leaf and line.startswith(f"{lid:#06x} "):
                line = f"{lid:#06x} {port:03} : (gone)"
            lines.append(line)
        return Paths(lists, "\n".join(lines))

    # Three hosts of the leaf send to a port without a cable, or to each other's.
    assert changed(0).unconnected_pairs == 3
    assert changed(0).looping_pairs == 0
    spine = lists.nodes["spine-00"]["lid"]
    lines, at = [], 0
    for line in tables.splitlines():
        if heading := re.match(r"Unicast lids .* Lid (\d+) ", line):
            at = int(heading[1])
        if at == spine and line.startswith(f"{lid:#06x} "):
            line = f"{lid:#06x} 001 : (back)"  # the cable to leaf-00, which sends it up again
        if at == leaf and line.startswith(f"{lid:#06x} "):
            line = f"{lid:#06x} 004 : (up)"
        lines.append(line)
    looping = Paths(lists, "\n".join(lines))
    assert looping.looping_pairs >= 3
    assert looping.unconnected_pairs == looping.looping_pairs
    with pytest.raises(silvan.EmulationError, match="a port that the fabric does not have"):
        changed(200)


def test_a_failed_spine_takes_its_cables_with_it() -> None:
    one = scenario(SMALL)
    lists = FabricLists.of(one)
    changed = with_fabric(one, lists.without("spine-00"))
    graph = one.to_networkx()
    graph.remove_node("spine-00")
    assert networkx.utils.graphs_equal(changed.to_networkx(), graph)
    # Without the other spine as well, leaves are islands.
    alone = lists.without("spine-00").without("spine-01")
    assert networkx.number_connected_components(with_fabric(one, alone).to_networkx()) == 3


def test_a_failed_cable_or_leaf_is_gone() -> None:
    one = scenario(SMALL)
    lists = FabricLists.of(one)
    assert len(lists.without("leaf-00:4").cables) == len(lists.cables) - 1
    leaf = with_fabric(one, lists.without("leaf-02")).describe()
    assert (leaf["hosts"], leaf["switches"]) == (5, 4)
    host = with_fabric(one, lists.without("leaf-00:1")).describe()
    assert (host["hosts"], host["switches"]) == (8, 5)


def test_a_new_leaf_is_cabled_as_its_model() -> None:
    one = scenario(SMALL)
    lists = FabricLists.of(one)
    with pytest.raises(
        silvan.ScenarioError, match="spine-00 has no free port for a new leaf: all 6"
    ):
        lists.with_leaf("leaf-01")
    for name in ("spine-00", "spine-01"):
        lists.nodes[name]["ports"] = 12
    grown = lists.with_leaf("leaf-01")
    leaf, hosts = "new-leaf-0000", ["new-host-0000", "new-host-0001"]
    changed = with_fabric(one, grown).to_networkx()
    assert sorted(changed[leaf]) == sorted([*hosts, "spine-00", "spine-01"])
    assert changed.number_of_edges(leaf, "spine-00") == 2
    assert with_fabric(one, grown).describe()["hosts"] == 11
    # Each node has a separate range of 256 GUIDs for its ports.
    spans = [int(node["guid"], 16) >> 8 for _, node in changed.nodes(data=True)]
    assert len(set(spans)) == len(spans) == 5 + 1 + 11


def test_ports_of_one_adapter_stay_ports_of_it() -> None:
    switch = [{"name": name, "ports": 4} for name in ("left", "right")]
    ports = [
        {"name": "first", "guid": "0x10"},
        {"name": "second", "guid": "0x10", "adapter-port": 2},
        {"name": "other", "port-guid": "0x99"},
    ]
    cables = [
        {"from": "first", "to": "left:1"},
        {"from": "second", "to": "right:1"},
        {"from": "other", "to": "right:2"},
        {"from": "left:3", "to": "right:3"},
        {"from": "left:4", "to": "right:4"},
    ]
    one = scenario({"switch": switch, "host": ports, "cable": cables, "routing": "min-hop"})
    lists = FabricLists.of(one)
    changed = with_fabric(one, lists.without("left:3"))
    assert FabricLists.of(changed).nodes == lists.nodes
    assert lists.nodes["second"]["adapter-port"] == 2
    assert lists.nodes["other"]["port-guid"] == "0x0000000000000099"
    assert "adapter-port" not in lists.nodes["first"]
    assert "port-guid" not in lists.nodes["second"]


def test_what_the_fabric_does_not_have_is_refused() -> None:
    lists = FabricLists.of(scenario(SMALL))
    for what in ("spine-09", "leaf-00:99", "leaf-00:", ":1", ""):
        with pytest.raises(silvan.ScenarioError, match="no switch or cable"):
            lists.without(what)
    with pytest.raises(silvan.ScenarioError, match="is a host"):
        lists.without("host-0001")
    with pytest.raises(silvan.ScenarioError, match="no switch with hosts"):
        lists.with_leaf("spine-00")
    alone = FabricLists.of(scenario({"generator": "single-switch", "hosts": 2}))
    with pytest.raises(silvan.ScenarioError, match="--fail: without switch-00 the fabric has no"):
        alone.without("switch-00")


def test_a_hotspot_replaces_the_load() -> None:
    one = ddr_scenario(
        fabric=SMALL, traffic={"incast": [{"to": "host-0001"}]}, run={"duration": "100 us"}
    )
    roles = silvan.run(with_hotspots(one, ["host-0003"])).hosts.to_pylist()
    assert [one["name"] for one in roles if one["role"].startswith("hotspot")] == ["host-0003"]
    with pytest.raises(silvan.ScenarioError, match='no host named "missing"'):
        with_hotspots(one, ["missing"])
