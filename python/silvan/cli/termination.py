"""SIGTERM and SIGHUP for commands that have files and programs to leave in order."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FrameType
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

_KINDS = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def _handled(handle: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # nohup ignores SIGHUP.
    kinds = [kind for kind in _KINDS if signal.getsignal(kind) is not signal.SIG_IGN]
    before = [signal.signal(kind, handle) for kind in kinds]
    try:
        yield
    finally:
        for kind, handler in zip(kinds, before, strict=True):
            signal.signal(kind, handler)


def ended_in_order(command: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let a command treat SIGTERM and SIGHUP as Ctrl-C."""

    @wraps(command)
    def call(*arguments: _P.args, **options: _P.kwargs) -> _R:
        with terminated_as_interrupted():
            return command(*arguments, **options)

    return call


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Treat SIGTERM and SIGHUP as the first Ctrl-C, so that sockets and children end in order."""
    is_ending = False

    def interrupt(_signal: int, frame: FrameType | None) -> None:
        nonlocal is_ending
        if is_ending:
            return
        is_ending = True
        # A handler of Ctrl-C may remember its call, because compiled modules clear exceptions.
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler):
            handler(signal.SIGINT, frame)
        raise KeyboardInterrupt

    with _handled(interrupt):
        yield


@contextmanager
def termination_passed_on() -> Iterator[Callable[[subprocess.Popen[str]], None]]:
    """Pass SIGTERM and SIGHUP on to a command, which the block names once started."""
    commands: list[subprocess.Popen[str]] = []
    have_come: list[int] = []

    def pass_on(kind: int, _frame: FrameType | None) -> None:
        have_come.append(kind)
        for command in commands:
            command.send_signal(kind)

    def pass_on_to(command: subprocess.Popen[str]) -> None:
        commands.append(command)
        for kind in have_come:
            command.send_signal(kind)

    with _handled(pass_on):
        yield pass_on_to
