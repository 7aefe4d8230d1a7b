"""Decisions and changes of a DCMS, from its log: that of another process, or of this one."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any, Protocol

from silvan.errors import SilvanError
from silvan.folders import require_regular
from silvan.live.dcms_state import port_name

_MOST_READ = 1 << 20

_CHANGES = {
    "lowered": "Marking_Rate {before} lowered to {now}",
    "not-lowered": "Marking_Rate not lowered: {why}",
    "restored": "Marking_Rate restored to {now}",
    "left-alone": "Marking_Rate left as it is",
    "not-restored": "Marking_Rate not restored yet: {why}",
}


class EventSource(Protocol):
    """Decisions and changes of a DCMS, in words."""

    def take(self) -> list[str]:
        """Return what is new since the last call."""


class DcmsLines:
    """The log of a manager in this process, as it is handed over."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._texts: list[str] = []

    def add(self, lines: bytes) -> None:
        """Take whole lines of JSON."""
        texts = [text for line in lines.splitlines() if (text := _words(line))]
        with self._lock:
            self._texts += texts

    def take(self) -> list[str]:
        """Return what has been decided and changed since the last call, in words."""
        with self._lock:
            texts, self._texts = self._texts, []
        return texts


class DcmsLog:
    """The log of ``silvan dcms --log json``, from now on."""

    def __init__(self, path: Path) -> None:
        try:
            # A pipe would wait for its writer; devices have no end.
            require_regular(path)
            self._file = path.open("rb")
            self._file.seek(0, 2)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is no regular file"
            raise SilvanError(
                f"{path}: cannot be read: {reason}",
                hint="start the DCMS first: silvan dcms --log json dcms.toml 2> dcms.log",
            ) from None
        self._rest = b""

    def take(self) -> list[str]:
        """Return what has been decided and changed since the last call, in words."""
        *lines, rest = (self._rest + self._file.read(_MOST_READ)).split(b"\n")
        self._rest = rest if len(rest) < _MOST_READ else b""
        return [text for line in lines if (text := _words(line))]

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _words(line: bytes) -> str:
    try:
        read: dict[str, Any] = json.loads(line)
        kind = read["event"]
        if kind == "decision":
            planned = " (dry run)" if read["dry-run"] else ""
            return f"{port_name(read['port'])}: {read['reason']}, {read['action']}{planned}"
        if kind in _CHANGES:
            return f"{port_name(read['port'])}: {_CHANGES[kind].format(**read)}"
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    return ""
