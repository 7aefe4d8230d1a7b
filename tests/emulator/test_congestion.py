"""Congestion control set by the real tools acts in the data plane."""

from __future__ import annotations

from tests.emulator.conftest import Fabric, Serve, values

# mizero2017, Experiment I: three flows to D, of which one shares the trunk with the victim X to Y.
TESTBED = """\
[fabric]
generator = "two-switch-testbed"
routing = "min-hop"

[[traffic.flow]]
name = "A-D"
from = "A"
to = "D"
[[traffic.flow]]
name = "B-D"
from = "B"
to = "D"
[[traffic.flow]]
name = "C-D"
from = "C"
to = "D"
[[traffic.flow]]
name = "X-Y"
from = "X"
to = "Y"

[control]
scheme = "ib-cc"
[control.adapter]
ccti-timer = 75
[control.switch]
marking-rate = 2048
"""


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
    # A port of its own: number, valid, type, threshold, packet size, marking rate.
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


def test_marking_rate_moves_the_flows_as_in_the_paper(serve: Serve) -> None:
    fabric = serve(TESTBED)
    lids = fabric.lids()
    control = fabric.emulation.control

    def rates() -> dict[str, float]:
        """Receive rates over the next 20 ms of simulated time."""

        def delivered() -> tuple[float, dict[str, int]]:
            control("pause")
            flows = {flow["flow"]: flow["delivered_bytes"] for flow in control("flows")}
            simulated = control("status")["simulated_s"]
            control("resume")
            return simulated, flows

        start, before = delivered()
        fabric.pass_time(0.02)
        end, after = delivered()
        return {name: (after[name] - before[name]) * 8e-9 / (end - start) for name in after}

    def set_marking_rate(rate: int) -> None:
        for switch in ("S1", "S2"):
            setting = ("0x10", "0", "0", "0", "0", "0", "0:0", str(rate))
            fabric.tool("ibccconfig", "SS", str(lids[switch]), *setting)

    contributors = ("A-D", "B-D", "C-D")
    # Hardly a packet is marked: A to D fills the trunk and holds up X to Y (both a third of SDR).
    fabric.pass_time(0.01)
    high = rates()
    assert abs(high["X-Y"] - 2.6) < 0.3, high
    assert abs(sum(high[name] for name in contributors) - 7.9) < 0.4, high
    # Every packet is marked: the victim is free, the contributors are throttled below the link.
    set_marking_rate(0)
    fabric.pass_time(0.04)
    low = rates()
    assert low["X-Y"] > 7.2, low
    assert sum(low[name] for name in contributors) < 6.5, low
    # The counters say why: FECN arrives at D, BECN at A, and the port to D is congested.
    received = fabric.values("perfquery", "--rcvcc", str(lids["D"]), "1")
    assert int(received["PortPktRcvFECN"]) > 0
    notified = fabric.values("perfquery", "--rcvcc", str(lids["A"]), "1")
    assert int(notified["PortPktRcvBECN"]) > 0
    congested = fabric.values("perfquery", "--xmitcc", str(lids["S2"]), "23")
    assert int(congested["PortXmitTimeCong"]) > 0
    log = fabric.values("ibccquery", "CongestionLog", str(lids["S2"]))
    assert log["LogType"] == "1"
    assert int(log["LogEventsCounter"]) > 0
