"""What charts draw on their canvas: dots of events."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import silvan
from silvan.viewer import write_page
from tests.viewer.conftest import Opener

pytestmark = pytest.mark.needs("chromium")

# Columns of pixels in the colour of events, at the height of the middle of their dots.
DOTS = """canvas => {
  const over = canvas.closest(".uplot").querySelector(".u-over").getBoundingClientRect();
  const box = canvas.getBoundingClientRect();
  const scale = canvas.width / box.width;
  const y = Math.round((over.top - box.top + 4) * scale);
  const { data } = canvas.getContext("2d").getImageData(0, y, canvas.width, 1);
  const faint = [0x5b, 0x67, 0x73];
  const columns = [];
  for (let x = 0; x < canvas.width; x++) {
    const at = [...data.slice(4 * x, 4 * x + 4)];
    const isNear = faint.every((part, place) => Math.abs(at[place] - part) < 12);
    if (at[3] > 200 && isNear) columns.push(x);
  }
  return { columns, left: (over.left - box.left) * scale, right: (over.right - box.left) * scale };
}"""


@pytest.mark.parametrize("ratio", [1, 2])
def test_dots_at_both_ends_are_whole(open_page: Opener, tmp_path: Path, ratio: int) -> None:
    """Oracle: a dot in the middle of the chart has the same width."""
    instants = [0, 50_000_000, 100_000_000]
    run = silvan.run(
        silvan.Scenario(
            fabric={"generator": "single-switch", "hosts": 4},
            traffic={"incast": [{"to": "host-0000"}]},
            probe={"interval": "10 us", "ports": True, "trees": {}},
            run={"duration": "100 us"},
        )
    )
    decisions = pa.table(
        {
            "time_ps": pa.array(instants, pa.uint64()),
            "port": ["switch-00:1"] * 3,
            "reason": ["a test"] * 3,
            "marking_rate": [0, 1, 2],
        }
    )
    run = silvan.Result(run.scenario, run.seed, {**run.tables, "dcms": decisions}, run.summary)
    page = open_page(
        write_page([run], tmp_path / "page.html"), "theme=light", device_scale_factor=ratio
    )
    found = page.locator(".time .uplot canvas").evaluate(DOTS)
    left, right = found["left"], found["right"]
    near = {
        place: [x - place for x in found["columns"] if abs(x - place) <= 6 * ratio]
        for place in (left, (left + right) / 2, right)
    }
    for offsets in near.values():
        assert min(offsets) == pytest.approx(-4 * ratio, abs=1.6)
        assert max(offsets) == pytest.approx(4 * ratio, abs=1.6)
