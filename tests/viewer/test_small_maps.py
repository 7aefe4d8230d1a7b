"""The map of a small fabric fills its view, and neither marks nor names cover their neighbours."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

import silvan
from silvan.viewer import write_page
from tests.conftest import ddr_scenario
from tests.viewer.conftest import Opener, downloaded, wait_until_idle

pytestmark = pytest.mark.needs("chromium")

SPACE = "{http://www.w3.org/2000/svg}"
WHITE = 250

SIZES = ((320, 640), (1280, 800), (1920, 1080))

Box = tuple[float, float, float, float]

FABRICS: Mapping[str, Mapping[str, object]] = {
    "4": {"generator": "single-switch", "hosts": 4},
    "8": {"generator": "leaf-spine", "leaf-hosts": [4, 4], "spine-cables": [1, 1]},
    "16": {"generator": "k-ary-n-tree", "k": 4, "n": 2},
    "36": {"generator": "torus", "sizes": [3, 3], "hosts-per-switch": 4},
    "100": {"generator": "single-switch", "hosts": 100},
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Write the page of an incast in each fabric."""
    folder = tmp_path_factory.mktemp("small")
    made = {}
    for name, fabric in FABRICS.items():
        run = silvan.run(
            ddr_scenario(
                fabric=dict(fabric),
                traffic={"incast": [{"to": "host-0000"}]},
                probe={"interval": "20 us", "ports": True, "trees": {"interval": "20 us"}},
                run={"duration": "200 us"},
            )
        )
        made[name] = write_page([run], folder / f"{name}.html")
    return made


@pytest.mark.parametrize("name", FABRICS)
def test_the_first_view_is_filled(open_page: Opener, pages: Mapping[str, Path], name: str) -> None:
    """Oracle: the pixels that are not white."""
    page = open_page(pages[name], "theme=light")
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        for layout in ("unfolded", "cabled"):
            page.get_by_label("Layout").select_option(layout)
            wait_until_idle(page)
            picture = Image.open(io.BytesIO(page.locator(".map").screenshot()))
            shown = np.asarray(picture.convert("L")) < WHITE
            spans = [np.flatnonzero(shown.any(axis=axis)) for axis in (1, 0)]
            high, wide = (
                (places[-1] - places[0]) / length
                for places, length in zip(spans, shown.shape, strict=True)
            )
            # Stars and names have room at the edges; rings and grids stay nearly as they are.
            assert max(high, wide) > 0.78, (width, layout)
            assert min(high, wide) > 0.42, (width, layout)


@pytest.mark.parametrize("layout", ["unfolded", "cabled"])
@pytest.mark.parametrize("name", ["4", "8", "16", "36"])
def test_marks_and_names_cover_no_neighbour(
    open_page: Opener, pages: Mapping[str, Path], name: str, layout: str
) -> None:
    """Oracle: places and sizes in the drawing of the map."""
    page = open_page(pages[name], f"t=0.2&layout={layout}&theme=light")
    button = page.get_by_role("button", name="Download the map as SVG")
    drawing = ElementTree.fromstring(downloaded(page, button))
    stars = [_around(one) for one in drawing.findall(f"{SPACE}polygon")]
    discs = [_circle(one) for one in drawing.findall(f"{SPACE}circle")]
    squares = [_square(one) for one in drawing.findall(f"{SPACE}rect") if one.get("x")]
    assert stars
    assert len(discs) >= int(name)
    for star in stars:
        middle = ((star[0] + star[2]) / 2, (star[1] + star[3]) / 2)
        others = [one for one in discs if not _holds(star, one)]
        # Only the mark of the node that it marks is below a star.
        assert len(discs) - len(others) <= 2
        assert not any(_touch(star, one) for one in others), middle
    names = [one for one in drawing.findall(f"{SPACE}text") if one.get("text-anchor") == "middle"]
    assert any(re.fullmatch(r"T\d+", one.text or "") for one in names)
    for one in names:
        box = _text(one)
        covered = [mark for mark in (*stars, *discs, *squares) if _touch(box, mark)]
        assert not covered, one.text


@pytest.mark.parametrize("name", ["4", "16"])
def test_a_click_on_the_edge_of_a_star_selects_its_host(
    open_page: Opener, pages: Mapping[str, Path], name: str
) -> None:
    """Oracle: the leftmost pixel in the colour of the lowest star."""
    page = open_page(pages[name], "t=0.2&layout=unfolded&theme=light")
    wait_until_idle(page)
    shown = Image.open(io.BytesIO(page.locator(".map").screenshot())).convert("RGB")
    pixels = np.asarray(shown, np.int16)
    is_red = (pixels[..., 0] - pixels[..., 1] > 90) & (pixels[..., 0] - pixels[..., 2] > 60)
    below = is_red.copy()
    below[: pixels.shape[0] // 2] = False
    x = int(np.flatnonzero(below.any(axis=0))[0])
    y = int(np.flatnonzero(below[:, x])[0])
    page.locator(".map").click(position={"x": x + 1, "y": y})
    page.get_by_role("heading", name="host host-0000").wait_for()


def _numbers(text: str | None) -> list[float]:
    return [float(number) for number in re.findall(r"-?[\d.]+", text or "")]


def _around(star: ElementTree.Element) -> Box:
    numbers = _numbers(star.get("points"))
    return min(numbers[::2]), min(numbers[1::2]), max(numbers[::2]), max(numbers[1::2])


def _circle(one: ElementTree.Element) -> Box:
    x, y, radius = (float(one.get(key, 0)) for key in ("cx", "cy", "r"))
    return x - radius, y - radius, x + radius, y + radius


def _square(one: ElementTree.Element) -> Box:
    x, y, width, height = (float(one.get(key, 0)) for key in ("x", "y", "width", "height"))
    return x, y, x + width, y + height


def _text(one: ElementTree.Element) -> Box:
    """Take letters for half as wide as high, and leave out what some have below the line."""
    x, y, size = (float(one.get(key, 0)) for key in ("x", "y", "font-size"))
    half = 0.25 * size * len(one.text or "")
    return x - half, y - 0.7 * size, x + half, y


def _touch(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _holds(one: Box, other: Box) -> bool:
    """Tell whether the middle of the other box is in the inner part of the first."""
    x, y = (other[0] + other[2]) / 2, (other[1] + other[3]) / 2
    inset = (one[2] - one[0]) / 5
    return one[0] + inset < x < one[2] - inset and one[1] + inset < y < one[3] - inset
