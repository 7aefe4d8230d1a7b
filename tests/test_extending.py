"""The pages on extending silvan do what they say, and a registered name is in one place."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import silvan
from tests.conftest import INCAST
from tests.extended_sources import ADDED, PAGES, REGISTERED, SCHEME_PAGE, outcome, touched
from tests.test_guide import ROOT

CRATES = ROOT / "crates"
COUNTERS = CRATES / "silvan-core/src/counters.rs"
TOPOLOGIES = CRATES / "silvan-fabric/src/generators"
TRAFFIC = CRATES / "silvan-workload/src/traffic/kinds"
ROUTINGS = CRATES / "silvan-fabric/src/routing"
TRACES = CRATES / "silvan-workload/src/programs/trace"
COLLECTIVES = CRATES / "silvan-workload/src/programs/collective"
ASSETS = ROOT / "python/silvan/viewer/assets"
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
    ("ring", "silvan-workload/src/programs"): "an algorithm of collective operations",
    ("ring", "silvan-fabric/src/generators"): "a topology",
    ("nodes", "silvan-workload/src/programs/trace/chakra"): "a key of PyTorch's traces",
    ("tree", "silvan-sim/src/trees"): "a column with the number of a congestion tree",
    ("incast", "silvan-diagnose/src/verdict/tree.rs"): "a cause of a congestion tree",
    ("flow", "silvan-emulator/src"): "a flow that is started on the live fabric",
    ("flow", "silvan-workload/src/traffic/live.rs"): "a flow that is started on the live fabric",
    ("flow", "silvan-python/src"): "an argument of the functions of a scheme",
    ("nodes", "silvan-emulator/src/view.rs"): "hosts and switches of the live fabric",
    ("flows", "silvan-scenario/src/checks/packets.rs"): "flows whose packets are recorded",
    ("flow-file", "silvan-scenario/src/given.rs"): "a table whose file is read with the scenario",
}


def registered(folder: Path) -> list[tuple[str, str, str]]:
    """Module, type and name of each registered line."""
    lines = REGISTERED.findall((folder / "mod.rs").read_text())
    assert len(lines) > 3, "the registry has another form"
    return lines


def code(path: Path) -> str:
    """A source without comments, and without the tests at its end."""
    text = path.read_text().split("#[cfg(test)]")[0]
    return re.sub(r"//.*", "", text)


@pytest.mark.parametrize(
    "folder", [TOPOLOGIES, TRAFFIC, ROUTINGS, TRACES, COLLECTIVES], ids=lambda folder: folder.name
)
def test_a_registered_name_is_in_its_line_alone(folder: Path) -> None:
    """Oracle: the registry. Every other place with a name would have to change, too."""
    found = []
    sources = [path for path in CRATES.glob("*/src/**/*.rs") if "tests" not in str(path)]
    texts = {path.relative_to(CRATES): code(path) for path in sources}
    registry = (folder / "mod.rs").relative_to(CRATES)
    for module, kind, name in registered(folder):
        own = registry.parent / f"{module}.rs"
        inside = registry.parent / module
        for path, text in texts.items():
            if inside in path.parents:
                continue
            other = any(word == name and str(path).startswith(at) for word, at in HOMONYMS)
            expected = 1 if path == registry else 0
            if path != own and not other and text.count(f'"{name}"') != expected:
                found.append(f"{path}: {name!r}")
            if path not in {own, registry} and f"Topology::{kind}" in text:
                found.append(f"{path}: Topology::{kind}")
    assert not found


FILES = {
    "add-a-scheme.md": 2,
    "topology.md": 2,
    "traffic.md": 2,
    "routing.md": 2,
    "trace-format.md": 2,
    "collective.md": 2,
    "port-counter.md": 4,
    "cc-setting.md": 2,
    "hook.md": 2,
    "result-column.md": 1,
    "command.md": 2,
    "panel.md": 2,
}
"""Files of code that each page makes or changes."""


def test_each_page_on_extending_is_tested() -> None:
    """Oracle: the folder of the pages. tests/test_plugins.py runs the page on plug-ins."""
    pages = {path.name for path in PAGES.glob("*.md")} - {"plug-in.md"}
    assert pages | {SCHEME_PAGE.name} == FILES.keys()
    assert ADDED.keys() == FILES.keys()


@pytest.mark.parametrize("page", FILES)
def test_a_page_touches_few_files_and_names_them(page: str) -> None:
    """Oracle: the number of files, and their names in the text of the page."""
    files = touched(page)
    assert len(files) == FILES[page], sorted(files)
    text = (SCHEME_PAGE if page == SCHEME_PAGE.name else PAGES / page).read_text()
    for name in files:
        folder, _, file = name.rpartition("/")
        made = f"Make the file `{file}` in `{folder}`:"
        assert f"`{name}`" in text or made in text, name


@pytest.mark.parametrize("page", FILES)
def test_what_a_page_adds_is_formatted(page: str) -> None:
    """Oracle: rustfmt and ruff. Files that name modules are not read alone by rustfmt."""
    for name, text in touched(page).items():
        if name.endswith(".py"):
            for tool in (["format", "--diff"], ["check"]):
                ruff = [sys.executable, "-m", "ruff", *tool, "--stdin-filename", name, "-"]
                assert formatted(ruff, text) == "", name
        elif name.endswith(".rs") and not re.search(r"^ *(pub )?mod \$?\w+;", text, re.MULTILINE):
            assert formatted(["rustfmt", "--edition", "2024", "--check"], text) == "", name


def formatted(command: list[str], text: str) -> str:
    """Return what a tool says of a text."""
    done = subprocess.run(
        command, cwd=ROOT, input=text, capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.nightly
@pytest.mark.parametrize(
    "test",
    [
        "scheme",
        "topology_and_traffic",
        "routing",
        "trace_format",
        "collective",
        "port_counter",
        "setting",
        "hook",
        "result_column",
    ],
)
def test_the_pages_add_what_they_say(test: str) -> None:
    """Oracle: that of the test in Rust, in the copy that is made as the pages say."""
    printed = outcome()
    assert re.search(rf"^test {test} \.\.\. ok$", printed, re.MULTILINE), printed


@pytest.mark.slow
def test_the_command_of_its_page_runs(tmp_path: Path) -> None:
    """Oracle: what the Python interface says of the same scenario."""
    package = tmp_path / "silvan"
    shutil.copytree(
        Path(silvan.__file__).parent,
        package,
        ignore=shutil.ignore_patterns("__pycache__", "_silvan.*so", "assets"),
    )
    (extension,) = Path(silvan.__file__).parent.glob("_silvan.*so")
    (package / extension.name).symlink_to(extension)
    for name, text in touched("command.md").items():
        (tmp_path / Path(name).relative_to("python")).write_text(text)
    (tmp_path / "incast.toml").write_text(INCAST)
    done = subprocess.run(
        [sys.executable, "-m", "silvan", "offered", "incast.toml", "--json"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    scenario = silvan.Scenario.from_toml(INCAST)
    assert json.loads(done.stdout) == scenario.offered_bytes(scenario.seed)


@pytest.mark.nightly
@pytest.mark.needs("network")
def test_the_panel_of_its_page_is_built(tmp_path: Path) -> None:
    """Oracle: the compiler of TypeScript, prettier, and the built page, which has the heading."""
    copy = tmp_path / "viewer"
    shutil.copytree(ROOT / "viewer", copy, ignore=shutil.ignore_patterns("node_modules"))
    for name, text in touched("panel.md").items():
        (tmp_path / name).write_text(text)
    for words in (["ci", "--no-audit", "--no-fund"], ["run", "check"], ["run", "build"]):
        done = subprocess.run(
            ["npm", *words], cwd=copy, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    built = (tmp_path / "python" / "silvan" / "viewer" / "assets" / "viewer.js").read_text()
    assert "Hosts that received least" in built
    assert "Hosts that received least" not in (ASSETS / "viewer.js").read_text()


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
        r"^    (\w+): (?:Bytes|Packets|Events|Time)\b", COUNTERS.read_text("utf-8"), re.MULTILINE
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
    # which have the name of a counter, and sweeps read LinkDownedCounter. A device may lack
    # PortXmitWait, which its sweep must know.
    assert found == {
        "crates/silvan-core/src/growth.rs": [
            '"xmit_wait"',
            '"xmit_bytes"',
            '"xmit_cong"',
        ],
        "crates/silvan-emulator/src/sysfs.rs": [
            '"link_downed"',
            '"link_downed"',
            '"link_error_recovery"',
            '"link_error_recovery"',
            '"rcv_errors"',
            '"rcv_pkts"',
            '"xmit_discards"',
            '"xmit_pkts"',
            '"xmit_wait"',
            '"symbol_errors"',
        ],
        "crates/silvan-dcms/src/meter.rs": ['"link_downed"'],
        "crates/silvan-diagnose/src/readings.rs": ['"link_downed"'],
        "crates/silvan-cc/src/hooks/foreign.rs": ['"xmit_bytes"'],
        "crates/silvan-subnet/src/sweep.rs": ['"xmit_wait"'],
    }
