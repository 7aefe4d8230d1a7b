"""The benchmark GPCNeT: its statistics and its table.

S. Chunduri et al., "GPCNeT: Designing a Benchmark Suite for Inducing and Measuring Contention in
HPC Networks", SC 2019; statistics and table are those of ``network_load_test``, and names of the
other tests those of ``network_test``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from silvan.errors import SilvanError
from silvan.inputs.quantities import Table
from silvan.inputs.scenario import Scenario
from silvan.results.receive_rates import FloatArray, measured_ps
from silvan.results.result import Result

_PS_PER_US = 1e6
_MIB = float(1 << 20)
# Concurrent messages of a bandwidth test to each of two neighbours.
_OUTSTANDING = 8
# Tests of times; others measure rates.
_TIMES: Final = frozenset({"rr-latency", "rr-get-latency", "allreduce"})
_WITHOUT_RINGS: Final = frozenset({"allreduce", "alltoall"})

Part = Literal["isolated", "congestors", "congested"]
PARTS: Final[tuple[Part, ...]] = ("isolated", "congestors", "congested")

_CONGESTORS: Final = {
    "alltoall": "Alltoall",
    "p2p-incast": "Two-sided Incast",
    "put-incast": "Put Incast",
    "get-broadcast": "Get Bcast",
}


@dataclass(frozen=True, slots=True)
class Statistics:
    """Measurements of a test.

    ``smallest``, ``largest`` and ``mean`` are over the means of every rank in every ring, ``worst``
    is the mean over rings of the worst rank. Percentiles are of iterations.
    """

    smallest: float
    largest: float
    mean: float
    worst: float
    p99: float
    p999: float


@dataclass(frozen=True, slots=True)
class Test:
    """A test of the benchmark, in ``usec`` (small is good) or ``MiB/s/rank``."""

    label: str
    title: str
    unit: str

    @property
    def small_is_good(self) -> bool:
        """True if the test measures a time."""
        return self.unit == "usec"


@dataclass(frozen=True, slots=True)
class Report:
    """Measurements of all parts of the benchmark; congestors in MiB/s/rank."""

    tests: Sequence[Test]
    isolated: Mapping[str, Statistics]
    congested: Mapping[str, Statistics]
    congestors_alone: Mapping[str, float]
    congestors_beside: Mapping[str, float]
    hosts: tuple[int, int]
    ranks: int

    def impact(self, test: Test) -> tuple[float, float]:
        """Tell how many times worse congestion makes a test: its mean and its 99 % value."""
        alone, beside = self.isolated[test.label], self.congested[test.label]
        mean, p99 = beside.mean / alone.mean, beside.p99 / alone.p99
        return (mean, p99) if test.small_is_good else (1 / mean, 1 / p99)

    def __str__(self) -> str:
        return text(self)

    def to_json(self) -> dict[str, Any]:
        """Give everything in plain values."""

        def plain(one: Statistics) -> dict[str, float]:
            return {name: getattr(one, name) for name in Statistics.__slots__}

        return {
            "hosts": {"tests": self.hosts[0], "congestors": self.hosts[1]},
            "ranks": self.ranks,
            "tests": {
                test.label: {
                    "title": test.title,
                    "unit": test.unit,
                    "isolated": plain(self.isolated[test.label]),
                    "congested": plain(self.congested[test.label]),
                    "impact": dict(zip(("mean", "p99"), self.impact(test), strict=True)),
                }
                for test in self.tests
            },
            "congestors_mib_per_s_per_rank": {
                "alone": dict(self.congestors_alone),
                "beside": dict(self.congestors_beside),
            },
        }


def section_of(scenario: Scenario) -> Table:
    """Return the table ``traffic.gpcnet`` of a scenario."""
    section = scenario.traffic.get("gpcnet")
    if not isinstance(section, Table):
        raise SilvanError(
            f"{scenario.name}: the scenario does not have the benchmark GPCNeT",
            hint="add a table [traffic.gpcnet]; it may be empty",
        )
    return section


def tests(scenario: Scenario) -> list[Test]:
    """List the tests of a scenario's benchmark, in their order."""
    section = section_of(scenario)
    return [_test(label, section) for label in section.tests]


def test(scenario: Scenario, label: str) -> Test:
    """Give the test with a label."""
    section = section_of(scenario)
    if label not in section.tests:
        raise SilvanError(
            f"{scenario.name}: the benchmark GPCNeT does not measure {label} here",
            hint=f'add "{label}" to traffic.gpcnet.tests',
        )
    return _test(label, section)


def _test(label: str, section: Table) -> Test:
    large = section.bandwidth_bytes.bytes
    each = section.alltoall_bytes.bytes
    title = {
        "rr-latency": "RR Two-sided Lat (8 B)",
        "rr-get-latency": "RR Get Lat (8 B)",
        "rr-bandwidth": f"RR Two-sided BW ({large} B)",
        "rr-put-bandwidth": f"RR Put BW ({large} B)",
        "rr-bandwidth-sync": f"RR Two-sided BW+Sync ({large} B)",
        "nat-bandwidth": f"Nat Two-sided BW ({large} B)",
        "allreduce": "Multiple Allreduce (8 B)",
        "alltoall": f"Multiple Alltoall ({each} B)",
    }[label]
    return Test(label, title, "usec" if label in _TIMES else "MiB/s/rank")


def values(result: Result, test: Test) -> tuple[FloatArray, FloatArray]:
    """Return every iteration of a test, and the mean of every rank (column) in every ring (row)."""
    marks = result.tables["program_marks"]
    chosen = np.array(marks["label"].to_pylist()) == test.label
    column = {name: marks[name].to_numpy()[chosen] for name in ("rank", "index")}
    spans_ps = (marks["end_ps"].to_numpy()[chosen] - marks["begin_ps"].to_numpy()[chosen]).astype(
        np.float64
    )
    section = section_of(result.scenario)
    rings = 1 if test.label in _WITHOUT_RINGS else int(section.rings)
    ranks = int(column["rank"].max()) + 1
    per_ring = spans_ps.size // (rings * ranks)
    order = np.lexsort((column["index"], column["rank"]))
    # By rank, ring and iteration.
    spans = spans_ps[order].reshape(-1, rings, per_ring)
    mean_spans = spans.mean(axis=2).T
    if test.small_is_good:
        # Two messages one after the other in the rings, as the benchmark counts.
        times = 1 if test.label in _WITHOUT_RINGS else 2
        return spans.ravel() / _PS_PER_US / times, mean_spans / _PS_PER_US / times
    moved = _moved_mib(test, section, ranks)
    return moved / (spans.ravel() * 1e-12), moved / (mean_spans * 1e-12)


def _moved_mib(test: Test, section: Table, ranks: int) -> float:
    if test.label == "alltoall":
        others = ranks // int(section.ranks_per_host) - 1
        return float(others * section.alltoall_bytes.bytes / _MIB)
    return float(2 * _OUTSTANDING * section.bandwidth_bytes.bytes / _MIB)


def statistics(result: Result, test: Test) -> Statistics:
    """Compute a test's statistics as the benchmark does."""
    iterations, means = values(result, test)
    good = 1.0 if test.small_is_good else -1.0
    ordered = np.sort(good * iterations)
    quantile = [good * float(ordered[int(np.ceil(q * ordered.size)) - 1]) for q in (0.99, 0.999)]
    worst = means.max(axis=1) if test.small_is_good else means.min(axis=1)
    return Statistics(
        float(means.min()),
        float(means.max()),
        float(means.mean()),
        float(worst.mean()),
        quantile[0],
        quantile[1],
    )


def congestor_rates(result: Result) -> dict[str, float]:
    """Give the mean rate of each congestor, in MiB/s per rank, from the warm-up on."""
    ranks = {
        row["name"]: row["ranks"]
        for row in result.tables["programs"].to_pylist()
        if row["background"]
    }
    span_s = measured_ps(result) * 1e-12
    return {
        row["name"]: row["delivered_bytes"] / _MIB / span_s / ranks[row["name"]]
        for row in result.classes.to_pylist()
        if row["name"] in ranks
    }


def report(scenario: Scenario, results: Mapping[Part, Result]) -> Report:
    """Join the three parts."""
    chosen = tests(scenario)
    jobs = results["congested"].tables["programs"].to_pylist()
    per_host = int(section_of(scenario).ranks_per_host)
    measuring = sum(job["ranks"] for job in jobs if not job["background"])
    total = sum(job["ranks"] for job in jobs)
    return Report(
        chosen,
        {test.label: statistics(results["isolated"], test) for test in chosen},
        {test.label: statistics(results["congested"], test) for test in chosen},
        congestor_rates(results["congestors"]),
        congestor_rates(results["congested"]),
        (measuring // per_host, (total - measuring) // per_host),
        total,
    )


def text(done: Report, *, verbose: bool = False) -> str:
    """Write a report as the benchmark prints it; ``verbose`` as with ``-DVERBOSE``."""
    measuring, congesting = done.hosts
    lines = [
        "NetworkLoad Tests v1.2",
        f"  Test with {done.ranks} MPI ranks ({measuring + congesting} nodes)",
        f"  {measuring} nodes running Network Tests",
        f"  {congesting} nodes running Congestion Tests "
        f"(min {congesting // 4} nodes per congestor)",
        "",
        "  Legend",
        "   RR = random ring communication pattern",
        "   Nat = natural ring communication pattern",
        "   Lat = latency",
        "   BW = bandwidth",
        "   BW+Sync = bandwidth with barrier",
    ]
    lines += _table("Isolated Network Tests", done.tests, done.isolated, verbose=verbose)
    if verbose:
        lines += _rates("Isolated Congestion Tests", done.congestors_alone)
    title = "Network Tests running with Congestion Tests"
    lines += _table(title, done.tests, done.congested, verbose=verbose)
    if verbose:
        lines += _rates("Congestion Tests running with Network Tests", done.congestors_beside)
    return "\n".join(lines + _impacts(done))


def _bar(*widths: int) -> str:
    return "+" + "+".join("-" * (width + 2) for width in widths) + "+"


def _table(
    title: str, chosen: Sequence[Test], done: Mapping[str, Statistics], *, verbose: bool
) -> list[str]:
    columns = ["Avg", "99%"]
    if verbose:
        columns = ["Min", "Max", "Avg", "Avg(Worst)", "99%", "99.9%"]
    rows = []
    for test in chosen:
        one = done[test.label]
        cells = [one.mean, one.p99]
        if verbose:
            cells = [one.smallest, one.largest, one.mean, one.worst, one.p99, one.p999]
        rows.append((test.title, cells, test.unit))
    return _framed(title, columns, rows)


def _rates(title: str, rates: Mapping[str, float]) -> list[str]:
    rows = [(_CONGESTORS[name], [rate], "MiB/s/rank") for name, rate in rates.items()]
    return _framed(title, ["Avg"], rows)


def _framed(
    title: str, columns: Sequence[str], rows: Sequence[tuple[str, Sequence[float], str]]
) -> list[str]:
    inner = _bar(31, *(12 for _ in columns), 12)
    outer = "+" + "-" * (len(inner) - 2) + "+"
    heading = " | ".join(f"{name:>12}" for name in [*columns, "Units"])
    lines = [
        "",
        outer,
        f"|{title:^{len(inner) - 2}}|",
        inner,
        f"| {'Name':>31} | {heading} |",
        inner,
    ]
    for name, cells, unit in rows:
        numbers = " | ".join(f"{cell:12.1f}" for cell in cells)
        lines += [f"| {name[:31]:>31} | {numbers} | {unit:>12} |", inner]
    return lines


def _impacts(done: Report) -> list[str]:
    inner = _bar(31, 20, 19)
    title = "Network Tests running with Congestion Tests - Key Results"
    lines = [
        "",
        "+" + "-" * (len(inner) - 2) + "+",
        f"|{title:^{len(inner) - 2}}|",
        _bar(31, 42),
        f"| {'Name':>31} | {'Congestion Impact Factor':>42} |",
        inner,
        f"| {'':>31} | {'Avg':>20} | {'99%':>19} |",
        inner,
    ]
    for test in done.tests:
        mean, p99 = done.impact(test)
        lines += [f"| {test.title[:31]:>31} | {mean:19.1f}X | {p99:18.1f}X |", inner]
    return lines


__all__ = [
    "PARTS",
    "Part",
    "Report",
    "Statistics",
    "Test",
    "congestor_rates",
    "report",
    "section_of",
    "statistics",
    "test",
    "tests",
    "text",
    "values",
]
