"""What can go wrong, by cause. Every error is a :class:`SilvanError`.

The compiled module raises these classes too. Each error's text is one line;
advice stands apart from it, in ``hint``. Tracebacks show it as a note.
"""

from __future__ import annotations


class SilvanError(Exception):
    """Base of all errors that silvan raises on purpose.

    Parameters
    ----------
    message : str
        What is wrong, in one line.
    hint : str, optional
        What to do about it, in one line.
    """

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint
        if hint:
            self.add_note(f"hint: {hint}")

    def __str__(self) -> str:
        return self.message


class ScenarioWarning(UserWarning):
    """A scenario that can be run, but probably says something else than was meant."""


class ScenarioError(SilvanError):
    """A scenario that cannot be read, or that asks for the impossible.

    Parameters
    ----------
    message : str
        What is wrong, in one line.
    source : str, optional
        The file that holds the scenario.
    line : int, optional
        The line at fault, counted from one.
    hint : str, optional
        What to do about it, in one line.

    Examples
    --------
    >>> import silvan
    >>> try:
    ...     silvan.Scenario(packet={"mtu": "2 KiB"}, colour="red")
    ... except silvan.ScenarioError as error:
    ...     print("colour" in error.message)
    True
    """

    def __init__(
        self,
        message: str,
        source: str | None = None,
        line: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint)
        # Pickling rebuilds an exception from its arguments.
        self.args = (message, source, line, hint)
        self.source = source
        self.line = line

    def __str__(self) -> str:
        where = [str(part) for part in (self.source, self.line) if part is not None]
        return ":".join([*where, " " + self.message]) if where else self.message


class SchemeError(ScenarioError):
    """A congestion-control scheme in Python that cannot be used, or that fails during a run.

    Parameters
    ----------
    message : str
        What is wrong, in one line.
    source : str, optional
        The Python file.
    line : int, optional
        The line at fault, counted from one.
    hint : str, optional
        What to do about it, in one line.
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
        self.hook = hook
        self.time_ps = time_ps

    def __reduce__(self) -> tuple[object, ...]:
        # Pickling gives positional arguments only, and restores the others from the state.
        return type(self), self.args, self.__dict__


class SimulationError(SilvanError):
    """A run that cannot go on, such as a fabric stalled by a credit loop.

    Parameters
    ----------
    message : str
        What is wrong, in one line.
    cycle : tuple of str, optional
        The Port VLs that wait for each other, in order; empty where the cause is another.
    hint : str, optional
        What to do about it, in one line.
    """

    def __init__(self, message: str, cycle: tuple[str, ...] = (), hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.args = (message, cycle, hint)
        self.cycle = tuple(cycle)


class EvaluationError(SilvanError):
    """An experiment whose finished runs cannot be measured or drawn."""


class EmulationError(SilvanError):
    """A fabric that cannot be emulated, a missing tool, or a command that it refuses."""


class ManagerError(SilvanError):
    """A congestion manager of a real subnet that cannot start, or cannot go on."""


class MissingExtraError(SilvanError):
    """A package that only an extra of silvan installs, such as ``silvan[figures]``."""


class OutputError(SilvanError):
    """A folder that results cannot be written to or read from."""


class SchedulerError(SilvanError):
    """A scheduler of a sweep that cannot be reached, or whose workers cannot be used."""
