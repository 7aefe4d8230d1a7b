"""The command line. Data goes to stdout; log and progress go to stderr.

Exit status: 0 fine, 1 a run failed (a credit loop, say), 2 bad input or could not run, 130 stopped
by Ctrl-C.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after the program's name; by default those of this process.

    Returns
    -------
    int
        The exit status.
    """
    from silvan.cli.app import run_command
    from silvan.cli.printer import fail, is_stdout

    if getattr(sys, "stderr", None) is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    if getattr(sys, "stdout", None) is None:
        # The next file that is opened would have its number, and receive what is printed.
        fail("standard output is closed", "redirect it to /dev/null to discard what is printed")
        return 2
    try:
        status = run_command(list(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of stdout, such as `head`, has seen enough.
        _discard_stdout()
        return 1
    except OSError as error:
        if not is_stdout(error):
            raise
        fail(f"cannot write to standard output: {(error.strerror or str(error)).lower()}", None)
        _discard_stdout()
        return 1
    return status


def _discard_stdout() -> None:
    """Point stdout elsewhere, so that the interpreter's last flush does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
