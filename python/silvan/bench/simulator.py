"""Speed and memory of the simulator, each scenario in a separate process."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from silvan.bench.studies import bench_scenario
from silvan.child_processes import run_child
from silvan.errors import SimulationError
from silvan.execution.simulation import simulate
from silvan.inputs.scenario import Scenario
from silvan.reproduce.registry import study


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A scenario to be measured, of this package or of a paper."""

    name: str
    what: str
    study: str
    paper: str | None = None

    @property
    def scenario(self) -> Scenario:
        """The scenario to run."""
        return study(self.paper, self.study) if self.paper else bench_scenario(self.study)


BENCHMARKS = (
    Benchmark("uniform-50", "648 hosts, uniform traffic, 50 % load", "uniform-50"),
    Benchmark("uniform-100", "648 hosts, uniform traffic, 100 % load", "uniform-100"),
    Benchmark("table2-cc", "648 hosts, gran2012's Table II with CC on", "table2", "gran2012"),
    Benchmark("messages-none", "648 hosts, each sends to the next", "messages-none"),
    Benchmark("messages-ring", "the same by a program's messages", "messages-ring"),
    Benchmark("large-100", "11,664 hosts, uniform traffic, 100 % load", "large-100"),
    Benchmark("uniform-100-400g", "648 hosts, 100 % load, 400 Gbit/s", "uniform-100-400g"),
    Benchmark("table2-cc-400g", "nodes of Table II with CC, 400 Gbit/s", "table2-cc-400g"),
    Benchmark("large-100-400g", "11,664 hosts, 100 % load, 400 Gbit/s", "large-100-400g"),
    Benchmark("adaptive-100", "648 hosts, 100 % load, adaptive routes", "adaptive-100"),
    Benchmark("lanes-100", "648 hosts, 100 % load, four virtual lanes", "lanes-100"),
    Benchmark("table2-dcqcn", "nodes of Table II with DCQCN, 100 Gbit/s", "table2-dcqcn"),
    Benchmark("table2-hpcc", "nodes of Table II with HPCC, 100 Gbit/s", "table2-hpcc"),
    Benchmark("table2-nscc", "nodes of Table II with NSCC, 100 Gbit/s", "table2-nscc"),
    Benchmark("workloads-gpt-13b", "a training step of GPT-13B, 128 GPUs", "gpt-13b"),
    Benchmark("workloads-alltoall-512", "512 hosts, all-to-all of 64 KiB", "alltoall-512"),
    Benchmark("workloads-dragonfly-1056", "1,056 hosts, UGAL-L, 50 % load", "dragonfly-1056"),
    Benchmark("workloads-websearch-144", "144 hosts, 19,000 WebSearch flows", "websearch-144"),
    Benchmark("workloads-uniform-65536", "65,536 hosts, uniform, 10 % load", "uniform-65536"),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """Medians over the repeats of a benchmark.

    ``barrier_s`` is the mean time of threads to meet per lookahead window, ``imbalance`` the
    longest work over the mean. ``bytes_per_port`` is memory of the simulated fabric, ``setup_s``
    all time but the loop.
    """

    name: str
    what: str
    scenario_hash: str
    repeats: int
    threads: int
    barrier_s: float | None
    imbalance: float | None
    packet_hops_per_s: float
    slowest_packet_hops_per_s: float
    fastest_packet_hops_per_s: float
    events_per_s: float
    events_per_packet_hop: float
    bytes_per_port: float
    peak_memory_bytes: int
    setup_s: float
    loop_s: float
    packet_hops: int

    def to_dict(self) -> dict[str, Any]:
        """Give the measurements as plain values, for JSON."""
        return asdict(self)


def measure(
    benchmark: Benchmark,
    *,
    repeats: int,
    on_repeat: Callable[[int], object],
    threads: Sequence[int] = (1,),
) -> list[Measured]:
    """Run a benchmark in fresh processes, with each number of threads in turn."""
    summaries: dict[int, list[dict[str, Any]]] = {}
    for number in range(1, repeats + 1):
        on_repeat(number)
        for count in threads:
            if number == 1 or count in summaries:
                summary = _in_process(benchmark, count)
                if summary["threads"] == count:
                    summaries.setdefault(count, []).append(summary)
    return [_medians(benchmark, of_count) for of_count in summaries.values()]


def _medians(benchmark: Benchmark, summaries: Sequence[dict[str, Any]]) -> Measured:
    def median(value: Callable[[dict[str, Any]], float]) -> float:
        return statistics.median(map(value, summaries))

    def median_if_any(key: str) -> float | None:
        known = [one[key] for one in summaries if one[key] is not None]
        return statistics.median(known) if known else None

    speeds = [one["packet_hops"] / one["wall_s"] for one in summaries]
    return Measured(
        name=benchmark.name,
        what=benchmark.what,
        scenario_hash=summaries[0]["hash"],
        repeats=len(summaries),
        threads=summaries[0]["threads"],
        barrier_s=median_if_any("barrier_s"),
        imbalance=median_if_any("imbalance"),
        packet_hops_per_s=statistics.median(speeds),
        slowest_packet_hops_per_s=min(speeds),
        fastest_packet_hops_per_s=max(speeds),
        events_per_s=median(lambda one: one["events"] / one["wall_s"]),
        events_per_packet_hop=median(lambda one: one["events"] / one["packet_hops"]),
        bytes_per_port=median(lambda one: one["bytes_per_port"]),
        peak_memory_bytes=int(median(lambda one: one["peak_memory_bytes"])),
        setup_s=median(lambda one: one["setup_s"]),
        loop_s=median(lambda one: one["wall_s"]),
        packet_hops=summaries[0]["packet_hops"],
    )


def _in_process(benchmark: Benchmark, threads: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "silvan.bench.simulator", benchmark.name, str(threads)]
    done = run_child(command, stderr=None)
    if done.returncode != 0:
        raise SimulationError(f"benchmark {benchmark.name} ended with status {done.returncode}")
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


def _measure_here(name: str, threads: str = "1") -> dict[str, Any]:
    (benchmark,) = (one for one in BENCHMARKS if one.name == name)
    start = time.perf_counter()
    scenario = benchmark.scenario
    # Not run(), which warns of what cannot be divided: the caller measures that with one thread.
    summary = simulate(scenario, scenario.seed, threads=int(threads)).summary
    setup = time.perf_counter() - start - summary["wall_s"]
    return {**summary, "peak_memory_bytes": _peak_memory(), "setup_s": setup}


def _peak_memory() -> int:
    try:
        status = Path("/proc/self/status").read_text("ascii")
    except OSError:
        # Not at the top: only Unix has it, and only the measuring process needs it.
        import resource

        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return largest if sys.platform == "darwin" else largest * 1024  # macOS counts bytes
    # The memory in getrusage includes that of the parent process.
    (kib,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(kib) * 1024


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_measure_here(*sys.argv[1:])))
