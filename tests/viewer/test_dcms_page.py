"""The page that the manager serves of its sweeps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, Page, expect

from silvan.cli import main
from tests.emulator.conftest import Serve, serve
from tests.emulator.test_dcms import (
    SCALE,
    TESTBED,
    configure,
    managed,
    rate,
    start_flows,
    stop,
    until,
)
from tests.gate import PATIENCE_S
from tests.viewer.conftest import PATIENCE_MS, table_csv

__all__ = ["serve"]

LINK_GBPS = 32


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1200, "height": 800}, accept_downloads=True)
    page.set_default_timeout(PATIENCE_MS)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    page.close()
    assert complaints == []


@pytest.mark.slow
@pytest.mark.needs("chromium", "ibsim-utils")
def test_page_shows_sweeps_and_what_a_dry_run_would_do(serve: Serve, page: Page) -> None:
    """Oracle: the rates of the flows. X-Y shares its cable with one flow to D."""
    fabric = serve(TESTBED, time_scale=SCALE)
    config = configure(fabric, "[subnet]\nrequire-sm = false\n")
    config.write_text(config.read_text().replace('"3 s"', '"1000 s"'))
    start_flows(fabric)
    until(fabric, lambda: 2.2 < rate(fabric, "X-Y") < 3.1)
    with managed(fabric, config, "--live") as manager:
        assert manager.process.stdout is not None
        address = manager.process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        with pytest.raises(HTTPError, match="403"):
            urlopen(address[:-3] + "/", timeout=PATIENCE_S)
        page.goto(address)
        panel = page.get_by_role("region", name="Congestion manager (DCMS)")
        expect(panel).to_contain_text("Dry run: Marking_Rate would be low at 1 port")
        (low,) = table_csv(page, "Ports with a low Marking_Rate")
        assert (low["port"], low["to"]) == ("S2:23", "D:1")
        assert low["victims wait, share"].startswith("S1:15 ")
        # The limits of flows are not known, so nothing is said of them.
        expect(page.get_by_role("heading", name="CCTI")).to_have_count(0)
        events = page.locator("p.events")
        expect(events).to_contain_text("DCMS: S2:23: victim-found, lower (dry run)")
        page.get_by_role("tab", name="Ports").click()

        def shows_rates() -> bool:
            used = 2 * rate(fabric, "X-Y") / LINK_GBPS
            ports = {row["port"]: row for row in table_csv(page, "Ports, ")}
            root, cable = ports["S2:23"], ports["S1:15"]
            # The root sends all the time; the victim's cable carries two flows, and else waits.
            return (
                float(root["utilisation, share"]) == pytest.approx(1, abs=0.1)
                and float(cable["utilisation, share"]) == pytest.approx(used, abs=0.05)
                and float(cable["waiting, share"]) == pytest.approx(1 - used, abs=0.1)
            )

        # The rate is of another span than the last sweep, in which flows may have begun.
        until(fabric, shows_rates)
        assert stop(manager) == 0
        expect(page.get_by_text("the server has ended")).to_be_visible()


@pytest.mark.slow
@pytest.mark.needs("chromium", "ibsim-utils")
def test_actions_are_events_of_the_page(serve: Serve, page: Page) -> None:
    fabric = serve(TESTBED, time_scale=SCALE)
    config = configure(fabric, "[subnet]\nrequire-sm = false\n")
    with managed(fabric, config, "--live", "--act") as manager:
        assert manager.process.stdout is not None
        page.goto(manager.process.stdout.readline().strip())
        panel = page.get_by_role("region", name="Congestion manager (DCMS)")
        expect(panel).to_contain_text("Marking_Rate is low at 0 ports")
        start_flows(fabric)
        events = page.locator("p.events")
        expect(events).to_contain_text("DCMS: S2:23: Marking_Rate 128 lowered to 0")
        expect(events).to_contain_text("DCMS: S2:23: Marking_Rate restored to 128")
        page.close()
        assert stop(manager) == 0


def test_page_needs_an_address_and_a_task_that_lasts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    config = tmp_path / "dcms.toml"
    config.write_text("")
    assert main(["dcms", str(config), "--live", "--once"]) == 2
    assert "not with --once" in re.sub(r"\s+", " ", capsys.readouterr().err)
    assert main(["dcms", str(config), "--live", "--bind", "8080"]) == 2
    assert main(["dcms", str(config), "--live", "--bind", "192.0.2.1:80"]) == 2
    assert "no page can be served at 192.0.2.1:80" in capsys.readouterr().err
