"""The way of a packet: each port that it leaves, how long it waited there, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from silvan.errors import SilvanError, shown
from silvan.inputs.quantities import whole_number
from silvan.results.result import Result

Hop = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Traced:
    """Packets to trace: one of a flow, counted from 1, or all."""

    source: str
    destination: str
    number: int | None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``SOURCE,DESTINATION`` or ``SOURCE,DESTINATION,NUMBER``.

        >>> Traced.parse("host-0001,host-0000,7")
        Traced(source='host-0001', destination='host-0000', number=7)
        """
        words = [word.strip() for word in text.split(",")]
        number = whole_number(words[2]) if len(words) == 3 else None
        if not all(words) or len(words) != (3 if number else 2):
            raise SilvanError(
                f"--trace: {shown(repr(text))} names neither a flow nor a packet",
                hint="write SOURCE,DESTINATION for a flow, or SOURCE,DESTINATION,NUMBER for its "
                "packet of this number, counted from 1",
            )
        return cls(words[0], words[1], number)


def packets_of_flow(result: Result, traced: Traced) -> list[list[Hop]]:
    """Return the hops of each data packet of a flow, in the order of injection."""
    names = result.hosts["name"].to_pylist()
    ends = names.index(traced.source), names.index(traced.destination)
    packets: dict[int, list[Hop]] = {}
    for hop in result.tables["packet_hops"].to_pylist():
        if (hop["source"], hop["destination"]) == ends and hop["kind"] == "data":
            packets.setdefault(hop["born_ps"], []).append(hop)
    return [packets[born] for born in sorted(packets)]


def waits(hop: Hop) -> dict[str, int]:
    """Say what a packet has waited for at a port, in picoseconds by reason.

    >>> waits({"arrived_ps": 0, "time_ps": 90, "input_row": 3, "credit_wait_ps": 60,
    ...        "pacing_ps": 0, "throttling_ps": 0, "sent_before": 2})
    {'no credits': 60, 'arbitration': 30}
    """
    rest = hop["time_ps"] - hop["arrived_ps"]
    reasons = {}
    for reason, column in {
        "injection rate": "pacing_ps",
        "congestion control": "throttling_ps",
        "no credits": "credit_wait_ps",
    }.items():
        # At a host one reason may hold while another does; none counts twice.
        share = min(hop[column], rest)
        if share:
            reasons[reason] = share
            rest -= share
    if rest:
        reasons["arbitration" if hop["input_row"] is not None else "nothing to send"] = rest
    return reasons


def port_name(result: Result, row: int) -> str:
    """Name a port as switches print it."""
    return f"{result.ports['node'][row]}:{result.ports['port'][row]}"


def describe_packet(result: Result, hops: Sequence[Hop]) -> list[tuple[str, str, str, str]]:
    """List time in us, port, wait in ns, and reasons of a packet's path."""
    rows = [
        (
            f"{hop['time_ps'] / 1e6:.6f}",
            port_name(result, hop["ports_row"]),
            f"{(hop['time_ps'] - hop['arrived_ps']) / 1e3:,.1f}",
            _reasons(hop) + ("; FECN" if hop["fecn"] else ""),
        )
        for hop in hops
    ]
    last = hops[-1]
    if last["delivered_ps"] is not None:
        latency_ns = (last["delivered_ps"] - last["born_ps"]) / 1e3
        rows.append(
            (
                f"{last['delivered_ps'] / 1e6:.6f}",
                str(result.hosts["name"][last["destination"]]),
                "",
                f"received, {latency_ns:,.1f} ns after its start",
            )
        )
    return rows


def packet_report(result: Result, hops: Sequence[Hop]) -> dict[str, Any]:
    """Return a packet's path in plain values; no arrival within the run is ``None``."""
    first, last = hops[0], hops[-1]
    return {
        **{name: first[name] for name in ("wire_bytes", "sl", "vl", "born_ps")},
        "delivered_ps": last["delivered_ps"],
        "hops": [
            {
                "port": port_name(result, hop["ports_row"]),
                "time_ps": hop["time_ps"],
                "waited_ps": hop["time_ps"] - hop["arrived_ps"],
                "reasons_ps": waits(hop),
                "fecn": hop["fecn"],
            }
            for hop in hops
        ],
    }


def _reasons(hop: Hop) -> str:
    words = []
    for reason, ps in waits(hop).items():
        more = ""
        if reason == "arbitration":
            more = f" ({hop['sent_before']} packets before it)"
        words.append(f"{reason} {ps / 1e3:,.1f} ns{more}")
    return ", ".join(words) or "none"


def describe_flow(
    result: Result, packets: Iterable[Sequence[Hop]]
) -> list[tuple[str, str, str, str, str]]:
    """List port, packets, mean and longest wait in ns, and mean by reason of a flow."""
    by_port: dict[int, list[Hop]] = {}
    for hops in packets:
        for hop in hops:
            by_port.setdefault(hop["ports_row"], []).append(hop)
    rows = []
    for row, hops in by_port.items():
        times = np.array([hop["time_ps"] - hop["arrived_ps"] for hop in hops]) / 1e3
        sums: dict[str, int] = {}
        for hop in hops:
            for reason, ps in waits(hop).items():
                sums[reason] = sums.get(reason, 0) + ps
        means = [f"{name} {ps / len(hops) / 1e3:,.1f}" for name, ps in sums.items()]
        rows.append(
            (
                port_name(result, row),
                f"{len(hops):,}",
                f"{times.mean():,.1f}",
                f"{times.max():,.1f}",
                ", ".join(means) or "none",
            )
        )
    return rows
