"""Flows in the page: the limits that congestion control sets to them, and how one is selected."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

import silvan
from silvan.viewer import write_page
from silvan.viewer.tables import page_tables
from tests.viewer.conftest import SCENARIO, Opener, table_csv, wait_until_idle


@pytest.fixture(scope="module")
def limited() -> silvan.Result:
    """Run the incast with InfiniBand's congestion control, and sample its indices."""
    scenario = silvan.Scenario.from_toml(SCENARIO)
    return silvan.run(
        scenario.override({"control.scheme": "ib-cc", "probe.flow-limits": True, "run.seed": 3})
    )


@pytest.fixture(scope="module")
def limited_file(limited: silvan.Result, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write its page."""
    return write_page([limited], tmp_path_factory.mktemp("page") / "limited.html")


def _rows(result: silvan.Result, most: int | None = None) -> set[tuple[int, int, int, int, int]]:
    """Sample, hosts, service level and index of each row of the page."""
    wanted = {} if most is None else {"most_cells": most}
    tables = page_tables(result, **wanted).tables
    flows = tables["limited_flows"].to_pylist()
    owners = [flow for flow in flows for _ in range(flow["rows"])]
    limits = tables["flow_limits"].to_pylist()
    return {
        (row["sample"], flow["source"], flow["destination"], flow["sl"], row["ccti"])
        for flow, row in zip(owners, limits, strict=True)
    }


def _expected(result: silvan.Result) -> set[tuple[int, int, int, int, int]]:
    """Expected rows, from the result."""
    return {
        (
            row["time_ps"] // 20_000_000 - 1,
            row["source"],
            row["destination"],
            row["sl"],
            row["ccti"],
        )
        for row in result.tables["flow_limits"].to_pylist()
    }


def test_limits_are_those_of_the_result(limited: silvan.Result) -> None:
    expected = _expected(limited)
    assert len(expected) > 50
    assert _rows(limited) == expected


def test_few_limits_are_those_of_the_most_limited_flows(limited: silvan.Result) -> None:
    # A hundredth of the values of a page, and a hundredth of the limits: 4,000 of 400,000.
    most = 8_000_000 * 60 // 400_000
    kept = _rows(limited, most)
    flows = {row[1:4] for row in kept}
    # Merging samples keeps the last of each group; of the flows that are left, all are.
    assert 0 < len(kept) <= 60
    strict = dict.fromkeys({row[1:4] for row in _expected(limited)}, 0.0)
    for row in limited.tables["flow_limits"].to_pylist():
        strict[row["source"], row["destination"], row["sl"]] += 1 - row["rate"]
    assert max(strict, key=lambda flow: strict[flow]) in flows


def _few(limited: silvan.Result, monkeypatch: pytest.MonkeyPatch) -> tuple[set[str], set[str]]:
    """Let a page have 60 limits, and return which flows it keeps, and which it leaves out."""
    monkeypatch.setattr("silvan.viewer.tables.MOST_LIMITS", 60)
    names = limited.hosts["name"].to_pylist()
    every = {f"{names[row[1]]} > {names[row[2]]}" for row in _expected(limited)}
    kept = {f"{names[row[1]]} > {names[row[2]]}" for row in _rows(limited)}
    assert kept < every
    return kept, every - kept


def test_flows_whose_limits_are_left_out_are_counted(
    limited: silvan.Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert page_tables(limited).cut == {}
    kept, left_out = _few(limited, monkeypatch)
    assert page_tables(limited).cut == {"limited_flows": len(kept) + len(left_out)}


@pytest.mark.needs("chromium")
def test_flows_whose_limits_are_left_out_are_not_shown_as_free(
    open_page: Opener, limited: silvan.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, left_out = _few(limited, monkeypatch)
    part = f"the {len(kept)} most limited of {len(kept) + len(left_out)}"
    page = open_page(write_page([limited], tmp_path / "few.html"))
    panel = page.locator("section").filter(has=page.get_by_role("heading", name="CCTI of"))
    expect(panel).to_contain_text(f"This page has the limits of {part} flows")
    rows = table_csv(page, f"Limited flows, 0 ms to 0.4 ms, of {part}")
    assert {f"{row[f'from, of {part} flows']} > {row['to']}" for row in rows} == kept
    missing = min(left_out)
    page.evaluate("(name) => (location.hash = `select=flow:${name}`)", missing.replace(" ", ""))
    expect(page.get_by_role("heading", name=f"flow {missing}")).to_be_visible()
    fact = page.locator("dl > div").filter(has_text="CCTI")
    expect(fact).to_have_text(f"CCTInot in this page, which has {part}")
    expect(panel).to_contain_text("none of their limits")
    expect(panel).not_to_contain_text("is limited in this stretch")


@pytest.mark.parametrize("scheme", ["dcqcn", "half", "pft"])
def test_schemes_with_rates_have_no_index(limited: silvan.Result, scheme: str) -> None:
    result = silvan.run(limited.scenario.override({"control.scheme": scheme}))
    tables = page_tables(result).tables
    shown = np.sort(tables["flow_limits"]["rate_percent"].to_numpy())
    expected = np.sort(100 * result.tables["flow_limits"]["rate"].to_numpy())
    assert len(shown) > 0
    np.testing.assert_allclose(shown, expected, rtol=1e-6)
    assert 0 < shown[0] < shown[-1] < 100


@pytest.mark.needs("chromium")
def test_panel_shows_the_index_of_the_selected_flow(
    open_page: Opener, limited_file: Path, limited: silvan.Result
) -> None:
    page = open_page(limited_file, "select=node:host-0004")
    expect(page.get_by_role("heading", name="CCTI of flows from host-0004")).to_be_visible()
    course = np.zeros(20)
    for sample, source, destination, _, ccti in _expected(limited):
        if (source, destination) == (4, 0):
            course[sample] = ccti
    assert course.max() > 5
    shown = table_csv(page, "CCTI of the most limited flows")
    assert [float(row["host-0004 > host-0000 (CCTI)"]) for row in shown] == course.tolist()
    listed = table_csv(page, "Limited flows, 0 ms to 0.4 ms")
    (own,) = (row for row in listed if row["to"] == "host-0000")
    assert float(own["mean CCTI"]) == pytest.approx(course.mean(), abs=0.005)
    assert float(own["strictest, CCTI"]) == course.max()

    page.get_by_role("region", name="Limited flows").get_by_role("button").filter(
        has_text="host-0004"
    ).first.click()
    wait_until_idle(page)
    assert "select=flow%3Ahost-0004%3Ehost-0000" in page.url
    expect(page.get_by_role("heading", name="flow host-0004 > host-0000")).to_be_visible()
    page.reload()
    wait_until_idle(page)
    expect(page.get_by_role("heading", name="CCTI of host-0004 > host-0000")).to_be_visible()
    # The window changes the mean.
    page.get_by_role("spinbutton", name="from").fill("0.2")
    page.get_by_role("spinbutton", name="from").press("Enter")
    (own,) = table_csv(page, "Limited flows, 0.2 ms to 0.4 ms")
    assert float(own["mean CCTI"]) == pytest.approx(course[10:].mean(), abs=0.005)


@pytest.mark.needs("chromium")
def test_flow_is_found_by_its_hosts(open_page: Opener, limited_file: Path) -> None:
    page = open_page(limited_file)
    field = page.get_by_role("combobox", name="Search by name or LID")
    field.fill("host-0008 > host-0000")
    field.press("Enter")
    expect(page.get_by_role("heading", name="flow host-0008 > host-0000")).to_be_visible()
    field.fill("host-0008 > host")
    expect(page.get_by_role("listbox", name="Found")).to_be_hidden()


@pytest.mark.needs("chromium")
def test_path_of_a_flow_is_that_of_its_packets(
    open_page: Opener, limited_file: Path, limited: silvan.Result
) -> None:
    """Oracle: the ports that packets of the flow leave, as the run records them."""
    pair = {"from": "host-0008", "to": "host-0000"}
    traced = silvan.run(limited.scenario.override({"probe.packets": {"flows": [pair]}}))
    hops = [row for row in traced.packet_hops.to_pylist() if row["kind"] == "data"]
    first = min(row["born_ps"] for row in hops)
    names = [f"{row['node']}:{row['port']}" for row in traced.ports.to_pylist()]
    own = sorted((row["time_ps"], row["ports_row"]) for row in hops if row["born_ps"] == first)
    expected = [names[row] for _, row in own]
    assert len(expected) == 4
    page = open_page(limited_file, "select=flow:host-0008>host-0000")
    expect(page.get_by_role("heading", name="Where packets go")).to_be_visible()
    shown = page.locator(".way").first.locator("li").all_inner_texts()
    assert [text.strip() for text in shown] == [*expected, "to host-0000"]
    # Ports of a switch say which hosts they lead to; from them the way goes on.
    page.locator(".way").first.get_by_role("button", name=expected[-1]).click()
    expect(page.locator("dl", has_text="leads to").first).to_contain_text("host-0000")


@pytest.mark.needs("chromium")
def test_path_of_a_host_leads_to_the_roots_it_contributes_to(
    open_page: Opener, limited_file: Path, limited: silvan.Result
) -> None:
    (share, *_) = (
        row
        for row in limited.tables["tree_hosts"].to_pylist()
        if row["contributing_bytes"] and row["host"] == 8
    )
    life = limited.tree_lifetimes.to_pylist()[share["tree"]]
    # A root in the middle of the fabric has no destination.
    assert life["destination"] == ""
    page = open_page(limited_file, f"select=node:host-0008&t={share['time_ps'] / 1e9}")
    *_, root, end = page.locator(".way").first.locator("li").all_inner_texts()
    port = limited.ports.to_pylist()[life["root_row"]]
    assert root.strip() == f"{port['node']}:{port['port']}"
    assert end == f"to root of tree {share['tree']}"
