"""Place and cause of the failure of a scheme's function during a run."""

from __future__ import annotations

import inspect
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from silvan.errors import SchemeError, describe, shown
from silvan.schemes.hook_table import HOOKS, Value

if TYPE_CHECKING:
    import numpy.typing as npt

PS_PER_US = 1_000_000

_MOST_LINES = 1_000_000

_COMPILER = ("numba", "llvmlite")
"""Packages whose lines do not count: a helper may be compiled again."""


class HookFailure(Exception):
    """A call of a compiled function failed. The compiled module raises it.

    Attributes
    ----------
    hook : str
        Name of the function.
    arguments : list of int
        Its arguments after the state as numbers, then the rows of those that consist of rows; the
        first one is the simulated time in picoseconds.
    raised : bool
        True if the function raised an exception; else its value is not valid.
    """

    def __init__(self, hook: str, arguments: list[int], raised: bool) -> None:  # noqa: FBT001 - positional from the compiled module
        super().__init__(hook, arguments, raised)
        self.hook = hook
        self.arguments = arguments
        self.raised = raised


@contextmanager
def compiled_exceptions() -> Iterator[list[BaseException]]:
    """Collect the exceptions of compiled functions that this thread calls.

    numba reports an exception that no caller in Python can catch to ``sys.unraisablehook``.
    """
    mine: list[BaseException] = []
    _collectors.add(mine)
    try:
        yield mine
    finally:
        _collectors.remove()


class _Collectors:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lists: dict[int, list[list[BaseException]]] = {}
        self._before: Callable[[sys.UnraisableHookArgs], Any] = sys.__unraisablehook__

    def add(self, mine: list[BaseException]) -> None:
        with self._lock:
            if not self._lists:
                self._before, sys.unraisablehook = sys.unraisablehook, self._handle
            self._lists.setdefault(threading.get_ident(), []).append(mine)

    def remove(self) -> None:
        thread = threading.get_ident()
        with self._lock:
            self._lists[thread].pop()
            if not self._lists[thread]:
                del self._lists[thread]
            if not self._lists:
                sys.unraisablehook = self._before

    def _handle(self, unraisable: sys.UnraisableHookArgs) -> None:
        lists = self._lists.get(threading.get_ident())
        # numba gives a text in place of the object that the exception comes from.
        if lists and isinstance(unraisable.object, str) and unraisable.exc_value is not None:
            lists[-1].append(unraisable.exc_value)
        else:
            self._before(unraisable)


_collectors = _Collectors()


def explain(
    function: Callable[..., object],
    failure: HookFailure,
    state: npt.NDArray[np.float64],
    raised: Sequence[BaseException],
) -> SchemeError:
    """Make the error of a call that failed.

    The interpreter executes the function once more with the same arguments, to find the line and
    the value. The call that failed may have changed the state. If the function does not fail the
    second time, and numba does not know the line, the error names the function's first line.
    """
    python = source_of(function)
    line, value = _execute(python, failure, state)
    if line is None and raised and isinstance(raised[0], OverflowError):
        from silvan.schemes.checked_int import with_checked_int

        line, value = _execute(with_checked_int(python), failure, state)
    if raised:
        # numba knows the line of a raise statement only.
        line = _raise_line(raised[0], python) or line
    now = failure.arguments[0]
    where = f"{failure.hook} at {now / PS_PER_US:.6f} µs"
    if failure.raised:
        error = raised[0] if raised else value
        reason = "an exception"
        if isinstance(error, BaseException):
            reason = describe(error)
        message = f"{where}: {reason}"
        hint = "correct the function; nothing of the run is kept"
    elif isinstance(value, BaseException):
        message = f"{where}: {describe(value)}"
        hint = f"its value must be {HOOKS[failure.hook].valid}"
    else:
        returned = "a value that is not valid" if value is None else shown(value)
        message = f"{where} returned {returned}"
        hint = f"its value must be {HOOKS[failure.hook].valid}"
    return SchemeError(
        message,
        python.__code__.co_filename,
        line or python.__code__.co_firstlineno,
        hint,
        hook=failure.hook,
        time_ps=now,
    )


def source_of(function: Callable[..., object]) -> Any:
    """Give the function in Python behind one that its author has compiled already."""
    return inspect.unwrap(getattr(function, "py_func", function))


def _raise_line(error: BaseException, python: Any) -> int | None:
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == python.__code__.co_filename]
    inside = {line for *_, line in python.__code__.co_lines()}
    # A script that starts the run is in the same file as its functions.
    return next((line for line in reversed(lines) if line in inside), None)


class _TooLong(Exception):
    """The second execution does not end."""


def _execute(
    python: Any, failure: HookFailure, state: npt.NDArray[np.float64]
) -> tuple[int | None, object]:
    code = python.__code__
    last: int | None = None
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal last, count
        del argument
        package, _, _ = str(frame.f_globals.get("__name__")).partition(".")
        if package in _COMPILER:
            return None
        if event == "line":
            count += 1
            if count > _MOST_LINES:
                raise _TooLong
            if frame.f_code is code:
                last = frame.f_lineno
        return trace

    value: object = None
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        # NumPy's numbers warn where the compiled function raises.
        arguments = HOOKS[failure.hook].unpack(failure.arguments)
        with np.errstate(divide="raise", invalid="raise"):
            value = python(state.copy(), *arguments)
    except _TooLong:
        return None, None
    except Exception as error:
        return last, error
    finally:
        sys.settrace(before)
    if failure.raised or is_valid(failure.hook, value):
        return None, None
    return last, value


def is_valid(hook: str, value: object) -> bool:
    """Check whether a value is one that this function may return."""
    described = HOOKS[hook]
    if described.value not in (Value.TIME, Value.CHOICE):
        return value == value
    with suppress(TypeError, ValueError):
        if described.value is Value.CHOICE and value == -1:
            return True
        return bool(0 <= value <= described.most)  # type: ignore[operator]
    return False
