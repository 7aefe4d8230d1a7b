"""The parameters of a search: ranges of scenario keys, and the shape of the delay table."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from silvan._silvan import scheme_searches
from silvan.errors import ScenarioError, shown
from silvan.inputs.toml_text import TomlValue

if TYPE_CHECKING:
    import optuna

SLOPE = "cct-slope"
"""Parameter: delay of the CCT's last entry, per step of the index, in packet times."""

POWER = "cct-power"
"""Parameter: power by which the delays of the CCT grow; 1 is a straight line."""

_CCT = "control.ib-cc.adapter.cct"
_RANGE = re.compile(r"(-?[0-9.eE+-]+?)\.\.(-?[0-9.eE+-]+)(?:\s+(?!log\b)(\S.*?))?(?:\s+(log))?")
_MOST_SHIFT, _MOST_MULTIPLIER = 3, 16383


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a search: a key of the scenario, :data:`SLOPE` or :data:`POWER`.

    ``unit`` follows the number, such as ``"us"`` or, for packets of 2112 B, ``"x 2112 B"``.
    ``choices`` replace the range.
    """

    key: str
    low: float = 0.0
    high: float = 0.0
    unit: str = ""
    log: bool = False
    whole: bool = False
    choices: tuple[TomlValue, ...] = ()

    @classmethod
    def parse(cls, key: str, text: str, source: str) -> Parameter:
        """Read a range, ``LOW..HIGH [UNIT] [log]``, or choices, ``V1,V2,...``.

        >>> Parameter.parse("control.feedback.delay", "1..2000 us log", "--vary").log
        True
        """
        hint = "write for example 10..600 log, 0.5..2, 1..2000 us log, or 0,1,3"
        found = _RANGE.fullmatch(text.strip())
        if not found:
            from silvan.inputs.toml_text import parse_value

            choices = tuple(parse_value(word.strip()) for word in text.split(",") if word.strip())
            if len(choices) < 2:
                raise ScenarioError(f"{key}: {shown(text)} is no range", source, hint=hint)
            return cls(key, choices=choices)
        try:
            low, high = float(found[1]), float(found[2])
        except ValueError:
            raise ScenarioError(f"{key}: {shown(text)} is no range", source, hint=hint) from None
        log = bool(found[4])
        if not (math.isfinite(low) and math.isfinite(high)) or low >= high or (log and low <= 0):
            raise ScenarioError(
                f"{key}: the range {shown(text)} is empty" + (" or not above 0" * log),
                source,
                hint=hint,
            )
        whole = all(re.fullmatch(r"-?\d+", part) for part in (found[1], found[2]))
        return cls(key, low, high, found[3] or "", log, whole)

    def suggest(self, trial: optuna.Trial) -> float | int:
        """Let a sampler draw a value; of choices, the place."""
        if self.choices:
            return trial.suggest_int(self.key, 0, len(self.choices) - 1)
        if self.whole:
            return trial.suggest_int(self.key, int(self.low), int(self.high), log=self.log)
        return trial.suggest_float(self.key, self.low, self.high, log=self.log)

    def in_scenario(self, value: float) -> TomlValue:
        """Write a drawn value as the scenario has it."""
        if self.choices:
            return self.choices[int(value)]
        if not self.unit:
            return int(value) if self.whole else float(value)
        if self.unit.startswith("x "):
            size, unit = self.unit[2:].split()
            return f"{round(value * float(size))} {unit}"
        return f"{int(value) if self.whole else format(value, '.6g')} {self.unit}"

    def fraction(self, value: float) -> float:
        """Place a drawn value in the range, from 0 to 1."""
        if self.choices:
            return value / (len(self.choices) - 1)
        scale = math.log if self.log else float
        return (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))

    def to_dict(self) -> dict[str, Any]:
        """Give the parameter as plain values, for JSON."""
        if self.choices:
            return {"key": self.key, "choices": list(self.choices)}
        return {
            "key": self.key,
            "low": self.low,
            "high": self.high,
            "unit": self.unit,
            "log": self.log,
            "whole": self.whole,
        }


@dataclass(frozen=True, slots=True)
class Searched:
    """A parameter of a scheme for searches.

    ``parameter`` is None if multiples of the published value are searched. ``beside`` is a key that
    a scenario needs, too: a table has all of its keys from a default, or none.
    """

    key: str
    parameter: Parameter | None
    beside: str | None


def searches(scheme: str) -> list[Searched]:
    """List the parameters of a scheme that are searched, in the order in which they are drawn.

    >>> [one.key for one in searches("hpcc")]
    ['control.hpcc.eta', 'control.hpcc.additive-increase', 'control.hpcc.max-stage']
    >>> searches("hpcc")[0].parameter == Parameter("control.hpcc.eta", 0.7, 0.99)
    True
    >>> searches("none")
    []
    """
    return [
        Searched(one["key"], _declared(one["key"], one["values"]), one["beside"])
        for one in json.loads(scheme_searches(scheme))
    ]


def _declared(key: str, values: Mapping[str, Any] | str) -> Parameter | None:
    if isinstance(values, str):
        return None
    if "choices" in values:
        return Parameter(key, choices=tuple(values["choices"]))
    return Parameter(key, **values)


def cct_entry(packet_times: float) -> list[int]:
    """Give the shift and multiplier of the delay that is nearest to a number of packet times.

    >>> cct_entry(0.95), cct_entry(0.0), cct_entry(3000)
    ([3, 8], [0, 0], [2, 12000])
    """
    for shift in range(_MOST_SHIFT, -1, -1):
        multiplier = round(packet_times * 2**shift)
        if multiplier == 0:
            return [0, 0]
        if multiplier <= _MOST_MULTIPLIER:
            return [shift, multiplier]
    return [0, _MOST_MULTIPLIER]


def cct_entries(slope: float, power: float, limit: int) -> list[list[int]]:
    """Return a Congestion Control Table: entry i delays by slope · limit · (i / limit)^power."""
    return [cct_entry(slope * limit * (index / limit) ** power) for index in range(limit + 1)]


@dataclass(frozen=True, slots=True)
class Space:
    """The parameters of a search; ``fixed`` has :data:`SLOPE` or :data:`POWER` if not searched."""

    parameters: tuple[Parameter, ...]
    limit: int = 127
    fixed: Mapping[str, float] = field(default_factory=lambda: {SLOPE: 1.0, POWER: 1.0})

    @property
    def keys(self) -> list[str]:
        """Keys of the scenario that change."""
        shaped = any(one.key in (SLOPE, POWER) for one in self.parameters)
        plain = [one.key for one in self.parameters if one.key not in (SLOPE, POWER)]
        return [*plain, *([_CCT] if shaped else [])]

    def overrides(self, drawn: Mapping[str, float]) -> dict[str, TomlValue]:
        """Give what drawn values set in the scenario."""
        values: dict[str, TomlValue] = {}
        for one in self.parameters:
            if one.key not in (SLOPE, POWER):
                values[one.key] = one.in_scenario(drawn[one.key])
        if _CCT in self.keys:
            shape = {**self.fixed, **{key: drawn[key] for key in (SLOPE, POWER) if key in drawn}}
            entries = cct_entries(shape[SLOPE], shape[POWER], self.limit)
            values[_CCT] = {"shape": "given", "entries": entries}
        return values

    def suggest(self, trial: optuna.Trial) -> dict[str, float]:
        """Let a sampler draw all values."""
        return {one.key: one.suggest(trial) for one in self.parameters}

    def in_words(self, drawn: Mapping[str, float]) -> dict[str, TomlValue]:
        """Give drawn values as people read them, by key."""
        return {one.key: one.in_scenario(drawn[one.key]) for one in self.parameters}


def require_inside(parameters: Sequence[Parameter], start: Mapping[str, float]) -> None:
    """Make sure that the values that a search starts from are in its ranges."""
    for one in parameters:
        if one.key not in start:
            raise ScenarioError(f"no start value for {one.key}", hint="give it one")
        low, high = (0.0, len(one.choices) - 1.0) if one.choices else (one.low, one.high)
        if not low <= start[one.key] <= high:
            raise ScenarioError(
                f"{one.key}: the start value {start[one.key]:g} is outside of {low:g} to {high:g}",
                hint="widen the range",
            )
