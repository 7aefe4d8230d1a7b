"""Reports whose files have another shape: the place is named, and no page is written."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import silvan
from silvan.cli import main
from silvan.sweeping.sweep import sweep
from silvan.viewer.comparison import comparison_report
from silvan.viewer.report import write_report
from silvan.viewer.reproduction import reproduction_report
from silvan.viewer.sweep import sweep_report
from tests.viewer.conftest import SCENARIO
from tests.viewer.test_damaged_sweeps import LOAD, _warnings

GONE = object()
TARGET = {
    **{"id": "fig1.rate", "what": "rate", "paper": 1.0, "measured": 0.5, "spread": None},
    **{"rel_diff": -0.5, "within_tolerance": False, "tol": 0.1, "calibrated": False},
    **{"steady": 0.5, "within_tolerance_steady": False, "values": [0.5], "note": ""},
}
POINT = {"x": 1.0, "y": 0.5, "spread": None, "cases": ["off"]}
CURVE = {
    **{"chart": "Rate", "unit": "Gbit/s", "axis": "load", "label": "off"},
    **{"points": [POINT], "paper": [[1.0, 0.6]], "names": []},
}
RUN = {
    **{"label": "off, seed 1", "scenario_hash": "0" * 64, "seed": 1, "version": "0.1.0"},
    **{"wall_s": 1.5, "events": 10, "packet_hops": 5, "folder": "none"},
}
REPRODUCTION = {
    **{"paper": "paper", "quick": False, "overrides": {}, "version": "0.1.0", "build": "0"},
    "experiments": [
        {
            **{"id": "fig1", "title": "Figure 1", "windows": ["all", "half"], "files": []},
            **{"targets": [TARGET], "curves": [CURVE], "cases": {"off": [0]}},
            "points": {"header": ["load", "rate"], "rows": [[1.0, 0.5]]},
        }
    ],
    "runs": [RUN],
}
SCHEME = {
    **{"scheme": "none", "settings": "", "standard_deviations": {}, "failure": None},
    **{"switch_bytes_per_port_vl": 0, "host_bytes": 0, "flow_bytes": 0, "message_kinds": 0},
    **{"seeds": 1, "folders": [], "other_receivers_gbps": 1.0},
}
COMPARISON = {
    **{"scenario": "a", "hash": "0", "version": "0", "build": "0", "command": "silvan"},
    **{"schemes": [SCHEME], "measures": []},
}


def changed(whole: dict[str, Any], place: str, value: object) -> dict[str, Any]:
    """Return a copy of some data with another value, or none, at a place."""
    data: Any = copy.deepcopy(whole)
    inner = data
    *way, last = (int(word) if word.isdigit() else word for word in place.split("."))
    for step in way:
        inner = inner[step]
    if value is GONE:
        del inner[last]
    else:
        inner[last] = value
    return dict(data)


def view(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Call the command, which is to refuse with a hint, and return what it says."""
    assert main(["view", str(folder), "--out", str(folder / "page.html")]) == 2
    error = capsys.readouterr().err
    assert "hint: " in error
    assert not (folder / "page.html").exists()
    return error


@pytest.mark.parametrize(
    ("place", "value", "named"),
    [
        ("experiments.0.targets.0.values", GONE, "values is missing"),
        ("experiments.0.targets.0.spread", GONE, "spread is missing"),
        ("experiments.0.targets.0.paper", "1", "fig1: targets.0.paper: '1' is no number or null"),
        ("experiments.0.curves.0.label", None, "fig1: curves.0.label: None is no text"),
        ("experiments.0.curves.0.paper", [3], "fig1: curves.0.paper.0: 3 is no list of 2 numbers"),
        ("experiments.0.curves.0.points.0.y", None, "fig1: curves.0.points.0.y"),
        ("experiments.0.cases.off", ["x"], "cases.off.0: 'x' is no whole number"),
        ("experiments.0.cases.off", [1], "there is no run 1"),
        ("experiments.0.points.rows.0.1", {}, "rows.0.1: {} is no text or number or null"),
        ("experiments.0.targets.0.measured", float("nan"), "NaN is no number"),
        ("runs.0.seed", None, "seed: None is no whole number"),
        ("runs.0.events", 10**400, "facts.events"),
        ("runs.0.label", 3, "label: 3 is no text"),
        ("runs", {}, "no readable reproduction"),
    ],
)
def test_place_in_a_reproduction_is_named(
    place: str, value: object, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = tmp_path / "reproduction.json"
    manifest.write_text(json.dumps(REPRODUCTION))
    write_report(reproduction_report(manifest), tmp_path / "whole.html")
    manifest.write_text(json.dumps(changed(REPRODUCTION, place, value)))
    error = view(tmp_path, capsys)
    assert "reproduction.json: no readable reproduction: " in error
    assert named in error


def test_a_figure_that_is_gone_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = changed(REPRODUCTION, "experiments.0.files", ["fig1.svg"])
    (tmp_path / "reproduction.json").write_text(json.dumps(whole))
    assert "fig1.svg: cannot read this drawing" in view(tmp_path, capsys)


@pytest.mark.parametrize(
    ("place", "value", "named"),
    [
        ("schemes.0.control_packets", {}, "is no text or number or null"),
        ("schemes.0.scheme", 3, "is no text"),
        ("schemes.0.failure", {"a": float("inf")}, "Infinity is no number"),
        ("schemes", None, "no readable comparison"),
        ("measures", ["nothing"], "no readable comparison: 'nothing'"),
    ],
)
def test_place_in_a_comparison_is_named(
    place: str, value: object, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = tmp_path / "compare.json"
    manifest.write_text(json.dumps(COMPARISON))
    write_report(comparison_report(manifest), tmp_path / "whole.html")
    manifest.write_text(json.dumps(changed(COMPARISON, place, value)))
    assert named in view(tmp_path, capsys)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run two points with their tables."""
    out = tmp_path_factory.mktemp("sweep") / "out"
    sweep(silvan.Scenario.from_toml(SCENARIO), {LOAD: [0.1, 0.2]}, out=out, tables=True)
    return out


@pytest.fixture
def copied(swept: Path, tmp_path: Path) -> Path:
    """Copy the sweep, so that a test may damage it."""
    from shutil import copytree

    return copytree(swept, tmp_path / "out")


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the manifest of a sweep."""
    manifest = folder / "sweep.json"
    read = json.loads(manifest.read_text())
    change(read)
    manifest.write_text(json.dumps(read))


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("simulator", GONE, "simulator is missing"),
        ("grid", {LOAD: None}, f"sweep.json.grid.{LOAD}: None is no list"),
        ("seeds", [None], "sweep.json.seeds.0: None is no whole number"),
        ("failed", [{"seed": None}], "hash is missing"),
        ("points", "2", "sweep.json.points: '2' is no whole number"),
    ],
)
def test_place_in_a_sweep_is_named(
    copied: Path, key: str, value: object, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(copied, lambda read: read.pop(key) if value is GONE else read.update({key: value}))
    assert named in view(copied, capsys)


def test_page_of_an_interrupted_sweep_says_so(copied: Path, tmp_path: Path) -> None:
    """The page of a sweep of four points that was stopped after two."""
    page = tmp_path / "page.html"
    assert _warnings(write_report(sweep_report(copied), page)) == []
    edit(copied, lambda read: read.update(points=4, grid={LOAD: [0.1, 0.2, 0.3, 0.4]}))
    (warning,) = _warnings(write_report(sweep_report(copied), page))
    assert warning.startswith("2 of 4 points are finished. To go on: silvan sweep ")
    assert f"--grid {LOAD}=0.1,0.2,0.3,0.4" in warning
    assert warning.endswith(f" --out {copied}")
    (copied / "points.parquet").unlink()
    (warning,) = _warnings(write_report(sweep_report(copied), page))
    assert warning.startswith(
        "0 of 4 points are finished. sweep.json tells of 2 more, and points.parquet lacks them. "
    )


def _without(folder: Path, table: str, column: str) -> None:
    """Drop a column of a result, and make its manifest tell of what is left."""
    file = folder / f"{table}.parquet"
    left = pq.read_table(file).drop_columns([column])
    pq.write_table(left, file)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["tables"][table] = {"rows": left.num_rows, "columns": left.column_names}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_report_goes_on_without_a_run_whose_table_lacks_a_column(
    copied: Path, tmp_path: Path
) -> None:
    damaged, _ = sorted((copied / "tables").iterdir())
    _without(damaged, "ports", "xmit_wait_ps")
    page = write_report(sweep_report(copied), tmp_path / "page.html")
    (warning,) = _warnings(page)
    assert re.match(rf"{LOAD}=0.[12] seed \d+ has no map: .*xmit_wait_ps", warning)
    assert 'id="run0-ports"' in page.read_text("utf-8")


@pytest.mark.parametrize("option", ["--out", "--perfetto"])
@pytest.mark.parametrize("kind", ["column", "nulls", "row"])
def test_tables_of_another_shape_are_refused(
    copied: Path, tmp_path: Path, kind: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = sorted((copied / "tables").iterdir())
    page = tmp_path / "page"
    file = folder / "ports.parquet"
    table = pq.read_table(file)
    place = table.column_names.index("peer")
    changes = {
        "column": table.drop_columns(["peer"]),
        "nulls": table.set_column(place, "peer", pa.nulls(len(table), table["peer"].type)),
        "row": table.slice(1),
    }
    pq.write_table(changes[kind], file)
    shape = {"rows": changes[kind].num_rows, "columns": changes[kind].column_names}
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["tables"]["ports"] = shape
    (folder / "manifest.json").write_text(json.dumps(manifest))
    status = main(["view", str(folder), option, str(page)])
    captured = capsys.readouterr()
    if option == "--perfetto" and status == 0:
        # A trace of this run has no ports, and is whole without them.
        assert json.loads(page.read_text("utf-8"))["traceEvents"]
        return
    assert status == 2
    assert "result" in captured.err
    assert "hint: " in captured.err
    assert not page.exists()
