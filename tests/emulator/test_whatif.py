"""`silvan whatif` as a user calls it, with OpenSM's routes."""

from __future__ import annotations

import io
import itertools
import json
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx
import pytest

import silvan
from silvan.cli.printer import put_widest
from silvan.cli.whatif import _tables
from silvan.inputs.fabric_lists import FabricLists, with_fabric
from silvan.live.opensm_routing import opensm_tables, route
from silvan.planning.whatif import Variant, WhatIfRow, what_if, with_hotspots
from tests.conftest import Command
from tests.emulator.conftest import REAL_TOOLS
from tests.test_planning import walked

pytestmark = REAL_TOOLS

TREE = """\
[fabric]
generator = "leaf-spine"
leaf-hosts = [2, 2, 2]
spine-cables = [1, 1]
"""
PAIR = """\
[fabric]
switch = [{ name = "left", ports = 8 }, { name = "right", ports = 8 }]
host = [{ name = "a" }, { name = "b" }, { name = "c" }, { name = "d" }]
cable = [
    { from = "a", to = "left:1" },
    { from = "b", to = "left:2" },
    { from = "c", to = "right:1" },
    { from = "d", to = "right:2" },
    { from = "left:5", to = "right:6" },
    { from = "left:7", to = "right:8" },
]
"""
TORUS = """\
[fabric]
generator = "torus"
sizes = [4, 4]
hosts-per-switch = 1
"""


def rows(command: Command, file: Path, text: str, *words: str) -> dict[tuple[str, str], Any]:
    file.write_text(text)
    done = command("whatif", file, "--json", "--duration", "200 us", "--permutations", "50", *words)
    assert done.status == 0, done.stderr
    return {(row["fabric"], row["engine"]): row for row in json.loads(done.stdout)["rows"]}


def test_a_tree_is_judged_as_it_is_and_with_failures(tmp_path: Path, command: Command) -> None:
    words = ("--engine", "minhop", "--engine", "ftree", "--fail", "spine-00", "--cc")
    found = rows(command, tmp_path / "tree.toml", TREE, *words)
    assert list(found) == [
        ("as is", "d-mod-k"),
        ("as is", "minhop"),
        ("as is", "ftree"),
        ("without spine-00", "minhop"),
        ("without spine-00", "ftree"),
    ]
    for (fabric, _), row in found.items():
        assert (row["unconnected_pairs"], row["looping_pairs"]) == (0, 0)
        assert row["deadlock_free"]
        assert row["refused"] is row["not_simulated"] is None
        # Two hosts of a leaf send to four hosts of others, over one cable or two.
        cables = 1 if fabric == "without spine-00" else 2
        assert row["mean_paths"] == 2 * 4 / cables
        assert row["balance"] == 1
    # The rates are those that a run of the stored routes has.
    overrides = {"run.duration": "200 us", "run.seed": 1, "vl.data-vls": 8}
    scenario = silvan.Scenario.from_toml(TREE, overrides=overrides)
    tables = tmp_path / "tables.lfts"
    tables.write_text(route(scenario, "ftree"))
    routed = with_hotspots(scenario, 1).override(
        {"fabric.routing": "lfts", "fabric.routing-file": str(tables)}
    )
    for scheme, prefix in (("none", ""), ("ib-cc", "cc_")):
        rates = silvan.run(routed.override({"control.scheme": scheme})).measures
        row = found["as is", "ftree"]
        assert row[f"{prefix}hotspots_gbps"] == rates["hotspots_gbps"]
        assert row[f"{prefix}other_receivers_gbps"] == rates["other_receivers_gbps"]


def test_files_of_guids_are_for_the_engines_that_read_them(
    tmp_path: Path, command: Command
) -> None:
    """
    Oracle: a chain of three leaves and two spines by hand, where the first spine is the root.

    Leaf 2 hangs below leaf 1 by spine 1, so its rank is 3, and ftree refuses the compute nodes of
    two ranks unless the file leaves those of leaf 2 out.
    """
    text = """\
[fabric]
switch = [
    { name = "leaf-0", ports = 8, guid = "0x10" },
    { name = "leaf-1", ports = 8, guid = "0x11" },
    { name = "leaf-2", ports = 8, guid = "0x12" },
    { name = "spine-0", ports = 8, guid = "0x20" },
    { name = "spine-1", ports = 8, guid = "0x21" },
]
host = [
    { name = "a", guid = "0xa0" }, { name = "b", guid = "0xb0" }, { name = "c", guid = "0xc0" },
]
cable = [
    { from = "a", to = "leaf-0:1" }, { from = "b", to = "leaf-1:1" },
    { from = "c", to = "leaf-2:1" },
    { from = "leaf-0:5", to = "spine-0:1" }, { from = "leaf-1:5", to = "spine-0:2" },
    { from = "leaf-1:6", to = "spine-1:1" }, { from = "leaf-2:6", to = "spine-1:2" },
]
"""
    (tmp_path / "roots").write_text("0x20 # spine-0\n")
    (tmp_path / "compute").write_text("0xa1\n0xb1\n")
    engines = ("--engine", "ftree", "--engine", "updn", "--engine", "minhop")
    roots = ("--root-guid-file", str(tmp_path / "roots"))
    compute = ("--cn-guid-file", str(tmp_path / "compute"))
    found = rows(command, tmp_path / "chain.toml", text, *engines, *roots)
    reason = "is connected to switch 0x12 with rank 3, while FatTree leaf rank is 1"
    assert reason in found["as is", "ftree"]["refused"]
    assert found["as is", "updn"]["unconnected_pairs"] == 0
    found = rows(command, tmp_path / "chain.toml", text, *engines, *roots, *compute)
    assert found["as is", "ftree"]["refused"] is None
    assert found["as is", "minhop"]["unconnected_pairs"] == 0


@pytest.mark.parametrize(("columns", "tables"), [(80, 2), (140, 1)])
def test_tables_fit_the_terminal(
    monkeypatch: pytest.MonkeyPatch, columns: int, tables: int
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    row = WhatIfRow(
        "without spine-00",
        "torus-2QoS",
        unconnected_pairs=419256,
        looping_pairs=0,
        deadlock_free=True,
        service_levels=16,
        balance=12.0,
        bisection=0.803,
        hotspots_gbps=397.469,
        other_receivers_gbps=123.478,
        cc_hotspots_gbps=397.469,
        cc_other_receivers_gbps=137.299,
    )
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    put_widest(*_tables("storage", [row], 1000, cc=True))
    lines = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue()).splitlines()
    assert max(map(len, lines)) <= columns
    assert sum(line.startswith("┏") for line in lines) == tables
    for text in ("419256", "torus-2QoS", "0.803", "397.469", "137.299"):
        assert text in terminal.getvalue()
    # A pipe has no width, so nothing is cut.
    piped = io.StringIO()
    monkeypatch.setattr("sys.stdout", piped)
    long = replace(row, fabric="without " + 100 * "x")
    put_widest(*_tables("storage", [long], 1000, cc=True))
    assert "without " + 100 * "x" in piped.getvalue()


def test_deadlocks_are_those_that_a_second_implementation_finds(
    tmp_path: Path, command: Command
) -> None:
    engines = ("minhop", "sssp", "nue", "dor")
    words = [word for engine in engines for word in ("--engine", engine)]
    found = rows(command, tmp_path / "torus.toml", TORUS, *words)
    scenario = silvan.Scenario.from_toml(
        TORUS + "[vl]\ndata-vls = 8\n", overrides={"fabric.routing": "none"}
    )
    for engine in engines:
        row = found["as is", engine]
        tables = opensm_tables(scenario, engine)
        if " sl " in tables:
            continue
        dependencies = networkx.DiGraph()
        for ports in walked(scenario, tables).values():
            dependencies.add_edges_from(itertools.pairwise(ports))
        acyclic = networkx.is_directed_acyclic_graph(dependencies)
        assert row["deadlock_free"] == acyclic, engine
    assert not found["as is", "minhop"]["deadlock_free"]


def test_lanes_make_a_torus_free_of_deadlocks(tmp_path: Path, command: Command) -> None:
    words = ("--engine", "lash", "--engine", "torus-2QoS", "--fail", "switch-2-2")
    found = rows(command, tmp_path / "torus.toml", TORUS, *words)
    assert len(found) == 5
    for row in found.values():
        assert row["deadlock_free"], row
    assert found["as is", "lash"]["service_levels"] > 1
    assert found["without switch-2-2", "torus-2QoS"]["hosts"] == 15


def test_a_new_leaf_is_routed(tmp_path: Path, command: Command) -> None:
    words = ("--engine", "minhop", "--add-leaf", "left")
    row = rows(command, tmp_path / "pair.toml", PAIR, *words)["with a new leaf", "minhop"]
    assert row["refused"] is row["not_simulated"] is None
    assert (row["hosts"], row["unconnected_pairs"]) == (6, 0)
    # Two hosts of a leaf send to four others, over two cables; so do those of the model.
    assert row["mean_paths"] == 2 * 4 / 2


def test_own_routes_have_their_lanes(tmp_path: Path, command: Command) -> None:
    torus = TORUS.replace("[4, 4]", "[5, 5]")
    for routing, deadlock_free in (("dimension-order", True), ("min-hop", False)):
        text = torus + f'routing = "{routing}"\n'
        row = rows(command, tmp_path / "torus.toml", text, "--engine", "minhop")["as is", routing]
        assert row["refused"] is row["not_simulated"] is None
        assert row["deadlock_free"] == deadlock_free
        # For min-hop, the check of a scenario agrees.
        overrides = {"vl.data-vls": 8, "fabric.allow-credit-loops": True}
        own = silvan.Scenario.from_toml(text, overrides=overrides)
        assert own.describe()["has_credit_loop"] != deadlock_free


def test_own_tables_that_loop_are_refused(tmp_path: Path, command: Command) -> None:
    one = silvan.Scenario.from_toml(PAIR, overrides={"fabric.routing": "none"})
    lines = route(one, "minhop").splitlines()
    # Towards d, the right switch sends back what it has received from the left one.
    switch, changed = "", []
    for line in lines:
        if line.startswith("Unicast"):
            switch = line
        back = "(right)" in switch and "'d'" in line
        changed.append(line.replace(" 002 ", " 006 ") if back else line)
    assert changed != lines
    (tmp_path / "loop.lfts").write_text("\n".join(changed))
    file = tmp_path / "pair.toml"
    file.write_text(PAIR + 'routing = "lfts"\nrouting-file = "loop.lfts"\n')
    done = command("whatif", file, "--engine", "minhop")
    assert done.status == 2
    error, hint = done.stderr.splitlines()
    assert re.match(
        rf'error: {file}:\d+: fabric.routing-file: packets from "[ab]" to "d" go round', error
    )
    assert "--set fabric.routing=none" in hint
    alone = ("--set", "fabric.routing=none", "--engine", "minhop", "--duration", "50 us")
    assert command("whatif", file, *alone).status == 0


def test_a_load_that_a_failure_leaves_no_host_for_is_refused(
    tmp_path: Path, command: Command
) -> None:
    file = tmp_path / "pair.toml"
    file.write_text(PAIR + '[[traffic.flow]]\nfrom = "a"\nto = "c"\n')
    done = command("whatif", file, "--engine", "minhop", "--fail", "left")
    assert done.status == 2
    error = "error: --fail: without left: traffic.flow.0.from: there is no host named"
    assert done.stderr.startswith(error)


def test_a_refusal_names_the_engine_and_the_reason(tmp_path: Path, command: Command) -> None:
    file = tmp_path / "torus.toml"
    file.write_text(TORUS)
    engines = ("--engine", "ftree", "--engine", "minhop", "--fail", "switch-0-1")
    done = command("whatif", file, "--duration", "50 us", "--permutations", "5", *engines)
    assert done.status == 0
    assert (
        "as is, ftree: OpenSM has not routed this fabric by ftree, but by minhop: " in done.stderr
    )
    assert re.search(r"ftree +│ +refused", done.stdout)
    only = command("whatif", file, "--engine", "ftree")
    assert only.status == 1
    origin = command("whatif", file, "--engine", "torus-2QoS", "--fail", "switch-0-1", "--json")
    (_, _, changed) = json.loads(origin.stdout)["rows"]
    assert "switch-0-1 has failed" in changed["refused"]


def test_loops_and_gaps_are_counted_and_not_simulated() -> None:
    scenario = silvan.Scenario.from_toml(TREE, overrides={"fabric.routing": "none"})
    lists = FabricLists.of(scenario)
    islands = with_fabric(scenario, lists.without("spine-00").without("spine-01"))
    (row,) = what_if([Variant("islands", islands)], ["minhop"], permutations=5)
    # OpenSM finds one leaf only: its two hosts reach each other.
    assert row.unconnected_pairs == 6 * 5 - 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--fail", "spine-99"), "--fail: the fabric has no switch or cable spine-99"),
        (("--fail", ""), "--fail: the fabric has no switch or cable ''"),
        (("--add-leaf", "leaf-00"), "--add-leaf: spine-00 has no free port for a new leaf"),
        (
            ("--hotspot", "missing"),
            'error: --hotspot: traffic.nodes.hotspots.0: there is no host named "missing"',
        ),
        (("--duration", "1 parsec"), "--duration: 1 parsec is no time above 0"),
        (("--duration", "0 s"), "--duration: 0 s is no time above 0"),
        (("--engine", "minhob"), "--engine: minhob is none of minhop, updn, "),
        (("--engine", "minhob"), "did you mean minhop?"),
        (("--root-guid-file", "nowhere"), "--root-guid-file: nowhere: there is no such file"),
        (("--cn-guid-file", "."), "--cn-guid-file: .: it is no regular file"),
    ],
)
def test_bad_input_is_refused(
    tmp_path: Path, command: Command, words: tuple[str, ...], message: str
) -> None:
    file = tmp_path / "tree.toml"
    file.write_text(TREE)
    done = command("whatif", file, *words)
    assert done.status == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_fabric_without_a_file_is_refused(tmp_path: Path, command: Command) -> None:
    done = command("whatif", "nowhere")
    assert done.status == 2
    error, hint = done.stderr.splitlines()
    assert error == "error: nowhere: cannot read the fabric: there is no such file"
    assert hint.startswith("hint: name a scenario file")
    done = command("whatif", tmp_path)
    assert done.status == 2
    assert f"{tmp_path}: cannot read the fabric: it is no regular file" in done.stderr


def test_a_file_of_ibnetdiscover_is_a_fabric(tmp_path: Path, command: Command) -> None:
    with tempfile.TemporaryDirectory() as folder:
        words = ("example", "real-fabric")
        assert command(*words, cwd=Path(folder)).status == 0
        file = Path(folder, "real-fabric", "ibnetdiscover.txt")
        done = command("whatif", file, "--engine", "minhop", "--json", "--duration", "50 us")
    assert done.status == 0, done.stderr
    own, routed = json.loads(done.stdout)["rows"]
    assert (own["engine"], routed["engine"]) == ("d-mod-k", "minhop")
    assert routed["unconnected_pairs"] == 0
