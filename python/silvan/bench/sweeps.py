"""Runs per second of a sweep, with one worker and with two."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from silvan.bench.studies import bench_scenario
from silvan.scratch import scratch_folder
from silvan.sweeping.sweep import sweep

POINTS = 64
"""Enough runs to make the start of the workers negligible."""


@dataclass(frozen=True, slots=True)
class SweepBenchmark:
    """A sweep with a number of workers."""

    name: str
    workers: int


SWEEP_BENCHMARKS = (SweepBenchmark("sweep-1", 1), SweepBenchmark("sweep-2", 2))


@dataclass(frozen=True, slots=True)
class MeasuredSweep:
    """Median over the repeats of a sweep, in points per second from the call to the last file."""

    name: str
    workers: int
    scenario_hash: str
    points: int
    repeats: int
    runs_per_s: float
    slowest_runs_per_s: float
    fastest_runs_per_s: float

    def to_dict(self) -> dict[str, Any]:
        """Give the measurements as plain values, for JSON."""
        return asdict(self)


def measure_sweep(
    benchmark: SweepBenchmark, *, repeats: int, on_repeat: Callable[[int], object]
) -> MeasuredSweep:
    """Make a sweep several times, each time with fresh workers and in a new folder."""
    scenario = bench_scenario("sweep")
    speeds = []
    for number in range(1, repeats + 1):
        on_repeat(number)
        with scratch_folder("bench") as folder:
            start = time.perf_counter()
            sweep(scenario, seeds=POINTS, out=folder, workers=benchmark.workers)
            speeds.append(POINTS / (time.perf_counter() - start))
    return MeasuredSweep(
        name=benchmark.name,
        workers=benchmark.workers,
        scenario_hash=scenario.hash,
        points=POINTS,
        repeats=repeats,
        runs_per_s=statistics.median(speeds),
        slowest_runs_per_s=min(speeds),
        fastest_runs_per_s=max(speeds),
    )
