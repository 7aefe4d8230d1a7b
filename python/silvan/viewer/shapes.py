"""Shapes of a report's data (``viewer/src/data/report.ts``), and checks of files."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Any,
    NoReturn,
    TypedDict,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import pyarrow as pa

from silvan.errors import OutputError, describe, shown
from silvan.folders import require_regular

DAMAGED = (
    *(OSError, ValueError, TypeError, KeyError),
    *(AttributeError, IndexError, RecursionError),
    *(ArithmeticError, MemoryError, pa.ArrowException),
)

_INTEGERS = 1 << 64
_LONGEST = 60

_NAMES = {
    str: "text",
    bool: "truth value",
    int: "whole number",
    float: "number",
    NoneType: "null",
}


class _Noted(TypedDict, total=False):
    note: str
    rule: str
    found: str
    found_steady: str


class Target(_Noted):
    """A number of a paper, next to the measured one."""

    id: str
    what: str
    paper: float | None
    measured: float | None
    spread: float | None
    rel_diff: float | None
    within_tolerance: bool
    tol: float | None
    calibrated: bool
    steady: float | None
    within_tolerance_steady: bool
    values: Sequence[float]


class CurvePoint(TypedDict):
    """A point of a curve, with the places of its runs."""

    x: float
    y: float
    spread: float | None
    runs: Sequence[int]


class _Coloured(TypedDict, total=False):
    colour: str | None


class Curve(_Coloured):
    """A curve of a chart."""

    chart: str
    unit: str
    axis: str
    label: str
    points: Sequence[CurvePoint]
    paper: Sequence[tuple[float, float]]
    names: Sequence[str]


class FailedPoint(TypedDict):
    """A point of a sweep that could not be finished, as the sweep's manifest has it."""

    hash: str
    seed: int
    values: Mapping[str, Any]
    error: str
    attempts: int
    scenario: str


class _Changed(TypedDict, total=False):
    changes: Sequence[str]


class SweepManifest(_Changed):
    """Contents of the manifest of a sweep."""

    simulator: str
    scenario: str
    grid: Mapping[str, Sequence[str | float | bool | Sequence[Any] | Mapping[str, Any]]]
    seeds: Sequence[int]
    points: int
    finished: int
    failed: Sequence[FailedPoint]
    tables: bool


def read_json(path: Path) -> Any:
    """Read a file of JSON whose numbers are finite."""
    require_regular(path)
    text = path.read_text(encoding="utf-8")
    return json.loads(text, parse_constant=_no_number, parse_float=_finite)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        _no_number(text)
    return value


def require_shape(value: object, kind: Any, place: str) -> None:
    """Check that data has the shape of a type.

    >>> require_shape([0.5, None], Sequence[float | None], "values")
    >>> require_shape({"x": [1, "a"]}, Mapping[str, Sequence[int]], "cases")
    Traceback (most recent call last):
    ValueError: cases.x.1: 'a' is no whole number
    """
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return
    if origin in (Union, UnionType):
        if not any(_fits(value, one) for one in inner):
            names = " or ".join(_name(one) for one in inner)
            raise ValueError(f"{place}: {shown(repr(value), _LONGEST)} is no {names}")
        return
    is_table = is_typeddict(kind) or origin is Mapping
    is_list = origin in (Sequence, tuple)
    plain = Mapping if is_table else (list, tuple, range) if is_list else kind
    if not _is_plain(value, plain) or (origin is tuple and len(value) != len(inner)):  # type: ignore[arg-type]
        raise ValueError(f"{place}: {shown(repr(value), _LONGEST)} is no {_name(kind)}")
    for name, one, wanted in _parts(value, kind):
        require_shape(one, wanted, f"{place}.{name}")


def require_fields(value: Any) -> None:
    """Check the types of a dataclass's fields."""
    for name, kind in _fields(value.__class__).items():
        require_shape(getattr(value, name), kind, name)


def require_places(places: Sequence[int], count: int, what: str) -> None:
    """Make sure that places are those of runs."""
    for place in places:
        if not 0 <= place < count:
            raise ValueError(f"{what}: there is no run {place}, but {count} runs from 0 on")


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Name the run of damaged tables in the error."""
    try:
        yield
    except DAMAGED as error:
        raise OutputError(
            f"{name}: the tables of its result are damaged: {describe(error)}",
            hint="run it again",
        ) from None


def _parts(value: Any, kind: Any) -> Iterator[tuple[str, object, Any]]:
    origin, inner = get_origin(kind), get_args(kind)
    if is_typeddict(kind):
        for name, wanted in _fields(kind).items():
            if name in value:
                yield name, value[name], wanted
            elif name in kind.__required_keys__:
                raise ValueError(f"{name} is missing")
    elif origin is Mapping:
        for name, one in value.items():
            require_shape(name, inner[0], "a name")
            yield name, one, inner[1]
    elif origin is tuple:
        for place, (one, wanted) in enumerate(zip(value, inner, strict=True)):
            yield str(place), one, wanted
    elif origin is Sequence:
        for place, one in enumerate(value):
            yield str(place), one, inner[0]


@cache
def _fields(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _is_plain(value: object, kind: Any) -> bool:
    if kind in (int, float):
        if isinstance(value, bool) or not isinstance(value, int if kind is int else int | float):
            return False
        return abs(value) < (_INTEGERS if kind is int else sys.float_info.max)
    return isinstance(value, kind)


def _fits(value: object, kind: Any) -> bool:
    try:
        require_shape(value, kind, "")
    except ValueError:
        return False
    return True


def _name(kind: Any) -> str:
    if is_typeddict(kind) or get_origin(kind) is Mapping:
        return "table"
    if get_origin(kind) is tuple:
        return f"list of {len(get_args(kind))} numbers"
    return "list" if get_origin(kind) is Sequence else _NAMES.get(kind, kind.__name__)
