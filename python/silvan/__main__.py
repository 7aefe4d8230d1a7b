"""Run the command line with ``python -m silvan``."""

import ctypes

from silvan.cli import main

if __name__ == "__main__":
    status = main()
    # After `python -m`, sys.exit gives the status of a process that SIGINT killed, whatever it is
    # called with, if Ctrl-C met code in a string (such as dataclasses have), also where the command
    # has handled it. The interpreter's own function ends it as sys.exit does a script.
    ctypes.pythonapi.Py_Exit(status)
