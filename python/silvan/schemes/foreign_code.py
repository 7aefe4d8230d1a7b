"""Code of a scheme file in a worker process, which a signal may end at once.

A worker notices in a thread that its caller is gone. Code that never releases the interpreter's
lock keeps all other threads from running. While code of a scheme file runs, the caller's signal
therefore ends the process; at all other times the worker ignores the signal, so that it can finish
what it writes.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

END_NOW = signal.SIGUSR1
"""Signal of the caller to a worker that does not end by itself."""

_ignores = False


def ignore_end_now() -> None:
    """Ignore the signal from now on, except within :func:`foreign_code`: for workers."""
    global _ignores
    signal.signal(END_NOW, signal.SIG_IGN)
    _ignores = True


@contextmanager
def foreign_code() -> Iterator[None]:
    """Let the signal end this process meanwhile, if it is a worker."""
    if not _ignores or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(END_NOW, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(END_NOW, signal.SIG_IGN)
