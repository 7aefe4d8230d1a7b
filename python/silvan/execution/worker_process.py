"""A worker process: it takes calls from a socket and returns their results."""

from __future__ import annotations

import os
import pickle
import queue
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from silvan.errors import SimulationError, describe
from silvan.execution.simulation import Progress
from silvan.folders import WRITING
from silvan.schemes.foreign_code import ignore_end_now

_GRACE_S = 0.25


class _Stopped(Exception):
    """The caller has cancelled the call."""


def echo(value: object, report: Callable[[Progress], object]) -> object:
    """Give a value back: the least that a worker can do."""
    del report
    return value


def serve(connection: Connection) -> None:
    """Execute calls until the caller closes the connection, or ends."""
    calls: queue.SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...]] | None]
    calls = queue.SimpleQueue()
    gone = threading.Event()

    def listen() -> None:
        # Listening continues during a call, to notice the end of the caller.
        try:
            while True:
                try:
                    calls.put(connection.recv())
                except (ImportError, AttributeError) as error:
                    calls.put((_refuse, (error,)))
        except (EOFError, OSError):
            gone.set()
            calls.put(None)
            _end_soon()

    def report(progress: Progress) -> None:
        if gone.is_set():
            raise _Stopped
        connection.send(("report", progress))

    threading.Thread(target=listen, daemon=True).start()
    while (call := calls.get()) is not None:
        function, arguments = call
        try:
            answer = ("returned", function(*arguments, report))
        except (_Stopped, BrokenPipeError):
            return
        except Exception as error:
            answer = ("raised", _sendable(error))
        except BaseException as error:
            # A panic of the compiled module is no Exception.
            answer = ("raised", SimulationError(describe(error)))
        try:
            connection.send(answer)
        except OSError:
            return


def _end_soon() -> None:
    """End the process after the file that is being written: compiled code may never return."""
    time.sleep(_GRACE_S)
    WRITING.acquire()
    os._exit(1)


def _refuse(error: Exception, report: object) -> None:
    """Stand in for a function that is missing here."""
    del report
    raise error


def _sendable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return SimulationError(describe(error))
    return error


if __name__ == "__main__":
    ignore_end_now()
    serve(Connection(int(sys.argv[1])))
    # The listening thread may still hold the connection.
    sys.stdout.flush()
    os._exit(0)
