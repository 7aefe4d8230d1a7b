"""Entries of many flows: their table by size, on the command line and against numpy."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import silvan
from silvan.errors import SilvanError
from silvan.results.result import Result
from tests.conftest import DDR_TOML, Command

FLOWS = f"""\
name = "many"

[fabric]
generator = "single-switch"
hosts = 8
{DDR_TOML}
[[traffic.flows]]
name = "hadoop"
sizes = "hadoop"
load = 0.3
end = "15 ms"

[run]
warm-up = "3 ms"
duration = "16 ms"
"""


@pytest.fixture(scope="module")
def result() -> Result:
    return silvan.run(silvan.Scenario.from_toml(FLOWS))


def test_percentiles_are_those_of_numpy(result: Result) -> None:
    flows = result.flows.to_pydict()
    rows = result.flow_sizes.to_pylist()
    sizes = np.array(flows["bytes"])
    measured = np.array(flows["start_ps"]) >= 3_000_000_000
    assert measured.tolist() == flows["measured"]
    slowdowns = np.array([np.inf if one is None else one for one in flows["slowdown"]])
    assert len(rows) == 5
    for row in rows:
        chosen = measured & (sizes >= (row["from_bytes"] or 0))
        if row["to_bytes"] is not None:
            chosen &= sizes < row["to_bytes"]
        values = slowdowns[chosen]
        finished = values[np.isfinite(values)]
        assert (row["flows"], row["finished_flows"]) == (len(values), len(finished))
        assert row["bytes"] == sizes[chosen].sum()
        assert row["slowdown_mean"] == pytest.approx(finished.mean(), rel=1e-12)
        for name, part in {"p50": 50, "p95": 95, "p99": 99, "p999": 99.9}.items():
            # An unfinished flow is infinitely slow; a percentile that depends on it is unknown.
            above = np.percentile(values, part, method="higher")
            known = np.isfinite(above)
            expected = pytest.approx(np.percentile(values, part)) if known else None
            assert row[f"slowdown_{name}"] == expected


def test_interval_and_trend_are_those_of_batch_means(result: Result) -> None:
    flows = result.flows.to_pylist()
    flows = [one for one in flows if one["measured"] and one["finished"]]
    flows.sort(key=lambda one: one["start_ps"])
    slowdowns = np.array([one["slowdown"] for one in flows])
    size = len(slowdowns) // 20
    batches = slowdowns[: 20 * size].reshape(20, size).mean(axis=1)
    row = result.flow_sizes.to_pylist()[0]
    half = 2.093024 * batches.std(ddof=1) / np.sqrt(20)
    assert row["slowdown_ci"] == pytest.approx(half, rel=1e-9)
    logs = np.log(slowdowns[: 20 * size]).reshape(20, size).mean(axis=1)
    (slope, _), covariance = np.polyfit(np.arange(20), logs, 1, cov=True)
    assert row["trend_t"] == pytest.approx(slope / np.sqrt(covariance[0, 0]), rel=1e-6)


def test_run_prints_sizes_and_stationarity(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "many.toml"
    path.write_text(FLOWS)
    done = command("run", str(path))
    assert done.status == 0, done.stderr
    assert "1,000,000 to 9,999,999" in done.stdout
    assert "hadoop: the run is stationary" in done.stdout
    rows = json.loads(command("run", str(path), "--json").stdout)["runs"][0]["flow_sizes"]
    assert [row["from_bytes"] for row in rows][:2] == [None, 0]


@pytest.mark.parametrize(
    ("sizes", "load", "message", "hint"),
    [
        (
            "{ cdf = [['0 B', 0.0], ['1 KiB', 60.0], ['2 KiB', 50.0]] }",
            "0.5",
            "falls from 60",
            "smaller sizes",
        ),
        ('"web-search"', "1.5", "1.5 is not between 0 and 1", "0.5"),
        ('"web-serch"', "0.5", "web-serch", "web-search"),
        ("{ fixed = '0 B' }", "0.5", "zero bytes", "4 KiB"),
    ],
)
def test_mistakes_have_place_and_hint(sizes: str, load: str, message: str, hint: str) -> None:
    text = FLOWS.replace('"hadoop"\nload', f"{sizes}\nload").replace("load = 0.3", f"load = {load}")
    with pytest.raises(SilvanError, match=message) as refusal:
        silvan.Scenario.from_toml(text)
    assert hint in str(refusal.value.hint)
    assert "traffic.flows" in str(refusal.value)


def test_a_file_of_sizes_that_falls_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "sizes.cdf").write_text("0 0\n1000 60\n2000 50\n3000 100\n")
    scenario = tmp_path / "many.toml"
    scenario.write_text(FLOWS.replace('"hadoop"\nload', '{ file = "sizes.cdf" }\nload'))
    with pytest.raises(SilvanError, match=r"sizes\.cdf:3: .*falls from 60 to 50"):
        silvan.Scenario.from_file(scenario)
    (tmp_path / "sizes.cdf").write_text("0 0\n1000 60\n2000 70\n3000 100\n")
    assert "cdf" in silvan.Scenario.from_file(scenario).to_toml()
