"""Run the command line with ``python -m silvan``."""

import sys

from silvan.cli import INTERRUPTED, main

if __name__ == "__main__":
    status = main()
    if status == INTERRUPTED:
        import ctypes

        # After `python -m`, sys.exit could return the status of a process that SIGINT killed,
        # although the command has handled Ctrl-C. Py_Exit ends the process as sys.exit ends a
        # script.
        ctypes.pythonapi.Py_Exit(status)
    sys.exit(status)
