"""Dragging, wheel and search at their limits; printing, files and forced colours."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import silvan
from silvan.viewer import write_page
from tests.conftest import ddr_scenario
from tests.viewer.conftest import Opener, table_csv, wait_until_idle

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


def test_a_printed_page_says_its_instant_and_what_it_leaves_out(
    open_page: Opener, page_file: Path
) -> None:
    page = open_page(page_file, "t=0.1")
    rows = len(table_csv(page, "Ports, "))
    note = page.get_by_text(f"The first 12 of {rows} rows.")
    expect(note).to_be_hidden()
    page.emulate_media(media="print")
    expect(page.get_by_text("t = 0.1 ms", exact=True)).to_be_visible()
    expect(page.get_by_role("slider", name="Instant")).to_be_hidden()
    expect(note).to_be_visible()


def test_files_have_numbers_that_are_not_rounded(
    open_page: Opener, page_file: Path, run: silvan.Result
) -> None:
    """Oracle: the tables of the run."""
    host = run.hosts["name"][4].as_py()
    page = open_page(page_file, f"t=0.4&select=node:{host}")
    facts = {row["name"]: row for row in table_csv(page, f"host {host} at 0.4 ms")}
    last = max(run.tree_hosts["time_ps"].to_pylist())
    row = max(
        (one for one in run.tree_hosts.to_pylist() if (one["time_ps"], one["host"]) == (last, 4)),
        key=lambda one: int(one["contributing_bytes"]),
    )
    contributed = facts[f"tree {row['tree']}, contributes"]
    assert int(contributed["value"]) == row["contributing_bytes"]
    assert contributed["unit"] == "bytes"
    whole = {row["name"]: row for row in table_csv(page, "Run as CSV")}
    total = int(np.sum(run.hosts["delivered_bytes"].to_numpy())) * 8e3 / 400e6
    delivered = whole["total delivered, payload"]
    assert float(delivered["value"]) == pytest.approx(total, rel=1e-12)
    assert delivered["unit"] == "Gbit/s"


def test_a_window_of_a_picosecond_is_in_the_address(open_page: Opener, page_file: Path) -> None:
    page = open_page(page_file, "window=0-0.1")
    field = page.get_by_role("spinbutton", name="to")
    field.fill("1e-9")
    field.press("Enter")
    expect(field).to_have_value("0.000000001")
    assert "window=0-0.000000001&" in _address(page)
    page.reload()
    expect(field).to_have_value("0.000000001")


def test_an_empty_distribution_is_not_said_to_be_unrecorded(
    open_page: Opener, tmp_path: Path
) -> None:
    scenario = ddr_scenario(
        fabric={"generator": "single-switch", "hosts": 3},
        traffic={"incast": [{"to": "host-0000"}]},
        probe={"latency": "host"},
        run={"duration": "20 us"},
    )
    page = open_page(
        write_page([silvan.run(scenario)], tmp_path / "page.html"), "select=node:host-0001"
    )
    region = page.get_by_role("region", name="Latency of packets")
    expect(region).to_contain_text("No packet was received.")
    expect(region).not_to_contain_text("Nothing was recorded")


def test_a_selection_says_of_which_instants_its_numbers_are(
    open_page: Opener, tmp_path: Path
) -> None:
    """Oracle: ports are sampled each 10 us, trees each 300 us; at 5 us both come later."""
    scenario = ddr_scenario(
        fabric={"generator": "leaf-spine", "leaf-hosts": [4, 4], "spine-cables": [1, 1]},
        traffic={"incast": [{"to": "host-0000", "from": ["host-0004", "host-0005"]}]},
        probe={"interval": "10 us", "ports": True, "trees": {"interval": "300 us"}},
        run={"duration": "400 us"},
    )
    run = silvan.run(scenario)
    root = run.ports.slice(run.tree_lifetimes["root_row"][0].as_py(), 1).to_pylist()[0]
    name = f"{root['node']}:{root['port']}"
    file = write_page([run], tmp_path / "page.html")
    page = open_page(file, f"t=0.005&select=port:{name}")
    names = {row["name"] for row in table_csv(page, f"port {name}")}
    assert {"queue at 0.01 ms", "queued in the tree at 0.3 ms"} <= names
    page = open_page(file, f"t=0.3&select=port:{name}")
    names = {row["name"] for row in table_csv(page, f"port {name}")}
    assert {"queue", "queued in the tree"} <= names


def test_the_instant_is_seen_with_forced_colours(open_page: Opener, page_file: Path) -> None:
    page = open_page(page_file, "t=0.1", forced_colors="active")
    marker = page.locator(".marker").first
    colours = marker.evaluate(
        "one => [one, document.body].map(each => getComputedStyle(each).backgroundColor)"
    )
    assert colours[0] != colours[1]
