"""Plug-ins of other packages are found by their entry points, and run as their expansion.

The package in ``tests/plugin_package`` brings one of each kind. The oracle of each is a scenario of
built-in elements alone, written by other code.
"""

from __future__ import annotations

import copy
import json
import pickle
import re
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import silvan
from silvan.cli.app import run_command
from silvan.comparing.comparison import choose, compare
from silvan.comparing.tuning.space import Parameter
from silvan.comparing.tuning.tune import start_of
from silvan.errors import ScenarioError, SilvanError
from silvan.execution.workers import Job, run_jobs
from silvan.inputs.toml_text import TomlValue
from silvan.live.emulation import Emulation
from silvan.live.opensm_routing import free_sockname, with_tables
from silvan.planning.saturation import load_keys
from silvan.plugins.installed import every
from silvan.plugins.keys import read_keys
from silvan.sweeping.plan import plan
from tests.conftest import DDR_KEYS
from tests.test_guide import ROOT, blocks

PACKAGE = Path(__file__).parent / "plugin_package"
MODULES = PACKAGE / "silvan_plugin_example"
PAGE = ROOT / "docs" / "extending" / "plug-in.md"
PROJECT = tomllib.loads((PACKAGE / "pyproject.toml").read_text("utf-8"))["project"]
TITLE = f"{PROJECT['name']} {PROJECT['version']}"

Groups = dict[str, dict[str, str]]
GROUPS: Groups = PROJECT["entry-points"]


def install(site: Path, name: str, version: str, groups: Groups) -> None:
    """Write what pip writes of a package's entry points."""
    info = site / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    sections = (
        "\n".join([f"[{group}]", *(f"{key} = {value}" for key, value in entries.items())])
        for group, entries in groups.items()
    )
    (info / "entry_points.txt").write_text("\n\n".join(sections) + "\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder of installed packages that is on the import path, still empty."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(PACKAGE))
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.fixture
def package(site: Path) -> Path:
    """Install the package of the tests."""
    install(site, PROJECT["name"], PROJECT["version"], GROUPS)
    return site


HEAD = """\
name = "plugged"
[link]
speed = "EDR"
[run]
duration = "50 us"
"""
INCAST = """\
[fabric]
generator = "single-switch"
hosts = 4
[[traffic.incast]]
to = "host-0000"
"""


def chain(switches: int, cables: int = 2) -> str:
    """Write a chain of switches with two hosts each as lists."""
    text = "[fabric]\n"
    for switch in range(switches):
        text += f'[[fabric.switch]]\nname = "s{switch}"\nports = {2 + 2 * cables}\n'
    for host in range(2 * switches):
        text += f'[[fabric.host]]\nname = "h{host}"\n'
    ends = []
    for switch in range(switches):
        ends += [(f"h{2 * switch}", f"s{switch}:1"), (f"h{2 * switch + 1}", f"s{switch}:2")]
        if switch:
            left, right = f"s{switch - 1}", f"s{switch}"
            ends += [(f"{left}:{3 + cables + n}", f"{right}:{3 + n}") for n in range(cables)]
    return text + "".join(
        f'[[fabric.cable]]\nfrom = "{one}"\nto = "{other}"\n' for one, other in ends
    )


def routed(block: int) -> str:
    """Write the tables of a chain of two switches by hand: h0, h1 at s0, h2, h3 at s1."""
    # Destinations alternate between two cables: ports 5 and 6 of s0, and 3 and 4 of s1.
    turn = [number // block % 2 for number in range(4)]
    return f"""
[fabric.tables]
s0 = {{ h0 = 1, h1 = 2, h2 = {5 + turn[2]}, h3 = {5 + turn[3]} }}
s1 = {{ h0 = {3 + turn[0]}, h1 = {3 + turn[1]}, h2 = 1, h3 = 2 }}
"""


CROSSING = """\
[[traffic.flow]]
from = "h0"
to = "h2"
[[traffic.flow]]
from = "h1"
to = "h3"
[[traffic.flow]]
from = "h3"
to = "h1"
"""


def shifted(load: float) -> str:
    """Write the flows of four hosts to the next one."""
    return "".join(
        f'[[traffic.flow]]\nfrom = "host-000{n}"\nto = "host-000{(n + 1) % 4}"\n'
        f'load = {load}\nmessage = "8 KiB"\n'
        for n in range(4)
    )


def transfers(scale: int) -> str:
    """Write the schedule of the trace by hand."""
    return f'''
[[traffic.program]]
name = "transfers"
kind = "goal"
trace = """
num_ranks 2
rank 0 {{
l0: send {1000 * scale}b to 1 tag 0
l1: recv {3000 * scale}b from 1 tag 1
l1 requires l0
}}
rank 1 {{
l0: recv {1000 * scale}b from 0 tag 0
l1: send {3000 * scale}b to 0 tag 1
l1 requires l0
}}
"""
'''


@dataclass(frozen=True)
class Use:
    """A use of a plug-in, and its expansion.

    Attributes
    ----------
    group : str
        Group of the entry point.
    text : str
        A scenario with the plug-in.
    key : str
        A key of the plug-in.
    values : tuple
        Two values of it, first that of the text.
    core : callable
        The scenario of built-in elements for a value.
    refused : str
        The error without the entry point.
    """

    group: str
    text: str
    key: str
    values: tuple[TomlValue, TomlValue]
    core: Callable[[Any], str]
    refused: str


SINGLE = '[fabric]\ngenerator = "single-switch"\nhosts = 4\n'
USES = {
    "scheme": Use(
        "silvan.schemes",
        HEAD + INCAST + '[control]\nscheme = "halving"\n[control.halving]\nthreshold = "6 kB"\n',
        "control.halving.threshold",
        ("6 kB", "20 kB"),
        lambda value: (
            f'{HEAD}{INCAST}[control]\nscheme = "half"\n[control.half]\nthreshold = "{value}"\n'
        ),
        'control.scheme: unknown value "halving"',
    ),
    "topology": Use(
        "silvan.topologies",
        HEAD + '[fabric]\ngenerator = "row"\nswitches = 2\nrouting = "min-hop"\n' + CROSSING,
        "fabric.switches",
        (2, 3),
        lambda value: HEAD + chain(value).replace("]\n", ']\nrouting = "min-hop"\n', 1) + CROSSING,
        'fabric.generator: unknown value "row"',
    ),
    "routing": Use(
        "silvan.routings",
        HEAD + chain(2).replace("]\n", ']\nrouting = "spread"\nspread.block = 1\n', 1) + CROSSING,
        "fabric.spread.block",
        (1, 2),
        lambda value: (
            HEAD
            + chain(2).replace("]\n", ']\nrouting = "explicit"\n', 1)
            + routed(value)
            + CROSSING
        ),
        'fabric.routing: unknown value "spread"',
    ),
    "traffic": Use(
        "silvan.traffic",
        HEAD + SINGLE + '[[traffic.shift]]\ndistance = 1\nload = 0.25\nmessage = "8 KiB"\n',
        "traffic.shift.0.load",
        (0.25, 0.75),
        lambda value: HEAD + SINGLE + shifted(value),
        "traffic.shift: unknown key",
    ),
    "trace": Use(
        "silvan.traces",
        HEAD
        + SINGLE
        + '[[traffic.program]]\nname = "transfers"\nkind = "transfers"\nfile = "list.txt"\n'
        + "transfers.scale = 2\n",
        "traffic.program.0.transfers.scale",
        (2, 5),
        lambda value: HEAD + SINGLE + transfers(value),
        'traffic.program.0.kind: unknown value "transfers"',
    ),
}
NAMES = {
    "scheme": "halving",
    "topology": "row",
    "routing": "spread",
    "traffic": "shift",
    "trace": "transfers",
}
every_kind = pytest.mark.parametrize("kind", USES)
every_kind_runs = pytest.mark.parametrize(
    "kind",
    # numba compiles the scheme.
    [pytest.param(kind, marks=[pytest.mark.slow] * (kind == "scheme")) for kind in USES],
)


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], Path]:
    """Write a scenario to a file, beside a trace of the plug-in's format."""
    (tmp_path / "list.txt").write_text("0 1 1000\n1 0 3000\n")

    def write(text: str) -> Path:
        path = tmp_path / "plugged.toml"
        path.write_text(text)
        return path

    return write


File = Callable[[str], Path]


def tables(result: silvan.Result) -> dict[str, Any]:
    return dict(result.tables)


@every_kind_runs
def test_a_plug_in_runs_as_what_it_stands_for(kind: str, package: Path, file: File) -> None:
    use = USES[kind]
    scenario = silvan.Scenario.from_file(file(use.text))
    core = silvan.Scenario.from_toml(use.core(use.values[0]))
    result = silvan.run(scenario)
    assert tables(result) == tables(silvan.run(core))
    assert sum(result.classes["delivered_bytes"].to_pylist()) > 0
    other = scenario.override({use.key: use.values[1]})
    changed = silvan.run(other)
    assert tables(changed) == tables(silvan.run(silvan.Scenario.from_toml(use.core(use.values[1]))))
    assert tables(changed) != tables(result)


@pytest.mark.slow
@every_kind
def test_a_plug_in_is_swept_as_what_it_stands_for(
    kind: str, package: Path, file: File, tmp_path: Path
) -> None:
    """The points run in worker processes, which do not have the plug-in."""
    use = USES[kind]
    scenario = silvan.Scenario.from_file(file(use.text))
    swept = silvan.sweep(scenario, {use.key: use.values}, out=tmp_path / "out", tables=True)
    assert swept.failures == ()
    assert swept.points[use.key].to_pylist() == list(use.values)
    for value, point in zip(use.values, plan(scenario, {use.key: use.values}).points, strict=True):
        core = silvan.Scenario.from_toml(use.core(value))
        stored = silvan.Result.read(tmp_path / "out" / "tables" / point.hash[:16])
        assert tables(stored) == tables(silvan.run(core))
        assert NAMES[kind] in " ".join(stored.scenario.plug_ins)


@pytest.mark.slow
@every_kind
def test_a_plug_in_is_compared_as_what_it_stands_for(
    kind: str, package: Path, file: File, tmp_path: Path
) -> None:
    use = USES[kind]
    scenario = silvan.Scenario.from_file(file(use.text))
    core = silvan.Scenario.from_toml(use.core(use.values[0]))
    names = {"scheme": ("halving", "half")}.get(kind, ("ib-cc", "ib-cc"))
    if kind == "scheme":
        # Named where the scenario has another scheme in force.
        scenario = scenario.override({"control.scheme": "none"})
        # No sample interrupts these packets: a compiled scheme may have more events at samples.
        buffers: dict[str, TomlValue] = {
            key: value for key, value in DDR_KEYS.items() if not key.startswith("link.")
        }
        scenario, core = scenario.override(buffers), core.override(buffers)
    rankings = [
        compare(one, [name], out=tmp_path / name / str(place))
        for place, (one, name) in enumerate(zip((scenario, core), names, strict=True))
    ]
    plugged, built_in = ([(row.numbers, row.failure) for row in ranking] for ranking in rankings)
    assert repr(plugged) == repr(built_in)
    assert not any(failure for _, failure in plugged)
    assert [row.baseline.name for row in rankings[0]] == ["none", names[0]]


@every_kind
def test_without_its_entry_point_a_plug_in_is_unknown(
    kind: str, site: Path, file: File, tmp_path: Path
) -> None:
    use = USES[kind]
    others = {group: entries for group, entries in GROUPS.items() if group != use.group}
    install(site, PROJECT["name"], PROJECT["version"], others)
    path = file(use.text)
    with pytest.raises(ScenarioError, match=re.escape(use.refused)) as refused:
        silvan.Scenario.from_file(path)
    listed = "silvan plug-ins lists those of installed packages"
    assert str(refused.value.hint).endswith(listed)
    assert str(refused.value.hint).startswith("known here: ")
    line = refused.value.line
    assert line is not None
    assert refused.value.source == str(path)
    assert NAMES[kind] in path.read_text().splitlines()[line - 1]
    for command in ("run", "sweep", "compare"):
        assert run_command([command, str(path)]) == 2
    if kind == "scheme":
        plain = silvan.Scenario.from_toml(HEAD + INCAST)
        with pytest.raises(SilvanError, match="no scheme 'halving' to compare"):
            compare(plain, ["halving"], out=tmp_path)
        with pytest.raises(ScenarioError, match=re.escape(use.refused)):
            silvan.sweep(plain, {"control.scheme": ["none", "halving"]})


def test_a_name_close_to_a_built_in_one_is_no_plug_in(site: Path) -> None:
    text = USES["scheme"].text.replace("halving", "halv")
    with pytest.raises(ScenarioError) as refused:
        silvan.Scenario.from_toml(text)
    assert refused.value.hint == 'did you mean "half"?'


@every_kind
def test_a_scenario_says_which_plug_ins_made_it(kind: str, package: Path, file: File) -> None:
    scenario = silvan.Scenario.from_file(file(USES[kind].text))
    (origin,) = scenario.plug_ins
    assert origin.endswith(f"{kind} {NAMES[kind]} of {TITLE}")
    again = silvan.Scenario.from_toml(scenario.to_toml())
    for other in (again, scenario.single_run(3), again.single_run(3), copy.deepcopy(scenario)):
        assert other.plug_ins == scenario.plug_ins
    assert again == scenario
    assert again.override({"run.duration": "60 us"}).plug_ins == ()


@every_kind_runs
def test_a_stored_scenario_runs_without_the_plug_in(
    kind: str, package: Path, file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = silvan.Scenario.from_file(file(USES[kind].text))
    expected = silvan.run(scenario)
    text = scenario.to_toml()
    for path in (str(package), str(PACKAGE)):
        sys.path.remove(path)
    for name in [one for one in sys.modules if one.startswith("silvan_plugin_example")]:
        monkeypatch.delitem(sys.modules, name)
    assert tables(silvan.run(silvan.Scenario.from_toml(text))) == tables(expected)


@every_kind
def test_a_scenario_that_has_travelled_can_still_be_changed(
    kind: str, package: Path, file: File
) -> None:
    use = USES[kind]
    scenario = silvan.Scenario.from_file(file(use.text))
    changed = scenario.override({use.key: use.values[1]})
    for travelled in (pickle.loads(pickle.dumps(scenario)), scenario.single_run(scenario.seed)):
        assert travelled.override({use.key: use.values[1]}) == changed
    assert changed != scenario


@every_kind
def test_the_settings_of_a_scenario_are_those_that_can_be_changed(
    kind: str, package: Path, file: File
) -> None:
    use = USES[kind]
    scenario = silvan.Scenario.from_file(file(use.text))
    settings: Any = scenario.settings()
    value: Any = settings
    for part in use.key.split("."):
        value = value[int(part)] if part.isdecimal() else value[part]
    assert value == use.values[0]
    for section in ("fabric", "control", "traffic"):
        assert scenario.override({section: settings[section]}) == scenario


def test_a_search_starts_from_the_keys_of_a_plug_in(package: Path) -> None:
    scenario = silvan.Scenario.from_toml(USES["scheme"].text)
    parameter = Parameter.parse("control.halving.step", "0.0005..0.01 log", "--vary")
    assert start_of(scenario, [parameter]) == {"control.halving.step": 0.001}


def test_saturation_varies_the_load_of_a_plug_in(package: Path) -> None:
    assert load_keys(silvan.Scenario.from_toml(USES["traffic"].text)) == ["traffic.shift.0.load"]


@pytest.mark.parametrize("kind", ["scheme", "topology", "routing", "traffic"])
def test_other_routes_of_a_plugged_scenario_need_no_file_afterwards(
    kind: str, package: Path, file: File, tmp_path: Path
) -> None:
    """Oracle: the scenario of built-in elements with the same routes."""
    use = USES[kind]
    changed: list[silvan.Scenario] = []
    lfts = ""
    core = use.core(use.values[0]).replace(routed(1), "").replace('"explicit"', '"min-hop"')
    for number, text in enumerate((use.text, core)):
        scenario = silvan.Scenario.from_file(file(text))
        folder = tmp_path / str(number)
        folder.mkdir()
        if not lfts:
            with Emulation(scenario, sockname=free_sockname(), paused=True) as emulation:
                lfts = str(emulation.control("tables")["tables"])
        other = with_tables(scenario, lfts, folder)
        shutil.rmtree(folder)
        changed.append(other.override({"control.scheme": "ib-cc"}))
    plugged, built_in = changed
    assert plugged.egress_ports() == built_in.egress_ports()
    assert tables(silvan.run(plugged)) == tables(silvan.run(built_in))


def test_a_scheme_of_a_plug_in_takes_part_in_a_comparison_of_all(package: Path) -> None:
    every_scheme = choose(silvan.Scenario.from_toml(USES["scheme"].text), [])
    assert every_scheme[-1].name == "halving"
    assert every_scheme[-1].cost.messages == "acknowledgements"
    others = choose(silvan.Scenario.from_toml(HEAD + INCAST), [])
    assert "halving" not in [one.name for one in others]


def test_names_of_plug_ins_are_swept(package: Path) -> None:
    """Oracle: each point is the scenario with these values."""
    grid: dict[str, list[TomlValue]] = {
        "control.scheme": ["none", "halving"],
        "control.halving.step": [0.001, 0.01],
    }
    base = silvan.Scenario.from_toml(f"{HEAD}{INCAST}")
    swept = base.varying(grid)
    assert swept.axes() == grid
    written = base.override({"sweep.vary": grid})
    assert written.axes() == grid
    values = [
        {"control.halving.step": step, "control.scheme": scheme}
        for step in ("0.001", "0.01")
        for scheme in ('"none"', '"halving"')
    ]
    assert swept.sweep_values() == written.sweep_values() == values
    for point in values:
        plain = {key: tomllib.loads(f"value = {value}")["value"] for key, value in point.items()}
        assert swept.at(point) == base.override(plain)
    mixed = base.varying({**grid, "host.sink-rate": ["4 Gbit/s", "8 Gbit/s"]})
    assert len(mixed.sweep_values()) == 8
    assert mixed.to_dict()["sweep"]["vary"] == mixed.axes()


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"control.scheme": ["halving", "halfing"]}, r"control.scheme: unknown value"),
        ({"control.halving.stp": [1]}, r"control.halving.stp: unknown key"),
        ({"control.halving.step": ["x"]}, r"control.halving.step: expected a number"),
        ({"control.scheme": ["halving"], "host.sink-rat": ["1 Gbit/s"]}, r"host.sink-rat: unknown"),
        ({"control.halving.step": []}, r"without values"),
    ],
)
def test_a_grid_with_a_wrong_key_or_value_is_refused(
    package: Path, grid: dict[str, list[TomlValue]], message: str
) -> None:
    with pytest.raises(ScenarioError, match=message):
        silvan.Scenario.from_toml(HEAD + INCAST).varying(grid)


def test_elements_of_a_scenario_and_of_plug_ins_stand_side_by_side(package: Path) -> None:
    text = USES["traffic"].text + '[[traffic.flow]]\nfrom = "host-0000"\nto = "host-0002"\n'
    flows = silvan.Scenario.from_toml(text).to_dict()["traffic"]["flow"]
    assert [flow["to"] for flow in flows] == [f"host-000{n}" for n in (2, 1, 2, 3, 0)]
    settings = silvan.Scenario.from_toml(text).settings()["traffic"]
    assert len(settings["flow"]) == len(settings["shift"]) == 1


@pytest.mark.parametrize(
    ("change", "key", "message", "hint"),
    [
        (("threshold", "treshold"), "control.halving.treshold", "unknown key", '"threshold"'),
        (('"6 kB"', "6"), "control.halving.threshold", "expected a quantity", '"64 KiB"'),
        (('"6 kB"', '"6"'), "control.halving.threshold", "the unit is missing", "KiB"),
        (("halving]", "halving]\nstep = true"), "control.halving.step", "found true", "number"),
        (("halving]", "halfing]"), "control.halfing", "unknown key", '"halving"'),
        (('"halving"', '"halfing"'), "control.scheme", "unknown value", '"halving"'),
        (('"halving"', '"mine"'), "control.scheme", "unknown value", "plug-ins: halving"),
        (("hosts = 4", "hosts = 4\n[switch]\nbufer = 1"), "switch.bufer", "unknown key", "buffer"),
    ],
)
def test_a_mistake_has_its_place_and_a_hint(
    package: Path, file: File, change: tuple[str, str], key: str, message: str, hint: str
) -> None:
    path = file(USES["scheme"].text.replace(*change))
    with pytest.raises(ScenarioError, match=re.escape(message)) as refused:
        silvan.Scenario.from_file(path)
    error = refused.value
    assert (error.key, error.source) == (key, str(path))
    assert error.hint is not None
    assert hint in error.hint
    assert error.line is not None
    assert key.rpartition(".")[2] in path.read_text().splitlines()[error.line - 1]


@pytest.mark.parametrize(
    ("use", "extra", "key", "message"),
    [
        ("topology", "switches = 0", "fabric", "at least one switch"),
        ("topology", 'file = "x"', "fabric.generator", "together with fabric.file"),
        ("topology", "hosts = 3", "fabric.hosts", "unknown key"),
        ("routing", "linear-tables = {}", "fabric.linear-tables", "the routing computes them"),
        ("traffic", "distance = 1.5", "traffic.shift.0.distance", "expected a whole number"),
        ("traffic", "", "traffic.shift.0.distance", "missing key"),
        ("traffic", 'distance = 1\nload = "x"', "traffic.shift.0.load", "expected a number"),
        ("trace", 'file = "none.txt"', "traffic.program.0.file", "cannot read the trace"),
    ],
)
def test_keys_of_each_kind_are_checked(
    package: Path, file: File, use: str, extra: str, key: str, message: str
) -> None:
    removed = {
        "topology": "switches = 2",
        "traffic": 'distance = 1\nload = 0.25\nmessage = "8 KiB"',
    }
    text = USES[use].text
    if use == "trace":
        text = text.replace('file = "list.txt"', extra)
    elif use == "routing":
        text = text.replace("spread.block = 1", extra)
    elif extra == "hosts = 3" or extra.startswith("file"):
        text = text.replace(removed[use], f"{removed[use]}\n{extra}")
    else:
        text = text.replace(removed[use], extra)
    with pytest.raises(ScenarioError, match=re.escape(message)) as refused:
        silvan.Scenario.from_file(file(text))
    assert refused.value.key == key
    assert refused.value.line is not None
    assert refused.value.hint


BAD = """\
from dataclasses import dataclass

from silvan.plugins import Routing, Scheme, Topology, Trace, Traffic


def fails(*arguments):
    raise RuntimeError("not today")


def ends(*arguments):
    raise SystemExit(3)


def gives_none(*arguments):
    return None


def cables(keys):
    cable = {"from": "s:1", "to": "elsewhere:1"}
    return {"switch": [{"name": "s", "ports": 4}], "host": [], "cable": [cable]}


def empty(keys):
    return {"switch": [], "host": [], "cable": []}


def no_lists(keys):
    return {}


def only_switches(keys):
    return {"switch": [{"name": "s", "ports": 4}], "host": [], "cable": []}


def flows(keys, fabric):
    return {"flow": [{"from": fabric.hosts[0], "to": "no-host"}]}


def tables(keys, fabric):
    return {switch: {host: 200 for host in fabric.hosts} for switch in fabric.switches}


def goal(keys, data):
    return "num_ranks x"


@dataclass
class Names:
    routing: str = "x"


@dataclass
class Types:
    size: complex = 1j


FAILS = Topology(fails)
ENDS = Topology(ends)
NONE = Topology(gives_none)
CABLES = Topology(cables)
EMPTY = Topology(empty)
NO_LISTS = Topology(no_lists)
ONLY_SWITCHES = Topology(only_switches)
KEYS = Topology(cables, Names)
TYPES = Topology(cables, Types)
FLOWS = Traffic(flows)
NO_FLOWS = Traffic(gives_none)
TABLES = Routing(tables)
GOAL = Trace(goal)
NESTED = Scheme(lambda setup: None)
LATE = Scheme(fails)
"""

TOPOLOGY = '[fabric]\ngenerator = "bad"\n'


@pytest.mark.parametrize(
    ("group", "value", "text", "message", "hint"),
    [
        ("topologies", "FAILS", TOPOLOGY, "RuntimeError: not today", "bad_plugins.py:7"),
        ("topologies", "ENDS", TOPOLOGY, "SystemExit: 3", "bad_plugins.py:11"),
        ("topologies", "NONE", TOPOLOGY, "None is not a graph", "networkx"),
        ("topologies", "CABLES", TOPOLOGY, "fabric.cable.0.to", "fabric.switch"),
        ("topologies", "EMPTY", TOPOLOGY, "fabric without nodes", "let bad give entries"),
        ("topologies", "NO_LISTS", TOPOLOGY, "fabric without nodes", "let bad give entries"),
        ("topologies", "ONLY_SWITCHES", TOPOLOGY, "the fabric has no host", "fabric.host"),
        ("topologies", "KEYS", TOPOLOGY, "its key routing", "rename the field"),
        ("topologies", "TYPES", f"{TOPOLOGY}size = 1\n", "fabric.size is not supported", "Literal"),
        ("topologies", "GONE", TOPOLOGY, "cannot be imported: AttributeError", "uninstall"),
        (
            "topologies",
            "TABLES",
            TOPOLOGY,
            "is Routing, not silvan.plugins.Topology",
            "entry point",
        ),
        ("traffic", "FLOWS", "[[traffic.bad]]\n", "traffic.flow.0.to", "host-000"),
        ("traffic", "NO_FLOWS", "[[traffic.bad]]\n", "NoneType, not entries", "by their kind"),
        ("traffic", "FLOWS", "traffic.bad = 1\n", "expected a list of tables", "[[traffic.bad]]"),
        ("routings", "TABLES", '[fabric]\nrouting = "bad"\n', "port 200 has no cable", "cabled"),
        (
            "traces",
            "GOAL",
            '[[traffic.program]]\nkind = "bad"\ntrace = "x"\n',
            "traffic.program.0.trace: line 1",
            "num_ranks",
        ),
        ("schemes", "NESTED", '[control]\nscheme = "bad"\n', "not one of a module", "by def"),
    ],
)
def test_what_a_bad_plug_in_does_is_an_error_with_its_place(
    site: Path,
    file: File,
    capsys: pytest.CaptureFixture[str],
    group: str,
    value: str,
    text: str,
    message: str,
    hint: str,
) -> None:
    (site / "bad_plugins.py").write_text(BAD)
    install(site, "bad", "3.1", {f"silvan.{group}": {"bad": f"bad_plugins:{value}"}})
    sys.modules.pop("bad_plugins", None)
    path = file(f'name = "bad"\n{text}')
    assert run_command(["validate", str(path)]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"error: {path}:")
    assert message in printed
    assert hint in printed
    if message != "expected a list of tables":
        assert "bad of bad 3.1" in printed


@pytest.mark.slow
def test_the_function_of_a_scheme_that_fails_is_an_error(
    site: Path, file: File, capsys: pytest.CaptureFixture[str]
) -> None:
    (site / "bad_plugins.py").write_text(BAD)
    install(site, "bad", "3.1", {"silvan.schemes": {"bad": "bad_plugins:LATE"}})
    sys.modules.pop("bad_plugins", None)
    path = file(f'{HEAD}{INCAST}[control]\nscheme = "bad"\n')
    assert run_command(["run", str(path)]) == 2
    assert "bad:7: RuntimeError: not today" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("group", "name"),
    [
        ("schemes", "ib-cc"),
        ("schemes", "feedback"),
        ("topologies", "torus"),
        ("traffic", "incast"),
        ("traffic", "backlog"),
        ("routings", "min-hop"),
        ("traces", "goal"),
    ],
)
def test_a_plug_in_with_the_name_of_what_is_built_in_is_refused(
    site: Path, capsys: pytest.CaptureFixture[str], group: str, name: str
) -> None:
    install(site, "clashing", "2", {f"silvan.{group}": {name: "clashing:X"}})
    assert run_command(["plug-ins"]) == 2
    printed = capsys.readouterr().err
    assert f"{name} of clashing 2 has the name of what is built in" in printed
    assert "uninstall clashing" in printed


def test_two_packages_with_the_same_plug_in_are_refused(package: Path) -> None:
    install(package, "other", "1", {"silvan.topologies": {"row": "zzz:ROW"}})
    with pytest.raises(ScenarioError, match=f"row of other 1 has the name of .*{TITLE}"):
        silvan.Scenario.from_toml(USES["topology"].text)


def test_a_scenario_without_plug_ins_does_not_look_for_any(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_arguments: object) -> None:
        raise AssertionError("looked for plug-ins")

    monkeypatch.setattr("silvan.plugins.installed.entry_points", fail)
    scenario = silvan.Scenario.from_toml(HEAD + INCAST).override({"run.seed": 2})
    assert scenario.varying({"control.scheme": ["none", "ib-cc"]}).axes()
    for change in ({"fabric.routing": "layered-min-hop"}, {"control.scheme": "python"}):
        try:
            scenario.override(change)
        except ScenarioError:
            continue
    with pytest.raises(AssertionError, match="looked"):
        scenario.override({"control.scheme": "halving"})


@pytest.mark.slow
def test_a_worker_process_runs_a_scheme_of_a_plug_in(package: Path, tmp_path: Path) -> None:
    scenario = silvan.Scenario.from_toml(USES["scheme"].text)
    ((_, result),) = run_jobs([Job(scenario, 7, tmp_path / "result")])
    core = silvan.Scenario.from_toml(USES["scheme"].core(USES["scheme"].values[0]))
    assert tables(result) == tables(silvan.run(core, seed=7))
    stored = silvan.Result.read(tmp_path / "result").scenario
    assert stored.plug_ins == (f"control.scheme: scheme halving of {TITLE}",)


def test_another_version_of_a_scheme_is_another_run(site: Path) -> None:
    hashes = set()
    for version in ("1", "2"):
        install(site, PROJECT["name"], version, GROUPS)
        hashes.add(silvan.Scenario.from_toml(USES["scheme"].text).hash)
        (site / f"{PROJECT['name']}-{version}.dist-info").rename(site / f"removed-{version}")
        sys.path.insert(0, str(site / version))
    assert len(hashes) == 2


def test_the_command_lists_plug_ins_with_their_keys(
    package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["plug-ins", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert {row["kind"]: name for name, row in rows.items()} == NAMES
    assert rows["row"]["keys"] == {"switches": 3, "hosts-per-switch": 2, "cables": 2}
    assert rows["shift"]["keys"] == {"distance": None, "load": 0.5, "message": "4 KiB"}
    assert rows["halving"]["summary"] == "Halve the rate of a flow at a mark."
    assert {row["package"] for row in rows.values()} == {PROJECT["name"]}
    assert run_command(["plug-ins"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in rows)


def test_the_command_lists_plug_ins_beside_broken_ones(
    package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (package / "bad_plugins.py").write_text(BAD)
    entries = {
        "confused": "bad_plugins:TABLES",
        "gone": "bad_plugins:GONE",
        "untyped": "bad_plugins:TYPES",
        "torus": "bad_plugins:EMPTY",
        "usable": "bad_plugins:EMPTY",
    }
    install(package, "bad", "3.1", {"silvan.topologies": entries})
    sys.modules.pop("bad_plugins", None)
    assert run_command(["plug-ins"]) == 2
    out, err = capsys.readouterr()
    assert all(name in out for name in (*NAMES.values(), "usable"))
    assert not any(name in out for name in ("gone", "confused", "untyped", "torus"))
    errors = [line for line in err.splitlines() if line.startswith("error: ")]
    assert len(errors) == err.count("\nhint: ") == 4
    assert "confused of bad 3.1 is Routing, not" in errors[0]
    assert "gone of bad 3.1 cannot be imported: AttributeError" in errors[1]
    assert "untyped of bad 3.1: " in errors[2]
    assert "torus of bad 3.1 has the name of what is built in" in errors[3]
    assert run_command(["plug-ins", "--json"]) == 2
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows.keys() == {*NAMES.values(), *entries}
    assert [f"error: {rows[name]['error']}" for name in list(entries)[:4]] == errors
    assert not any("error" in rows[name] for name in (*NAMES.values(), "usable"))


def test_commands_take_plug_ins(
    package: Path, file: File, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(file(USES["topology"].text))
    assert run_command(["validate", path, "--set", "fabric.switches=4"]) == 0
    assert "hosts: 8" in capsys.readouterr().out
    assert run_command(["show", path]) == 0
    assert f"# plug-in: fabric.generator: topology row of {TITLE}" in capsys.readouterr().out
    assert run_command(["run", path, "--set", "fabric.switches=0"]) == 2
    assert "at least one switch" in capsys.readouterr().err


def page_files() -> Iterator[tuple[str, str]]:
    """List the files that the page shows: each block starts with its name as a comment."""
    for language in ("python", "toml"):
        for block in blocks(PAGE, language):
            head, _, text = block.partition("\n")
            yield head.removeprefix("# "), text


def test_the_page_shows_the_package_of_the_tests() -> None:
    shown = [(name, text) for name, text in page_files() if not name.startswith("scenario")]
    files = {str(path.relative_to(PACKAGE)) for path in MODULES.glob("*.py")}
    assert {name for name, _ in shown} == files - {"silvan_plugin_example/__init__.py"} | {
        "pyproject.toml"
    }
    for name, text in shown:
        assert text.strip() in (PACKAGE / name).read_text("utf-8")


def test_the_scenarios_of_the_page_run(package: Path, tmp_path: Path, file: File) -> None:
    scenarios = {name: text for name, text in page_files() if name.startswith("scenario")}
    named = set()
    for text in scenarios.values():
        scenario = silvan.Scenario.from_file(file(text), overrides={"run.duration": "50 us"})
        named |= {origin.split()[2] for origin in scenario.plug_ins}
        assert silvan.run(scenario).summary["simulated_ps"] > 0
    assert named == set(NAMES.values())
    assert {one["name"] for one in every()} == named


@pytest.mark.parametrize("programs", ["1", "-1", "true", '"x"'])
def test_programs_that_are_no_list_are_refused_at_their_place(programs: str) -> None:
    with pytest.raises(ScenarioError, match="expected a list") as refused:
        silvan.Scenario.from_toml(f"traffic.program = {programs}\n", source="own.toml")
    assert (refused.value.key, refused.value.line) == ("traffic.program", 1)


@pytest.mark.parametrize("error", [AssertionError, RecursionError, GeneratorExit, SystemExit])
def test_keys_that_another_package_refuses_are_refused(error: type[BaseException]) -> None:
    @dataclass
    class Keys:
        size: int = 1

        def __post_init__(self) -> None:
            raise error("no such size")

    with pytest.raises(ScenarioError, match="no such size") as refused:
        read_keys(Keys, {"size": 2}, "fabric")
    assert refused.value.key == "fabric"
