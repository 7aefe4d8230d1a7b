"""``python -m silvan.bench``: what it measures, and what it prints."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import silvan
from silvan.bench import simulator
from silvan.bench.__main__ import bench, main
from silvan.bench.endurance import all_clients_seconds, grown_megabytes
from silvan.bench.studies import bench_scenario
from tests.conftest import Command, Outcome, captured, ddr_scenario


@pytest.fixture
def benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run the benchmarks' command line in a separate folder."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["silvan.bench", *words])
        return captured(main)

    return run


def test_an_unknown_benchmark_is_bad_input(benchmark: Command) -> None:
    done = benchmark("--only", "nothing")
    error, hint = done.stderr.splitlines()
    assert (done.status, error) == (2, "error: no benchmark starts with 'nothing'")
    assert "uniform-50" in hint


def test_more_threads_than_a_run_takes_are_bad_input(benchmark: Command) -> None:
    done = benchmark("--only", "uniform-50", "--threads", "70000")
    assert done.status == 2
    assert done.stderr.splitlines() == [
        "error: '70000': no numbers of threads",
        'hint: give whole numbers from 1 to 65535, as in "1,2,4"',
    ]


@pytest.mark.parametrize("threads", ["1,0", "2,", "all", "9" * 5000])
def test_numbers_of_threads_are_whole_and_above_0(threads: str) -> None:
    with pytest.raises(silvan.SilvanError, match="no numbers of threads"):
        bench("uniform-50", 1, threads, as_json=False)


@pytest.mark.slow
def test_bench_prints_every_measure(benchmark: Command) -> None:
    done = benchmark("--only", "uniform-50", "--repeats", "1", "--json")
    (one,) = json.loads(done.stdout)
    assert one["name"] == "uniform-50"
    for measure in (
        "packet_hops_per_s",
        "events_per_s",
        "bytes_per_port",
        "peak_memory_bytes",
        "setup_s",
    ):
        assert one[measure] > 0
    assert one["barrier_s"] is None
    assert one["imbalance"] is None
    assert one["events_per_packet_hop"] == pytest.approx(
        one["events_per_s"] / one["packet_hops_per_s"]
    )


@pytest.mark.slow
def test_bench_prints_the_throughput_of_sweeps(benchmark: Command) -> None:
    done = benchmark("--only", "sweep", "--repeats", "1", "--json")
    one, two = json.loads(done.stdout)
    assert (one["workers"], two["workers"]) == (1, 2)
    assert one["points"] == two["points"] == 64
    for measured in (one, two):
        assert measured["slowest_runs_per_s"] == measured["runs_per_s"] > 0


@pytest.mark.slow
@pytest.mark.needs("opensm", "infiniband-diags", "ibsim-utils")
def test_bench_diagnoses_a_live_fabric(benchmark: Command) -> None:
    """Oracle: the incasts of the scenario, which the benchmark compares with those found."""
    done = benchmark("--only", "diagnose-648", "--repeats", "1", "--json")
    assert done.status == 0, done.stderr
    (one,) = json.loads(done.stdout)
    assert (one["name"], one["unit"], one["goal"]) == ("diagnose-648", "s", 0.15)
    assert one["value"] > 0


@pytest.mark.slow
@pytest.mark.needs("infiniband-diags")
def test_an_hour_of_a_live_fabric_keeps_its_memory() -> None:
    """Oracle: what tools and traffic leave behind would be some KiB each, hundreds of times."""
    fabric = {"generator": "single-switch", "hosts": 4}
    scenario = ddr_scenario(fabric=fabric, traffic={"uniform": [{"load": "100 kbit/s"}]})
    assert grown_megabytes(3600, scenario, 360) < 16


@pytest.mark.slow
@pytest.mark.needs("infiniband-diags")
def test_clients_at_once_all_find_every_node() -> None:
    """Oracle: the nodes of the scenario, with which the benchmark compares."""
    assert all_clients_seconds({"generator": "single-switch", "hosts": 4}, 100) > 0


@pytest.mark.slow
@pytest.mark.parametrize("as_json", [True, False])
def test_bench_that_is_stopped_prints_what_was_finished(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, as_json: bool
) -> None:
    measure = simulator.measure

    def stopped(
        one: simulator.Benchmark,
        *,
        repeats: int,
        on_repeat: Callable[[int], None],
        threads: list[int],
    ) -> list[simulator.Measured]:
        if one.name == "messages-ring":
            raise KeyboardInterrupt
        return measure(one, repeats=repeats, on_repeat=on_repeat, threads=threads)

    monkeypatch.setattr(simulator, "measure", stopped)
    with pytest.raises(KeyboardInterrupt):
        bench("messages", 1, "1", as_json=as_json)
    printed = capsys.readouterr().out
    assert ('"messages-none"' if as_json else "│ messages-none │") in printed
    assert "messages-ring" not in printed


def test_the_benchmark_of_a_training_step_is_the_study() -> None:
    path = Path(__file__).parents[1] / "studies" / "training" / "gpt-13b.toml"
    study = silvan.Scenario.from_file(path).override({"name": "bench-gpt-13b"})
    assert bench_scenario("gpt-13b").hash == study.hash
