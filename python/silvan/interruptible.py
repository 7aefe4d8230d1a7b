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
"""For how long the end of the interpreter waits for calls that were left."""

_left: list[threading.Event] = []
"""The ends of calls that were left."""


def interruptible(call: Callable[[], Result]) -> Result:
    """Return what a call returns, which Ctrl-C does not wait for.

    A call that is left goes on in its thread. The interpreter waits for it before it ends: a thread
    that returns to Python afterwards is ended by Python in the midst of compiled code, which aborts
    the process. A command does not wait: :func:`leave_calls`.

    Parameters
    ----------
    call : callable
        The call. It must not depend on its thread, and writes no files.

    Raises
    ------
    KeyboardInterrupt
        On Ctrl-C, at once.
    """
    done: list[Result] = []
    failed: list[BaseException] = []
    # A thread that is being joined counts as ended after Ctrl-C, in Python 3.11; an event does not.
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
    """End the process at once if calls go on that were left; otherwise do nothing.

    Writes of other threads into a folder are finished first.

    Parameters
    ----------
    status : int
        The exit status.
    """
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
