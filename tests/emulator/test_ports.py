"""Ports as ibportstate changes them: links come back, at the width and speed that are enabled."""

from __future__ import annotations

import json

import pytest

from silvan.live.live_programs import opensm
from tests.conftest import Command
from tests.emulator.conftest import LINE, LINKS, REAL_TOOLS, Fabric, Serve

# As much as the link to b carries, of which payload is 2048 of 2074 bytes. Hosts could do more.
SATURATED = f"""
{LINE}
{LINKS}
[host]
injection-rate = "100 Gbit/s"
sink-rate = "100 Gbit/s"
[[traffic.flow]]
from = "a"
to = "b"
"""
PAYLOAD = 2048 / 2074


def state(fabric: Fabric, lid: int, port: int) -> str:
    """Give the logical state of a port, as smpquery prints it."""
    return fabric.values("smpquery", "portinfo", str(lid), str(port), host="b")["LinkState"]


def not_active(fabric: Fabric) -> list[str]:
    """Give the ports that are not in use."""
    status = fabric.emulation.control("status")
    return [*status["links_down"], *status["ports_not_active"]]


@REAL_TOOLS
@pytest.mark.parametrize("operations", [("reset",), ("down",), ("disable", "enable")])
@pytest.mark.parametrize("port", [1, 5], ids=["host", "switch"])
def test_links_come_back_by_themselves_without_a_subnet_manager(
    line: Fabric, port: int, operations: tuple[str, ...]
) -> None:
    left = line.lids()["left"]
    for operation in operations:
        line.tool("ibportstate", str(left), str(port), operation, host="b")
    assert state(line, left, port) == "Active"
    assert not_active(line) == []


@REAL_TOOLS
@pytest.mark.parametrize("operations", [("reset",), ("down",), ("disable", "enable")])
def test_opensm_brings_the_link_of_a_host_back(serve: Serve, operations: tuple[str, ...]) -> None:
    """Only the switch can report it: the host's own traps would not arrive."""
    fabric = serve()
    with opensm(fabric.emulation, fabric.folder, host="d"):
        left = fabric.lids()["left"]
        fabric.wait(lambda: not_active(fabric) == [])
        for operation in operations:
            fabric.tool("ibportstate", str(left), "1", operation, host="c")
        fabric.wait(lambda: not_active(fabric) == [])
        assert state(fabric, left, 1) == "Active"


@REAL_TOOLS
def test_a_change_of_its_own_port_is_reported_by_a_switch(serve: Serve) -> None:
    fabric = serve()
    left = str(fabric.lids()["left"])
    # A host is behind port 1, so that no other switch sees the change.
    before = fabric.values("smpquery", "switchinfo", left)
    assert before["StateChange"] == "0"
    fabric.tool("ibportstate", left, "1", "reset")
    assert fabric.values("smpquery", "switchinfo", left)["StateChange"] == "1"


def rate(fabric: Fabric) -> float:
    """Give the rate of the flow between the last two samples, in Gbit/s."""
    flows = fabric.emulation.control("flows")
    return float(flows[0]["receive_gbps"])


@REAL_TOOLS
@pytest.mark.parametrize(
    ("setting", "shown", "gbps"),
    [
        (("width", "1"), {"LinkWidthActive": "1X", "LinkSpeedActive": "5.0 Gbps"}, 4),
        (("speed", "1"), {"LinkWidthActive": "4X", "LinkSpeedActive": "2.5 Gbps"}, 8),
    ],
)
def test_enabled_width_and_speed_take_effect(
    serve: Serve, setting: tuple[str, str], shown: dict[str, str], gbps: float
) -> None:
    """Oracle: the data rates of the specification, less headers."""
    fabric = serve(SATURATED)
    fabric.wait(lambda: rate(fabric) == pytest.approx(16 * PAYLOAD, rel=0.01))
    left = str(fabric.lids()["left"])
    fabric.tool("ibportstate", left, "2", *setting)
    fabric.tool("ibportstate", left, "2", "reset")
    for words in (("portinfo", left, "2"), ("portinfo", str(fabric.lids()["b"]), "1")):
        info = fabric.values("smpquery", *words)
        assert {key: info[key] for key in shown} == shown
    fabric.wait(lambda: rate(fabric) == pytest.approx(gbps * PAYLOAD, rel=0.01))
    # Everything that is supported again.
    everything = {"width": "255", "speed": "15"}[setting[0]]
    fabric.tool("ibportstate", left, "2", setting[0], everything)
    fabric.tool("ibportstate", left, "2", "reset")
    fabric.wait(lambda: rate(fabric) == pytest.approx(16 * PAYLOAD, rel=0.01))


@REAL_TOOLS
def test_a_width_that_the_port_does_not_have_is_refused(line: Fabric) -> None:
    left = str(line.lids()["left"])
    before = line.values("smpquery", "portinfo", left, "2")["LinkWidthEnabled"]
    line.tool("ibportstate", left, "2", "width", "8", status=255)
    assert line.values("smpquery", "portinfo", left, "2")["LinkWidthEnabled"] == before


@REAL_TOOLS
def test_status_names_ports_that_are_not_active(serve: Serve, command: Command) -> None:
    fabric = serve(blank=True)
    at = ("--sockname", fabric.emulation.sockname)
    status = json.loads(command("ctl", "status", "--json", *at).stdout)
    assert len(status["ports_not_active"]) == 12
    assert "left:5 (Init)" in status["ports_not_active"]
    text = command("ctl", "status", *at).stdout
    assert "a:1 (Init)" in text
    # Nothing flows: 0, not -0.
    assert "receive: 0 Gbit/s" in text
