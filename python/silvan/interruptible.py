"""Calls of compiled code that Ctrl-C does not wait for."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from silvan.folders import WRITING

Result = TypeVar("Result")

_NAP_S = 0.05

LONGEST_WAIT_S = 5.0
"""Seconds that the interpreter waits for abandoned calls."""

_left: list[threading.Event] = []


def interruptible(call: Callable[[], Result]) -> Result:
    """Return the value of a call, which Ctrl-C does not wait for.

    An abandoned call continues in its thread. The interpreter waits for it, because a thread that
    returns to Python later is ended in compiled code, which aborts the process. A command does not
    wait: :func:`leave_calls`. The call must not depend on its thread or write files.
    """
    done: list[Result] = []
    failed: list[BaseException] = []
    # In Python 3.11, a joined thread counts as ended after Ctrl-C; an event does not.
    ended = threading.Event()

    def run() -> None:
        try:
            done.append(call())
        except BaseException as error:
            failed.append(error)
        finally:
            ended.set()

    thread = threading.Thread(target=run, daemon=True)
    try:
        thread.start()
        while not ended.wait(_NAP_S):
            pass
    except BaseException:
        _left.append(ended)
        raise
    if failed:
        raise failed[0]
    return done[0]


def leave_calls(status: int) -> None:
    """End the process at once if abandoned calls continue, after writes into folders."""
    if all(ended.is_set() for ended in _left):
        return
    with WRITING:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(status)


@atexit.register
def _wait_for_left() -> None:
    deadline = time.monotonic() + LONGEST_WAIT_S
    for ended in _left:
        ended.wait(max(0.0, deadline - time.monotonic()))
