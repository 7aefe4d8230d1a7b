"""The values of a scenario, with their units and as numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from silvan import _silvan

UNLIMITED = "unlimited"
"""The value of a limit that bounds nothing."""


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
    """A text of a scenario. Where it is a number with a unit, its value in a base unit.

    The text is read as that of a scenario file is. A text that is no such quantity raises
    :class:`silvan.ScenarioError`.

    Examples
    --------
    >>> from silvan.quantities import Quantity
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
    :class:`Quantity`, tables are :class:`Table`, lists are tuples.

    Examples
    --------
    >>> import silvan
    >>> scenario = silvan.Scenario(switch={"buffer": "32 KiB"})
    >>> scenario.switch.buffer.bytes, scenario.host.sink_rate.bits_per_s
    (32768, inf)
    >>> scenario.switch["buffer"]
    '32 KiB'
    """

    __slots__ = ("_path", "_values")

    _path: str
    _values: Mapping[str, Any]

    def __init__(self, values: Mapping[str, Any], path: str) -> None:
        object.__setattr__(self, "_values", values)
        object.__setattr__(self, "_path", path)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"{self._path}: a scenario never changes: its {name} cannot be set, "
            "override makes a changed copy"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._values, self._path)

    def __getitem__(self, key: str) -> Any:
        return _typed(self._values[key], f"{self._path}.{key}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        key = name.rstrip("_").replace("_", "-")
        if key not in self._values:
            raise AttributeError(f"{self._path}: the scenario sets no key {key!r} here")
        return self[key]

    def __dir__(self) -> list[str]:
        keys = (key.replace("-", "_") for key in self._values)
        return sorted({*super().__dir__(), *keys})

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<{self._path}: {dict(self._values)!r}>"


def _typed(value: Any, path: str) -> Any:
    if isinstance(value, str):
        return Quantity(value)
    if isinstance(value, dict):
        return Table(value, path)
    if isinstance(value, list):
        return tuple(_typed(one, f"{path}.{index}") for index, one in enumerate(value))
    return value
