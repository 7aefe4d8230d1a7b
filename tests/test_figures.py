"""Figures: the numbers behind them, and that the same data give the same files."""

from __future__ import annotations

import csv
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from silvan.figures.style import CC_COLOURS
from silvan.inputs.scenario import Scenario
from silvan.results.result import Result
from silvan_papers.figures.receive_rate import band, draw_receive_rates
from tests.conftest import made_up_result

HOTSPOTS = np.arange(6) < 2
INTERVALS = 20


def synthetic(seed: int, hotspot_gbps: float, other_gbps: float) -> Result:
    """Make a result in which two hosts are hotspots and every rate is known."""
    rates = np.where(HOTSPOTS, hotspot_gbps, other_gbps)
    return made_up_result(Scenario(run={"duration": "20 ms"}), seed, HOTSPOTS, rates)


RUNS = {
    "off": [synthetic(1, 13.6, 0.1), synthetic(2, 13.6, 0.3)],
    "on": [synthetic(1, 13.2, 2.4)],
}
ALONE = [synthetic(1, 2.7, 2.7)]


def draw(folder: Path) -> list[Path]:
    """Draw the synthetic runs."""
    return draw_receive_rates(
        RUNS, without_hotspots=ALONE, steady_ms=5, title="Title", folder=folder, stem="f"
    )


def test_a_band_is_mean_and_range_over_the_seeds() -> None:
    others = band(RUNS["off"], hotspots=False)
    np.testing.assert_allclose(others.mean, 0.2)
    np.testing.assert_allclose(others.low, 0.1)
    np.testing.assert_allclose(others.high, 0.3)
    np.testing.assert_allclose(others.times_ms, np.arange(INTERVALS) + 0.5)
    everyone = band(RUNS["on"], hotspots=None)
    np.testing.assert_allclose(everyone.mean, (2 * 13.2 + 4 * 2.4) / 6)


def test_the_same_runs_give_the_same_files(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    drawn = []
    for folder in folders:
        folder.mkdir()
        paths = draw(folder)
        assert sorted(path.name for path in paths) == ["f.csv", "f.png", "f.svg"]
        assert sorted(folder.iterdir()) == sorted(paths)
        drawn.append([path.read_bytes() for path in paths])
    assert drawn[0] == drawn[1]


def test_the_files_are_what_their_names_say(tmp_path: Path) -> None:
    png, svg, table = draw(tmp_path)
    assert png.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    drawing = svg.read_text()
    assert ET.fromstring(drawing).tag.endswith("svg")
    for colour in CC_COLOURS.values():
        assert colour.lower() in drawing
    for words in ("CC off", "CC on", "Title", "simulated time (ms)", "(Gbit/s)"):
        assert words in drawing
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4 * INTERVALS
    off = [row for row in rows if (row["hosts"], row["cc"]) == ("others", "off")]
    assert [float(row["mean_gbps"]) for row in off] == pytest.approx([0.2] * INTERVALS)
    assert [float(row["max_gbps"]) for row in off] == pytest.approx([0.3] * INTERVALS)
