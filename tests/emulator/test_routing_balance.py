"""Routings of silvan and engines of OpenSM in the same trees: reachability, deadlock, balance."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import silvan
from silvan.errors import EmulationError
from silvan.inputs.fabric_lists import FabricLists
from silvan.live.emulation import Emulation
from silvan.live.opensm_routing import GuidFiles, free_sockname, opensm_tables, with_tables
from silvan.planning.paths import Paths
from tests.emulator.conftest import REAL_TOOLS

pytestmark = REAL_TOOLS


class Tree:
    """A tree of three levels that lacks cables, with storage at one spine.

    Leaves have 3 to 6 hosts and 3 to 4 cables up, one leaf has lost its hosts.
    """

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        pods, leaves, middles, roots = 4, 4, 4, 4
        self.roots = [f"root-{root}" for root in range(roots)]
        self.compute: list[str] = []
        switches: list[dict[str, Any]] = []
        hosts: list[dict[str, Any]] = []
        cables: list[dict[str, Any]] = []
        next_port: dict[str, int] = {}

        def port(switch: str) -> str:
            next_port[switch] = next_port.get(switch, 0) + 1
            return f"{switch}:{next_port[switch]}"

        def host(name: str, switch: str) -> None:
            hosts.append({"name": name})
            cables.append({"from": name, "to": port(switch)})

        for pod in range(pods):
            for middle in range(middles):
                above = f"middle-{pod}-{middle}"
                cables += [{"from": port(above), "to": port(root)} for root in self.roots]
            for leaf in range(leaves):
                name = f"leaf-{pod}-{leaf}"
                lost = draw.choice([None, *range(1, middles)])
                cables += [
                    {"from": port(name), "to": port(f"middle-{pod}-{middle}")}
                    for middle in range(middles)
                    if middle != lost
                ]
                for place in range(0 if (pod, leaf) == (1, 2) else draw.randint(3, 6)):
                    self.compute.append(f"node-{pod}-{leaf}-{place}")
                    host(self.compute[-1], name)
        for place in range(2):
            host(f"storage-{place}", "middle-0-0")
        switches += [{"name": name, "ports": 36} for name in next_port]
        self.scenario = silvan.Scenario(
            fabric={"switch": switches, "host": hosts, "cable": cables},
            vl={"data-vls": 8},
        )
        self.lists = FabricLists.of(self.scenario)

    def files(self, folder: Path) -> GuidFiles:
        """Write the files of roots and compute nodes."""

        def guid(name: str, offset: int) -> str:
            return f"{int(str(self.lists.nodes[name]['guid']), 16) + offset:#018x}\n"

        roots, compute = folder / "roots", folder / "compute"
        roots.write_text("# roots\n" + "".join(guid(name, 0) for name in self.roots))
        compute.write_text("".join(guid(name, 1) for name in self.compute))
        return GuidFiles(roots, compute)


def own_tables(scenario: silvan.Scenario) -> str:
    with Emulation(scenario, sockname=free_sockname(), paused=True) as emulation:
        return str(emulation.control("tables")["tables"])


def judged(scenario: silvan.Scenario, tables: str) -> tuple[Paths, float, float]:
    """Give the paths, and the maximum and the spread of them over cables, all hosts to all."""
    paths = Paths(FabricLists.of(scenario), tables)
    steps, arrived, _ = paths._walk
    weights = np.where(arrived, paths._pairs, 0)[..., None]
    used = steps >= 0
    counts = np.bincount(
        steps[used],
        weights=np.broadcast_to(weights, steps.shape)[used],
        minlength=len(paths.channels),
    )
    assert counts.max() == paths.balance().max_paths
    return paths, float(counts.max()), float(counts.std() / counts.mean())


@pytest.mark.parametrize("seed", range(3))
def test_a_damaged_tree_is_balanced_as_well_as_by_opensm(tmp_path: Path, seed: int) -> None:
    """Oracle: OpenSM's engines, with the same roots and compute nodes."""
    tree = Tree(seed)
    files = tree.files(tmp_path)
    assert tree.scenario.describe()["routing"] == "fat-tree"
    keys = {
        "fabric.root-guid-file": str(files.roots),
        "fabric.cn-guid-file": str(files.compute_nodes),
    }
    own = {
        "default": tree.scenario,
        "fat-tree": tree.scenario.override(keys),
        "up-down": tree.scenario.override(
            {"fabric.routing": "up-down", "fabric.root-guid-file": str(files.roots)}
        ),
    }
    theirs = {
        engine: judged(tree.scenario, opensm_tables(tree.scenario, engine, files=files))
        for engine in ("ftree", "updn")
    }
    most = min(maximum for _, maximum, _ in theirs.values())
    least_spread = min(spread for _, _, spread in theirs.values())
    for name, scenario in own.items():
        facts = scenario.describe()
        assert facts["routing"] == ("up-down" if name == "up-down" else "fat-tree")
        assert not facts["has_credit_loop"]
        paths, maximum, spread = judged(scenario, own_tables(scenario))
        assert paths.unconnected_pairs == 0, name
        assert maximum <= most, name
        assert spread <= 1.05 * least_spread, name


def test_opensm_reads_the_files(tmp_path: Path) -> None:
    """Without roots, OpenSM's ftree refuses a tree that is not regular; updn takes other roots."""
    tree = Tree(1)
    files = tree.files(tmp_path)
    with pytest.raises(EmulationError, match="not routed this fabric by ftree"):
        opensm_tables(tree.scenario, "ftree")
    with pytest.raises(EmulationError, match="not routed this fabric by ftree"):
        # Storage at a middle switch is a compute node then.
        opensm_tables(tree.scenario, "ftree", files=GuidFiles(files.roots))
    tables = opensm_tables(tree.scenario, "ftree", files=files)
    routed = with_tables(tree.scenario, tables, tmp_path)
    assert not routed.describe()["has_credit_loop"]
    leaf = tmp_path / "leaf"
    leaf.write_text(f"{tree.lists.nodes['leaf-0-0']['guid']}\n")
    by_leaf = opensm_tables(tree.scenario, "updn", files=GuidFiles(leaf))
    assert by_leaf != opensm_tables(tree.scenario, "updn", files=files)
    # An engine that reads no roots is not given them.
    minhop = opensm_tables(tree.scenario, "minhop", files=GuidFiles(leaf, leaf))
    assert minhop == opensm_tables(tree.scenario, "minhop")
