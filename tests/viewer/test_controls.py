"""Dragging, wheel and search at their limits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.viewer.conftest import Opener, wait_until_idle

pytestmark = pytest.mark.needs("chromium")


def _address(page: Page) -> str:
    wait_until_idle(page)
    return page.url.partition("#")[2]


def _camera(page: Page) -> tuple[float, float, float]:
    words = re.search(r"camera=([-\d.]+)%2C([-\d.]+)%2C([-\d.]+)", _address(page))
    assert words is not None
    x, y, zoom = map(float, words.groups())
    return x, y, zoom


@pytest.mark.parametrize("chart", ["Congestion over time", "Mean receive rate"])
@pytest.mark.parametrize("down", [-40, 0, 60, 200])
def test_a_drag_marks_what_lies_between_its_ends(
    open_page: Opener, page_file: Path, chart: str, down: int
) -> None:
    """Oracle: 0.4 ms over the width of the chart; only the horizontal position counts."""
    page = open_page(page_file, "t=0.1")
    over = page.get_by_role("img", name=f"Chart of {chart}").locator(".u-over")
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    left, right = (box["x"] + share * box["width"] for share in (0.25, 0.5))
    page.mouse.move(left, middle)
    page.mouse.down()
    page.mouse.move(right, middle, steps=3)
    page.mouse.move(right, middle + down, steps=5)
    page.mouse.up()
    address = _address(page)
    window = re.search(r"window=([\d.]+)-([\d.]+)", address)
    assert window is not None
    pixel = 0.4 / box["width"]
    assert [float(end) for end in window.groups()] == pytest.approx([0.1, 0.2], abs=2 * pixel)
    assert "t=0.1&" in address


def test_a_drag_beyond_the_chart_ends_at_its_edge(open_page: Opener, page_file: Path) -> None:
    page = open_page(page_file)
    over = page.get_by_role("img", name="Chart of Mean receive rate").locator(".u-over")
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 2, middle)
    page.mouse.down()
    page.mouse.move(box["x"] - 30, middle + 10, steps=5)
    page.mouse.up()
    window = re.search(r"window=([\d.]+)-([\d.]+)", _address(page))
    assert window is not None
    pixel = 0.4 / box["width"]
    assert [float(end) for end in window.groups()] == pytest.approx([0, 0.2], abs=2 * pixel)


@pytest.mark.parametrize(("wheel", "button"), [(-800, "Zoom in"), (800, "Zoom out")])
def test_at_a_limit_of_the_zoom_nothing_moves(
    open_page: Opener, page_file: Path, wheel: int, button: str
) -> None:
    page = open_page(page_file)
    box = page.locator(".map").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 3, box["y"] + box["height"] / 3)
    for _ in range(12):
        page.mouse.wheel(0, wheel)
    limit = _camera(page)
    page.mouse.move(box["x"] + 20, box["y"] + 20)
    page.mouse.wheel(0, wheel)
    assert _camera(page) == limit
    page.get_by_role("button", name=button).click()
    assert _camera(page) == limit


def test_a_port_is_found_in_capital_letters(open_page: Opener, page_file: Path) -> None:
    page = open_page(page_file)
    field = page.get_by_role("combobox", name="Search")
    field.fill("LEAF-00:1")
    field.press("Enter")
    expect(page.get_by_role("heading", name="Port leaf-00:1", exact=True)).to_be_visible()
