"""Measure the browser page in software rendering (SwiftShader), and print a table of its goals."""

from __future__ import annotations

import argparse
import gzip
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from live_figures import live
from playwright.sync_api import Browser, Page, sync_playwright

import silvan
from silvan.cli.options import view_keys
from silvan.viewer import write_page

ROOT = Path(__file__).resolve().parents[2]
ASSETS = ROOT / "python" / "silvan" / "viewer" / "assets"
SCENARIO = ROOT / "studies" / "gran2012" / "table2.toml"
FLAGS = (
    "--no-sandbox",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
)
RECORDED = {
    "probe.ports": True,
    "probe.classes": True,
    "probe.flow-limits": True,
    "probe.messages": True,
    "probe.latency": "host",
}
SAMPLED = "648 hosts, 100 ms, 500 samples"
LARGE = {"fabric.generator": "fat-tree-11664", "run.duration": "2 ms"}
FRAMES = """async ([kind, seconds]) => {
  const slider = document.querySelector('.slider');
  const map = document.querySelector('.map');
  const context = map.querySelector('canvas').getContext('webgl2');
  const pixel = new Uint8Array(4);
  const start = performance.now();
  let frames = 0;
  while (performance.now() - start < 1000 * seconds) {
    if (kind === 'scrub') {
      slider.value = String((Number(slider.value) + 1) % (Number(slider.max) + 1));
      slider.dispatchEvent(new Event('input', { bubbles: true }));
    } else {
      const key = frames % 20 < 10 ? 'ArrowRight' : 'ArrowLeft';
      map.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
    }
    await new Promise((done) => requestAnimationFrame(done));
    // Waits until the frame is drawn.
    context.readPixels(0, 0, 1, 1, context.RGBA, context.UNSIGNED_BYTE, pixel);
    frames++;
  }
  return frames / ((performance.now() - start) / 1000);
}"""


def recorded(overrides: Mapping[str, Any], interval: str) -> silvan.Result:
    """Simulate with everything recorded."""
    probes = {**RECORDED, "probe.interval": interval, "probe.trees": {"interval": interval}}
    return silvan.run(silvan.Scenario.from_file(SCENARIO, overrides={**overrides, **probes}))


def opened(browser: Browser, path: Path) -> tuple[Page, float]:
    """Open a page, and return the seconds until it can be used."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    start = time.perf_counter()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=true]", state="attached")
    return page, time.perf_counter() - start


def measure(
    browser: Browser, result: silvan.Result, name: str, folder: Path, seconds: float = 3
) -> Iterator[tuple[str, float, str]]:
    """Measure what a page costs, and how quickly it follows: name, value, unit of each figure."""
    path = write_page([result], folder / f"{name}.html")
    opened(browser, path)[0].close()  # The first page starts the browser's processes.
    page, ready_s = opened(browser, path)
    yield f"{name}: file", path.stat().st_size / 1e6, "MB"
    yield f"{name}: until it can be used", ready_s, "s"
    time.sleep(2)
    for kind in ("scrub", "pan"):
        yield f"{name}: {kind}", page.evaluate(FRAMES, [kind, seconds]), "frames/s"
    page.evaluate("globalThis.gc?.()")
    memory_mb = page.evaluate("performance.memory.usedJSHeapSize") / 1e6
    yield f"{name}: JavaScript memory", memory_mb, "MB"
    yield f"{name}: buffers", buffers_mb(page), "MB"
    if resident := resident_mb(browser):
        yield f"{name}: renderer, resident", resident, "MB"
    page.close()


def buffers_mb(page: Page) -> float:
    """Return the size of the buffers that the page's program holds."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    size: float = session.send("Runtime.getHeapUsage")["backingStorageSize"]
    return size / 1e6


def resident_mb(browser: Browser) -> float:
    """Return the memory of the largest renderer of a browser; 0 where the kernel does not say."""
    found = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    sizes = [0.0]
    for one in found:
        status = Path(f"/proc/{one['id']}/status")
        if one["type"] == "renderer" and status.is_file():
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
            sizes.append(float(lines["VmRSS"].split()[0]) * 1024 / 1e6)
    return max(sizes)


def script_kb() -> float:
    """Return the size of the page's program, compressed."""
    return len(gzip.compress((ASSETS / "viewer.js").read_bytes(), 9)) / 1e3


def written_mb(result: silvan.Result, folder: Path) -> float:
    """Return the size of a result on disk."""
    return sum(path.stat().st_size for path in result.write(folder).iterdir()) / 1e6


def row(name: str, value: float, unit: str) -> str:
    """Write a figure as a row of the table, with three digits."""
    return f"| {name} | {value:.3g} {unit} |"


def cost() -> None:
    """Print what recording costs, in processor time: the least of five runs of each."""

    def seconds(probes: Mapping[str, Any], *, with_all: bool = False) -> float:
        scenario = silvan.Scenario.from_file(
            SCENARIO, overrides={"run.duration": "100 ms", **probes}
        )
        if with_all:
            scenario = scenario.override(view_keys(scenario))
        times = []
        for _ in range(5):
            start = time.process_time()
            silvan.run(scenario)
            times.append(time.process_time() - start)
        return min(times)

    plain = {"probe.interval": "200 us", "probe.latency": "class"}
    for scheme in ("none", "ib-cc"):
        hundred = {"probe.interval": "1 ms", "control.scheme": scheme}
        base = seconds({**hundred, "probe.latency": "class"})
        view = seconds(hundred, with_all=True)
        print(f"| --record view, 100 samples ({scheme}) | {view / base - 1:+.0%} |")
        base = seconds({**plain, "control.scheme": scheme})
        ports = seconds({**RECORDED, "probe.interval": "200 us", "control.scheme": scheme})
        trees = {"probe.trees": {"interval": "200 us"}}
        full = seconds({**RECORDED, **trees, "probe.interval": "200 us", "control.scheme": scheme})
        print(f"| recording all but trees, 500 samples ({scheme}) | {ports / base - 1:+.0%} |")
        print(f"| recording trees, too, 500 samples ({scheme}) | {full / base - 1:+.0%} |")


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="Measure 11,664 hosts, too.")
    parser.add_argument("--cost", action="store_true", help="Measure the cost of recording, too.")
    parser.add_argument("--live", action="store_true", help="Measure a live page only.")
    arguments = parser.parse_args()
    print(f"load of the machine: {os.getloadavg()[0]:.1f}", file=sys.stderr)
    print("| figure | measured |\n|---|---|")
    if arguments.live:
        live()
        return 0
    print(row("JavaScript, compressed", script_kb(), "kB"))
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=[*FLAGS, "--js-flags=--expose-gc"]
        )
        result = recorded({}, "200 us")
        size = written_mb(result, folder / "result")
        print(row(f"{SAMPLED}: result on disk", size, "MB"))
        for figure in measure(browser, result, SAMPLED, folder):
            print(row(*figure))
        if arguments.large:
            large = recorded({**LARGE, "control.scheme": "none"}, "20 us")
            for figure in measure(browser, large, "11,664 hosts", folder):
                print(row(*figure))
        browser.close()
    if arguments.cost:
        cost()
    return 0


if __name__ == "__main__":
    sys.exit(main())
