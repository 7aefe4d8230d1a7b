"""Folders for temporary files; the next process removes those of a killed one."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from silvan.child_processes import DeferredSignals, Once

_START = "silvan-scratch-"

_MOUNT = "silvan-mount-"
"""Prefix of folders for mounts in a separate namespace."""


@contextmanager
def scratch_folder(purpose: str) -> Iterator[Path]:
    """Make a folder, and remove it and folders of this user's killed processes after the block."""
    with _folder(f"{_START}{purpose}-", _remove_tree) as path:
        yield path


@contextmanager
def mount_point() -> Iterator[Path]:
    """Make a folder to mount on, and remove it after the block if it is empty."""
    with _folder(_MOUNT, _remove_empty) as path:
        yield path


@contextmanager
def _folder(start: str, remove: Callable[[Path], None]) -> Iterator[Path]:
    base = Path(tempfile.gettempdir())
    _remove_abandoned(base)
    with DeferredSignals() as signals:
        path, lock = _made(base, start)
        let_go = Once(lambda: _let_go(path, lock, remove))
        try:
            signals.deliver()
            yield path
        finally:
            try:
                let_go()
            finally:
                let_go()


def _let_go(path: Path, lock: int | None, remove: Callable[[Path], None]) -> None:
    remove(path)
    if lock is not None:
        os.close(lock)


def _remove_tree(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)


def _remove_empty(path: Path) -> None:
    with suppress(OSError):
        path.rmdir()


def _made(base: Path, start: str) -> tuple[Path, int | None]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=start, dir=base))
        try:
            return path, lock_folder(path)
        except (FileNotFoundError, BlockingIOError):
            # Another process has taken it for abandoned.
            continue
        except OSError:
            return path, None


def lock_folder(path: Path) -> int:
    """Lock a folder until the returned descriptor is closed or the process ends."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(folder), path.lstat()):
            raise FileNotFoundError
    except BaseException:
        os.close(folder)
        raise
    return folder


def _remove_abandoned(base: Path) -> None:
    for start, remove in ((_START, _remove_tree), (_MOUNT, _remove_empty)):
        for path in base.glob(f"{start}*"):
            remove_unlocked(path, remove)


def remove_unlocked(path: Path, remove: Callable[[Path], None] = _remove_tree) -> None:
    """Remove a folder of this user, unless a process has locked it."""
    with suppress(OSError):
        if path.lstat().st_uid == os.getuid():
            lock = lock_folder(path)
            try:
                remove(path)
            finally:
                os.close(lock)
