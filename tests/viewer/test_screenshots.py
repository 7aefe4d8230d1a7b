"""The page looks as it did.

Pictures of the main states are compared with those in `docs/images`, which the guide shows. Fonts
and renderers differ a little from machine to machine: at most 1 % of the pixels may differ by more
than a quarter of the scale in some colour. `SCREENSHOTS=1 pytest tests/viewer/test_screenshots.py`
writes them again.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.viewer.conftest import Opener, wait_until_idle

pytestmark = pytest.mark.needs("chromium")

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "images"
FAR = 64
MOST_FAR = 0.01

STATES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "trees": ("page_file", "t=0.4&select=tree:0&theme=light", {}),
    "names": ("page_file", "t=0.4&camera=0.6,1.7,7.1&theme=light", {}),
    "dark": ("page_file", "t=0.4&layout=cabled&colour=utilisation&theme=dark", {}),
    "phone": (
        "page_file",
        "t=0.4&colour=waiting&theme=light",
        {"viewport": {"width": 320, "height": 640}},
    ),
    "comparison": ("comparison_file", "t=0.4&theme=light", {}),
    "report": ("report", "of=1&theme=light", {"viewport": {"width": 1200, "height": 1100}}),
}


def _pixels(data: bytes) -> np.ndarray[tuple[int, ...], np.dtype[np.int16]]:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"), dtype=np.int16)


@pytest.mark.parametrize("name", STATES)
def test_page_looks_as_it_did(
    open_page: Opener, name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    file, address, context = STATES[name]
    page = open_page(request.getfixturevalue(file), address, **context)
    wait_until_idle(page)
    shown = page.screenshot()
    path = FOLDER / f"viewer-{name}.png"
    if os.environ.get("SCREENSHOTS"):
        image = Image.open(io.BytesIO(shown)).convert("RGB")
        image.quantize(128, method=Image.Quantize.MEDIANCUT).save(path, optimize=True)
    expected, found = _pixels(path.read_bytes()), _pixels(shown)
    (tmp_path / f"{name}.png").write_bytes(shown)
    assert found.shape == expected.shape
    far = (np.abs(found - expected).max(axis=2) > FAR).mean()
    assert far <= MOST_FAR, f"{far:.2%} of the pixels differ: {tmp_path / name}.png"


def test_the_comparison_of_pictures_sees_a_missing_tree() -> None:
    """Without its trees, the map differs by more than is allowed."""
    trees = _pixels((FOLDER / "viewer-trees.png").read_bytes())
    blank = trees.copy()
    blank[90:480, :800] = 255
    assert (np.abs(trees - blank).max(axis=2) > FAR).mean() > MOST_FAR
