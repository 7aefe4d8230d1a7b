"""The live example and the benchmark of the DCMS, which run programs of their own."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

import silvan
from silvan.bench import manager
from silvan.example_files import example
from tests.emulator.conftest import REAL_TOOLS

pytestmark = REAL_TOOLS


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Load the program of the example."""
    spec = importlib.util.spec_from_file_location("dcms_live", example("dcms-live").path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "dcms_live", module)
    spec.loader.exec_module(module)
    return module


def test_experiment_2_goes_as_in_the_paper(demo: ModuleType, tmp_path: Path) -> None:
    seen: list[int] = []
    course = demo.run(time_scale=0.05, on_change=lambda now: seen.append(len(now.samples)))
    assert seen == sorted(seen)
    lowered, restored = course.times_of("lowered"), course.times_of("restored")
    # Alone on the cable, the victim has all that its link carries.
    assert course.mean_gbps("X-Y", 3.5, 6.5) == pytest.approx(7.9, abs=0.3)
    assert course.mean_gbps("B-D", 6.0, 6.8) == pytest.approx(3.95, abs=0.3)
    # A third of it when A-D comes (section 4.3: 2.67), until the manager has seen that.
    assert 7.0 < lowered[0] < 12.0
    suffering = [
        sample.flows_gbps["X-Y"]
        for sample in course.samples
        if demo.STARTS_S["A-D"] < sample.time_s < lowered[0] + 0.5
    ]
    assert min(suffering) == pytest.approx(2.67, abs=0.3)
    # Then it has nearly everything again.
    assert course.mean_gbps("X-Y", lowered[0] + 1.5, demo.ENDS_S["X-Y"] - 0.3) > 7.0
    assert restored
    assert course.remarks[-1].event["event"] == "stopped"
    assert course.remarks[-1].event["pending"] == 0
    files = demo.draw(course, folder=tmp_path, stem="dcms")
    assert {path.suffix for path in files} == {".png", ".svg"}
    assert all(path.stat().st_size > 10_000 for path in files)


def test_sweeps_are_compared_with_the_common_tools() -> None:
    scenario = silvan.Scenario(fabric={"generator": "fat-tree-648"})
    assert 0 < manager.sweep_seconds("32-bit", scenario) < 60
    for tool in ("ibqueryerrors", "perfquery"):
        assert 0 < manager.tool_seconds(tool, scenario) < 60
