"""Scenarios from files, text and tables."""

from __future__ import annotations

import pickle
import tomllib
from pathlib import Path

import pytest

import silvan
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
    assert tomllib.loads(scenario.to_toml()) == scenario.to_dict()


def test_an_override_changes_that_key_only() -> None:
    scenario = silvan.Scenario.from_toml(INCAST)
    changed = scenario.override({"run.duration": "400 us", "switch": {"latency": "50 ns"}})
    expected = scenario.to_dict()
    expected["run"]["duration"] = "400 us"
    expected["switch"]["latency"] = "50 ns"
    assert changed.to_dict() == expected
    assert changed != scenario
    assert changed.duration_ps == 400_000_000


def test_a_scenario_crosses_processes() -> None:
    scenario = silvan.Scenario.from_toml(INCAST)
    assert pickle.loads(pickle.dumps(scenario)) == scenario


def test_every_key_of_a_scenario_is_in_the_schema() -> None:
    properties = silvan.schema()["properties"]
    assert set(silvan.Scenario().to_dict()) <= set(properties)


def test_a_mistake_in_a_file_has_its_file_line_and_hint(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text('name = "bad"\n[switch]\nbufer = "64 KiB"\n')
    with pytest.raises(silvan.ScenarioError) as caught:
        silvan.Scenario.from_file(path)
    assert (caught.value.source, caught.value.line) == (str(path), 3)
    assert caught.value.hint is not None
    assert "buffer" in caught.value.hint


def test_text_that_is_not_utf8_is_located(tmp_path: Path) -> None:
    path = tmp_path / "latin1.toml"
    path.write_bytes(b'# two lines\nname = "Gr\xfcn"\n')
    with pytest.raises(silvan.ScenarioError, match="UTF-8") as caught:
        silvan.Scenario.from_file(path)
    assert caught.value.line == 2
