"""Code of a scheme file in a worker process, which a signal may end at once.

A thread of the worker notices the end of its caller, unless the code never releases the
interpreter's lock. So the caller's signal ends the process while such code runs; at other times it
is ignored, so that writes are finished.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

END_NOW = signal.SIGUSR1

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
