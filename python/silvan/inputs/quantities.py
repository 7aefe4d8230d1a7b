"""The values of a scenario, with their units and as numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from silvan import _silvan

Effective = Callable[[str], str | None] | None
"""Finds the value in effect of an omitted key, by its path."""

UNLIMITED = "unlimited"


_MOST_DIGITS = 18


def whole_number(text: str) -> int | None:
    """Read a whole number of decimal digits; None for what is none, or has more than 18 digits.

    Python's own ``int`` also takes signs, blanks and the digits of other scripts, and refuses
    thousands of digits with an error of its own.

    Examples
    --------
    >>> whole_number("007"), whole_number("1_000"), whole_number("9" * 5000)
    (7, None, None)
    """
    is_number = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
    return int(text) if is_number else None


class Quantity(str):
    """A text of a scenario. For a number with a unit, it also has the value in a base unit.

    The text is read as that of a scenario file is. A text that is no such quantity raises
    :class:`silvan.ScenarioError`.

    Examples
    --------
    >>> from silvan.inputs.quantities import Quantity
    >>> Quantity("64 KiB").bytes, Quantity("1.5 us").ps, Quantity("16 Gbit/s").bits_per_s
    (65536, 1500000, 16000000000.0)
    """

    __slots__ = ()

    @property
    def bytes(self) -> int:
        """The data size in bytes."""
        return _silvan.parse_quantity(self, "size")

    @property
    def ps(self) -> int:
        """The time span in picoseconds."""
        return _silvan.parse_quantity(self, "span")

    @property
    def seconds(self) -> float:
        """The time span in seconds; infinity if it is unlimited."""
        return math.inf if self == UNLIMITED else self.ps / 1e12

    @property
    def bits_per_s(self) -> float:
        """The data rate in bit/s; infinity if it is unlimited."""
        return math.inf if self == UNLIMITED else float(_silvan.parse_quantity(self, "rate"))

    @property
    def metres(self) -> float:
        """The length in metres."""
        return _silvan.parse_quantity(self, "length") / 1e3


class Table(Mapping[str, Any]):
    """A table of the effective scenario, read-only, with every default filled in.

    Keys are also attributes, with ``_`` for ``-`` (and ``from_`` for ``from``). Texts are
    :class:`Quantity`, tables are :class:`Table`, lists are tuples. The attribute of a key that
    the scenario leaves out, and that has no default, is None. ``switch.buffer`` and
    ``host.receive_buffer`` depend on the cable then: the attribute is the size of the buffers, or
    None if cables differ. ``scenario.describe()["input_buffers"]`` lists all sizes.

    Examples
    --------
    >>> import silvan
    >>> scenario = silvan.Scenario(switch={"buffer": "32 KiB"})
    >>> scenario.switch.buffer.bytes, scenario.host.sink_rate.bits_per_s
    (32768, inf)
    >>> scenario.switch["buffer"]
    '32 KiB'
    >>> silvan.Scenario().switch.buffer, silvan.Scenario().switch.output_buffer
    ('64 KiB', None)
    """

    __slots__ = ("_effective", "_path", "_values")

    _effective: Effective
    _path: str
    _values: Mapping[str, Any]

    def __init__(self, values: Mapping[str, Any], path: str, effective: Effective = None) -> None:
        object.__setattr__(self, "_values", values)
        object.__setattr__(self, "_path", path)
        object.__setattr__(self, "_effective", effective)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"{self._path}: a scenario never changes: its {name} cannot be set, "
            "override makes a changed copy"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._values, self._path, self._effective)

    def __getitem__(self, key: str) -> Any:
        return _typed(self._values[key], f"{self._path}.{key}", self._effective)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        key = name.rstrip("_").replace("_", "-")
        if key in self._values:
            return self[key]
        if key not in _known_keys(self._path):
            raise AttributeError(f"{self._path}: a scenario has no key {key!r} here")
        value = self._effective(f"{self._path}.{key}") if self._effective else None
        return None if value is None else Quantity(value)

    def __dir__(self) -> list[str]:
        keys = (key.replace("-", "_") for key in self._values)
        return sorted({*super().__dir__(), *keys})

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<{self._path}: {dict(self._values)!r}>"


@cache
def _known_keys(path: str) -> frozenset[str]:
    schema = json.loads(_silvan.schema())
    tables = [schema]
    for word in path.split(".")[1:]:
        below = [one["properties"].get(word) for one in _shapes(tables, schema, "properties")]
        below += [one["items"] for one in _shapes(tables, schema, "items") if word.isdecimal()]
        tables = [one for one in below if one is not None]
    return frozenset(
        key for one in _shapes(tables, schema, "properties") for key in one["properties"]
    )


def _shapes(
    tables: Iterable[Mapping[str, Any]], schema: Mapping[str, Any], keyword: str
) -> Iterator[Mapping[str, Any]]:
    for one in tables:
        if keyword in one:
            yield one
        if "$ref" in one:
            yield from _shapes([schema["$defs"][one["$ref"].rpartition("/")[2]]], schema, keyword)
        for several in ("anyOf", "oneOf", "allOf"):
            yield from _shapes(one.get(several, ()), schema, keyword)


def _typed(value: Any, path: str, effective: Effective) -> Any:
    if isinstance(value, str):
        return Quantity(value)
    if isinstance(value, dict):
        return Table(value, path, effective)
    if isinstance(value, list):
        return tuple(_typed(one, f"{path}.{index}", effective) for index, one in enumerate(value))
    return value
