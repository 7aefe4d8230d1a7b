"""Ends detached processes of a command, whose parent has ended or that call setsid(2)."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Set
from contextlib import suppress
from pathlib import Path

from silvan.child_processes import end

# prctl(2): orphaned descendants become children of this process.
_PR_SET_CHILD_SUBREAPER = 36

_VARIABLE = "SILVAN_STARTED_BY"


class Descendants:
    """Adopts orphans of this process's commands, and ends them with the block."""

    def __init__(self) -> None:
        self.ended = 0
        self._others: set[int] = set()

    def __enter__(self) -> Descendants:
        self._others = _children()
        self._adopt(adopts=True)
        return self

    def __exit__(self, *_: object) -> None:
        self.ended = end(self._left)
        self._adopt(adopts=False)

    def reap(self, command: int) -> None:
        """Forget adopted processes that have ended; the command is waited for by its starter."""
        others = self._others | {command}
        kinds = os.WEXITED | os.WNOHANG | os.WNOWAIT
        with suppress(ChildProcessError):
            while (one := os.waitid(os.P_ALL, 0, kinds)) and one.si_pid not in others:
                os.waitpid(one.si_pid, 0)

    def _left(self) -> set[int]:
        return {pid for pid in _children() - self._others if not _has_ended(pid)}

    def _adopt(self, *, adopts: bool) -> None:
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(adopts), 0, 0, 0)


def _has_ended(child: int) -> bool:
    try:
        return os.waitpid(child, os.WNOHANG)[0] == child
    except ChildProcessError:
        return True


def _children() -> set[int]:
    own = str(os.getpid())
    return {pid for pid in _processes() if (_stat(pid) or ["", ""])[1] == own}


def _processes() -> list[int]:
    proc = Path("/proc")
    return [int(one.name) for one in proc.iterdir() if one.name.isdigit()] if proc.exists() else []


def _stat(pid: int | str) -> list[str] | None:
    try:
        # The name before them may have any characters.
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None


def mark(number: int) -> str:
    """Name a program that this process starts, by process, instant of its start and number."""
    fields = _stat("self")
    assert fields is not None
    return f"{_namespace()}:{os.getpid()}:{fields[19]}:{number}"


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:
        return "0"


def with_mark(environment: dict[str, str], name: str) -> dict[str, str]:
    """Mark an environment, which programs hand on to what they start."""
    before = environment.get(_VARIABLE, "")
    return environment | {_VARIABLE: f"{before} {name}".strip()}


def marked(names: Set[str]) -> set[int]:
    """List the processes that have one of some marks and run."""
    return {pid for pid in _processes() if not names.isdisjoint(_marks(pid))}


def orphans() -> set[int]:
    """List the processes whose mark is of a process of the same space that has ended."""
    own_space = _namespace()

    def is_orphan(name: str) -> bool:
        space, pid, start, _ = name.split(":")
        if space != own_space:
            return False
        fields = _stat(pid)
        return fields is None or fields[19] != start

    # The last mark is that of the starting process.
    return {pid for pid in _processes() if (names := _marks(pid)) and is_orphan(names[-1])}


def _marks(pid: int) -> list[str]:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return []
    start = f"{_VARIABLE}=".encode()
    for variable in environment.split(b"\0"):
        if variable.startswith(start):
            words = variable[len(start) :].decode(errors="replace").split()
            return [word for word in words if word.count(":") == 3]
    return []
