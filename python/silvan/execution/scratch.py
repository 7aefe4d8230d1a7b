"""Folders for temporary files; one that a killed process has left is removed by the next.

The process that uses a folder holds a lock on it, which the system takes away when the process
ends. A process id would not tell: it may belong to another process by then.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from silvan.execution.child_processes import DeferredSignals

_START = "silvan-scratch-"
"""How the names of the folders start."""


@contextmanager
def scratch_folder(purpose: str) -> Iterator[Path]:
    """Make a folder for temporary files, and remove it after the block.

    Folders that killed processes of this user have left are removed, too.

    Parameters
    ----------
    purpose : str
        A word for the folder's name.

    Yields
    ------
    Path
        The folder.

    Raises
    ------
    OSError
        The folder cannot be made.
    """
    base = Path(tempfile.gettempdir())
    _remove_abandoned(base)
    with DeferredSignals() as signals:
        path, lock = _made(base, purpose)
        try:
            signals.deliver()
            yield path
        finally:
            with DeferredSignals():
                shutil.rmtree(path, ignore_errors=True)
                if lock is not None:
                    os.close(lock)


def _made(base: Path, purpose: str) -> tuple[Path, int | None]:
    """Make a folder and lock it; no lock where the file system has none, as some NFS."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=f"{_START}{purpose}-", dir=base))
        try:
            return path, _lock(path)
        except (FileNotFoundError, BlockingIOError):
            # Another process has taken it for an abandoned one.
            continue
        except OSError:
            return path, None


def _lock(path: Path) -> int:
    """Lock a folder.

    Raises
    ------
    FileNotFoundError
        The folder is gone.
    BlockingIOError
        Another process has locked it.
    OSError
        It cannot be locked.
    """
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
    """Remove this user's folders that no process has locked."""
    for path in base.glob(f"{_START}*"):
        with suppress(OSError):
            if path.lstat().st_uid == os.getuid():
                lock = _lock(path)
                try:
                    shutil.rmtree(path, ignore_errors=True)
                finally:
                    os.close(lock)
