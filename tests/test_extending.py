"""The pages on extending silvan do what they say, and a registered name is in one place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.extended_sources import REGISTERED, check
from tests.test_guide import ROOT

CRATES = ROOT / "crates"
COUNTERS = CRATES / "silvan-core/src/counters.rs"
TOPOLOGIES = CRATES / "silvan-fabric/src/generators"
TRAFFIC = CRATES / "silvan-workload/src/traffic/kinds"
LIST = CRATES / "silvan-cc/src/schemes/ib_cc/list.rs"

# Words that name something else as well: where, and what.
HOMONYMS = {
    ("sequence", "silvan-workload/src/programs/training.rs"): "a number of a model",
    ("uniform", "silvan-workload/src/traffic/kinds/flows.rs"): "a pattern of flows",
    ("permutation", "silvan-workload/src/traffic/kinds/flows.rs"): "a pattern of flows",
    ("incast", "silvan-workload/src/traffic/kinds/flows.rs"): "a pattern of flows",
    ("flows", "silvan-sim/src/flows"): "a table, and a column of another",
    ("incast", "silvan-workload/src/programs"): "a collective operation",
    ("incast", "silvan-subnet/src/fake"): "what a fake subnet shows",
    ("incast", "silvan-diagnose/src/verdict/tree.rs"): "a cause of a congestion tree",
    ("flow", "silvan-emulator/src"): "a flow that is started on the live fabric",
    ("flow", "silvan-workload/src/traffic/live.rs"): "a flow that is started on the live fabric",
    ("flow", "silvan-python/src"): "an argument of the functions of a scheme",
    ("nodes", "silvan-emulator/src/view.rs"): "hosts and switches of the live fabric",
    ("flows", "silvan-scenario/src/checks/packets.rs"): "flows whose packets are recorded",
}


def registered(folder: Path) -> list[tuple[str, str, str]]:
    """Module, type and name of each registered line."""
    lines = REGISTERED.findall((folder / "mod.rs").read_text())
    assert len(lines) > 4, "the registry has another form"
    return lines


def code(path: Path) -> str:
    """A source without comments, and without the tests at its end."""
    text = path.read_text().split("#[cfg(test)]")[0]
    return re.sub(r"//.*", "", text)


@pytest.mark.parametrize("folder", [TOPOLOGIES, TRAFFIC], ids=["topologies", "traffic"])
def test_a_registered_name_is_in_its_line_alone(folder: Path) -> None:
    """Oracle: the registry. What knew a name elsewhere would be another place to change."""
    found = []
    sources = [path for path in CRATES.glob("*/src/**/*.rs") if "tests" not in str(path)]
    texts = {path.relative_to(CRATES): code(path) for path in sources}
    registry = (folder / "mod.rs").relative_to(CRATES)
    for module, kind, name in registered(folder):
        own = registry.parent / f"{module}.rs"
        for path, text in texts.items():
            other = any(word == name and str(path).startswith(at) for word, at in HOMONYMS)
            expected = 1 if path == registry else 0
            if path != own and not other and text.count(f'"{name}"') != expected:
                found.append(f"{path}: {name!r}")
            if path not in {own, registry} and f"Topology::{kind}" in text:
                found.append(f"{path}: Topology::{kind}")
    assert not found


@pytest.mark.slow
@pytest.mark.parametrize(
    "test", ["topology_and_traffic", "port_counter", "scheme", "hook", "setting"]
)
def test_the_pages_add_what_they_say(test: str) -> None:
    """Oracle: that of the test in Rust, in a copy of the sources that is made as the pages say."""
    check(test)


def test_a_setting_is_declared_in_one_place() -> None:
    """Oracle: the list; no other source has the variants of two settings, but to act on them."""
    text = LIST.read_text()
    declared = re.findall(r"^ +(\w+) \w+(?:: \w+)? as \w+ \{$", text, re.MULTILINE)
    assert {"Threshold", "VictimMask", "CreditReturnDelay", "CctiTimer"} <= set(declared)
    variant = re.compile(rf"(?:PortSetting|AdapterSetting)::({'|'.join(declared)})\b")
    found = {}
    for path in CRATES.glob("*/src/**/*.rs"):
        if "tests" not in str(path) and (names := set(variant.findall(code(path)))):
            found[str(path.relative_to(CRATES))] = names
    # The DCMS changes Marking_Rate, which is what it is for.
    assert found == {"silvan-cc/src/dcms/controller.rs": {"MarkingRate"}}


def test_a_counter_is_declared_in_one_place() -> None:
    """Oracle: the columns of counters stand as texts nowhere else in the product's code."""
    declared = re.findall(
        r"^    (\w+): (?:Bytes|Packets|Time)\b", COUNTERS.read_text("utf-8"), re.MULTILINE
    )
    assert {"xmit_bytes", "xmit_wait", "fecn_marked"} <= set(declared)
    columns = [name + suffix for name in declared for suffix in ("", "_ps")]
    pattern = re.compile('"(?:' + "|".join(columns) + ')"')
    sources = (ROOT / "crates").glob("*/src/**/*.rs")
    found = {
        str(path.relative_to(ROOT)): hits
        for path in sources
        if path != COUNTERS
        and "tests" not in path.relative_to(ROOT).as_posix()
        and (hits := pattern.findall(path.read_text("utf-8").split("#[cfg(test)]")[0]))
    }
    # The DCMS reads three of them by name: its algorithm needs them. Telemetry of packets has a
    # field of the same name as a counter. The kernel's files show fields of PortCounters, some of
    # which have the name of a counter.
    assert found == {
        "crates/silvan-core/src/growth.rs": [
            '"xmit_wait"',
            '"xmit_bytes"',
            '"xmit_cong"',
        ],
        "crates/silvan-emulator/src/sysfs.rs": [
            '"rcv_errors"',
            '"rcv_pkts"',
            '"xmit_discards"',
            '"xmit_pkts"',
            '"xmit_wait"',
        ],
        "crates/silvan-cc/src/hooks/foreign.rs": ['"xmit_bytes"'],
    }
