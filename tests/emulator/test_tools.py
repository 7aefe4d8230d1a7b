"""Discovery and performance tools see the fabric and its data plane."""

from __future__ import annotations

import re

import pytest

from tests.emulator.conftest import REAL_TOOLS, Fabric, Serve, serve_udp

pytestmark = REAL_TOOLS

# Payload, and words of four bytes on the wire, without the last two bytes, of a full packet.
PAYLOAD = 2048
WORDS = (PAYLOAD + 26 - 2) // 4
PACKETS = 512

MODES = {
    "--xmtsl": "PortXmitDataSL",
    "--rcvsl": "PortRcvDataSL",
    "--xmtdisc": "PortInactiveDiscards",
    "--rcverr": "PortLocalPhysicalErrors",
    "--extended_speeds": "SyncHeaderErrorCounter",
    "--oprcvcounters": "PortOpRcvPkts",
    "--flowctlcounters": "PortXmitFlowPkts",
    "--vloppackets": "PortVLOpPackets0",
    "--vlopdata": "PortVLOpData0",
    "--vlxmitflowctlerrors": "PortVLXmitFlowCtlUpdateErrors0",
    "--vlxmitcounters": "PortVLXmitWait0",
    "--swportvlcong": "SWPortVLCongestion0",
    "--rcvcc": "PortPktRcvFECN",
    "--slrcvfecn": "PortSLRcvFECN0",
    "--slrcvbecn": "PortSLRcvBECN0",
    "--xmitcc": "PortXmitTimeCong",
    "--vlxmittimecc": "PortVLXmitTimeCong0",
    "--smplctl": "Tick",
}


def send(fabric: Fabric, sl: int = 0) -> None:
    """Let host a send a known number of full packets to host c, and wait for the last."""
    delivered = fabric.emulation.control("status")["delivered_bytes"]
    size = f"{PACKETS * PAYLOAD} B"
    fabric.emulation.control("start", **{"from": "a"}, to="c", bytes=size, sl=sl)
    end = delivered + PACKETS * PAYLOAD
    fabric.wait(lambda: fabric.emulation.control("status")["delivered_bytes"] >= end)


def test_discovery_finds_every_node_and_cable(line: Fabric) -> None:
    text = line.tool("ibnetdiscover")
    assert re.findall(r'^Switch\s+\d+ "\S+"\s+# "(\w+)"', text, re.M) in (
        ["left", "right"],
        ["right", "left"],
    )
    switches = dict(re.findall(r'^Switch\s+\d+ "(\S+)"\s+# "(\w+)"', text, re.M))
    cables = set()
    for block in re.split(r"\n\n", text):
        found = re.search(r'^Switch\s+\d+ "(\S+)"', block, re.M)
        if not found:
            continue
        here = switches[found[1]]
        for port, peer, peer_port, name in re.findall(
            r'^\[(\d+)\]\s+"(\S+)"\[(\d+)\].*# "([^"]+)"', block, re.M
        ):
            cables.add((f"{here}:{port}", f"{switches.get(peer, name)}:{peer_port}"))
    ends = [("left:1", "a:1"), ("left:2", "b:1"), ("right:1", "c:1"), ("right:2", "d:1")]
    trunks = [("left:5", "right:6"), ("left:7", "right:8")]
    assert cables == {*ends, *trunks, *((b, a) for a, b in trunks)}


def test_port_counters_count_packets_and_words(line: Fabric) -> None:
    lids = line.lids()
    send(line)
    sent = line.values("perfquery", str(lids["a"]), "1")
    assert (sent["PortXmitPkts"], sent["PortXmitData"]) == (str(PACKETS), str(PACKETS * WORDS))
    assert sent["PortRcvPkts"] == "0"
    wide = line.values("perfquery", "-x", str(lids["c"]), "1")
    assert (wide["PortRcvPkts"], wide["PortRcvData"]) == (str(PACKETS), str(PACKETS * WORDS))
    assert wide["PortUnicastRcvPkts"] == str(PACKETS)
    # All ports of a switch together: once in, once out.
    both = line.values("perfquery", "-a", str(lids["left"]))
    assert (both["PortXmitPkts"], both["PortRcvPkts"]) == (str(PACKETS), str(PACKETS))
    # Reading and resetting: the one attribute starts again, the other does not.
    line.tool("perfquery", "-r", str(lids["a"]), "1")
    assert line.values("perfquery", str(lids["a"]), "1")["PortXmitPkts"] == "0"
    assert line.values("perfquery", "-x", str(lids["a"]), "1")["PortXmitPkts"] == str(PACKETS)
    line.tool("perfquery", "-x", "-R", str(lids["a"]), "1")
    assert line.values("perfquery", "-x", str(lids["a"]), "1")["PortXmitPkts"] == "0"
    # Only what the mask selects: bit 12 is PortXmitData.
    send(line)
    line.tool("perfquery", "-R", str(lids["a"]), "1", "0x1000")
    left = line.values("perfquery", str(lids["a"]), "1")
    assert (left["PortXmitData"], left["PortXmitPkts"]) == ("0", str(PACKETS))


def test_service_levels_are_counted_apart(line: Fabric) -> None:
    lids = line.lids()
    send(line, sl=3)
    sent = line.tool("perfquery", "-X", str(lids["a"]), "1")
    received = line.tool("perfquery", "-S", str(lids["c"]), "1")
    for text, name in ((sent, "PortXmitDataSL"), (received, "PortRcvDataSL")):
        counts = [int(count) for count in re.findall(r"DataSL\d+:\.*(\d+)", text)]
        assert len(counts) == 16, (name, text)
        assert counts[3] == PACKETS * WORDS
        assert sum(counts) == counts[3]


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_of_perfquery_is_answered(line: Fabric, mode: str) -> None:
    lids = line.lids()
    for name in ("a", "left"):
        text = line.tool("perfquery", mode, str(lids[name]), "1")
        assert MODES[mode].rstrip("0") in text
        if mode != "--smplctl":
            # Reading and resetting, and resetting alone.
            line.tool("perfquery", "-r", mode, str(lids[name]), "1")
            line.tool("perfquery", "-R", mode, str(lids[name]), "1")


def test_links_can_be_switched_off_and_on(line: Fabric) -> None:
    lids = line.lids()
    left = str(lids["left"])
    line.tool("ibportstate", left, "5", "disable")
    assert "Disabled" in line.tool("ibportstate", left, "5", "query")
    assert line.emulation.control("status")["links_down"] == ["left:5"]
    line.tool("ibportstate", left, "5", "enable")
    assert line.emulation.control("status")["links_down"] == []
    counters = line.values("perfquery", left, "5")
    assert counters["LinkDownedCounter"] == "1"


def test_udp(serve: Serve) -> None:
    fabric = serve_udp(serve)
    assert "left" in fabric.tool("ibnetdiscover")


def test_tools_are_attached_where_they_ask(line: Fabric) -> None:
    for host in ("d", "right"):
        text = line.tool("smpquery", "-D", "nodedesc", "0", host=host)
        assert text.split(".")[-1].strip() == host
    line.tool("smpquery", "-D", "nodedesc", "0", host="unknown-host", status=255)
