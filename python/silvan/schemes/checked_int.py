"""``int`` for compiled functions, because numba's conversion of NaN or 1e30 gives any number."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import FunctionType

from numba import types
from numba.extending import overload

_LIMIT = 2.0**63
_TOO_LARGE = "float is too large for an integer of 64 bits"


def checked_int(value: float) -> int:
    """Convert a number to an integer as compiled functions do; numba replaces this function."""
    if isinstance(value, float) and math.isfinite(value) and not -_LIMIT <= value < _LIMIT:
        raise OverflowError(_TOO_LARGE)
    return int(value)


@overload(checked_int, inline="never")
def _checked_int(value):  # type: ignore[no-untyped-def]  # numba compares the signatures
    if not isinstance(value, types.Float):
        return lambda value: int(value)

    def convert(value):  # type: ignore[no-untyped-def]
        if not (-_LIMIT <= value < _LIMIT):
            if math.isnan(value):
                raise ValueError("cannot convert float NaN to integer")
            raise OverflowError(_TOO_LARGE)
        return int(value)

    return convert


def with_checked_int(function: Callable[..., object]) -> Callable[..., object]:
    """Give the same function with :func:`checked_int` in place of ``int``."""
    if not isinstance(function, FunctionType) or "int" in function.__globals__:
        return function
    made = FunctionType(
        function.__code__,
        {**function.__globals__, "int": checked_int},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    made.__module__ = function.__module__
    return made
