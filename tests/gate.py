"""Runs that wait at a gate, so that a test can act while they are certainly going on."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PATIENCE_S = 600
"""Long enough for any machine, also one that does much else; only a hang takes so long."""

_SCHEME = """\
import os, sys, time
from pathlib import Path

import silvan


def scheme(setup):
    # The command tries the scheme before it is run.
    if "silvan.execution.scheme_check" in sys.modules:
        return silvan.Callbacks(0)
    folder = Path({folder!r})
    folder.joinpath(f"waiting-{{os.getpid()}}").touch()
    while not folder.joinpath("open").exists():
        time.sleep(0.01)
    return silvan.Callbacks(0)
"""


@dataclass(frozen=True)
class Gate:
    """A scheme that does nothing, but starts no run before the gate is open.

    Attributes
    ----------
    folder : Path
        Where the scheme's file is, and where the processes that wait leave a file each.
    """

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Gate:
        """Write the scheme's file into a new folder."""
        folder.mkdir()
        folder.joinpath("gate.py").write_text(_SCHEME.format(folder=str(folder)))
        return cls(folder)

    @property
    def control(self) -> str:
        """The table of a scenario that names the scheme."""
        file = self.folder / "gate.py"
        return f'[control]\nscheme = "python"\n[control.python]\nfile = "{file}"\n'

    def waiting(self) -> list[int]:
        """List the processes that have come to the gate."""
        return [int(path.name.split("-")[1]) for path in self.folder.glob("waiting-*")]

    def open(self) -> None:
        """Let all runs go on, these and those to come."""
        self.folder.joinpath("open").touch()


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Wait for a condition, and fail if it never holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.01)
