"""Fabrics in the formats of other programs, read by these programs or by readers written here."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
import yaml

import silvan
from silvan.errors import SilvanError
from silvan.inputs.exports.formats import Format
from tests.conftest import Command

ROOT = Path(__file__).resolve().parents[1]
REAL = ROOT / "python" / "silvan" / "examples" / "real-fabric.toml"


def xgft(children: list[int], parents: list[int]) -> silvan.Scenario:
    """Make a fat tree."""
    return silvan.Scenario(
        fabric={"generator": "xgft", "children": children, "parents": parents},
        link={"speed": "HDR", "length": "6 m"},
    )


THREE_LEVELS = xgft([4, 4, 2], [1, 2, 2])
TWO_LEVELS = silvan.Scenario(
    fabric={"generator": "leaf-spine", "leaf-hosts": [4, 4, 4], "spine-cables": [2, 2]}
)
UNEVEN = silvan.Scenario(
    fabric={"generator": "leaf-spine", "leaf-hosts": [4, 3, 1], "spine-cables": [1, 1]}
)
RAILS = silvan.Scenario(fabric={"generator": "rail-optimised", "servers": 4, "gpus-per-server": 2})
HOST_AT_SPINE = silvan.Scenario.from_networkx(
    nx.Graph(
        [("a", "leaf-1"), ("b", "leaf-2"), ("leaf-1", "top"), ("leaf-2", "top"), ("c", "top")]
    ),
    fabric={"routing": "up-down", "roots": ["top"]},
)
TREES = {
    "three levels": THREE_LEVELS,
    "two levels": TWO_LEVELS,
    "uneven": UNEVEN,
    "rails": RAILS,
    "host at spine": HOST_AT_SPINE,
    "real": silvan.Scenario.from_file(REAL),
}
of_trees = pytest.mark.parametrize("scenario", TREES.values(), ids=TREES)


def expanded(text: str) -> list[str]:
    """List the names of a hostlist of Slurm."""
    names = []
    for word in re.findall(r"[^,\[]+(?:\[[^\]]*\])?", text):
        match = re.fullmatch(r"(.*)\[(.*)\]", word)
        if match is None:
            names.append(word)
            continue
        for part in match[2].split(","):
            low, _, high = part.partition("-")
            numbers = range(int(low), int(high or low) + 1)
            names += [f"{match[1]}{number:0{len(low)}}" for number in numbers]
    return names


def entries(text: str) -> list[dict[str, str]]:
    """List the lines of a configuration file of Slurm."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return [dict(word.split("=", 1) for word in line.split()) for line in lines]


def distances(children: dict[str, list[str]]) -> dict[tuple[str, str], int]:
    """Return how many levels above two computers the lowest switch above both is."""
    graph = nx.DiGraph([(one, child) for one, below in children.items() for child in below])
    (root,) = (name for name, degree in graph.in_degree if degree == 0)
    assert nx.is_arborescence(graph)
    hosts = [name for name, degree in graph.out_degree if degree == 0]
    depth = nx.single_source_shortest_path_length(graph, root)
    lowest = nx.all_pairs_lowest_common_ancestor(graph, [(a, b) for a in hosts for b in hosts])
    return {pair: depth[pair[0]] - depth[one] for pair, one in lowest}


@of_trees
def test_slurms_tree_has_each_computer_once(scenario: silvan.Scenario) -> None:
    lines = entries(scenario.export("slurm-tree"))
    nodes = [name for line in lines for name in expanded(line.get("Nodes", ""))]
    assert len(nodes) == len(set(nodes)) > 0
    defined = [line["SwitchName"] for line in lines]
    assert len(defined) == len(set(defined))
    children = [name for line in lines for name in expanded(line.get("Switches", ""))]
    # Each switch but the last has a parent, which follows it.
    assert sorted(children) == sorted(defined[:-1])
    for place, line in enumerate(lines):
        assert ("Nodes" in line) != ("Switches" in line)
        assert set(expanded(line.get("Switches", ""))) <= set(defined[:place])


@pytest.mark.parametrize("name", ["three levels", "two levels", "uneven"])
def test_near_computers_of_slurms_tree_are_near_in_the_fabric(name: str) -> None:
    """Oracle: half of the shortest path between two hosts, by networkx."""
    scenario = TREES[name]
    children = {
        line["SwitchName"]: expanded(line.get("Nodes") or line["Switches"])
        for line in entries(scenario.export("slurm-tree"))
    }
    graph = nx.Graph(scenario.to_networkx())
    for (one, other), levels in distances(children).items():
        assert levels == nx.shortest_path_length(graph, one, other) / 2, (one, other)


def test_a_host_at_a_spine_has_a_leaf_of_its_own() -> None:
    assert HOST_AT_SPINE.export("slurm-tree").splitlines()[1:] == [
        "SwitchName=leaf-1 Nodes=a",
        "SwitchName=leaf-2 Nodes=b",
        "SwitchName=top.nodes Nodes=c",
        "SwitchName=top Switches=leaf-[1-2],top.nodes",
    ]


@pytest.mark.parametrize("name", TREES)
def test_slurms_blocks_obey_its_rules(name: str) -> None:
    """Oracle: rules of topology/block: whole powers of two of a size that no block is below."""
    lines = entries(TREES[name].export("slurm-block"))
    sizes = [int(size) for size in lines.pop()["BlockSizes"].split(",")]
    counts = [len(expanded(line["Nodes"])) for line in lines]
    assert min(counts) == sizes[0]
    assert sizes == [sizes[0] * 2**power for power in range(len(sizes))]
    assert sizes[-1] <= sizes[0] * len(lines) < sizes[-1] * 2


@of_trees
def test_topographs_model_is_slurms_tree(scenario: silvan.Scenario) -> None:
    """Oracle: topograph's rules: one parent for each switch, one block for each node."""
    model = yaml.safe_load(scenario.export("topograph"))
    lines = entries(scenario.export("slurm-tree"))
    found = {name: one["switches"] for name, one in model["switches"].items() if one["switches"]}
    wanted = {line["SwitchName"]: line for line in lines}
    assert found == {
        name: expanded(line["Switches"]) for name, line in wanted.items() if "Switches" in line
    }
    blocks = {block["switch"]: block["nodes"] for block in model["blocks"]}
    assert blocks == {
        name: expanded(line["Nodes"]) for name, line in wanted.items() if "Nodes" in line
    }


@of_trees
def test_graphml_gives_networkx_the_fabric(scenario: silvan.Scenario, tmp_path: Path) -> None:
    """Oracle: the graph of networkx, and the same fabric when silvan reads the graph again."""
    file = tmp_path / "fabric.graphml"
    file.write_text(scenario.export("graphml"))
    read = nx.MultiGraph(nx.read_graphml(file, force_multigraph=True))
    graph = scenario.to_networkx()
    assert dict(read.nodes(data=True)) == dict(graph.nodes(data=True))

    def cables(of: nx.MultiGraph, ports: Any) -> Counter[Any]:
        return Counter(
            (frozenset(ports(one, other, keys).items()), keys["speed"], keys["length"])
            for one, other, keys in of.edges(data=True)
        )

    def by_name(one: str, other: str, keys: dict[str, Any]) -> dict[str, int]:
        return dict(keys["ends"])

    def in_order(one: str, other: str, keys: dict[str, Any]) -> dict[str, int]:
        return {one: keys["from-port"], other: keys["to-port"]}

    # networkx gives the ends of an edge in either order.
    back = {frozenset(one) for one, *_ in cables(read, in_order)}
    turned = {
        frozenset({(one, b), (other, a)})
        for part in back
        for (one, a), (other, b) in [sorted(part)]
    }
    assert {one for one, *_ in cables(graph, by_name)} <= back | turned
    assert read.number_of_edges() == graph.number_of_edges()
    again = silvan.Scenario.from_networkx(read)
    assert again.describe()["mean_hops"] == pytest.approx(scenario.describe()["mean_hops"])


@of_trees
def test_ns3_reads_each_node_and_cable(scenario: silvan.Scenario) -> None:
    """Oracle: the order in which the artifact of HPCC reads its file; the graph of networkx."""
    words = iter(scenario.export("ns-3").split())
    nodes, switches, cables = (int(next(words)) for _ in range(3))
    kinds = [int(next(words)) for _ in range(switches)]
    graph = scenario.to_networkx()
    names = [name for name, kind in graph.nodes(data="kind") if kind == "host"]
    names += [name for name, kind in graph.nodes(data="kind") if kind == "switch"]
    assert kinds == list(range(nodes - switches, nodes))
    assert len(names) == nodes
    found: Counter[frozenset[str]] = Counter()
    for _ in range(cables):
        one, other, rate, delay, error = (next(words) for _ in range(5))
        found[frozenset((names[int(one)], names[int(other)]))] += 1
        assert re.fullmatch(r"\d+(\.\d+)?Gbps", rate)
        assert re.fullmatch(r"\d+(\.\d+)?ns", delay)
        assert error == "0"
    assert next(words, None) is None
    assert found == Counter(frozenset((one, other)) for one, other in graph.edges())


def test_rates_and_latencies_are_those_of_the_cables() -> None:
    """Oracle: 4x HDR carries 200 Gbit/s, light takes 5 ns for a metre; a stated latency holds."""
    assert THREE_LEVELS.export("ns-3").split()[-3:-1] == ["200Gbps", "30ns"]
    odd = silvan.Scenario(
        fabric={"generator": "single-switch", "hosts": 2},
        link={"rate": "13.5 Gbit/s", "latency": "1500 ps"},
    )
    assert odd.export("ns-3").split()[-3:-1] == ["13.5Gbps", "1.5ns"]


def test_htsim_has_the_tiers_of_a_fat_tree() -> None:
    """Oracle: m_1 hosts at a leaf, m_1 m_2 of a pod, w_2 and w_3 cables up."""
    text = THREE_LEVELS.export("htsim")
    header, *tiers = text.split("\n\n")
    assert header.splitlines() == ["Nodes 32", "Tiers 3", "Podsize 16"]
    common = {"Downlink_speed_Gbps": "200", "Downlink_Latency_ns": "30"}
    values = [dict(line.split() for line in tier.splitlines()) for tier in tiers]
    assert values == [
        {"Tier": "0", "Radix_Down": "4", "Radix_Up": "2", "Oversubscribed": "2", **common},
        {"Tier": "1", "Radix_Down": "4", "Bundle": "1", "Radix_Up": "2", "Oversubscribed": "2"}
        | common,
        {"Tier": "2", "Radix_Down": "2", "Bundle": "1", **common},
    ]


@pytest.mark.parametrize("name", Format)
def test_each_format_is_said_to_be_unfit_or_written(name: str) -> None:
    torus = silvan.Scenario(fabric={"generator": "torus", "sizes": [3, 3], "hosts-per-switch": 1})
    if name in ("graphml", "ibsim", "ns-3", "slurm-block"):
        assert torus.export(name).endswith("\n")
        return
    with pytest.raises(SilvanError, match="no tree") as caught:
        torus.export(name)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        (UNEVEN, "numbers of hosts at a switch differ"),
        (silvan.Scenario(fabric={"generator": "single-switch", "hosts": 4}), "1 levels"),
        (HOST_AT_SPINE, "above the first level has hosts"),
        (xgft([2, 2], [1, 4]), "no whole ratio"),
    ],
)
def test_htsim_refuses_what_its_parameters_cannot_say(
    scenario: silvan.Scenario, words: str
) -> None:
    with pytest.raises(SilvanError, match=words):
        scenario.export("htsim")


def test_names_that_become_the_same_are_refused() -> None:
    graph = nx.Graph([("h1", "leaf 1"), ("h2", "leaf_1"), ("leaf 1", "top"), ("leaf_1", "top")])
    scenario = silvan.Scenario.from_networkx(graph)
    with pytest.raises(SilvanError, match="leaf 1 and leaf_1 have the same name"):
        scenario.export("slurm-tree")


def test_a_computer_with_two_adapters_is_one_node() -> None:
    assert "Nodes=it_s,Hca1" in TREES["real"].export("slurm-tree")


@of_trees
def test_silvan_reads_its_files_of_guids(scenario: silvan.Scenario, tmp_path: Path) -> None:
    """Oracle: the same routes as with the names that the files stand for."""
    net = tmp_path / "net"
    net.write_text(scenario.export("ibsim"))
    (tmp_path / "roots").write_text(scenario.export("root-guids"))
    (tmp_path / "nodes").write_text(scenario.export("cn-guids"))
    fabric = {"file": str(net), "format": "ibsim", "routing": "fat-tree"}
    files = {
        "root-guid-file": str(tmp_path / "roots"),
        "cn-guid-file": str(tmp_path / "nodes"),
    }
    read = silvan.Scenario(fabric={**fabric, **files})
    assert read.warnings == []
    counts = [len(read.to_dict()["fabric"][key]) for key in ("roots", "compute-nodes")]
    lines = [len(scenario.export(name).splitlines()) for name in ("root-guids", "cn-guids")]
    assert counts == lines


def test_the_command_reads_files_of_ibnetdiscover(command: Command) -> None:
    discovered = REAL.with_suffix("") / "ibnetdiscover.txt"
    outcome = command("export", discovered, "--format", "slurm-tree")
    assert (outcome.status, outcome.stderr) == (0, "")
    assert outcome.stdout == TREES["real"].export("slurm-tree")


def test_wrong_formats_are_named(command: Command, incast_file: Path) -> None:
    outcome = command("export", incast_file, "--format", "slurm")
    assert outcome.status == 2
    assert "slurm-tree" in outcome.stderr
    with pytest.raises(SilvanError, match="there is no format 'slurm'") as caught:
        silvan.Scenario.from_file(incast_file).export("slurm")
    assert "slurm-tree" in str(caught.value.hint)


SLURM = """\
ClusterName=check
SlurmctldHost=localhost
SlurmUser=root
AuthType=auth/none
CredType=cred/none
SlurmctldPort={port}
SlurmdPort={far_port}
StateSaveLocation={folder}
SlurmctldPidFile={folder}/pid
SlurmctldLogFile={folder}/log
TopologyPlugin=topology/tree
SelectType=select/cons_tres
ProctrackType=proctrack/pgid
SwitchType=switch/none
MpiDefault=none
NodeName={nodes} NodeAddr=127.0.0.1 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES
"""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.mark.slow
@pytest.mark.needs("slurmctld", "slurm-client", "root")
@pytest.mark.parametrize("name", ["three levels", "uneven", "host at spine", "real"])
def test_slurm_reads_its_tree(name: str, tmp_path: Path) -> None:
    """Oracle: Slurm's controller, which prints the nodes below each switch."""
    text = TREES[name].export("slurm-tree")
    lines = entries(text)
    nodes = [one for line in lines for one in expanded(line.get("Nodes", ""))]
    (tmp_path / "topology.conf").write_text(text)
    conf = tmp_path / "slurm.conf"
    conf.write_text(
        SLURM.format(port=free_port(), far_port=free_port(), folder=tmp_path, nodes=",".join(nodes))
    )
    environment = {"SLURM_CONF": str(conf), "PATH": "/usr/sbin:/usr/bin:/bin"}
    slurmctld = shutil.which("slurmctld", path="/usr/sbin:/usr/bin")
    assert slurmctld
    with (tmp_path / "out").open("wb") as out:
        daemon = subprocess.Popen([slurmctld, "-D", "-c"], env=environment, stdout=out, stderr=out)
    try:
        deadline = time.monotonic() + 60
        while True:
            done = subprocess.run(
                ["scontrol", "show", "topology"], env=environment, capture_output=True, text=True
            )
            if done.returncode == 0 or daemon.poll() is not None or time.monotonic() > deadline:
                break
            time.sleep(0.1)
    finally:
        daemon.terminate()
        daemon.wait(60)
    assert done.returncode == 0, done.stderr + (tmp_path / "log").read_text()
    seen = {line["SwitchName"]: line for line in entries(done.stdout)}
    assert set(seen) == {line["SwitchName"] for line in lines}
    for line in lines:
        if "Nodes" in line:
            assert set(expanded(seen[line["SwitchName"]]["Nodes"])) == set(expanded(line["Nodes"]))
    assert set(expanded(seen[lines[-1]["SwitchName"]]["Nodes"])) == set(nodes)


@contextmanager
def served_by_ibsim(folder: Path, text: str) -> Iterator[dict[str, str]]:
    """Let ibsim serve a net file; gives the environment of programs."""
    (folder / "net").write_text(text)
    name = f"silvan-export-{os.getpid()}-{folder.name}"
    environment = {"PATH": "/usr/sbin:/usr/bin:/bin", "IBSIM_SOCKNAME": name}
    with (folder / "ibsim.log").open("wb") as out:
        ibsim = subprocess.Popen(
            ["ibsim", "-s", "-n", "net"],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
    try:
        deadline = time.monotonic() + 60
        while f"@{name}:ctl" not in Path("/proc/net/unix").read_text():
            assert ibsim.poll() is None, (folder / "ibsim.log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield environment
    finally:
        ibsim.terminate()
        ibsim.wait(60)


@pytest.mark.slow
@pytest.mark.needs("ibsim-utils", "opensm", "root")
@pytest.mark.parametrize("name", ["three levels", "two levels"])
def test_opensm_routes_the_net_of_ibsim_by_files_of_guids(name: str, tmp_path: Path) -> None:
    """Oracle: OpenSM's fat-tree routing counts the roots and compute nodes that it was given."""
    scenario = TREES[name]
    roots, hosts = (scenario.export(kind).splitlines() for kind in ("root-guids", "cn-guids"))
    # Half of the hosts do not compute: OpenSM finds all without a file.
    nodes = hosts[: len(hosts) // 2]
    (tmp_path / "roots").write_text("\n".join(roots) + "\n")
    (tmp_path / "nodes").write_text("\n".join(nodes) + "\n")
    log = tmp_path / "opensm.log"
    words = ["opensm", "--once", "--routing_engine", "ftree", "--log_file", str(log), "-D", "0x43"]
    words += ["--root_guid_file", str(tmp_path / "roots")]
    words += ["--cn_guid_file", str(tmp_path / "nodes")]
    with served_by_ibsim(tmp_path, scenario.export("ibsim")) as environment:
        done = subprocess.run(
            ["ibsim-run", *words],
            cwd=tmp_path,
            env=environment | {"OSM_TMP_DIR": str(tmp_path), "OSM_CACHE_DIR": str(tmp_path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    said = log.read_text(errors="replace")
    assert done.returncode == 0, done.stderr + said
    assert "ftree tables configured on all switches" in said, said
    assert f"{len(hosts)} CA ports ({len(nodes)} of them CNs)" in said, said
    assert f"{len(roots)} switches at rank 0 (roots)" in said, said
