"""The live example and the benchmark of the DCMS, which start programs themselves."""

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
    # When each flow was seen first; a busy machine may start it late.
    starts = {
        flow: min(one.time_s for one in course.samples if flow in one.flows_gbps)
        for flow in demo.STARTS_S
    }

    def mean(flow: str, since: str, settled_s: float, until: str) -> float:
        start, end = starts[since] + settled_s, starts[until] - 0.001
        return float(course.mean_gbps(flow, start, end))

    # Alone on the cable, the victim has all that its link carries.
    assert mean("X-Y", "X-Y", 1.5, "C-D") == pytest.approx(7.9, abs=0.3)
    assert mean("B-D", "C-D", 1.0, "A-D") == pytest.approx(3.95, abs=0.3)
    # A third of it when A-D comes (section 4.3: 2.67), until the manager has seen that.
    assert starts["A-D"] < lowered[0] < demo.ENDS_S["X-Y"] - 2
    suffering = [
        sample.flows_gbps["X-Y"]
        for sample in course.samples
        if starts["A-D"] < sample.time_s < lowered[0] + 0.5
    ]
    assert min(suffering) == pytest.approx(2.67, abs=0.3)
    # Then it has nearly everything again.
    assert course.mean_gbps("X-Y", lowered[0] + 1.5, demo.ENDS_S["X-Y"] - 0.3) > 7.0
    # The contributors share the marks alike (section 4.3: 1.23 each).
    for flow in ("B-D", "C-D", "A-D"):
        rate = course.mean_gbps(flow, lowered[0] + 1.5, demo.ENDS_S["X-Y"] - 0.3)
        assert rate == pytest.approx(1.23, abs=0.4)
    assert restored
    assert course.remarks[-1].event["event"] == "stopped"
    assert course.remarks[-1].event["pending"] == 0
    files = demo.draw(course, folder=tmp_path, stem="dcms")
    assert {path.suffix for path in files} == {".png", ".svg"}
    assert all(path.stat().st_size > 10_000 for path in files)


@pytest.mark.needs("perftest")
def test_perftest_prints_the_rates_of_experiment_2(demo: ModuleType) -> None:
    """The program ib_write_bw is the victim; each of its numbers averages a second."""
    course = demo.run(time_scale=0.01, perftest=True, on_change=lambda now: None)
    (lowered, *_), came = course.times_of("lowered"), demo.STARTS_S["A-D"]
    rates = [
        (sample.time_s, sample.flows_gbps["X-Y"])
        for sample in course.samples
        if "X-Y" in sample.flows_gbps
    ]
    # Alone; as a victim, for a second or two until the manager's change; and as alone again.
    assert max(rate for at, rate in rates if at < came) == pytest.approx(7.9, abs=0.6)
    assert 2.2 < min(rate for at, rate in rates if came < at < lowered + 4) < 5.5
    late = [rate for at, rate in rates if lowered + 4 < at < demo.ENDS_S["X-Y"]]
    assert sorted(late)[len(late) // 2] == pytest.approx(7.9, abs=0.6)
    assert course.remarks[-1].event["pending"] == 0


def test_sweeps_are_compared_with_the_common_tools() -> None:
    scenario = silvan.Scenario(fabric={"generator": "fat-tree-648"})
    # Each checks that every port has been read.
    assert manager.sweep_seconds("32-bit", scenario) > 0
    for tool in ("ibqueryerrors", "perfquery"):
        assert manager.tool_seconds(tool, scenario) > 0
