"""Pages of runs that lack something, of runs that differ, and of unexpected names."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import silvan
from silvan.results.run_labels import differences
from silvan.viewer import write_page
from tests.conftest import ddr_scenario
from tests.viewer.conftest import Opener, downloaded, table_csv, wait_until_idle

pytestmark = pytest.mark.needs("chromium")

SMALL = ddr_scenario(
    name="small",
    fabric={"generator": "leaf-spine", "leaf-hosts": [4, 4], "spine-cables": [1, 1]},
    traffic={"incast": [{"to": "host-0000", "from": ["host-0004", "host-0005"]}]},
    run={"duration": "1 ms"},
)
RARE = {"probe.interval": "10 us", "probe.ports": True, "probe.trees": {"interval": "300 us"}}

Plain = dict[str, object]


def _page(open_page: Opener, folder: Path, *settings: Plain, address: str = "") -> Page:
    runs = [silvan.run(SMALL.override(one)) for one in settings]
    return open_page(write_page(runs, folder / "page.html"), address)


def _named(names: tuple[str, str, str], switch: str = "s") -> silvan.Scenario:
    """Three hosts at a switch, two of which send to the first one."""
    cables = [{"from": name, "to": f"{switch}:{port}"} for port, name in enumerate(names, start=1)]
    return ddr_scenario(
        name="named",
        fabric={
            "switch": [{"name": switch, "ports": 3}],
            "host": [{"name": name} for name in names],
            "cable": cables,
        },
        control={"scheme": "ib-cc"},
        traffic={"incast": [{"to": names[0]}]},
        probe={"ports": True, "trees": {}, "interval": "10 us", "flow-limits": True},
        run={"duration": "100 us"},
    )


def test_charts_over_time_span_the_run(open_page: Opener, tmp_path: Path) -> None:
    """Oracle: the line of an instant divides a chart as the instant divides the run."""
    page = _page(open_page, tmp_path, RARE, address="t=0.6")
    for name in ("Congestion over time", "Mean receive rate"):
        chart = page.get_by_role("img", name=f"Chart of {name}")
        share = chart.locator(".u-over").evaluate(
            "over => new DOMMatrix(getComputedStyle(over.querySelector('.marker')).transform).e"
            " / over.clientWidth"
        )
        assert share == pytest.approx(0.6, abs=0.01), name


@pytest.mark.parametrize(("at", "stood"), [(0.2, 0.3), (0.3, None), (0.45, 0.3), (1.0, 0.9)])
def test_trees_of_another_instant_say_of_which(
    open_page: Opener, tmp_path: Path, at: float, stood: float | None
) -> None:
    """Oracle: trees were sampled at 0.3, 0.6 and 0.9 ms; before, there are none but the first."""
    page = _page(open_page, tmp_path, RARE, address=f"t={at}")
    note = page.get_by_text("trees of ")
    if stood is None:
        expect(note).to_have_count(0)
    else:
        expect(note).to_have_text(f"trees of {stood} ms")


def test_a_run_without_trees_shows_the_load_of_its_cables(
    open_page: Opener, tmp_path: Path
) -> None:
    page = _page(open_page, tmp_path, {})
    toolbar = page.get_by_role("toolbar", name="Map")
    expect(toolbar.get_by_label("Colour")).to_have_value("utilisation")
    legend = page.get_by_role("list", name="Legend")
    expect(legend).to_contain_text("utilisation, 0 ms to 1 ms")
    expect(legend).not_to_contain_text("contributor")
    drawing = downloaded(page, page.get_by_role("button", name="Download the map as SVG"))
    assert b">contributor<" not in drawing
    # If a panel is empty, the page says how to record its data.
    latency = page.get_by_role("region", name="Latency of packets")
    expect(latency).to_contain_text("With --record view, silvan run records")


@pytest.mark.parametrize("most", [8_000_000, 100])
def test_queues_between_merged_samples_are_said_to_be_left_out(
    open_page: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr("silvan.viewer.page.MOST_CELLS", most)
    page = _page(open_page, tmp_path, RARE)
    panel = page.locator("section[aria-labelledby=run-title]")
    # There are 100 samples of each port, and room for 100 of all ports.
    ports = silvan.run(SMALL.override(RARE)).ports.num_rows
    words = f"Each sample of the ports covers {ports} of the run; queues are those at its end."
    if most == 100:
        expect(panel).to_contain_text(words)
    else:
        expect(panel).not_to_contain_text("Each sample")


def test_totals_are_not_said_to_be_of_a_window(open_page: Opener, tmp_path: Path) -> None:
    page = _page(open_page, tmp_path, {}, address="window=0.2-0.4")
    expect(page.get_by_role("region", name="Ports, 0 ms to 1 ms")).to_be_visible()


def test_a_comparison_has_what_only_the_second_run_recorded(
    open_page: Opener, tmp_path: Path
) -> None:
    page = _page(open_page, tmp_path, {}, RARE)
    rows = {row["measure"]: row for row in table_csv(page, "Differences")}
    assert rows["trees, mean"]["small (1)"] == ""
    assert float(rows["trees, mean"]["small (2)"]) == 1


def test_curves_of_runs_with_other_samples_have_values(open_page: Opener, tmp_path: Path) -> None:
    """Oracle: the receiver's link is full, to a packet; the second run has no sample then."""
    seldom = {"probe.interval": "100 us", "probe.ports": True}
    page = _page(open_page, tmp_path, RARE, seldom, address="t=0.56")
    chart = page.get_by_role("figure").filter(has_text="Mean receive rate")
    shown = [float(text) for text in chart.locator(".legend b").all_inner_texts()]
    assert shown == pytest.approx([15.8, 15.8], rel=0.1)


def test_means_weigh_samples_by_their_time(open_page: Opener, tmp_path: Path) -> None:
    """Oracle: numpy, from the table of the run, some of whose samples were left out."""
    seldom = {
        "packet.mtu": "256 B",
        "switch.buffer": "1 MiB",
        "probe.trees": {"interval": "10 us", "reads-per-hop": 0.5},
    }
    run = silvan.run(SMALL.override(seldom))
    assert 2 < run.forest.num_rows < 90
    page = open_page(write_page([run, run], tmp_path / "page.html"))
    rows = {row["measure"]: row for row in table_csv(page, "Differences")}
    times = run.forest["time_ps"].to_numpy().astype(float)
    weights = np.diff(times, prepend=0)
    expected = np.average(run.forest["queued_bytes"].to_numpy(), weights=weights) / 1e6
    assert float(rows["MB in trees, mean"]["small (1)"]) == pytest.approx(expected, rel=1e-3)
    page.get_by_role("tab", name="Culprits").click()
    culprits = {row["host"]: row for row in table_csv(page, "Culprits")}
    hosts = run.tree_hosts
    of = dict(zip(times, weights / weights.sum(), strict=True))
    sums = dict.fromkeys(range(run.hosts.num_rows), 0.0)
    for row in hosts.to_pylist():
        sums[row["host"]] += of[row["time_ps"]] * row["contributing_bytes"]
    for number, name in enumerate(run.hosts["name"].to_pylist()):
        if sums[number]:
            shown = float(culprits[name]["towards roots, mean bytes"])
            assert shown == pytest.approx(sums[number])


def test_link_rates_are_those_of_the_cables(open_page: Opener, tmp_path: Path) -> None:
    scenario = silvan.Scenario.from_toml(
        """
        [fabric]
        switch = [{ name = "s", ports = 2 }]
        host = [{ name = "a" }, { name = "b" }]
        cable = [
            { from = "a", to = "s:1", speed = "EDR" },
            { from = "b", to = "s:2", speed = "DDR" },
        ]

        [[traffic.incast]]
        to = "a"

        [run]
        duration = "10 us"
        """
    )
    page = open_page(write_page([silvan.run(scenario)], tmp_path / "page.html"))
    for name, rate in (("lowest", "16 Gbit/s"), ("highest", "100 Gbit/s")):
        fact = page.get_by_role("term").filter(has_text=f"{name} link rate")
        expect(fact.locator("xpath=following-sibling::dd[1]")).to_have_text(rate)


@pytest.mark.parametrize("name", ["<b>a</b>", "a > b", "a>", "> a"])
def test_a_flow_of_hosts_with_any_names_is_in_the_address(
    open_page: Opener, tmp_path: Path, name: str
) -> None:
    file = write_page([silvan.run(_named(("to", name, "c")))], tmp_path / "page.html")
    page = open_page(file)
    field = page.get_by_role("combobox", name="Search")
    field.fill(f"{name} > to")
    field.press("Enter")
    heading = page.get_by_role("heading", name=f"flow {name} > to")
    expect(heading).to_be_visible()
    wait_until_idle(page)
    page.reload()
    expect(heading).to_be_visible()


def test_an_address_of_the_page_brings_nothing_that_it_does_not_say(
    open_page: Opener, tmp_path: Path
) -> None:
    page = _page(open_page, tmp_path, RARE)
    whole = page.url.partition("#")[2]
    changed = f"{whole}&window=0.1-0.2&select=node:leaf-00"
    page.evaluate("hash => { location.hash = hash }", changed)
    expect(page.get_by_role("heading", name="switch leaf-00")).to_be_visible()
    page.evaluate("hash => { location.hash = hash }", whole)
    expect(page.get_by_role("heading", name="Selection", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Whole run")).to_be_disabled()


@pytest.mark.parametrize("width", [320, 1400])
def test_names_of_any_length_leave_room_for_the_rest(
    open_page: Opener, tmp_path: Path, width: int
) -> None:
    name = "long " + 10_000 * "x"
    run = silvan.run(_named((name, "b", "c"), switch="y" * 300))
    page = open_page(
        write_page([run], tmp_path / "page.html"),
        f"select=flow:b>{name}",
        viewport={"width": width, "height": 800},
    )
    assert max(map(len, re.findall(r"\S+", page.locator("body").inner_text()))) <= 160
    assert page.locator(".panels").evaluate("panels => panels.scrollHeight") < 6000
    shown = page.get_by_role("region", name="Ports, 0 ms to 0.1 ms")
    assert f"{name}:1" in {row["port"] for row in table_csv(page, "Ports")}
    expect(shown).to_contain_text("…")
    with page.expect_download() as download:
        page.get_by_role("button", name=re.compile("Download flow b > long")).click()
    assert len(download.value.suggested_filename.encode()) <= 255


@pytest.mark.parametrize("width", [320, 1280, 2560])
def test_long_names_push_no_column_out_of_the_page(
    open_page: Opener, tmp_path: Path, width: int
) -> None:
    name = "long" + 996 * "x"
    run = silvan.run(_named((name, "b" + 63 * "y", "c"), switch="s" * 64))
    size = {"viewport": {"width": width, "height": 900}}
    page = open_page(write_page([run], tmp_path / "page.html"), "t=0.05", **size)
    regions = page.locator(".panels .scroll")
    for tab in ("Trees", "Victims", "Culprits", "Ports"):
        page.get_by_role("tab", name=tab).click()
        for region in regions.all():
            assert region.evaluate("one => one.scrollWidth <= one.clientWidth + 1"), tab
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # The whole name is in the tooltip and in the file.
    expect(page.locator(f'#ranking [title="{name}:1"]')).to_have_text(re.compile("^long.*…x*:1$"))
    assert f"{name}:1" in {row["port"] for row in table_csv(page, "Ports")}


def test_a_comparison_of_different_fabrics_says_so(open_page: Opener, tmp_path: Path) -> None:
    """Oracle: port 1 of leaf-01 leads to host-0004 in two of the fabrics, to host-0005 in one."""
    wider = {"fabric.leaf-hosts": [4, 4, 4]}
    other = {"fabric.leaf-hosts": [5, 4]}
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    page = _page(open_page, tmp_path / "a", RARE, RARE | wider)
    expect(page.locator(".warning", has_text="Different fabrics:")).to_be_visible()
    expect(page.locator(".warning", has_text="Different scenarios:")).to_contain_text(
        "fabric.leaf-hosts"
    )
    charts = page.get_by_role("figure").filter(has_text="Transmit rate")
    page.evaluate("location.hash = 'select=port:leaf-01:1'")
    expect(charts.locator(".legend li")).to_have_count(2)
    page = _page(open_page, tmp_path / "b", RARE, RARE | other, address="select=port:leaf-01:1")
    charts = page.get_by_role("figure").filter(has_text="Transmit rate")
    expect(charts.locator(".legend li")).to_have_count(1)
    expect(page.get_by_text("has no such port with the same port at the far end")).to_be_visible()


def test_a_comparison_names_the_keys_that_differ(open_page: Opener, tmp_path: Path) -> None:
    settings: Plain = {
        "control.scheme": "ib-cc",
        "traffic.incast": [{"to": "host-0000", "from": ["host-0004"]}],
    }
    page = _page(open_page, tmp_path, RARE, RARE | settings)
    warning = page.locator(".warning", has_text="Different scenarios:")
    expect(warning).to_contain_text("One key differs besides congestion control and seed")
    expect(warning).to_contain_text("traffic.incast.0.from")
    assert page.locator(".warning", has_text="Different fabrics:").count() == 0
    rows = {row["key"]: row for row in table_csv(page, "Keys of the scenario that differ")}
    assert rows.keys() == {"control.scheme", "traffic.incast.0.from"}
    assert rows["traffic.incast.0.from"]["ib-cc"] == '["host-0004"]'


def test_runs_of_two_seeds_say_so(open_page: Opener, tmp_path: Path) -> None:
    runs = [silvan.run(SMALL.override(RARE), seed=seed) for seed in (1, 2)]
    page = open_page(write_page(runs, tmp_path / "page.html"))
    expect(page.get_by_text("Same fabric and same traffic; seeds 1 and 2.")).to_be_visible()


def test_long_values_that_differ_stay_different() -> None:
    """Values that do not fit on the page are told apart by their digests."""
    lists = [[f"host-{number:04}" for number in range(first, 200)] for first in (0, 1)]
    first, second = differences([{"from": one} for one in lists])
    assert first["from"].startswith("200 entries (SHA-256 ")
    assert second["from"].startswith("199 entries (SHA-256 ")
    assert len(first["from"]) < 50
    tables = [[{"to": f"host-{number}"} for number in range(20)] for _ in range(2)]
    tables[1][3] = {"to": "host-0"}
    first, second = differences([{"flow": one} for one in tables])
    assert first.keys() == second.keys() == {"flow"}
    assert first["flow"] != second["flow"]


def test_flows_are_shown_in_the_units_of_the_page(open_page: Opener, tmp_path: Path) -> None:
    """Oracle: the table of the run."""
    flows = [{"from": "host-0004", "to": "host-0000", "bytes": "64 KiB"}]
    run = silvan.run(SMALL.override({"traffic.flow": flows}))
    page = open_page(write_page([run], tmp_path / "page.html"))
    (row,) = table_csv(page, "flows")
    (expected,) = run.tables["flows"].to_pylist()
    assert float(row["end, ms"]) * 1e9 == pytest.approx(expected["end_ps"])
    assert row["bytes"] == str(expected["bytes"])


def test_keys_of_schemes_that_are_not_in_effect_do_not_differ() -> None:
    """Oracle: by hand; a chain has the keys of both of its schemes."""

    def control(scheme: str, mark: str, credit: str, coalesce: str) -> dict[str, object]:
        sections = {"ib-cc": {"mark": mark}, "pft": {"credit": credit}, "dcqcn": {"mark": mark}}
        notifications = {"feedback": {"coalesce": coalesce}}
        return {"control": {"scheme": scheme, **sections, **notifications}}

    none, marking, throttling, chain = (
        control("none", "1 kB", "1", "unlimited"),
        control("ib-cc", "2 kB", "2", "50 us"),
        control("pft", "3 kB", "3", "50 us"),
        control("ib-cc+pft", "4 kB", "3", "50 us"),
    )
    assert differences([none, marking, throttling]) == [
        {"control.scheme": "none"},
        {"control.scheme": "ib-cc"},
        {"control.scheme": "pft"},
    ]
    assert differences([none, marking, throttling, chain]) == [
        {"control.scheme": "none", "control.ib-cc.mark": ""},
        {"control.scheme": "ib-cc", "control.ib-cc.mark": "2 kB"},
        {"control.scheme": "pft", "control.ib-cc.mark": ""},
        {"control.scheme": "ib-cc+pft", "control.ib-cc.mark": "4 kB"},
    ]


def test_rates_over_a_key_have_its_unit(open_page: Opener, tmp_path: Path) -> None:
    """Oracle: 1 MiB is 1024 KiB; thresholds that follow the buffer give no separate curve."""
    sizes = {"32 KiB": 32.0, "800 kB": 781.25, "1 MiB": 1024.0}
    runs = [silvan.run(SMALL.override({"switch.buffer": size})) for size in sizes]
    page = open_page(write_page(runs, tmp_path / "page.html"))
    rows = table_csv(page, "Rates by switch.buffer")
    assert [float(row["switch.buffer (KiB)"]) for row in rows] == list(sizes.values())
    page.get_by_text("Rates by switch.buffer", exact=True).wait_for()


def test_schemes_are_no_curve(open_page: Opener, tmp_path: Path) -> None:
    schemes = ("none", "ib-cc", "dcqcn")
    runs = [silvan.run(SMALL.override({"control.scheme": name})) for name in schemes]
    page = open_page(write_page(runs, tmp_path / "page.html"))
    assert [row["run"] for row in table_csv(page, "Runs of this page")] != []
    expect(page.get_by_text("Rates by")).to_have_count(0)


MEASURED = {"probe.interval": "100 us", "probe.ports": True, "probe.latency": "host"}


def test_a_window_without_samples_shows_none(open_page: Opener, tmp_path: Path) -> None:
    page = _page(open_page, tmp_path, MEASURED, address="window=0.51-0.52")
    expect(page.get_by_text("small has no sample in this window.")).to_have_count(2)
    ports = page.get_by_role("region", name="Ports, 0.51 ms to 0.52 ms")
    expect(ports.locator("tbody tr")).to_have_count(0)
    latency = page.get_by_role("figure").filter(has_text="Latency, 0.51 ms to 0.52 ms")
    expect(latency).to_contain_text("No packet was received.")


def test_a_window_after_the_end_of_a_run_shows_nothing_of_it(
    open_page: Opener, tmp_path: Path
) -> None:
    """Oracle: the first run ends at 0.3 ms, so its rankings and its latencies end there."""
    runs = {"short": MEASURED | {"run.duration": "300 us"}, "long": MEASURED}
    results = [silvan.run(SMALL.override(one)) for one in runs.values()]
    path = write_page(results, tmp_path / "page.html", labels=list(runs))
    page = open_page(path, "window=0.5-0.7")
    ended = page.get_by_text("short ended at 0.3 ms, before this window.")
    expect(ended).to_have_count(2)
    expect(page.get_by_role("region", name="Ports").locator("tbody tr")).to_have_count(0)
    names = table_csv(page, "Latency, 0.5 ms to 0.7 ms")[0]
    assert set(names) == {"µs", "all hosts, long (% of packets)"}
    # Without a window, both have their own span.
    page = open_page(path)
    expect(page.get_by_role("region", name="Ports, 0 ms to 0.3 ms")).to_be_visible()
    assert set(table_csv(page, "Latency")[0]) == {
        "µs",
        "all hosts, 0 ms to 0.3 ms, short (% of packets)",
        "all hosts, 0 ms to 1 ms, long (% of packets)",
    }


def test_what_is_measured_after_the_warm_up_says_so(open_page: Opener, tmp_path: Path) -> None:
    warm = MEASURED | {"run.warm-up": "200 us"}
    page = _page(open_page, tmp_path, warm, warm)
    table_csv(page, "Latency, 0.2 ms to 1 ms")
    words = "receive rates (payload) and latencies of 0.2 ms to 1 ms, trees of 0 ms to 1 ms."
    expect(page.get_by_text(words)).to_have_count(2)
    page = _page(open_page, tmp_path, {"run.warm-up": "200 us"}, address="colour=utilisation")
    expect(page.get_by_label("Legend")).to_contain_text("utilisation, 0.2 ms to 1 ms")


def test_buttons_keep_their_width_next_to_a_long_name(open_page: Opener, tmp_path: Path) -> None:
    """Oracle: a button of one line is as high as one next to a short name."""
    run = silvan.run(_named(("a" + 500 * "x", "b", "c")))
    path = write_page([run], tmp_path / "page.html")
    heights = []
    for name in ("b", "a" + 500 * "x"):
        page = open_page(path, f"select=node:{name}")
        box = page.get_by_role("button", name="Clear").bounding_box()
        assert box is not None
        heights.append((box["width"], box["height"]))
    assert heights[1] == pytest.approx(heights[0], abs=1)
