"""The report of a sweep, from the folder that ``silvan sweep`` writes."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from silvan.errors import OutputError, one_line
from silvan.inputs.scenario import Scenario
from silvan.inputs.toml_text import TomlValue, literal
from silvan.sweeping.plan import label, plain
from silvan.sweeping.store import MANIFEST, POINTS, Failure, digests_of, read_rows
from silvan.sweeping.table import SweepRow, to_table
from silvan.viewer.report import Report, ReportRun, Section, SweepPoints, Table
from silvan.viewer.shapes import DAMAGED, SweepManifest, read_json, require_shape

_NO_MEASURES = ("seed", "hash", "wall_s", "simulated_ps", "events")


def sweep_report(folder: Path) -> Report:
    """Make the report of a sweep."""
    try:
        read = read_json(folder / MANIFEST)
        require_shape(read, SweepManifest, MANIFEST)
        return _report(read, folder)
    except DAMAGED as error:
        raise OutputError(
            f"{folder / MANIFEST}: no readable sweep: {error}",
            hint="repeat the command silvan sweep; finished points are kept",
        ) from None


def _report(read: Mapping[str, Any], folder: Path) -> Report:
    keys = list(read["grid"])
    whole = Scenario.from_toml(read["scenario"])
    rows = list(read_rows(folder, keys, digests_of(read)).values())
    failures = [Failure(**one) for one in read["failed"]]
    base = whole.single_run(rows[0].seed if rows else whole.seed).to_toml()
    points = _floats(to_table(rows, keys))
    warnings = _unfinished(read, rows, f"{_command(whole, read)} --out {_shell(folder)}")
    if failures:
        warnings.append(_failed(len(failures), read["points"]))
    return Report(
        title=f"{whole.name}: a sweep of {', '.join(keys) or 'seeds'}",
        made_by=f"silvan {read['simulator']}",
        sections=[
            Section(
                "points",
                "Points",
                _command(whole, read),
                [f"{whole.name}.toml: the scenario file, or the scenario in {MANIFEST}."],
                tables=[_failures(failures)] if failures else [],
                cases={"all points": range(len(rows))} if rows else {},
            )
        ],
        runs=[_run(row, whole.name, base, folder) for row in rows],
        warnings=warnings,
        sweep=SweepPoints(keys, _measures(points, keys), points.drop_columns(["hash"]))
        if rows
        else None,
    )


def _unfinished(read: Mapping[str, Any], rows: Sequence[SweepRow], command: str) -> list[str]:
    finished = sum(_is_planned(row, read) for row in rows)
    missing = read["points"] - len(read["failed"]) - finished
    if missing <= 0:
        return []
    lost = read["finished"] - finished
    gone = f" {MANIFEST} tells of {lost} more, and {POINTS} lacks them." if lost > 0 else ""
    return [f"{finished} of {read['points']} points are finished.{gone} To go on: {command}"]


def _is_planned(row: SweepRow, read: Mapping[str, Any]) -> bool:
    return row.seed in read["seeds"] and all(
        (value := row.values.get(key)) is not None
        and (value in values or plain(value) in map(plain, values))
        for key, values in read["grid"].items()
    )


def _shell(folder: Path) -> str:
    return shlex.quote(one_line(str(folder)))


def _failed(count: int, points: int) -> str:
    return f"{count} of {points} points failed; the table Failed points says why."


def _failures(failures: Sequence[Failure]) -> Table:
    columns = ["point", "error", "attempts", "scenario that runs it again"]
    rows: list[list[str | float | None]] = [
        [label(one.values, one.seed), one.error, float(one.attempts), one.scenario]
        for one in sorted(failures, key=_place)
    ]
    return Table("Failed points", columns, rows)


def _place(failure: Failure) -> tuple[list[str], int]:
    return [plain(value) for value in failure.values.values()], failure.seed


def _command(whole: Scenario, read: Mapping[str, Any]) -> str:
    words = ["silvan", "sweep", f"{whole.name}.toml"]
    for key, values in read["grid"].items():
        words += ["--grid", f"{key}={','.join(map(plain, values))}"]
    words += [*read.get("changes", ()), "--seeds", str(len(read["seeds"]))]
    if read["seeds"] and read["seeds"][0] != whole.seed:
        words += ["--seed", str(read["seeds"][0])]
    if read["tables"]:
        words.append("--tables")
    return shlex.join(words)


def _run(row: SweepRow, name: str, base: str, folder: Path) -> ReportRun:
    tables = folder / "tables" / row.hash[:16]
    return ReportRun(
        label=label(row.values, row.seed),
        seed=row.seed,
        hash=row.hash,
        scenario=base,
        # The sweep's own file varies the keys that the command sets.
        name=f"{name}-run",
        settings={key: _as_set(value) for key, value in row.values.items()},
        facts={key: value for key, value in row.measures.items() if value is not None},
        folder=tables if tables.is_dir() else None,
    )


def _as_set(value: TomlValue) -> str:
    return value if isinstance(value, str) else literal(value)


def _measures(points: pa.Table, keys: list[str]) -> list[str]:
    return [
        name
        for name in points.column_names
        if name not in (*keys, *_NO_MEASURES)
        and points.schema.field(name).type == pa.float64()
        and points[name].null_count < len(points)
    ]


def _floats(table: pa.Table) -> pa.Table:
    columns = {
        name: table[name].cast(pa.float64()) if pa.types.is_integer(kind) else table[name]
        for name, kind in zip(table.column_names, table.schema.types, strict=True)
    }
    return pa.table(columns)
