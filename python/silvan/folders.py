"""Output folders: checked before a run, whole or absent after it."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from silvan.errors import OutputError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

MANIFEST = "manifest.json"
"""File that marks a folder as a finished result."""


WRITING = threading.RLock()
"""Held while something is written: a process that ends itself waits for it."""


def require_writable(directory: Path) -> None:
    """Make a folder, and make sure that it can be written to.

    Parameters
    ----------
    directory : Path
        The folder; it and its parents are made where they are missing.

    Raises
    ------
    OutputError
        The folder cannot be made or written to.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise unwritable(directory, error) from None


def require_replaceable(target: Path) -> None:
    """Make sure that a result may be put where something else may be already.

    Parameters
    ----------
    target : Path
        The folder of the result. It may be missing, empty, or a result.

    Raises
    ------
    OutputError
        The folder holds something else.
    """
    if target.exists() and not (target / MANIFEST).is_file() and _occupied(target):
        raise OutputError(
            f"{target}: the folder is not empty, and holds no result of silvan",
            hint="name another folder with --out",
        )


@contextmanager
def replaced_folder(target: Path) -> Iterator[Path]:
    """Fill a new folder, then put it in the place of the target in one step.

    Parameters
    ----------
    target : Path
        The folder that appears when the block ends well. A finished result there is
        replaced; anything else is left alone and refused.

    Yields
    ------
    Path
        An empty folder beside the target. It is removed if the block fails.

    Raises
    ------
    OutputError
        The folder cannot be written, or holds something else than a result.
    """
    require_replaceable(target)
    require_writable(target.parent)
    with WRITING:
        yield from _fill(target)


def _fill(target: Path) -> Iterator[Path]:
    work = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        # A private folder is what mkdtemp makes; results are for everyone who may list it.
        work.chmod(0o777 & ~_umask())
        yield work
        old = None
        if target.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{target.name}-old-", dir=target.parent))
            target.rename(old / target.name)
        work.rename(target)
        if old is not None:
            shutil.rmtree(old)
    except OSError as error:
        raise unwritable(target, error) from None
    finally:
        shutil.rmtree(work, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file in one step: it is there whole, or as it was before.

    Parameters
    ----------
    path : Path
        The file, in a folder that exists.
    text : str
        What to write, as UTF-8.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file in one step, as :func:`write_text` does; it survives a power cut, too.

    Parameters
    ----------
    path : Path
        The file, in a folder that exists.
    data : bytes
        What to write.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    work = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with work.open("wb") as file:
            file.write(data)
            file.flush()
            # Without this a power cut may leave the new name with nothing behind it.
            os.fsync(file.fileno())
        work.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise unwritable(path, error) from None
    finally:
        work.unlink(missing_ok=True)


def _sync_folder(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _occupied(target: Path) -> bool:
    return not target.is_dir() or any(target.iterdir())


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


def unwritable(path: Path, error: OSError) -> OutputError:
    """Say that something cannot be written, why, and what to do about it."""
    reason = (error.strerror or str(error)).lower()
    return OutputError(
        f"{path}: cannot write: {reason}",
        hint="make room and repeat the command; what was finished is kept"
        if error.errno in _FULL
        else "name a folder that you may write to with --out",
    )
