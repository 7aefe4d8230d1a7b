"""Communication report of HPC Challenge, from the measurements of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from silvan.results.receive_rates import FloatArray
from silvan.results.result import Result

# Iterations per measurement, of which the shortest counts (bench_lat_bw).
_LOOPS = {"latency": 5, "bandwidth": 2}
_MEASUREMENTS = {"latency": 8, "bandwidth": 3}
_SMALL = 8
_PS_PER_S = 1e12


@dataclass(frozen=True, slots=True)
class Numbers:
    """The benchmark's report.

    Latencies are in milliseconds, bandwidths in MB/s (of rings: per rank and direction), ``ptrans``
    in GB/s, ``random_access`` in billions of updates per second, ``fft`` and ``hpl`` in Gflop/s.
    The last four relate the work to the time of messages and computation; ``hpl`` is not a number
    without HPL.
    """

    min_pingpong_latency: float
    avg_pingpong_latency: float
    max_pingpong_latency: float
    natural_ring_latency: float
    random_ring_latency: float
    min_pingpong_bw: float
    avg_pingpong_bw: float
    max_pingpong_bw: float
    natural_ring_bw: float
    random_ring_bw: float
    ptrans: float
    random_access: float
    fft: float
    hpl: float


@dataclass(frozen=True, slots=True)
class _Marks:
    rank: FloatArray
    index: FloatArray
    seconds: FloatArray


def _marks(table: pa.Table, label: str) -> _Marks:
    chosen = np.array(table["label"].to_pylist()) == label
    rank, index, begin, end = (
        table[name].to_numpy()[chosen].astype(np.float64)
        for name in ("rank", "index", "begin_ps", "end_ps")
    )
    return _Marks(rank, index, (end - begin) / _PS_PER_S)


def _ping_pongs(table: pa.Table, kind: str, ranks: int) -> FloatArray:
    marks = _marks(table, f"ping-pong-{kind}")
    pairs = marks.index % ranks**2
    times = marks.seconds / (2 * _LOOPS[kind])
    return np.array([times[pairs == pair].min() for pair in np.unique(pairs)])


def _rings(table: pa.Table, kind: str) -> FloatArray:
    """Time of one message in each ring in seconds: the shortest of each rank's better way."""
    marks = _marks(table, f"ring-{kind}")
    shape = (-1, _MEASUREMENTS[kind], 2)
    order = np.lexsort((marks.index, marks.rank))
    ranks = int(marks.rank.max()) + 1
    times = (marks.seconds / (2 * _LOOPS[kind]))[order].reshape(ranks, *shape)
    return np.asarray(times.min(axis=3).max(axis=0).min(axis=1))


def _slowest(table: pa.Table, label: str) -> float:
    return float(_marks(table, label).seconds.max())


def numbers(result: Result) -> Numbers:
    """Compute the report of a run with the benchmark."""
    section = result.scenario.traffic.hpcc
    table = result.tables["program_marks"]
    ranks = next(
        row["ranks"] for row in result.tables["programs"].to_pylist() if row["name"] == "hpcc"
    )
    large = section.bandwidth_bytes.bytes
    latencies = _ping_pongs(table, "latency", ranks) * 1e3
    bandwidths = large / _ping_pongs(table, "bandwidth", ranks) / 1e6
    ring_latencies = _rings(table, "latency") * 1e3
    ring_bandwidths = large / _rings(table, "bandwidth") / 1e6
    rows, length, rounds = (
        int(str(section[key])) for key in ("ptrans-rows", "fft-length", "access-rounds")
    )
    updates = ranks * rounds * (1024 // ranks)
    return Numbers(
        float(latencies.min()),
        float(latencies.mean()),
        float(latencies.max()),
        float(ring_latencies[0]),
        _geometric_mean(ring_latencies[1:]),
        float(bandwidths.min()),
        float(bandwidths.mean()),
        float(bandwidths.max()),
        float(ring_bandwidths[0]),
        _geometric_mean(ring_bandwidths[1:]),
        rows**2 * _SMALL / _slowest(table, "ptrans") / 1e9,
        updates / _slowest(table, "random-access") / 1e9,
        5 * length * float(np.log2(length)) / _slowest(table, "fft") / 1e9,
        _hpl(table, int(str(section["hpl-rows"]))),
    )


def _hpl(table: pa.Table, rows: int) -> float:
    if rows == 0:
        return float("nan")
    return (2 / 3 * rows**3 + 3 / 2 * rows**2) / _slowest(table, "hpl") / 1e9


def _geometric_mean(values: FloatArray) -> float:
    return float(np.exp(np.log(values).mean())) if values.size else float("nan")
