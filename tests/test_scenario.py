"""Scenarios from files, text and tables."""

from __future__ import annotations

import copy
import math
import pickle
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import silvan
from silvan.inputs.quantities import Quantity, Table
from tests.conftest import INCAST


def test_file_text_and_tables_say_the_same(incast_file: Path) -> None:
    from_file = silvan.Scenario.from_file(incast_file)
    assert from_file == silvan.Scenario.from_toml(INCAST)
    assert from_file == silvan.Scenario(**tomllib.loads(INCAST))


def test_the_effective_scenario_reads_back_as_itself() -> None:
    scenario = silvan.Scenario.from_toml(INCAST)
    again = silvan.Scenario.from_toml(scenario.to_toml())
    assert again == scenario
    assert again.to_toml() == scenario.to_toml()


def test_text_and_json_forms_agree() -> None:
    scenario = silvan.Scenario.from_toml(INCAST)
    text = scenario.to_toml()
    assert tomllib.loads(text) == tomllib.loads(INCAST)
    assert tomllib.loads(text.replace("# ", "")) == scenario.to_dict()


ROOT = Path(__file__).parent.parent
SHIPPED = [
    path
    for folder in ("examples", "studies", "python/silvan/bench/studies")
    for path in sorted((ROOT / folder).rglob("*.toml"))
]

CHANGES: list[dict[str, object]] = [
    {},
    {"run.duration": "7 ms", "run.warm-up": "1 ms"},
    {"packet.mtu": "1 KiB", "switch.buffer": "128 KiB"},
    {"probe.trees": {}},
    {"control.scheme": "ib-cc", "control.ib-cc.adapter.cct.shape": "given"},
    {
        "control.scheme": "ib-cc",
        "control.ib-cc.adapter.cct": {"shape": "geometric", "first": 1, "ratio": 2},
    },
    {"control.scheme": "dcqcn"},
    {"control.scheme": "ecn", "control.ib-cc.switch.threshold-lowest": "10 KiB"},
    {"vl.data-vls": 4},
    {"fabric.generator": "ring", "fabric.switches": 3, "fabric.hosts-per-switch": 2},
    {"fabric": {"generator": "single-switch", "hosts": 4}, "traffic": {}},
    {"link.speed": "SDR"},
]


# Scenarios that take half a minute to lay out again for each change.
HUGE = {"uniform-65536"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[pytest.mark.nightly] if path.stem in HUGE else [])
        for path in SHIPPED
    ],
    ids=lambda path: f"{path.parent.name}/{path.stem}",
)
def test_a_written_scenario_changes_as_the_scenario_does(path: Path) -> None:
    """Oracle: the scenario that was read from the file."""

    def changed(scenario: silvan.Scenario, change: dict[str, object]) -> str | None:
        try:
            return scenario.override(change).hash
        except silvan.ScenarioError:
            return None

    scenario = silvan.Scenario.from_file(path)
    again = silvan.Scenario.from_toml(scenario.to_toml())
    assert again.hash == scenario.hash
    # The routes of ten thousand hosts take seconds.
    hosts = scenario.describe()["hosts"]
    for change in [] if hosts > 20_000 else CHANGES[:: 4 if hosts > 1000 else 1]:
        assert changed(again, change) == changed(scenario, change), change
        if not change:
            assert changed(again, change) == scenario.hash


def test_a_scenario_whose_text_was_refused_has_a_representation() -> None:
    """Debuggers and pytest print the local variables of a failed constructor."""
    refused = object.__new__(silvan.Scenario)
    assert repr(refused) == "<silvan.Scenario, refused>"
    with pytest.raises(AttributeError):
        _ = refused.name


def test_an_override_changes_that_key_only() -> None:
    scenario = silvan.Scenario.from_toml(INCAST)
    changed = scenario.override({"run.duration": "400 us", "switch": {"latency": "50 ns"}})
    expected = scenario.to_dict()
    expected["run"]["duration"] = "400 us"
    expected["switch"]["latency"] = "50 ns"
    assert changed.to_dict() == expected
    assert changed != scenario
    assert changed.duration_ps == 400_000_000


@pytest.mark.parametrize(
    ("text", "attribute", "value"),
    [
        ("64 KiB", "bytes", 65_536),
        ("2 MB", "bytes", 2_000_000),
        ("7 B", "bytes", 7),
        ("1.5 us", "ps", 1_500_000),
        ("0 ms", "ps", 0),
        ("2 ms", "seconds", 0.002),
        ("unlimited", "seconds", math.inf),
        ("13.5 Gbit/s", "bits_per_s", 13.5e9),
        ("1 GB/s", "bits_per_s", 8e9),
        ("unlimited", "bits_per_s", math.inf),
        ("3.5 m", "metres", 3.5),
    ],
)
def test_a_quantity_is_a_number_in_its_base_unit(text: str, attribute: str, value: float) -> None:
    """Oracle: the definitions of the units."""
    quantity = Quantity(text)
    assert quantity == text
    assert getattr(quantity, attribute) == value


@pytest.mark.parametrize(
    ("text", "attribute", "hint"),
    [("64", "bytes", "KiB"), ("64 KiB", "ps", "us"), ("3 Gb/s", "bits_per_s", "Gbit/s")],
)
def test_a_text_that_is_no_such_quantity_is_refused(text: str, attribute: str, hint: str) -> None:
    with pytest.raises(silvan.ScenarioError) as refused:
        getattr(Quantity(text), attribute)
    assert text in refused.value.message
    assert hint in str(refused.value.hint)


def test_tables_are_attributes_with_defaults_filled_in() -> None:
    """Oracle: the effective scenario as dictionaries."""
    scenario = silvan.Scenario.from_toml(INCAST)
    tables = scenario.to_dict()

    def compare(table: Table, values: dict[str, Any]) -> None:
        assert set(table) == set(values)
        for key, value in values.items():
            found = getattr(table, key.replace("-", "_") + ("_" if key == "from" else ""))
            if isinstance(value, dict):
                compare(found, value)
            elif not isinstance(value, list):
                assert found == value

    compare(scenario.tables, tables)
    assert scenario.traffic.incast[0].to == tables["traffic"]["incast"][0]["to"]
    assert scenario.packet.mtu.bytes == 2_048
    assert {"switch", "packet"} <= set(dir(scenario))
    with pytest.raises(AttributeError, match="bufer"):
        _ = scenario.switch.bufer
    with pytest.raises(AttributeError, match="swich"):
        _ = scenario.swich


def test_buffers_that_a_scenario_leaves_out_are_those_in_effect() -> None:
    """Oracle: the facts of the fabric."""
    scenario = silvan.Scenario(fabric={"generator": "single-switch", "hosts": 4})
    sizes = {one["in_hosts"]: one["bytes"] for one in scenario.describe()["input_buffers"]}
    table = pickle.loads(pickle.dumps(scenario.switch))
    assert scenario.switch.buffer.bytes == table.buffer.bytes == sizes[False]
    assert scenario.host.receive_buffer.bytes == sizes[True]
    assert scenario.override({"switch.buffer": "32 KiB"}).switch.buffer == "32 KiB"
    # The file leaves it out, so it is no key of the table.
    assert "buffer" not in scenario.switch
    # Long cables need more than the 64 KiB of short ones.
    rails = silvan.Scenario(
        fabric={
            "generator": "rail-optimised",
            "servers": 2,
            "gpus-per-server": 2,
            "spines": 1,
            "server-link": {"rate": "3.6 Tbit/s", "latency": "1 us"},
        }
    )
    assert len({one["bytes"] for one in rails.describe()["input_buffers"]}) > 1
    assert rails.switch.buffer is None


def test_keys_that_a_scenario_leaves_out_are_none() -> None:
    scenario = silvan.Scenario.from_toml(INCAST)
    assert scenario.link.rate is None
    assert scenario.probe.packets is None
    assert scenario.traffic.nodes is None
    with pytest.raises(AttributeError, match="nowhere"):
        _ = scenario.traffic.incast[0].nowhere


def test_a_scenario_crosses_processes() -> None:
    scenario = silvan.Scenario.from_toml(INCAST)
    assert pickle.loads(pickle.dumps(scenario)) == scenario


def test_a_table_of_a_scenario_crosses_processes_and_never_changes() -> None:
    table = silvan.Scenario.from_toml(INCAST).run
    for one in (pickle.loads(pickle.dumps(table)), copy.copy(table), copy.deepcopy(table)):
        assert (type(one), one, repr(one)) == (type(table), table, repr(table))
    with pytest.raises(AttributeError, match="a scenario never changes: its seed cannot be set"):
        table.seed = 2
    with pytest.raises(AttributeError, match="no attribute '__setitem__'"):
        _ = table.__setitem__


@pytest.mark.parametrize(
    "value",
    [None, b"x", object(), 2**63, {"deep": [None]}, "\ud800"],
    ids=lambda one: repr(one)[:9],
)
def test_a_value_without_a_toml_form_is_named_by_its_key(value: Any) -> None:
    makes: list[Callable[[], silvan.Scenario]] = [
        lambda: silvan.Scenario(run={"seed": value}),
        lambda: silvan.Scenario().override({"run.seed": value}),
    ]
    for make in makes:
        with pytest.raises(silvan.ScenarioError, match=r"^run\.seed") as caught:
            make()
        assert caught.value.key is not None
        assert caught.value.key.startswith("run.seed")
        assert caught.value.hint is not None


@pytest.mark.parametrize("key", ["run.seed = 5 #", "run.seed = 5\nname", "", "run..seed", "a b"])
def test_a_malformed_key_sets_nothing_else(key: str) -> None:
    with pytest.raises(silvan.ScenarioError, match="cannot have the key"):
        silvan.Scenario(**{key: "x"})


def test_text_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(silvan.ScenarioError, match="not UTF-8"):
        silvan.Scenario.from_toml('name = "\ud800"')


def test_every_key_of_a_scenario_is_in_the_schema() -> None:
    properties = silvan.schema()["properties"]
    assert set(silvan.Scenario().to_dict()) <= set(properties)


def test_a_mistake_in_a_file_has_its_parts_as_attributes(tmp_path: Path) -> None:
    """Oracle: where the text has the mistake."""
    path = tmp_path / "bad.toml"
    lines = ["[[traffic.incast]]", 'to = "host-0000"', "  laod = 1"]
    path.write_text("\n".join(lines))
    with pytest.raises(silvan.ScenarioError) as caught:
        silvan.Scenario.from_file(path)
    error = caught.value
    assert (error.source, error.line, error.column) == (str(path), 3, lines[2].index("laod") + 1)
    assert error.key == "traffic.incast.0.laod"
    assert error.hint == 'did you mean "load"?'
    assert "laod" in error.message


def test_a_mistake_in_an_override_has_a_key_and_no_line() -> None:
    with pytest.raises(silvan.ScenarioError) as caught:
        silvan.Scenario().override({"switch.bufer": "64 KiB"})
    error = caught.value
    assert (error.key, error.line, error.column) == ("switch.bufer", None, None)


@pytest.mark.parametrize("control", ["control = {}", 'control = { scheme = "half" }', "[control]"])
def test_an_override_makes_tables_below_any_form_of_a_table(control: str) -> None:
    """Oracle: the keys as a separate section."""
    changed = silvan.Scenario.from_toml(control).override(
        {"control.scheme": "half", "control.half.step": 0.25}
    )
    section = '[control]\nscheme = "half"\n[control.half]\nstep = 0.25\n'
    assert changed.hash == silvan.Scenario.from_toml(section).hash


def test_text_that_is_not_utf8_is_located(tmp_path: Path) -> None:
    path = tmp_path / "latin1.toml"
    path.write_bytes(b'# two lines\nname = "Gr\xfcn"\n')
    with pytest.raises(silvan.ScenarioError, match="UTF-8") as caught:
        silvan.Scenario.from_file(path)
    assert caught.value.line == 2


def test_mappings_and_numpy_values_are_taken_as_they_are() -> None:
    # Without annotations, so that a type checker infers what a user's program has.
    fabric = {"generator": "single-switch", "hosts": np.int64(4)}
    overrides = {
        "run.duration": "200 us",
        "run.seed": np.uint8(3),
        "vl.sl-to-vl": np.zeros(16, int),
    }
    traffic = {"incast": [{"to": "host-0000", "load": np.float64(0.5)}]}
    scenario = silvan.Scenario(fabric=fabric, traffic=traffic).override(overrides)
    expected = silvan.Scenario(
        fabric={"generator": "single-switch", "hosts": 4},
        traffic={"incast": [{"to": "host-0000", "load": 0.5}]},
        run={"duration": "200 us", "seed": 3},
        vl={"sl-to-vl": [0] * 16},
    )
    assert scenario == expected
    seeds = np.arange(2)
    varying = expected.varying({"run.seed": seeds})
    assert [varying.at(values).seed for values in varying.sweep_values()] == [0, 1]
    grid = {"traffic.incast.0.load": np.linspace(0.5, 1, 2)}
    swept = silvan.sweep(expected, grid, seeds=1)
    assert swept.points["traffic.incast.0.load"].to_pylist() == [0.5, 1.0]


def test_a_scenario_without_traffic_is_warned_of() -> None:
    idle = silvan.Scenario(name="quiet", run={"duration": "10 us"})
    with pytest.warns(silvan.ScenarioWarning, match="quiet: no host sends anything") as caught:
        silvan.run(idle, seed=1)
    assert [warning.filename for warning in caught] == [__file__]
    with pytest.warns(silvan.ScenarioWarning):
        silvan.sweep(idle)
    assert not idle.has_traffic
    assert silvan.Scenario.from_toml(INCAST).has_traffic
