"""Every file in CSV that a live page offers has the values of its messages, unrounded."""

from __future__ import annotations

import os
from contextlib import closing
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from playwright.sync_api import Browser, expect

import silvan
from silvan.live.emulation import ControlChannel, Emulation
from silvan.viewer.samples import LiveFabric, Sample, message
from silvan.viewer.tables import page_tables
from tests.conftest import ddr_scenario
from tests.viewer.conftest import PATIENCE_MS
from tests.viewer.csv_files import (
    FLOAT32,
    SMALL_VIEW,
    CsvFile,
    assert_equal,
    csv_files,
    csv_of_rankings,
)
from tests.viewer.named_runs import port_names
from tests.viewer.test_diagnosis import served

pytestmark = pytest.mark.needs("chromium")

Column = npt.NDArray[Any]
TIMES_PS = (1_000_000_000, 3_000_000_000, 4_500_000_000, 5_000_000_000)
PORT = "switch-00:1"
FDR_GBPS = 54.545454545
"""Four lanes of 14.0625 Gbit/s, of which 64 bits of 66 are data, in whole bit/s."""

CLASSES = ("in, cast", '="b"')


class Replayed:
    """Samples of a fabric, of which a live page gets all at once."""

    name = "replayed"
    version = "0"
    most_messages = 0

    def __init__(self) -> None:
        scenario = ddr_scenario(
            fabric={"generator": "single-switch", "hosts": 3},
            link={"speed": "FDR"},
            traffic={"incast": [{"to": "host-0000"}]},
            run={"duration": "10 us"},
        )
        result = silvan.run(scenario)
        self._tables = page_tables(result).tables
        self.ports = port_names(result)
        self.samples = [self._sample(number) for number in range(len(TIMES_PS))]
        self._sent = False

    def _sample(self, number: int) -> Sample:
        rows = np.arange(len(self.ports))
        grown = (rows + 1) * 1237 * number**2
        # At the second instant two trees, then one.
        trees = {0: 0, 1: 2}.get(number, 1)
        whole = np.arange(trees, dtype=np.uint32)
        columns: dict[str, Column] = {
            "xmit_bytes": grown.astype(np.uint64),
            "xmit_wait_ps": (grown * 10_000).astype(np.uint64),
            "xmit_cong_ps": 0 * rows,
            "fecn_marked": (rows * number).astype(np.uint64),
            "queued_bytes": ((rows + 1) * 333 * number).astype(np.uint64),
            "down_rows": np.empty(0, np.uint32),
            "class_bytes": np.array([1001 * number**2, 77 * number], np.uint64),
            "root_row": whole,
            "root_vl": 0 * whole,
            "destination": whole,
            "contributors": whole + 1,
            "victims": whole,
            "port_tree": whole,
            "port_row": whole,
            "port_depth": 0 * whole,
            "port_parent": whole,
            "port_queued": (10_001.0 * (whole + number)).astype(np.uint64),
            "host_tree": whole,
            "host": whole + 1,
            "contributing": (10_001 * (whole + number)).astype(np.uint64),
            "victim": (501 * (whole + number)).astype(np.uint64),
            "limit_source": np.array([1, 2], np.uint32),
            "limit_destination": np.array([0, 0], np.uint32),
            "limit_sl": np.array([0, 3], np.uint32),
            "limit_ccti": np.array([number, 7 * number], np.uint32),
        }
        return Sample(TIMES_PS[number], TIMES_PS[number], CLASSES, 0, columns)

    def facts(self) -> dict[str, Any]:
        """Return what the page says of the fabric."""
        texts = dict.fromkeys(("label", "name", "description", "version", "hash"), "replayed")
        numbers = dict.fromkeys(("seed", "duration_ps", "warm_up_ps"), 0)
        whole = dict.fromkeys(("merged_samples", "skipped_trees"), 1)
        return {
            **texts,
            **numbers,
            **whole,
            "scheme": "ib-cc",
            "fabric": {},
            "path_choice": "table",
            "hosts": 3,
            "link_gbps": FDR_GBPS,
            "rates_gbps": {},
            "groups": ["all hosts"],
            "tables": ["nodes", "ports", "routes"],
            "live_version": self.version,
            "live_is_off": False,
            "scenario": "",
            "parameters": {},
        }

    def tables(self) -> dict[str, pa.Table]:
        """Return nodes, ports and routes."""
        return {name: self._tables[name] for name in ("nodes", "ports", "routes")}

    def rest(self) -> bool:
        """Wait for a page."""
        return False

    def updates(self) -> list[bytes]:
        """Return all messages, once."""
        if self._sent:
            return []
        self._sent = True
        pairs = zip(self.samples, self.samples[1:], strict=False)
        return [message(before, after) for before, after in pairs]


class Slow(Replayed):
    """Samples that come one by one, so slowly that panels show each at once."""

    most_messages = 300
    calls = 0

    def updates(self) -> list[bytes]:
        """Return the next message, if it is its turn."""
        self.calls += 1
        if self.calls % 20 or len(self.samples) < 2:
            return []
        before, after, *_ = self.samples
        self.samples = self.samples[1:]
        return [message(before, after)]


MARKS = """() => [...document.querySelectorAll('.marker')]
  .filter((one) => !one.hidden && one.getBoundingClientRect().height > 0)
  .map((one) => {
    const [line, plot] = [one, one.parentElement].map((part) => part.getBoundingClientRect());
    return [line.left - plot.left, plot.width];
  })"""
"""Places of the lines of the instant in their plots, and widths of the plots."""


def test_the_line_of_the_instant_is_in_the_plot(browser: Browser) -> None:
    with served(Slow()) as address:
        page = browser.new_page(viewport={"width": 1200, "height": 800})
        page.set_default_timeout(PATIENCE_MS)
        page.goto(f"{address}#select=port:switch-00:1")
        page.get_by_role("button", name="Download port switch-00:1 at 0.005 s").wait_for()
        # Panels follow the instant within 120 ms.
        page.wait_for_timeout(500)
        marks = page.evaluate(MARKS)
        assert len(marks) >= 2
        for left, width in marks:
            # The newest sample is at the right end of the axis.
            assert left == pytest.approx(width, abs=2)
        page.close()


def test_an_address_brings_an_instant_back(browser: Browser) -> None:
    with served(Slow()) as address:
        page = browser.new_page(viewport={"width": 1200, "height": 800})
        page.set_default_timeout(PATIENCE_MS)
        now = page.locator("output.now")
        page.goto(address)
        expect(now).to_contain_text("0.005")
        # The page follows the newest sample: its address names no instant.
        page.wait_for_timeout(500)
        assert "layout=" in page.url
        assert "t=" not in page.url.replace("layout=", "")
        slider = page.get_by_role("slider", name="Instant")
        slider.fill("1")
        expect(now).to_contain_text("0.0045")
        page.wait_for_url("**t=0.0045*")
        page.reload()
        expect(now).to_contain_text("0.0045")
        assert slider.get_attribute("max") == "2"
        expect(page.get_by_role("button", name="Live")).to_have_attribute("aria-pressed", "false")
        # None of the samples is so old: the page follows the newest one.
        page.goto("about:blank")
        page.goto(f"{address}#t=0.0001")
        expect(now).to_contain_text("0.005")
        expect(page.get_by_role("button", name="Live")).to_have_attribute("aria-pressed", "true")
        page.close()


@pytest.fixture(scope="module")
def replayed() -> Replayed:
    """Make samples of a fabric."""
    return Replayed()


@pytest.fixture(scope="module")
def live(browser: Browser, replayed: Replayed) -> dict[str, CsvFile]:
    """Download all files of the live page."""
    with served(replayed) as address:
        page = browser.new_page(**SMALL_VIEW)
        page.set_default_timeout(PATIENCE_MS)
        page.goto(f"{address}#select=port:switch-00:1")
        page.get_by_role("button", name="Download Ports, 0.001 s to 0.005 s").wait_for()
        page.get_by_role("button", name="Download port switch-00:1 at 0.005 s").wait_for()
        found = csv_of_rankings(page)
        page.get_by_label("by traffic class").evaluate("box => box.click()")
        page.get_by_role("button", name="Download Receive rate by class").wait_for()
        found |= csv_files(page)
        page.close()
    return found


def _grown(replayed: Replayed, column: str) -> Column:
    """Return the growth of a column in each interval."""
    values = np.array([sample.columns[column].astype(float) for sample in replayed.samples])
    return np.diff(values, axis=0)


LENGTHS_PS = np.diff(np.array(TIMES_PS, float))


def test_every_file_of_a_live_page_has_a_test(live: dict[str, CsvFile]) -> None:
    span = "0.001 s to 0.005 s"
    assert set(live) == {
        *(f"{name}, {span}" for name in ("Ports", "Trees", "Victims", "Culprits")),
        *(f"Limited flows, {span}", "CCTI of the most limited flows"),
        *("Congestion over time", "Mean receive rate, payload", "Receive rate by class, payload"),
        *("Queue", "Transmit rate, with headers", "Waiting for credits"),
        *("port switch-00:1 at 0.005 s", "Run"),
    }


def test_charts_of_a_live_page(live: dict[str, CsvFile], replayed: Replayed) -> None:
    row = replayed.ports.index(PORT)
    delivered = _grown(replayed, "class_bytes")
    sent = _grown(replayed, "xmit_bytes")[:, row]
    waited = _grown(replayed, "xmit_wait_ps")[:, row]
    queued = [int(one.columns["queued_bytes"][row]) for one in replayed.samples[1:]]
    rate = 8e3 / LENGTHS_PS
    for title, heading, values in (
        ("Queue", f"{PORT} (kB)", np.array(queued) / 1e3),
        ("Transmit rate, with headers", f"{PORT} (Gbit/s)", sent * rate),
        ("Waiting for credits", f"{PORT} (% of time)", 100 * waited / LENGTHS_PS),
        ("Mean receive rate, payload", "all hosts (Gbit/s)", delivered.sum(axis=1) / 3 * rate),
        ("Receive rate by class, payload", f"{CLASSES[0]} (Gbit/s)", delivered[:, 0] * rate),
        ("Receive rate by class, payload", f"{CLASSES[1]} (Gbit/s)", delivered[:, 1] * rate),
        ("Congestion over time", "trees (trees)", [2, 1, 1]),
        ("Congestion over time", "MB in trees (MB)", [0.030003 + 0.0, 0.020002, 0.030003]),
        ("CCTI of the most limited flows", "host-0001 > host-0000 (CCTI)", [1, 2, 3]),
        ("CCTI of the most limited flows", "host-0002 > host-0000, SL 3 (CCTI)", [7, 14, 21]),
    ):
        rel = FLOAT32 if title == "Waiting for credits" else 1e-12
        assert_equal(live[title].numbers(heading), values, rel)
        assert_equal(live[title].numbers("s"), [one / 1e12 for one in TIMES_PS[1:]])


def test_rankings_of_a_live_page(live: dict[str, CsvFile], replayed: Replayed) -> None:
    span = "0.001 s to 0.005 s"
    shown = live[f"Ports, {span}"]
    order = [replayed.ports.index(name) for name in shown.texts("port")]
    assert sorted(order) == list(range(len(replayed.ports)))
    length = LENGTHS_PS.sum()
    used = _grown(replayed, "xmit_bytes").sum(axis=0) * 8e3 / length / FDR_GBPS
    waited = _grown(replayed, "xmit_wait_ps").sum(axis=0) / length
    marked = _grown(replayed, "fecn_marked").sum(axis=0)
    queued = replayed.samples[-1].columns["queued_bytes"]
    used_name = "utilisation, share, at most one packet above 1"
    assert_equal(shown.numbers("waiting, share"), waited[order], FLOAT32)
    assert_equal(shown.numbers(used_name), used[order])
    assert_equal(shown.numbers("longest queue, bytes"), queued[order], rel=0)
    assert_equal(shown.numbers("marked packets"), marked[order], rel=0)

    trees = live[f"Trees, {span}"].by("tree")
    assert [list(trees[name].values())[1:] for name in ("T0", "T1")] == [
        *(["switch-00:1", "host-0000", "0.003", "0.005", "30003", "1", "1", "0"],),
        *(["switch-00:2", "host-0001", "0.003", "0.0045", "20002", "1", "2", "1"],),
    ]
    # The trees of an instant count for the time since the one before: 2, 1.5 and 0.5 ms.
    weights = LENGTHS_PS / length
    for title, heading, amount in (
        ("Victims", "held up, mean bytes", 501),
        ("Culprits", "towards roots, mean bytes", 10_001),
    ):
        rows = live[f"{title}, {span}"].by("host")
        assert set(rows) == {"host-0001", "host-0002"}
        assert_equal([float(rows["host-0001"][heading])], [amount * (weights @ [1, 2, 3])])
        assert_equal([float(rows["host-0002"][heading])], [amount * weights[0] * 2])

    limited = live[f"Limited flows, {span}"]
    assert limited.header == ["from", "to", "SL", "mean CCTI", "strictest, CCTI"]
    assert limited.rows == [
        ["host-0002", "host-0000", "3", "14", "21"],
        ["host-0001", "host-0000", "0", "2", "3"],
    ]


def test_facts_of_a_live_page(live: dict[str, CsvFile], replayed: Replayed) -> None:
    facts = live["port switch-00:1 at 0.005 s"].by("name")
    row = replayed.ports.index(PORT)
    sent, waited = (_grown(replayed, name)[-1, row] for name in ("xmit_bytes", "xmit_wait_ps"))
    for name, value, unit, rel in (
        ("transmits with headers", sent * 8e3 / LENGTHS_PS[-1], "Gbit/s", 1e-12),
        ("waits", waited / LENGTHS_PS[-1], "share", FLOAT32),
        ("queue", 333 * 3 * (row + 1), "bytes", 0),
        ("marked", row, "packets", 0),
        ("queued in the tree", 30_003, "bytes", 0),
    ):
        assert_equal([float(facts[name]["value"])], [value], rel)
        assert facts[name]["unit"] == unit
    assert live["Run"].by("name")["link rate"]["value"] == str(FDR_GBPS)


def test_links_of_a_live_fabric_have_their_own_rates() -> None:
    scenario = ddr_scenario(
        fabric={
            "switch": [{"name": "s", "ports": 2}],
            "host": [{"name": "a"}, {"name": "b"}],
            "cable": [{"from": "a", "to": "s:1", "speed": "FDR"}, {"from": "b", "to": "s:2"}],
        },
    )
    with (
        Emulation(scenario, sockname=f"test-csv-rates-{os.getpid()}") as emulation,
        closing(LiveFabric(ControlChannel(emulation.sockname))) as fabric,
    ):
        rates = fabric.tables()["ports"]["rate_gbps"].to_pylist()
    assert sorted(rates) == [16, 16, FDR_GBPS, FDR_GBPS]
