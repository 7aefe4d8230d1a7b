"""GPCNeT: the benchmark's parts, statistics and table."""

from __future__ import annotations

import json
import re
import statistics as plain

import pytest

from silvan import gpcnet, run
from silvan.cli.app import run_command
from silvan.errors import SilvanError
from silvan.result import Result
from silvan.scenario import Scenario

TEXT = """
name = "small"
[fabric]
generator = "single-switch"
hosts = 12
[traffic.gpcnet]
ranks-per-host = 2
rings = 2
latency-iterations = 5
bandwidth-iterations = 2
allreduce-iterations = 4
bandwidth-bytes = "16 KiB"
settle = "200 us"
[run]
duration = "1 s"
"""


@pytest.fixture(scope="module")
def results() -> dict[gpcnet.Part, Result]:
    scenario = Scenario.from_toml(TEXT)
    return {name: run(gpcnet.part(scenario, name)) for name in gpcnet.PARTS}


def _times_us(result: Result, label: str) -> dict[tuple[int, int], float]:
    """Oracle: rank and number of every iteration with its time, row by row."""
    return {
        (row["rank"], row["index"]): (row["end_ps"] - row["begin_ps"]) / 1e6
        for row in result.tables["program_marks"].to_pylist()
        if row["label"] == label
    }


def test_statistics_are_those_of_the_benchmark(results: dict[gpcnet.Part, Result]) -> None:
    result = results["congested"]
    latency, bandwidth, allreduce = gpcnet.tests(result.scenario)

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
    assert gpcnet.statistics(result, allreduce).mean > 0


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


def test_the_command_prints_the_table(
    capsys: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("gpcnet")
    (folder / "small.toml").write_text(TEXT)
    assert run_command(["gpcnet", str(folder / "small.toml")]) == 0
    assert "Congestion Impact Factor" in capsys.readouterr().out
    out = folder / "out"
    assert run_command(["gpcnet", str(folder / "small.toml"), "--json", "--out", str(out)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["tests"]["rr-latency"]["impact"]["mean"] > 0
    assert sorted(path.name for path in out.iterdir()) == ["congested", "congestors", "isolated"]


def test_a_scenario_without_the_benchmark_is_refused() -> None:
    with pytest.raises(SilvanError, match="does not have the benchmark GPCNeT"):
        gpcnet.part(Scenario.from_toml(""), "isolated")
