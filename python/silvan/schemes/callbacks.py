"""A congestion-control scheme in Python functions that numba compiles."""

from __future__ import annotations

import dis
import inspect
import operator
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np

from silvan.errors import SchemeError, SilvanError, shown
from silvan.extras import require_extra
from silvan.schemes.hook_failure import HookFailure, explain, source_of
from silvan.schemes.hook_table import HOOKS, Hook, Value, parameters_text

if TYPE_CHECKING:
    import numpy.typing as npt

NEVER = 2**63 - 1
"""Time that a function returns if only feedback, grants or credits end the wait."""


_FUNCTIONS_KEPT = 64


class Callbacks:
    """A scheme in functions: what happens at switches and hosts, and when flows may send.

    Every function takes the state and whole numbers, some of them also arrays of records; times are
    in picoseconds. numba compiles them, which ``pip install "silvan[schemes]"`` brings; they run
    without the interpreter. One that is left out does nothing. The first call that raises an
    exception or returns a value that is not valid, such as NaN or a negative time, ends the run
    with a :class:`SchemeError`.

    Parameters
    ----------
    state : array_like of float
        Memory of the functions, in any shape; each gets a view of it as its first argument.
        Every run starts with a copy.
    **functions : callable
        The functions by the names of their hooks, which are listed below.

    Raises
    ------
    SilvanError
        numba is not installed, or there is no such function.
    SchemeError
        numba cannot compile a function, or it has other arguments.

    See Also
    --------
    silvan.run : takes it as ``control``.
    """

    def __init__(self, state: npt.ArrayLike, **functions: Callable[..., object]) -> None:
        self.state = np.ascontiguousarray(state, dtype=np.float64)
        unknown = [name for name in functions if name not in HOOKS]
        if unknown:
            raise SilvanError(f"a scheme has no hook {unknown[0]!r}", f"known: {', '.join(HOOKS)}")
        self._functions = functions
        # The compiled functions live as long as these objects.
        self._compiled = {
            name: _compile(name, function, self.state.shape) for name, function in functions.items()
        }

    def addresses(self) -> dict[str, int]:
        """Give the address of every function, for the compiled module."""
        return {name: int(compiled.address) for name, compiled in self._compiled.items()}

    def explain(
        self,
        failure: HookFailure,
        state: npt.NDArray[np.float64],
        raised: Sequence[BaseException],
    ) -> SchemeError:
        """Make the error of a call that failed, from the state after it and what was raised."""
        return explain(self._functions[failure.hook], failure, state, raised)


Callbacks.__doc__ = f"""{(Callbacks.__doc__ or "").rstrip()}

    Notes
    -----
    The hooks:

{parameters_text()}
    """


@lru_cache(_FUNCTIONS_KEPT)
def _compile(name: str, function: Callable[..., object], shape: tuple[int, ...]) -> Any:
    require_extra("schemes", "schemes in Python")
    import numba
    from numba import types

    hook = HOOKS[name]
    found = list(inspect.signature(function).parameters)
    if len(found) != len(hook.names):
        raise SchemeError(
            f"{name} takes {len(found)} arguments, not {len(hook.names)}",
            *_place(function),
            hint=f"write def {name}({', '.join(hook.names)})",
        )
    _require_64_bits(name, function)
    try:
        given = [
            types.Array(numba.from_dtype(one.dtype), 1, "C") if one.columns else types.int64
            for one in hook.arguments
        ]
        inner = _compile_inner(function, (types.Array(types.float64, len(shape), "C"), *given))
        returned = inner.nopython_signatures[-1].return_type
        body = _arguments(hook) + _body(hook, returned, function)
        names: dict[str, Any] = {"inner": inner, "carray": numba.carray, "shape": shape}
        names |= {"int64": np.int64, "NEVER": NEVER}
        names |= {f"{argument.name}_type": argument.dtype for argument in hook.arguments}
        exec(f"def outer(pointer, words):\n{body}", names)
        signature = types.int64(types.CPointer(types.float64), types.CPointer(types.int64))
        return numba.cfunc(signature)(names["outer"])
    except numba.core.errors.NumbaError as error:
        lines = [line.strip() for line in str(error).splitlines()]
        wrong = (line for line in lines if line and not line.startswith("Failed in nopython"))
        raise SchemeError(
            f"numba cannot compile {name}: {shown(next(wrong, 'no reason').rstrip(':'))}",
            *_place(function, str(error)),
            hint="use numbers, the state, and Python that numba supports",
        ) from error


def _require_64_bits(name: str, function: Callable[..., object]) -> None:
    for code in _codes(function):
        for number, line in _constants(code):
            if not -(2**63) <= number < 2**64:
                raise SchemeError(
                    f"{name} has a whole number of {number.bit_length()} bits; 64 are supported",
                    code.co_filename,
                    line,
                    hint="write a float such as 2.0**70, or silvan.NEVER for a wait without end",
                )


def _codes(function: Callable[..., object]) -> Iterator[CodeType]:
    waiting: list[Any] = [function]
    seen: list[CodeType] = []
    while waiting:
        python = source_of(waiting.pop())
        code = getattr(python, "__code__", None)
        if not isinstance(code, CodeType) or code in seen:
            continue
        if not seen or code.co_filename == seen[0].co_filename:
            seen.append(code)
            yield code
            names = inspect.getclosurevars(python)
            waiting += [*names.globals.values(), *names.nonlocals.values()]


def _constants(code: CodeType) -> Iterator[tuple[int, int | None]]:
    known: list[int] = []
    for step in dis.get_instructions(code):
        line = step.positions.lineno if step.positions else None
        if step.opname in ("LOAD_CONST", "LOAD_SMALL_INT", "RETURN_CONST"):
            for number in _whole_numbers(step.argval):
                yield number, line
            if isinstance(step.argval, int):
                known.append(step.argval)
            else:
                known.clear()
        elif step.opname == "BINARY_OP" and step.argrepr in _OPERATIONS and len(known) >= 2:
            # Python computes small numbers only before it runs; numba computes with 64 bits.
            right, left = known.pop(), known.pop()
            if step.argrepr not in ("**", "<<") or 0 <= right <= _LARGEST_EXPONENT:
                known.append(_OPERATIONS[step.argrepr](left, right))
                yield known[-1], line
            else:
                known.clear()
        else:
            known.clear()
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _constants(inner)


_LARGEST_EXPONENT = 10_000
_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "**": operator.pow,
    "*": operator.mul,
    "+": operator.add,
    "-": operator.sub,
    "<<": operator.lshift,
}


def _whole_numbers(constant: object) -> Iterator[int]:
    if isinstance(constant, int):
        yield constant
    elif isinstance(constant, tuple | frozenset):
        for one in constant:
            yield from _whole_numbers(one)


def _compile_inner(function: Callable[..., object], arguments: tuple[Any, ...]) -> Any:
    """Compile for these types, with checks of indices and conversions."""
    import numba

    from silvan.schemes.checked_int import with_checked_int

    if hasattr(function, "py_func"):
        own: Any = function
        own.compile(arguments)
        return own
    with suppress(numba.core.errors.NumbaError):
        checked = numba.njit(boundscheck=True)(with_checked_int(function))
        checked.compile(arguments)
        return checked
    # If int means the type, as in isinstance, it must be Python's int.
    plain = numba.njit(boundscheck=True)(function)
    plain.compile(arguments)
    return plain


def _arguments(hook: Hook) -> str:
    count = len(hook.arguments)
    lines = [f"number = carray(words, ({count},))", f"after = {count}"]
    values = []
    for place, argument in enumerate(hook.arguments):
        if not argument.columns:
            values.append(f"number[{place}]")
            continue
        # The rows follow all numbers.
        end = f"after + {len(argument.columns)} * number[{place}]"
        lines += [
            f"end = {end}",
            f"{argument.name} = carray(words, (end,))[after:end].view({argument.name}_type)",
            "after = end",
        ]
        values.append(argument.name)
    lines.append(f"value = inner(carray(pointer, shape), {', '.join(values)})")
    return "".join(f"    {line}\n" for line in lines)


# A compiled function returns the negative complement of its value, 1 for an invalid value. An
# exception makes numba return 0.
_BODIES = {
    (Value.NONE, False): "    return -1\n",
    (Value.FLAG, False): "    return -2 if value else -1\n",
    (Value.FLAG, True): "    return 1 if value != value else -2 if value else -1\n",
    (Value.TIME, False): "    at = int64(value)\n    return ~at if at >= 0 else 1\n",
    # The state keeps NEVER as 2.0**63.
    (Value.TIME, True): """\
    if 0.0 <= value < 9223372036854775808.0:
        return ~int64(value)
    return ~int64(NEVER) if value == 9223372036854775808.0 else 1
""",
    (Value.CHOICE, False): """\
    chosen = int64(value)
    if chosen == -1:
        return ~int64(NEVER)
    return ~chosen if 0 <= chosen <= MOST else 1
""",
    (Value.CHOICE, True): """\
    if value == -1.0:
        return ~int64(NEVER)
    return ~int64(value) if 0.0 <= value <= MOST else 1
""",
}


def _body(hook: Hook, returned: Any, function: Callable[..., object]) -> str:
    from numba import types

    if hook.value is Value.NONE:
        return _BODIES[hook.value, False]
    if isinstance(returned, types.Integer | types.Boolean | types.Float):
        text = _BODIES[hook.value, isinstance(returned, types.Float)]
        return text.replace("MOST", str(hook.most))
    file, line = _place(function)
    given = "nothing" if isinstance(returned, types.NoneType) else shown(returned)
    raise SchemeError(
        f"{hook.name} returns {given}",
        file,
        _only_return(function) or line,
        hint=f"its value must be {hook.valid}",
    )


def _place(function: Callable[..., object], report: str = "") -> tuple[str | None, int | None]:
    code = getattr(source_of(function), "__code__", None)
    if code is None:
        return None, None
    # numba names files relative to the current folder.
    file, near = re.escape(code.co_filename), re.escape(os.path.relpath(code.co_filename))
    found = re.search(rf" at {file} \((\d+)\)", report)
    found = found or re.search(rf'File "(?:{file}|{near})", line (\d+)', report)
    return code.co_filename, int(found[1]) if found else code.co_firstlineno


def _only_return(function: Callable[..., object]) -> int | None:
    code = getattr(source_of(function), "__code__", None)
    steps = dis.get_instructions(code) if code else ()
    returns = {
        step.positions.lineno
        for step in steps
        if step.opname.startswith("RETURN_") and step.positions
    }
    return returns.pop() if len(returns) == 1 else None
