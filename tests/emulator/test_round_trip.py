"""A fabric that is served, discovered and loaded again is the same fabric."""

from __future__ import annotations

from pathlib import Path

import pytest

import silvan
from tests.emulator.conftest import LINE, LINKS, REAL_TOOLS, Serve

pytestmark = REAL_TOOLS

TREE = """\
[fabric]
generator = "k-ary-n-tree"
k = 3
n = 2
"""
TESTBED = """\
[fabric]
generator = "two-switch-testbed"
routing = "min-hop"
"""
# An adapter with both ports cabled, another with its second port only, and unusual names.
ADAPTERS = """\
[fabric]
routing = "min-hop"
switch = [
    { name = "MF0;core:IS5300/L01/U1", ports = 36, guid = "0x10" },
    { name = "leaf", ports = 8 },
]
host = [
    { name = "node 1 HCA-1/P1", guid = "0x20", port-guid = "0x21", adapter-port = 1 },
    { name = "node 1 HCA-1/P2", guid = "0x20", port-guid = "0x22", adapter-port = 2 },
    { name = "node 2 HCA-1", guid = "0x30", port-guid = "0x32", adapter-port = 2 },
]
cable = [
    { from = "node 1 HCA-1/P1", to = "leaf:1" },
    { from = "node 1 HCA-1/P2", to = "leaf:2", speed = "QDR" },
    { from = "node 2 HCA-1", to = "MF0;core:IS5300/L01/U1:36", width = "1x" },
    { from = "leaf:8", to = "MF0;core:IS5300/L01/U1:1", speed = "EDR" },
]
"""


def blocks(text: str) -> list[str]:
    """Split what tells of each node, in any order, without remarks on when and where from."""
    nodes = [block for block in text.split("\n\n") if not block.startswith("#")]
    return sorted(block.strip() for block in nodes if block.strip())


@pytest.mark.parametrize("text", [LINE + LINKS, TREE + LINKS, TESTBED, ADAPTERS + LINKS])
@pytest.mark.parametrize("group", [(), ("-g",)], ids=["plain", "grouped"])
def test_a_discovered_fabric_is_the_same(
    serve: Serve, tmp_path: Path, text: str, group: tuple[str, ...]
) -> None:
    original = silvan.Scenario.from_toml(text)
    served = serve(text)
    file = tmp_path / "ibnetdiscover.txt"
    file.write_text(served.tool("ibnetdiscover", *group))
    loaded = silvan.Scenario(fabric={"file": str(file), "routing": "min-hop"})
    assert blocks(loaded.export("ibsim")) == blocks(original.export("ibsim"))
    # LIDs, port GUIDs, widths and speeds, too: both look the same to discovery.
    again = serve(loaded.to_toml()).tool("ibnetdiscover", *group)
    assert blocks(again) == blocks(file.read_text())
