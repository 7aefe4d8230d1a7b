"""Schemes side by side: what is measured, and the command."""

from __future__ import annotations

import dataclasses
import json
import math
import statistics
from pathlib import Path

import numpy as np
import pytest
from matplotlib.patches import Rectangle

import silvan
from silvan.comparing.baselines import Baseline, Cost, Fitting, fitting
from silvan.comparing.comparison import RankingRow, Sampled, compare, with_probes
from silvan.comparing.comparison_figure import _panel
from silvan.figures import style
from silvan.results.measures import CLEARED, MEASURES
from silvan.viewer.comparison import comparison_report
from tests.conftest import Command, ddr_scenario
from tests.test_guide import ROOT

pytestmark = pytest.mark.usefixtures("inline_pool")

# Two flows on a free path, and three that share the last link of one host.
SCENARIO = """\
name = "small"
[fabric]
generator = "single-switch"
hosts = 8
[link]
speed = "EDR"

[packet]
mtu = "2 KiB"
[[traffic.incast]]
to = "host-0000"
from = ["host-0001", "host-0002", "host-0003"]
[[traffic.flow]]
from = "host-0004"
to = "host-0005"
load = 0.5
[run]
duration = "1 ms"
"""


@pytest.fixture(scope="module")
def scenario() -> silvan.Scenario:
    return silvan.Scenario.from_toml(SCENARIO)


def test_every_baseline_is_a_scenario_of_its_own(scenario: silvan.Scenario) -> None:
    every = fitting(scenario).every
    assert every[0].name == "none"
    hashes = {scenario.override(one.overrides).hash for one in every}
    assert len(hashes) == len(every) >= 8


@pytest.mark.parametrize("name", ["training", "gpcnet"])
def test_the_scenarios_of_the_comparison_work_with_every_scheme(name: str) -> None:
    scenario = silvan.Scenario.from_file(ROOT / "studies" / "compare" / f"{name}.toml")
    # A look every interval must fit into what the run is expected to last, not into its limit.
    assert scenario.to_dict()["probe"]["interval"] in ("50 us", "100 us")
    for one in fitting(scenario).every:
        assert with_probes(scenario.override(one.overrides)).to_dict()["probe"]["trees"]


def test_other_receivers_of_programs_are_the_hosts_that_are_waited_for(tmp_path: Path) -> None:
    """Oracle: a ring allreduce among n sends all but an n-th of its bytes twice over each link."""
    scenario = ddr_scenario(
        fabric={"generator": "single-switch", "hosts": 6},
        link={"speed": "EDR"},
        traffic={
            "program": [
                {
                    "name": "work",
                    "kind": "allreduce",
                    "hosts": ["host-0000", "host-0001", "host-0002"],
                    "bytes": "3 MiB",
                },
                {
                    "name": "noise",
                    "kind": "incast",
                    "hosts": ["host-0003", "host-0004", "host-0005"],
                    "bytes": "64 KiB",
                    "iterations": "unlimited",
                    "background": True,
                },
            ]
        },
        probe={"interval": "20 us"},
        run={"duration": "10 ms"},
    )
    (none,) = compare(scenario, ["none"], out=tmp_path)
    # Twice two thirds of 3 MiB through each link at its payload rate.
    expected_ms = 4 * 2**20 * 8 / (100e9 * 2048 / 2074) * 1e3
    assert none.numbers["programs_end_ms"] == pytest.approx(expected_ms, rel=0.1)
    assert none.numbers["fairness"] == pytest.approx(1)
    assert none.numbers["hotspot_utilisation"] > 0.9


def test_a_run_that_ends_before_its_first_sample_has_rates(
    command: Command, tmp_path: Path
) -> None:
    """Oracle: a ring of three ranks sends four thirds of the bytes over each link; no sample."""
    (tmp_path / "short.toml").write_text(
        """\
name = "short"
[fabric]
generator = "single-switch"
hosts = 4
[link]
speed = "EDR"

[packet]
mtu = "2 KiB"
[[traffic.program]]
name = "work"
kind = "allreduce"
hosts = ["host-0000", "host-0001", "host-0002"]
bytes = "64 KiB"
[run]
duration = "100 ms"
[probe]
interval = "1 ms"
"""
    )
    words = ("compare", "short.toml", "--schemes", "ib-cc", "--json")
    outcome = command(*words, cwd=tmp_path)
    assert outcome.status == 0, outcome.stderr
    assert "Warning" not in outcome.stderr
    rows = json.loads(outcome.stdout)
    assert [row["scheme"] for row in rows] == ["none", "ib-cc"]
    for row in rows:
        for name in ("hotspots_gbps", "hotspot_utilisation", "cleared_ms", "queued_max_mb"):
            assert row[name] is None
        assert 0.005 < row["programs_end_ms"] < 1
        sent = 4 / 3 * 64 * 1024 * 8e-6
        rate = sent / row["programs_end_ms"]
        assert row["other_receivers_gbps"] == pytest.approx(rate, rel=0.01)
    page = (tmp_path / "out" / "compare-short" / "compare.html").read_text()
    assert "Receive rate of other receivers" not in page


def test_numbers_of_a_case_that_can_be_told_in_advance(
    scenario: silvan.Scenario, tmp_path: Path
) -> None:
    """Oracle: rates of links; a victim that shares nothing with the incast."""
    ranking = compare(scenario, ["ecn+lipd"], out=tmp_path)
    assert [one.baseline.name for one in ranking] == ["none", "ecn+lipd"]
    for one in ranking:
        assert one.numbers["other_receivers_gbps"] == pytest.approx(50 * 2048 / 2074, rel=0.01)
        assert one.numbers["fairness"] == 1
        # The last link is never idle.
        assert one.numbers["hotspot_utilisation"] == pytest.approx(1, abs=0.01)
        # Two cables of 2 m, 100 ns of the switch, 2074 bytes at 100 Gbit/s.
        assert one.numbers["other_latency_mean_us"] == pytest.approx(0.286, rel=0.02)
        assert math.isnan(one.numbers["programs_end_ms"])
    none, ecn = ranking
    assert (none.numbers["control_packets"], ecn.numbers["control_packets"]) == (0, 1)
    assert math.isinf(none.numbers["cleared_ms"])
    assert none.to_dict()["cleared_ms"] == "never"


def test_latency_is_that_of_packets_to_other_hosts_than_hotspots(tmp_path: Path) -> None:
    """Oracle: the traffic class of the one flow that does not end at the hotspot."""
    scenario = ddr_scenario(
        fabric={"generator": "single-switch", "hosts": 8},
        traffic={
            "nodes": {
                "v": [],
                "c": ["host-0001", "host-0002", "host-0003", "host-0004"],
                "b": [],
                "hotspots": ["host-0000"],
            },
            "flow": [
                {"name": "victim", "from": "host-0001", "to": "host-0005"},
                {"from": "host-0006", "to": "host-0000"},
            ],
        },
        run={"duration": "2 ms", "warm-up": "1 ms"},
    )
    (none,) = compare(scenario, ["none"], out=tmp_path)
    rows = {row["name"]: row for row in silvan.run(scenario).classes.to_pylist()}
    assert none.numbers["other_latency_mean_us"] == pytest.approx(
        rows["victim"]["latency_mean_ns"] / 1e3
    )
    assert none.numbers["other_latency_p999_us"] == pytest.approx(
        rows["victim"]["latency_p999_ns"] / 1e3
    )
    assert rows["c-hot"]["latency_mean_ns"] > 2 * rows["victim"]["latency_mean_ns"]


def test_there_is_nothing_of_other_receivers_where_there_are_none(tmp_path: Path) -> None:
    text = SCENARIO[: SCENARIO.index("[[traffic.flow]]")] + SCENARIO[SCENARIO.index("[run]") :]
    for one in compare(silvan.Scenario.from_toml(text), ["pft"], out=tmp_path):
        names = (
            "other_receivers_gbps",
            "fairness",
            "other_latency_mean_us",
            "other_latency_p999_us",
        )
        assert all(math.isnan(one.numbers[name]) for name in names)
        assert one.to_dict()["fairness"] is None
        assert one.numbers["hotspot_utilisation"] == pytest.approx(1, abs=0.01)


@pytest.mark.slow
def test_deviations_are_those_over_the_seeds(tmp_path: Path) -> None:
    """Oracle: the same comparison one seed at a time."""
    scenario = ddr_scenario(
        fabric={"generator": "single-switch", "hosts": 8},
        traffic={"nodes": {"v": 0.5, "c": 0.5, "hotspots": 1}},
        run={"duration": "400 us"},
    )
    several = compare(scenario, ["pft"], seeds=3, out=tmp_path)
    alone = [
        compare(scenario.override({"run.seed": seed}), ["pft"], out=tmp_path) for seed in (1, 2, 3)
    ]
    for place, entry in enumerate(several):
        for name in ("other_receivers_gbps", "fairness", "other_latency_mean_us"):
            values = [one[place].numbers[name] for one in alone]
            assert entry.numbers[name] == pytest.approx(statistics.fmean(values))
            assert entry.deviations[name] == pytest.approx(statistics.stdev(values))
        assert entry.deviations["other_latency_mean_us"] > 0
        assert all(math.isnan(one[place].deviations["fairness"]) for one in alone)
    assert several[0].to_dict()["standard_deviations"]["other_receivers_gbps"] is not None


@pytest.mark.slow
def test_a_scheme_in_a_python_file_is_compared(command: Command, tmp_path: Path) -> None:
    """Oracle: the same scheme in Rust."""
    (tmp_path / "small.toml").write_text(SCENARIO)
    (tmp_path / "half.py").write_text((ROOT / "examples" / "python-scheme" / "half.py").read_text())
    words = ["compare", "small.toml", "--schemes", "ib-cc,half.py"]
    outcome = command(*words, cwd=tmp_path)
    assert outcome.status == 0, outcome.stderr
    manifest = tmp_path / "out" / "compare-small" / "compare.json"
    report = json.loads(manifest.read_text())["schemes"]
    assert [one["scheme"] for one in report] == ["none", "ib-cc", "half.py"]
    assert report[-1]["host_bytes"] is None
    assert report[-1]["message_kinds"] == "acknowledgements"
    # The carrier of the file's scheme is not that of the others.
    assert report[1]["control_packets"] < 1 == report[2]["control_packets"]
    result = silvan.run(
        silvan.Scenario.from_toml(SCENARIO).override(
            {"control.scheme": "half", "control.feedback.carrier": "ack-per-packet"}
        )
    )
    marked = sum(one["marked_packets"] for one in result.classes.to_pylist())
    assert marked > 0
    (mine,) = [
        path
        for path in (tmp_path / "out" / "runs").glob("*/*")
        if silvan.Result.read(path).scenario.has_python_scheme
    ]
    kept = silvan.Result.read(mine).classes.to_pylist()
    assert sum(one["marked_packets"] for one in kept) == marked


def test_congestion_is_cleared_from_when_on_five_samples_have_few_port_vls() -> None:
    """Oracle: means of five samples by hand; a tenth of the most without control is 2."""
    times = np.arange(9.0)
    without = Sampled(times, np.full(9, 20.0), {})
    for ports, expected in [
        ([0, 0, 0, 0, 0, 0, 0, 0, 0], 0),
        # A single sample above the limit does not count.
        ([0, 0, 0, 9, 0, 0, 0, 0, 0], 0),
        # The first window without the 20 starts at 2; its mean is exactly 2.
        ([20, 20, 10, 0, 0, 0, 0, 0, 0], 2),
        ([0, 0, 0, 0, 0, 0, 0, 0, 20], math.inf),
    ]:
        one = Sampled(times, np.array(ports, dtype=np.float64), {})
        assert one.numbers(without)[CLEARED.name] == expected
    nothing = Sampled(times, np.zeros(9), {})
    assert math.isnan(without.numbers(nothing)[CLEARED.name])


@pytest.mark.slow
def test_the_command_prints_draws_and_keeps(command: Command, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SCENARIO)
    words = ["compare", "small.toml", "--schemes", "pft,dcqcn", "--json"]
    outcome = command(*words, cwd=tmp_path)
    assert outcome.status == 0, outcome.stderr
    report = json.loads(outcome.stdout)
    assert [one["scheme"] for one in report] == ["none", "pft", "dcqcn"]
    assert {*MEASURES, CLEARED.name} <= report[0].keys()
    folder = tmp_path / "out" / "compare-small"
    kept = json.loads((folder / "compare.json").read_text())["schemes"]
    assert [{key: one[key] for key in one if key != "folders"} for one in kept] == report
    assert {path.suffix for path in folder.iterdir()} == {".json", ".png", ".svg", ".csv", ".html"}
    # Control without messages is labelled 0. All axes are linear: a logarithmic one has powers.
    drawing = (folder / "compare.svg").read_text("utf-8")
    assert "0.0000" not in drawing
    assert "mathdefault" not in drawing
    table = command("compare", "small.toml", "--schemes", "pft", "--seeds", "2", cwd=tmp_path)
    assert "standard deviation over 2 seeds" in " ".join(table.stdout.split())
    assert "±0.00" in table.stdout
    assert "pft" in table.stdout
    assert "40 + 0/flow" in table.stdout
    chosen = [*words[:-1], "--measures", "cleared_ms,latency_p99_us"]
    outcome = command(*chosen, cwd=tmp_path)
    assert outcome.status == 0, outcome.stderr
    assert "fairness" not in outcome.stdout
    header = (folder / "compare.csv").read_text().splitlines()[0]
    assert header == "scheme,cleared_ms,latency_p99_us"
    kept = json.loads((folder / "compare.json").read_text())
    assert kept["measures"] == ["cleared_ms", "latency_p99_us"]
    (shown,) = comparison_report(folder / "compare.json").sections[0].tables
    assert shown.columns[:4] == [
        "scheme",
        "congestion cleared after, ms",
        "latency p99, µs",
        "state switch, B",
    ]


def test_a_scheme_whose_run_fails_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = ddr_scenario(
        fabric={"generator": "single-switch", "hosts": 4},
        traffic={"program": [{"name": "work", "kind": "barrier"}]},
        probe={"interval": "1 us"},
        run={"duration": "1 ms"},
    )
    none, *_, last = fitting(scenario).every
    # A barrier of four hosts takes two rounds of more than a microsecond.
    short = dataclasses.replace(last, overrides={**last.overrides, "run.duration": "1 us"})
    suit = Fitting((none, short, last), {})
    monkeypatch.setattr("silvan.comparing.comparison.fitting", lambda *_: suit)
    ranking = compare(scenario, out=tmp_path)
    assert [bool(one.failure) for one in ranking] == [False, True, False]
    assert 'program "work" has not ended' in ranking[1].failure
    assert math.isnan(ranking[1].numbers["programs_end_ms"])
    assert ranking[1].to_dict()["programs_end_ms"] is None
    assert ranking[2].numbers["programs_end_ms"] > 0

    failing = Fitting((dataclasses.replace(none, overrides=short.overrides), last), {})
    monkeypatch.setattr("silvan.comparing.comparison.fitting", lambda *_: failing)
    with pytest.raises(silvan.SimulationError, match="has not ended"):
        compare(scenario, out=tmp_path)


def test_a_scheme_without_published_settings_takes_part_if_it_is_named(
    scenario: silvan.Scenario, tmp_path: Path
) -> None:
    """Oracle: a run of the scenario with that scheme."""
    none, half = compare(scenario, ["half"], out=tmp_path)
    assert (none.baseline.name, half.baseline.name) == ("none", "half")
    assert half.baseline.cost.messages == "acknowledgements"
    assert half.baseline.cost.switch_bytes is None
    result = silvan.run(scenario.override({"control.scheme": "half"}))
    victim = result.hosts["delivered_bytes"].to_pylist()[5]
    assert half.numbers["other_receivers_gbps"] == pytest.approx(victim * 8 / 1e6, rel=1e-12)
    assert "half" not in [one.name for one in fitting(scenario).every]


@pytest.mark.parametrize("name", ["XYZ", ""])
def test_an_unknown_scheme_is_named(command: Command, tmp_path: Path, name: str) -> None:
    (tmp_path / "small.toml").write_text(SCENARIO)
    outcome = command("compare", "small.toml", "--schemes", name, cwd=tmp_path)
    assert outcome.status == 2
    assert outcome.stderr.splitlines()[0] == f"error: no scheme {name!r} to compare"
    assert "ib-cc+dcms" in outcome.stderr
    assert not (tmp_path / "out").exists()


def test_a_cross_stands_beside_the_axis() -> None:
    """Oracle: the places of ticks, bars and crosses in the drawing."""
    nothing = Cost(0, 0, 0, "none")
    numbers = [{"flows_end_ms": value} for value in (2.0, math.inf, 3.0)]
    bars = [{"flows_end_ms": value} for value in (4.0, math.nan, 0.5)]
    ranking = [
        RankingRow(Baseline(name, "", {}, nothing), of, 2, bar)
        for name, of, bar in zip("abc", numbers, bars, strict=True)
    ]
    with style.styled(4, 3) as figure:
        axes = figure.subplots()
        _panel(axes, MEASURES["flows_end_ms"], ranking, [2, 1, 0])
        (cross,) = (line for line in axes.get_lines() if line.get_marker() == "x")
        at = float(np.asarray(cross.get_xdata())[0])
        assert max(axes.get_xticks()) < at
        (band,) = (patch for patch in axes.patches if isinstance(patch, Rectangle))
        # The bar of 2 ± 4 ends before the band.
        assert 6 < band.get_x() < at
