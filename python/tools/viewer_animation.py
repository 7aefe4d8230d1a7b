"""Draw the animation of README: congestion trees grow, and congestion control prunes them."""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

import silvan
from silvan.viewer import write_page

ROOT = Path(__file__).resolve().parents[2]
SCENARIO = ROOT / "studies" / "gran2012" / "table2.toml"
FILE = ROOT / "docs" / "images" / "viewer.gif"
FLAGS = (
    "--no-sandbox",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
)
RECORDED = {
    "run.duration": "40 ms",
    "probe.interval": "400 us",
    "probe.ports": True,
    "probe.trees": {"interval": "400 us"},
}
WIDTH, HEIGHT = 1130, 760
SMALLER = 0.8
FRAME_MS, LAST_MS = 110, 1500
COLOURS = 40
MOVE = """async ([slider, sample]) => {
  slider.value = String(sample);
  slider.dispatchEvent(new Event('input', { bubbles: true }));
  await new Promise((done) => setTimeout(() => requestAnimationFrame(done), 200));
}"""


def frames(page_file: Path) -> list[Image.Image]:
    """Take a picture of map and time bar at each sample of the growth, then at every second one."""
    pictures = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=list(FLAGS))
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(f"{page_file.as_uri()}#theme=light")
        page.wait_for_selector("html[data-ready=true]", state="attached")
        slider = page.locator(".slider")
        box = page.locator(".map").bounding_box()
        stage = page.locator(".stage").bounding_box()
        assert box is not None
        assert stage is not None
        samples = int(slider.get_attribute("max") or 0) + 1
        for sample in [*range(20), *range(20, samples, 2)]:
            page.evaluate(MOVE, [slider.element_handle(), sample])
            shown = page.screenshot(
                clip={"x": 0, "y": box["y"], "width": stage["width"], "height": HEIGHT - box["y"]}
            )
            picture = Image.open(io.BytesIO(shown)).convert("RGB")
            size = (round(picture.width * SMALLER), round(picture.height * SMALLER))
            pictures.append(picture.resize(size, Image.Resampling.LANCZOS))
        browser.close()
    return pictures


def main() -> int:
    """Simulate, and write the animation."""
    result = silvan.run(silvan.Scenario.from_file(SCENARIO, overrides=RECORDED))
    with tempfile.TemporaryDirectory() as folder:
        pictures = frames(write_page([result], Path(folder) / "page.html"))
    palette = pictures[6].quantize(COLOURS, dither=Image.Dither.NONE)
    first, *rest = [one.quantize(palette=palette, dither=Image.Dither.NONE) for one in pictures]
    durations = [FRAME_MS] * len(rest) + [LAST_MS]
    first.save(FILE, save_all=True, append_images=rest, duration=durations, loop=0, optimize=True)
    print(f"{FILE.relative_to(ROOT)}: {FILE.stat().st_size / 1e6:.2f} MB, {len(pictures)} frames")
    return 0


if __name__ == "__main__":
    sys.exit(main())
