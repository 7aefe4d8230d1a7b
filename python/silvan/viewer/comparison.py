"""The report of a comparison of congestion-control schemes."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from silvan import _silvan
from silvan.comparing.comparison import RankingRow, compared, courses, without_effect
from silvan.errors import OutputError
from silvan.execution.cache import build_id, finished_result
from silvan.folders import write_text
from silvan.inputs.scenario import Scenario
from silvan.reproduce.curves import over_time
from silvan.results.measures import OF_COMPARISONS, Measure
from silvan.results.result import Result
from silvan.viewer.report import Report, ReportRun, Section, Table, with_places
from silvan.viewer.shapes import DAMAGED, read_json, readable

Courses = Mapping[tuple[str, str], tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]

COMPARISON = "compare.json"


def write_comparison(
    scenario: Scenario,
    ranking: Sequence[RankingRow],
    schemes: str | None,
    changes: Sequence[str],
    folder: Path,
    measures: Sequence[Measure] = (),
) -> Path:
    """Write the results of a comparison, and the folders of its runs."""
    rows = [
        row.to_dict() | {"folders": [os.path.relpath(path, folder) for path in row.folders]}
        for row in ranking
    ]
    words = ["silvan", "compare", f"{scenario.name}.toml"]
    words += [] if schemes is None else ["--schemes", schemes]
    words += ["--seeds", str(ranking[0].seeds)] if ranking[0].seeds > 1 else []
    shown = [one.name for one in measures]
    words += ["--measures", ",".join(shown)] if shown else []
    words += changes
    facts = {
        "scenario": scenario.name,
        "hash": scenario.hash,
        "version": _silvan.version(),
        "build": build_id(),
        "command": shlex.join(words),
        "measures": shown,
        "schemes": rows,
    }
    path = folder / COMPARISON
    write_text(path, json.dumps(facts, indent=2) + "\n")
    return path


def comparison_report(manifest: Path) -> Report:
    """Make the report of a comparison; the drawing is next to the manifest."""
    try:
        read = read_json(manifest)
        return _report(read, manifest.parent)
    except DAMAGED as error:
        raise OutputError(
            f"{manifest}: no readable comparison: {error}",
            hint="repeat the command silvan compare; finished runs are kept",
        ) from None


def _report(read: Mapping[str, Any], folder: Path) -> Report:
    rows = read["schemes"]
    runs: list[ReportRun] = []
    cases: dict[str, list[int]] = {}
    curves: list[dict[str, Any]] = []
    warnings: list[str] = []
    for row in rows:
        name = row["scheme"]
        places = cases[name] = []
        results = []
        for path in row["folders"]:
            result = finished_result((folder / path).resolve())
            if result is None:
                continue
            run = _run(name, result, (folder / path).resolve())
            try:
                with readable(run.label):
                    results.append(courses(result))
            except OutputError as error:
                warnings.append(f"{error}. It is in no curve.")
                continue
            places.append(len(runs))
            runs.append(run)
        curves += _curves(name, results, places)
    drawing = folder / "compare.svg"
    return Report(
        title=f"{read['scenario']}: congestion-control schemes",
        made_by=f"silvan {read['version']}, build {read['build']}",
        sections=[
            Section(
                "schemes",
                "Schemes side by side",
                read["command"],
                notes=[
                    "Measures are those of silvan run. Congestion is cleared when the trees hold "
                    "at most a tenth of the largest number of Port VLs (virtual lanes of ports) "
                    "without control. State: bytes of a switch per port and lane; of a host, and "
                    "for each flow. Curves count packets whole, in the interval in which they "
                    "arrive: in a short interval, a full link alternates between two numbers.",
                    *(f"{row['scheme']}: {row['failure']}" for row in rows if row["failure"]),
                    *(f"{text}." for text in without_effect(rows)),
                ],
                tables=[_table(rows, read["measures"], list(cases.values()))],
                curves=sorted(curves, key=lambda curve: str(curve["chart"]), reverse=True),
                figures=[drawing] if drawing.is_file() else [],
                cases=cases,
            )
        ],
        runs=runs,
        warnings=warnings,
    )


def _table(
    rows: Sequence[Mapping[str, Any]], measures: Sequence[str], runs: Sequence[Sequence[int]]
) -> Table:
    shown = [OF_COMPARISONS[name] for name in measures] or compared(rows)
    columns = [one.title for one in shown]
    cells = [
        [
            row["scheme"],
            *(row[one.name] for one in shown),
            row["switch_bytes_per_port_vl"],
            _host_state(row),
            row["settings"],
        ]
        for row in rows
    ]
    columns += ["state switch, B", "state host, B", "settings"]
    return Table("Schemes", ["scheme", *columns], cells, runs)


def _host_state(row: Mapping[str, Any]) -> str | None:
    host, flow = row["host_bytes"], row["flow_bytes"]
    return None if host is None else f"{host} + {flow}/flow"


def _run(scheme: str, result: Result, folder: Path) -> ReportRun:
    return ReportRun(
        label=f"{scheme}, seed {result.seed}",
        seed=result.seed,
        hash=result.scenario.hash,
        scenario=result.scenario.to_toml(),
        name=result.scenario.name,
        facts={"version": result.version},
        folder=folder,
    )


def _curves(
    scheme: str, courses_of_seeds: Sequence[Courses], places: Sequence[int]
) -> Iterator[dict[str, Any]]:
    for (chart, unit), (times, _) in courses_of_seeds[0].items() if courses_of_seeds else ():
        series = [of_seed[chart, unit][1] for of_seed in courses_of_seeds]
        length = min(map(len, series))
        if not length:
            continue
        values = np.mean([one[:length] for one in series], axis=0)
        curve = over_time(chart, unit, scheme, times[:length], values, [scheme])
        yield with_places(curve.to_dict(), {scheme: places})
