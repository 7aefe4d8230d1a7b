"""A simulated fabric as the files that the common tools would write of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import silvan
from silvan.live.diagnosis import diagnose_files
from silvan.live.moments import Moment
from silvan.planning.changes import FabricLists
from silvan.results.result import Result

TICK_PS = 4000
"""Tick of PortXmitWait of an emulated switch."""

_HEADER_TAIL = 2
"""Bytes of a packet on the wire that counters of data leave out: the VCRC."""


def topology(lists: FabricLists) -> str:
    """Write the fabric as ``ibnetdiscover`` does."""
    guids = {name: int(str(node["guid"]), 16) for name, node in lists.nodes.items()}

    def node(name: str) -> str:
        return f'"{"S" if lists.is_switch(name) else "H"}-{guids[name]:016x}"'

    ends: dict[str, list[tuple[int, str, int, str]]] = {name: [] for name in lists.nodes}
    for cable in lists.cables:
        rate = f"{cable.values.get('width', '4x')}{cable.values.get('speed', 'NDR')}"
        for (name, port), (other, far) in (cable.ends, cable.ends[::-1]):
            ends[name].append((port, other, far, rate))
    lines = []
    for name, values in lists.nodes.items():
        if lists.is_switch(name):
            lines.append(
                f'Switch {values["ports"]} {node(name)} # "{name}" base port 0 '
                f"lid {values['lid']} lmc 0"
            )
        else:
            lines.append(f'Ca 1 {node(name)} # "{name}"')
        for port, other, far, rate in sorted(ends[name]):
            lid = lists.nodes[other]["lid"]
            own = "" if lists.is_switch(name) else f"({guids[name] + 1:x})"
            there = "" if lists.is_switch(other) else f"({guids[other] + 1:x})"
            about = (
                f'"{other}" lid {lid} {rate}'
                if lists.is_switch(name)
                else f'lid {values["lid"]} lmc 0 "{other}" lid {lid} {rate}'
            )
            lines.append(f"[{port}]{own} {node(other)}[{far}]{there} # {about}")
        lines.append("")
    return "\n".join(lines)


def routes(scenario: silvan.Scenario, lists: FabricLists) -> str:
    """Write the forwarding tables as ``dump_lfts`` does."""
    hosts = [name for name in lists.nodes if not lists.is_switch(name)]
    lines = []
    for switch, ports in scenario.egress_ports().items():
        values = lists.nodes[switch]
        lines.append(
            f"Unicast lids [0x0-0xffff] of switch Lid {values['lid']} "
            f"guid {values['guid']} ({switch}):"
        )
        lines += ["  Lid  Out   Destination", "       Port     Info"]
        for host, port in zip(hosts, ports, strict=True):
            if port not in (0, 255):
                lid = lists.nodes[host]["lid"]
                guid = int(str(lists.nodes[host]["guid"]), 16) + 1
                lines.append(
                    f"0x{lid:04x} {port:03} : (Channel Adapter portguid 0x{guid:016x}: '{host}')"
                )
        lines.append("")
    return "\n".join(lines)


def counters(result: Result, lists: FabricLists, *, is_after: bool) -> str:
    """Write the counters at the start or the end as ``ibqueryerrors`` does."""
    lines = []
    for row in result.tables["ports"].to_pylist():
        guid = int(str(lists.nodes[row["node"]]["guid"]), 16)

        def words(way: str, row: dict[str, Any] = row) -> int:
            return int((row[f"{way}_bytes"] - _HEADER_TAIL * row[f"{way}_pkts"]) // 4)

        values = {
            "PortXmitWait": row["xmit_wait_ps"] // TICK_PS,
            "PortXmitData": words("xmit"),
            "PortRcvData": words("rcv"),
        }
        # Counters do not begin at 0.
        texts = [f"[{name} == {1000 + is_after * value}]" for name, value in values.items()]
        lines.append(f"   GUID 0x{guid:x} port {row['port']}: {' '.join(texts)}\n")
    return "".join(lines)


def write_subnet(folder: Path, scenario: silvan.Scenario, result: Result) -> dict[str, Path]:
    """Write the files of a run, by what they are."""
    lists = FabricLists.of(scenario)
    texts = {
        "topology": topology(lists),
        "routes": routes(scenario, lists),
        "before": counters(result, lists, is_after=False),
        "after": counters(result, lists, is_after=True),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return {name: folder / name for name in texts}


def measured_s(scenario: silvan.Scenario) -> float:
    """Return the simulated time that totals count."""
    return (scenario.duration_ps - scenario.warm_up_ps) / 1e12


def moment_of(folder: Path, scenario: silvan.Scenario, result: Result) -> Moment:
    """Diagnose the counters of a run."""
    files = write_subnet(folder, scenario, result)
    moment, _ = diagnose_files(
        topology=files["topology"],
        routes=files["routes"],
        before=files["before"],
        after=files["after"],
        interval=f"{round(measured_s(scenario) * 1e9)} ns",
        tick="4 ns",
    )
    return moment
