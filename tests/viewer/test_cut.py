"""Omissions of a page in long tables, and their notes. A trace omits nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

import silvan
from silvan.viewer import write_page
from silvan.viewer.perfetto import trace_events
from silvan.viewer.tables import MOST_EVENTS, page_tables
from tests.viewer.conftest import Opener, table_csv

STARTS = 2100


@pytest.fixture(scope="module")
def busy() -> silvan.Result:
    """Run flows that start one after the other, more than the events of a page."""
    flows = "".join(
        f'[[traffic.flow]]\nname = "f{at}"\nfrom = "host-000{1 + at % 3}"\n'
        f'to = "host-0000"\nbytes = "{4096 if at % 50 == 0 else 64} B"\nstart = "{at} us"\n'
        for at in range(1, STARTS + 1)
    )
    scenario = silvan.Scenario.from_toml(
        'name = "busy"\n[fabric]\ngenerator = "single-switch"\nhosts = 4\n'
        f'[probe]\ninterval = "100 us"\n[run]\nduration = "3 ms"\n{flows}'
    )
    return silvan.run(scenario)


def test_a_trace_has_all_events_and_a_page_counts_those_it_leaves_out(
    busy: silvan.Result,
) -> None:
    instants = [event for event in trace_events(busy) if event["ph"] == "i"]
    assert [event["ts"] for event in instants] == list(range(1, STARTS + 1))
    page = page_tables(busy)
    assert page.cut == {"events": STARTS}
    kept = page.tables["events"]["time_ps"].to_pylist()
    assert kept == [1e6 * at for at in range(1, MOST_EVENTS + 1)]


def test_a_page_keeps_the_slowest_flows(
    busy: silvan.Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("silvan.viewer.tables.MOST_ROWS", 100)
    page = page_tables(busy)
    assert page.cut["flows"] == busy.flows.num_rows == STARTS
    kept = page.tables["flows"].to_pylist()
    names = [row["name"] for row in kept]
    assert len(set(names)) == 100
    assert names == [name for name in busy.flows["name"].to_pylist() if name in set(names)]
    others = [row["slowdown"] for row in busy.flows.to_pylist() if row["name"] not in set(names)]
    assert min(row["slowdown"] for row in kept) >= max(others)


@pytest.mark.needs("chromium")
def test_a_page_says_what_it_leaves_out(
    open_page: Opener, busy: silvan.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("silvan.viewer.tables.MOST_ROWS", 100)
    page = open_page(write_page([busy], tmp_path / "page.html"))
    said = "This page has the first 2,000 of 2,100 events, up to 2 ms; a Perfetto trace has all."
    expect(page.get_by_text(said)).to_be_visible()
    part = "the 100 slowest of 2,100"
    expect(page.get_by_role("region", name=f"flows, {part}")).to_be_visible()
    rows = table_csv(page, f"flows, {part}")
    assert len(rows) == 100
    assert f"class, of {part} flows" in rows[0]
