"""Estimates of runs before they start, against recorded benchmarks; what is too large to start."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

import silvan
from silvan.bench.studies import bench_scenario
from silvan.errors import SilvanError
from silvan.execution.estimate import MOST_RUNS, Estimate, estimate, require_room
from tests.conftest import Command
from tests.test_guide import ROOT

PAGE = (ROOT / "docs" / "guide" / "benchmarks.md").read_text(encoding="utf-8")

INCAST = """\
name = "incast"

[fabric]
generator = "single-switch"
hosts = 4

[[traffic.incast]]
to = "host-0000"

[run]
duration = "20 us"
"""


def row(benchmark: str) -> list[str]:
    """Return the cells of a benchmark's row in the guide."""
    (found,) = re.findall(
        rf"^\| `{benchmark}` \|(.*)\|$",
        PAGE.partition("## Several threads")[0] + PAGE.partition("## Workloads")[2],
        re.M,
    )
    return [cell.strip().replace(",", "") for cell in found.split("|")]


@pytest.mark.parametrize("name", ["gpt-13b", "alltoall-512", "dragonfly-1056", "websearch-144"])
def test_packet_hops_of_benchmarks_are_within_a_factor_of_two(name: str) -> None:
    """Oracle: the packet-hops and the peak memory that the guide records."""
    size = estimate(bench_scenario(name))
    *_, hops, _, peak_mb = row(f"workloads-{name}")
    assert float(hops) / 2 <= size.packet_hops <= 2 * float(hops)
    assert float(peak_mb) / 2 <= size.memory_bytes / 1e6 <= 2 * float(peak_mb)


@pytest.mark.parametrize("name", ["uniform-50", "uniform-100", "large-100"])
def test_memory_of_benchmarks_is_within_a_factor_of_two(name: str) -> None:
    peak_mb = float(row(name)[-1])
    measured = estimate(bench_scenario(name)).memory_bytes / 1e6
    assert peak_mb / 2 <= measured <= 2 * peak_mb


def test_estimate_of_saturated_receivers_is_what_they_take() -> None:
    """Oracle: one link's packets, each over two links, independent of the offered load."""
    scenario = silvan.Scenario.from_toml(INCAST)
    packets = silvan.run(scenario).summary["packet_hops"] / 2
    assert estimate(scenario).packet_hops == pytest.approx(2 * packets, rel=0.1)


def test_runs_that_do_not_fit_need_a_word() -> None:
    small = Estimate(1e6, 1e8)
    require_room(small, is_wanted=False, memory=2e8)
    for size, expected in [
        (Estimate(1e6, 3e8), "estimated memory: 300 MB; 200 MB are available"),
        (Estimate(1e6, 6e7, runs=40, at_once=4), "estimated memory"),
        (Estimate(1e13, 1e8), "estimated time: 277 h 47 min"),
        (Estimate(1.0, 1.0, runs=MOST_RUNS + 1), "10,001 runs"),
    ]:
        with pytest.raises(SilvanError, match=expected) as refused:
            require_room(size, is_wanted=False, memory=2e8)
        assert "--yes" in str(refused.value.hint)
        require_room(size, is_wanted=True, memory=2e8)


def test_commands_state_the_estimate(command: Command, tmp_path: Path) -> None:
    (tmp_path / "incast.toml").write_text(INCAST)
    valid = command("validate", "incast.toml", cwd=tmp_path)
    assert re.search(r"estimate: \S+ packet-hops, \S+ MB of memory, about", valid.stdout)
    many = command("run", "incast.toml", "--seeds", "99999", cwd=tmp_path)
    assert many.status == 2
    assert "99,999 runs" in many.stderr
    assert "--yes" in many.stderr
    swept = command("sweep", "incast.toml", "--seeds", "20000", cwd=tmp_path)
    assert swept.status == 2
    assert "20,000 runs" in swept.stderr
    assert not (tmp_path / "out").exists()


LOADED = INCAST.replace("[[traffic.incast]]", "[[traffic.incast]]\nload = 0.1")


def test_a_sweep_of_too_many_values_is_refused_before_they_are_checked(
    command: Command, tmp_path: Path
) -> None:
    """Oracle: 100,000 values take long to check; the refusal takes a tenth of a minute."""
    (tmp_path / "incast.toml").write_text(LOADED)
    grid = "traffic.incast.0.load=0..0.099999:0.000001"
    swept = command("sweep", "incast.toml", "--grid", grid, cwd=tmp_path)
    assert swept.status == 2
    assert "100,000 runs; more than 10,000 need --yes" in swept.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["saturate", "tune"])
def test_searches_that_take_days_need_a_word(command: Command, tmp_path: Path, name: str) -> None:
    (tmp_path / "incast.toml").write_text(LOADED)
    done = command(name, "incast.toml", "--set", "run.duration=100000 s", cwd=tmp_path)
    assert done.status == 2
    assert re.search(r"error: estimated time: \d+ h", done.stderr)
    assert "hint: --yes starts it all the same" in done.stderr
    assert not (tmp_path / "out").exists()


def test_values_of_a_sweep_are_checked_in_linear_time() -> None:
    """Oracle: of 1,600 values each takes as long as of 50; with a square, 32 times as long."""
    scenario = silvan.Scenario.from_toml(LOADED)
    key = "traffic.incast.0.load"

    def seconds(count: int) -> float:
        start = time.process_time()
        scenario.varying({key: [round(0.1 + place / 1e6, 6) for place in range(count)]})
        return time.process_time() - start

    each = min(seconds(1600) for _ in range(2)) / 1600
    assert each < 4 * min(seconds(50) for _ in range(5)) / 50
