"""Output folders: checked before a run, whole or absent after it."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO

from silvan.child_processes import DeferredSignals
from silvan.errors import OutputError
from silvan.scratch import lock_folder, remove_unlocked

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

MANIFEST = "manifest.json"
"""File that marks a folder as a finished result."""

_SWEEP = "sweep.json"
_ORIGIN = "origin.json"
_RESULTS = ("run", "seed-*", "point-*/seed-*", "isolated", "congestors", "congested")
"""Places of results in the output folder of a command."""

LOCK = ".lock"
"""File that a command locks while it writes into a folder."""

_UNFINISHED = ".unfinished"
"""File in folders that become results, or that were results, until all of it is in order."""

_WORK = re.compile(r"\..+-[a-z0-9_]{8}")
"""Names of such folders."""


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
    if target.exists() and not target.is_dir():
        raise OutputError(
            f"{target}: it is no folder",
            hint="name another folder with --out",
        )
    if target.exists() and not (target / MANIFEST).is_file() and _occupied(target):
        raise OutputError(
            f"{target}: the folder is not empty, and holds no result of silvan",
            hint="name another folder with --out",
        )


def require_regular(path: Path) -> None:
    """Refuse to read what has no end, or waits for another program: devices and pipes.

    Parameters
    ----------
    path : Path
        The file, in a folder that silvan has written.

    Raises
    ------
    OSError
        There is no such file.
    ValueError
        It is something else than a file.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError(f"its {path.name} is no regular file")


def require_writable_file(path: Path) -> None:
    """Make sure that a file can be written, before work whose outcome it is to hold.

    Parameters
    ----------
    path : Path
        The file, or a pipe or a character device.

    Raises
    ------
    OutputError
        It cannot be written.
    """
    try:
        if not _is_stream(path):
            with tempfile.TemporaryFile(dir=Path(os.path.realpath(path)).parent):
                pass
    except OSError as error:
        raise unwritable(path, error) from None


def results_below(folder: Path, pattern: str = "**") -> list[Path]:
    """Find the results in a folder, without what a command that was killed has left behind.

    Parameters
    ----------
    folder : Path
        The folder.
    pattern : str
        Pattern of paths, as for :meth:`pathlib.Path.glob`; by default at any depth.

    Returns
    -------
    list of Path
        The folders of the results, sorted.
    """
    found = (path.parent for path in sorted(folder.glob(f"{pattern}/{MANIFEST}")))
    # Half-written and replaced results have names that begin with a dot until they are renamed.
    return [
        path
        for path in found
        if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]


def run_folders(folders: Iterable[Path]) -> list[Path]:
    """Find the results that folders are or hold.

    Parameters
    ----------
    folders : iterable of Path
        Folders of results, or of runs with several seeds.

    Returns
    -------
    list of Path
        The folders of the results. A folder without any result is itself in the list.
    """
    found = []
    for folder in folders:
        is_run = (folder / MANIFEST).is_file()
        found += [folder] if is_run else results_below(folder) or [folder]
    return found


@dataclass(frozen=True, slots=True)
class Origin:
    """Scenario and version that results come from.

    Attributes
    ----------
    name : str
        The scenario's name.
    scenario_hash : str
        The scenario's hash.
    version : str
        Version of silvan.
    """

    name: str
    scenario_hash: str
    version: str


@contextmanager
def claimed_results(
    root: Path | None, planned: Mapping[Path, Origin], *, overwrite: bool
) -> Iterator[None]:
    """Keep a folder for the results of one command, and for one scenario and version.

    Parameters
    ----------
    root : Path, optional
        The output folder. It is made if it is missing. Without one, nothing happens.
    planned : Mapping
        Place of each result, and its origin. Other seeds of one scenario lie side by side.
    overwrite : bool
        Whether to remove results and figures of another origin instead of refusing.

    Raises
    ------
    OutputError
        The folder holds results or figures of another origin or that cannot be read, a sweep, or
        something else where a result goes; another command writes there; or it cannot be written.
        Or, at the end, a result is gone that was written.
    """
    if root is None:
        yield
        return
    if (root / _SWEEP).exists():
        raise OutputError(
            f"{root}: the folder holds a sweep", hint="name another folder with --out"
        )
    require_writable(root)
    with exclusive(root, "command"):
        _remove_others(root, planned, overwrite=overwrite)
        for folder in planned:
            require_replaceable(folder)
        yield
        gone = [folder for folder in planned if not (folder / MANIFEST).exists()]
        if gone:
            raise OutputError(
                f"{gone[0]}: the result was written, and is gone ({len(gone)} of {len(planned)})",
                hint="something else removes files there: run again, or choose another --out",
            )


def _remove_others(root: Path, planned: Mapping[Path, Origin], *, overwrite: bool) -> None:
    """Remove results and figures of other origins, or refuse."""
    origins = {folder.parent: origin for folder, origin in planned.items()}
    before = sorted(path for pattern in _RESULTS for path in root.glob(f"{pattern}/{MANIFEST}"))
    others = []
    for path in before:
        wanted = origins.get(path.parent.parent)
        found = _origin(path)
        if found is None or found != wanted:
            if not overwrite:
                raise another_origin(path.parent, found, wanted)
            others.append(path.parent)
    for wanted in set(planned.values()):
        _remove_figures(root, wanted, overwrite=overwrite)
    for folder in others:
        _remove_result(folder, root)


@contextmanager
def exclusive(root: Path, kind: str) -> Iterator[None]:
    """Keep other commands out of a folder; the system takes the lock from a process that ends.

    Parameters
    ----------
    root : Path
        The folder; it exists.
    kind : str
        Noun for the other one in the error, such as "sweep".

    Raises
    ------
    OutputError
        Another process holds the folder, or it cannot be written.
    """
    path = root / LOCK
    while True:
        try:
            file = path.open("w")
        except OSError as error:
            raise unwritable(root, error) from None
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise OutputError(
                    f"{root}: another {kind} is going on in this folder",
                    hint="wait for it, or name another folder with --out",
                ) from None
            if not _is_at(file, path):
                # The command before has removed the file that was opened.
                continue
            for parent in (root, *root.glob("point-*")):
                _remove_unfinished(parent)
            try:
                yield
            finally:
                # Without the lock the file means nothing, and what the block raises is worth more.
                with suppress(OSError):
                    path.unlink()
            return


def _is_at(file: TextIOWrapper, path: Path) -> bool:
    """Tell whether an open file is the one that has the path now."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def claim_result(target: Path, origin: Origin, *, overwrite: bool) -> None:
    """Make sure that a folder holds no result of another scenario or version.

    Raises
    ------
    OutputError
        It does, and ``overwrite`` is false.
    """
    found = _origin(target / MANIFEST)
    if found != origin and (target / MANIFEST).exists() and not overwrite:
        raise another_origin(target, found, origin)


def claim_figures(
    folder: Path, pattern: str, origin: Origin, *, overwrite: bool, what: str = "scenario"
) -> None:
    """Note in a folder of figures where they come from, if no others are there.

    Parameters
    ----------
    folder : Path
        The folder. It is made if it is missing.
    pattern : str
        Names of the figures' files, as for :meth:`pathlib.Path.glob`.
    origin : Origin
        Scenario and version of the figures.
    overwrite : bool
        Whether to remove figures of another origin instead of refusing.
    what : str
        Noun that the error uses for the origin.

    Raises
    ------
    OutputError
        The folder holds figures of another origin, or cannot be written.
    """
    _remove_figures(folder, origin, overwrite=overwrite, what=what)
    require_writable(folder)
    values = asdict(origin) | {"figures": pattern}
    write_text(folder / _ORIGIN, json.dumps(values, indent=2) + "\n")


def require_origin(
    folder: Path, wanted: Origin, *, overwrite: bool, what: str = "scenario"
) -> bool:
    """Refuse figures of another origin in a folder as :func:`claim_figures`, and write nothing.

    Parameters
    ----------
    folder, wanted, overwrite, what
        As for :func:`claim_figures`.

    Returns
    -------
    bool
        True if there are such figures, which may be overwritten.

    Raises
    ------
    OutputError
        The folder holds figures of another origin.
    """
    path = folder / _ORIGIN
    found = _origin(path)
    are_others = found != wanted and path.exists()
    if are_others and not overwrite:
        raise another_origin(folder, found, wanted, what)
    return are_others


def _remove_figures(
    folder: Path, wanted: Origin, *, overwrite: bool, what: str = "scenario"
) -> None:
    """Remove the figures of another origin from a folder, or refuse."""
    if not require_origin(folder, wanted, overwrite=overwrite, what=what):
        return
    path = folder / _ORIGIN
    # A damaged note names no files; then those are found by the new figures' names.
    with suppress(OSError, ValueError, TypeError, KeyError):
        pattern = json.loads(path.read_text(encoding="utf-8"))["figures"]
        for figure in folder.glob(Path(pattern).name):
            figure.unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def another_origin(
    folder: Path, found: Origin | None, wanted: Origin | None, what: str = "scenario"
) -> OutputError:
    """Say how the results in a folder differ from those that are to be written."""
    if found is None:
        why = f"damaged: it does not say which {what} it is of"
    elif wanted is not None and found.version != wanted.version:
        why = f"of silvan {found.version}; this is {wanted.version}"
    elif wanted is not None and found.name == wanted.name:
        why = f"of another {what} with the name {found.name!r}, or of other values of its keys"
    else:
        why = f"of another {what}, {found.name!r}"
    return OutputError(
        f"{folder}: the result there is {why}",
        hint="name another folder with --out, or replace the results there with --overwrite",
    )


def _origin(manifest: Path) -> Origin | None:
    """Read where a result comes from; None if there is none, or one that cannot be read."""
    try:
        values = json.loads(manifest.read_text(encoding="utf-8"))
        return Origin(*(str(values[key]) for key in ("name", "scenario_hash", "version")))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _remove_result(folder: Path, root: Path) -> None:
    try:
        shutil.rmtree(folder)
        if folder.parent != root and not any(folder.parent.iterdir()):
            folder.parent.rmdir()
    except OSError as error:
        raise unwritable(folder, error) from None


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
        An empty folder next to the target. It is removed if the block fails.

    Raises
    ------
    OutputError
        The folder cannot be written, or holds something else than a result.
    """
    # A link stays, and the folder that it names is replaced.
    target = Path(os.path.realpath(target))
    require_replaceable(target)
    require_writable(target.parent)
    _remove_unfinished_once(target.parent)
    with WRITING:
        yield from _fill(target)


def _fill(target: Path) -> Iterator[Path]:
    with ExitStack() as folders:
        try:
            work = folders.enter_context(_work_folder(target, ""))
            # A private folder is what mkdtemp makes; results are for everyone who may list it.
            work.chmod(0o777 & ~_umask())
            yield work
            old = None
            if target.exists():
                old = folders.enter_context(_work_folder(target, "old-")) / target.name
            with DeferredSignals():
                _swap(work, target, old)
        except OSError as error:
            raise unwritable(target, error) from None


def _swap(work: Path, target: Path, old: Path | None) -> None:
    """Put a folder in the place of another one, which moves, or comes back if that fails."""
    if old is not None:
        target.rename(old)
    try:
        work.rename(target)
    except OSError:
        if old is not None:
            old.rename(target)
        raise
    (target / _UNFINISHED).unlink()


@contextmanager
def _work_folder(target: Path, kind: str) -> Iterator[Path]:
    """Make a locked folder beside a result, and remove it after the block if it is there then."""
    start = f".{target.name}-{kind}"
    lock: int | None = None
    with DeferredSignals() as signals:
        while True:
            work = Path(tempfile.mkdtemp(prefix=start, dir=target.parent))
            try:
                (work / _UNFINISHED).touch()
                lock = lock_folder(work)
            except (FileNotFoundError, BlockingIOError):
                # Another process has taken it for an abandoned one.
                continue
            except OSError:
                # A file system without locks.
                lock = None
            break
        try:
            signals.deliver()
            yield work
        finally:
            with DeferredSignals():
                shutil.rmtree(work, ignore_errors=True)
                if lock is not None:
                    os.close(lock)


@cache
def _remove_unfinished_once(parent: Path) -> None:
    _remove_unfinished(parent)


def _remove_unfinished(parent: Path) -> None:
    """Remove half-written results that killed processes of this user have left in a folder."""
    with suppress(OSError):
        for path in parent.glob(".*"):
            if _WORK.fullmatch(path.name) and (path / _UNFINISHED).is_file():
                remove_unlocked(path, _remove_or_restore)


def _remove_or_restore(path: Path) -> None:
    """Remove a half-written result. A replaced result without a successor comes back."""
    for before in path.iterdir():
        place = path.parent / before.name
        if path.name.startswith(f".{before.name}-old-") and not place.exists():
            before.rename(place)
    shutil.rmtree(path, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file in one step: it is there whole, or as it was before.

    Parameters
    ----------
    path : Path
        The file, in a folder that exists.
    text : str
        Text to write, as UTF-8.

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
        Bytes to write.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    with written_file(path) as file:
        file.write(data)


@contextmanager
def written_file(path: Path) -> Iterator[BinaryIO]:
    """Write a file piece by piece: it is there whole after the block, or as it was before.

    Parameters
    ----------
    path : Path
        The file, in a folder that exists. A link stays, and the file that it names is written. A
        pipe that somebody reads, or a character device, is written into.

    Yields
    ------
    BinaryIO
        File to write to.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    try:
        if _is_stream(path):
            with _opened_stream(path) as file:
                yield file
            return
        target = Path(os.path.realpath(path))
        work = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            with work.open("wb") as file:
                yield file
                file.flush()
                # Without this a power cut may leave the new name with nothing behind it.
                os.fsync(file.fileno())
            work.replace(target)
            _sync_folder(target.parent)
        finally:
            # In a file system that is read-only it fails although there is no such file.
            with suppress(OSError):
                work.unlink()
    except OSError as error:
        raise unwritable(path, error) from None


def _is_stream(path: Path) -> bool:
    """Tell pipes and character devices, which keep nothing, from files; refuse the rest."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
        return True
    if stat.S_ISDIR(mode):
        raise OutputError(f"{path}: is a folder", hint="name a file")
    if not stat.S_ISREG(mode):
        raise OutputError(f"{path}: is no file, but a device or a socket", hint="name a file")
    return False


def _opened_stream(path: Path) -> BinaryIO:
    # A pipe without a reader would keep the program waiting.
    handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    os.set_blocking(handle, True)
    return os.fdopen(handle, "wb")


def require_own_kind(path: Path, start: bytes, what: str) -> None:
    """Refuse to replace a file that is something else than what is to be written.

    Parameters
    ----------
    path : Path
        The file. It may be missing or empty.
    start : bytes
        First bytes of silvan's files of the kind.
    what : str
        Name of the kind in the error.

    Raises
    ------
    OutputError
        The file is of another kind, or the path is that of a folder.
    """
    try:
        if path.exists() and _is_stream(path):
            return
        if path.is_file():
            with path.open("rb") as file:
                if (found := file.read(len(start))) and found != start:
                    raise OutputError(
                        f"{path}: exists, and is no {what}", hint="name another file, or remove it"
                    )
    except OSError as error:
        raise unwritable(path, error) from None


def _sync_folder(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _occupied(target: Path) -> bool:
    return any(target.iterdir())


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


def unwritable(path: Path, error: OSError) -> OutputError:
    """Say that something cannot be written, why, and what to do about it."""
    reason = (error.strerror or str(error)).lower()
    if error.errno in _FULL:
        hint = "make room and repeat the command; what was finished is kept"
    elif error.errno == errno.EISDIR:
        hint = "a file of that name is to be written: rename the folder, or name another one"
    else:
        hint = "name a folder that exists and that you may write to"
    return OutputError(f"{path}: cannot write: {reason}", hint=hint)
