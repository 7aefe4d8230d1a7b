"""GPCNeT: the benchmark's parts, statistics and table."""

from __future__ import annotations

import re
import statistics as plain
import subprocess
import sys
from pathlib import Path

import pytest

from silvan import run
from silvan.comparing.gpcnet import measure, part
from silvan.errors import SilvanError
from silvan.example_files import copy_example, example
from silvan.inputs.scenario import Scenario
from silvan.inputs.toml_text import TomlValue
from silvan.results import gpcnet
from silvan.results.result import Result
from tests.conftest import DDR_TOML

TEXT = f"""
name = "small"
[fabric]
generator = "single-switch"
hosts = 12
{DDR_TOML}
[traffic.gpcnet]
ranks-per-host = 2
tests = [
  "rr-latency", "rr-get-latency", "rr-bandwidth", "rr-put-bandwidth", "rr-bandwidth-sync",
  "nat-bandwidth", "allreduce", "alltoall",
]
rings = 2
latency-iterations = 5
bandwidth-iterations = 2
allreduce-iterations = 4
alltoall-iterations = 3
bandwidth-bytes = "16 KiB"
alltoall-bytes = "8 KiB"
settle = "200 us"
[run]
duration = "1 s"
"""


@pytest.fixture(scope="module")
def results() -> dict[gpcnet.Part, Result]:
    scenario = Scenario.from_toml(TEXT)
    return {name: run(part(scenario, name)) for name in gpcnet.PARTS}


def _times_us(result: Result, label: str) -> dict[tuple[int, int], float]:
    """Oracle: rank and number of every iteration with its time, row by row."""
    return {
        (row["rank"], row["index"]): (row["end_ps"] - row["begin_ps"]) / 1e6
        for row in result.tables["program_marks"].to_pylist()
        if row["label"] == label
    }


def test_statistics_are_those_of_the_benchmark(results: dict[gpcnet.Part, Result]) -> None:
    result = results["congested"]
    labels = ("rr-latency", "rr-bandwidth-sync", "allreduce", "alltoall")
    latency, bandwidth, allreduce, alltoall = (
        gpcnet.test(result.scenario, label) for label in labels
    )

    times = _times_us(result, "rr-latency")
    assert len(times) == 6 * 2 * 5
    halves = {key: time / 2 for key, time in times.items()}
    means = [
        [plain.fmean(halves[rank, 5 * ring + i] for i in range(5)) for rank in range(6)]
        for ring in range(2)
    ]
    got = gpcnet.statistics(result, latency)
    assert got.mean == pytest.approx(plain.fmean(halves.values()))
    assert got.smallest == pytest.approx(min(map(min, means)))
    assert got.worst == pytest.approx(plain.fmean(map(max, means)))
    # 59.4 of 60 values are at most the 60th.
    assert got.p99 == pytest.approx(max(halves.values()))

    times = _times_us(result, "rr-bandwidth-sync")
    mib = 2 * 8 * 16 * 1024 / (1 << 20)
    ranks = [
        [mib / plain.fmean(times[rank, 2 * ring + i] * 1e-6 for i in range(2)) for rank in range(6)]
        for ring in range(2)
    ]
    got = gpcnet.statistics(result, bandwidth)
    assert got.mean == pytest.approx(plain.fmean([rate for ring in ranks for rate in ring]))
    assert got.worst == pytest.approx(plain.fmean(map(min, ranks)))
    assert got.p99 == pytest.approx(mib / (max(times.values()) * 1e-6))

    assert len(_times_us(result, "allreduce")) == 6 * 4
    times = _times_us(result, "allreduce")
    assert gpcnet.statistics(result, allreduce).mean == pytest.approx(plain.fmean(times.values()))

    times = _times_us(result, "alltoall")
    # To each of the two other ranks of the slice.
    mib = 2 * 8 * 1024 / (1 << 20)
    rates = [
        mib / plain.fmean(times[rank, index] * 1e-6 for index in range(3)) for rank in range(6)
    ]
    got = gpcnet.statistics(result, alltoall)
    assert got.mean == pytest.approx(plain.fmean(rates))
    assert (got.smallest, got.largest) == pytest.approx((min(rates), max(rates)))
    assert got.p99 == pytest.approx(mib / (max(times.values()) * 1e-6))


def test_bandwidths_are_those_of_the_wire() -> None:
    """Oracles: the link's rate, and what one test does more than another."""
    keys: dict[str, TomlValue] = {
        "traffic.gpcnet.part": "isolated",
        "traffic.gpcnet.ranks-per-host": 1,
    }
    result = run(Scenario.from_toml(TEXT).override(keys))
    means = {
        test.label: gpcnet.statistics(result, test).mean for test in gpcnet.tests(result.scenario)
    }
    # A write needs no match, a message its handshake, and a barrier its rounds: a ring whose ranks
    # go together tells them apart. The links have 16 Gbit/s, and a packet of 2 KiB a header.
    ordered = [means[f"rr-{name}"] for name in ("bandwidth-sync", "bandwidth", "put-bandwidth")]
    assert ordered == sorted(ordered)
    wire = 16e9 / 8 / (1 << 20)
    assert 0.95 * wire < ordered[0] < ordered[-1] < wire
    assert means["nat-bandwidth"] == pytest.approx(means["rr-bandwidth"])
    # Two messages of 8 KiB one after the other, each with its handshake.
    assert 0.7 * wire < means["alltoall"] < wire


def test_a_read_goes_there_and_back() -> None:
    """Oracle: without overhead, only the wire takes time, twice for a read."""
    keys: dict[str, TomlValue] = {
        "traffic.gpcnet.part": "isolated",
        "traffic.gpcnet.tests": ["rr-latency", "rr-get-latency"],
        "traffic.gpcnet.ranks-per-host": 1,
        "traffic.messaging.overhead": "0 ns",
    }
    result = run(Scenario.from_toml(TEXT).override(keys))
    there, and_back = (
        gpcnet.statistics(result, test).mean for test in gpcnet.tests(result.scenario)
    )
    # Messages to and from both neighbours share the links, and a request is longer than 8 bytes.
    assert 1.5 * there < and_back < 2.5 * there


def test_the_benchmarks_own_tests_and_the_alltoall_are_the_default() -> None:
    scenario = Scenario.from_toml('[fabric]\ngenerator = "fat-tree-120"\n[traffic.gpcnet]\n')
    titles = [test.title for test in gpcnet.tests(scenario)]
    # Titles of network_load_test, then of network_test.
    assert titles == [
        "RR Two-sided Lat (8 B)",
        "RR Two-sided BW+Sync (131072 B)",
        "Multiple Allreduce (8 B)",
        "Multiple Alltoall (4096 B)",
    ]
    short = scenario.override({"traffic.gpcnet.tests": ["alltoall"]})
    with pytest.raises(SilvanError, match="does not measure rr-latency here"):
        gpcnet.test(short, "rr-latency")


def test_congestion_makes_nothing_better(results: dict[gpcnet.Part, Result]) -> None:
    report = gpcnet.report(Scenario.from_toml(TEXT), results)
    assert report.hosts == (3, 9)
    assert report.ranks == 24
    for test in report.tests:
        # On one switch without blocking there is little to suffer from, and nothing to gain.
        assert min(report.impact(test)) > 0.95
    assert set(report.congestors_alone) == {
        "alltoall",
        "p2p-incast",
        "put-incast",
        "get-broadcast",
    }
    for name, rate in report.congestors_alone.items():
        # 13.5 Gbit/s are 1609 MiB/s, for two ranks.
        assert 0 < rate < 1610, name


def test_the_table_is_framed_like_the_benchmarks(results: dict[gpcnet.Part, Result]) -> None:
    report = gpcnet.report(Scenario.from_toml(TEXT), results)
    lines = gpcnet.text(report).splitlines()
    assert lines[1] == "  Test with 24 MPI ranks (12 nodes)"
    # The original prints rows of 80 characters, of 140 when verbose.
    framed = [line for line in lines if line[:1] in "|+"]
    assert {len(line) for line in framed if line} == {80}
    row = next(line for line in lines if "RR Two-sided Lat" in line)
    assert re.fullmatch(
        r"\|          RR Two-sided Lat \(8 B\) \|( +[0-9.]+ \|){2}         usec \|", row
    )
    verbose = gpcnet.text(report, verbose=True).splitlines()
    assert max(map(len, verbose)) == 140
    assert any("Isolated Congestion Tests" in line for line in verbose)


def test_a_measurement_is_that_of_its_parts(results: dict[gpcnet.Part, Result]) -> None:
    scenario = Scenario.from_toml(TEXT)
    measured = measure(scenario)
    assert measured == gpcnet.report(scenario, results)
    assert str(measured) == gpcnet.text(measured)
    assert measured.to_json()["tests"]["rr-latency"]["impact"]["mean"] > 0


@pytest.mark.slow
def test_the_program_of_the_example_prints_the_table(tmp_path: Path) -> None:
    copy_example(example("gpcnet"), tmp_path)
    (tmp_path / "gpcnet.toml").write_text(TEXT)
    done = subprocess.run(
        [sys.executable, "gpcnet.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "Congestion Impact Factor" in done.stdout


def test_a_scenario_without_the_benchmark_is_refused() -> None:
    with pytest.raises(SilvanError, match="does not have the benchmark GPCNeT"):
        part(Scenario.from_toml(""), "isolated")
