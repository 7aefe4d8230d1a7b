"""The page of a diagnosed subnet, from files, from several moments, and live."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, expect

from silvan.live.moments import Moment
from silvan.viewer.diagnosis import LiveDiagnosis, write_diagnosis
from silvan.viewer.live import LiveServer, LiveSource
from tests.subnet_dumps import PORTS, TOPOLOGY, counters, dumped_moment
from tests.viewer.conftest import Opener, table_csv
from tests.viewer.messages import unpacked

HOSTILE = "<script>window.hacked=1</script><img src=x onerror=window.hacked=1>"

pytestmark = pytest.mark.needs("chromium")


def test_page_has_verdict_hosts_and_health(open_page: Opener, tmp_path: Path) -> None:
    page = open_page(write_diagnosis([dumped_moment(tmp_path, 9)], tmp_path / "d.html", "Subnet"))
    panel = page.get_by_role("region", name="Diagnosis")
    expect(panel).to_contain_text("Congestion: 1 tree")
    expect(panel).to_contain_text("left:3: incast, medium confidence")
    expect(panel).to_contain_text("Not known: No counter has flows")
    # Words of 4 bytes: 150 million a second are 4.8 Gbit/s.
    sent = table_csv(page, "Contributors at left:3")
    assert [(row["host"], float(row["sends, Gbit/s"])) for row in sent] == [
        ("a HCA-1", 4.8),
        ("b HCA-1", 3.2),
    ]
    expect(page.get_by_role("region", name="Health", exact=True).first).to_be_visible()
    # Ports lose their waiting time on links of 8 Gbit/s.
    ports = table_csv(page, "Ports, 0 s to 2 s")
    lost = {row["port"]: float(row["lost, Gbit/s"]) for row in ports}
    assert lost["a HCA-1:1"] == pytest.approx(0.4 * 8, rel=1e-5)
    assert lost["b HCA-1:1"] == pytest.approx(0.6 * 8, rel=1e-5)
    used = {row["port"]: float(row["utilisation, share"]) for row in ports}
    assert used["left:3"] == pytest.approx(1.0, rel=1e-5)
    # A queue is not known.
    expect(page.get_by_role("option", name="queue")).to_be_disabled()
    page.get_by_role("button", name="a HCA-1").first.click()
    selection = page.get_by_role("region", name="host a HCA-1")
    expect(selection).to_contain_text("contributes4.8 Gbit/s")
    expect(selection).to_contain_text("left:3")


def test_a_page_of_a_subnet_says_that_it_has_no_latencies(
    open_page: Opener, tmp_path: Path
) -> None:
    """Like a live page: no option of a run would record latencies."""
    page = open_page(write_diagnosis([dumped_moment(tmp_path, 9)], tmp_path / "d.html", "Subnet"))
    panel = page.get_by_role("region", name="Latency of packets")
    expect(panel).to_contain_text("a real subnet have no latencies of packets")
    expect(page.get_by_text("--record view")).to_have_count(0)


def test_unknown_loads_are_not_shown_as_zero(open_page: Opener, tmp_path: Path) -> None:
    lines = [line for line in counters(3).splitlines() if "GUID 0x20 " not in line]
    moment = dumped_moment(tmp_path, 9, after="\n".join(lines) + "\n")
    page = open_page(
        write_diagnosis([moment], tmp_path / "d.html", "Subnet"), "select=port:b HCA-1:1"
    )
    panel = page.get_by_role("region", name="Diagnosis")
    expect(panel).to_contain_text("of 6 ports, 1 are not known")
    selection = page.locator("section[aria-labelledby=selection-title]")
    # The switch has counted what b sends; only b counts what it waits.
    expect(selection).to_contain_text(re.compile(r"transmits with headers\s*3.2 Gbit/s"))
    expect(selection).to_contain_text(re.compile(r"waits\s*not known"))


def test_names_are_no_html(open_page: Opener, tmp_path: Path) -> None:
    moment = dumped_moment(tmp_path, 9, TOPOLOGY.replace("b HCA-1", HOSTILE))
    page = open_page(write_diagnosis([moment], tmp_path / "d.html", "Subnet"))
    panel = page.get_by_role("region", name="Diagnosis")
    shown = panel.get_by_title(HOSTILE, exact=True)
    expect(shown.first).to_have_text("<script>window.hacked=1</s…dow.hacked=1>")
    assert page.evaluate("window.hacked") is None
    text = (tmp_path / "d.html").read_text()
    assert "Content-Security-Policy" in text
    assert "<script>window.hacked" not in text


def test_moments_make_the_time_of_the_page(open_page: Opener, tmp_path: Path) -> None:
    idle = re.sub(r"XmitWait == \d+", "XmitWait == 0", counters(1))
    moments = [
        dumped_moment(tmp_path, 100, after=idle),
        dumped_moment(tmp_path, 3600),
        dumped_moment(tmp_path, 3610),
        dumped_moment(tmp_path, 3620, after=idle),
    ]
    page = open_page(write_diagnosis(moments, tmp_path / "d.html", "Subnet"), "t=0")
    panel = page.get_by_role("region", name="Diagnosis")
    expect(panel).to_contain_text("No congestion")
    page.get_by_role("button", name="One sample on").click()
    page.get_by_role("button", name="One sample on").click()
    expect(panel).to_contain_text("Congestion: 1 tree")
    course = table_csv(page, "Congestion over time")
    column = next(name for name in course[0] if name.startswith("trees"))
    assert [float(row[column]) for row in course] == [0, 1, 1, 0]
    page.get_by_role("tab", name="Trees").click()
    (tree,) = table_csv(page, "Trees, 0 s to 3522 s")
    assert (tree["tree"], tree["to"]) == ("T0", "c HCA-1")
    # In seconds of the page, which start 2 s before the first moment.
    assert float(tree["from, s"]) == 3600 - 98
    assert float(tree["until, s"]) == 3620 - 98


@contextmanager
def served(source: LiveSource) -> Iterator[str]:
    """Serve a live page in a thread, and return its address."""
    loop = asyncio.new_event_loop()
    ready = threading.Event()
    addresses: list[str] = []
    tasks: list[asyncio.Task[None]] = []

    async def run() -> None:
        async with LiveServer(source, interval_s=0.02) as server:
            addresses.append(server.address)
            tasks.append(asyncio.ensure_future(server.serve()))
            ready.set()
            with pytest.raises(asyncio.CancelledError):
                await tasks[0]

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    assert ready.wait(30)
    try:
        yield addresses[0]
    finally:
        loop.call_soon_threadsafe(tasks[0].cancel)
        thread.join(30)
        loop.close()


def test_message_has_what_ports_have_sent_and_waited(tmp_path: Path) -> None:
    moment = dumped_moment(tmp_path, 9)
    (data,) = LiveDiagnosis(moment, "Subnet").updates()
    header, columns = unpacked(data)
    assert (header["from_ps"], header["time_ps"]) == (0, 2 * 10**12)
    rows = moment.subnet.rows
    sent = dict(zip(columns["rows"], columns["xmit_bytes"], strict=True))
    waited = dict(zip(columns["rows"], columns["xmit_wait_ns"], strict=True))
    names = {0x1: "left", 0x10: "a HCA-1", 0x20: "b HCA-1", 0x30: "c HCA-1"}
    for guid, port, words, _, wait in PORTS:
        row = rows[f"{names[guid]}:{port}"]
        # Two seconds of so many million words of four bytes.
        assert sent.get(row, 0) == pytest.approx(words * 1e6 * 4 * 2, rel=1e-6)
        assert waited.get(row, 0) == pytest.approx(wait * 2e9, rel=1e-6, abs=1)
    assert list(columns["root_row"]) == [rows["left:3"]]
    hosts = [node["name"] for node in moment.subnet.nodes]
    through = {
        hosts[host]: gbps
        for host, gbps in zip(columns["host"], columns["contributing"], strict=True)
    }
    assert through == {"a HCA-1": pytest.approx(4.8), "b HCA-1": pytest.approx(3.2)}


def test_live_page_shows_moments_as_they_come_and_another_subnet(
    browser: Browser, tmp_path: Path
) -> None:
    idle = re.sub(r"XmitWait == \d+", "XmitWait == 0", counters(1))
    source = LiveDiagnosis(dumped_moment(tmp_path, 100, after=idle), "Watched subnet")
    with served(source) as address:
        page = browser.new_page()
        page.goto(address)
        panel = page.get_by_role("region", name="Diagnosis")
        expect(panel).to_contain_text("No congestion")
        source.add(dumped_moment(tmp_path, 110))
        expect(panel).to_contain_text("Congestion: 1 tree")
        # A page that is opened later has what was sent before.
        late = browser.new_page()
        late.goto(address)
        expect(late.get_by_role("region", name="Diagnosis")).to_contain_text("Congestion: 1 tree")
        late.close()
        # The paths are known: those of a flow that is looked for.
        page.goto(address + "#select=flow:a HCA-1>b HCA-1")
        page.reload()
        flow = page.get_by_role("region", name=re.compile("flow a HCA-1"))
        expect(flow).to_contain_text("left:2")
        source.add(dumped_moment(tmp_path, 120, TOPOLOGY.replace("c HCA-1", "renamed")))
        expect(panel).to_contain_text("2 hosts send to renamed")
        page.close()


def test_merged_moments_keep_means_and_last_verdicts(
    open_page: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("silvan.viewer.diagnosis.MOST_MOMENTS", 2)
    one = dumped_moment(tmp_path)
    half = (one.loads * np.float32(0.5)).tobytes()
    moments = [
        Moment(one.subnet, one.report, half if at % 2 else one.values, at * 10**9)
        for at in range(10, 14)
    ]
    page = open_page(write_diagnosis(moments, tmp_path / "d.html", "Subnet"))
    expect(page.get_by_role("region", name="Subnet")).to_contain_text("covers 2 of the run")
    ports = {row["port"]: row for row in table_csv(page, "Ports, 0 s to 5 s")}
    assert float(ports["left:3"]["utilisation, share"]) == pytest.approx(0.75, rel=1e-5)
