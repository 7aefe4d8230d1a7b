"""SIGTERM for commands that have files and programs to leave in order."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Treat SIGTERM as Ctrl-C, so that sockets and child processes are left in order."""

    def interrupt(_signal: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
