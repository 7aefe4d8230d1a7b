"""Anybody can use the page: with keys only, on a phone, in the dark, with a screen reader."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from silvan.viewer.diagnosis import write_diagnosis
from tests.subnet_dumps import dumped_moment
from tests.viewer.conftest import Opener, wait_until_idle

pytestmark = pytest.mark.needs("chromium")

PHONE = {"viewport": {"width": 320, "height": 640}, "has_touch": True}
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}


def findings(page: Page) -> list[tuple[str, str, list[Any]]]:
    """List what axe-core finds serious or critical."""
    return [
        (one["id"], one["help"], [node["target"] for node in one["nodes"]])
        for one in Axe().run(page, options=RULES).response["violations"]
        if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [{}, PHONE], ids=["desk", "phone"])
def test_axe_finds_nothing_serious(
    open_page: Opener, page_file: Path, scheme: str, size: dict[str, Any]
) -> None:
    page = open_page(page_file, "select=node:host-0004", color_scheme=scheme, **size)
    assert findings(page) == []
    field = page.get_by_role("combobox", name="Search")
    field.fill("host")
    page.get_by_role("tab", name="Trees").focus()
    assert findings(page) == []


def test_axe_finds_nothing_serious_in_a_comparison(
    open_page: Opener, comparison_file: Path
) -> None:
    assert findings(open_page(comparison_file)) == []


@pytest.fixture
def diagnosis_file(tmp_path: Path) -> Path:
    """Write the page of a subnet with a tree: verdict, hosts and health."""
    return write_diagnosis([dumped_moment(tmp_path, 9)], tmp_path / "diagnosis.html", "Subnet")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [{}, PHONE], ids=["desk", "phone"])
def test_axe_finds_nothing_serious_in_a_diagnosis(
    open_page: Opener, diagnosis_file: Path, scheme: str, size: dict[str, Any]
) -> None:
    page = open_page(diagnosis_file, "select=node:a HCA-1", color_scheme=scheme, **size)
    expect(page.get_by_role("region", name="Diagnosis")).to_be_visible()
    assert findings(page) == []


@pytest.mark.parametrize("name", ["page_file", "comparison_file", "diagnosis_file"])
def test_nothing_is_wider_than_a_phone(
    open_page: Opener, name: str, request: pytest.FixtureRequest
) -> None:
    page = open_page(request.getfixturevalue(name), "select=tree:0", **PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    canvas = page.locator(".map").first.bounding_box()
    assert canvas is not None
    assert canvas["width"] > 300
    assert canvas["height"] > 200


@pytest.mark.parametrize("width", [320, 1400, 2560])
def test_no_column_of_a_ranking_is_cut(open_page: Opener, page_file: Path, width: int) -> None:
    page = open_page(page_file, viewport={"width": width, "height": 900})
    for name in ("Ports", "Trees", "Victims", "Culprits"):
        page.get_by_role("tab", name=name).click()
        table = page.locator("#ranking .scroll")
        assert table.locator("tbody tr").count() > 0
        assert table.evaluate("one => one.scrollWidth <= one.clientWidth"), name


@pytest.mark.parametrize("width", [320, 768, 1200, 1400, 2560])
def test_no_column_of_a_comparison_is_cut(
    open_page: Opener, comparison_file: Path, width: int
) -> None:
    page = open_page(comparison_file, viewport={"width": width, "height": 900})
    table = page.get_by_role("region", name="Differences")
    assert table.evaluate("table => table.scrollWidth <= table.clientWidth")


def test_no_panel_of_a_wide_page_is_torn(open_page: Opener, page_file: Path) -> None:
    page = open_page(page_file, viewport={"width": 2560, "height": 900})
    for panel in page.locator(".panels section").all():
        # A panel that a column breaks has a rectangle for each part.
        assert panel.evaluate("one => one.getClientRects().length") == 1


def test_the_system_decides_between_light_and_dark(open_page: Opener, page_file: Path) -> None:
    page = open_page(page_file, color_scheme="dark")
    body = page.locator("body")
    expect(body).to_have_css("background-color", "rgb(18, 23, 29)")
    page.emulate_media(color_scheme="light")
    expect(body).to_have_css("background-color", "rgb(255, 255, 255)")
    page.get_by_role("combobox", name="Colours", exact=True).select_option("dark")
    expect(body).to_have_css("background-color", "rgb(18, 23, 29)")


def reached(page: Page) -> list[str]:
    """Press Tab through the page, and name what is reached."""
    names: list[str] = []
    for _ in range(400):
        page.keyboard.press("Tab")
        name = page.evaluate(
            "() => { const one = document.activeElement; if (one === document.body) return null;"
            "one.dataset.reached = 'true';"
            "const style = getComputedStyle(one);"
            # The map has its ring above its canvases.
            "const above = getComputedStyle(one, '::after');"
            "const isSeen = style.outlineStyle !== 'none'"
            " || (above.content !== 'none' && above.outlineStyle !== 'none');"
            "if (!isSeen) throw new Error('no focus ring: ' + one.outerHTML);"
            "return one.getAttribute('aria-label') ?? one.textContent; }"
        )
        if name is None:
            break
        names.append(name)
    return names


def missed(page: Page) -> list[str]:
    """List the controls that `reached` has not come to."""
    found: list[str] = page.evaluate(
        "() => [...document.querySelectorAll('button, select, input, summary')]"
        ".filter((one) => !one.disabled && one.tabIndex >= 0 && one.checkVisibility()"
        " && !one.dataset.reached).map((one) => one.outerHTML)"
    )
    return found


@pytest.mark.parametrize(
    ("name", "title", "port"),
    [("page_file", "sixteen", "leaf-00:1"), ("diagnosis_file", "Subnet", "left:3")],
)
def test_keys_reach_every_control(
    open_page: Opener, name: str, title: str, port: str, request: pytest.FixtureRequest
) -> None:
    page = open_page(request.getfixturevalue(name), f"select=port:{port}")
    names = reached(page)
    assert missed(page) == []
    assert any(name.startswith(f"Map of {title}") for name in names)


def test_tabs_move_by_arrows(open_page: Opener, page_file: Path) -> None:
    page = open_page(page_file)
    page.get_by_role("tab", name="Ports").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Trees")).to_be_focused()
    expect(page.get_by_role("tab", name="Trees")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("tab", name="Culprits")).to_be_focused()
    for key, name in (("Home", "Ports"), ("End", "Culprits")):
        page.keyboard.press(key)
        expect(page.get_by_role("tab", name=name)).to_be_focused()


def test_fingers_drag_and_pinch_the_map(open_page: Opener, page_file: Path) -> None:
    page = open_page(page_file, **PHONE)
    session = page.context.new_cdp_session(page)
    box = page.locator(".map").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def touch(kind: str, *places: tuple[float, float]) -> None:
        points = [{"x": left, "y": top, "id": at} for at, (left, top) in enumerate(places)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", (x - 20, y), (x + 20, y))
    touch("touchMove", (x - 60, y), (x + 60, y))
    touch("touchEnd")
    wait_until_idle(page)
    camera = page.url.partition("camera=")[2]
    assert camera, "two fingers have not moved the camera"
    before = float(camera.split("%2C")[2])
    touch("touchStart", (x - 60, y), (x + 60, y))
    touch("touchMove", (x - 20, y), (x + 20, y))
    touch("touchEnd")
    wait_until_idle(page)
    after = float(page.url.partition("camera=")[2].split("%2C")[2])
    assert before - after == pytest.approx(math.log2(3), abs=0.05)


def test_charts_and_map_have_descriptions(open_page: Opener, page_file: Path) -> None:
    page = open_page(page_file)
    for chart in page.get_by_role("img").all():
        text = chart.get_attribute("aria-label") or ""
        assert text.startswith("Chart of ")
        assert "% of packets at most" in text if "Latency" in text else "mean" in text
    assert page.locator("canvas:not([aria-hidden]):not(.uplot canvas)").count() == 0


def test_the_page_prints_without_controls(open_page: Opener, page_file: Path) -> None:
    page = open_page(page_file)
    page.emulate_media(media="print")
    expect(page.get_by_role("toolbar")).to_be_hidden()
    expect(page.get_by_text("by traffic class")).to_be_hidden()
    expect(page.get_by_role("heading", name="Receive rates")).to_be_visible()
    assert page.pdf().startswith(b"%PDF")
