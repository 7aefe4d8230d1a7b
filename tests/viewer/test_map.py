"""The map keeps its place, and its files show what the page shows."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qs
from xml.etree import ElementTree

import pytest
from playwright.sync_api import expect

import silvan
from silvan.viewer import write_page
from tests.viewer.conftest import Opener, downloaded, wait_until_idle

pytestmark = pytest.mark.needs("chromium")

SPACE = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def rare_file(run: silvan.Result, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the page of a run whose trees were sampled each 80 us, and the ports each 20 us."""
    rare = silvan.run(run.scenario.override({"probe.trees.interval": "80 us"}))
    return write_page([rare], tmp_path_factory.mktemp("rare") / "run.html")


def test_the_map_keeps_its_height(open_page: Opener, rare_file: Path) -> None:
    """Neither trees of another instant nor a search without a result move what is below them."""
    for width in (1366, 1440):
        page = open_page(rare_file, "t=0.16", viewport={"width": width, "height": 768})
        area = page.locator(".map")
        box = area.bounding_box()
        note = page.get_by_text("trees of ")
        expect(note).to_have_count(0)
        page.get_by_role("button", name="One sample on").click()
        expect(note).to_have_text("trees of 0.16 ms")
        assert area.bounding_box() == box
        page.get_by_role("combobox", name="Search").fill("nonsense")
        expect(page.get_by_text("nothing found")).to_be_visible()
        assert area.bounding_box() == box


def test_a_drawing_says_of_when_its_trees_are_and_what_is_selected(
    open_page: Opener, rare_file: Path
) -> None:
    page = open_page(rare_file, "t=0.3&select=node:host-0004&theme=light")
    drawing = ElementTree.fromstring(
        downloaded(page, page.get_by_role("button", name="Download the map as SVG"))
    )
    texts = [one.text or "" for one in drawing.iter(f"{SPACE}text")]
    assert any(text.endswith(", t = 0.3 ms, trees of 0.24 ms") for text in texts)
    assert "selection: its way, and what holds it up" in texts
    rows = ["senders", "switches, way up", "highest switches", "switches, way down", "receivers"]
    heights = [
        float(one.get("y", 0))
        for name in rows
        for one in drawing.iter(f"{SPACE}text")
        if one.text == name
    ]
    assert len(heights) == len(rows)
    assert heights == sorted(heights)
    names = [
        one
        for one in drawing.iter(f"{SPACE}text")
        if re.fullmatch(r"T\d+|(leaf|spine)-\d+", one.text or "")
    ]
    assert len(names) > 4
    # An edge in the colour of the page is below the letters.
    assert {(one.get("stroke"), one.get("paint-order")) for one in names} == {("#ffffff", "stroke")}


def test_a_drawing_of_two_runs_has_both_maps(
    open_page: Opener, comparison_file: Path, run: silvan.Result, controlled: silvan.Result
) -> None:
    page = open_page(comparison_file, "t=0.4")
    labels = page.locator(".one-map figcaption").all_inner_texts()
    drawing = ElementTree.fromstring(
        downloaded(page, page.get_by_role("button", name="Download the map as SVG"))
    )
    maps = list(drawing.iter(f"{SPACE}svg"))[1:]
    assert len(maps) == 2
    for one, label, result in zip(maps, labels, (run, controlled), strict=True):
        texts = [text.text or "" for text in one.iter(f"{SPACE}text")]
        assert texts[0] == f"{label}, t = 0.4 ms"
        standing = result.forest["trees"].to_pylist()[-1]
        assert len(one.findall(f"{SPACE}polygon")) == standing
    places = [
        float(re.findall(r"[\d.]+", group.get("transform", ""))[0])
        for group in drawing.findall(f"{SPACE}g")
    ]
    assert places[0] == 0
    assert places[1] >= float(maps[0].get("width", 0))
    assert float(drawing.get("width", 0)) >= places[1] + float(maps[1].get("width", 0))


def test_a_search_for_a_host_shows_the_root_that_holds_it_up(
    open_page: Opener, page_file: Path
) -> None:
    """Oracle: the map is as far away as for the flow of which it waits."""
    page = open_page(page_file, "t=0.4")
    cameras = []
    for text in ("host-0004", "host-0004 > host-0000"):
        page.get_by_role("button", name="Whole map").click()
        field = page.get_by_role("combobox", name="Search")
        field.fill(text)
        field.press("Enter")
        wait_until_idle(page)
        chain = page.locator(".chain:not(.way) button").all_inner_texts()
        way = page.locator(".chain.way button").all_inner_texts()
        assert set(chain) <= set(way)
        camera = parse_qs(page.url.split("#")[1])["camera"][0]
        cameras.append([float(part) for part in camera.split(",")])
    # The way ends one cable after the root, or there.
    assert cameras[0][2] == pytest.approx(cameras[1][2], abs=0.5)
