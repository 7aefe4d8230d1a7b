"""Text files of users, read up to a limit, because a device or open pipe may never end."""

from __future__ import annotations

import codecs
import os
import stat
from pathlib import Path

from silvan.errors import ScenarioError, shown

SCENARIO_BYTES = 64 << 20

CONFIGURATION_BYTES = 1 << 20


TRACE_BYTES = 256 << 20


def read_bytes(path: str | Path, limit: int, what: str, hint: str) -> bytes:
    """Read a file of at most ``limit`` bytes, which is no named pipe."""
    if not isinstance(path, str | os.PathLike):
        raise ScenarioError(f"{shown(repr(path))} is not a path", hint=hint)
    source = str(path)
    if not _is_utf8(source):
        named = source.encode("utf-8", "replace").decode()
        raise ScenarioError("the path is not UTF-8 text", named, hint="rename the file")
    try:
        if is_named_pipe(Path(path)):
            raise ScenarioError(
                f"cannot read the {what}: it is a named pipe",
                source,
                hint="name a regular file, or /dev/stdin",
            )
        with Path(path).open("rb") as file:
            data = file.read(limit + 1)
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise ScenarioError(f"cannot read the {what}: {reason}", source, hint=hint) from None
    if len(data) > limit:
        raise ScenarioError(
            f"the {what} has more than {limit} bytes",
            source,
            hint=f"name a file of at most {limit} bytes",
        )
    return data


def read_text(path: str | Path, limit: int, what: str, hint: str) -> str:
    """Read a file as :func:`read_bytes` does: UTF-8, or UTF-16 with a byte order mark."""
    data = read_bytes(path, limit, what, hint)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = data.decode("utf-16", "replace")
        return text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ScenarioError(
            "the file is not UTF-8 text", str(path), line, f"save the {what} as UTF-8"
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def is_named_pipe(path: Path) -> bool:
    """Return true if reading would wait for a writer; open pipes are in /dev."""
    opened = path.is_absolute() and path.parts[1:2] in (("dev",), ("proc",))
    return not opened and stat.S_ISFIFO(path.stat().st_mode)


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
