"""The panel of a selection, and its CSV with all rows."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

import silvan
from silvan.viewer import write_page
from silvan.viewer.tables import page_tables
from tests.viewer.conftest import Opener, table_csv

pytestmark = pytest.mark.needs("chromium")

LAST = "t=0.4&theme=light"


def _panel_items(page: Page) -> list[str]:
    panel = page.locator("section[aria-labelledby=selection-title]")
    items = panel.locator(".chain li, .members li")
    return [" ".join(text.split()) for text in items.all_inner_texts()]


def test_the_csv_of_a_selection_has_all_that_the_panel_lists(
    open_page: Opener, page_file: Path, run: silvan.Result
) -> None:
    """Oracle: the members and hosts of trees in the tables of the run."""
    tree = int(run.tree_lifetimes["peak_queued_bytes"].to_numpy().argmax())
    ports = run.ports.to_pylist()
    last = run.forest["time_ps"].to_pylist()[-1]
    members = {
        f"{ports[one['ports_row']]['node']}:{ports[one['ports_row']]['port']}": one["queued_bytes"]
        for one in run.tree_ports.to_pylist()
        if (one["time_ps"], one["tree"]) == (last, tree)
    }
    names = run.hosts["name"].to_pylist()
    hosts = [
        {"name": names[one["host"]], **one}
        for one in run.tree_hosts.to_pylist()
        if (one["time_ps"], one["tree"]) == (last, tree)
    ]
    assert len(members) > 2
    page = open_page(page_file, f"{LAST}&select=tree:{tree}")
    rows = {row["name"]: row for row in table_csv(page, f"tree {tree} at 0.4 ms")}
    listed = {
        rows[f"{name} {place}"]["value"]: rows[f"{name} {place}, queued in the tree"]
        for name in ("port", "source")
        for place in range(1, len(members) + 1)
        if f"{name} {place}" in rows
    }
    assert {name: int(row["value"]) for name, row in listed.items()} == members
    assert {row["unit"] for row in listed.values()} == {"bytes"}
    for name, amount, key in [
        ("contributor", "contributes", "contributing_bytes"),
        ("host with victims", "held up", "victim_bytes"),
    ]:
        expected = {one["name"]: one[key] for one in hosts if one[key] > 0}
        found = {
            rows[f"{name} {place}"]["value"]: int(rows[f"{name} {place}, {amount}"]["value"])
            for place in range(1, len(expected) + 1)
        }
        assert found == expected
        assert f"{name} {len(expected) + 1}" not in rows
    host = max(hosts, key=lambda one: one["contributing_bytes"])["name"]
    for select in [f"tree:{tree}", f"node:{host}", f"flow:{host}>host-0000", f"port:{host}:1"]:
        page.evaluate("(hash) => { location.hash = hash; }", f"{LAST}&select={select}")
        title = page.locator("#selection-title")
        expect(title).to_contain_text(select.split(":", 1)[1].replace(">", " > "))
        file = table_csv(page, title.inner_text().split("CSV")[0].strip())
        rows = {row["name"]: row for row in file}
        assert len(rows) == len(file)
        values = {row["value"] for row in rows.values()}
        items = _panel_items(page)
        assert items
        for item in items:
            if item.startswith("and ") or item.removeprefix("to ") in values:
                continue
            name, _, said = item.partition(" ")
            assert name in values
            assert said.split(", ")[0] in values or said.endswith("B")


def test_a_tree_of_another_instant_leads_there(
    open_page: Opener, page_file: Path, run: silvan.Result
) -> None:
    """Oracle: the first sample of the tree in the tables of the run."""
    last = max(run.trees["time_ps"].to_pylist())
    life = next(one for one in run.tree_lifetimes.to_pylist() if one["death_ps"] < last)
    start = min(one["time_ps"] for one in run.trees.to_pylist() if one["tree"] == life["tree"])
    page = open_page(page_file, f"{LAST}&select=tree:{life['tree']}")
    panel = page.get_by_role("region", name=f"tree {life['tree']}")
    expect(panel).to_contain_text("at this instantdoes not exist")
    panel.get_by_role("button", name="when it was first seen").click()
    expect(page.locator(".clock")).to_contain_text(f"t = {start / 1e9:g} ms")
    expect(panel).to_contain_text("contributors now")
    expect(panel.get_by_role("button", name="when it was first seen")).to_have_count(0)


def test_switches_are_found_by_their_lid(open_page: Opener, tmp_path: Path) -> None:
    """Oracle: the LIDs that the scenario gives."""
    scenario = silvan.Scenario.from_toml(
        """
        fabric.switch = [{ name = "sw", ports = 3, lid = 77 }]
        fabric.host = [{ name = "a", lid = 5 }, { name = "b" }]
        fabric.cable = [{ from = "a", to = "sw:1" }, { from = "b", to = "sw:2" }]
        traffic.incast = [{ to = "a", from = ["b"] }]
        run.duration = "10 us"
        """
    )
    result = silvan.run(scenario)
    nodes = {row["name"]: row["lid"] for row in page_tables(result).tables["nodes"].to_pylist()}
    assert (nodes["sw"], nodes["a"]) == (77, 5)
    page = open_page(write_page([result], tmp_path / "page.html"))
    field = page.get_by_role("combobox", name="Search")
    field.fill("LID 0x4d")
    expect(page.locator("#found li")).to_have_text("sw switch, LID 77")
    field.press("Enter")
    expect(page.locator("section[aria-labelledby=selection-title]")).to_contain_text("LID77")


@pytest.mark.parametrize(
    "context",
    [{"color_scheme": "light"}, {"color_scheme": "dark"}, {"forced_colors": "active"}],
    ids=["light", "dark", "forced"],
)
def test_focus_on_the_map_is_seen(
    open_page: Opener, page_file: Path, context: dict[str, str]
) -> None:
    """Around the map the pixels change by a contrast of at least 3 (WCAG 2.2, 2.4.13)."""
    page = open_page(page_file, "t=0.4", **context)
    area = page.locator(".map")
    box = area.bounding_box()
    assert box is not None
    before = _edges(area.screenshot())
    page.get_by_role("button", name="SVG").focus()
    while not area.evaluate("one => one === document.activeElement"):
        page.keyboard.press("Tab")
    after = _edges(area.screenshot())
    lighter, darker = np.maximum(before, after), np.minimum(before, after)
    contrast = (lighter + 0.05) / (darker + 0.05)
    assert (contrast >= 3).mean() > 0.95


def _edges(picture: bytes) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return the relative luminance of a row of pixels close to each edge of a picture."""
    shares = np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"), dtype=np.float64) / 255
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    luminance = linear @ np.array([0.2126, 0.7152, 0.0722])
    return np.concatenate([luminance[1], luminance[-2], luminance[:, 1], luminance[:, -2]])
