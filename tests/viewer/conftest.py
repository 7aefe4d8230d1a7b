"""Runs for the page, and the browser that shows it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, Playwright, expect, sync_playwright

import silvan
from silvan.inputs.toml_text import TomlValue
from silvan.reproduce import experiments
from silvan.reproduce.plan import ReproductionPlan, make_plan
from silvan.reproduce.reproduction import evaluate, write_manifest
from silvan.viewer import write_page
from silvan.viewer.report import write_report
from silvan.viewer.reproduction import reproduction_report
from tests.conftest import DDR_TOML
from tests.gate import PATIENCE_S

PROGRAM = "/usr/bin/chromium"
PATIENCE_MS = PATIENCE_S * 1000
expect.set_options(timeout=PATIENCE_MS)

# Rendering in software, so that pictures are the same with and without a graphics processor.
CHROMIUM = (
    "--no-sandbox",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
    "--force-color-profile=srgb",
)

SCENARIO = f"""\
name = "sixteen"

[fabric]
generator = "k-ary-n-tree"
k = 4
n = 2
{DDR_TOML}
[[traffic.incast]]
to = "host-0000"
from = ["host-0004", "host-0005", "host-0008", "host-0012"]

[[traffic.uniform]]
load = 0.3
start = "100 us"

[control]
scheme = "none"

[[control.ib-cc.change]]
at = "200 us"
switch = "leaf-00"
marking-rate = 3

[probe]
interval = "20 us"
ports = true
classes = true
latency = "host"
trees = {{ interval = "20 us" }}

[run]
duration = "400 us"
seed = 2
"""


@pytest.fixture(scope="session")
def run() -> silvan.Result:
    """Run an incast among sixteen hosts in a fat tree, with everything recorded."""
    scenario = silvan.Scenario.from_toml(SCENARIO)
    return silvan.run(scenario)


@pytest.fixture(scope="session")
def controlled(run: silvan.Result) -> silvan.Result:
    """Run the same with congestion control."""
    return silvan.run(run.scenario.override({"control.scheme": "hpcc"}))


@pytest.fixture(scope="session")
def changed(run: silvan.Result) -> silvan.Result:
    """Run the same with a scheme whose settings change."""
    return silvan.run(run.scenario.override({"control.scheme": "ib-cc"}))


@pytest.fixture(scope="session")
def page_file(run: silvan.Result, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the page of the run."""
    return write_page([run], tmp_path_factory.mktemp("page") / "run.html")


@pytest.fixture(scope="session")
def comparison_file(
    run: silvan.Result, controlled: silvan.Result, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Write the page of both runs."""
    return write_page([run, controlled], tmp_path_factory.mktemp("page") / "both.html")


SMALL: dict[str, TomlValue] = {
    "fabric.generator": "single-switch",
    "fabric.hosts": 16,
    "traffic.nodes.hotspots": 2,
    "run.duration": "1 ms",
}


@pytest.fixture(scope="session")
def reproduction(tmp_path_factory: pytest.TempPathFactory) -> tuple[ReproductionPlan, Path]:
    """Reproduce a quick look at figure 9a on 16 hosts."""
    folder = tmp_path_factory.mktemp("reproduction")
    (experiment,) = experiments("gran2012", "fig9a")
    plan = make_plan("gran2012", [experiment], quick=True, overrides=SMALL)
    for one, path in zip(plan.runs, plan.folders(folder / "runs"), strict=True):
        silvan.run(one.scenario, seed=one.seed).write(path)
    figures = folder / "figures"
    figures.mkdir()
    outcome = evaluate("gran2012", experiment, plan.finished("fig9a", folder / "runs"), figures)
    write_manifest(plan, [outcome], figures / "reproduction.json")
    return plan, figures


@pytest.fixture(scope="session")
def report(reproduction: tuple[ReproductionPlan, Path]) -> Path:
    """Write its report."""
    _, figures = reproduction
    made = reproduction_report(figures / "reproduction.json")
    return write_report(made, figures / "report.html")


@pytest.fixture(scope="session")
def driver() -> Iterator[Playwright]:
    """Start the driver of browsers."""
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="session")
def browser(driver: Playwright) -> Iterator[Browser]:
    """Start Debian's Chromium."""
    browser = driver.chromium.launch(
        executable_path=PROGRAM, args=list(CHROMIUM), timeout=PATIENCE_MS
    )
    yield browser
    browser.close()


Opener = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Opener]:
    """Open pages, and fail if one complains or asks for anything beyond its file."""
    with opener(browser) as opened:
        yield opened


@contextmanager
def opener(browser: Browser) -> Iterator[Opener]:
    """Return what opens pages; fail at the end if one has complained or asked for more."""
    complaints: list[str] = []
    contexts = []

    def opened(path: Path, address: str = "", *, is_strict: bool = True, **context: Any) -> Page:
        made = browser.new_context(
            **{"viewport": {"width": 1200, "height": 800}, "accept_downloads": True, **context}
        )
        made.set_default_timeout(PATIENCE_MS)
        contexts.append(made)
        page = made.new_page()
        if is_strict:
            page.on("console", lambda message: complaints.append(message.text))
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on("request", lambda request: _check_request(request.url, complaints))
        page.goto(path.as_uri() + (f"#{address}" if address else ""))
        page.wait_for_selector("html[data-ready=true]", state="attached")
        wait_until_idle(page)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def _check_request(url: str, complaints: list[str]) -> None:
    if not url.startswith(("file:", "blob:", "data:")):
        complaints.append(f"asked for {url}")


def wait_until_idle(page: Page) -> None:
    """Wait until what was changed is drawn and in the address.

    The page writes the address 250 ms after a change, and draws a map that moved slowly again
    180 ms after its last frame. Timers and frames come in their order, however late they are.
    """
    page.evaluate(
        "() => new Promise((done) => {"
        "const frames = (then) => requestAnimationFrame(() => requestAnimationFrame(then));"
        "setTimeout(() => frames(() => setTimeout(() => frames(done), 200)), 300); })"
    )


def downloaded(page: Page, button: Locator) -> bytes:
    """Press a button that downloads, and return the file."""
    with page.expect_download() as download:
        button.click()
    return Path(download.value.path()).read_bytes()


def rows_of(data: bytes) -> list[dict[str, str]]:
    """Read CSV."""
    return list(csv.DictReader(io.StringIO(data.decode("utf-8"))))


def table_csv(page: Page, name: str) -> list[dict[str, str]]:
    """Download a chart or a table, and read it."""
    return rows_of(downloaded(page, page.get_by_role("button", name=f"Download {name}")))
