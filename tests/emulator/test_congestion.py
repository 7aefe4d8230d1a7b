"""Congestion control set by the real tools acts in the data plane."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources

import pytest

import silvan
from silvan.reproduce.registry import find_paper
from tests.emulator.conftest import REAL_TOOLS, Fabric, Serve, values

pytestmark = REAL_TOOLS


def test_settings_are_read_back_as_they_were_set(line: Fabric) -> None:
    lids = line.lids()
    switch, adapter = str(lids["left"]), str(lids["a"])
    line.tool("ibccconfig", "SS", switch, "0x1f", "0x2a", "0x6", "0xe", "9", "5", "1:40", "77")
    got = line.values("ibccquery", "SS", switch)
    assert int(got["Victim_Mask"], 16) == 0x2A
    assert int(got["Credit_Mask"], 16) == 0x6
    assert int(got["Threshold"], 16) == 14
    assert got["Packet_Size"] == "9"
    assert int(got["CS_Threshold"], 16) == 5
    assert int(got["CS_ReturnDelay"].replace(":", ""), 16) & 0x3FFF in (40, 0x40)
    assert got["Marking_Rate"] == "77"
    # Only the part that the control map selects.
    line.tool("ibccconfig", "SS", switch, "0x10", "0", "0", "0", "0", "0", "0:0", "5")
    changed = line.values("ibccquery", "SS", switch)
    assert changed["Marking_Rate"] == "5"
    assert {key: changed[key] for key in changed if key != "Marking_Rate"} == {
        key: got[key] for key in got if key != "Marking_Rate"
    }
    # Settings of one port: number, valid, type, threshold, packet size, marking rate.
    line.tool("ibccconfig", "SP", switch, "3", "1", "0", "7", "4", "99")
    port = line.tool("ibccquery", "SP", switch, "0").split("Valid:")[4]
    assert values("Valid:" + port)["Cong_Parm_Marking_Rate"] == "99"
    # Service levels 0 and 1.
    line.tool("ibccconfig", "CS", adapter, "0", "0x3", "150", "4", "9", "2")
    entries = line.tool("ibccquery", "CS", adapter).split("SL:")[1:]
    assert len(entries) == 16
    for entry in entries[:2]:
        got = values(entry)
        assert [got[key] for key in ("CCTI_Timer", "CCTI_Increase", "CCTI_Min")] == [
            "150",
            "4",
            "2",
        ]
        assert got["Trigger_Threshold"] == "9"
    # Two blocks of the table.
    for block in (0, 1):
        steps = [f"1:{64 * block + step}" for step in range(64)]
        line.tool("ibccconfig", "CT", adapter, str(64 * block + 63), str(block), *steps)
    table = line.tool("ibccquery", "CT", adapter)
    assert values(table)["CCTI_Limit"] == "127"
    assert "CCT_Multiplier" in table


@pytest.mark.parametrize(
    ("operation", "node", "shown"),
    [
        ("ClassPortInfo", "left", "ClassVersion"),
        ("CongestionInfo", "a", "ControlTableCap"),
        ("CongestionInfo", "left", "CongestionInfo"),
        ("CongestionKeyInfo", "a", "CC_KeyViolations"),
        ("CongestionLog", "a", "ThresholdEventCounter"),
        ("CongestionLog", "left", "LogEventsCounter"),
        ("SwitchCongestionSetting", "left", "Victim_Mask"),
        ("SwitchPortCongestionSetting", "left", "Cong_Parm_Marking_Rate"),
        ("CACongestionSetting", "a", "CCTI_Timer"),
        ("CongestionControlTable", "a", "CCTI_Limit"),
        ("Timestamp", "a", "Timestamp"),
    ],
)
def test_every_query_is_answered(line: Fabric, operation: str, node: str, shown: str) -> None:
    assert shown in line.tool("ibccquery", operation, str(line.lids()[node]))


def test_what_a_node_does_not_have_is_refused(line: Fabric) -> None:
    lids = line.lids()
    for operation, node in (
        ("SwitchCongestionSetting", "a"),
        ("CACongestionSetting", "left"),
        ("CongestionControlTable", "left"),
    ):
        line.tool("ibccquery", operation, str(lids[node]), status=255)


def test_only_who_knows_the_key_may_set(line: Fabric) -> None:
    lids = line.lids()
    switch = str(lids["left"])
    setting = ("SS", switch, "0x10", "0", "0", "0", "0", "0", "0:0")
    line.tool("ibccconfig", "CK", switch, "0x1234", "1", "0", "0")
    line.tool("ibccconfig", *setting, "5", status=255)
    hidden = line.values("ibccquery", "CK", switch)
    assert int(hidden["CC_Key"], 16) == 0
    assert hidden["CC_KeyViolations"] != "0"
    line.tool("ibccconfig", "-c", "0x1234", *setting, "6")
    assert line.values("ibccquery", "SS", switch)["Marking_Rate"] == "6"
    known = line.values("ibccquery", "-c", "0x1234", "CK", switch)
    assert int(known["CC_Key"], 16) == 0x1234


CONTRIBUTORS = ("A-D", "B-D", "C-D")


def experiment_one() -> silvan.Scenario:
    """Give the study of mizero2017's Experiment I with all flows from the start and without end."""
    file = resources.files("silvan_papers") / "studies" / "mizero2017" / "experiment1.toml"
    text = re.sub(r"^(bytes|start) = .*\n", "", file.read_text(), flags=re.M)
    return silvan.Scenario.from_toml(text)


def about(name: str) -> object:
    """Give a number that the paper states, with the tolerance of the reproductions."""
    target = find_paper("mizero2017").targets[name]
    return pytest.approx(target.value, rel=target.tol)


@dataclass
class Bench:
    """The paper's testbed, its rates, and what ibccconfig sets in it."""

    fabric: Fabric
    lids: dict[str, int]

    def delivered(self) -> tuple[float, dict[str, int]]:
        control = self.fabric.emulation.control
        control("pause")
        flows = {flow["flow"]: flow["delivered_bytes"] for flow in control("flows")}
        simulated = control("status")["simulated_s"]
        control("resume")
        return simulated, flows

    def rates(self, settle: float) -> tuple[float, float]:
        """Give the rates of the victim and of all contributors, in Gbit/s, once settled."""
        self.fabric.pass_time(settle)
        start, before = self.delivered()
        self.fabric.pass_time(0.03)
        end, after = self.delivered()
        rate = {name: (after[name] - before[name]) * 8e-9 / (end - start) for name in after}
        return rate["X-Y"], sum(rate[name] for name in CONTRIBUTORS)

    def set_marking_rate(self, rate: int) -> None:
        for switch in ("S1", "S2"):
            setting = ("0x10", "0", "0", "0", "0", "0", "0:0", str(rate))
            self.fabric.tool("ibccconfig", "SS", str(self.lids[switch]), *setting)

    def set_timer(self, timer: int) -> None:
        for host in "ABCX":
            setting = ("0", "0xffff", str(timer), "1", "0", "0")
            self.fabric.tool("ibccconfig", "CS", str(self.lids[host]), *setting)

    def waited(self) -> tuple[float, int]:
        """Give the simulated time, and for how many ticks the cable between the switches waited."""
        control = self.fabric.emulation.control
        control("pause")
        counters = self.fabric.values("perfquery", str(self.lids["S1"]), "15")
        simulated = control("status")["simulated_s"]
        control("resume")
        return simulated, int(counters["PortXmitWait"])


def test_marking_rate_and_timer_move_the_flows_as_in_the_paper(serve: Serve) -> None:
    """Oracle: section 4.2, figure 3 and figure 4, within the tolerances of the reproduction."""
    fabric = serve(experiment_one().to_toml())
    testbed = Bench(fabric, fabric.lids())
    # Hardly a packet is marked: X-Y gets a third of its link, the contributors share D's.
    testbed.set_marking_rate(2048)
    victim, contributors = testbed.rates(settle=0.06)
    assert victim == about("exp1.75-2048.victim")
    assert contributors == about("exp1.75-2048.contributors")
    assert testbed.waited()[1] > 0
    testbed.set_marking_rate(64)
    assert testbed.rates(settle=0.04)[1] == about("exp1.64.contributors")
    # Every packet is marked: the victim is free, the contributors are throttled far below the link,
    # and the cable between the switches no longer waits.
    testbed.set_marking_rate(0)
    victim, contributors = testbed.rates(settle=0.06)
    assert victim == about("exp1.75-0.victim")
    assert contributors == about("exp1.75-0.contributors")
    start, before = testbed.waited()
    fabric.pass_time(0.02)
    end, after = testbed.waited()
    assert (after - before) * 4e-9 < 0.01 * (end - start)
    # A longer timer keeps them down for longer.
    testbed.set_timer(300)
    assert testbed.rates(settle=0.15)[1] == about("exp1.300-0.contributors")
    # The counters say why: FECN arrives at D, BECN at A, and the port to D is congested.
    lids = testbed.lids
    received = fabric.values("perfquery", "--rcvcc", str(lids["D"]), "1")
    assert int(received["PortPktRcvFECN"]) > 0
    notified = fabric.values("perfquery", "--rcvcc", str(lids["A"]), "1")
    assert int(notified["PortPktRcvBECN"]) > 0
    congested = fabric.values("perfquery", "--xmitcc", str(lids["S2"]), "23")
    assert int(congested["PortXmitTimeCong"]) > 0
    log = fabric.values("ibccquery", "CongestionLog", str(lids["S2"]))
    assert log["LogType"] == "1"
    assert int(log["LogEventsCounter"]) > 0
