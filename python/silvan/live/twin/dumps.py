"""Counters of a simulated fabric, as the common tools would write them, and their diagnosis."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from silvan.inputs.fabric_lists import FabricLists
from silvan.inputs.scenario import Scenario
from silvan.live.moments import Report
from silvan.results.result import Result

TICK_PS = 4000
"""Tick of PortXmitWait of an emulated switch."""

_HEADER_TAIL = 2
"""Bytes of a packet on the wire that counters of data leave out: the VCRC."""


@dataclass(frozen=True)
class Verdict:
    """Roots and victims of a diagnosis."""

    roots: frozenset[str]
    victims: frozenset[str]

    @classmethod
    def of_report(cls, report: Report) -> Verdict:
        """Read a report."""
        trees = report["trees"]
        victims = (one["host"] for tree in trees for one in tree["victims"])
        return cls(frozenset(tree["root"] for tree in trees), frozenset(victims))

    def apart(self, other: Verdict) -> float:
        """Return the parts of roots and of victims that only one of both has, added."""
        pairs = (self.roots, other.roots), (self.victims, other.victims)
        return sum(len(one ^ two) / max(len(one | two), 1) for one, two in pairs)


def measured_s(scenario: Scenario) -> float:
    """Return the simulated time that totals count."""
    return (scenario.duration_ps - scenario.warm_up_ps) / 1e12


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


def routes(scenario: Scenario, lists: FabricLists) -> str:
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


class SimulatedDiagnosis:
    """Diagnosis of the counters of runs on one fabric."""

    def __init__(self, scenario: Scenario) -> None:
        self._lists = FabricLists.of(scenario)
        self._topology = topology(self._lists)
        self._routes = routes(scenario, self._lists)

    def verdict(self, result: Result) -> Verdict:
        """Diagnose the counters of a run."""
        from silvan import _silvan

        report, *_ = _silvan.diagnose_dumps(
            topology=self._topology,
            routes=self._routes,
            before=counters(result, self._lists, is_after=False),
            after=counters(result, self._lists, is_after=True),
            interval_ps=round(measured_s(result.scenario) * 1e12),
            ticks=[f"{TICK_PS // 1000} ns"],
        )
        return Verdict.of_report(json.loads(report))
