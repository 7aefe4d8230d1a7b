"""The keys of a plug-in: a dataclass, read from the tables of a scenario."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from silvan import _silvan
from silvan.errors import ScenarioError, SilvanError, describe, shown
from silvan.inputs.quantities import Quantity
from silvan.inputs.toml_text import dotted


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit of a quantity among the keys of a plug-in."""

    kind: str
    example: str


Size: TypeAlias = Annotated[Quantity, Unit("size", "64 KiB")]
"""A data size; ``.bytes`` is its number of bytes."""

Span: TypeAlias = Annotated[Quantity, Unit("span", "10 us")]
"""A time span; ``.ps`` is its number of picoseconds."""

Rate: TypeAlias = Annotated[Quantity, Unit("rate", "8 Gbit/s")]
"""A data rate; ``.bits_per_s`` is its number of bits in a second."""

Length: TypeAlias = Annotated[Quantity, Unit("length", "5 m")]
"""A length; ``.metres`` is its number of metres."""

_SUPPORTED = (
    "use bool, int, float, str, Literal, Size, Span, Rate, Length, or a list of one of them"
)


def key_names(kind: type[Any]) -> dict[str, str]:
    """List the keys of a dataclass, each with the field that holds it.

    Examples
    --------
    >>> @dataclass
    ... class Keys:
    ...     hosts_per_switch: int = 1
    >>> key_names(Keys)
    {'hosts-per-switch': 'hosts_per_switch'}
    """
    return {one.name.replace("_", "-"): one.name for one in dataclasses.fields(kind) if one.init}


def default_keys(kind: type[Any]) -> dict[str, Any]:
    """Give the default of each key of a dataclass; None for a key that has none.

    Examples
    --------
    >>> @dataclass
    ... class Keys:
    ...     dimensions: int
    ...     hosts_per_switch: int = 1
    >>> default_keys(Keys)
    {'dimensions': None, 'hosts-per-switch': 1}
    """
    fields = {one.name: one for one in dataclasses.fields(kind)}
    defaults: dict[str, Any] = {}
    for key, name in key_names(kind).items():
        one = fields[name]
        if one.default_factory is not dataclasses.MISSING:
            defaults[key] = one.default_factory()
        else:
            defaults[key] = None if one.default is dataclasses.MISSING else one.default
    return defaults


def read_keys(
    kind: type[Any], table: object, path: str, others: Iterable[str] = (), word: str = "it"
) -> Any:
    """Read a table of a scenario as an object of a dataclass."""
    if not isinstance(table, Mapping):
        raise _refused(path, f"expected a table, found {_found(table)}", f"write it as [{path}]")
    names = key_names(kind)
    unknown = next((key for key in table if key not in names), None)
    if unknown is not None:
        known = [*names, *others]
        close = get_close_matches(unknown, known, n=1)
        listed = f"{word} has the keys {', '.join(names)}" if names else f"{word} has no keys"
        hint = f'did you mean "{close[0]}"?' if close else listed
        raise _refused(dotted(path, unknown), "unknown key", hint)
    hints = get_type_hints(kind, include_extras=True)
    fields = {one.name: one for one in dataclasses.fields(kind)}
    values: dict[str, Any] = {}
    for key, name in names.items():
        place = dotted(path, key)
        if key in table:
            values[name] = _read(table[key], hints[name], place)
        elif fields[name].default is fields[name].default_factory is dataclasses.MISSING:
            raise _refused(place, "missing key", f"add {key} to {path}")
        else:
            values[name] = _read_default(fields[name], hints[name], place)
    try:
        return kind(**values)
    except ScenarioError as error:
        raise _refused(path, error.message, error.hint) from error
    except (Exception, GeneratorExit, SystemExit) as error:
        # Code of another package refuses the values; any exception is possible.
        hint = getattr(error, "hint", None) or f"{word} takes no such values"
        raise _refused(path, describe(error).removeprefix("ValueError: "), hint) from error


def plain_keys(keys: Any) -> dict[str, Any]:
    """Give the keys of an object of a dataclass as plain values of a scenario, without None.

    Examples
    --------
    >>> @dataclass
    ... class Keys:
    ...     hosts_per_switch: int = 1
    ...     name: str | None = None
    >>> plain_keys(Keys())
    {'hosts-per-switch': 1}
    """
    values = {key: getattr(keys, name) for key, name in key_names(type(keys)).items()}
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in values.items()
        if value is not None
    }


def numbers(keys: Any) -> dict[str, float]:
    """Give the keys of an object of a dataclass as numbers by field, quantities in base units."""
    hints = get_type_hints(type(keys), include_extras=True)
    values: dict[str, float] = {}
    for name in key_names(type(keys)).values():
        value = getattr(keys, name)
        if (unit := _unit(hints[name])) is not None:
            values[name] = float(_silvan.parse_quantity(value, unit.kind))
        elif isinstance(value, int | float):
            values[name] = float(value)
        else:
            raise SilvanError(
                f"the key {name} is {shown(repr(value))}, but a scheme takes numbers",
                "declare it as bool, int, float, Size, Span or Rate",
            )
    return values


def _unit(kind: Any) -> Unit | None:
    if get_origin(kind) is not Annotated:
        return None
    return next((one for one in get_args(kind)[1:] if isinstance(one, Unit)), None)


def _read(value: object, kind: Any, path: str) -> Any:
    origin, parts = get_origin(kind), get_args(kind)
    if (unit := _unit(kind)) is not None:
        return _quantity(value, unit, path)
    if origin in (Union, types.UnionType):
        kinds = [one for one in parts if one is not type(None)]
        if len(kinds) == 1:
            return _read(value, kinds[0], path)
    elif origin is Literal:
        if value in parts and type(value) in {type(one) for one in parts}:
            return value
        names = ", ".join(repr(one) if not isinstance(one, str) else one for one in parts)
        raise _refused(path, f"unknown value {_found(value)}", f"known here: {names}")
    elif origin in (list, tuple, Sequence):
        if not isinstance(value, list):
            message = f"expected a list, found {_found(value)}"
            raise _refused(path, message, "write it in brackets")
        return tuple(_read(one, parts[0], f"{path}.{place}") for place, one in enumerate(value))
    elif kind is bool:
        if isinstance(value, bool):
            return value
        message = f"expected true or false, found {_found(value)}"
        raise _refused(path, message, "write true or false, without quotes")
    elif kind in (int, float):
        is_number = isinstance(value, int if kind is int else int | float)
        if is_number and not isinstance(value, bool):
            return kind(value)
        wanted = "a whole number" if kind is int else "a number"
        example = "1" if kind is int else "0.5"
        hint = f"write {wanted} without quotes and unit, e.g. {example}"
        raise _refused(path, f"expected {wanted}, found {_found(value)}", hint)
    elif kind is str:
        if isinstance(value, str):
            return value
        message = f"expected text in quotes, found {_found(value)}"
        raise _refused(path, message, 'put it in quotes, e.g. "x"')
    raise SilvanError(f"the type of the key {path} is not supported: {shown(kind)}", _SUPPORTED)


def _read_default(field: dataclasses.Field[Any], kind: Any, path: str) -> Any:
    factory = field.default_factory
    default = field.default if factory is dataclasses.MISSING else factory()
    is_optional = type(None) in get_args(kind)
    if default is None and is_optional:
        return None
    plain = list(default) if isinstance(default, tuple) else default
    try:
        return _read(plain, kind, path)
    except ScenarioError as error:
        message = error.message.removeprefix(f"{path}: ")
        raise SilvanError(f"the default of {path}: {message}", "correct the plug-in") from None


def _quantity(value: object, unit: Unit, path: str) -> Quantity:
    if not isinstance(value, str):
        message = f"expected a quantity with its unit, found {_found(value)}"
        raise _refused(path, message, f'write e.g. "{unit.example}"')
    try:
        _silvan.parse_quantity(value, unit.kind)
    except ScenarioError as error:
        raise _refused(path, error.message, error.hint) from None
    return Quantity(value)


def _refused(path: str, message: str, hint: str | None) -> ScenarioError:
    return ScenarioError(f"{path}: {message}", hint=hint, key=path)


def _found(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {value}"
        case str():
            return f'the text "{shown(value)}"'
        case Mapping():
            return "a table"
        case Sequence():
            return "a list"
    return "a number that is not finite"
