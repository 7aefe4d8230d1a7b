"""Child processes that end with their parent, however it ends."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable

# prctl(2): the signal that a process receives when its parent ends.
_PR_SET_PDEATHSIG = 1


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
        Whether the thread that starts the child waits until it has ended.

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
            # It has ended in between.
            os._exit(128 + number)

    return bind
