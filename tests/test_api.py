"""Functions of the Python API do what the commands of the same name do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import silvan
from silvan.results.measures import MEASURES, RATES
from tests.conftest import INCAST, Command

pytestmark = pytest.mark.usefixtures("inline_pool")

LOADED = """\
name = "loaded"
[fabric]
generator = "single-switch"
hosts = 4
[[traffic.permutation]]
pattern = "shift"
shift = 1
load = 0.5
[run]
warm-up = "100 us"
duration = "300 us"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(INCAST)
    return path


def test_run_sweep_compare_and_python_agree_to_the_last_digit(
    command: Command, file: Path, tmp_path: Path
) -> None:
    """Oracle: four ways to one number."""
    scenario = silvan.Scenario.from_file(file)
    (row,) = silvan.compare(scenario, ["none"])
    own = silvan.run(scenario).measures
    printed = json.loads(command("run", file, "--json").stdout)["runs"][0]["measures"]
    point = silvan.sweep(scenario, seeds=1).points.to_pylist()[0]
    for name in (*RATES, "hotspot_utilisation", "fairness", "latency_mean_us", "latency_p99_us"):
        values = {own.get(name), printed.get(name), point.get(name)}
        assert len(values) == 1, name
        if name in own:
            assert row.numbers[name] == own[name], name
    assert own["hotspots_gbps"] > 0
    assert not row.folders


def test_saturate_finds_what_the_command_prints(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "loaded.toml"
    path.write_text(LOADED)
    (printed,) = json.loads(command("saturate", path, "--json").stdout)["curves"]
    found = silvan.saturate(silvan.Scenario.from_file(path))
    assert (found.load, found.above) == (printed["load"], printed["above"])


def test_tune_takes_objectives_as_text(tmp_path: Path) -> None:
    scenario = silvan.Scenario(
        fabric={"generator": "single-switch", "hosts": 6},
        traffic={"nodes": {"v": 0.4, "c": 0.6, "hotspots": 1}},
        run={"duration": "200 us"},
    )
    found = silvan.tune(
        scenario,
        "minimize latency_p99_us",
        out=tmp_path / "out",
        trials=2,
        seeds=1,
        held_out_seeds=0,
    )
    (objective,) = found.searched["start"].objectives
    measured = silvan.run(scenario.override({"control.scheme": "ib-cc"})).measures
    assert objective == pytest.approx(measured["latency_p99_us"], rel=0.5)
    with pytest.raises(silvan.ScenarioError, match="a run has no measure latency_p98_us") as caught:
        silvan.tune(scenario, "minimize latency_p98_us", out=tmp_path / "other")
    assert "did you mean latency_p99_us" in str(caught.value.hint)


def test_port_series_needs_its_probe() -> None:
    scenario = silvan.Scenario.from_toml(INCAST)
    with pytest.raises(silvan.SilvanError, match="ports are not sampled") as caught:
        _ = silvan.run(scenario).port_series
    assert caught.value.hint == "set probe.ports = true"
    sampled = silvan.run(scenario.override({"probe.ports": True}))
    assert sampled.port_series.num_rows % sampled.ports.num_rows == 0


def test_the_reference_defines_every_measure() -> None:
    page = (Path(__file__).resolve().parents[1] / "docs" / "reference" / "measures.md").read_text()
    for name, one in MEASURES.items():
        assert page.count(f"| `{name}` | {one.unit} | {one.definition} |") == 1
        for end, unit in (("_gbps", "Gbit/s"), ("_us", "µs"), ("_ms", "ms"), ("_mb", "MB")):
            assert name.endswith(end) == (one.unit == unit)
