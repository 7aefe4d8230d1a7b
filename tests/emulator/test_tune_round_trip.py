"""OpenSM sets the files of `silvan tune` in a live fabric, and the simulated gain appears there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import silvan
from silvan.comparing.tuning.opensm_conf import OpensmSettings
from silvan.comparing.tuning.tune import OBJECTIVE, Objective, tune
from tests.emulator.conftest import REAL_TOOLS, Fabric, Serve, values
from tests.emulator.test_opensm import opensm

pytestmark = [REAL_TOOLS, pytest.mark.slow, pytest.mark.usefixtures("inline_pool")]

# Only one route each, so OpenSM's are those of the simulation.
SHARED = """\
name = "shared-cable"
[fabric]
switch = [{ name = "left", ports = 8 }, { name = "right", ports = 8 }]
host = [
    { name = "a" }, { name = "b" }, { name = "c" }, { name = "d" }, { name = "x" }, { name = "y" },
]
cable = [
    { from = "a", to = "left:1" },
    { from = "x", to = "left:2" },
    { from = "b", to = "right:1" },
    { from = "c", to = "right:2" },
    { from = "d", to = "right:3" },
    { from = "y", to = "right:4" },
    { from = "left:5", to = "right:5" },
]
routing = "min-hop"
[[traffic.incast]]
to = "d"
from = ["a", "b", "c"]
[[traffic.flow]]
from = "x"
to = "y"
[run]
duration = "20 ms"
warm-up = "10 ms"
"""


def rates(fabric: Fabric, seconds: float) -> dict[str, float]:
    """Give the receive rates of hotspot and victim over some simulated time, in Gbit/s."""

    def counted() -> tuple[float, dict[str, int]]:
        control = fabric.emulation.control
        control("pause")
        flows = control("flows")
        simulated = control("status")["simulated_s"]
        control("resume")
        received = {"d": 0, "y": 0}
        for flow in flows:
            received["y" if flow["flow"] == "flow-1" else "d"] += flow["delivered_bytes"]
        return simulated, received

    start, before = counted()
    fabric.pass_time(seconds)
    end, after = counted()
    return {name: (after[name] - before[name]) * 8e-9 / (end - start) for name in after}


def simulated(path: Path) -> dict[str, float]:
    """Give the receive rates over 100 ms of a simulation, in Gbit/s."""
    result = silvan.run(silvan.Scenario.from_file(path, overrides={"run.duration": "110 ms"}))
    hosts = {row["name"]: row["delivered_bytes"] for row in result.hosts.to_pylist()}
    return {name: hosts[name] * 8e-9 / 0.1 for name in ("d", "y")}


def test_opensm_sets_what_was_tuned_and_the_gain_appears(serve: Serve, tmp_path: Path) -> None:
    scenario = silvan.Scenario.from_toml(SHARED)
    result = tune(
        scenario,
        [Objective.parse(OBJECTIVE)],
        out=tmp_path / "tune",
        trials=32,
        seeds=1,
        held_out_seeds=1,
    )
    assert result.is_better
    # The load has no placements to hold out, and that is said.
    assert not result.seeds_place
    conf = (tmp_path / "tune" / "opensm.conf").read_text()
    wanted = OpensmSettings.of(silvan.Scenario.from_file(tmp_path / "tune" / "tuned.toml"))

    fabric = serve(SHARED, time_scale=0.1)
    fabric.pass_time(0.005)
    before = rates(fabric, 0.005)
    with opensm(fabric, "b", conf) as log:
        assert " ERR " not in log.read_text()
        lids = fabric.lids()
        for switch in ("left", "right"):
            got = fabric.values("ibccquery", "SwitchCongestionSetting", str(lids[switch]))
            assert int(got["Threshold"], 16) == wanted.threshold
            assert int(got["Marking_Rate"]) == wanted.marking_rate
            assert int(got["Packet_Size"]) == wanted.packet_size
            assert int(got["Victim_Mask"], 16) == wanted.victim_mask == 0b11110
        for host in "abcdxy":
            text = fabric.tool("ibccquery", "CACongestionSetting", str(lids[host]))
            for entry in text.split("SL:")[1:]:
                got = values(entry)
                assert int(got["CCTI_Timer"]) == wanted.ccti_timer
                assert int(got["CCTI_Increase"]) == wanted.ccti_increase
            # The tool prints 64 entries of the table at a time; the limit covers all of them.
            table = fabric.tool("ibccquery", "CongestionControlTable", str(lids[host]))
            assert int(values(table)["CCTI_Limit"]) == len(wanted.entries) - 1
            read = [
                (int(shift), int(multiplier))
                for shift, multiplier in re.findall(
                    r"CCT_Shift:\.*(\d+)\s+CCT_Multiplier:\.*(\d+)", table
                )
            ]
            assert read, table
            assert read == list(wanted.entries[: len(read)])
        fabric.pass_time(0.01)
        after = rates(fabric, 0.1)

    off, tuned = result.held_out["off"].measures, result.held_out["tuned"].measures
    assert off["other_receivers_gbps"] is not None
    assert tuned["other_receivers_gbps"] is not None
    assert tuned["other_receivers_gbps"] > 1.5 * off["other_receivers_gbps"]
    assert before["y"] == pytest.approx(off["other_receivers_gbps"], rel=0.02)
    assert before["d"] == pytest.approx(off["hotspots_gbps"], rel=0.02)
    # Rates go up and down under control, and the live fabric is at another point of that. Over ten
    # times as long the means agree.
    expected = simulated(tmp_path / "tune" / "tuned.toml")
    assert after["y"] == pytest.approx(expected["y"], rel=0.1), expected
    assert after["d"] == pytest.approx(expected["d"], rel=0.1)
