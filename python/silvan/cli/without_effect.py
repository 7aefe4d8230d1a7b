"""Parts of a scenario that a run does nothing with."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from silvan._silvan import scheme_names, scheme_tables
from silvan.inputs.quantities import Quantity

if TYPE_CHECKING:
    from silvan.inputs.scenario import Scenario

_LIVE_ONLY = ("symbol-errors", "lose")

_UNITS_PS = {"start_s": 12, "start_ms": 9, "start_us": 6, "start_ns": 3, "start_ps": 0}
"""Start columns of flow lists, and their power of ten in picoseconds."""


def without_effect(scenario: Scenario, assignments: Sequence[str] = ()) -> list[str]:
    """List settings, faults and flows without effect in a run."""
    return [
        *_idle_settings(scenario, assignments),
        *_idle_faults(scenario),
        *_late_flows(scenario),
    ]


def never_acted(scheme: str, reasons: Iterable[str | None]) -> str | None:
    """Return a note for a scheme that acted in none of its runs."""
    distinct = set(reasons)
    if not distinct or None in distinct:
        return None
    return f"note: {scheme} never acted: {'; '.join(sorted(filter(None, distinct)))}"


def _idle_settings(scenario: Scenario, assignments: Sequence[str]) -> Iterator[str]:
    scheme = scenario.control.scheme
    used = scheme_tables(scheme)
    others = {table for name in scheme_names() for table in scheme_tables(name)} - set(used)
    for word in assignments:
        key = word.partition("=")[0].strip()
        if key.startswith("control.") and key.split(".")[1] in others:
            yield f"{key} has no effect: control.scheme is {scheme}"


def _idle_faults(scenario: Scenario) -> Iterator[str]:
    for place, fault in enumerate(scenario.to_dict().get("fault", ())):
        if fault["do"] in _LIVE_ONLY:
            yield f"fault.{place} has no effect: {fault['do']} is for silvan emulate"
        elif Quantity(fault.get("at", "0 s")).ps >= scenario.duration_ps:
            end = f"{scenario.duration_ps / 1e9:g} ms"
            yield f"fault.{place} has no effect: the run ends at {end}, before {fault['at']}"


def _late_flows(scenario: Scenario) -> Iterator[str]:
    for entry in scenario.to_dict()["traffic"].get("flow-file", ()):
        first_ps = Quantity(entry["origin"]).ps
        starts = list(_starts_ps(entry))
        late = [start for start in starts if start - first_ps >= scenario.duration_ps]
        if not late:
            continue
        end = f"{scenario.duration_ps / 1e9:g} ms"
        yield (
            f"{entry['name']}: {len(late):,} of {len(starts):,} flows start after the end of the "
            f"run, {end}; the first flow of the file starts at {min(starts) / 1e12:g} s: set "
            "origin, or a longer run.duration"
        )


def _starts_ps(entry: dict[str, Any]) -> Iterator[int]:
    lines = [line for line in entry["list"].lstrip("\ufeff").splitlines() if line.strip()]
    if entry["format"] == "ns-3":
        for line in lines[1 : 1 + int(lines[0])]:
            yield math.floor(Decimal(line.split()[5]).scaleb(12))
        return
    names = [name.strip().strip('"').strip() for name in lines[0].split(",")]
    place = next(at for at, name in enumerate(names) if name == "start" or name in _UNITS_PS)
    for line in lines[1:]:
        text = line.split(",")[place].strip().strip('"').strip()
        if names[place] == "start":
            yield Quantity(text).ps
        else:
            yield math.floor(Decimal(text).scaleb(_UNITS_PS[names[place]]))
