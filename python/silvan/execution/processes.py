"""Worker processes: each is a fresh interpreter behind a socket that ends soon after its caller."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from types import FrameType
from typing import Any, TypeAlias

from silvan.child_processes import end_child
from silvan.execution.simulation import Progress
from silvan.schemes.foreign_code import END_NOW

_PATIENCE_S = 10.0

_GRACE_S = 0.5

_STANDARD_ERROR = 2

_LONGEST_WAIT_S = 86_400.0


def cores() -> int:
    """Count the cores that this process may use."""
    # Only Linux can bind a process to some of the cores.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Report:
    """Progress of a call."""

    key: int
    progress: Progress


@dataclass(frozen=True, slots=True)
class Returned:
    """Value of a call."""

    key: int
    value: Any


@dataclass(frozen=True, slots=True)
class Raised:
    """Exception of a call."""

    key: int
    error: Exception


@dataclass(frozen=True, slots=True)
class Died:
    """End of a worker during a call: the signal or exit status, in words."""

    key: int
    how: str


Event: TypeAlias = Report | Returned | Raised | Died


class Pool:
    """Some worker processes, started when they are needed.

    Examples
    --------
    The function's last argument takes reports of its progress.

    >>> from silvan.execution.processes import Pool
    >>> from silvan.execution.worker_process import echo
    >>> with Pool(1) as pool:
    ...     pool.submit(7, echo, "hello")
    ...     pool.wait()
    [Returned(key=7, value='hello')]
    """

    def __init__(self, size: int) -> None:
        self._size = max(size, 1)
        self._interrupts = _Interrupts()
        self._idle: list[_Worker] = []
        self._busy: dict[Connection, _Worker] = {}

    def __enter__(self) -> Pool:
        self._interrupts.remember()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.close()
        finally:
            self._interrupts.restore()

    @property
    def has_room(self) -> bool:
        """Return true if another call can be submitted now."""
        return len(self._busy) < self._size

    @property
    def is_idle(self) -> bool:
        """Return true if no call is in progress."""
        return not self._busy

    def submit(self, key: int, function: Callable[..., Any], *arguments: Any) -> None:
        """Call a function of this package in a worker; its last argument takes progress."""
        assert self.has_room
        worker = self._idle.pop() if self._idle else _Worker()
        self._busy[worker.connection] = worker
        worker.key = key
        with suppress(BrokenPipeError, ConnectionResetError):
            worker.connection.send((function, arguments))

    def wait(self, timeout_s: float | None = None) -> list[Event]:
        """Wait for events of the workers, up to a timeout (at most a day); raises Ctrl-C."""
        self._interrupts.check()
        events = []
        longest_s = None if timeout_s is None else min(timeout_s, _LONGEST_WAIT_S)
        for ready in wait(list(self._busy), longest_s):
            assert isinstance(ready, Connection)
            worker = self._busy[ready]
            event = worker.hear()
            if not isinstance(event, Report):
                del self._busy[ready]
                if not isinstance(event, Died):
                    self._idle.append(worker)
            events.append(event)
        return events

    def kill(self, key: int) -> None:
        """End a call with its worker process; another one takes its place. No event follows."""
        worker = next(one for one in self._busy.values() if one.key == key)
        del self._busy[worker.connection]
        worker.connection.close()
        end_child(worker.process, signal.SIGKILL)

    def pids(self) -> dict[int, int]:
        """Give the process id of the worker of each call that is going on."""
        return {worker.key: worker.process.pid for worker in self._busy.values()}

    def close(self) -> None:
        """Stop the workers. A result that a worker is just writing is finished first."""
        workers = [*self._idle, *self._busy.values()]
        self._idle, self._busy = [], {}
        for worker in workers:
            worker.connection.close()
        for worker in workers:
            worker.end()


class _Worker:
    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            theirs_fd = theirs.fileno()
            with _interrupts_blocked():
                self.process = subprocess.Popen(
                    # -P: the current folder must not provide modules.
                    [sys.executable, "-P", "-m", "silvan.execution.worker_process", str(theirs_fd)],
                    stdin=subprocess.DEVNULL,
                    # Output of a scheme file is not the caller's.
                    stdout=_STANDARD_ERROR,
                    pass_fds=[theirs_fd],
                )
            self.connection = Connection(ours.detach())
        self.key = -1

    def hear(self) -> Event:
        try:
            kind, content = self.connection.recv()
        except (EOFError, OSError):
            self.connection.close()
            return Died(self.key, self.end())
        if kind == "report":
            return Report(self.key, content)
        return Returned(self.key, content) if kind == "returned" else Raised(self.key, content)

    def end(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_GRACE_S)
        end_child(self.process, END_NOW, grace_s=_PATIENCE_S, again_s=_GRACE_S)
        status = self.process.returncode
        return f"killed by {signal.Signals(-status).name}" if status < 0 else f"status {status}"


class _Interrupts:
    """Remembers Ctrl-C, because compiled modules may clear its exception."""

    def __init__(self) -> None:
        self._pressed = False
        self._installed = False

    def remember(self) -> None:
        own = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if own and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._handle)
            self._installed = True

    def restore(self) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._installed = False

    def check(self) -> None:
        if self._pressed:
            raise KeyboardInterrupt

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._pressed = True
        signal.default_int_handler(number, frame)


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Start a process that never receives Ctrl-C, because only the caller decides."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
