"""Real programs attached to an emulated fabric, for as long as a block lasts."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from silvan.child_processes import GRACE_S, child
from silvan.errors import EmulationError
from silvan.live.emulation import Emulation

PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])

INSTALL = "apt-get install opensm infiniband-diags"

SUBNET_UP = "SUBNET UP"
"""OpenSM's log has this when all ports are set up."""

_SECONDS = 600

_LOG_MB = 64
"""OpenSM restarts its log at this size: without a fabric, it would fill the disk."""

OPENSM_GRACE_S = 0.5
"""OpenSM acts on SIGTERM after its sweep, which may take minutes."""


def environment(emulation: Emulation, folder: Path, host: str | None = None) -> dict[str, str]:
    """Give all environment variables of a program that sees a fabric as hardware.

    ``host`` is the host or switch to attach it to; ``folder`` is for OpenSM's files.
    """
    return os.environ | emulation.attach(host) | opensm_variables(folder)


def opensm_variables(folder: Path) -> dict[str, str]:
    """Give the environment variables with which OpenSM is found and puts its files in a folder."""
    return {"PATH": PATH, "OSM_CACHE_DIR": str(folder), "OSM_TMP_DIR": str(folder)}


@contextmanager
def attached(
    emulation: Emulation,
    folder: Path,
    words: Sequence[str],
    *,
    host: str | None = None,
    stdout: int = subprocess.DEVNULL,
    stderr: int = subprocess.PIPE,
    is_waited_for: bool = False,
    grace_s: float = GRACE_S,
) -> Iterator[subprocess.Popen[str]]:
    """Let a program run at a host until the block ends; yield the process.

    ``folder`` is its current folder. ``is_waited_for`` states that the thread that enters the block
    leaves it, too. Only then, or in the main thread, the kernel ends the program with this process.
    ``grace_s`` are seconds between SIGTERM and SIGKILL. An :class:`EmulationError` names a program
    that is not installed.
    """
    if shutil.which(words[0], path=PATH) is None:
        raise EmulationError(f"{words[0]} is not installed", INSTALL)
    with child(
        words,
        cwd=folder,
        env=environment(emulation, folder, host),
        stdout=stdout,
        stderr=stderr,
        # The caller handles Ctrl-C, and ends the programs in order.
        start_new_session=True,
        is_waited_for=is_waited_for,
        grace_s=grace_s,
    ) as process:
        yield process


def opensm_words(folder: Path, *options: str) -> list[str]:
    """Give the words that start OpenSM with a log of limited size in a folder."""
    # This level of debugging flushes every line.
    words = ["opensm", "--debug", "2", "--log_limit", str(_LOG_MB)]
    return [*words, "--log_file", str(opensm_log(folder)), *options]


def opensm_log(folder: Path) -> Path:
    """Give the log of an OpenSM that :func:`opensm_words` starts."""
    return folder / "opensm.log"


class LogLines:
    """Reads the lines that are added to a log, which its program may begin again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self._started = b""

    def new(self) -> list[str]:
        """Return the lines that were finished since the last call."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            if self._path.stat().st_size < self._read:
                self._read, self._started = 0, b""
            file.seek(self._read)
            added = file.read()
        self._read += len(added)
        *lines, self._started = (self._started + added).split(b"\n")
        return [line.decode(errors="replace") for line in lines]


@contextmanager
def opensm(
    emulation: Emulation, folder: Path, *, host: str | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Let OpenSM manage the fabric until the block ends; the block starts when the subnet is up.

    Yields the process. ``folder`` is for its log and files. An :class:`EmulationError` says that it
    is not installed, has ended, or has not brought up the fabric within ten minutes.
    """
    lines = LogLines(opensm_log(folder))
    is_up, last = False, ""
    with attached(
        emulation,
        folder,
        opensm_words(folder),
        host=host,
        stderr=subprocess.DEVNULL,
        grace_s=OPENSM_GRACE_S,
    ) as process:

        def is_over() -> bool:
            nonlocal is_up, last
            # Checked first: the log of an ended process is complete.
            has_ended = process.poll() is not None
            for last in lines.new():
                is_up = is_up or SUBNET_UP in last
            return is_up or has_ended

        complaint = "OpenSM has not brought up the fabric"
        wait_for(is_over, complaint, _SECONDS)
        if not is_up:
            raise EmulationError(f"{complaint}, and has ended" + (f": {last}" if last else ""))
        yield process


def has_opensm() -> bool:
    """Say whether OpenSM is installed."""
    return shutil.which("opensm", path=PATH) is not None


def wait_for(condition: Callable[[], object], complaint: str, seconds: float = 60) -> None:
    """Wait until a condition holds; else raise :class:`EmulationError` with the complaint."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise EmulationError(f"{complaint}, not even after {seconds:.0f} s")
        time.sleep(0.05)
