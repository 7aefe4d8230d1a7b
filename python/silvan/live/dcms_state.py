"""Current state of a DCMS, from its state folder, and past events, from its log."""

from __future__ import annotations

import fcntl
import json
import os
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from silvan.errors import ManagerError
from silvan.inputs.input_files import read_text

LOG_BYTES = 1 << 30

_STATUS_BYTES = 64 << 20
NO_RECORD = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
)
"""Errors of bytes that are no record of a manager."""
_NO_ACCESS = "run this as the user who runs silvan dcms"
_NO_LOG = "give what silvan dcms --log json has written to standard error"


def read_status(folder: Path) -> dict[str, Any]:
    """Read the state of a manager after its last sweep, with ``running``."""
    try:
        lock = os.open(folder / "lock", os.O_RDONLY)
    except FileNotFoundError:
        raise ManagerError(
            f"{folder}: no silvan dcms has run with this state folder",
            "name the configuration that it runs with",
        ) from None
    except OSError as error:
        raise ManagerError(f"{folder}: {(error.strerror or '').lower()}", _NO_ACCESS) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        running = False
    except BlockingIOError:
        running = True
    finally:
        os.close(lock)
    try:
        with (folder / "status").open("rb") as file:
            text = file.read(_STATUS_BYTES)
        status: dict[str, Any] = {"running": running} | json.loads(text) | {"running": running}
    except FileNotFoundError:
        return {"running": running}
    except OSError as error:
        raise ManagerError(f"{folder}: {(error.strerror or '').lower()}", _NO_ACCESS) from None
    except NO_RECORD:
        raise damaged_status(folder) from None
    return status


def damaged_status(folder: Path) -> ManagerError:
    """Say that the status of a manager cannot be read, and what helps."""
    return ManagerError(
        f"{folder / 'status'}: the file is damaged",
        "silvan dcms writes it again after its next sweep; without one that runs, remove the file",
    )


@dataclass(slots=True)
class LowPort:
    """Decisions about a port; ``lost_bytes`` of victims are known for ``known_s`` of ``low_s``."""

    port: str
    far_end: str = ""
    lowered: int = 0
    low_s: float = 0.0
    lost_bytes: float = 0.0
    known_s: float = 0.0
    unknown: int = 0
    is_low: bool = False
    victims: set[str] = field(default_factory=set)
    since: float | None = None


@dataclass(slots=True)
class DcmsReport:
    """Contents of a DCMS log, in seconds since 1970, largest loss first."""

    first_s: float = 0.0
    last_s: float = 0.0
    dry_run: bool = True
    ports: list[LowPort] = field(default_factory=list)
    reasons: dict[str, int] = field(default_factory=dict)
    skipped: int = 0


def read_report(path: Path) -> DcmsReport:
    """Sum up a log of ``silvan dcms --log json``."""
    report = DcmsReport()
    ports: dict[str, LowPort] = {}
    reasons: Counter[str] = Counter()
    times: list[float] = []
    for line in read_text(path, LOG_BYTES, "log", _NO_LOG).splitlines():
        try:
            event: dict[str, Any] = json.loads(line)
            time_s = datetime.fromisoformat(event["time"]).timestamp()
            kind = event["event"]
            if kind == "decision":
                reasons[event["reason"]] += 1
                _take(ports, event, time_s)
            elif kind == "low-ended":
                one = ports.get(port_name(event["port"]))
                if one is not None:
                    _end(one, time_s, float(event["victims-lost-bytes"]))
            elif kind == "started":
                report.dry_run &= not event["act"]
                # Ports that were low before are restored.
                for one in ports.values():
                    _end(one, times[-1] if times else time_s)
        except NO_RECORD:
            report.skipped += bool(line.strip())
            continue
        times.append(time_s)
    if not times:
        raise ManagerError(f"{path}: no event of silvan dcms is in it", _NO_LOG)
    report.first_s, report.last_s = times[0], times[-1]
    for one in ports.values():
        one.is_low = one.since is not None
        _end(one, times[-1])
    report.ports = sorted(ports.values(), key=lambda one: (-one.lost_bytes, -one.low_s, one.port))
    report.reasons = dict(reasons.most_common())
    return report


def _take(ports: dict[str, LowPort], event: dict[str, Any], time_s: float) -> None:
    name = port_name(event["port"])
    victim = port_name(event["victim"]) if event["reason"] == "victim-found" else None
    if event["action"] == "lower":
        one = ports.setdefault(name, LowPort(name, event["port"].get("far-end") or ""))
        _end(one, time_s)
        one.lowered += 1
        one.since = time_s
    elif name not in ports:
        return
    one = ports[name]
    if victim is not None:
        one.victims.add(victim)
    if (lost := event.get("victims-lost-bytes")) is not None:
        _end(one, time_s, float(lost))


def _end(one: LowPort, time_s: float, lost_bytes: float | None = None) -> None:
    if one.since is None:
        return
    low_s = max(0.0, time_s - one.since)
    one.since = None
    one.low_s += low_s
    if lost_bytes is None:
        one.unknown += 1
    else:
        one.known_s += low_s
        one.lost_bytes += lost_bytes


def port_name(name: dict[str, Any]) -> str:
    """Name a port as people call it."""
    node = name["switch"] or name["guid"]
    return f"{node}:{name['port']}" if name.get("port") is not None else str(node)
