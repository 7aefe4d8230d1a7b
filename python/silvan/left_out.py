"""Why schemes with published settings take no part: what links or a fabric lack for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from silvan.errors import SilvanError

if TYPE_CHECKING:
    from silvan.scenario import Scenario

# Lanes that most ports have.
_LANES = 8
LANE_PACKETS = 3
"""Packets that a lane must have room for to be full on a short cable."""

DCMS_SWEEPS = 50
"""Sweeps of the DCMS within a run."""

# A counter of waiting has ticks of 22 ns, and a threshold of one tick must be below its growth.
_LEAST_INTERVAL_NS = 44

_READS_CREDITS = "it reads the credits of its host, and links with PFC have none"
_DIVIDES_MEMORY = "its lanes share the memory of one, which has no headroom of PFC for each of them"
_FINDS_ROOTS = "its switches tell roots from victims by credits, and links with PFC have none"

# Why schemes take no part on links with PFC.
_OF_CREDITS: Mapping[str, str] = {
    **dict.fromkeys(("pft", "ib-cc-pft"), _READS_CREDITS),
    **dict.fromkeys(
        ("vftree", "flow2sl", "dbbm", "obqa", "dftree", "srp", "srp+smsrp", "srp+lhrp"),
        _DIVIDES_MEMORY,
    ),
    **dict.fromkeys(("congestion-isolation", "recn", "fbicm"), _FINDS_ROOTS),
}


def left_out_by_links(scenario: Scenario) -> Mapping[str, str]:
    """Say for each scheme that the links of a scenario leave out what they lack."""
    return _OF_CREDITS if scenario.to_dict()["link"].get("flow-control") == "pfc" else {}


def left_out_by_fabric(scenario: Scenario, *, has_lanes: bool) -> dict[str, str]:
    """Say what is missing for each scheme that does not suit every fabric.

    That of a scheme which suits the fabric is what is missing in others. ``has_lanes`` is what
    :func:`suits_lanes` returns.
    """
    switches = scenario.describe()["switches"]
    chooses = scenario.fabric.path_choice != "table"
    if chooses:
        paths = "the fabric has a choice of paths of its own"
    elif switches == 1:
        paths = "the fabric has a single switch, and no paths to choose among"
    else:
        paths = "the fabric has no choice among shortest paths"
    if scenario.vl.data_vls > 1:
        lanes = "the scenario has more than one data VL already"
    elif count_lanes(scenario) < 2:
        lanes = f"the buffer has no room for two lanes of {LANE_PACKETS} packets"
    else:
        lanes = "the routes of the fabric need the lanes"
    tree = waits = known_path = lanes
    if has_lanes:
        tree = "it is for fat trees, with d-mod-k routing"
        waits = known_path = "packets wait in other queues than virtual output queues"
        if chooses:
            known_path = "the next output must be known, and switches choose it"
    return {
        "ib-cc+dcms": f"the run is too short for {DCMS_SWEEPS} sweeps two ticks of a counter apart",
        **dict.fromkeys(("ib-cc+vendor+adaptive", "reps", "nscc+reps"), paths),
        **dict.fromkeys(
            ("srp", "srp+smsrp", "srp+lhrp", "flow2sl", "dbbm", "dftree"),
            lanes,
        ),
        "vftree": tree,
        "congestion-isolation": waits,
        **dict.fromkeys(("obqa", "recn", "fbicm"), known_path),
    }


def suits_sweeps(scenario: Scenario) -> bool:
    """Whether a counter can exceed a threshold from one sweep of the DCMS to the next."""
    return round(scenario.duration_ps / 1e3 / DCMS_SWEEPS) >= _LEAST_INTERVAL_NS


def count_lanes(scenario: Scenario) -> int:
    """Count the lanes that the memory of one has room for."""
    packet: int = scenario.packet.mtu.bytes + scenario.packet.header.bytes
    buffer: int = scenario.switch.buffer.bytes
    return min(_LANES, buffer // (LANE_PACKETS * packet))


def suits_lanes(scenario: Scenario) -> bool:
    """Whether its only lane has room for two, and its routes need none of them."""
    if scenario.vl.data_vls > 1 or count_lanes(scenario) < 2:
        return False
    if scenario.fabric.routing == "d-mod-k":
        return True
    try:
        scenario.override({"control.scheme": "vl-mapping", "vl.data-vls": 2}).describe()
    except SilvanError:
        return False
    return True
