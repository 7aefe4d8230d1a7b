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
"""Runs of one measurement: enough that starting the workers does not hide the rest."""


@dataclass(frozen=True, slots=True)
class SweepBenchmark:
    """A sweep to be measured.

    Attributes
    ----------
    name : str
        Short name.
    workers : int
        Processes at once.
    """

    name: str
    workers: int


SWEEP_BENCHMARKS = (SweepBenchmark("sweep-1", 1), SweepBenchmark("sweep-2", 2))


@dataclass(frozen=True, slots=True)
class MeasuredSweep:
    """Median over the repeats of one sweep.

    Attributes
    ----------
    name : str
        The benchmark.
    workers : int
        Processes at once.
    scenario_hash : str
        Digest of the effective scenario.
    points, repeats : int
        Runs of each sweep, and how often it was made.
    runs_per_s : float
        Points finished per second, from the call to the last file: planning, starting the
        workers and writing are counted.
    slowest_runs_per_s, fastest_runs_per_s : float
        Range over the repeats.
    """

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
    """Make a sweep several times, each time with fresh workers and in a new folder.

    Parameters
    ----------
    benchmark : SweepBenchmark
        Benchmark to measure.
    repeats : int
        Number of runs.
    on_repeat : callable
        Called with the number of each repeat before it starts.

    Returns
    -------
    MeasuredSweep
        Median over the repeats.
    """
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
