"""The live page: what its server sends, to whom, and what a browser shows of it."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, WebSocketRoute, expect
from websockets.exceptions import ConnectionClosedError, InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

import silvan
from silvan.live.emulation import ControlChannel, Emulation
from silvan.live.live_programs import opensm
from silvan.viewer.dcms_log import DcmsLog
from silvan.viewer.samples import LiveFabric, message
from tests.conftest import DDR_TOML
from tests.emulator.conftest import LINE, LINKS
from tests.gate import PATIENCE_S, wait_until
from tests.viewer.conftest import PATIENCE_MS
from tests.viewer.messages import unpacked

INCAST = f"""\
name = "sixteen"

[fabric]
generator = "k-ary-n-tree"
k = 4
n = 2
{DDR_TOML}
[[traffic.incast]]
to = "host-0000"
from = ["host-0001", "host-0004", "host-0005", "host-0008", "host-0012"]
"""

CROSSING = (
    LINE
    + LINKS
    + """
[[traffic.flow]]
from = "a"
to = "c"

[[traffic.flow]]
from = "b"
to = "d"
"""
)
"""Two flows, which have separate cables while there are two."""


@contextmanager
def emulated(toml: str, name: str) -> Iterator[Emulation]:
    """Serve a fabric that is slower than the clock, so that it needs little processor time."""
    scenario = silvan.Scenario.from_toml(toml)
    with Emulation(scenario, sockname=f"{name}-{os.getpid()}", time_scale=0.01) as emulation:
        yield emulation


@contextmanager
def served(emulation: Emulation, *options: str) -> Iterator[str]:
    """Serve the page of a fabric by the command, and return its address."""
    words = [sys.executable, "-m", "silvan", "view", "--live", "--json", *options]
    with subprocess.Popen(
        [*words, "--sockname", emulation.sockname], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            text = ""
            while not text.rstrip().endswith("}"):
                line = process.stdout.readline()
                assert line, "the server has ended"
                text += line
            yield json.loads(text)["address"]
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def live() -> Iterator[tuple[Emulation, str]]:
    """Serve an incast."""
    with emulated(INCAST, "test-view-live") as emulation, served(emulation) as address:
        yield emulation, address


@pytest.fixture
def congested(live: tuple[Emulation, str]) -> Iterator[LiveFabric]:
    """Stop the incast while it has a tree."""
    emulation, _ = live
    with closing(LiveFabric(ControlChannel(emulation.sockname))) as fabric:
        wait_until(lambda: 0 in fabric.sample().columns["destination"], "the incast has a tree")
        emulation.control("pause")
        yield fabric
        emulation.control("resume")


@pytest.mark.needs("chromium")
def test_a_page_says_that_its_server_refuses_it(browser: Browser) -> None:
    """A server that is started again at the same port has another token."""
    with emulated(INCAST, "test-view-ends") as emulation, closing(browser.new_page()) as page:
        with served(emulation) as address:
            port = str(urlsplit(address).port)
            page.goto(address)
            page.get_by_text("connected", exact=True).wait_for(timeout=PATIENCE_MS)
        # The server was terminated at once.
        page.get_by_text("connection lost, trying again").wait_for(timeout=PATIENCE_MS)
        with served(emulation, "--bind", f"127.0.0.1:{port}") as other:
            page.get_by_text("the server was started again").wait_for(timeout=PATIENCE_MS)
            page.goto(other)
            page.get_by_text("connected", exact=True).wait_for(timeout=PATIENCE_MS)
            # A server whose fabric ends says so before it goes.
            emulation.stop()
            page.get_by_text("the server has ended").wait_for(timeout=PATIENCE_MS)


def test_what_is_painted_after_the_end_does_not_hide_it(
    live: tuple[Emulation, str], browser: Browser
) -> None:
    """Oracle: the connection ends behind its first message, before that can be painted."""

    def end(route: WebSocketRoute) -> None:
        def pass_on(message: str | bytes) -> None:
            route.send(message)
            route.close(code=1001)

        route.connect_to_server().on_message(pass_on)

    with closing(browser.new_page()) as page:
        page.route_web_socket("**/*", end)
        page.goto(live[1])
        page.get_by_text("the server has ended").wait_for(timeout=PATIENCE_MS)
        frame = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        for _ in range(3):
            page.evaluate(frame)
        assert page.get_by_text("the server has ended").is_visible()


def test_sample_has_what_other_readings_of_the_fabric_have(
    live: tuple[Emulation, str], congested: LiveFabric
) -> None:
    status = live[0].control("status")
    sample = congested.sample()
    assert sample.time_ps == round(status["simulated_s"] * 1e12)
    assert sample.columns["class_bytes"].sum() == status["delivered_bytes"]
    # The search for trees counts Port VLs, and the switches count queues; there is one lane.
    of_switch = sample.columns["port_row"] >= 16
    in_trees = sample.columns["port_queued"][of_switch]
    assert in_trees.sum() > 0
    queued = sample.columns["queued_bytes"][sample.columns["port_row"][of_switch]]
    np.testing.assert_array_equal(in_trees, queued)
    # The root that faces the receiver of the incast, host 0, is the port of its cable.
    ports = congested.tables()["ports"]
    (tree,) = np.flatnonzero(sample.columns["destination"] == 0)
    root = int(sample.columns["root_row"][tree])
    assert ports["node"][ports["peer"][root].as_py()].as_py() == 0


def test_message_is_the_difference_of_two_samples(
    live: tuple[Emulation, str], congested: LiveFabric
) -> None:
    emulation, _ = live
    before = congested.sample()
    emulation.control("resume")
    wait_until(lambda: congested.sample().time_ps > before.time_ps + 10**7, "time passes")
    emulation.control("pause")
    after = congested.sample()
    header, columns = unpacked(message(before, after))
    assert (header["from_ps"], header["time_ps"]) == (before.time_ps, after.time_ps)
    sent = np.zeros(len(after.columns["xmit_bytes"]))
    sent[columns["rows"]] = columns["xmit_bytes"]
    expected = after.columns["xmit_bytes"].astype(float) - before.columns["xmit_bytes"]
    assert sent.sum() > 0
    np.testing.assert_allclose(sent, expected, rtol=1e-6)
    # Without congestion control a fabric begins with Threshold 0, and no switch marks.
    assert congested.facts()["live_is_off"]
    assert header["has_marked"] == bool(after.columns["fecn_marked"].sum()) is False
    # Ports on which nothing has happened are not in it.
    assert len(columns["rows"]) < len(sent)


def test_trees_are_sent_once(live: tuple[Emulation, str], congested: LiveFabric) -> None:
    emulation, _ = live
    # A paused fabric has time for a search: the trees are those of this instant.
    before = congested.sample()
    assert before.trees_ps == before.time_ps
    with closing(ControlChannel(emulation.sockname)) as channel:
        for known, is_sent in (
            ({}, True),
            ({"trees": 1}, True),
            ({"trees": before.trees_ps}, False),
        ):
            answer = channel.answer("sample", **known)
            channel.numbers(answer["bytes"])
            assert ("root_row" in answer["columns"]) == is_sent
    emulation.control("resume")
    wait_until(lambda: congested.sample().trees_ps > before.trees_ps, "trees are searched again")
    after = congested.sample()
    assert before.trees_ps < after.trees_ps <= after.time_ps
    for shown, is_sent in ((None, True), (before.trees_ps, True), (after.trees_ps, False)):
        header, columns = unpacked(message(before, after, shown_trees_ps=shown))
        assert header["trees_ps"] == after.trees_ps
        assert ("root_row" in columns) == ("host" in columns) == is_sent
    # A page that is opened again gets trees with its first sample, new or not.
    congested.rest()
    assert congested.updates() == []
    since_ps = congested.sample().time_ps
    wait_until(lambda: congested.sample().time_ps > since_ps, "time passes")
    (data,) = congested.updates()
    assert "root_row" in unpacked(data)[1]


def dumped_routes(emulation: Emulation) -> dict[tuple[str, str], int]:
    """Read the port of each switch for each host from the dump of the forwarding tables."""
    switch, ports = "", {}
    for line in emulation.control("tables")["tables"].splitlines():
        if head := re.search(r"of switch Lid .*\((.*)\):$", line):
            switch = head[1]
        elif entry := re.match(r"0x\w+ (\d+) : \(Channel Adapter .*: '(.*)'\)", line):
            ports[switch, entry[2]] = int(entry[1])
    return ports


def test_routes_are_those_of_the_forwarding_tables() -> None:
    with (
        emulated(CROSSING, "test-view-routes") as emulation,
        closing(LiveFabric(ControlChannel(emulation.sockname))) as fabric,
    ):
        names = fabric.tables()["nodes"]["name"].to_pylist()
        hosts, switches = names[:4], names[4:]

        def routes() -> dict[tuple[str, str], int]:
            ports = fabric.tables()["routes"]["port"].to_numpy().reshape(2, 4)
            pairs = [(switch, host) for switch in switches for host in hosts]
            return {
                pair: port for pair, port in zip(pairs, ports.ravel(), strict=True) if port < 255
            }

        configured = routes()
        assert len(configured) == 8
        assert configured == dumped_routes(emulation)
        # They are sent only when they are new.
        before = fabric.sample()
        assert "routes" not in before.columns
        after = []

        def is_changed() -> bool:
            after.append(fabric.sample())
            return "routes" in after[-1].columns

        emulation.control("reboot", switch="left")
        wait_until(is_changed, "a switch has lost its routes")
        assert routes() == {pair: port for pair, port in configured.items() if pair[0] == "right"}
        header, columns = unpacked(message(before, after[-1]))
        assert header["version"] == fabric.version != str(before.routes_version)
        np.testing.assert_array_equal(columns["routes"], fabric.tables()["routes"]["port"])


def test_sample_has_the_index_of_throttled_flows() -> None:
    control = '[control]\nscheme = "ib-cc"\n[control.ib-cc.adapter]\nccti-timer = 0\n'
    with (
        emulated(INCAST + control, "test-view-ccti") as emulation,
        closing(LiveFabric(ControlChannel(emulation.sockname))) as fabric,
    ):
        before = fabric.sample()
        everybody = {1, 4, 5, 8, 12}
        wait_until(
            lambda: set(fabric.sample().columns["limit_source"]) == everybody, "all are throttled"
        )
        emulation.control("pause")
        after = fabric.sample()
        _, columns = unpacked(message(before, after))
    # All of the incast are throttled, and no timer lowers their index.
    assert set(columns["limit_destination"]) == {0}
    assert columns["limit_ccti"].min() > 0
    assert columns["limit_sl"].max() == 0
    assert len(columns["limit_ccti"]) == 5


def test_log_of_the_dcms_is_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "dcms.log"
    old = '{"event": "lowered", "port": {"switch": "old", "guid": "1"}, "before": 9, "now": 0}\n'
    path.write_text(old)
    with closing(DcmsLog(path)) as log:
        assert log.take() == []
        port = {"switch": "leaf-01", "guid": "0x1", "port": 3}
        decision = {"event": "decision", "port": port, "reason": "victim-found"}
        events: list[object] = [
            decision | {"action": "lower", "dry-run": False},
            {"event": "swept", "ports": 4, "answered": 4, "seconds": 0.1},
            {"event": "lowered", "port": port, "before": 128, "now": 0},
            {"event": "restored", "port": {"switch": "", "guid": "0x2"}, "now": 128},
            {"event": "lowered", "port": port},
            [],
        ]
        text = "".join(json.dumps(event) + "\n" for event in events)
        with path.open("a") as file:
            file.write(text[:40])
            file.flush()
            assert log.take() == []
            file.write(text[40:] + "no JSON\n")
        assert log.take() == [
            "leaf-01:3: victim-found, lower",
            "leaf-01:3: Marking_Rate 128 lowered to 0",
            "0x2: Marking_Rate restored to 128",
        ]
        assert log.take() == []
    with pytest.raises(silvan.SilvanError, match="cannot be read"):
        DcmsLog(tmp_path / "none")


def test_a_pipe_is_no_log_of_the_dcms(tmp_path: Path) -> None:
    """Opening it would wait for its writer, and it does not say where it ends."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(silvan.SilvanError, match="cannot be read: it is no regular file"):
        DcmsLog(tmp_path / "pipe")


def test_a_log_without_ends_of_lines_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "dcms.log"
    path.touch()
    tracemalloc.start()
    try:
        with closing(DcmsLog(path)) as log, path.open("ab") as file:
            for _ in range(16):
                file.write(b"x" * (1 << 20))
                file.flush()
                assert log.take() == []
            assert tracemalloc.get_traced_memory()[0] < 3 << 20
    finally:
        tracemalloc.stop()


def get(address: str, path: str | None = None, **headers: str) -> http.client.HTTPResponse:
    """Ask the server for a page."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc, timeout=PATIENCE_S)
    connection.request("GET", parts.path if path is None else path, headers=headers)
    return connection.getresponse()


@pytest.mark.slow
def test_only_who_knows_the_token_gets_the_page(live: tuple[Emulation, str]) -> None:
    address = live[1]
    assert urlsplit(address).hostname == "127.0.0.1"
    page = get(address)
    text = page.read().decode()
    assert page.status == 200
    assert "connect-src 'self'" in text
    assert page.headers["Referrer-Policy"] == "no-referrer"
    wrong = urlsplit(address).path[:-2] + "/"
    for path in ("/", wrong, f"{wrong}samples", "/../"):
        assert get(address, path).status == 403, path
    assert get(address, Host="silvan.example").status == 403
    assert get(address, urlsplit(address).path + "other").status == 404


@pytest.mark.slow
def test_other_pages_cannot_open_a_connection(live: tuple[Emulation, str]) -> None:
    address = live[1]
    samples = address.replace("http:", "ws:") + "samples"
    own = f"http://{urlsplit(address).netloc}"
    for origin in (None, "http://example.org", own.replace("127.0.0.1", "localhost")):
        with pytest.raises(InvalidStatus) as refused:
            connect(samples, origin=Origin(origin) if origin else None)
        assert refused.value.response.status_code == 403
    with connect(samples, origin=Origin(own)) as connection:
        header, columns = unpacked(connection.recv(timeout=PATIENCE_S, decode=False))
        assert header["time_ps"] > header["from_ps"]
        assert len(columns["rows"]) > 0
        connection.send("pause")
        with pytest.raises(ConnectionClosedError):
            list(connection)
        assert connection.close_code == 1008


@pytest.mark.slow
def test_who_connects_later_gets_what_was_sent(live: tuple[Emulation, str]) -> None:
    address = live[1]
    samples = address.replace("http:", "ws:") + "samples"
    own = Origin(f"http://{urlsplit(address).netloc}")

    def times(count: int) -> list[int]:
        with connect(samples, origin=own) as connection:
            messages = (connection.recv(timeout=PATIENCE_S, decode=False) for _ in range(count))
            return [unpacked(one)[0]["time_ps"] for one in messages]

    first = times(5)
    assert first == sorted(set(first))
    # No page is open in between, as while a page is loaded again.
    again = times(8)
    start = again.index(first[0])
    assert again[start : start + 5] == first[: len(again) - start]


@pytest.mark.slow
def test_command_names_a_fabric_that_is_not_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from silvan.cli import main

    assert main(["view", "--live", "--sockname", "no-such-fabric"]) == 2
    assert "no emulated fabric answers" in capsys.readouterr().err
    assert main(["view", "--live", "results"]) == 2
    assert main(["view", "results", "--dcms-log", "dcms.log"]) == 2
    assert main(["view", "--live", "--dcms-log", "no-such.log"]) == 2
    assert main(["view", "--live", "--bind", "8080"]) == 2
    assert main(["view"]) == 2


@pytest.fixture
def live_page(browser: Browser) -> Iterator[Callable[[str], Page]]:
    """Open live pages, and fail if one complains or asks for anything but its address.

    Chromium complains where a page tries again after its server has gone: close it before.
    """
    complaints: list[str] = []
    pages = []

    def opened(address: str) -> Page:
        own = address.partition("#")[0]
        page = browser.new_page(viewport={"width": 1200, "height": 800})
        page.set_default_timeout(PATIENCE_MS)
        pages.append(page)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request",
            lambda request: None if own in request.url else complaints.append(request.url),
        )
        page.goto(address)
        page.get_by_text("connected", exact=True).wait_for()
        return page

    yield opened
    for page in pages:
        page.close()
    assert complaints == []


def wait_for(page: Page, condition: Callable[[], bool]) -> None:
    """Wait until something holds; the policy of the page forbids what Playwright waits with."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "has not come about"
        page.wait_for_timeout(50)


def shown_instant(page: Page) -> float:
    """Return the instant that the page shows."""
    return float(page.locator("output.now").inner_text().split()[2])


def samples(page: Page) -> int:
    """Return how many samples the page has."""
    slider = page.get_by_role("slider", name="Instant")
    return int(slider.get_attribute("max") or 0) + 1


@pytest.mark.slow
@pytest.mark.needs("chromium")
def test_page_follows_until_one_goes_back(live_page: Callable[[str], Page]) -> None:
    # A page keeps the last 300 samples: of a fabric that has just started it drops none.
    with (
        emulated(INCAST, "test-view-back") as emulation,
        served(emulation) as address,
        # The selection of an address is there before the first sample.
        closing(live_page(address + "#select=node:host-0004")) as page,
    ):
        first = shown_instant(page)
        wait_for(page, lambda: shown_instant(page) > first)
        button = page.get_by_role("button", name="Live")
        assert button.get_attribute("aria-pressed") == "true"
        wait_for(page, lambda: samples(page) > 6)
        page.get_by_role("slider", name="Instant").fill("1")
        back, had = shown_instant(page), samples(page)
        wait_for(page, lambda: samples(page) > had + 3)
        assert shown_instant(page) == back
        assert button.get_attribute("aria-pressed") == "false"
        button.click()
        wait_for(page, lambda: shown_instant(page) > back)


IN_ONE_FRAME = """() => new Promise((done) => {
  const [told, drawn] = [[], new Set()];
  const now = () => document.timeline.currentTime;
  const prototype = WebGL2RenderingContext.prototype;
  const clear = prototype.clear;
  prototype.clear = function (...parts) { drawn.add(now()); return clear.apply(this, parts); };
  const watch = new MutationObserver(() => told.push(now()));
  const bar = document.querySelector('footer.time');
  for (const one of [bar.querySelector('output'), bar.querySelector('.chart .legend')])
    watch.observe(one, { characterData: true, childList: true, subtree: true });
  setTimeout(() => {
    prototype.clear = clear;
    watch.disconnect();
    done(told.filter((frame) => frame < now()).map((frame) => drawn.has(frame)));
  }, 2000);
})"""
"""True if the map was drawn in each frame in which the text of the time bar changed."""


@pytest.mark.slow
@pytest.mark.needs("chromium")
def test_text_and_map_change_in_the_same_frame(
    live: tuple[Emulation, str], live_page: Callable[[str], Page]
) -> None:
    page = live_page(live[1])
    wait_for(page, lambda: samples(page) > 3)
    changes: list[bool] = []

    def has_changed() -> bool:
        changes.extend(page.evaluate(IN_ONE_FRAME))
        return len(changes) >= 12

    wait_for(page, has_changed)
    assert all(changes), changes


@pytest.mark.slow
@pytest.mark.needs("chromium")
def test_what_a_dcms_does_is_an_event(live_page: Callable[[str], Page], tmp_path: Path) -> None:
    path = tmp_path / "dcms.log"
    path.touch()
    with (
        emulated(INCAST, "test-view-dcms") as emulation,
        served(emulation, "--dcms-log", str(path)) as address,
        closing(live_page(address)) as page,
    ):
        wait_for(page, lambda: samples(page) > 2)
        port = {"switch": "<b>leaf</b>", "guid": "0x1", "port": 3}
        event = {"event": "lowered", "port": port, "before": 128, "now": 0}
        with path.open("a") as file:
            file.write(json.dumps(event) + "\n")
        events = page.locator("p.events")
        words = "DCMS: <b>leaf</b>:3: Marking_Rate 128 lowered to 0"
        wait_for(page, lambda: words in events.inner_text())


@pytest.mark.slow
@pytest.mark.needs("chromium", "opensm", "ibsim-utils")
def test_tree_of_a_cut_cable_appears(live_page: Callable[[str], Page], tmp_path: Path) -> None:
    with (
        emulated(CROSSING, "test-view-cut") as emulation,
        opensm(emulation, tmp_path),
        served(emulation) as address,
        closing(live_page(address)) as page,
    ):
        wait_for(page, lambda: samples(page) > 3)
        way = page.locator(".way li")
        ways = [["a:1", cable, "right:1", "to c"] for cable in ("left:5", "left:7")]
        page.evaluate("location.hash = 'select=flow:a>c'")
        wait_for(page, lambda: way.all_inner_texts() in ways)
        page.get_by_role("tab", name="Trees").click()
        ranking = page.locator("#ranking")
        assert ranking.locator("tbody tr").count() == 0
        with closing(LiveFabric(ControlChannel(emulation.sockname))) as fabric:
            assert emulation.control("cut", port="left:5")["peer"] == "right:6"
            events = page.locator("p.events")
            wait_for(page, lambda: "left:5 down" in events.inner_text())
            # Both ends of the cable are marked on the map, and explained.
            expect(page.get_by_text("cable down", exact=True)).to_be_visible()
            with page.expect_download() as download:
                page.get_by_role("button", name="SVG").click()
            drawing = Path(download.value.path()).read_text("utf-8")
            crosses = re.findall(r'<path d="M[\d. -]+l([\d.]+) \1m0 -\1l-\1 \1"', drawing)
            assert len(crosses) == 2
            # OpenSM sends both flows over the other cable, which is too slow for them.
            for source, destination, last in (("a", "c", "right:1"), ("b", "d", "right:2")):
                page.evaluate(f"location.hash = 'select=flow:{source}>{destination}'")
                expect(way).to_have_text([f"{source}:1", "left:7", last, f"to {destination}"])
            wait_for(page, lambda: ranking.locator("tbody tr").count() > 0)
            # Between two packets there may be none.
            roots: list[int] = []

            def has_tree() -> bool:
                roots[:] = fabric.sample().columns["root_row"].tolist()
                return bool(roots)

            wait_until(has_tree, "a sample has a tree")
            ((root,), ports) = roots, fabric.tables()["ports"]
        # The nodes of a fabric are its four hosts, and the switches left and right.
        assert (ports["node"][root].as_py(), ports["number"][root].as_py()) == (4, 7)
        ranking.get_by_role("button", name="T0").click()
        page.get_by_role("heading", name="Port left:7").wait_for()
