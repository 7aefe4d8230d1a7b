"""Public names are documented, take any mapping or sequence, and results never change."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import silvan

_MUTABLE = re.compile(r"\b(dict|list|set)\b")


def names() -> Iterator[tuple[str, Any]]:
    """List the public names, and the public members of public classes, with what they hold."""
    for name in silvan.__all__:
        value = getattr(silvan, name)
        yield name, value
        if not inspect.isclass(value):
            continue
        for base in value.__mro__:
            if base.__module__.startswith("silvan"):
                for member, held in vars(base).items():
                    if not member.startswith("_"):
                        yield f"{name}.{member}", held


def functions() -> Iterator[tuple[str, Any]]:
    """List the functions among the public names."""
    for name, value in names():
        if inspect.isclass(value):
            yield f"{name}.__init__", value.__init__
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if inspect.isfunction(function):
            yield name, function


DOCUMENTED = [
    name
    for name, value in names()
    if inspect.isclass(value)
    or inspect.isroutine(value)
    or isinstance(value, classmethod | staticmethod | property)
    or hasattr(value, "func")
]


def doors() -> dict[str, Any]:
    """List the modules at the top that only give names of a room a short path."""
    folder = Path(silvan.__path__[0])
    return {
        path.stem: importlib.import_module(f"silvan.{path.stem}")
        for path in sorted(folder.glob("[!_]*.py"))
        if "__all__" in (text := path.read_text("utf-8")) and "\ndef " not in text
    }


def test_short_paths_lead_to_the_names_of_the_rooms() -> None:
    found = doors()
    assert {"receive_rates", "emulation", "programs"} <= found.keys()
    for door, module in found.items():
        for name in module.__all__:
            home = getattr(getattr(module, name), "__module__", None)
            assert home is None or home.count(".") > 1, f"{door}.{name}"


def test_the_top_of_the_package_is_small() -> None:
    assert len(list(Path(silvan.__path__[0]).glob("*.py"))) <= 20


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_public_name_has_a_docstring(name: str) -> None:
    value = dict(names())[name]
    text = value.__doc__
    assert text, name
    # A dataclass without a docstring gets its signature for one.
    assert not text.startswith(f"{name}("), name


def test_the_names_are_found() -> None:
    assert {"run", "Scenario", "Scenario.from_networkx", "Result.hosts", "Result.tables"} <= set(
        DOCUMENTED
    )


@pytest.mark.parametrize(
    ("name", "function"),
    list(functions()),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_arguments_are_of_abstract_types(name: str, function: Any) -> None:
    for parameter in inspect.signature(function).parameters.values():
        assert not _MUTABLE.search(str(parameter.annotation)), f"{name}: {parameter}"


@pytest.mark.parametrize(
    "attribute", ["scenario", "seed", "tables", "summary", "version", "hosts", "plot", "other"]
)
def test_a_result_cannot_be_assigned_to(incast: silvan.Result, attribute: str) -> None:
    with pytest.raises(AttributeError, match=attribute):
        setattr(incast, attribute, None)
    with pytest.raises(AttributeError, match=attribute):
        delattr(incast, attribute)
    assert incast.seed == 3


def test_the_mappings_of_a_result_cannot_be_changed(incast: silvan.Result) -> None:
    mappings: list[Any] = [incast.tables, incast.summary]
    for mapping in mappings:
        name = next(iter(mapping))
        with pytest.raises(TypeError, match="does not support item assignment"):
            mapping[name] = None
        with pytest.raises(TypeError, match="does not support item deletion"):
            del mapping[name]


def test_a_result_does_not_follow_the_mappings_it_was_made_from(incast: silvan.Result) -> None:
    summary = dict(incast.summary)
    tables = dict(incast.tables)
    result = silvan.Result(incast.scenario, incast.seed, tables, summary)
    summary["events"] = 0
    del tables["hosts"]
    assert result.summary["events"] == incast.summary["events"]
    assert result.hosts == incast.hosts


def test_results_that_travel_stay_the_same(incast: silvan.Result, tmp_path: Path) -> None:
    incast.write(tmp_path / "result")
    for other in (
        pickle.loads(pickle.dumps(incast)),
        copy.deepcopy(incast),
        silvan.Result.read(tmp_path / "result"),
    ):
        assert other.summary == incast.summary
        assert other.tables == incast.tables
        with pytest.raises(AttributeError):
            other.seed = 4


def test_a_scenario_and_a_sweep_cannot_be_assigned_to(incast: silvan.Result) -> None:
    swept = silvan.SweepResult(incast.hosts, (), None)
    for value, attribute in ((incast.scenario, "name"), (swept, "points")):
        with pytest.raises(AttributeError):
            setattr(value, attribute, None)
