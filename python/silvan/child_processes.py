"""Child processes that end with their use: a block's end, an interrupt, or the parent's death.

All programs that silvan starts end here: a signal, a short wait, SIGKILL, and a wait for the end.
:class:`subprocess.Popen` alone waits for a quarter of a second after Ctrl-C and leaves the child.
"""

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

# prctl(2): the signal that a process receives when its parent ends.
_PR_SET_PDEATHSIG = 1

GRACE_S = 5.0
"""Time between SIGTERM and SIGKILL, and after that until what cannot be ended is left."""

_NAP_S = 0.02

_DEFERRED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_Handler = Callable[[int, FrameType | None], object] | int


class DeferredSignals:
    """Holds SIGINT, SIGTERM and SIGHUP back during a block, then delivers them.

    Without it, an interrupt between a child's start and the code that ends it leaves the child
    behind. Only the main thread runs handlers, so a block in another thread changes nothing.

    Attributes
    ----------
    pending : list of int
        The signals that were sent so far.
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
            # A handler that is restored may have raised an exception.
            if self._before:
                self._restore()

    def _remember(self, number: int, _frame: FrameType | None) -> None:
        self.pending.append(number)


class Once:
    """Does an action once although signals come; what their handlers raise is raised at the end.

    A signal at the very call raises its exception before the action has begun. So a block that must
    end with the action calls it a second time: ``try: undo()``, ``finally: undo()``.

    Parameters
    ----------
    action : callable
        Function to call once.
    """

    def __init__(self, action: Callable[[], object]) -> None:
        self._action = action
        self._is_begun = False

    def __call__(self) -> None:
        """Do it, unless a call before has begun with it."""
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
    """Give what ``preexec_fn`` of :class:`subprocess.Popen` is, so that the child ends, too.

    Without it, SIGKILL of the parent leaves the child behind. The kernel ends the child with the
    *thread* that has started it, so children of other threads than the main one are bound only if
    the thread waits for them. On systems without prctl(2) none is.

    Parameters
    ----------
    number : Signals
        The signal that ends the child.
    is_waited_for : bool
        True if the thread that starts the child waits until it has ended.

    Returns
    -------
    callable, optional
        The function, or ``None`` where there is none.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if sys.platform != "linux" or not (is_main or is_waited_for):
        return None
    # Found before the fork: nothing may be loaded between fork and exec.
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def bind() -> None:
        prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
        if os.getppid() != parent:
            # The process has ended in between.
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
    """Let a program run until a block ends; it has always ended after the block.

    Parameters
    ----------
    words : sequence of str
        The program and its arguments.
    cwd, env, stdin, stdout, stderr, process_group, start_new_session
        As for :class:`subprocess.Popen`, but without input by default.
    is_waited_for : bool
        True if the thread that enters the block leaves it, too. Only then, or if it is the main
        thread, the kernel ends the program with this process.
    signal_of_parent : Signals
        The signal by which it does.
    grace_s : float
        Seconds between SIGTERM and SIGKILL after the block.

    Yields
    ------
    Popen
        The process.

    Raises
    ------
    OSError
        The program cannot be started.
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
    """Run a program to its end, as :func:`subprocess.run` does, and end it after an interrupt.

    Parameters
    ----------
    words, cwd, env, stdout, stderr
        As for :func:`child`; what it prints is returned by default.
    timeout_s : float, optional
        Seconds that it may take; by default any time.

    Raises
    ------
    OSError
        The program cannot be started.
    subprocess.TimeoutExpired
        It has not ended in time.
    """
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
    """End processes in order, or by force if they do not end, and those that they start meanwhile.

    A second signal, such as Ctrl-C, ends them by force at once; it is delivered afterwards.

    Parameters
    ----------
    running : callable
        Gives the ids of those that still run.
    number : Signals
        The signal that asks them to end.
    grace_s : float
        Seconds until SIGKILL.
    again_s : float, optional
        Seconds after which the signal is sent again; by default it is sent once.

    Returns
    -------
    int
        Number of processes that got a signal.
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
