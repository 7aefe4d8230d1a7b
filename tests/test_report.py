"""The HTML report, as a browser sees it: complete, without network, without complaints."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from silvan.report import write_report
from silvan.reproduce import experiments, find_paper
from silvan.reproduce.plan import make_plan
from silvan.reproduce.reproduction import evaluate
from tests.conftest import made_up_result

HOTSPOTS = np.arange(648) < 8


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the report of a quick look at figure 9a, from runs whose rates are known."""
    folder = tmp_path_factory.mktemp("reproduction")
    (experiment,) = experiments("gran2012", "fig9a")
    plan = make_plan("gran2012", [experiment], quick=True)
    for one, path in zip(plan.runs, plan.folders(folder), strict=True):
        rates = np.where(HOTSPOTS, 13.6, 0.5)
        made_up_result(one.scenario, one.seed, HOTSPOTS, rates).write(path)
    outcome = evaluate("gran2012", experiment, plan.finished("fig9a", folder), folder)
    return write_report(plan, [outcome], folder / "report.html")


def browse(page: Path, folder: Path) -> tuple[str, str, list[str]]:
    """Load a page in headless Chromium.

    Returns
    -------
    tuple
        The document after loading, what was written to the console, and the addresses asked for.
    """
    log = folder / "net-log.json"
    done = subprocess.run(
        [
            "chromium",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-default-apps",
            "--disable-sync",
            "--no-first-run",
            f"--user-data-dir={folder / 'profile'}",
            f"--log-net-log={log}",
            "--enable-logging=stderr",
            "--virtual-time-budget=5000",
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    console = "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)
    requests = [event.get("params", {}) for event in json.loads(log.read_text())["events"]]
    # The browser has requests of its own, which no page initiated.
    of_pages = [one for one in requests if one.get("initiator", "not an origin") != "not an origin"]
    return done.stdout, console, [one["url"] for one in of_pages]


@pytest.mark.needs("chromium")
def test_the_report_is_complete_and_alone(report: Path, tmp_path: Path) -> None:
    document, console, addresses = browse(report, tmp_path)
    assert console == ""
    assert not [address for address in addresses if not address.startswith(("data:", "file:"))]
    rows = re.findall(r'<tr class="target">.*?</tr>', document, re.DOTALL)
    targets = [one for one in find_paper("gran2012").targets.values() if one.id.startswith("fig9a")]
    everyone = (8 * 13.6 + 640 * 0.5) / 648
    for row, target in zip(rows, targets, strict=True):
        assert target.id in row
        assert target.what in row
        assert target.value is not None
        measured = 1.0 if "over" in target.id else everyone
        within = abs(measured / target.value - 1) <= (target.tol or 0)
        assert f">{measured:.4g}<" in row
        assert row.count(f'class="{"yes" if within else "no"}"') == 2, "in both windows"
    assert document.count('<img src="data:image/svg+xml;base64,') == 1
    assert 'scheme = "none"' in document, "the effective scenario"
    assert "A quick look" in document
    assert "6 runs" in document


@pytest.mark.needs("chromium")
def test_the_browser_test_would_notice(tmp_path: Path) -> None:
    # A page that asks the network and complains, to show that the test above can fail.
    page = tmp_path / "bad.html"
    page.write_text(
        "<!doctype html><title>bad</title><img src='http://127.0.0.1:9/x.png'>"
        "<script>console.error('complaint')</script>"
    )
    _, console, addresses = browse(page, tmp_path)
    assert "complaint" in console
    assert "http://127.0.0.1:9/x.png" in addresses


def test_the_report_forbids_all_but_what_is_in_it(report: Path) -> None:
    text = report.read_text()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "<script" not in text
