"""Output folders: checked before a run, whole or absent after it."""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from silvan.errors import OutputError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

MANIFEST = "manifest.json"
"""File that marks a folder as a finished result."""

_SWEEP = "sweep.json"
_ORIGIN = "origin.json"


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


def claim_results(
    root: Path, planned: Mapping[Path, Origin], *, overwrite: bool, patterns: Sequence[str]
) -> None:
    """Make sure that results of different scenarios or versions do not get mixed in a folder.

    Parameters
    ----------
    root : Path
        The output folder. It is made if it is missing.
    planned : Mapping
        Where each result goes, and its origin. Other seeds of one scenario lie side by side.
    overwrite : bool
        Whether to remove results of another origin instead of refusing.
    patterns : sequence of str
        Where results lie in the folder, as for :meth:`pathlib.Path.glob`.

    Raises
    ------
    OutputError
        The folder holds results of another origin, a sweep, or something else where a result goes;
        or it cannot be written.
    """
    if (root / _SWEEP).exists():
        raise OutputError(
            f"{root}: the folder holds a sweep", hint="name another folder with --out"
        )
    origins = {folder.parent: origin for folder, origin in planned.items()}
    before = sorted(path for pattern in patterns for path in root.glob(f"{pattern}/{MANIFEST}"))
    others = []
    for path in before:
        found = _origin(path)
        if found is not None and found != origins.get(path.parent.parent):
            others.append((path.parent, found))
    if others and not overwrite:
        folder, found = others[0]
        raise another_origin(folder, found, origins.get(folder.parent))
    for folder in planned:
        require_replaceable(folder)
    require_writable(root)
    for folder, _ in others:
        _remove_result(folder, root)


def claim_result(target: Path, origin: Origin, *, overwrite: bool) -> None:
    """Make sure that a folder holds no result of another scenario or version.

    Raises
    ------
    OutputError
        It does, and ``overwrite`` is false.
    """
    found = _origin(target / MANIFEST)
    if found is not None and found != origin and not overwrite:
        raise another_origin(target, found, origin)


def claim_figures(folder: Path, stem: str, origin: Origin, *, overwrite: bool) -> None:
    """Note in a folder of figures where they come from, if no others are there.

    Parameters
    ----------
    folder : Path
        The folder. It is made if it is missing.
    stem : str
        Name of the figures' files without their suffix.
    origin : Origin
        Scenario and version of the figures.
    overwrite : bool
        Whether to remove figures of another origin instead of refusing.

    Raises
    ------
    OutputError
        The folder holds figures of another origin, or cannot be written.
    """
    found = _origin(folder / _ORIGIN)
    if found is not None and found != origin:
        if not overwrite:
            raise another_origin(folder, found, origin)
        for path in folder.glob(f"{stem}.*"):
            path.unlink(missing_ok=True)
    require_writable(folder)
    write_text(folder / _ORIGIN, json.dumps(asdict(origin), indent=2) + "\n")


def another_origin(folder: Path, found: Origin, wanted: Origin | None) -> OutputError:
    """Say how the results in a folder differ from those that are to be written."""
    if wanted is not None and found.version != wanted.version:
        what = f"of silvan {found.version}; this is {wanted.version}"
    elif wanted is not None and found.name == wanted.name:
        what = f"of another scenario with the name {found.name!r}, or of other values of its keys"
    else:
        what = f"of another scenario, {found.name!r}"
    return OutputError(
        f"{folder}: the result there is {what}",
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
