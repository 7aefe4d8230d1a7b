"""Python values as TOML text, and ``key=value`` words as Python values."""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, time
from typing import Protocol, TypeAlias

from silvan.errors import ScenarioError, shown


class SupportsToList(Protocol):
    """Numbers and arrays of NumPy, and what else converts itself to plain values."""

    def tolist(self) -> object:
        """Give the plain value."""


TomlValue: TypeAlias = "str | int | float | bool | Sequence[TomlValue] | Mapping[str, TomlValue]"
"""Quantities are text with a unit."""

TomlInput: TypeAlias = (
    "str | int | float | bool | os.PathLike[str] | SupportsToList | Sequence[object]"
    " | Mapping[str, object]"
)

_DEEPEST = 64
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_KEY_PART = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\[^\n])*"|'[^'\n]*')"""
_DOTTED_KEY = re.compile(rf"{_KEY_PART}(?:\.{_KEY_PART})*")


class WholeTable(dict[str, TomlValue]):
    """A table that takes the place of what a scenario has, other keys included."""


def literal(value: object) -> str:
    """Write a value as a TOML literal on one line; NumPy's numbers and arrays are allowed.

    >>> literal({"size": "64 KiB", "speedup": 1.5})
    '{size = "64 KiB", speedup = 1.5}'
    """
    return _literal(value, 0)


def _literal(value: object, depth: int) -> str:
    if depth > _DEEPEST:
        raise ScenarioError(
            f"a value has more than {_DEEPEST} levels of lists and tables",
            hint="no key of a scenario needs them",
        )
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return _whole_number(int(value))
        case float():
            return repr(float(value)) if math.isfinite(value) else f"{float(value):+}"
        case str():
            return _text(value)
        case os.PathLike():
            return _literal(os.fspath(value), depth)
        case Mapping():
            items = value.items()
            pairs = (f"{_key(key)} = {_literal(item, depth + 1)}" for key, item in items)
            return "{" + ", ".join(pairs) + "}"
        case Sequence() if not isinstance(value, bytes | bytearray | memoryview):
            return "[" + ", ".join(_literal(item, depth + 1) for item in value) + "]"
    to_list = getattr(value, "tolist", None)
    if callable(to_list):
        return _literal(to_list(), depth + 1)
    raise ScenarioError(
        f"a scenario cannot hold a value of type {type(value).__name__}",
        hint="give text, a number, True or False, a list or a mapping",
    )


def _whole_number(value: int) -> str:
    if -(2**63) <= value < 2**63:
        return str(value)
    raise ScenarioError(
        f"a whole number of {value.bit_length()} bits is too large",
        hint="the largest is 9223372036854775807",
    )


def require_utf8(text: str) -> None:
    """Make sure that a text can be encoded, so that it has no half of a surrogate pair."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ScenarioError(
            f"{shown(repr(text))} is not UTF-8 text", hint="write it with characters of Unicode"
        ) from None


def _text(value: str) -> str:
    require_utf8(value)
    # JSON and TOML share their escapes; TOML also forbids a raw DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise _no_key(key)
    return key if _BARE_KEY.fullmatch(key) else _text(key)


def _no_key(key: object) -> ScenarioError:
    hint = "keys are text, such as run.duration"
    if isinstance(key, str) and "[" in key:
        hint = "write places in lists with dots, such as traffic.incast.0.to"
    return ScenarioError(f"a table cannot have the key {shown(repr(key))}", hint=hint)


def dotted(path: str, key: object) -> str:
    """Write the dotted key of a key within a table.

    >>> dotted("sweep.vary", "host.sink-rate")
    'sweep.vary."host.sink-rate"'
    """
    return f"{path}.{_key(key)}"


def flatten(tables: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Walk nested tables as dotted keys and their values.

    >>> list(flatten({"host": {"sink-rate": "13.6 Gbit/s"}, "run.seed": 2}))
    [('host.sink-rate', '13.6 Gbit/s'), ('run.seed', 2)]
    """
    yield from _flatten(tables, 0)


def _flatten(tables: Mapping[str, object], depth: int) -> Iterator[tuple[str, object]]:
    for key, value in tables.items():
        if not isinstance(key, str):
            raise _no_key(key)
        is_whole = isinstance(value, WholeTable) or depth >= _DEEPEST
        if isinstance(value, Mapping) and value and not is_whole:
            inner = {dotted(key, name): item for name, item in value.items()}
            yield from _flatten(inner, depth + 1)
        else:
            yield key, value


def literals(tables: Mapping[str, object]) -> list[tuple[str, str]]:
    """Write nested tables as dotted keys and TOML literals.

    >>> literals({"host": {"sink-rate": "13.6 Gbit/s"}, "run.seed": 2})
    [('host.sink-rate', '"13.6 Gbit/s"'), ('run.seed', '2')]
    """
    return [(key, _named_literal(key, value)) for key, value in flatten(tables)]


def _named_literal(key: str, value: object) -> str:
    # A key of the caller must not add lines or comments.
    if not _DOTTED_KEY.fullmatch(key):
        raise _no_key(key)
    try:
        return literal(value)
    except ScenarioError as error:
        raise ScenarioError(f"{key}: {error.message}", hint=error.hint, key=key) from None


def parse_assignments(words: Sequence[str]) -> dict[str, TomlValue]:
    """Read ``key=value`` words of ``--set``.

    Values are TOML literals, or text without quotes. An inline table replaces the table.

    >>> parse_assignments(["run.duration=1 ms", "control.ib-cc.switch.threshold=0"])
    {'run.duration': '1 ms', 'control.ib-cc.switch.threshold': 0}
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
        value = parse_value(text)
        assignments[key.strip()] = WholeTable(value) if isinstance(value, Mapping) else value
    return assignments


def parse_value(text: str) -> TomlValue:
    """Read one value: any TOML literal, and text where it is none.

    >>> parse_value("1 ms"), parse_value("0.5"), parse_value('"0.5"')
    ('1 ms', 0.5, '0.5')
    """
    text = text.strip()
    try:
        table = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    value: TomlValue = table["value"]
    # A scenario has no dates, and a second line is no part of the value.
    return text if isinstance(value, date | time) or len(table) > 1 else value
