"""Pages on paper: all of a report, nothing beyond the edge, on a white ground."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from silvan.viewer.report import Report, ReportRun, Section, Table, write_report
from tests.viewer.conftest import Opener, wait_until_idle

pytestmark = pytest.mark.needs("chromium")

SCHEMES = [f"scheme-{number}" for number in range(24)]
# Pixels between the margins of A4, of 210 mm less 2 x 12 mm, and between two charts.
PAPER, GAP = (210 - 24) / 25.4 * 96, 18

# Widths of charts at the moment when the browser lays out paper, after their own listeners.
WATCH = """() => addEventListener("beforeprint", () => queueMicrotask(() => {
  window.printed = [...document.querySelectorAll(".uplot")].map((one) => one.offsetWidth);
}))"""

# Places of the line of the instant, as a share of the width of the drawing, and parts beyond it.
PLACES = """() => [...document.querySelectorAll(".plot:has(.marker:not([hidden]))")].map((plot) => {
  const canvas = plot.querySelector("canvas").getBoundingClientRect();
  const marker = plot.querySelector(".marker").getBoundingClientRect();
  const share = (at) => (at - canvas.left) / canvas.width;
  return {
    beyond: canvas.right - plot.getBoundingClientRect().right,
    at: share(marker.left),
    top: (marker.top - canvas.top) / canvas.height,
    bottom: (marker.bottom - canvas.top) / canvas.height,
  };
})"""


@pytest.fixture(scope="module")
def schemes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a report of all schemes, as two charts and a table."""
    curves = [
        {
            "chart": chart,
            "unit": "Gbit/s",
            "axis": "load",
            "label": scheme,
            "points": [
                {"x": float(x), "y": place + 1.0 + x, "spread": None, "runs": [0]} for x in range(3)
            ],
            "paper": [],
            "names": [],
        }
        for chart in ("Victims", "Hotspots")
        for place, scheme in enumerate(SCHEMES)
    ]
    words = "a sentence about this scheme, which is so long that it would be shortened as a name"
    table = Table(
        title="Schemes",
        columns=["scheme", "rate, Gbit/s", "settings"],
        rows=[[scheme, float(place), words] for place, scheme in enumerate(SCHEMES)],
        runs=[[0]] * len(SCHEMES),
    )
    run = ReportRun(label="run", seed=1, hash="0", scenario="", name="run")
    section = Section(id="a", title="A", command="silvan", curves=curves, tables=[table])
    return write_report(
        Report(title="Report", made_by="silvan", sections=[section], runs=[run]),
        tmp_path_factory.mktemp("schemes") / "report.html",
    )


def test_charts_are_as_wide_as_paper(open_page: Opener, schemes: Path, page_file: Path) -> None:
    """Oracle: the width of A4 within the margins, of two charts next to each other half of it."""
    wide = {"viewport": {"width": 1920, "height": 1080}}
    for file, most in ((schemes, (PAPER - GAP) / 2), (page_file, PAPER)):
        page = open_page(file, **wide)
        before = page.locator(".uplot").first.bounding_box()
        page.evaluate(WATCH)
        assert page.pdf(format="A4").startswith(b"%PDF")
        widths = page.evaluate("window.printed")
        assert len(widths) >= 2
        assert all(0.8 * most < width <= most for width in widths)
        # The screen is as before.
        expect(page.locator(".uplot").first).to_be_visible()
        assert page.locator(".uplot").first.bounding_box() == before


def test_what_was_drawn_for_a_screen_fits_on_paper(open_page: Opener, page_file: Path) -> None:
    """While a browser lays out paper, no observer of sizes runs: so it is on this page.

    Oracle: the places of the lines where there is room for what was drawn.
    """
    page = open_page(page_file, "t=0.3")
    page.add_init_script("window.ResizeObserver = class { observe() {} disconnect() {} };")
    page.reload()
    page.wait_for_selector("html[data-ready=true]", state="attached")
    wait_until_idle(page)
    page.emulate_media(media="print")
    wait_until_idle(page)
    before = page.evaluate(PLACES)
    assert 0.3 < before[0]["at"] < 0.95
    page.evaluate("document.querySelectorAll('.plot').forEach((one) => one.style.width = '280px')")
    for old, new in zip(before, page.evaluate(PLACES), strict=True):
        assert new["beyond"] <= 0.5
        # A line is a pixel wide.
        for name in ("at", "top", "bottom"):
            assert new[name] == pytest.approx(old[name], abs=0.02)


def test_a_report_has_all_of_its_schemes_on_paper(open_page: Opener, schemes: Path) -> None:
    page = open_page(schemes)
    page.emulate_media(media="print")
    wait_until_idle(page)
    table = page.get_by_role("region", name="Schemes")
    for scheme in SCHEMES:
        expect(table.get_by_role("cell", name=scheme, exact=True)).to_be_visible()
    expect(page.get_by_text("The first", exact=False)).to_have_count(0)
    expect(table.get_by_role("cell", name="shortened as a name")).to_have_count(len(SCHEMES))
    assert page.evaluate("document.documentElement.scrollWidth") <= 1200


def test_all_curves_of_a_chart_look_different(open_page: Opener, schemes: Path) -> None:
    lines = open_page(schemes).locator("figure.chart", has_text="Victims").locator(".legend line")
    looks = [
        (one.get_attribute("stroke"), one.get_attribute("stroke-dasharray")) for one in lines.all()
    ]
    assert len(looks) == len(SCHEMES)
    assert len(set(looks)) == len(SCHEMES)


def test_a_map_of_a_dark_page_is_white_on_paper(open_page: Opener, page_file: Path) -> None:
    page = open_page(page_file, "theme=dark")
    page.emulate_media(media="print")
    wait_until_idle(page)
    assert _corner(page).min() >= 250


def _corner(page: Page) -> np.ndarray:
    """Pixels of the map where nothing is drawn."""
    shown = Image.open(io.BytesIO(page.locator(".map").screenshot())).convert("RGB")
    return np.asarray(shown)[2:8, -8:-2]
