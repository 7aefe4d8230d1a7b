"""gran2010: HPCC's report, and what congestion does to it."""

from __future__ import annotations

import math
import tomllib
from importlib import resources

import pytest

import silvan
from silvan.reproduce import find_paper
from silvan.reproduce.experiment import Measurement, Verdict
from silvan.reproduce.registry import study
from silvan.results.hpcc import Numbers, numbers
from silvan.results.result import Result
from silvan_papers.gran2010 import EXPERIMENTS, HPCC, PARKING_LOT

RANKS = 4


@pytest.fixture(scope="module")
def runs() -> dict[str, list[Result]]:
    return {
        case.label: [
            silvan.run(study("gran2010", case.study).override({**case.overrides, **HPCC.quick}))
        ]
        for case in HPCC.cases
    }


@pytest.fixture(scope="module")
def alone(runs: dict[str, list[Result]]) -> Result:
    return runs["a) no congestion"][0]


def test_latency_without_congestion_is_that_of_one_packet(alone: Result) -> None:
    report = numbers(alone)
    overhead, cable, switch = 416, 10, 539
    # 8 bytes and 26 of headers at 16 Gbit/s. The cable between the switches is twice as fast, and
    # must not run dry, so the packet waits for half of its time. Then the sink; a copy otherwise.
    wire = 34 * 8 / 16
    between = 2 * overhead + 3 * cable + 2 * switch + wire + wire / 2 + 8 * 8 / 13.6
    within = 2 * overhead + 300 + 8 * 8 / 7.05
    assert report.max_pingpong_latency == pytest.approx(between * 1e-6, rel=1e-4)
    assert report.min_pingpong_latency == pytest.approx(within * 1e-6, rel=1e-4)
    mean = (2 * between + within) / 3
    assert report.avg_pingpong_latency == pytest.approx(mean * 1e-6, rel=1e-4)


def _brute(result: Result) -> Numbers:
    """Oracle: bench_lat_bw's evaluation, row by row."""
    rows = [
        (row["label"], row["rank"], row["index"], (row["end_ps"] - row["begin_ps"]) * 1e-12)
        for row in result.tables["program_marks"].to_pylist()
    ]

    def ping_pong(label: str, loops: int) -> list[float]:
        best: dict[int, float] = {}
        for name, _, index, time in rows:
            if name == label:
                pair = index % RANKS**2
                best[pair] = min(best.get(pair, math.inf), time / (2 * loops))
        return list(best.values())

    def rings(label: str, loops: int, measurements: int) -> list[float]:
        better: dict[tuple[int, int], float] = {}
        for name, rank, index, time in rows:
            if name == label:
                key = (index // 2, rank)
                better[key] = min(better.get(key, math.inf), time / (2 * loops))
        slowest: dict[int, float] = {}
        for (measurement, _), time in better.items():
            slowest[measurement] = max(slowest.get(measurement, 0.0), time)
        shortest: dict[int, float] = {}
        for measurement, time in slowest.items():
            ring = measurement // measurements
            shortest[ring] = min(shortest.get(ring, math.inf), time)
        return [shortest[ring] for ring in sorted(shortest)]

    def geometric(values: list[float]) -> float:
        return math.exp(math.fsum(map(math.log, values)) / len(values))

    def slowest(label: str) -> float:
        return float(max(time for name, _, _, time in rows if name == label))

    latency, large = ping_pong("ping-pong-latency", 5), 200_000
    bandwidth = [large / time / 1e6 for time in ping_pong("ping-pong-bandwidth", 2)]
    natural, *drawn = rings("ring-latency", 5, 8)
    natural_large, *drawn_large = rings("ring-bandwidth", 2, 3)
    return Numbers(
        min(latency) * 1e3,
        sum(latency) / len(latency) * 1e3,
        max(latency) * 1e3,
        natural * 1e3,
        geometric(drawn) * 1e3,
        min(bandwidth),
        sum(bandwidth) / len(bandwidth),
        max(bandwidth),
        large / natural_large / 1e6,
        geometric([large / time / 1e6 for time in drawn_large]),
        500**2 * 8 / slowest("ptrans") / 1e9,
        RANKS * 50 * 256 / slowest("random-access") / 1e9,
        5 * 65536 * 16 / slowest("fft") / 1e9,
        (2 / 3 * 1e9 + 3 / 2 * 1e6) / slowest("hpl") / 1e9,
    )


def test_the_report_is_the_benchmarks(alone: Result) -> None:
    got, wanted = numbers(alone), _brute(alone)
    for name in Numbers.__slots__:
        assert getattr(got, name) == pytest.approx(getattr(wanted, name)), name


def test_congestion_slows_what_crosses_it_and_control_gives_it_back(
    runs: dict[str, list[Result]],
) -> None:
    measured = {one.id: one for one in HPCC.measure(runs) if isinstance(one, Measurement)}
    assert measured.keys() <= find_paper("gran2010").targets.keys()
    assert measured["hpcc.min_pingpong_latency.cc_off"].values[0] == pytest.approx(1)
    assert measured["hpcc.max_pingpong_bw.cc_off"].values[0] < 0.65
    assert measured["hpcc.max_pingpong_bw.cc_on"].values[0] > 0.95


def test_every_flow_gets_its_turn_in_the_parking_lot() -> None:
    runs = {
        case.label: [
            silvan.run(
                study("gran2010", case.study).override({**case.overrides, **PARKING_LOT.quick})
            )
        ]
        for case in PARKING_LOT.cases
    }
    (found,) = PARKING_LOT.measure(runs)
    assert isinstance(found, Verdict)
    assert found.id == "parking_lot"
    off_shares, off_victim, _, on_victim = found.whole.facts.split("; ")
    assert off_shares.endswith("yes")
    assert off_victim.endswith("yes")
    assert on_victim.startswith("(4) victim 12.")
    assert PARKING_LOT.windows_of(runs) == ("0 to 40 ms", "the last 30 ms")


def test_targets_are_ratios_of_the_slides_table() -> None:
    """Oracle: the table itself, divided by hand."""
    targets = find_paper("gran2010").targets
    rows = tomllib.loads(
        resources.files("silvan_papers").joinpath("targets", "gran2010.toml").read_text("utf-8")
    )["hpcc"]
    assert rows.pop("columns") == ["no_congestion", "cc_off", "cc_on"]
    ratios = [one for one in targets if one.startswith("hpcc.") and ".cc_" in one]
    assert len(ratios) == 2 * len(rows)
    assert len(targets) == 6 * len(rows) + 1
    assert targets["hpcc.hpl.column_b"].value == 1.79
    assert targets["hpcc.fft.column_c"].value == 1.36891
    assert targets["hpcc.random_ring_bw.cc_off"].value == pytest.approx(350.356751 / 684.66655)
    assert targets["hpcc.random_access.cc_on"].value == pytest.approx(0.014409549 / 0.015118991)
    assert targets["hpcc.max_pingpong_latency.no_congestion"].value == 0.001957
    for name, one in targets.items():
        if name.endswith(".cc_on"):
            assert one.tol == 0.05, name


def test_improvements_are_those_of_columns_b_and_c() -> None:
    """Oracle: the slides' percentages are those of their own columns, but for what they round."""
    targets = find_paper("gran2010").targets
    for name, one in targets.items():
        if not name.endswith(".improvement"):
            continue
        row = name.removesuffix(".improvement")
        before, after = (targets[f"{row}.column_{column}"].value for column in "bc")
        assert before
        assert after
        assert one.value
        better = before / after if row.endswith("latency") else after / before
        assert one.value == pytest.approx(better, rel=0.01), name


def test_the_experiments_are_the_slides() -> None:
    assert [one.id for one in EXPERIMENTS] == ["parking_lot", "hpcc"]
