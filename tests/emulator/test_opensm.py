"""OpenSM owns the emulated fabric: tables, traps, rerouting, congestion control."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import silvan
from silvan.live.opensm_routing import route
from tests.emulator.conftest import LINE, LINKS, REAL_TOOLS, Fabric, Serve, values
from tests.gate import PATIENCE_S

pytestmark = REAL_TOOLS

TREE = """\
[fabric]
generator = "k-ary-n-tree"
k = 2
n = 2
"""
RING = """\
[fabric]
generator = "ring"
switches = 4
hosts-per-switch = 1
routing = "min-hop"
allow-credit-loops = true
[vl]
data-vls = 4
"""
TORUS = """\
[fabric]
generator = "torus"
sizes = [5, 3]
hosts-per-switch = 1
routing = "dimension-order"
[vl]
data-vls = 8
[[traffic.uniform]]
load = "saturating"
"""
FLOW = """
[[traffic.flow]]
from = "a"
to = "c"
load = "1 Gbit/s"
"""


def bring_up(fabric: Fabric, *options: str | Path) -> str:
    """Run OpenSM once, and give its log."""
    log = fabric.folder / "opensm.log"
    fabric.tool("opensm", "--once", "--log_file", log, *options)
    text = log.read_text()
    assert "SUBNET UP" in text
    assert " ERR " not in text, text
    return text


@contextmanager
def opensm(fabric: Fabric, host: str, config: str = "", sign: str = "SUBNET UP") -> Iterator[Path]:
    """Let OpenSM run at a host until the block ends; it starts when the log has the sign."""
    log = fabric.folder / f"opensm-{host}.log"
    log.unlink(missing_ok=True)
    options = fabric.folder / f"opensm-{host}.conf"
    options.write_text("force_log_flush TRUE\n" + config)
    process = fabric.popen("opensm", "--config", options, "--log_file", log, host=host)
    try:
        fabric.wait(lambda: log.exists() and sign in log.read_text())
        yield log
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


@pytest.mark.parametrize(
    ("engine", "text"),
    [
        ("minhop", TREE),
        ("updn", TREE),
        ("dnup", TREE),
        ("ftree", TREE),
        ("lash", RING),
        ("dor", LINE + LINKS),
    ],
)
def test_opensm_brings_up_a_blank_fabric(serve: Serve, engine: str, text: str) -> None:
    fabric = serve(text, blank=True)
    assert f"{engine} tables configured on all switches" in bring_up(
        fabric, "--routing_engine", engine
    )
    # Every host is reached by the tables now: by its LID, through active ports.
    lids = fabric.lids()
    assert len(set(lids.values())) == len(lids)
    assert 0 not in lids.values()
    for lid in lids.values():
        fabric.tool("perfquery", "-a", str(lid))


def test_torus_2qos_keeps_a_loaded_torus_moving(serve: Serve) -> None:
    """Oracle: torus-2QoS promises routes and lanes that cannot deadlock; the packets prove it."""
    fabric = serve(TORUS, blank=True)
    text = fabric.tool("ibnetdiscover")
    guids = {
        name: f"0x{guid}"
        for guid, name in re.findall(r'^Switch.*"S-(\w+)"\s+# "(.+?)"', text, re.M)
    }
    # Bit 0 of a path's service level is about the first dimension in both, if x is that dimension.
    torus = fabric.folder / "torus-2QoS.conf"
    origin, right, up = (guids[f"switch-{place}"] for place in ("0-0", "1-0", "0-1"))
    torus.write_text(f"torus 5 3 1\nxp_link {origin} {right}\nyp_link {origin} {up}\n")
    options = ("--qos", "--routing_engine", "torus-2QoS", "--torus_config", torus)
    log = bring_up(fabric, *options)
    assert "torus-2QoS tables configured on all switches" in log
    # On the second lane where a path crosses the dateline of the dimension that it moves along.
    lid = str(fabric.lids()["switch-0-0"])
    tables = fabric.tool("smpquery", "sl2vl", lid, "2")
    (line,) = re.findall(r"in  1, out  2: \|(.*)\|", tables)
    lanes = [int(lane) for lane in line.split("|")]
    assert set(lanes[:8]) == {0, 1}
    assert set(lanes[8:]) == {4, 5}
    start = fabric.emulation.control("status")["delivered_bytes"]
    fabric.pass_time(0.02)
    status = fabric.emulation.control("status")
    assert status["delivered_bytes"] > start
    assert (status["deadlocks_broken"], status["discarded_bytes"]) == (0, 0)


def test_traffic_waits_for_a_subnet_manager(serve: Serve) -> None:
    fabric = serve(LINE + LINKS + FLOW, blank=True)
    fabric.pass_time(0.002)
    assert fabric.emulation.control("status")["delivered_bytes"] == 0
    bring_up(fabric)
    fabric.wait(lambda: fabric.emulation.control("status")["delivered_bytes"] > 0)


def test_queries_to_the_subnet_manager_are_answered(line: Fabric) -> None:
    with opensm(line, "d"):
        lids = line.lids()
        assert f"sm lid {lids['d']} " in line.tool("sminfo")
        path = line.tool("saquery", "-p", "--src-to-dst", f"{lids['a']}:{lids['c']}")
        assert re.search(rf"dlid\.+{lids['c']}$", path, re.M)
        nodeinfo = line.values("smpquery", "nodeinfo", str(lids["c"]))
        counters = line.values("perfquery", "-G", nodeinfo["PortGuid"])
        assert "PortXmitPkts" in counters
    # Without one, the wait ends.
    line.tool("sminfo", str(lids["d"]), status=255)


def test_a_cut_cable_is_trapped_and_traffic_follows_the_new_route(serve: Serve) -> None:
    fabric = serve(LINE + LINKS + FLOW)
    trunks = ("left:5", "left:7")
    with opensm(fabric, "d") as log:
        lids = fabric.lids()

        def sent(trunk: str) -> int:
            port = trunk.split(":")[1]
            counters = fabric.values("perfquery", "-x", str(lids["left"]), port)
            return int(counters["PortXmitPkts"])

        before = [sent(trunk) for trunk in trunks]
        fabric.pass_time(0.002)
        moved = [sent(trunk) > count for trunk, count in zip(trunks, before, strict=True)]
        assert sum(moved) == 1
        used, other = trunks if moved[0] else trunks[::-1]
        start = sent(other)
        fabric.emulation.control("cut", port=used)
        fabric.wait(lambda: sent(other) > start)
        text = log.read_text()
        assert "Trap" in text or "trap" in text
        counters = fabric.values("perfquery", str(lids["left"]), used.split(":")[1])
        assert counters["LinkDownedCounter"] == "1"
        fabric.emulation.control("restore", port=used)
        fabric.wait(lambda: log.read_text().count("SUBNET UP") >= 2)


def test_opensm_configures_congestion_control_without_an_error(serve: Serve) -> None:
    fabric = serve(TREE)
    config = """\
congestion_control TRUE
cc_sw_cong_setting_control_map 0x1f
cc_sw_cong_setting_victim_mask 0x6
cc_sw_cong_setting_threshold 0x0c
cc_sw_cong_setting_packet_size 8
cc_sw_cong_setting_marking_rate 0x0020
cc_ca_cong_setting_control_map 0x0001
cc_ca_cong_setting_ccti_timer 0 100
cc_ca_cong_setting_ccti_increase 0 2
cc_cct 0:0,0:1,0:2,0:3
"""
    with opensm(fabric, "host-0000", config) as log:
        assert " ERR " not in log.read_text()
        lids = fabric.lids()
        for name, lid in lids.items():
            if name.startswith("host"):
                text = fabric.tool("ibccquery", "CACongestionSetting", str(lid))
                first = values(text.split("SL:")[1])
                assert (first["CCTI_Timer"], first["CCTI_Increase"]) == ("100", "2")
            else:
                switch = fabric.values("ibccquery", "SwitchCongestionSetting", str(lid))
                assert int(switch["Threshold"], 16) == 12
                assert switch["Packet_Size"] == "8"
                assert switch["Marking_Rate"] == "32"
                assert int(switch["Victim_Mask"], 16) == 6


def test_route_stores_tables_that_connect_everything(tmp_path: Path) -> None:
    tables = route(silvan.Scenario.from_toml(TREE), "ftree")
    assert tables.count("Unicast lids") == 4
    # Four hosts, seen from each of the four switches.
    assert tables.count("Channel Adapter portguid") == 4 * 4
    # They can be simulated without OpenSM: a packet of each host to each other arrives.
    file = tmp_path / "tables.lfts"
    file.write_text(tables)
    stored = f'routing = "lfts"\nrouting-file = "{file}"\n'
    flows = [f'host-{a:04}"\nto = "host-{b:04}' for a in range(4) for b in range(4) if a != b]
    traffic = [f'[[traffic.flow]]\nfrom = "{flow}"\nbytes = "2 KiB"\n' for flow in flows]
    result = silvan.run(silvan.Scenario.from_toml(TREE + stored + "".join(traffic)))
    delivered = result.classes.to_pylist()
    assert [one["delivered_bytes"] for one in delivered] == [2048] * len(flows)
    with pytest.raises(silvan.EmulationError, match="not routed this fabric by fat"):
        route(silvan.Scenario.from_toml(TREE), "fat")
