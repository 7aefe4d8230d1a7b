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

_SWEEP = "sweep.json"
_ORIGIN = "origin.json"
_RESULTS = ("run", "seed-*", "point-*/seed-*", "isolated", "congestors", "congested")

LOCK = ".lock"

_UNFINISHED = ".unfinished"
"""In folders that are not yet, or no longer, complete results."""

_WORK = re.compile(r"\..+-[a-z0-9_]{8}")


WRITING = threading.RLock()
"""Held during writes: a process that ends itself waits for it."""


def require_writable(directory: Path) -> None:
    """Make a folder, and make sure that it can be written to."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise unwritable(directory, error) from None


def require_replaceable(target: Path) -> None:
    """Check that a result may replace a target: missing, empty, or a result."""
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
    """Refuse devices and pipes, which may have no end."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError(f"its {path.name} is no regular file")


def require_writable_file(path: Path) -> None:
    """Check that a file can be written, before the work for it."""
    try:
        if not _is_stream(path):
            with tempfile.TemporaryFile(dir=Path(os.path.realpath(path)).parent):
                pass
    except OSError as error:
        raise unwritable(path, error) from None


def results_below(folder: Path, pattern: str = "**") -> list[Path]:
    """Find the results in a folder, without what a command that was killed has left behind."""
    found = (path.parent for path in sorted(folder.glob(f"{pattern}/{MANIFEST}")))
    return [
        path
        for path in found
        if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]


def run_folders(folders: Iterable[Path]) -> list[Path]:
    """Find the results in folders of one or several runs."""
    found = []
    for folder in folders:
        is_run = (folder / MANIFEST).is_file()
        found += [folder] if is_run else results_below(folder) or [folder]
    return found


@dataclass(frozen=True, slots=True)
class Origin:
    """Scenario and version of results."""

    name: str
    scenario_hash: str
    version: str


@contextmanager
def claimed_results(
    root: Path | None, planned: Mapping[Path, Origin], *, overwrite: bool
) -> Iterator[None]:
    """Claim a folder for the results of one command, scenario and version."""
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
    """Lock a folder; the system unlocks it when the process ends. ``kind`` is for the error."""
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
                continue
            for parent in (root, *root.glob("point-*")):
                _remove_unfinished(parent)
            try:
                yield
            finally:
                # Without the lock the file means nothing, and the block's exception matters more.
                with suppress(OSError):
                    path.unlink()
            return


def _is_at(file: TextIOWrapper, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def claim_result(target: Path, origin: Origin, *, overwrite: bool) -> None:
    """Make sure that a folder holds no result of another scenario or version."""
    found = _origin(target / MANIFEST)
    if found != origin and (target / MANIFEST).exists() and not overwrite:
        raise another_origin(target, found, origin)


def claim_figures(
    folder: Path, pattern: str, origin: Origin, *, overwrite: bool, what: str = "scenario"
) -> None:
    """Note the origin of figures in a folder, or refuse figures of another origin."""
    _remove_figures(folder, origin, overwrite=overwrite, what=what)
    require_writable(folder)
    values = asdict(origin) | {"figures": pattern}
    write_text(folder / _ORIGIN, json.dumps(values, indent=2) + "\n")


def require_origin(
    folder: Path, wanted: Origin, *, overwrite: bool, what: str = "scenario"
) -> bool:
    """Refuse figures of another origin; return true if there are some to overwrite."""
    path = folder / _ORIGIN
    found = _origin(path)
    are_others = found != wanted and path.exists()
    if are_others and not overwrite:
        raise another_origin(folder, found, wanted, what)
    return are_others


def _remove_figures(
    folder: Path, wanted: Origin, *, overwrite: bool, what: str = "scenario"
) -> None:
    if not require_origin(folder, wanted, overwrite=overwrite, what=what):
        return
    path = folder / _ORIGIN
    # A damaged note names no files: the new figures' names find them.
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
    """Fill a new folder, then replace the target in one step if the block succeeds."""
    # A link stays, and its folder is replaced.
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
            # mkdtemp makes a private folder; results are for everyone who may list it.
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
    """Make a locked folder beside a result, and remove it after the block."""
    start = f".{target.name}-{kind}"
    lock: int | None = None
    with DeferredSignals() as signals:
        while True:
            work = Path(tempfile.mkdtemp(prefix=start, dir=target.parent))
            try:
                (work / _UNFINISHED).touch()
                lock = lock_folder(work)
            except (FileNotFoundError, BlockingIOError):
                # Another process has taken it for abandoned.
                continue
            except OSError:
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
    """Remove unfinished results of this user's killed processes."""
    with suppress(OSError):
        for path in parent.glob(".*"):
            if _WORK.fullmatch(path.name) and (path / _UNFINISHED).is_file():
                remove_unlocked(path, _remove_or_restore)


def _remove_or_restore(path: Path) -> None:
    for before in path.iterdir():
        place = path.parent / before.name
        if path.name.startswith(f".{before.name}-old-") and not place.exists():
            before.rename(place)
    shutil.rmtree(path, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file as UTF-8 in one step: complete, or unchanged."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file in one step; it survives a power cut."""
    with written_file(path) as file:
        file.write(data)


@contextmanager
def written_file(path: Path) -> Iterator[BinaryIO]:
    """Write a file in pieces: complete after the block, or unchanged."""
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
                # Without it a power cut may leave an empty file with the new name.
                os.fsync(file.fileno())
            work.replace(target)
            _sync_folder(target.parent)
        finally:
            # Read-only file systems fail also for a missing file.
            with suppress(OSError):
                work.unlink()
    except OSError as error:
        raise unwritable(path, error) from None


def _is_stream(path: Path) -> bool:
    """Return true for pipes and character devices; refuse anything else but files."""
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
    # A pipe without a reader would block the program.
    handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    os.set_blocking(handle, True)
    return os.fdopen(handle, "wb")


def require_own_kind(path: Path, start: bytes, what: str) -> None:
    """Refuse to replace a file, unless it begins with ``start``, is missing or empty."""
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
