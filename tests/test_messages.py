"""Messages about scenarios and options: each names what to write."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import networkx
import pytest

import silvan
from silvan.errors import ScenarioError, SilvanError
from silvan.plugins.installed import PlugIn
from silvan.plugins.keys import Size, read_keys
from silvan.plugins.kinds import TOPOLOGY, Topology
from tests.conftest import Command

INCAST = """\
name = "incast"

[fabric]
generator = "single-switch"
hosts = 4

[[traffic.incast]]
to = "host-0000"

[run]
duration = "20 us"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "incast.toml").write_text(INCAST)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        # The keys of the generator come before those of the section, which has "host".
        ('[fabric]\ngenerator = "single-switch"\nhots = 8', 'did you mean "hosts"?'),
        ('[fabric]\ngenerator = "single-switch"\nhostz = 8', 'did you mean "hosts"?'),
        ("[fabric]\nhostz = 8", 'did you mean "hosts"?'),
        # A key of another table is named with its path.
        ("hosts = 8", "did you mean fabric.hosts?"),
        ('[link]\nduration = "1 us"', "elsewhere there is run.duration"),
    ],
)
def test_unknown_key_names_the_key_that_is_meant(text: str, hint: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        silvan.Scenario.from_toml(text)
    assert hint in str(refused.value.hint)


@pytest.mark.parametrize(
    ("word", "full"), [("hosts=8", "fabric.hosts"), ("duration=1 us", "run.duration")]
)
def test_set_of_a_short_key_names_the_full_one(
    command: Command, folder: Path, word: str, full: str
) -> None:
    done = command("validate", "incast.toml", "--set", word, cwd=folder)
    assert done.status == 2
    assert f"did you mean {full}?" in done.stderr


@pytest.mark.parametrize("text", ["vl = [2]", "run = ['1 us']", "[[switch]]\nbuffer = '1 KiB'"])
def test_list_is_no_section(text: str) -> None:
    with pytest.raises(ScenarioError, match="expected a table, found a list"):
        silvan.Scenario.from_toml(text)


def test_set_of_an_inline_table_replaces_the_table(command: Command, folder: Path) -> None:
    """Oracle: a torus has no key ``hosts``, so that the old table would be refused."""
    torus = 'fabric={generator="torus", sizes=[3, 3], hosts-per-switch=1}'
    words = ("--set", torus, "--set", "vl.data-vls=2")
    done = command("validate", "incast.toml", *words, cwd=folder)
    assert done.status == 0, done.stderr
    assert "hosts: 9" in done.stdout


def test_errors_of_python_values_have_no_line() -> None:
    with pytest.raises(ScenarioError) as refused:
        silvan.Scenario(packet={"mtu": "2 KiB"}, run={"duration": 5})
    assert refused.value.line is None
    assert str(refused.value).startswith("run.duration: expected a time span")


def test_settings_of_another_scheme_are_named() -> None:
    settings = '[control]\nscheme = "dcqcn"\n[control.hpcc]\neta = 0.9\n[control.dcqcn]\ng = 0.1\n'
    (warning,) = silvan.Scenario.from_toml(settings).warnings
    assert warning == 'control.hpcc has no effect: control.scheme is "dcqcn"'
    # A user who chooses another scheme for a run leaves the table on purpose.
    chosen = silvan.Scenario.from_toml(settings, overrides={"control.scheme": "none"})
    assert not chosen.warnings


def test_misspelt_attribute_of_a_graph_is_named() -> None:
    graph = networkx.star_graph(3)
    networkx.set_edge_attributes(graph, 4.0, "weight")
    silvan.Scenario.from_networkx(graph)
    networkx.set_edge_attributes(graph, "2 m", "lenght")
    with pytest.raises(ScenarioError, match="edge 0, 1: there is no attribute 'lenght'") as refused:
        silvan.Scenario.from_networkx(graph)
    assert refused.value.hint == 'did you mean "length"?'


def test_schema_names_the_units() -> None:
    duration = silvan.schema()["$defs"]["RunSection"]["properties"]["duration"]
    assert "(ps|ns|us|ms|s)" in duration["pattern"]
    assert duration["examples"]


def test_scheme_is_chosen_by_name_or_file(command: Command, folder: Path) -> None:
    for name, status in (("dcqcn", 0), ("dcqnc", 2)):
        done = command("run", "incast.toml", "--scheme", name, "--json", cwd=folder)
        assert done.status == status, done.stderr
    assert 'did you mean "dcqcn"?' in done.stderr
    done = command("run", "incast.toml", "--schemes", "dcqcn", cwd=folder)
    assert done.status == 2
    assert "--scheme" in done.stderr
    done = command("compare", "incast.toml", "--scheme", "dcqcn", cwd=folder)
    assert done.status == 2
    assert "--schemes" in done.stderr


def test_resumed_sweep_says_how_many_points_are_there(command: Command, folder: Path) -> None:
    words = ("sweep", "incast.toml", "--seeds", "2", "--out", "points")
    first = command(*words, cwd=folder)
    assert "from before" not in first.stderr
    again = command(*words, cwd=folder)
    assert "2 of 2 points are there from before" in again.stderr


def test_default_of_a_plug_in_is_of_the_type_of_its_key() -> None:
    from dataclasses import dataclass

    @dataclass
    class Good:
        size: Size = "4 KiB"  # type: ignore[assignment]
        names: tuple[str, ...] = ()
        limit: int | None = None

    good = read_keys(Good, {}, "traffic.mine")
    assert good.size.bytes == 4096
    assert (good.names, good.limit) == ((), None)

    @dataclass
    class Wrong:
        size: Size = 4096  # type: ignore[assignment]

    with pytest.raises(
        SilvanError, match=r"the default of traffic\.mine\.size: expected a quantity"
    ):
        read_keys(Wrong, {}, "traffic.mine")


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (Topology(function=None), "has no function: None"),  # type: ignore[arg-type]
        (Topology(function=str, keys=int), "has keys that are no dataclass"),
        (Topology(function=str, keys=3), "has keys that are no dataclass"),  # type: ignore[arg-type]
    ],
)
def test_object_that_is_no_plug_in_is_refused(made: Topology, message: str) -> None:
    entry = EntryPoint("mine", "mine:made", TOPOLOGY.group)
    plug_in = PlugIn(TOPOLOGY, "mine", "a-package", "1.0", entry)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(EntryPoint, "load", lambda _: made)
        with pytest.raises(ScenarioError, match=message) as refused:
            plug_in.load()
    assert "mine:made of a-package" in str(refused.value.hint)
