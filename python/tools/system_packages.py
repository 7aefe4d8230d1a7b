"""Provide the programs that the tests call: as root install them, otherwise say how."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

LIST = Path(__file__).resolve().parents[2] / "requirements" / "debian.txt"

# Some programs are for administrators, whose folders are not on everyone's path.
_FOLDERS = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def packages(text: str) -> dict[str, str]:
    r"""Read the list: packages, and a command of each.

    Examples
    --------
    >>> packages("# a comment\nopensm opensm\n\nibsim-utils ibsim\n")
    {'opensm': 'opensm', 'ibsim-utils': 'ibsim'}
    """
    lines = (line.split() for line in text.splitlines() if not line.startswith("#"))
    return {words[0]: words[1] for words in lines if words}


def missing(wanted: dict[str, str]) -> list[str]:
    """List the packages whose command is not there."""
    return [name for name, command in wanted.items() if not shutil.which(command, path=_FOLDERS)]


def install_line(names: list[str]) -> str:
    """Write the line that installs packages."""
    return f"apt-get install --yes --no-install-recommends {' '.join(names)}"


def provide(
    wanted: dict[str, str], *, is_root: bool, run: Callable[[str], int]
) -> tuple[int, str | None]:
    """Install what is missing, if that is possible.

    Parameters
    ----------
    wanted : dict
        Packages, and a command of each.
    is_root : bool
        Whether packages can be installed.
    run : callable
        Runs a line in a shell and gives its exit status.

    Returns
    -------
    tuple of int and str or None
        Exit status, and what to tell.
    """
    names = missing(wanted)
    if not names:
        return 0, None
    line = install_line(names)
    if is_root and shutil.which("apt-get") and run(f"apt-get update && {line}") == 0:
        names = missing(wanted)
        if not names:
            return 0, None
    return 1, f"the tests need {', '.join(names)}; install with: sudo {line}"


def main() -> int:
    """Provide the packages of the list."""
    status, words = provide(
        packages(LIST.read_text("utf-8")),
        is_root=os.geteuid() == 0,
        run=lambda line: subprocess.call(line, shell=True, stdout=subprocess.DEVNULL),
    )
    if words:
        print(words, file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
