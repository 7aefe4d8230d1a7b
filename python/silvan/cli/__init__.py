"""The command line. Data goes to stdout; log and progress go to stderr.

Exit status: 0 fine, 1 a run failed, 2 bad input or no output, 130 Ctrl-C or SIGTERM, 141 the reader
of stdout has ended.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_NOT_PRINTED = 2
INTERRUPTED = 130
_UNREAD = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    status = _run(list(sys.argv[1:] if arguments is None else arguments))
    if status == INTERRUPTED and arguments is None:
        from silvan.interruptible import leave_calls

        # The process belongs to the command.
        leave_calls(status)
    return status


def _run(arguments: list[str]) -> int:
    with _ended_at_once():
        from silvan.cli.app import run_command
        from silvan.cli.printer import fail, is_stdout

    if getattr(sys, "stderr", None) is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    if getattr(sys, "stdout", None) is None:
        # The next opened file would have its number, and receive what is printed.
        fail("standard output is closed", "redirect it to /dev/null to discard what is printed")
        return _NOT_PRINTED
    try:
        status = run_command(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _discard_stdout()
        return _UNREAD
    except OSError as error:
        if not is_stdout(error):
            raise
        fail(f"cannot write to standard output: {(error.strerror or str(error)).lower()}", None)
        _discard_stdout()
        return _NOT_PRINTED
    return status


@contextmanager
def _ended_at_once() -> Iterator[None]:
    """Let Ctrl-C end the process during imports, which it would leave half done."""

    def end(_number: int, _frame: object) -> None:
        os._exit(INTERRUPTED)

    own = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not own or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _discard_stdout() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
