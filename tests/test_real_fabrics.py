"""Files of real networks from the command line: what is odd is said, what is lost is counted."""

from __future__ import annotations

import json
from pathlib import Path

import silvan
from tests.conftest import Command

SAMPLES = Path(__file__).parents[1] / "crates" / "silvan-fabric" / "tests" / "samples"

WORN = f"""\
[fabric]
file = "{SAMPLES / "worn.txt"}"
routing = "min-hop"
[[traffic.incast]]
to = "node-1 HCA-1"
[run]
duration = "10 us"
"""

# The entry of "left" for c is missing: a's packets end there, b's to d do not.
HOLE = """\
[fabric]
switch = [{ name = "left", ports = 8 }, { name = "right", ports = 8 }]
host = [{ name = "a" }, { name = "b" }, { name = "c" }, { name = "d" }]
cable = [
    { from = "a", to = "left:1" },
    { from = "b", to = "left:2" },
    { from = "c", to = "right:1" },
    { from = "d", to = "right:2" },
    { from = "left:5", to = "right:6" },
]
routing = "explicit"
unreachable = "drop"
[fabric.tables.left]
a = 1
b = 2
d = 5
[fabric.tables.right]
a = 6
b = 6
c = 1
d = 2
[[traffic.flow]]
from = "a"
to = "c"
bytes = "64 KiB"
[[traffic.flow]]
from = "b"
to = "d"
bytes = "64 KiB"
[packet]
mtu = "2 KiB"
[run]
duration = "1 ms"
"""
PACKETS = (64 << 10) // 2048


def test_what_is_odd_about_a_file_is_said(tmp_path: Path, command: Command) -> None:
    file = tmp_path / "worn.toml"
    file.write_text(WORN)
    shown = command("run", file)
    assert shown.status == 0
    warnings = [line for line in shown.stderr.splitlines() if line.startswith("warning: ")]
    assert "worn.txt:1: the message" in warnings[0]
    assert warnings[-1] == "warning: and 1 more such; silvan validate --json lists them all"
    facts = json.loads(command("validate", file, "--json").stdout)
    assert facts["warnings"] == silvan.Scenario.from_file(file).warnings
    assert len(facts["warnings"]) == 6


def test_packets_without_a_forwarding_entry_are_counted_at_the_switch(
    tmp_path: Path, command: Command
) -> None:
    file = tmp_path / "hole.toml"
    file.write_text(HOLE)
    shown = command("run", file)
    assert shown.status == 0
    assert "warning: 2 of 12 pairs of hosts have no route" in shown.stderr
    said = f"warning: switches discarded {PACKETS} packets that they had no forwarding entry for"
    assert said in shown.stderr

    result = silvan.run(silvan.Scenario.from_file(file))
    assert result.summary["unroutable_packets"] == PACKETS
    ports = result.ports.to_pylist()
    counted = {(row["node"], row["port"]): row["relay_errors"] for row in ports}
    assert {place: count for place, count in counted.items() if count} == {("left", 1): PACKETS}
    hosts = {row["name"]: row for row in result.hosts.to_pylist()}
    assert hosts["a"]["injected_bytes"] == hosts["b"]["injected_bytes"] == 64 << 10
    assert hosts["c"]["delivered_bytes"] == 0
    assert hosts["d"]["delivered_bytes"] == 64 << 10

    file.write_text(HOLE.replace('unreachable = "drop"\n', ""))
    refused = command("run", file)
    assert refused.status == 2
    assert 'no route from "a" to "c": "left" has no entry for it' in refused.stderr
    assert "hint: add c = 1, or another port, to [fabric.tables.left]" in refused.stderr
