"""Every file in CSV that a report offers has all of its values, unrounded."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from playwright.sync_api import Browser, Page

from silvan.errors import OutputError
from silvan.viewer.report import Report, ReportRun, Section, SweepPoints, Table, write_report
from silvan.viewer.reproduction import reproduction_report
from tests.viewer.conftest import opener
from tests.viewer.csv_files import SMALL_VIEW, CsvFile, assert_equal, csv_files

pytestmark = pytest.mark.needs("chromium")

POINTS = 1503
"""More points than a page lists."""

SIZES = {"32 KiB": 32.0, "800 kB": 781.25, "1 MiB": 1024.0}
NAMES = ('a, "b"\n', "=cmd()", "plain")
MEASURES = {
    "total_gbps": ("total delivered", "Gbit/s", 1.0),
    "latency_p50_us": ("latency p50", "µs", 1.0),
    "delivered_bytes": ("delivered", "MB", 1e6),
    "simulated_ps": ("simulated", "ms", 1e9),
    "wait_s": ("wait", "s", 1.0),
    "marked_packets": ("marked", "", 1.0),
}
"""Name of each measure, unit of its column, and the factor between the units."""

TARGETS: list[dict[str, Any]] = [
    {
        "id": "fig1.off",
        "what": 'Rate, "off", Gbit/s',
        "paper": 0.1 + 0.2,
        "measured": 13.123456789012345,
        "spread": 0.012345678901234567,
        "rel_diff": -1 / 3,
        "within_tolerance": False,
        "tol": 0.05,
        "calibrated": True,
        "steady": 1e-7 / 3,
        "within_tolerance_steady": True,
        "values": [13.1, 13.2],
        "note": "=note()",
    },
    {
        "id": "fig1.shape",
        "what": "The curve falls.",
        "paper": None,
        "measured": None,
        "spread": None,
        "rel_diff": None,
        "within_tolerance": True,
        "tol": None,
        "calibrated": False,
        "steady": None,
        "within_tolerance_steady": False,
        "values": [],
        "rule": "y falls",
        "found": "2 > 1",
        "found_steady": "2 < 3",
    },
]
MEANS: dict[str, Any] = {
    "header": [
        *("case", "rate_gbps", "rate_gbps_sd"),
        *("rate_gbps_steady", "rate_gbps_steady_sd", "moves"),
    ],
    "rows": [
        ["=off()", 16 / 3, 1 / 7, 17 / 3, 1 / 9, 10],
        ["on", 1e-9 / 3, "", 2 / 3, "", 123456],
        ["none", None, None, None, None, "never"],
    ],
}
"""Points of a reproduction: of several seeds, of one, and of none with a finite number."""

ROWS: list[list[str | float | None]] = [['a, "b"\n', 1 / 3, None]]
ROWS += [[f"=cmd({row})", row / 7, 1e-9 * row] for row in range(POINTS)]


def _curve(chart: str, unit: str, label: str, **parts: Any) -> dict[str, Any]:
    points = parts.pop("points")
    return {
        "chart": chart,
        "unit": unit,
        "axis": "load, %",
        "label": label,
        "points": [{"x": x, "y": y, "spread": None, "runs": [0]} for x, y in points.items()],
        "paper": [],
        "names": [],
        **parts,
    }


# So many curves that those of one name reach to the next name if nothing keeps them together.
OVER_NAMES = [
    _curve(
        *("Over names", "times", f"scheme {place}"),
        points={name: (place + 1) / (name + 3) for name in range(3)},
        names=list(NAMES),
        paper=[(1, 1 / 7)] if place == 8 else [],
    )
    for place in range(9)
]
OVER_LOADS = [
    _curve("Over loads", "", 'one, "1"', points={0.1: 1 / 3, 30: 2 / 3}, paper=[[20, 1 / 9]]),
    _curve("Over loads", "", "two", points={0.1: 0.1, 20: 1e21, 50: 1e-7 / 3}),
]


@pytest.fixture(scope="module")
def points() -> pa.Table:
    """Make the points of a sweep over three keys, one of which is a quantity."""
    numbers = np.arange(POINTS)
    columns: dict[str, Any] = {
        "switch.buffer": np.array(list(SIZES))[numbers % 3],
        "name": np.array(NAMES)[numbers // 3 % 3],
        "is.on": numbers // 9 % 2 == 0,
        "seed": (numbers // 18).astype(float),
    }
    for place, name in enumerate(MEASURES):
        columns[name] = (numbers + 1) * (place + 1) / 7
    marked: list[float | None] = (numbers.astype(float) * 1.0).tolist()
    marked[1], marked[3] = None, math.nan
    return pa.table({**columns, "marked_packets": pa.array(marked, pa.float64())})


def _points(folder: Path, points: dict[str, Any] = MEANS) -> Table:
    """Take the table of points from the report of a reproduction."""
    experiment = {"id": "fig1", "title": "", "cases": {}, "windows": ["a", "b"], "points": points}
    experiment |= {name: [] for name in ("targets", "curves", "files")}
    read = {"paper": "p", "quick": False, "overrides": {}, "runs": [], "experiments": [experiment]}
    path = folder / "reproduction.json"
    path.write_text(json.dumps(read | {"version": "1", "build": "1"}))
    (table,) = reproduction_report(path).sections[0].tables
    return table


@pytest.fixture(scope="module")
def page(
    browser: Browser, points: pa.Table, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Page]:
    """Open the page of a report that has all that reports can have."""
    folder = tmp_path_factory.mktemp("report")
    values = Table('Values, "all"', ["what_it_is", "rate, Gbit/s", "time_s"], ROWS)
    section = Section(
        "fig1",
        "Figure 1",
        "silvan",
        targets=TARGETS,
        tables=[values, _points(folder)],
        curves=[*OVER_NAMES, *OVER_LOADS],
    )
    runs = [ReportRun(f"point {row}", row, f"{row:064x}", "", "run") for row in range(POINTS)]
    report = Report(
        title="All",
        made_by="silvan",
        sections=[section],
        runs=runs,
        sweep=SweepPoints(["switch.buffer", "name", "is.on"], list(MEASURES), points),
    )
    path = write_report(report, folder / "report.html")
    with opener(browser) as opened:
        yield opened(path, **SMALL_VIEW)


@pytest.fixture(scope="module")
def files(page: Page) -> dict[str, CsvFile]:
    """Download all files, and the curves of each measure."""
    found = csv_files(page)
    for name, (words, unit, _) in MEASURES.items():
        page.get_by_role("combobox", name="of", exact=True).select_option(name)
        title = ", ".join(filter(None, (words, unit)))
        page.get_by_role("button", name=f"Download {title} by").wait_for()
        found |= csv_files(page)
    return found


def _title(name: str) -> str:
    words, unit, _ = MEASURES[name]
    return f"{f'{words}, {unit}' if unit else words} by switch.buffer, mean over the seeds"


def test_every_file_has_a_test(files: dict[str, CsvFile]) -> None:
    assert set(files) == {
        "Paper and measurement, fig1",
        'Values, "all"',
        "Points",
        "Over names",
        "Over loads",
        "Points of the sweep",
        *map(_title, MEASURES),
    }


def test_targets_are_not_rounded(files: dict[str, CsvFile]) -> None:
    shown = files["Paper and measurement, fig1"]
    for heading, values in {
        "paper": [one["paper"] for one in TARGETS],
        "measured": [one["measured"] for one in TARGETS],
        "standard deviation": [one["spread"] for one in TARGETS],
        "seeds": [2, None],
        "difference, share": [one["rel_diff"] for one in TARGETS],
        "tolerance, share": [one["tol"] for one in TARGETS],
        "steady state": [one["steady"] for one in TARGETS],
    }.items():
        assert_equal(shown.numbers(heading), values, rel=0)
    assert shown.texts("target") == ["fig1.off", "fig1.shape"]
    assert shown.texts("what") == [
        'Rate, "off", Gbit/s · =note()',
        "The curve falls. · Rule: y falls. · Found: 2 > 1. · Steady state: 2 < 3.",
    ]
    assert shown.texts("within") == ["no", "yes"]
    assert shown.texts("steady state within") == ["yes", "no"]
    assert shown.texts("calibration") == ["used", "not used"]
    assert len(shown.header) == 12


def test_the_page_shows_a_mean_with_its_deviation(page: Page) -> None:
    table = page.get_by_role("region", name="Paper and measurement, fig1")
    assert table.get_by_role("row").nth(1).get_by_role("cell").nth(3).inner_text() == (
        "13.12 ± 0.012"
    )
    headings = table.get_by_role("columnheader").all_inner_texts()
    assert [name for name in headings if "deviation" in name] == []
    assert len(table.get_by_role("row").nth(1).get_by_role("cell").all()) == len(headings) == 11


def test_means_and_their_deviations_are_not_rounded(files: dict[str, CsvFile]) -> None:
    shown = files["Points"]
    steady = "rate, Gbit/s, steady state"
    assert shown.header == [
        *("case", "rate, Gbit/s", "rate, Gbit/s, standard deviation"),
        *(steady, f"{steady}, standard deviation", "moves"),
    ]
    for place, name in enumerate(shown.header[1:-1], 1):
        values = [row[place] if row[place] != "" else None for row in MEANS["rows"]]
        assert_equal(shown.numbers(name), values, rel=0)
    assert shown.texts("case") == ["=off()", "on", "none"]
    assert shown.texts("moves") == ["10", "123456", "never"]


def test_the_page_shows_means_of_points_with_their_deviations(page: Page) -> None:
    """Oracle: four digits of 16/3 and of 1e-9/3, and two of 1/7."""
    rows = page.get_by_role("region", name="Points", exact=True).get_by_role("row")
    headings = rows.first.get_by_role("columnheader").all_inner_texts()
    assert [name.replace("\u00ad", "") for name in headings] == ["case", "rate, Gbit/s", "moves"]
    cells = [rows.nth(row).get_by_role("cell").all_inner_texts() for row in (1, 2, 3)]
    assert [row[:2] for row in cells] == [
        ["=off()", "5.333 ± 0.14"],
        ["on", "3.333e-10"],
        ["none", ""],
    ]


@pytest.mark.parametrize("rows", [5, [5], [MEANS["rows"][0][1:]]])
def test_points_of_another_shape_are_refused(rows: object, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="no readable reproduction"):
        _points(tmp_path, MEANS | {"rows": rows})


def test_all_rows_of_a_table_are_in_its_file(page: Page, files: dict[str, CsvFile]) -> None:
    shown = files['Values, "all"']
    assert shown.header == ["what it is", "rate, Gbit/s", "time s"]
    assert shown.texts("what it is") == [row[0] for row in ROWS]
    assert_equal(shown.numbers("rate, Gbit/s"), [_number(row[1]) for row in ROWS], rel=0)
    assert_equal(shown.numbers("time s"), [_number(row[2]) for row in ROWS], rel=0)
    # The page itself has fewer points, and says so.
    sweep = page.locator(".table", has_text="Points of the sweep")
    sweep.get_by_role("button", name=f"Show 1000 of {POINTS}").wait_for()


def _number(cell: str | float | None) -> float | None:
    return None if cell is None else float(cell)


def test_curves_over_names_have_their_names(files: dict[str, CsvFile]) -> None:
    shown = files["Over names"]
    names = shown.texts("name")
    assert set(names) == set(NAMES)
    assert len(shown.header) == 1 + len(OVER_NAMES) + 1
    for curve in OVER_NAMES:
        found = zip(names, shown.numbers(f"{curve['label']} (times)"), strict=True)
        values = {NAMES[point["x"]]: point["y"] for point in curve["points"]}
        assert {name: value for name, value in found if value is not None} == values
    paper = zip(names, shown.numbers("paper: scheme 8 (times)"), strict=True)
    assert [one for one in paper if one[1] is not None] == [(NAMES[1], 1 / 7)]


def test_curves_over_a_quantity(files: dict[str, CsvFile]) -> None:
    shown = files["Over loads"]
    assert shown.header == ["load, %", 'one, "1"', "two", 'paper: one, "1"']
    assert_equal(shown.numbers("load, %"), [0.1, 20, 30, 50], rel=0)
    assert_equal(shown.numbers('one, "1"'), [1 / 3, None, 2 / 3, None], rel=0)
    assert_equal(shown.numbers("two"), [0.1, 1e21, None, 1e-7 / 3], rel=0)
    assert_equal(shown.numbers('paper: one, "1"'), [None, 1 / 9, None, None], rel=0)


def test_points_of_a_sweep(points: pa.Table, files: dict[str, CsvFile]) -> None:
    shown = files["Points of the sweep"]
    headings = {name: _title(name).partition(" by ")[0] for name in MEASURES}
    keys = ["switch.buffer", "name", "is.on", "seed"]
    assert shown.header == ["point", *keys, *headings.values()]
    assert shown.texts("point") == [f"#{row + 1}" for row in range(POINTS)]
    for key in ("switch.buffer", "name"):
        assert shown.texts(key) == points[key].to_pylist()
    assert shown.texts("is.on") == [str(one).lower() for one in points["is.on"].to_pylist()]
    assert_equal(shown.numbers("seed"), points["seed"].to_pylist(), rel=0)
    for name, (_, _, divisor) in MEASURES.items():
        values = [None if one is None else one / divisor for one in points[name].to_pylist()]
        assert_equal(shown.numbers(headings[name]), values, rel=0)


@pytest.mark.parametrize("measure", MEASURES)
def test_curves_of_a_sweep(measure: str, points: pa.Table, files: dict[str, CsvFile]) -> None:
    unit, divisor = MEASURES[measure][1:]
    shown = files[_title(measure)]
    assert_equal(shown.numbers("switch.buffer (KiB)"), SIZES.values())
    sums: dict[str, dict[str, list[float]]] = {}
    for row in points.to_pylist():
        if row[measure] is not None:
            label = f"name = {row['name']}, is.on = {str(row['is.on']).lower()}"
            curve = sums.setdefault(f"{label} ({unit})" if unit else label, {})
            curve.setdefault(row["switch.buffer"], []).append(row[measure] / divisor)
    assert set(shown.header) == {"switch.buffer (KiB)", *sums}
    for label, of_sizes in sums.items():
        assert_equal(shown.numbers(label), [float(np.mean(of_sizes[size])) for size in SIZES])
