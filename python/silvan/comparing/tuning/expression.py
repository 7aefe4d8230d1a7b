"""Arithmetic on measures, as objectives and targets state it."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from silvan.errors import ScenarioError, shown

_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {"min": min, "max": max}
_LONGEST = 1000

_HINT = "write numbers, measures such as other_receivers_gbps, + - * /, min and max"


@dataclass(frozen=True, slots=True)
class Expression:
    """A formula of named numbers."""

    text: str
    names: tuple[str, ...]
    _tree: ast.expr

    @classmethod
    def parse(cls, text: str, source: str) -> Expression:
        """Read a formula.

        >>> rate = Expression.parse("min(1, on.a / off.a)", "--objective")
        >>> rate.names, rate.value({"on.a": 1.5, "off.a": 2.0})
        (('on.a', 'off.a'), 0.75)
        """
        if not text.strip():
            raise ScenarioError("there is no formula", source, hint=_HINT)
        if len(text) > _LONGEST:
            raise ScenarioError(f"a formula of {len(text)} characters", source, hint=_HINT)
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ScenarioError(f"{shown(text)} is no formula", source, hint=_HINT) from error
        names: dict[str, None] = {}
        _collect(tree, names, text, source)
        return cls(text, tuple(names), tree)

    def value(self, numbers: Mapping[str, float | None], *, infinite: bool = False) -> float | None:
        """Compute the formula; None if a number is unknown or, without ``infinite``, not finite."""
        if any(numbers.get(name) is None for name in self.names):
            return None
        try:
            value = _value(self._tree, numbers)
        except (ZeroDivisionError, OverflowError):
            return None
        return value if math.isfinite(value) or (infinite and math.isinf(value)) else None


def _name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = _name(node.value)
        return None if inner is None else f"{inner}.{node.attr}"
    return None


def _collect(node: ast.expr, names: dict[str, None], text: str, source: str) -> None:
    match node:
        case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
            return
        case ast.BinOp(left, kind, right) if type(kind) in _OPERATORS:
            _collect(left, names, text, source)
            of_divisor: dict[str, None] = {}
            _collect(right, of_divisor, text, source)
            if isinstance(kind, ast.Div) and not of_divisor and _is_zero(right):
                raise ScenarioError(
                    f"{shown(ast.unparse(node))} divides by 0",
                    source,
                    hint="divide by a measure, or by a number that is not 0",
                )
            names.update(of_divisor)
        case ast.UnaryOp(ast.USub(), operand):
            _collect(operand, names, text, source)
        case ast.Call(ast.Name(function), [_, *_] as arguments, []) if function in _FUNCTIONS:
            for one in arguments:
                _collect(one, names, text, source)
        case ast.Name() | ast.Attribute() if (name := _name(node)) is not None:
            names[name] = None
        case _:
            part = ast.unparse(node)
            raise ScenarioError(f"{shown(part)} cannot be part of a formula", source, hint=_HINT)


def _is_zero(constant: ast.expr) -> bool:
    try:
        return _value(constant, {}) == 0
    except (ZeroDivisionError, OverflowError):
        return False


def _value(node: ast.expr, numbers: Mapping[str, float | None]) -> float:
    match node:
        case ast.Constant(value):
            return float(value)  # type: ignore[arg-type]
        case ast.BinOp(left, kind, right):
            return _OPERATORS[type(kind)](_value(left, numbers), _value(right, numbers))
        case ast.UnaryOp(_, operand):
            return -_value(operand, numbers)
        case ast.Call(ast.Name(function), arguments):
            values = [_value(one, numbers) for one in arguments]
            return _FUNCTIONS[function](values)
    name = _name(node)
    number = None if name is None else numbers.get(name)
    assert number is not None
    return float(number)
