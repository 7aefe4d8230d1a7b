"""The report of a reproduction, from the file that ``silvan reproduce`` writes."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from silvan.errors import OutputError
from silvan.execution.cache import finished_result
from silvan.reproduce.curves import SPREAD
from silvan.viewer.report import Report, ReportRun, Section, Table, with_places
from silvan.viewer.shapes import DAMAGED, read_json

REPRODUCTIONS = "reproduction*.json"

_STEADY = "_steady"

_UNITS = {"gbps": "Gbit/s", "ms": "ms", "us": "µs", "ns": "ns", "s": "s", "bytes": "B"}


def reproduction_report(manifest: Path) -> Report:
    """Make the report of a reproduction; figures are next to the manifest."""
    try:
        read = read_json(manifest)
        return _report(read, manifest.parent)
    except DAMAGED as error:
        raise OutputError(
            f"{manifest}: no readable reproduction: {error}",
            hint="repeat the command silvan reproduce; finished runs are kept",
        ) from None


def _report(read: Mapping[str, Any], folder: Path) -> Report:
    overrides = read["overrides"]
    command = ["silvan", "reproduce", read["paper"], *(["--quick"] if read["quick"] else [])]
    for key, value in overrides.items():
        command += ["--set", f"{key}={json.dumps(value) if not isinstance(value, str) else value}"]
    warnings = []
    if read["quick"]:
        warnings.append(
            "A quick look: fewer points, short runs, one seed. "
            "Its numbers cannot be compared with the paper's."
        )
    if overrides:
        changes = ", ".join(f"{key} = {value}" for key, value in overrides.items())
        warnings.append(
            "Every scenario was changed, so the numbers cannot be compared with the paper's: "
            f"{changes}"
        )
    runs = [_run(one, folder) for one in read["runs"]]
    wall_s, hops = (sum(one[name] for one in read["runs"]) for name in ("wall_s", "packet_hops"))
    cost = (
        f"{len(runs)} runs, {hops:,} packet-hops: {_seconds(wall_s)} of computing, the measured "
        "times of all runs added up. Runs side by side take less, and kept ones are not repeated."
    )
    return Report(
        title=f"{read['paper']}: the paper and silvan",
        made_by=f"silvan {read['version']}, build {read['build']}: {shlex.join(command)}",
        sections=[_section(one, command, folder) for one in read["experiments"]],
        runs=runs,
        warnings=warnings,
        notes=[_tally(read["experiments"]), cost],
    )


def _run(run: Mapping[str, Any], folder: Path) -> ReportRun:
    place = (folder / run["folder"]).resolve()
    result = finished_result(place)
    return ReportRun(
        label=run["label"],
        seed=run["seed"],
        hash=run["scenario_hash"],
        scenario="" if result is None else result.scenario.to_toml(),
        name="scenario" if result is None else result.scenario.name,
        facts={
            "version": run["version"],
            "wall time, s": round(run["wall_s"], 1),
            "events": run["events"],
            "packet-hops": run["packet_hops"],
        },
        folder=None if result is None else place,
    )


def _section(one: Mapping[str, Any], command: Sequence[str], folder: Path) -> Section:
    cases = one["cases"]
    whole, steady = one["windows"]
    windows = f"Measured: averaged over {whole}; steady state: {steady}; ± is the standard "
    return Section(
        id=one["id"],
        title=one["title"],
        command=shlex.join([*command, "--only", one["id"]]),
        notes=[f"{windows}deviation over the seeds."] if one["targets"] else [],
        targets=one["targets"],
        tables=[_points(one["points"])] if one["points"] else [],
        curves=[with_places(curve, cases) for curve in one["curves"]],
        figures=[folder / name for name in one["files"] if name.endswith(".svg")],
        cases=cases,
    )


def _points(points: Mapping[str, Any]) -> Table:
    places = {name: place for place, name in enumerate(points["header"])}
    deviations = {
        places[name.removesuffix(SPREAD)]: place
        for name, place in places.items()
        if name.endswith(SPREAD) and name.removesuffix(SPREAD) in places
    }
    steady = [place for name, place in places.items() if name.endswith(_STEADY)]
    return Table(
        "Points",
        [_heading(name) for name in places],
        [[cell for _, cell in zip(places, row, strict=True)] for row in points["rows"]],
        deviations=deviations,
        file_only=sorted({*steady, *deviations.values()}),
    )


def _seconds(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


def _heading(name: str) -> str:
    mean = name.removesuffix(SPREAD)
    words = mean.removesuffix(_STEADY)
    end = next((end for end in _UNITS if words.endswith(f"_{end}")), None)
    if end is not None:
        words = f"{words.removesuffix(f'_{end}')}, {_UNITS[end]}"
    return (
        words
        + (", steady state" if mean.endswith(_STEADY) else "")
        + (", standard deviation" if name.endswith(SPREAD) else "")
    )


def _tally(experiments: Sequence[Mapping[str, Any]]) -> str:
    rows = [row for one in experiments for row in one["targets"]]
    words = []
    for held_out in (True, False):
        some = [row for row in rows if row["calibrated"] is not held_out]
        if some:
            within = sum(row["within_tolerance"] for row in some)
            steady = sum(row["within_tolerance_steady"] for row in some)
            kind = "targets" if held_out else "targets that the model was calibrated on"
            words.append(
                f"{within} of {len(some)} {kind} are within tolerance in the paper's averaging "
                f"window, {steady} in the steady-state one."
            )
    return " ".join([*words, "A difference is data: none is hidden."])
