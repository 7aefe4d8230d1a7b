"""Pages of sweeps with points that failed, or whose tables cannot be read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

import silvan
from silvan.sweeping.sweep import sweep
from silvan.viewer.report import write_report
from silvan.viewer.sweep import sweep_report
from tests.test_sweep import RING
from tests.viewer.conftest import SCENARIO, Opener, table_csv

SHIFT = "traffic.permutation.0.shift"
LOAD = "traffic.uniform.0.load"


def _warnings(page: Path) -> list[str]:
    """Read what the page warns of, from the data in it."""
    found = re.search(r'id="page">(.*?)</script>', page.read_text("utf-8"))
    assert found is not None
    facts: dict[str, Any] = json.loads(found[1])
    return list(facts["report"]["warnings"])


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("shifts", [[2], [1, 2]])
def test_failed_points_are_listed(open_page: Opener, tmp_path: Path, shifts: list[int]) -> None:
    """Oracle: the failures that the sweep returns, of a shift with a credit loop."""
    result = sweep(silvan.Scenario.from_toml(RING), {SHIFT: shifts}, seeds=2, out=tmp_path / "out")
    assert len(result.failures) == 2
    page = open_page(write_report(sweep_report(tmp_path / "out"), tmp_path / "page.html"))
    rows = table_csv(page, "Failed points")
    errors = {one.seed: one.error for one in result.failures}
    assert [row["error"] for row in rows] == [errors[1], errors[2]]
    assert [row["point"] for row in rows] == [f"{SHIFT}=2 seed {seed}" for seed in (1, 2)]
    attempts = {one.seed: one.attempts for one in result.failures}
    assert [int(row["attempts"]) for row in rows] == [attempts[1], attempts[2]]
    for row in rows:
        scenario = tmp_path / "out" / row["scenario that runs it again"]
        assert row["point"] in scenario.read_text()
    expect(page.get_by_role("article")).to_contain_text(f"2 of {2 * len(shifts)} points failed")
    # Without a finished point there is nothing to choose, and no curve.
    is_drawn = len(shifts) > 1
    assert page.get_by_role("combobox", name="Curves over").count() == is_drawn
    if not is_drawn:
        expect(page.get_by_role("article")).not_to_contain_text("Nothing varies")


def test_tables_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    """A table that is cut off, one that is gone, a scenario of another fabric; one is whole."""
    out = tmp_path / "out"
    loads = [0.1, 0.2, 0.3, 0.4]
    result = sweep(silvan.Scenario.from_toml(SCENARIO), {LOAD: loads}, out=out, tables=True)
    folders = [out / "tables" / row["hash"][:16] for row in result.points.to_pylist()]
    ports = folders[0] / "ports.parquet"
    ports.write_bytes(ports.read_bytes()[:100])
    (folders[1] / "hosts.parquet").unlink()
    manifest = json.loads((folders[2] / "manifest.json").read_text())
    manifest["scenario"] = manifest["scenario"].replace("k = 4", "k = 5")
    (folders[2] / "manifest.json").write_text(json.dumps(manifest))
    page = write_report(sweep_report(out), tmp_path / "page.html")
    reasons = ("ports.parquet|Parquet", "it has no hosts.parquet", "not of the fabric")
    warnings = _warnings(page)
    assert len(warnings) == len(reasons)
    for load, reason, warning in zip(loads, reasons, warnings, strict=False):
        assert warning.startswith(f"{LOAD}={load} seed "), warning
        assert re.search(reason, warning), warning
    assert 'id="run0-ports"' in page.read_text("utf-8")
    assert 'id="run1-ports"' not in page.read_text("utf-8")
