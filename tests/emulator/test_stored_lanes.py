"""Engines of OpenSM that map service levels to lanes, stored and simulated without it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import silvan
from silvan.live.opensm_routing import route
from tests.emulator.conftest import REAL_TOOLS, Fabric, Serve
from tests.emulator.test_opensm import opensm

pytestmark = REAL_TOOLS

OWN = 'routing = "min-hop"\nallow-credit-loops = true\n'
LOAD = """\
[switch]
buffer = "4 KiB"
[packet]
mtu = "2 KiB"
[[traffic.uniform]]
load = "saturating"
[run]
duration = "500 us"
"""
"""Small buffers, so that cycles close soon."""
TORUS = f"""\
[fabric]
generator = "torus"
sizes = [5, 4]
hosts-per-switch = 2
{OWN}\
[vl]
data-vls = 8
"""
RING = f"""\
[fabric]
generator = "ring"
switches = 5
hosts-per-switch = 2
{OWN}\
[vl]
data-vls = 8
"""
SECTION = r'^(?:Switch|Channel Adapter) 0x\w+, base LID \d+, "(.+)"$'
BACKWARDS = "7,6,5,4,3,2,1,0,7,6,5,4,3,2,1,0"


def from_file(text: str, file: Path, tables: str) -> silvan.Scenario:
    """Take a scenario's routes from a file of tables."""
    file.write_text(tables)
    text = text.replace(OWN, f'routing = "lfts"\nrouting-file = "{file}"\n') + LOAD
    return silvan.Scenario.from_toml(text)


def moves(scenario: silvan.Scenario) -> None:
    """Check that all hosts get what a network without deadlocks gives them."""
    assert scenario.describe()["has_credit_loop"] is False
    result = silvan.run(scenario)
    assert all(host["delivered_bytes"] > 1 << 17 for host in result.hosts.to_pylist())
    # The scenario stands alone, with levels and lanes.
    again = silvan.Scenario.from_toml(scenario.to_toml())
    assert again.hash == scenario.hash
    assert silvan.run(again).hosts == result.hosts


def without_levels(tables: str) -> str:
    return re.sub(r" sl [\d :]+$", "", tables, flags=re.M)


def stored_lanes(tables: str) -> dict[tuple[str, int, int], list[int]]:
    """Virtual lanes by node, input and output port, and service level, as the file has them."""

    def ports(text: str) -> list[int]:
        ends = [(run + "-" + run).split("-")[:2] for run in text.split(",")]
        return [port for first, last in ends for port in range(int(first), int(last) + 1)]

    found = {}
    _, *sections = re.split(SECTION, tables, flags=re.M)
    for node, body in zip(sections[::2], sections[1::2], strict=True):
        for inputs, outputs, vls in re.findall(r"^([\d,-]+) +([\d,-]+) *: ([\d ]+)$", body, re.M):
            for pair in ((a, b) for a in ports(inputs) for b in ports(outputs)):
                found[(node, *pair)] = [int(vl) for vl in vls.split()]
    return found


def live_lanes(fabric: Fabric, lid: int, output: int) -> dict[int, list[int]]:
    """Virtual lanes of a port by input port and service level, as smpquery prints them."""
    printed = fabric.tool("smpquery", "sl2vl", str(lid), str(output))
    rows = re.findall(r"^ports: in +(\d+), out +\d+: \|(.*)\|$", printed, re.M)
    return {int(port): [int(vl) for vl in vls.split("|")] for port, vls in rows}


def test_torus_2qos_is_simulated_as_stored(tmp_path: Path) -> None:
    tables = route(silvan.Scenario.from_toml(TORUS), "torus-2QoS")
    file = tmp_path / "tables.lfts"
    # On an intact torus two lanes are enough, one before each dateline and one behind it.
    two = TORUS.replace("data-vls = 8", "data-vls = 2")
    moves(from_file(two, file, tables))
    with pytest.raises(silvan.ScenarioError, match=r"can deadlock.*\(lane 0\)"):
        from_file(two, file, without_levels(tables))
    with pytest.raises(silvan.ScenarioError, match="need 4 VLs"):
        from_file(two, file, re.split(SECTION, tables, maxsplit=1, flags=re.M)[0])
    on_one = re.sub(r"^([\d,-]+ +[\d,-]+ *:)[\d ]+$", r"\1" + " 0" * 16, tables, flags=re.M)
    with pytest.raises(silvan.ScenarioError, match=r"can deadlock.*\(lane 0\)"):
        from_file(TORUS, file, on_one)
    risked = TORUS.replace("[vl]", "allow-credit-loops = true\n[vl]")
    with pytest.raises(silvan.SilvanError, match="credit loop"):
        silvan.run(from_file(risked, file, on_one))


def test_what_is_stored_of_torus_2qos_is_what_the_live_fabric_has(serve: Serve) -> None:
    tables = route(silvan.Scenario.from_toml(TORUS), "torus-2QoS")
    stored = stored_lanes(tables)
    levels = {
        place: dict(re.findall(r"'(host-\d+)'\) sl (\d+)$", body, re.M))
        for place, body in re.findall(r"\((switch-.*?)\):\n(.*?)valid lids", tables, re.S)
    }
    fabric = serve(TORUS, blank=True)
    found = re.findall(r'^Switch.*"S-(\w+)"\s+# "(.+?)"', fabric.tool("ibnetdiscover"), re.M)
    guids = {name: guid for guid, name in found}
    places = {"xp": "1-0", "xm": "4-0", "yp": "0-1", "ym": "0-3"}
    links = [
        f"{way}_link 0x{guids['switch-0-0']} 0x{guids[f'switch-{place}']}"
        for way, place in places.items()
    ]
    conf = fabric.folder / "torus-2QoS.conf"
    conf.write_text("\n".join(["torus 5 4 1", *links, ""]))
    config = f"qos TRUE\nrouting_engine torus-2QoS\ntorus_config {conf}\n"
    with opensm(fabric, "host-0000", config):
        lids = fabric.lids()
        for place, output in [("0-0", 1), ("0-0", 3), ("4-1", 4), ("2-3", 5), ("4-3", 6)]:
            name = f"switch-{place}"
            live = live_lanes(fabric, lids[name], output)
            assert set(live) == set(range(7))
            for port in range(1, 7):
                assert stored[name, port, output] == live[port], (name, port, output)
        host = live_lanes(fabric, lids["host-0009"], 0)
        assert stored["host-0009", 0, 0] == host[0]
        # The second host of a switch, to both hosts of others.
        for source, place, number in [
            ("host-0039", "4-3", 0),
            ("host-0039", "4-3", 1),
            ("host-0031", "0-3", 8),
            ("host-0021", "0-2", 25),
        ]:
            target = f"host-{number:04}"
            path = fabric.tool("saquery", "-p", "--src-to-dst", f"{lids[source]}:{lids[target]}")
            (level,) = re.findall(r"^\s*sl\.+(\w+)$", path, re.M)
            assert int(levels[f"switch-{place}"].get(target, "0")) == int(level, 0)


@pytest.mark.parametrize("lanes", [None, BACKWARDS])
def test_dfsssp_is_simulated_as_stored(tmp_path: Path, lanes: str | None) -> None:
    """DFSSSP gives every host separate levels, and OpenSM maps them as configured."""
    config = tmp_path / "opensm.conf"
    config.write_text(f"qos_sl2vl {lanes}\n" if lanes else "")
    tables = route(silvan.Scenario.from_toml(RING), "dfsssp", ["--config", str(config)])
    assert re.search(r"\) sl \d+ \d+:\d+$", tables, re.M)
    stored = stored_lanes(tables)
    # Lanes are stored where they are not those of the levels' own numbers.
    wanted = [[int(vl) for vl in lanes.split(",")]] if lanes else []
    assert list({str(vls): vls for vls in stored.values()}.values()) == wanted
    file = tmp_path / "tables.lfts"
    moves(from_file(RING, file, tables))
    with pytest.raises(silvan.ScenarioError, match="can deadlock"):
        from_file(RING, file, without_levels(tables))
