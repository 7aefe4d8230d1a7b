"""Errors by cause. Every error is a :class:`SilvanError`.

The compiled module raises these classes too. Each error's text is one line;
advice stands apart from it, in ``hint``. Tracebacks show it as a note.
"""

from __future__ import annotations

import re
from numbers import Integral, Real
from typing import Any

LONGEST_TEXT = 300

_LONGEST_OWN_TEXT = 10_000

_BREAK = re.compile(r"\s*[^\S ]\s*")


def one_line(text: str) -> str:
    r"""Return a text as one line of printable characters; others are shown as escapes.

    Examples
    --------
    >>> one_line("first\n  second \x1b[31m")
    'first second \\x1b[31m'
    """
    if text.isprintable():
        return text
    joined = _BREAK.sub(" ", text).strip()
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode() for one in joined
    )


def shown(value: object, longest: int = LONGEST_TEXT) -> str:
    """Return any object as text of one line and limited length, even if its ``__str__`` fails.

    Examples
    --------
    >>> shown(0.5), shown("x" * 1000)[-4:]
    ('0.5', 'x...')
    """
    try:
        text = str(value)
    except (Exception, SystemExit, GeneratorExit) as error:
        text = f"(its text cannot be made: {type(error).__name__})"
    # Escapes are longer than their characters.
    line = one_line(text[: longest + 1])
    return line if len(line) <= longest else f"{line[:longest]}..."


def checked_argument(name: str, value: object, kind: Any, wanted: str) -> None:
    """Make sure that an argument of a function is of some type."""
    # True and False are numbers for Python alone.
    number = kind in {Integral, Real} and isinstance(value, bool)
    if number or not isinstance(value, kind):
        raise SilvanError(
            f"{name}: {shown(repr(value))} is of type {shown(type(value).__name__)}",
            f"give {wanted}",
        )


def describe(error: BaseException) -> str:
    r"""Say in one line of limited length what an exception says, and of which type it is.

    Errors of silvan are complete without their type.

    Examples
    --------
    >>> describe(ValueError("first\nsecond")), describe(KeyError())
    ('ValueError: first second', 'KeyError')
    """
    if isinstance(error, SilvanError):
        return shown(error, _LONGEST_OWN_TEXT)
    return f"{shown(type(error).__name__)}: {shown(error)}".removesuffix(": ")


class SilvanError(Exception):
    """Base of all errors that silvan raises on purpose.

    Parameters
    ----------
    message : str
        The error, in one line.
    hint : str, optional
        Advice, in one line.
    """

    def __init__(self, message: str, hint: str | None = None) -> None:
        self.message = one_line(message)
        self.hint = None if hint is None else one_line(hint)
        super().__init__(self.message, self.hint)
        if self.hint:
            self.add_note(f"hint: {self.hint}")

    def __str__(self) -> str:
        return self.message


class ScenarioWarning(UserWarning):
    """A scenario that can be run, but probably says something else than was meant."""


class ScenarioError(SilvanError):
    """A scenario that cannot be read, or that asks for the impossible.

    Each parameter is an attribute of the same name; what is not known is None.

    Parameters
    ----------
    message : str
        The error, in one line.
    source : str, optional
        The path of the scenario's file, or what else it comes from, such as ``--set``.
    line : int, optional
        The line at fault, counted from one.
    hint : str, optional
        Advice, in one line.
    key : str, optional
        The key at fault, such as ``"traffic.incast.0.to"``.
    column : int, optional
        The column in that line, in characters, counted from one.

    Examples
    --------
    >>> import silvan
    >>> try:
    ...     silvan.Scenario(packet={"mtu": "2 KiB"}, colour="red")
    ... except silvan.ScenarioError as error:
    ...     print(error.key)
    colour
    """

    def __init__(
        self,
        message: str,
        source: str | None = None,
        line: int | None = None,
        hint: str | None = None,
        key: str | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message, hint)
        # Pickling rebuilds an exception from its arguments.
        self.args = (self.message, source, line, self.hint, key, column)
        self.source = source
        self.line = line
        self.key = key
        self.column = column

    def __str__(self) -> str:
        where = [str(part) for part in (self.source, self.line) if part is not None]
        return one_line(":".join([*where, " " + self.message])) if where else self.message


class SchemeError(ScenarioError):
    """A congestion-control scheme in Python that cannot be used, or that fails during a run.

    Parameters
    ----------
    message : str
        The error, in one line.
    source : str, optional
        The Python file.
    line : int, optional
        The line at fault, counted from one.
    hint : str, optional
        Advice, in one line.
    hook : str, optional
        The function that failed during a run, such as ``"release"``.
    time_ps : int, optional
        The simulated time of that, in picoseconds.
    """

    def __init__(
        self,
        message: str,
        source: str | None = None,
        line: int | None = None,
        hint: str | None = None,
        *,
        hook: str | None = None,
        time_ps: int | None = None,
    ) -> None:
        super().__init__(message, source, line, hint)
        # Pickling rebuilds an exception from its arguments, other attributes from its state.
        self.args = (self.message, source, line, self.hint)
        self.hook = hook
        self.time_ps = time_ps


class SimulationError(SilvanError):
    """A run that cannot go on, such as a fabric stalled by a credit loop.

    Parameters
    ----------
    message : str
        The error, in one line.
    cycle : tuple of str, optional
        The Port VLs that wait for each other, in order; empty where the cause is another.
    hint : str, optional
        Advice, in one line.
    """

    def __init__(self, message: str, cycle: tuple[str, ...] = (), hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.args = (self.message, cycle, self.hint)
        self.cycle = tuple(cycle)


class ProgramError(SimulationError):
    """A message-passing program that no fabric can finish.

    A receive without a send, a send without a receive, or ranks that wait for each other. The
    message names the ranks, and their operations by number or by line of the trace.
    """


class EvaluationError(SilvanError):
    """An experiment whose finished runs cannot be measured or drawn."""


class EmulationError(SilvanError):
    """A fabric that cannot be emulated, a missing tool, or a command that it refuses."""


class ManagerError(SilvanError):
    """A congestion manager of a real subnet that cannot start, or cannot go on."""


class DiagnosisError(SilvanError):
    """A subnet that cannot be diagnosed: no access, or files that cannot be used."""


class UnsupportedSystemError(SilvanError):
    """A part of silvan that this operating system cannot run."""


class MissingExtraError(SilvanError):
    """A package that only an extra of silvan installs, such as ``silvan[figures]``."""


class OutputError(SilvanError):
    """A folder that results cannot be written to or read from."""


class SchedulerError(SilvanError):
    """A scheduler of a sweep that cannot be reached, or whose workers cannot be used."""
