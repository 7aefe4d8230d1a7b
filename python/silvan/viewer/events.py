"""Events at an instant: changes of settings, decisions of a manager, starts and ends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa

from silvan._silvan import scheme_tables
from silvan.results.result import Result

_PS = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}
_TIME = re.compile(r"(\d+(?:\.\d+)?) (ps|ns|us|ms|s)")
_WHERE = ("at", "switch", "port", "sl")

Event = tuple[float, str, str]


def events_table(result: Result) -> pa.Table:
    """List the events of a run: ``time_ps``, ``kind`` and ``text``."""
    end_ps = float(result.summary.get("simulated_ps", result.scenario.duration_ps))
    events = sorted(event for event in _events(result) if event[0] <= end_ps)
    times, kinds, texts = zip(*events, strict=True) if events else ((), (), ())
    return pa.table(
        {
            "time_ps": pa.array(times, pa.float64()),
            "kind": pa.array(kinds, pa.utf8()),
            "text": pa.array(texts, pa.utf8()),
        }
    )


def _events(result: Result) -> Iterator[Event]:
    tables = result.scenario.to_dict()
    if result.scenario.warm_up_ps:
        yield float(result.scenario.warm_up_ps), "warm-up", "end of the warm-up"
    yield from _traffic(tables["traffic"])
    for change in _changes(tables["control"]):
        where = " ".join(str(change[key]) for key in ("switch", "port") if key in change)
        what = [f"{key} = {value}" for key, value in change.items() if key not in _WHERE]
        yield _ps(change["at"]), "setting", f"{where or 'everywhere'}: {', '.join(what)}"
    if "dcms" in result.tables:
        for row in result.tables["dcms"].to_pylist():
            text = f"{row['port']}: {row['reason']}, Marking_Rate {row['marking_rate']}"
            yield float(row["time_ps"]), "DCMS", text
    for row in result.tables["programs"].to_pylist() if "programs" in result.tables else ():
        yield float(row["start_ps"]), "program", f"{row['name']} starts"
        if row["finished"]:
            yield float(row["end_ps"]), "program", f"{row['name']} ends"


def _changes(control: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name in scheme_tables(control["scheme"]):
        yield from control.get(name, {}).get("change", ())


def _traffic(traffic: dict[str, Any]) -> Iterator[Event]:
    for entries in traffic.values():
        for entry in entries if isinstance(entries, list) else ():
            for key, verb in {"start": "starts", "end": "ends"}.items():
                at = _ps(entry[key]) if entry.get(key, "unlimited") != "unlimited" else 0
                if at and "name" in entry:
                    yield at, "traffic", f"{entry['name']} {verb}"


def _ps(text: str) -> float:
    match = _TIME.fullmatch(text)
    return float(Decimal(match[1]) * _PS[match[2]]) if match else 0.0
