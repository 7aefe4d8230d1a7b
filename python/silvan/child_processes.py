"""Child processes that end with their block, an interrupt, or the parent's death."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import IO

_PR_SET_PDEATHSIG = 1

GRACE_S = 5.0
"""Time between SIGTERM and SIGKILL, and after that until a process is left."""

_NAP_S = 0.02

_DEFERRED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_Handler = Callable[[int, FrameType | None], object] | int


class DeferredSignals:
    """Holds SIGINT, SIGTERM and SIGHUP back during a block, then delivers them.

    An interrupt between a child's start and the code that ends it would leave the child behind.
    Only the main thread runs handlers.
    """

    def __init__(self) -> None:
        self.pending: list[int] = []
        self._before: dict[int, _Handler] = {}

    def __enter__(self) -> DeferredSignals:
        if threading.current_thread() is threading.main_thread():
            try:
                for number in _DEFERRED:
                    handler = signal.getsignal(number)
                    # nohup ignores SIGHUP; a handler that is not Python's cannot be restored.
                    if handler is not None and handler is not signal.SIG_IGN:
                        self._before[number] = handler
                        signal.signal(number, self._remember)
            except BaseException:
                self._restore()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        self.deliver()

    def deliver(self) -> None:
        """Restore the handlers, and call them for what was sent; they may raise exceptions."""
        self._restore()
        while self.pending:
            signal.raise_signal(self.pending.pop(0))

    def _restore(self) -> None:
        try:
            while self._before:
                number = next(iter(self._before))
                signal.signal(number, self._before[number])
                del self._before[number]
        finally:
            # A restored handler may have raised an exception.
            if self._before:
                self._restore()

    def _remember(self, number: int, _frame: FrameType | None) -> None:
        self.pending.append(number)


class Once:
    """Does an action once, although signals come.

    Their exceptions are raised at the end, so a block must call it twice: ``try: undo()``,
    ``finally: undo()``.
    """

    def __init__(self, action: Callable[[], object]) -> None:
        self._action = action
        self._is_begun = False

    def __call__(self) -> None:
        """Do the action unless an earlier call has begun it."""
        raised: BaseException | None = None
        while not self._is_begun:
            try:
                # A signal that comes while handlers are replaced raises its exception at once.
                with DeferredSignals():
                    self._is_begun = True
                    self._action()
            except BaseException as error:
                raised = error
        if raised is not None:
            raise raised


def ends_with_parent(
    number: signal.Signals = signal.SIGKILL, *, is_waited_for: bool = False
) -> Callable[[], None] | None:
    """Return a ``preexec_fn`` of :class:`subprocess.Popen` that ends the child with its parent.

    The kernel ends the child with the *thread* that has started it, so children of other threads
    than the main one are bound only if the thread waits for them. None without prctl(2).
    """
    is_main = threading.current_thread() is threading.main_thread()
    if sys.platform != "linux" or not (is_main or is_waited_for):
        return None
    # Found before the fork: nothing may be loaded between fork and exec.
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def bind() -> None:
        prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(128 + number)

    return bind


@contextmanager
def child(
    words: Sequence[str | os.PathLike[str]],
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    stdin: int | IO[str] | None = subprocess.DEVNULL,
    stdout: int | IO[str] | None = None,
    stderr: int | IO[str] | None = None,
    process_group: int | None = None,
    start_new_session: bool = False,
    is_waited_for: bool = False,
    signal_of_parent: signal.Signals = signal.SIGKILL,
    grace_s: float = GRACE_S,
) -> Iterator[subprocess.Popen[str]]:
    """Run a program until a block ends; arguments are those of :class:`subprocess.Popen`.

    ``is_waited_for`` states that the thread that enters the block leaves it, too. Only then, or in
    the main thread, ``signal_of_parent`` ends the program with this process. Seconds between
    SIGTERM and SIGKILL after the block: ``grace_s``.
    """
    with DeferredSignals() as signals:
        process = subprocess.Popen(
            words,
            cwd=cwd,
            env=env,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            process_group=process_group,
            start_new_session=start_new_session,
            text=True,
            preexec_fn=ends_with_parent(signal_of_parent, is_waited_for=is_waited_for),
        )
        end_it = Once(lambda: end_child(process, grace_s=grace_s))
        try:
            signals.deliver()
            yield process
        finally:
            try:
                end_it()
            finally:
                end_it()


def run_child(
    words: Sequence[str | os.PathLike[str]],
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    stdout: int | IO[str] | None = subprocess.PIPE,
    stderr: int | IO[str] | None = subprocess.PIPE,
    timeout_s: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program as :func:`subprocess.run` does, and end it after an interrupt."""
    with child(
        words, cwd=cwd, env=env, stdout=stdout, stderr=stderr, is_waited_for=True
    ) as process:
        out, errors = process.communicate(timeout=timeout_s)
    return subprocess.CompletedProcess(process.args, process.returncode, out, errors)


def end_child(
    process: subprocess.Popen[str] | subprocess.Popen[bytes],
    number: signal.Signals = signal.SIGTERM,
    *,
    grace_s: float = GRACE_S,
    again_s: float | None = None,
) -> None:
    """End a child as :func:`end` does, and close the pipes to it."""

    def running() -> set[int]:
        return {process.pid} if process.poll() is None else set()

    end(running, number, grace_s=grace_s, again_s=again_s)
    for pipe in (process.stdin, process.stdout, process.stderr):
        # The rest of the child's input cannot be sent any more.
        with suppress(OSError):
            if pipe is not None:
                pipe.close()


def end(
    running: Callable[[], Iterable[int]],
    number: signal.Signals = signal.SIGTERM,
    *,
    grace_s: float = GRACE_S,
    again_s: float | None = None,
) -> int:
    """End processes in order, or by force, and those that they start meanwhile.

    A second signal, such as Ctrl-C, ends them by force at once. Returns their number. Without
    ``again_s``, the signal is sent once.
    """
    terminated: dict[int, float] = {}
    started = time.monotonic()
    with DeferredSignals() as signals:
        while left := set(running()):
            waited = time.monotonic() - started
            is_forced = waited > grace_s or bool(signals.pending)
            if waited > grace_s + GRACE_S:
                # Processes of another user, or in a system call that does not end.
                break
            for pid in left:
                sent = terminated.get(pid)
                if not is_forced and sent is not None and waited - sent < (again_s or grace_s):
                    continue
                terminated[pid] = waited
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL if is_forced else number)
            time.sleep(_NAP_S)
    return len(terminated)
