"""A pool without processes, for tests about results: starting a process takes half a second."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from silvan.execution.processes import Event, Pool, Raised, Report, Returned


class InlinePool(Pool):
    """A pool that does each call when its end is waited for."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._calls: deque[tuple[int, Callable[..., Any], tuple[Any, ...]]] = deque()

    @property
    def has_room(self) -> bool:
        """True if no call waits."""
        return not self._calls

    @property
    def is_idle(self) -> bool:
        """True if no call waits."""
        return not self._calls

    def submit(self, key: int, function: Callable[..., Any], *arguments: Any) -> None:
        """Keep a call."""
        assert self.has_room
        self._calls.append((key, function, arguments))

    def wait(self, timeout_s: float | None = None) -> list[Event]:
        """Do the call that waits."""
        assert timeout_s is None, "a call here cannot be given up"
        key, function, arguments = self._calls.popleft()
        events: list[Event] = []
        try:
            value = function(*arguments, lambda state: events.append(Report(key, state)))
        except Exception as error:
            return [*events, Raised(key, error)]
        return [*events, Returned(key, value)]
