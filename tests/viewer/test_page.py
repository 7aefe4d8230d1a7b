"""Each control of the page does what it says; numbers are those of the result."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, Playwright, expect

import silvan
from silvan.results.receive_rates import is_hotspot, receive_rate_series_gbps
from silvan.viewer import write_page
from tests.conftest import ddr_scenario
from tests.viewer.conftest import (
    PATIENCE_MS,
    PROGRAM,
    SCENARIO,
    Opener,
    downloaded,
    table_csv,
    wait_until_idle,
)

pytestmark = pytest.mark.needs("chromium")

LAST = "t=0.4"
UTILISATION = "utilisation, share, at most one packet above 1"
IB_CC = {"control.scheme": "ib-cc", "control.ib-cc.switch.marking-rate": 128}
ROOT = Path(__file__).resolve().parents[2]


def _numbers(rows: list[dict[str, str]], column: str) -> list[float]:
    return [float(row[column]) for row in rows]


def _address(page: Page) -> str:
    wait_until_idle(page)
    return page.url.partition("#")[2]


def test_time_bar_has_the_trees_of_the_result(
    open_page: Opener, page_file: Path, run: silvan.Result
) -> None:
    rows = table_csv(open_page(page_file), "Congestion over time")
    assert _numbers(rows, "trees (trees)") == run.forest["trees"].to_pylist()
    bytes_ = [1e6 * value for value in _numbers(rows, "MB in trees (MB)")]
    assert bytes_ == pytest.approx(run.forest["queued_bytes"].to_pylist())
    assert _numbers(rows, "ms") == pytest.approx(
        [at / 1e9 for at in run.forest["time_ps"].to_pylist()]
    )


def test_slider_and_steps_move_the_instant(open_page: Opener, page_file: Path) -> None:
    page = open_page(page_file, "t=0.1")
    now = page.locator(".now")
    expect(now).to_have_text("t = 0.1 ms")
    page.get_by_role("button", name="One sample on").click()
    expect(now).to_have_text("t = 0.12 ms")
    page.get_by_role("button", name="One sample back").click()
    page.get_by_role("button", name="One sample back").click()
    expect(now).to_have_text("t = 0.08 ms")
    slider = page.get_by_role("slider", name="Instant")
    slider.focus()
    slider.press("End")
    expect(now).to_have_text("t = 0.4 ms")
    assert slider.get_attribute("aria-valuetext") == "0.4 ms"


def test_playing_moves_on_and_stops_at_the_end(open_page: Opener, page_file: Path) -> None:
    page = open_page(page_file, "t=0.3")
    page.get_by_label("Speed").select_option("40")
    page.get_by_role("button", name="Play").click()
    expect(page.locator(".now")).to_have_text("t = 0.4 ms")
    expect(page.get_by_role("button", name="Play")).to_have_attribute("aria-pressed", "false")


def test_receive_rates_are_those_of_the_result(
    open_page: Opener, page_file: Path, run: silvan.Result
) -> None:
    page = open_page(page_file)
    rows = table_csv(page, "Mean receive rate")
    _, expected = receive_rate_series_gbps(run, is_hotspot(run))
    assert _numbers(rows, "hotspots (Gbit/s)") == pytest.approx(expected)
    page.get_by_label("by traffic class").check()
    rows = table_csv(page, "Receive rate by class")
    names = run.classes["name"].to_pylist()
    series = run.tables["class_series"]["delivered_bytes"].to_numpy().reshape(-1, len(names))
    for number, name in enumerate(names):
        rates = series[:, number] * 8e3 / 20e6
        assert _numbers(rows, f"{name} (Gbit/s)") == pytest.approx(rates)


def test_panels_of_a_port_show_its_samples(
    open_page: Opener, page_file: Path, run: silvan.Result
) -> None:
    row = run.tree_lifetimes["root_row"][0].as_py()
    port = run.ports.slice(row, 1).to_pylist()[0]
    page = open_page(page_file, f"select=port:{port['node']}:{port['port']}")
    series = run.tables["port_series"]
    name = f"{port['node']}:{port['port']}"
    for chart, column, scale, unit in (
        ("Queue", "queued_bytes", 1e-3, "kB"),
        ("Transmit rate", "xmit_bytes", 8e3 / 20e6, "Gbit/s"),
        ("Waiting for credits", "xmit_wait_ps", 100 / 20e6, "% of time"),
    ):
        shown = _numbers(table_csv(page, chart), f"{name} ({unit})")
        expected = series[column].to_numpy()[row :: run.ports.num_rows] * scale
        assert shown == pytest.approx(expected, abs=1e-2)


def test_latencies_add_up(open_page: Opener, page_file: Path, run: silvan.Result) -> None:
    rows = table_csv(open_page(page_file), "Latency, 0 ms to 0.4 ms")
    table = run.tables["host_latencies"]
    to_ns, packets = (table[name].to_numpy() for name in ("to_ns", "packets"))
    largest = max(run.hosts["latency_max_ns"].to_pylist())
    to_ns = np.minimum(to_ns, largest)
    # No packet takes longer than the slowest one.
    assert 1e3 * float(rows[-1]["µs"]) == pytest.approx(largest)
    for row in rows:
        below = packets[to_ns <= round(1e3 * float(row["µs"]))].sum() / packets.sum()
        assert float(row["all hosts (% of packets)"]) == pytest.approx(100 * below)


def test_latencies_follow_the_window(
    open_page: Opener, page_file: Path, run: silvan.Result
) -> None:
    page = open_page(page_file, "window=0.2-0.3")
    rows = table_csv(page, "Latency, ")
    table = run.tables["latency_series"]
    time_ms = table["time_ps"].to_numpy() / 1e9
    is_inside = (time_ms > 0.2) & (time_ms <= 0.3)
    to_ns, packets = (table[name].to_numpy()[is_inside] for name in ("to_ns", "packets"))
    # One more than there are latencies: no packet takes less than the least.
    assert len(rows) == len(np.unique(to_ns)) + 1
    assert float(rows[0]["all hosts (% of packets)"]) == 0
    for row in rows:
        below = packets[to_ns <= round(1e3 * float(row["µs"]))].sum() / packets.sum()
        assert float(row["all hosts (% of packets)"]) == pytest.approx(100 * below)
    # Latencies by host are of all that was measured, and the label says so.
    page = open_page(page_file, "window=0.2-0.3&select=node:host-0000")
    names = set(table_csv(page, "Latency, ")[0])
    assert names == {
        "µs",
        "host-0000, 0 ms to 0.4 ms (% of packets)",
        "all hosts (% of packets)",
    }


def test_a_scheme_without_limits_says_so(open_page: Opener, tmp_path: Path) -> None:
    scenario = silvan.Scenario.from_toml(SCENARIO).override(
        {
            "control.scheme": "vl-mapping",
            "control.ib-cc.change": [],
            "vl.data-vls": 2,
            "probe.flow-limits": True,
        }
    )
    page = open_page(write_page([silvan.run(scenario)], tmp_path / "mapping.html"))
    expect(page.get_by_text("The scheme vl-mapping has stated no limit")).to_be_visible()


def test_infiniband_control_that_throttles_nothing_says_so(
    open_page: Opener, tmp_path: Path
) -> None:
    # With threshold 0 no switch marks.
    scenario = silvan.Scenario.from_toml(SCENARIO).override(
        {
            "control.scheme": "ib-cc",
            "control.ib-cc.switch.threshold": 0,
            "control.ib-cc.change": [],
            "probe.flow-limits": True,
        }
    )
    page = open_page(write_page([silvan.run(scenario)], tmp_path / "unmarked.html"))
    expect(page.get_by_text("No flow is throttled at any sample of this run.")).to_be_visible()


def test_rankings_follow_the_window(open_page: Opener, page_file: Path, run: silvan.Result) -> None:
    page = open_page(page_file)
    page.get_by_role("spinbutton", name="from").fill("0.2")
    page.get_by_role("spinbutton", name="from").press("Enter")
    page.get_by_role("spinbutton", name="to").fill("0.3")
    page.get_by_role("spinbutton", name="to").press("Enter")
    times = run.tables["port_series"]["time_ps"].to_numpy().reshape(-1, run.ports.num_rows)[:, 0]
    inside = (times > 200e6) & (times <= 300e6)
    wait = run.tables["port_series"]["xmit_wait_ps"].to_numpy().reshape(len(times), -1)[inside]
    names = [f"{one['node']}:{one['port']}" for one in run.ports.to_pylist()]
    expected = dict(zip(names, wait.sum(axis=0) / 100e6, strict=True))
    rows = table_csv(page, "Ports, 0.2 ms to 0.3 ms")
    assert {row["port"]: float(row["waiting, share"]) for row in rows} == pytest.approx(
        expected, abs=1e-4
    )

    hosts = run.hosts["name"].to_pylist()
    for tab, column, label in (
        ("Victims", "victim_bytes", "held up, mean bytes"),
        ("Culprits", "contributing_bytes", "towards roots, mean bytes"),
    ):
        page.get_by_role("tab", name=tab).click()
        sums: dict[str, float] = {}
        for row in run.tree_hosts.to_pylist():
            if 200e6 < row["time_ps"] <= 300e6 and row[column]:
                name = hosts[row["host"]]
                sums[name] = sums.get(name, 0) + row[column] / inside.sum()
        shown = table_csv(page, f"{tab}, 0.2 ms to 0.3 ms")
        assert {row["host"]: float(row[label]) for row in shown} == pytest.approx(sums)

    page.get_by_role("tab", name="Trees").click()
    peaks: dict[str, list[int]] = {}
    for row in run.trees.to_pylist():
        if 200e6 < row["time_ps"] <= 300e6:
            values = [row[name] for name in ("queued_bytes", "contributors", "victims")]
            name = f"T{row['tree']}"
            peaks[name] = [max(pair) for pair in zip(values, peaks.get(name, values), strict=True)]
    shown = table_csv(page, "Trees, 0.2 ms to 0.3 ms")
    found = {
        row["tree"]: [int(row[name]) for name in ("peak bytes", "contributors", "victims")]
        for row in shown
    }
    assert found == peaks

    # A window without a sample has the trees that stand in it.
    page.evaluate("location.hash = 'window=0.25-0.255'")
    expect(page.get_by_role("region", name="Trees, 0.25 ms to 0.255 ms")).to_be_visible()
    assert table_csv(page, "Trees, 0.25 ms to 0.255 ms") != []
    page.get_by_role("tab", name="Culprits").click()
    assert table_csv(page, "Culprits, 0.25 ms to 0.255 ms") != []

    page.get_by_role("button", name="Whole run", exact=True).click()
    assert "window" not in _address(page)


def test_trees_are_listed_and_selected(
    open_page: Opener, page_file: Path, run: silvan.Result
) -> None:
    page = open_page(page_file)
    page.get_by_role("tab", name="Trees").click()
    rows = table_csv(page, "Trees, 0 ms to 0.4 ms")
    lives = run.tree_lifetimes.to_pylist()
    assert sorted(float(row["peak bytes"]) for row in rows) == sorted(
        life["peak_queued_bytes"] for life in lives
    )
    ports = [f"{row['node']}:{row['port']}" for row in run.ports.to_pylist()]
    roots = {row["tree"]: row["root"] for row in rows}
    assert roots == {f"T{life['tree']}": ports[life["root_row"]] for life in lives}
    page.locator(".table").get_by_role("button", name="T0", exact=True).click()
    expect(page.get_by_role("heading", name="tree 0")).to_be_visible()
    port = run.ports.slice(lives[0]["root_row"], 1).to_pylist()[0]
    to = lives[0]["destination"]
    root = f"{port['node']}:{port['port']}" + (f", to {to}" if to else "")
    expect(page.locator("dl").first).to_contain_text(root)
    assert "select=tree%3A0" in _address(page)


def test_tables_are_sorted_by_their_columns(open_page: Opener, page_file: Path) -> None:
    page = open_page(page_file)
    heading = page.get_by_role("columnheader", name="utilisation")
    for order, reverse in (("descending", True), ("ascending", False)):
        heading.get_by_role("button").click()
        assert heading.get_attribute("aria-sort") == order
        shown = _numbers(table_csv(page, "Ports, 0 ms to 0.4 ms"), UTILISATION)
        assert shown == sorted(shown, reverse=reverse)


def test_the_utilisation_in_a_csv_is_at_most_one_packet_above_1(
    open_page: Opener, tmp_path: Path, run: silvan.Result
) -> None:
    """Oracle: the size of the packets, all of which have the same, and the rate of the links."""
    sampled = silvan.run(run.scenario.override({"probe.interval": "5 us"}))
    page = open_page(write_page([sampled], tmp_path / "short.html"))
    ports = [row for row in run.ports.to_pylist() if row["xmit_pkts"]]
    (packet_bytes,) = {row["xmit_bytes"] / row["xmit_pkts"] for row in ports}
    (link_gbps,) = {row["link_gbps"] for row in ports}
    largest = []
    for at_us in range(200, 260, 5):
        window = [at_us / 1e3, (at_us + 5) / 1e3]
        page.evaluate("([a, b]) => (location.hash = `window=${a}-${b}`)", window)
        title = f"Ports, {window[0]:g} ms to {window[1]:g} ms"
        expect(page.get_by_role("region", name=title)).to_be_visible()
        largest.append(max(_numbers(table_csv(page, title), UTILISATION)))
    assert 1 < max(largest) <= 1 + 8 * packet_bytes / (link_gbps * 5e3)


def test_search_by_name_and_lid_with_keys_only(
    open_page: Opener, page_file: Path, run: silvan.Result
) -> None:
    page = open_page(page_file)
    host = run.hosts.to_pylist()[5]
    for text in (host["name"], str(host["lid"])):
        field = page.get_by_role("combobox", name="Search by name or LID")
        field.fill(text)
        expect(page.locator("#found [role=option]").first).to_be_visible()
        options = page.locator("#found [role=option]").all_inner_texts()
        place = next(at for at, one in enumerate(options) if one.startswith(f"{host['name']} "))
        for _ in range(place):
            field.press("ArrowDown")
        field.press("Enter")
        expect(page.get_by_role("heading", name=f"host {host['name']}")).to_be_visible()
        page.get_by_role("button", name="Clear").click()
    field = page.get_by_role("combobox", name="Search by name or LID")
    field.fill("tree 0")
    field.press("Enter")
    expect(page.get_by_role("heading", name="tree 0")).to_be_visible()


def test_a_search_without_a_result_says_so(open_page: Opener, page_file: Path) -> None:
    page = open_page(page_file)
    field = page.get_by_role("combobox", name="Search")
    for text in ("nonsense", "tree 999", "leaf-00:999", "host-0004 > host-9999"):
        field.fill(text)
        expect(page.get_by_text("nothing found")).to_be_visible()
    field.fill("host-0004")
    expect(page.get_by_text("nothing found")).to_have_count(0)


def test_selection_shows_what_holds_packets_up(
    open_page: Opener, page_file: Path, run: silvan.Result
) -> None:
    last = run.forest["time_ps"].to_pylist()[-1]
    members = {
        row["ports_row"]: row["parent_row"]
        for row in run.tree_ports.to_pylist()
        if row["time_ps"] == last
    }
    ports = run.ports.to_pylist()
    start = max(
        (row for row in members if ports[row]["node"].startswith("host-")),
        key=lambda row: len(_chain(members, row)),
    )
    page = open_page(page_file, f"{LAST}&select=node:{ports[start]['node']}")
    names = [f"{ports[row]['node']}:{ports[row]['port']}" for row in _chain(members, start)]
    assert len(names) > 1
    assert page.locator(".chain:not(.way) button").all_inner_texts() == names
    # The values and the chain are downloaded, too.
    rows = {row["name"]: row["value"] for row in table_csv(page, f"host {ports[start]['node']} at")}
    assert [rows[f"holds up {place + 1}"] for place in range(len(names))] == names
    lid = run.hosts.to_pylist()[run.hosts["name"].to_pylist().index(ports[start]["node"])]["lid"]
    assert rows["LID"] == str(lid)
    assert {row["name"] for row in table_csv(page, "Run")} >= {"seed", "hosts", "link rate"}
    page.locator(".chain:not(.way) button").last.click()
    expect(page.locator("#selection-title")).to_contain_text(f"port {names[-1]}")


def _chain(parents: dict[int, int], row: int) -> list[int]:
    rows = [row]
    while parents[rows[-1]] != rows[-1]:
        rows.append(parents[rows[-1]])
    return rows


def test_the_address_brings_a_view_back(open_page: Opener, page_file: Path) -> None:
    page = open_page(page_file)
    page.get_by_role("combobox", name="Layout", exact=True).select_option("cabled")
    page.get_by_role("combobox", name="Colour", exact=True).select_option("waiting")
    page.get_by_role("combobox", name="Colours", exact=True).select_option("dark")
    page.get_by_role("slider", name="Instant").press("Home")
    page.get_by_role("button", name="One sample on").click()
    page.get_by_role("spinbutton", name="to").fill("0.25")
    page.get_by_role("spinbutton", name="to").press("Enter")
    page.get_by_role("button", name="Zoom in").click()
    page.get_by_role("combobox", name="Search").fill("host-0003")
    page.get_by_role("combobox", name="Search").press("Enter")
    address = _address(page)
    page.reload()
    page.wait_for_selector("html[data-ready=true]", state="attached")
    again = open_page(page_file, address)
    for one in (page, again):
        assert _address(one) == address
        expect(one.get_by_role("combobox", name="Layout", exact=True)).to_have_value("cabled")
        expect(one.get_by_role("combobox", name="Colour", exact=True)).to_have_value("waiting")
        expect(one.get_by_role("combobox", name="Colours", exact=True)).to_have_value("dark")
        expect(one.locator(".now")).to_have_text("t = 0.04 ms")
        expect(one.get_by_role("spinbutton", name="to")).to_have_value("0.25")
        expect(one.get_by_role("heading", name="host host-0003")).to_be_visible()


@pytest.mark.parametrize(
    "address", ["t=x&select=node:unknown&layout=odd&camera=1", "select=tree:99"]
)
def test_a_wrong_address_shows_the_page(open_page: Opener, page_file: Path, address: str) -> None:
    expect(open_page(page_file, address).get_by_role("heading", name="Selection")).to_be_visible()


def test_map_moves_by_keys_and_back(open_page: Opener, page_file: Path) -> None:
    page = open_page(page_file)
    canvas = page.locator(".map")
    canvas.focus()
    wait_until_idle(page)
    before = canvas.screenshot()
    for key in ("ArrowRight", "ArrowDown", "+"):
        canvas.press(key)
    assert re.search(r"camera=[-\d.]+%2C[-\d.]+%2C[-\d.]+", _address(page))
    assert canvas.screenshot() != before
    canvas.press("0")
    assert "camera" not in _address(page)
    wait_until_idle(page)
    assert canvas.screenshot() == before


def test_map_is_dragged_and_zoomed_by_the_mouse(open_page: Opener, page_file: Path) -> None:
    page = open_page(page_file)
    box = page.locator(".map").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 80, y + 10, steps=3)
    page.mouse.up()
    dragged = _address(page)
    assert "camera" in dragged
    page.mouse.wheel(0, -240)
    assert _address(page) != dragged


def test_a_click_selects_and_the_pointer_shows_values(
    open_page: Opener, page_file: Path, run: silvan.Result
) -> None:
    # The map shows the surroundings of a found host.
    page = open_page(page_file, LAST)
    field = page.get_by_role("combobox", name="Search")
    field.fill("host-0005")
    field.press("Enter")
    wait_until_idle(page)
    page.get_by_role("button", name="Clear").click()
    tip = page.locator(".tooltip")
    x, y = next(place for place in _places(page) if tip.count() and "host-0005" in tip.inner_text())
    expect(tip).to_contain_text("host-0005")
    row = run.ports["node"].to_pylist().index("host-0005")
    sent = run.tables["port_series"]["xmit_bytes"].to_numpy()[row :: run.ports.num_rows][-1]
    shown = re.search(r"transmits with headers: ([\d.]+) Gbit/s", tip.inner_text())
    assert shown is not None
    assert float(shown[1]) == pytest.approx(sent * 8e3 / 20e6, rel=1e-3)
    page.mouse.click(x, y)
    expect(page.get_by_role("heading", name="host host-0005")).to_be_visible()


def test_values_at_the_edge_of_the_map_are_seen_whole(open_page: Opener, page_file: Path) -> None:
    """Near its lower edge are the receivers."""
    page = open_page(page_file, LAST, viewport={"width": 1200, "height": 640})
    area = page.locator(".map").bounding_box()
    assert area is not None
    tip = page.locator(".tooltip")
    lowest = area["y"] + area["height"]
    is_low = False
    for up in range(8, 80, 12):
        for right in range(100, int(area["width"]), 12):
            page.mouse.move(area["x"] + right, lowest - up)
            box = tip.bounding_box() if tip.count() else None
            if box is None:
                continue
            is_low = is_low or box["height"] > up
            assert box["y"] >= area["y"]
            assert box["y"] + box["height"] <= lowest
    assert is_low, "there was room below all values"


def _places(page: Page) -> Iterator[tuple[float, float]]:
    """Move the pointer over the map, in steps that miss nothing that it reaches."""
    box = page.locator(".map").bounding_box()
    assert box is not None
    for down in range(6, int(box["height"]), 12):
        for right in range(6, int(box["width"]), 12):
            place = box["x"] + right, box["y"] + down
            page.mouse.move(*place)
            yield place


def test_a_camera_far_away_shows_the_map(open_page: Opener, page_file: Path) -> None:
    page = open_page(page_file, "t=0.4&camera=0,0,0")
    page.get_by_role("button", name="Zoom in").click()
    words = re.search(r"camera=([-\d.]+)%2C([-\d.]+)%2C([-\d.]+)", _address(page))
    assert words is not None
    # The address asks for a pixel for each unit of the map.
    assert float(words[3]) > 3


def test_what_cannot_be_marked_leaves_the_window(open_page: Opener, page_file: Path) -> None:
    page = open_page(page_file, "t=0.4&window=0.1-0.2")
    start, end = (page.get_by_role("spinbutton", name=name) for name in ("from", "to"))
    end.fill("0.1")
    end.press("Enter")
    for field, value in ((start, "0.1"), (end, "0.2")):
        expect(field).to_have_value(value)
    # The ends are taken in their order.
    start.fill("0.3")
    start.press("Enter")
    for field, value in ((start, "0.2"), (end, "0.3")):
        expect(field).to_have_value(value)
    assert "window=0.2-0.3" in _address(page)


def test_nothing_is_used_more_than_wholly(
    open_page: Opener, page_file: Path, run: silvan.Result
) -> None:
    rates = run.ports["link_gbps"].to_numpy()
    series = run.tables["port_series"]["xmit_bytes"].to_numpy().reshape(-1, len(rates))
    sample, row = map(int, np.unravel_index((series / rates).argmax(), series.shape))
    assert series[sample, row] * 8e3 / 20e6 > rates[row], "packets are counted whole"
    port = run.ports.slice(row, 1).to_pylist()[0]
    name = f"port:{port['node']}:{port['port']}"
    page = open_page(page_file, f"t={0.02 * (sample + 1):.2f}&select={name}")
    expect(page.locator("dl").first).to_contain_text("100 %; packets are counted whole")
    cells = page.locator("#ranking tbody td:nth-child(3)").all_inner_texts()
    assert max(float(text.removesuffix(" %")) for text in cells) <= 100


def test_a_drawing_has_the_scale_of_its_colours(open_page: Opener, page_file: Path) -> None:
    page = open_page(page_file, "t=0.4&colour=queue")
    text = downloaded(page, page.get_by_role("button", name="Download the map as SVG")).decode()
    assert re.search(r"[\d.]+ MB: queue<", text)
    assert ">branch<" not in text
    page.get_by_role("combobox", name="Colour", exact=True).select_option("trees")
    text = downloaded(page, page.get_by_role("button", name="Download the map as SVG")).decode()
    assert ">branch<" in text


def test_drawings_of_the_map(open_page: Opener, page_file: Path, run: silvan.Result) -> None:
    page = open_page(page_file, LAST)
    drawing = ElementTree.fromstring(
        downloaded(page, page.get_by_role("button", name="Download the map as SVG"))
    )
    space = "{http://www.w3.org/2000/svg}"
    standing = run.forest["trees"].to_pylist()[-1]
    assert len(list(drawing.iter(f"{space}polygon"))) == standing + 1  # and one in the legend
    titles = {title.text for title in drawing.iter(f"{space}title")}
    assert set(run.hosts["name"].to_pylist()) <= titles
    png = downloaded(page, page.get_by_role("button", name="Download the map as PNG"))
    width, height = np.frombuffer(png[16:24], ">u4")
    assert png.startswith(b"\x89PNG\r\n")
    assert (width, height) == (2 * int(drawing.get("width", 0)), 2 * int(drawing.get("height", 0)))


def test_events_are_named_near_their_time(
    open_page: Opener, changed: silvan.Result, tmp_path: Path
) -> None:
    page_file = write_page([changed], tmp_path / "changed.html")
    page = open_page(page_file, "t=0.2")
    expect(page.locator(".events")).to_contain_text("leaf-00: marking-rate = 3")


@pytest.mark.parametrize("width", [1280, 2560])
def test_star_of_a_root_is_seen_on_its_trunk(
    open_page: Opener, page_file: Path, width: int
) -> None:
    """Oracle: the pixels along the trunk, which is upright: trunk, page, star."""
    size = {"width": width, "height": 9 * width // 16}
    page = open_page(page_file, "t=0.4&theme=light", viewport=size)
    shown = Image.open(io.BytesIO(page.locator(".map").screenshot())).convert("RGB")
    # Tree 1 has the second colour of viewer/src/map/colours.ts.
    away = np.abs(np.asarray(shown, dtype=int) - (0x33, 0x22, 0x8A)).max(axis=2)
    is_tree = (away < 16).astype(int)
    column = is_tree[:, is_tree.sum(axis=0).argmax()]
    edges = np.flatnonzero(np.diff(column, prepend=0, append=0)).reshape(-1, 2)
    trunk = (edges[:, 1] - edges[:, 0]).argmax()
    star = edges[trunk + 1]
    assert star[1] - star[0] > 6
    assert 2 <= star[0] - edges[trunk, 1] <= 40


def test_decisions_of_a_manager_are_events(open_page: Opener, tmp_path: Path) -> None:
    manager = {
        "interval": "50 us",
        "tick": "1 ns",
        "congestion-threshold": 1000,
        "rate-reduction-threshold": 1000,
        "utilization-change-threshold": 1000,
    }
    scenario = silvan.Scenario.from_toml(SCENARIO)
    result = silvan.run(scenario.override({**IB_CC, "control.dcms": manager}))
    decisions = result.tables["dcms"].to_pylist()
    assert decisions
    path = write_page([result], tmp_path / "managed.html")
    page = open_page(path, f"t={decisions[0]['time_ps'] / 1e9}")
    text = f"{decisions[0]['port']}: {decisions[0]['reason']}, Marking_Rate"
    expect(page.locator(".events")).to_contain_text(text)


def test_a_comparison_shows_both_runs(
    open_page: Opener, comparison_file: Path, run: silvan.Result, controlled: silvan.Result
) -> None:

    page = open_page(comparison_file)
    assert page.locator(".map").count() == 2
    rows = {row["measure"]: row for row in table_csv(page, "Differences")}
    row = rows["hotspots, Gbit/s"]
    for label, result in (("no congestion control", run), ("hpcc", controlled)):
        expected = result.measures["hotspots_gbps"]
        assert float(row[label]) == pytest.approx(expected, rel=1e-3)
    (key,) = table_csv(page, "Keys of the scenario that differ")
    assert key == {"key": "control.scheme", "no congestion control": "none", "hpcc": "hpcc"}
    expect(page.get_by_text("Same fabric and same traffic, seed 2.")).to_be_visible()
    assert page.locator(".warning").count() == 0
    page.get_by_label("Panels show").select_option("1")
    assert "run=1" in _address(page)


def test_several_runs_are_chosen_by_their_parameters(
    open_page: Opener, run: silvan.Result, tmp_path: Path
) -> None:
    loads = (0.1, 0.2, 0.3)
    tables = run.scenario.to_dict()["traffic"]["uniform"][0]
    results = [
        silvan.run(run.scenario.override({"traffic.uniform": [{**tables, "load": load}]}))
        for load in loads
    ]
    page = open_page(write_page(results, tmp_path / "sweep.html", labels=["a", "b", "c"]))
    assert page.locator(".map").count() == 1
    rows = table_csv(page, "Runs of this page")
    assert [row["run"] for row in rows] == ["a", "b", "c"]
    expected = [
        int(np.sum(one.hosts["delivered_bytes"].to_numpy())) * 8e3 / 400e6 for one in results
    ]
    course = table_csv(page, "Rates by traffic.uniform.0.load")
    for shown, heading in ((rows, "total delivered, Gbit/s"), (course, "total delivered (Gbit/s)")):
        assert _numbers(shown, "traffic.uniform.0.load") == list(loads)
        assert _numbers(shown, heading) == pytest.approx(expected, rel=1e-12)
    page.get_by_role("button", name="c", exact=True).click()
    assert "run=2" in _address(page)


def test_programs_have_their_ranks_and_rates(open_page: Opener, tmp_path: Path) -> None:
    scenario = silvan.Scenario.from_file(ROOT / "python/silvan/examples/programs/training.toml")
    probes = {"probe.ports": True, "probe.interval": "100 us"}
    result = silvan.run(scenario.override(probes))
    path = write_page([result], tmp_path / "jobs.html")
    jobs = result.programs.to_pylist()
    for job in jobs:
        started = open_page(path, f"t={job['start_ps'] / 1e9}")
        expect(started.locator(".events")).to_contain_text(f"{job['name']} starts")
    page = open_page(path)
    rows = table_csv(page, "Programs as CSV")
    assert [row["program"] for row in rows] == ["training", "checkpoint"]
    assert [int(row["ranks"]) for row in rows] == [job["ranks"] for job in jobs]
    shown = table_csv(page, "Receive rate of a program's hosts")
    sent = result.tables["port_series"]["xmit_bytes"].to_numpy().reshape(-1, result.ports.num_rows)
    peers = result.ports["peer"].to_pylist()
    for job in jobs:
        ranks = [rank for rank in result.ranks.to_pylist() if rank["program"] == job["program"]]
        hosts = {result.hosts["name"][rank["host"]].as_py() for rank in ranks}
        links = [row for row, peer in enumerate(peers) if peer.rpartition(":")[0] in hosts]
        rates = sent[:, links].mean(axis=1) * 8e3 / 100e6
        assert _numbers(shown, f"{job['name']} (Gbit/s)") == pytest.approx(rates)
        page.get_by_role("button", name=job["name"], exact=True).click()
        table = table_csv(page, f"Ranks of {job['name']}")
        assert _numbers(table, "sent, bytes") == [rank["sent_bytes"] for rank in ranks]
    assert f"window=0-{result.summary['simulated_ps'] / 1e9:g}" in _address(page)


def test_names_on_a_drawing_cover_none(open_page: Opener, tmp_path: Path) -> None:
    fabric = {"generator": "hyper-x", "sizes": [3, 3, 3], "hosts-per-switch": 1}
    run = {"duration": "10 us"}
    result = silvan.run(
        ddr_scenario(fabric=fabric, traffic={"incast": [{"to": "host-0000"}]}, run=run)
    )
    page = open_page(write_page([result], tmp_path / "grid.html"), "layout=cabled")
    button = page.get_by_role("button", name="Download the map as SVG")
    texts = ElementTree.fromstring(downloaded(page, button)).iter(
        "{http://www.w3.org/2000/svg}text"
    )
    names = [one for one in texts if (one.text or "").startswith("switch-")]
    assert len(names) > 1
    boxes = [(float(one.get("x", 0)), float(one.get("y", 0)), len(one.text or "")) for one in names]
    for place, (x, y, length) in enumerate(boxes):
        for other_x, other_y, other_length in boxes[place + 1 :]:
            apart_x = max(other_x - x - 4.8 * length, x - other_x - 4.8 * other_length)
            assert apart_x >= 0 or abs(y - other_y) >= 8


HOSTILE = "<script>window.hacked=1</script><img src=x onerror=window.hacked=1>"


def test_names_of_a_fabric_are_text(open_page: Opener, tmp_path: Path) -> None:
    result = silvan.run(
        ddr_scenario(
            name="hostile",
            fabric={
                "switch": [{"name": "s", "ports": 3}],
                "host": [{"name": HOSTILE}, {"name": "b"}, {"name": "c"}],
                "cable": [
                    {"from": HOSTILE, "to": "s:1"},
                    {"from": "b", "to": "s:2"},
                    {"from": "c", "to": "s:3"},
                ],
            },
            traffic={"incast": [{"name": HOSTILE, "to": HOSTILE}]},
            probe={"ports": True, "classes": True, "trees": {}, "interval": "10 us"},
            run={"duration": "100 us"},
        )
    )
    page = open_page(write_page([result], tmp_path / "hostile.html", title=HOSTILE))
    field = page.get_by_role("combobox", name="Search")
    field.fill("<script")
    expect(page.locator("#found [role=option]").first).to_contain_text(HOSTILE)
    field.press("Enter")
    expect(page.get_by_role("heading", name=f"host {HOSTILE}")).to_be_visible()
    page.get_by_label("by traffic class").check()
    page.get_by_role("tab", name="Trees").click()
    drawing = downloaded(page, page.get_by_role("button", name="Download the map as SVG"))
    texts = {one.text for one in ElementTree.fromstring(drawing).iter()}
    assert HOSTILE in texts
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0


def test_the_policy_lets_no_other_program_run(open_page: Opener, page_file: Path) -> None:
    page = open_page(page_file, is_strict=False)
    page.evaluate(
        "() => { window.violations = [];"
        "addEventListener('securitypolicyviolation',"
        " (event) => window.violations.push(event.effectiveDirective));"
        "const one = document.createElement('script'); one.textContent = 'window.hacked = 1';"
        "document.body.append(one);"
        "const two = document.createElement('div'); document.body.append(two);"
        "two.innerHTML = '<img src=\"https://example.org/x.png\">'; }"
    )
    wait_until_idle(page)
    assert page.evaluate("window.hacked") is None
    assert set(page.evaluate("window.violations")) == {"script-src-elem", "img-src"}


def test_a_browser_without_webgl_shows_a_drawing(driver: Playwright, page_file: Path) -> None:
    browser = driver.chromium.launch(
        executable_path=PROGRAM, args=["--no-sandbox", "--disable-3d-apis"], timeout=PATIENCE_MS
    )
    page = browser.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(page_file.as_uri())
    drawing = page.get_by_role("img", name="This browser has no WebGL")
    expect(drawing).to_be_visible()
    assert drawing.evaluate("async (image) => (await image.decode(), image.naturalWidth)") > 100
    expect(page.get_by_text("no WebGL, so the map cannot be moved")).to_be_visible()
    for name in ("Zoom in", "Zoom out", "Whole map"):
        expect(page.get_by_role("button", name=name)).to_be_disabled()
    browser.close()
