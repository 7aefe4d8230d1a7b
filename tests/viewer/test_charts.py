"""Canvas of charts: dots of events, and names in any script."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from playwright.sync_api import Page

import silvan
from silvan.viewer import write_page
from silvan.viewer.report import Report, ReportRun, Section, write_report
from tests.conftest import ddr_scenario
from tests.viewer.conftest import Opener

pytestmark = pytest.mark.needs("chromium")

OVERRIDE, HEBREW = "\u202e", "\u05d0\u05d1"
ISOLATED = f"\u2068{HEBREW}\u2069"

# Columns of pixels in the colour of events, at the height of the middle of their dots.
DOTS = """canvas => {
  const over = canvas.closest(".uplot").querySelector(".u-over").getBoundingClientRect();
  const box = canvas.getBoundingClientRect();
  const scale = canvas.width / box.width;
  const y = Math.round((over.top - box.top + 4) * scale);
  const { data } = canvas.getContext("2d").getImageData(0, y, canvas.width, 1);
  const faint = [0x5b, 0x67, 0x73];
  const columns = [];
  for (let x = 0; x < canvas.width; x++) {
    const at = [...data.slice(4 * x, 4 * x + 4)];
    const isNear = faint.every((part, place) => Math.abs(at[place] - part) < 12);
    if (at[3] > 200 && isNear) columns.push(x);
  }
  return { columns, left: (over.left - box.left) * scale, right: (over.right - box.left) * scale };
}"""


@pytest.mark.parametrize("ratio", [1, 2])
def test_dots_at_both_ends_are_whole(open_page: Opener, tmp_path: Path, ratio: int) -> None:
    """Oracle: a dot in the middle of the chart has the same width."""
    instants = [0, 50_000_000, 100_000_000]
    run = silvan.run(
        ddr_scenario(
            fabric={"generator": "single-switch", "hosts": 4},
            traffic={"incast": [{"to": "host-0000"}]},
            control={"scheme": "ib-cc", "ib-cc": {"switch": {"marking-rate": 128}}, "dcms": {}},
            probe={"interval": "10 us", "ports": True, "trees": {}},
            run={"duration": "100 us"},
        )
    )
    decisions = pa.table(
        {
            "time_ps": pa.array(instants, pa.uint64()),
            "port": ["switch-00:1"] * 3,
            "reason": ["a test"] * 3,
            "marking_rate": [0, 1, 2],
        }
    )
    run = silvan.Result(run.scenario, run.seed, {**run.tables, "dcms": decisions}, run.summary)
    page = open_page(
        write_page([run], tmp_path / "page.html"), "theme=light", device_scale_factor=ratio
    )
    found = page.locator(".time .uplot canvas").evaluate(DOTS)
    left, right = found["left"], found["right"]
    near = {
        place: [x - place for x in found["columns"] if abs(x - place) <= 6 * ratio]
        for place in (left, (left + right) / 2, right)
    }
    for offsets in near.values():
        assert min(offsets) == pytest.approx(-4 * ratio, abs=1.6)
        assert max(offsets) == pytest.approx(4 * ratio, abs=1.6)


def _written(page: Page, path: Path) -> list[str]:
    """Open a page, and return what is written on its canvases."""
    page.add_init_script(
        "window.written = []; const write = CanvasRenderingContext2D.prototype.fillText;"
        "CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {"
        " window.written.push(String(text)); return write.call(this, text, ...rest); };"
    )
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=true]", state="attached")
    page.wait_for_function("window.written.length > 8")
    written: list[str] = page.evaluate("window.written")
    return written


def test_names_on_a_canvas_change_no_direction_around_them(
    open_page: Opener, tmp_path: Path
) -> None:
    """Oracle: the Unicode Standard, annex 9: nothing outside of FSI and PDI changes direction."""
    names = [f"{OVERRIDE}host", f"{HEBREW}:12"]
    curve = {
        "chart": f"Rates of {HEBREW}, and {OVERRIDE}b",
        "unit": f"Gbit/s of {HEBREW}",
        "axis": f"{OVERRIDE}of {HEBREW}",
        "label": f"to {HEBREW}, {OVERRIDE}c",
        "points": [{"x": float(x), "y": 1.0, "spread": None, "runs": [0]} for x in range(2)],
        "paper": [],
        "names": [],
    }
    other = curve | {"chart": "Other", "names": names, "axis": ""}
    run = ReportRun(label="run", seed=1, hash="0", scenario="", name="run")
    section = Section(id="a", title="A", command="silvan", curves=[curve, other])
    path = write_report(
        Report(title="Report", made_by="silvan", sections=[section], runs=[run]),
        tmp_path / "report.html",
    )
    page = open_page(path)
    written = [text for text in _written(page, path) if HEBREW in text or "\ufffd" in text]
    shown = page.locator(".chart figcaption span, .chart .legend li").all_inner_texts()
    assert "\ufffdhost" in written
    assert f"{ISOLATED}:12" in written
    assert f"Gbit/s of {ISOLATED}" in written
    assert f"\ufffdof {ISOLATED}" in written
    for text in (*written, *shown):
        assert OVERRIDE not in text
        assert HEBREW not in text.replace(ISOLATED, "")
    assert any(text.startswith(f"to {ISOLATED}, \ufffdc") for text in shown)
