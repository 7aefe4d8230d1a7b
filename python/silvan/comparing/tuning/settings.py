"""The search for settings of the scheme in force, as the scheme declares it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from silvan.comparing.tuning.space import Parameter, Space, searches
from silvan.errors import ScenarioError
from silvan.inputs.quantities import Quantity
from silvan.inputs.scenario import Scenario
from silvan.inputs.toml_text import TomlValue

_SCALE = 8.0


@dataclass(frozen=True, slots=True)
class Search:
    """Search of one scheme; ``fixed`` are keys that a table needs beside the parameters."""

    space: Space
    start: dict[str, float]
    fixed: dict[str, TomlValue]


def search_of(scenario: Scenario) -> Search | None:
    """Set up the search for the scheme in force; None if it declares no parameters.

    >>> import silvan
    >>> search = search_of(silvan.Scenario(control={"scheme": "hpcc"}))
    >>> search.start["control.hpcc.eta"]
    0.95
    """
    keys = scenario.to_dict()
    parameters: list[Parameter] = []
    start: dict[str, float] = {}
    fixed: dict[str, TomlValue] = {}
    for searched in searches(str(keys["control"]["scheme"])):
        key = searched.key
        value = _value(keys, key)
        if value is None:
            continue
        one = searched.parameter
        if one is None:
            parameters.append(_scaled(key, str(value)))
            start[key] = 1.0
        elif one.choices:
            if value not in one.choices:
                continue
            parameters.append(one)
            start[key] = one.choices.index(value)
        else:
            parameters.append(_containing(one, float(value)))
            start[key] = int(value) if one.whole else float(value)
        if searched.beside and _value(keys, searched.beside) is not None:
            fixed[searched.beside] = _value(keys, searched.beside)
    return Search(Space(tuple(parameters)), start, fixed) if parameters else None


def amount_in(value: Quantity, unit: str) -> float:
    """Give a size, a time or a rate in another unit.

    >>> amount_in(Quantity("55 us"), "ns")
    55000.0
    """
    (amount, kind), (one, other) = _in_base_unit(value), _in_base_unit(Quantity(f"1 {unit}"))
    if kind != other:
        raise ScenarioError(f"{value} has another unit than {unit}")
    return amount / one


def _containing(one: Parameter, value: float) -> Parameter:
    return replace(one, low=min(one.low, value), high=max(one.high, value))


def _scaled(key: str, published: str) -> Parameter:
    amount, unit = _in_base_unit(Quantity(published))
    return Parameter(key, 1 / _SCALE, _SCALE, f"x {amount} {unit}", log=True)


def _in_base_unit(value: Quantity) -> tuple[int, str]:
    readers: Sequence[tuple[Callable[[Quantity], Any], str]] = (
        (lambda one: one.bytes, "B"),
        (lambda one: one.ps, "ps"),
        (lambda one: round(one.bits_per_s), "bit/s"),
    )
    for read, unit in readers:
        try:
            return int(read(value)), unit
        except ScenarioError:
            continue
    raise ScenarioError(f"{value!r} is neither a size, a time nor a rate")


def _value(keys: Mapping[str, Any], dotted: str) -> Any:
    value: Any = keys
    for part in dotted.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
