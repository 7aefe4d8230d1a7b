"""Twins of live fabrics, from the diagnosis by datagrams to a change made in the fabric."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import silvan
from silvan.comparing.remedies import CongestedTwin, changes, try_changes
from silvan.execution.simulation import simulate
from silvan.live.twin.scenario import read_record
from tests.emulator.conftest import REAL_TOOLS, Serve

pytestmark = [REAL_TOOLS, pytest.mark.slow]

FABRIC = """\
[fabric]
generator = "leaf-spine"
leaf-hosts = [3, 3]
spine-cables = [1]
[link]
width = "1x"
speed = "SDR"
[packet]
mtu = "4 KiB"
[traffic]
message = "4 KiB"
[[traffic.incast]]
to = "host-0000"
from = ["host-0001", "host-0003", "host-0004"]
[[traffic.flow]]
from = "host-0005"
to = "host-0002"
load = "1 Gbit/s"
[vl]
data-vls = 2
[control]
scheme = "ib-cc"
[control.ib-cc]
switch = { marking-rate = 31, threshold = 15 }
adapter = { ccti-increase = 0, ccti-timer = 77 }
"""
"""Three hosts send to one, and a fourth is held up on the cable that two of them need."""


def test_the_twin_of_a_live_fabric_has_what_was_set(serve: Serve, tmp_path: Path) -> None:
    """Oracle: the scenario that the fabric runs."""
    fabric = serve(FABRIC)
    path = tmp_path / "twin.toml"
    words = [sys.executable, "-m", "silvan", "diagnose", "--json", "--scenario", str(path)]
    report = json.loads(fabric.tool(*words, status=1))
    assert [tree["root"] for tree in report["trees"]] == ["leaf-00:1"]
    twin = silvan.Scenario.from_file(path)
    original = silvan.Scenario.from_toml(FABRIC)
    assert twin.egress_ports() == original.egress_ports()
    whole = twin.to_dict()
    assert whole["vl"]["data-vls"] == 2
    switch, adapter = (whole["control"]["ib-cc"][name] for name in ("switch", "adapter"))
    assert (switch["marking-rate"], switch["threshold"]) == (31, 15)
    assert (adapter["ccti-increase"], adapter["ccti-timer"]) == (0, 77)
    flows = {(flow["from"], flow["to"]) for flow in whole["traffic"]["flow"]}
    (tree,) = report["trees"]
    assert tree["peer"] == "host-0000:1"
    assert ("host-0001", "host-0000") in flows
    # Hosts of one switch that send equally much cannot be told apart without marks.
    assert len({source for source, target in flows if target == "host-0000"}) >= 3
    cables = whole["fabric"]["cable"]
    assert {(cable["width"], cable["speed"]) for cable in cables} == {("1x", "SDR")}
    assert report["twin"]["agreement"]["median"] <= 0.05
    assert report["twin"]["agreement"]["p95"] <= 0.20


def test_a_change_that_helps_the_twin_helps_the_fabric(serve: Serve, tmp_path: Path) -> None:
    """Oracle: the counters of the fabric, with the contributors throttled as the twin says."""
    path = tmp_path / "twin.toml"
    command = [sys.executable, "-m", "silvan", "diagnose", "--json", "--scenario"]
    serve(FABRIC).tool(*command, str(path), status=1)
    record = read_record(path)
    assert record is not None
    twin = CongestedTwin(silvan.Scenario.from_file(path), record)
    chosen = [one for one in changes(twin) if one.kind == "throttle"]
    _, outcome = try_changes(twin, chosen, seeds=1)
    rate = outcome.apply.splitlines()[1].rpartition(": ")[2]
    throttled = FABRIC.replace('"host-0004"]', f'"host-0004"]\nload = "{rate}"')
    again = tmp_path / "again.toml"
    fabric = serve(throttled)
    fabric.run(*command, str(again), check=False)
    after = read_record(again)
    assert after is not None
    sent = (one["ports"]["host-0005:1"]["gbps"] for one in (record, after))
    before_gbps, after_gbps = sent
    assert after_gbps - before_gbps > 0.1
    assert outcome.regained_gbps == pytest.approx(after_gbps - before_gbps, rel=0.25)


def test_the_twin_counts_as_the_live_fabric_does(serve: Serve, tmp_path: Path) -> None:
    """Oracle: the counters of the fabric, against a longer run with another seed."""
    path = tmp_path / "twin.toml"
    words = [sys.executable, "-m", "silvan", "diagnose", "--json", "--scenario", str(path)]
    serve(FABRIC).tool(*words, status=1)
    record = read_record(path)
    assert record is not None
    twin = silvan.Scenario.from_file(path).override(
        {"run.duration": "200 ms", "run.warm-up": "100 ms"}
    )
    rows = simulate(twin, 9).tables["ports"].to_pylist()
    for row in rows:
        port = record["ports"][f"{row['node']}:{row['port']}"]
        gbps = row["xmit_bytes"] * 8 / 0.1 / 1e9
        assert gbps == pytest.approx(port["gbps"], rel=0.2, abs=0.02), row
