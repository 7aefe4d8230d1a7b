"""Python values as TOML text, and ``key=value`` words as Python values."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from silvan.errors import ScenarioError

TomlValue: TypeAlias = "str | int | float | bool | Sequence[TomlValue] | Mapping[str, TomlValue]"
"""A value that a scenario file can hold. Quantities are text with a unit."""

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def literal(value: TomlValue) -> str:
    """Write a value as a TOML literal.

    Parameters
    ----------
    value : TomlValue
        Text, number, truth value, sequence or table (as an inline table).

    Returns
    -------
    str
        The literal, on one line.

    Raises
    ------
    TypeError
        The value has no TOML form.

    Examples
    --------
    >>> literal({"size": "64 KiB", "speedup": 1.5})
    '{size = "64 KiB", speedup = 1.5}'
    """
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return repr(value) if math.isfinite(value) else f"{value:+}"
        case str():
            # JSON and TOML share their escapes; TOML also forbids a raw DEL.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case Mapping():
            pairs = (f"{_key(key)} = {literal(item)}" for key, item in value.items())
            return "{" + ", ".join(pairs) + "}"
        case Sequence():
            return "[" + ", ".join(map(literal, value)) + "]"
    raise TypeError(f"a scenario cannot hold a value of type {type(value).__name__}")


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else literal(key)


def flatten(tables: Mapping[str, TomlValue]) -> Iterator[tuple[str, TomlValue]]:
    """Walk nested tables as dotted keys and their values.

    Parameters
    ----------
    tables : Mapping
        Tables within tables. The outermost keys may be dotted.

    Yields
    ------
    tuple of str and TomlValue
        Dotted key and value.

    Examples
    --------
    >>> list(flatten({"host": {"sink-rate": "13.6 Gbit/s"}, "run.seed": 2}))
    [('host.sink-rate', '13.6 Gbit/s'), ('run.seed', 2)]
    """
    for key, value in tables.items():
        if isinstance(value, Mapping) and value:
            yield from flatten({f"{key}.{_key(inner)}": item for inner, item in value.items()})
        else:
            yield key, value


def parse_assignments(words: Sequence[str]) -> dict[str, TomlValue]:
    """Read ``key=value`` words, as the command line's ``--set`` takes them.

    Parameters
    ----------
    words : sequence of str
        A value may be any TOML literal; what is none is taken as text, so that quantities
        need no quotes of their own.

    Returns
    -------
    dict
        Values by dotted key.

    Raises
    ------
    ScenarioError
        A word has no ``=`` or no key.

    Examples
    --------
    >>> parse_assignments(["run.duration=1 ms", "control.switch.threshold=0"])
    {'run.duration': '1 ms', 'control.switch.threshold': 0}
    """
    assignments: dict[str, TomlValue] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not key.strip():
            raise ScenarioError(
                f"{word!r} is not of the form key=value",
                source="--set",
                hint="write for example --set run.duration='10 ms'",
            )
        assignments[key.strip()] = parse_value(text)
    return assignments


def parse_value(text: str) -> TomlValue:
    """Read one value: any TOML literal, and text where it is none.

    Examples
    --------
    >>> parse_value("1 ms"), parse_value("0.5"), parse_value('"0.5"')
    ('1 ms', 0.5, '0.5')
    """
    try:
        value: TomlValue = tomllib.loads(f"value = {text.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()
    return value
