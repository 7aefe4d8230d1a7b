"""Notebook displays of scenarios, results and sweeps state their contents."""

from __future__ import annotations

import base64
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import silvan
from silvan.inputs.scenario_html import MOST_NODES
from silvan.notebook import MOST_ROWS
from silvan.sweeping.store import Failure
from tests.conftest import INCAST
from tests.test_extras import run_python_without

SVG = "{http://www.w3.org/2000/svg}"

Shown = silvan.Scenario | silvan.Result | silvan.SweepResult


def page(shown: Shown) -> ET.Element:
    """Parse what a notebook shows; a name that is not escaped makes this fail."""
    return ET.fromstring(shown._repr_html_())


def facts(root: ET.Element) -> dict[str, str]:
    """Read the table of names and values."""
    table = next(root.iter("table"))
    return {row[0].text or "": row[1].text or "" for row in table.iter("tr")}


def rows(root: ET.Element, table: int) -> list[dict[str, str]]:
    """Read a table with a header."""
    head, *lines = [
        [cell.text or "" for cell in row] for row in list(root.iter("table"))[table].iter("tr")
    ]
    return [dict(zip(head, line, strict=True)) for line in lines]


def drawing(root: ET.Element) -> ET.Element:
    """Decode the figure."""
    (image,) = root.iter("img")
    kind, data = image.attrib["src"].split(",", 1)
    assert kind == "data:image/svg+xml;base64"
    return ET.fromstring(base64.b64decode(data))


def test_a_scenario_states_what_it_builds() -> None:
    scenario = silvan.Scenario.from_toml(INCAST, overrides={"name": "a<b>&c"})
    root = page(scenario)
    shown = facts(root)
    assert shown["scenario"] == "a<b>&c"
    assert (shown["hosts"], shown["switches"], shown["links"]) == ("4", "1", "4")
    assert (shown["duration"], shown["seed"], shown["traffic"]) == ("200 us", "3", "1 incast")
    figure = drawing(root)
    names = {title.text for title in figure.iter(f"{SVG}title")}
    assert names == {"switch-00", *(f"host-{number:04}" for number in range(4))}
    assert len(list(figure.iter(f"{SVG}path"))) == 4


@pytest.mark.parametrize(
    "fabric",
    [
        {"generator": "k-ary-n-tree", "k": 2, "n": 3},
        {"generator": "mesh", "sizes": [3, 3], "hosts-per-switch": 2, "routing": "dimension-order"},
    ],
)
def test_a_drawn_fabric_has_every_node_and_cable(fabric: dict[str, object]) -> None:
    scenario = silvan.Scenario(fabric=fabric)
    counts = scenario.describe()
    figure = drawing(page(scenario))
    assert len(list(figure.iter(f"{SVG}circle"))) == counts["hosts"] + counts["switches"]
    assert len(list(figure.iter(f"{SVG}path"))) == counts["links"]


def test_a_large_fabric_is_not_drawn() -> None:
    scenario = silvan.Scenario(fabric={"generator": "fat-tree-648"})
    assert scenario.describe()["hosts"] > MOST_NODES
    root = page(scenario)
    assert facts(root)["hosts"] == "648"
    assert list(root.iter("img")) == []


def test_a_result_states_its_rates_and_latencies(incast: silvan.Result) -> None:
    root = page(incast)
    shown = facts(root)
    rates = incast.measures
    assert float(shown["hotspots (Gbit/s)"]) == pytest.approx(rates["hotspots_gbps"], rel=1e-5)
    assert float(shown["total delivered (Gbit/s)"]) == pytest.approx(rates["total_gbps"], rel=1e-5)
    expected_us = rates["latency_p99_us"]
    assert float(shown["latency p99 (µs)"]) == pytest.approx(expected_us, rel=1e-5)
    (row,) = rows(root, 1)
    (expected,) = incast.classes.to_pylist()
    assert row["traffic class"] == expected["name"]
    assert int(row["packets delivered"]) == expected["delivered_packets"]
    assert int(row["99th percentile (ns)"]) == expected["latency_p99_ns"]


def test_the_figure_of_a_result_shows_its_series(incast: silvan.Result) -> None:
    (line,) = drawing(page(incast)).iter(f"{SVG}polyline")
    points = np.array([point.split(",") for point in line.attrib["points"].split()], dtype=float)
    delivered = incast.host_series["delivered_bytes"].to_numpy().reshape(-1, 4)[:, 0]
    # Two corners per interval, and the highest rate reaches the top of the axis.
    floor, top = 126.0, 18.0
    heights = (floor - points[:, 1]) / (floor - top)
    np.testing.assert_allclose(heights, np.repeat(delivered / delivered.max(), 2), atol=1e-3)
    np.testing.assert_allclose(np.diff(points[:, 0])[::2], 304 / len(delivered), atol=0.02)


def test_a_long_series_keeps_its_bytes() -> None:
    scenario = silvan.Scenario.from_toml(INCAST, overrides={"probe.interval": "200 ns"})
    result = silvan.run(scenario)
    (line,) = drawing(page(result)).iter(f"{SVG}polyline")
    points = np.array([point.split(",") for point in line.attrib["points"].split()], dtype=float)
    assert len(points) <= 2 * 201
    assert points[-1, 0] == pytest.approx(352)
    area = ((126 - points[::2, 1]) * (points[1::2, 0] - points[::2, 0])).sum() / 108 / 304
    highest = float(drawing(page(result)).find(f"{SVG}text").text or "")  # type: ignore[union-attr]
    mean = result.measures["hotspots_gbps"]
    assert area * highest == pytest.approx(mean, rel=0.01)


def test_a_sweep_shows_its_points_and_failures() -> None:
    scenario = silvan.Scenario.from_toml(INCAST)
    result = silvan.sweep(scenario, {"host.sink-rate": ["4 Gbit/s", "8 Gbit/s"]}, workers=1)
    failure = Failure("f" * 64, 7, {"a": "<1>"}, "it & that", 2, "f.toml")
    root = page(silvan.SweepResult(result.points, (failure,), None))
    assert facts(root) == {"points": "2", "failed": "1"}
    points = rows(root, 1)
    assert [row["host.sink-rate"] for row in points] == ["4 Gbit/s", "8 Gbit/s"]
    totals = result.points["total_gbps"].to_pylist()
    assert [float(row["total_gbps"]) for row in points] == pytest.approx(totals, rel=1e-5)
    assert rows(root, 2) == [{"failed point": "a=<1>", "seed": "7", "error": "it & that"}]
    heights = [126 - float(dot.attrib["cy"]) for dot in drawing(root).iter(f"{SVG}circle")]
    assert heights[0] / heights[1] == pytest.approx(totals[0] / totals[1], rel=1e-3)


def test_a_long_table_says_what_it_leaves_out() -> None:
    result = silvan.sweep(
        silvan.Scenario.from_toml(INCAST, overrides={"run.duration": "50 us"}),
        seeds=MOST_ROWS + 1,
        workers=1,
    )
    root = page(result)
    assert len(rows(root, 1)) == MOST_ROWS
    assert [one.text for one in root.iter("p")] == [f"{MOST_ROWS} of {MOST_ROWS + 1} points"]


def test_no_extra_is_needed(tmp_path: Path) -> None:
    program = (
        "import silvan\n"
        f"scenario = silvan.Scenario.from_toml({INCAST!r})\n"
        "shown = [scenario, silvan.run(scenario)]\n"
        "print(*(one._repr_html_().count('<img') for one in shown))"
    )
    done = run_python_without(("matplotlib", "PIL", "jinja2"), program, cwd=tmp_path)
    assert (done.status, done.stdout) == (0, "1 1\n"), done.stderr
