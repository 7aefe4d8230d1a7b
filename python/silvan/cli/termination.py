"""SIGTERM and SIGHUP for commands that have files and programs to leave in order."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_KINDS = (signal.SIGTERM, signal.SIGHUP)
"""Kinds of signals by which users, services and terminals that are closed end a command."""


@contextmanager
def _handled(handle: Callable[[int, object], None]) -> Iterator[None]:
    # nohup has SIGHUP ignored.
    kinds = [kind for kind in _KINDS if signal.getsignal(kind) is not signal.SIG_IGN]
    before = [signal.signal(kind, handle) for kind in kinds]
    try:
        yield
    finally:
        for kind, handler in zip(kinds, before, strict=True):
            signal.signal(kind, handler)


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Treat SIGTERM and SIGHUP as Ctrl-C, so that sockets and child processes are left in order.

    Only the first one counts: another one would interrupt the end.
    """
    is_ending = False

    def interrupt(_signal: int, _frame: object) -> None:
        nonlocal is_ending
        if not is_ending:
            is_ending = True
            raise KeyboardInterrupt

    with _handled(interrupt):
        yield


@contextmanager
def termination_passed_on() -> Iterator[Callable[[subprocess.Popen[str]], None]]:
    """Let a command decide what SIGTERM and SIGHUP mean; if it ends, the rest is left in order.

    The block names the command once it has started it. Signals that come before are passed on then.
    """
    commands: list[subprocess.Popen[str]] = []
    have_come: list[int] = []

    def pass_on(kind: int, _frame: object) -> None:
        have_come.append(kind)
        for command in commands:
            command.send_signal(kind)

    def pass_on_to(command: subprocess.Popen[str]) -> None:
        commands.append(command)
        for kind in have_come:
            command.send_signal(kind)

    with _handled(pass_on):
        yield pass_on_to
