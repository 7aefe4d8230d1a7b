"""Dumps of a small subnet: two hosts send to a third."""

from __future__ import annotations

from pathlib import Path

from silvan.live.diagnosis import diagnose_files
from silvan.live.moments import Moment

TOPOLOGY = """\
Switch 4 "S-0000000000000001" # "left" base port 0 lid 1 lmc 0
[1] "H-0000000000000010"[1](11) # "a HCA-1" lid 11 4xSDR
[2] "H-0000000000000020"[1](21) # "b HCA-1" lid 12 4xSDR
[3] "H-0000000000000030"[1](31) # "c HCA-1" lid 13 4xSDR

Ca 1 "H-0000000000000010" # "a HCA-1"
[1](11) "S-0000000000000001"[1] # lid 11 lmc 0 "left" lid 1 4xSDR

Ca 1 "H-0000000000000020" # "b HCA-1"
[1](21) "S-0000000000000001"[2] # lid 12 lmc 0 "left" lid 1 4xSDR

Ca 1 "H-0000000000000030" # "c HCA-1"
[1](31) "S-0000000000000001"[3] # lid 13 lmc 0 "left" lid 1 4xSDR
"""
"""Three hosts at a switch, on links of 8 Gbit/s: 250,000,000 words a second."""

ROUTES = """\
Unicast lids [0x0-0x0d] of switch Lid 1 guid 0x0000000000000001 (left):
  Lid  Out   Destination
       Port     Info
0x0001 000 : (Switch portguid 0x0000000000000001: 'left')
0x000b 001 : (Channel Adapter portguid 0x0000000000000011: 'a HCA-1')
0x000c 002 : (Channel Adapter portguid 0x0000000000000021: 'b HCA-1')
0x000d 003 : (Channel Adapter portguid 0x0000000000000031: 'c HCA-1')
4 valid lids dumped
"""

PORTS = (
    (1, 1, 0, 150, 0.0),
    (1, 2, 0, 100, 0.0),
    (1, 3, 250, 0, 0.0),
    (0x10, 1, 150, 0, 0.4),
    (0x20, 1, 100, 0, 0.6),
    (0x30, 1, 0, 250, 0.0),
)
"""GUID, port, million words sent and received per second, part of the time waiting.

A and b send to c.
"""


def counters(seconds: int) -> str:
    """Write counters as ibqueryerrors does."""
    return "".join(
        f"   GUID 0x{guid:x} port {port}: [PortXmitWait == {int(wait * seconds * 250e6)}] "
        f"[PortXmitData == {sent * seconds}000000 (1.0GB)] "
        f"[PortRcvData == {received * seconds}000000 (1.0GB)]\n"
        for guid, port, sent, received, wait in PORTS
    )


def write_dumps(
    folder: Path, topology: str = TOPOLOGY, after: str | None = None
) -> dict[str, Path]:
    """Write the files of two seconds, by what they are."""
    texts = {
        "topology": topology,
        "routes": ROUTES,
        "before": counters(1),
        "after": after or counters(3),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return {name: folder / name for name in texts}


def dumped_moment(
    folder: Path, at_s: float = 0, topology: str = TOPOLOGY, after: str | None = None
) -> Moment:
    """Diagnose the files as if the second counters were read at a time."""
    files = write_dumps(folder, topology, after)
    moment, _ = diagnose_files(
        topology=files["topology"],
        routes=files["routes"],
        before=files["before"],
        after=files["after"],
        interval="2 s",
        tick="4 ns",
    )
    return Moment(moment.subnet, moment.report, moment.values, round(at_s * 1e9))
