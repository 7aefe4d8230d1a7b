"""Schemes of one's own: the guide shows what is compiled, and both doors lead to one result."""

from __future__ import annotations

import textwrap

import silvan
from tests.test_guide import ROOT, blocks

GUIDE = ROOT / "docs" / "guide" / "own-scheme.md"
SCHEMES = ROOT / "crates" / "silvan-schemes" / "src"

INCAST = silvan.Scenario(
    fabric={"generator": "single-switch", "hosts": 6},
    link={"speed": "EDR"},
    traffic={
        "incast": [{"to": "host-0000", "from": [f"host-000{n}" for n in range(1, 5)]}],
        "flow": [{"from": "host-0001", "to": "host-0005"}],
    },
    probe={"interval": "100 us"},
    run={"duration": "2 ms", "warm-up": "1 ms"},
)


def test_the_guide_lists_the_file_that_is_compiled() -> None:
    listed = blocks(GUIDE, "rust")
    assert len(listed) >= 8
    source = (SCHEMES / "half.rs").read_text()
    for block in listed:
        assert textwrap.dedent(block) in source
    # Together they are all of it but the first lines.
    assert sum(map(len, listed)) > 0.95 * len(source.replace("\n\n", "\n"))
    assert 'half::Half = "half"' in (SCHEMES / "lib.rs").read_text()


def test_schemes_of_one_file_change_what_happens() -> None:
    """Oracle: without control a victim beside an incast gets only its share of the port."""

    def victim_bytes(scheme: str) -> int:
        result = silvan.run(INCAST.override({"control.scheme": scheme}))
        flow = result.classes.to_pylist()[1]
        return int(flow["delivered_bytes"])

    without = victim_bytes("none")
    assert victim_bytes("half") > 2 * without
    assert victim_bytes("dcqcn") > 1.2 * without
