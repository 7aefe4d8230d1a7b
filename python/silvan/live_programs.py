"""Real programs attached to an emulated fabric, for as long as a block lasts."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from silvan.child_processes import ends_with_parent
from silvan.emulation import Emulation
from silvan.errors import EmulationError

_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
"""Where Debian puts the tools; not everybody has it in the path."""

INSTALL = "apt-get install opensm infiniband-diags"
"""Installs OpenSM and the tools."""

_SECONDS = 600

_LOG_MB = 64
"""Size at which OpenSM begins its log again: without a fabric, it would fill the disk."""


def environment(emulation: Emulation, folder: Path, host: str | None = None) -> dict[str, str]:
    """Give the environment of a program that sees a fabric as hardware.

    Parameters
    ----------
    emulation : Emulation
        The fabric.
    folder : Path
        For OpenSM's files.
    host : str, optional
        The host or switch to attach it to.

    Returns
    -------
    dict
        All variables, those of this process included.
    """
    variables = os.environ | emulation.attach(host)
    return variables | {"PATH": _PATH, "OSM_CACHE_DIR": str(folder), "OSM_TMP_DIR": str(folder)}


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
) -> Iterator[subprocess.Popen[str]]:
    """Let a program run at a host until the block ends.

    Parameters
    ----------
    emulation : Emulation
        The fabric.
    folder : Path
        The program's current folder, for what it leaves behind.
    words : sequence of str
        The program and its arguments.
    host : str, optional
        The host to attach it to.
    stdout : int
        What its standard output is.
    stderr : int
        What its standard error is; a pipe unless said otherwise.
    is_waited_for : bool
        Whether the thread that enters the block leaves it, too. Only then, or if it is the main
        thread, the kernel ends the program with this process.

    Yields
    ------
    Popen
        The process.

    Raises
    ------
    EmulationError
        If the program is not installed.
    """
    try:
        process = subprocess.Popen(
            words,
            cwd=folder,
            env=environment(emulation, folder, host),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            text=True,
            # Ctrl-C is the caller's, who ends the programs in order.
            start_new_session=True,
            preexec_fn=ends_with_parent(is_waited_for=is_waited_for),
        )
    except FileNotFoundError as error:
        raise EmulationError(f"{words[0]} is not installed", INSTALL) from error
    with process:
        try:
            yield process
        finally:
            process.terminate()


@contextmanager
def opensm(
    emulation: Emulation, folder: Path, *, host: str | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Let OpenSM manage the fabric until the block ends; the block starts when the subnet is up.

    Parameters
    ----------
    emulation : Emulation
        The fabric.
    folder : Path
        For OpenSM's log and files.
    host : str, optional
        Where it runs.

    Yields
    ------
    subprocess.Popen
        The running OpenSM.

    Raises
    ------
    EmulationError
        If OpenSM is not installed, ends, or does not bring up the fabric within ten minutes.
    """
    log, options = folder / "opensm.log", folder / "opensm.conf"
    options.write_text(f"force_log_flush TRUE\nlog_max_size {_LOG_MB}\n")
    words = ["opensm", "--config", str(options), "--log_file", str(log)]
    with attached(emulation, folder, words, host=host) as process:
        assert process.stderr is not None
        # Its output is not read here, because the log has it; but the pipe must not fill.
        Thread(target=process.stderr.read, daemon=True).start()

        def is_up() -> bool:
            return log.exists() and "SUBNET UP" in log.read_text(errors="replace")

        complaint = "OpenSM has not brought up the fabric"
        wait_for(lambda: process.poll() is not None or is_up(), complaint, _SECONDS)
        if not is_up():
            lines = log.read_text(errors="replace").splitlines() if log.exists() else []
            reason = f": {lines[-1]}" if lines else ""
            raise EmulationError(f"{complaint}, and has ended{reason}")
        yield process


def has_opensm() -> bool:
    """Say whether OpenSM is installed."""
    return shutil.which("opensm", path=_PATH) is not None


def wait_for(condition: Callable[[], object], complaint: str, seconds: float = 60) -> None:
    """Wait until a condition holds.

    Raises
    ------
    EmulationError
        With this complaint, if it does not hold after so many seconds.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise EmulationError(f"{complaint}, not even after {seconds:.0f} s")
        time.sleep(0.05)
