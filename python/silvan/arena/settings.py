"""What is tuned of each scheme, as it declares it: the same number of trials for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from silvan.baselines import Baseline
from silvan.errors import ScenarioError
from silvan.quantities import Quantity
from silvan.scenario import Scenario
from silvan.toml_text import TomlValue
from silvan.tuning.space import Parameter, Space, searches

BATCH = 8
"""Trials that are drawn before the results of any of them are known."""

SAMPLER_SEED = 1
"""Seed of the sampler of every search."""

_SCALE = 8.0
"""Sizes, times and rates are searched from an eighth of the published value to eight times."""


@dataclass(frozen=True, slots=True)
class Search:
    """What is searched for one scheme in one group of cases.

    Attributes
    ----------
    space : Space
        The parameters.
    start : dict
        The published settings, as drawn values.
    fixed : dict
        Keys that are needed beside the parameters: a table in a scenario has either all of its keys
        from a default or none.
    """

    space: Space
    start: dict[str, float]
    fixed: dict[str, TomlValue]


def search_of(scenario: Scenario, baseline: Baseline) -> Search | None:
    """Set up the search for a scheme's settings.

    Parameters
    ----------
    scenario : Scenario
        The case that settings are tuned on.
    baseline : Baseline
        The scheme with its published settings.

    Returns
    -------
    Search, optional
        Parameters with their ranges, and the published settings. None if nothing is tuned.
    """
    keys = scenario.override(baseline.overrides).to_dict()
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


def _containing(one: Parameter, value: float) -> Parameter:
    """Widen a range so that the published value is in it."""
    return replace(one, low=min(one.low, value), high=max(one.high, value))


def _scaled(key: str, published: str) -> Parameter:
    unit = f"x {_in_base_unit(Quantity(published))}"
    return Parameter(key, 1 / _SCALE, _SCALE, unit, log=True)


def _in_base_unit(value: Quantity) -> str:
    """Write a size in bytes, a time in picoseconds, or a rate in bit/s."""
    readers: Sequence[tuple[Callable[[Quantity], Any], str]] = (
        (lambda one: one.bytes, "B"),
        (lambda one: one.ps, "ps"),
        (lambda one: round(one.bits_per_s), "bit/s"),
    )
    for read, unit in readers:
        try:
            return f"{read(value)} {unit}"
        except ScenarioError:
            continue
    raise ScenarioError(f"{value!r} is neither a size, a time nor a rate")


def _value(keys: Mapping[str, Any], dotted: str) -> Any:
    value: Any = keys
    for part in dotted.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
