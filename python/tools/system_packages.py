"""Provide the programs that the tests call: as root install them, otherwise say how.

With ``--rust``, print the options that leave out the Rust tests whose programs are missing. In
continuous integration (``CI`` is set), a missing program is an error, and no test is left out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

LIST = Path(__file__).resolve().parents[2] / "requirements" / "debian.txt"

# Prefix of Rust tests that call a program, by its package.
RUST_TESTS = {"tshark": "tshark::", "ibsim-utils": "served::"}

_FOLDERS = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def packages(text: str) -> dict[str, str]:
    r"""Read the list: packages, and a command or file of each.

    >>> packages("# a comment\nopensm opensm\n\nibsim-utils ibsim\n")
    {'opensm': 'opensm', 'ibsim-utils': 'ibsim'}
    """
    lines = (line.split() for line in text.splitlines() if not line.startswith("#"))
    return {words[0]: words[1] for words in lines if words}


def missing(wanted: dict[str, str]) -> list[str]:
    """List the packages whose command or file is not there."""

    def is_there(brought: str) -> bool:
        return (
            Path(brought).exists()
            if brought.startswith("/")
            else bool(shutil.which(brought, path=_FOLDERS))
        )

    return [name for name, brought in wanted.items() if not is_there(brought)]


def install_line(names: list[str]) -> str:
    """Write the line that installs packages."""
    return f"apt-get install --yes --no-install-recommends {' '.join(names)}"


def provide(
    wanted: dict[str, str], *, is_root: bool, run: Callable[[str], int]
) -> tuple[int, str | None]:
    """Install missing packages as root; return exit status and message."""
    names = missing(wanted)
    if not names:
        return 0, None
    line = install_line(names)
    if is_root and shutil.which("apt-get") and run(f"apt-get update && {line}") == 0:
        names = missing(wanted)
        if not names:
            return 0, None
    return 1, f"the tests need {', '.join(names)}; install with: sudo {line}"


def rust_options(wanted: dict[str, str], *, is_ci: bool) -> list[str]:
    """Give the options of a Rust test program that leave out what cannot run here."""
    if is_ci:
        return []
    return [
        word
        for name in missing(wanted)
        if name in RUST_TESTS
        for word in ("--skip", RUST_TESTS[name])
    ]


def main() -> int:
    """Provide the packages of the list, or print the options for the Rust tests."""
    wanted, is_ci = packages(LIST.read_text("utf-8")), bool(os.environ.get("CI"))
    if "--rust" in sys.argv[1:]:
        print(*rust_options(wanted, is_ci=is_ci))
        return 0
    status, words = provide(
        wanted,
        is_root=os.geteuid() == 0,
        run=lambda line: subprocess.call(line, shell=True, stdout=subprocess.DEVNULL),
    )
    if words:
        print(words, file=sys.stderr)
    return status if is_ci else 0


if __name__ == "__main__":
    sys.exit(main())
