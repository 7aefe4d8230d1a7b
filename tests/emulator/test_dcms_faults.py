"""The manager as a separate process while the emulated subnet is at fault.

Each test asserts that it acts on the root of the congestion and on nothing else, that it ends in
order, and that every Marking_Rate is then the one found at the start.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Event, Thread

from tests.emulator.conftest import REAL_TOOLS, Fabric, Serve
from tests.emulator.test_dcms import (
    SCALE,
    TESTBED,
    Manager,
    configure,
    managed,
    start_flows,
    stop,
    until,
)
from tests.emulator.test_opensm import opensm

pytestmark = REAL_TOOLS

ROOT = ("S2", 23)
SEED = 7
# Control_Map, then what it does not select.
ONLY_THE_RATE = ("0x10", "0", "0", "0", "0", "0", "0:0")
# A standby notices within a second or two that the master is gone.
WATCHFUL = "sminfo_polling_timeout 500\npolling_retry_number 2\n"


def markings(fabric: Fabric) -> dict[str, list[str]]:
    """Read the settings that mark, of both switches and all their ports."""
    found = {}
    for name in ("S1", "S2"):
        lid = str(fabric.lids()[name])
        whole = fabric.tool("ibccquery", "SwitchCongestionSetting", lid)
        ports = fabric.tool("ibccquery", "SP", lid, "0")
        fields = r"^(?:Threshold|Packet_Size|Marking_Rate|Valid|Control_Type).*$"
        found[name] = re.findall(fields, whole + ports, re.M)
        # 24 ports and port 0, four lines each, next to those of the whole switch.
        assert len(found[name]) > 4 * 25
    return found


def acted(manager: Manager) -> set[tuple[str, int]]:
    """Give the ports whose rate was lowered or restored."""
    events = manager.seen("lowered") + manager.seen("restored")
    return {(one["port"]["switch"], one["port"]["port"]) for one in events}


def masters(manager: Manager) -> list[int]:
    """Give the LIDs of the subnet managers that took over from another."""
    return [one["sm-lid"] for one in manager.seen("sm-changed")]


def ends_in_order(manager: Manager) -> None:
    assert stop(manager) == 0
    assert manager.events[-1] == manager.events[-1] | {"event": "stopped", "pending": 0}
    assert "Traceback" not in manager.other
    assert "panicked" not in manager.other


def more(fabric: Fabric, manager: Manager, event: str) -> None:
    """Wait until something has happened once more."""
    count = len(manager.seen(event))
    until(fabric, lambda: len(manager.seen(event)) > count)


@contextmanager
def counters_are_cleared(fabric: Fabric) -> Iterator[None]:
    """Clear the counters of both switches again and again, as fast as tools can."""
    done = Event()
    lids = fabric.lids()
    work = [
        ["perfquery", *options, "-R", str(lids[name]), "255"]
        for name in ("S1", "S2")
        for options in ([], ["-x"], ["--xmitcc"])
    ]

    def repeat() -> None:
        while not done.is_set():
            for words in work:
                fabric.tool(*words)

    thread = Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_a_tenth_of_all_datagrams_is_lost(serve: Serve) -> None:
    fabric = serve(TESTBED, time_scale=SCALE)
    control = fabric.emulation.control
    config = configure(fabric)
    before = markings(fabric)
    with opensm(fabric, "Y"):
        start_flows(fabric)
        control("lose", percent=10, seed=SEED)
        with managed(fabric, config, "--act") as manager:
            for _ in range(2):
                more(fabric, manager, "lowered")
                more(fabric, manager, "restored")
            assert acted(manager) == {ROOT}
            # The last restore must succeed, too.
            ends_in_order(manager)
        status = control("status")
        assert status["datagrams"]["lost"] > 20
        control("lose", percent=0)
        assert markings(fabric) == before


def test_a_switch_reboots_while_a_rate_is_low(serve: Serve) -> None:
    fabric = serve(TESTBED, time_scale=SCALE)
    config = configure(fabric, '[subnet]\nsm-lost-after = "300 s"\n')
    # Longer than a busy machine is stopped before the reboot, and over before the test gives up.
    config.write_text(config.read_text().replace('low-duration = "3 s"', 'low-duration = "30 s"'))
    with opensm(fabric, "Y") as log:
        start_flows(fabric)
        # A setting of somebody else that a reboot loses: the manager must not restore it.
        for switch in ("S1", "S2"):
            lid = str(fabric.lids()[switch])
            fabric.tool("ibccconfig", "SwitchCongestionSetting", lid, *ONLY_THE_RATE, "100")
        before = markings(fabric)
        with managed(fabric, config, "--act") as manager:
            until(fabric, lambda: manager.seen("lowered"))
            sweeps = log.read_text().count("SUBNET UP")
            fabric.emulation.control("reboot", switch="S2", seconds=1.0)
            # The rate that was low is gone with everything else.
            until(fabric, lambda: manager.seen("left-alone"))
            # Then OpenSM sets the switch up, traffic flows, and its root is found again.
            until(fabric, lambda: log.read_text().count("SUBNET UP") > sweeps)
            until(fabric, lambda: len(manager.seen("lowered")) > 1)
            assert acted(manager) == {ROOT}
            ends_in_order(manager)
        after = markings(fabric)
    assert after["S1"] == before["S1"]
    shipped = serve(TESTBED, time_scale=SCALE)
    assert after["S2"] == markings(shipped)["S2"] != before["S2"]


def test_the_sm_hands_over_while_a_rate_is_low(serve: Serve) -> None:
    fabric = serve(TESTBED, time_scale=SCALE)
    config = configure(fabric, '[subnet]\nsm-check = "500 ms"\nsm-lost-after = "300 s"\n')
    before = markings(fabric)
    with ExitStack() as stack:
        with opensm(fabric, "Y", "sm_priority 10\n"):
            second = opensm(fabric, "A", "sm_priority 5\n" + WATCHFUL, "STANDBY")
            log = stack.enter_context(second)
            start_flows(fabric)
            manager = stack.enter_context(managed(fabric, config, "--act"))
            more(fabric, manager, "lowered")
        # The first has gone, and the second takes over.
        until(fabric, lambda: "SUBNET UP" in log.read_text())
        lids = fabric.lids()
        until(fabric, lambda: masters(manager)[-1:] == [lids["A"]])
        more(fabric, manager, "lowered")
        # The first comes back, and the second hands over to it.
        with opensm(fabric, "Y", "sm_priority 10\n"):
            until(fabric, lambda: masters(manager)[-1:] == [lids["Y"]])
            more(fabric, manager, "lowered")
            assert acted(manager) == {ROOT}
            assert not manager.seen("sm-lost")
            ends_in_order(manager)
            assert markings(fabric) == before


def test_counters_are_cleared_in_the_middle_of_sweeps(serve: Serve) -> None:
    fabric = serve(TESTBED, time_scale=SCALE)
    config = configure(fabric, "[subnet]\nrequire-sm = false\n")
    before = markings(fabric)
    start_flows(fabric)
    with managed(fabric, config, "--act", "--verbose") as manager:
        more(fabric, manager, "lowered")
        with counters_are_cleared(fabric):
            so_far = len(manager.seen("swept"))
            until(fabric, lambda: len(manager.seen("swept")) > so_far + 20)
        more(fabric, manager, "lowered")
        assert acted(manager) == {ROOT}
        ends_in_order(manager)
    # Large counters of a subnet that is quiet now.
    for flow in fabric.emulation.control("flows"):
        fabric.emulation.control("stop", flow=flow["flow"])
    fabric.pass_time(0.01)
    with managed(fabric, config, "--act", "--verbose") as manager, counters_are_cleared(fabric):
        until(fabric, lambda: len(manager.seen("swept")) > 10)
        assert not manager.seen("decision")
        ends_in_order(manager)
    assert markings(fabric) == before


def test_links_flap_all_the_time(serve: Serve) -> None:
    fabric = serve(TESTBED, time_scale=SCALE)
    control = fabric.emulation.control
    before = markings(fabric)
    with opensm(fabric, "Y"):
        start_flows(fabric)
        with managed(fabric, configure(fabric), "--act") as manager:
            more(fabric, manager, "lowered")
            for turn in range(24):
                port = ("D", "S1:15", "B")[turn % 3]
                control("cut", port=port)
                fabric.wait(lambda: control("status")["links_down"])
                control("restore", port=port)
                fabric.pass_time(0.3 * SCALE)
            more(fabric, manager, "lowered")
            assert acted(manager) == {ROOT}
            ends_in_order(manager)
        fabric.wait(lambda: not control("status")["links_down"])
        assert markings(fabric) == before
