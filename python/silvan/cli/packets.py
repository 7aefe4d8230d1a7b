"""Options of a run that record packets hop by hop, and what they print and write."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from silvan.cli.printer import note, put_table
from silvan.errors import ScenarioError, SilvanError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from silvan.inputs.scenario import Scenario
    from silvan.inputs.toml_text import TomlValue
    from silvan.results.packet_trace import Hop, Traced
    from silvan.results.result import Result

MOST_HOPS = 10_000_000

_OPTIONS = {"ports": "--pcap", "flows": "--trace"}

LONGEST_PACKET = 2047 * 4 + 2
"""PktLen has 11 bits and counts words without the VCRC (IBA specification, volume 1, 7.7)."""

Trace = Annotated[
    str | None,
    typer.Option(
        "--trace",
        metavar="PACKET|FLOW",
        help="Print the way of a packet (SOURCE,DESTINATION,NUMBER), or of the packets of a flow "
        "(SOURCE,DESTINATION), with the reason of every wait.",
        show_default=False,
    ),
]
Pcap = Annotated[
    tuple[str, Path] | None,
    typer.Option(
        "--pcap",
        metavar="PORT FILE",
        help="Write the packets that leave a port (SWITCH:NUMBER, or a host) to a file for tshark "
        "and Wireshark.",
        show_default=False,
    ),
]


def packet_keys(
    scenario: Scenario, trace: Traced | None, pcap: tuple[str, Path] | None
) -> dict[str, TomlValue]:
    """Return the keys that make a scenario record the packets to print and to write."""
    if trace is None and pcap is None:
        return {}
    recorded: dict[str, Any] = scenario.to_dict()["probe"].get("packets", {})
    ports, flows = list(recorded.get("ports", [])), list(recorded.get("flows", []))
    if pcap is not None:
        from silvan.folders import require_own_kind, require_writable_file
        from silvan.results.capture import FILE_START

        require_own_kind(pcap[1], FILE_START, "capture file of silvan")
        require_writable_file(pcap[1])
        wire = scenario.packet.mtu.bytes + scenario.packet.header.bytes
        if wire > LONGEST_PACKET:
            raise SilvanError(
                f"--pcap: packets of {wire} B, and the length field of InfiniBand's local route"
                f" header ends at {LONGEST_PACKET} B",
                hint="--set packet.mtu='4 KiB' gives packets that InfiniBand has",
            )
        ports.append(pcap[0])
    if trace is not None:
        flows.append({"from": trace.source, "to": trace.destination})
    return {"probe.packets": {"ports": ports, "flows": flows}}


def recording(scenario: Scenario, keys: Mapping[str, TomlValue]) -> Scenario:
    """Set the keys that options of a run need; an error names the option of a packet key."""
    if not keys:
        return scenario
    try:
        return scenario.override(keys)
    except ScenarioError as error:
        found = re.fullmatch(r".*\bprobe\.packets\.(ports|flows)\S*: (.*)", str(error))
        if found is None:
            raise
        raise SilvanError(f"{_OPTIONS[found[1]]}: {found[2]}", hint=error.hint) from error


def check_one_run(runs: int, options: Mapping[str, object]) -> None:
    """Refuse options for one run where there are several, whose packets and flows differ."""
    given = [option for option, value in options.items() if value is not None]
    if runs > 1 and given:
        raise SilvanError(f"{given[0]}: {runs} runs, and it is for 1", hint="use --seeds 1")


def write_capture(result: Result, pcap: tuple[str, Path] | None) -> None:
    """Write the packets of a port."""
    if pcap is None:
        return
    from silvan.results.capture import write_pcap

    count = write_pcap(result, *pcap)
    note(f"{count:,} packets of {pcap[0]} written to {pcap[1]}")
    control = result.scenario.to_dict()["control"]
    path = control.get("feedback", {}).get("path")
    if not count and control["scheme"] != "none" and path == "out-of-band":
        note(
            "hint: congestion notifications are no packets with control.feedback.path=out-of-band; "
            "--set control.feedback.path=in-band sends them from the receivers of data"
        )


def put_trace(result: Result, traced: Traced | None) -> None:
    """Print the way of a packet, or of the packets of a flow."""
    if traced is None:
        return
    packets = _traced_packets(result, traced)
    flow = f"{traced.source} to {traced.destination}"
    if traced.number is None:
        _put_flow(result, list(packets.values()), flow)
        delivered = {
            number: hops for number, hops in packets.items() if hops[-1]["delivered_ps"] is not None
        }
        if delivered:
            slowest = max(delivered, key=lambda number: _latency_ps(packets[number]))
            _put_packet(result, packets[slowest], f"packet {slowest} from {flow}, the slowest")
        else:
            _put_packet(result, packets[1], f"packet 1 from {flow}; none has arrived")
    else:
        _put_packet(result, packets[traced.number], f"packet {traced.number} from {flow}")


def trace_report(result: Result, traced: Traced) -> dict[str, Any]:
    """Return the way of a packet, or of all packets of a flow, in plain values."""
    from silvan.results.packet_trace import packet_report

    return {
        "from": traced.source,
        "to": traced.destination,
        "packets": [
            {"number": number, **packet_report(result, hops)}
            for number, hops in _traced_packets(result, traced).items()
        ],
    }


def _traced_packets(result: Result, traced: Traced) -> dict[int, list[Hop]]:
    from silvan.results.packet_trace import packets_of_flow

    if result.tables["packet_hops"].num_rows >= MOST_HOPS:
        note(f"warning: packets after the first {MOST_HOPS:,} hops were not recorded")
    packets = dict(enumerate(packets_of_flow(result, traced), 1))
    flow = f"{traced.source} to {traced.destination}"
    if not packets:
        raise SilvanError(
            f"--trace: no packet went from {flow}",
            hint="name two hosts between which the scenario has traffic",
        )
    if traced.number is None:
        return packets
    if traced.number > len(packets):
        raise SilvanError(
            f"--trace: packet {traced.number} from {flow}: there are {len(packets)} packets",
            hint="leave the number out for all of them",
        )
    return {traced.number: packets[traced.number]}


def _latency_ps(hops: Sequence[Hop]) -> int:
    return int(hops[-1]["delivered_ps"] - hops[-1]["born_ps"])


def _put_packet(result: Result, hops: Sequence[Hop], title: str) -> None:
    from rich.table import Table

    from silvan.results.packet_trace import describe_packet

    first = hops[0]
    details = f"{first['wire_bytes']} bytes, SL {first['sl']}, VL {first['vl']}"
    table = Table(title=f"{title}: {details}")
    table.add_column("leaves at, µs", justify="right")
    table.add_column("port")
    table.add_column("waited, ns", justify="right")
    table.add_column("for", overflow="fold")
    for row in describe_packet(result, hops):
        table.add_row(*row)
    put_table(table)


def _put_flow(result: Result, packets: Sequence[Sequence[Hop]], flow: str) -> None:
    from rich.table import Table

    from silvan.results.packet_trace import describe_flow

    table = Table(title=f"{len(packets):,} packets from {flow}")
    table.add_column("port")
    for heading in ("packets", "wait, mean, ns", "longest, ns"):
        table.add_column(heading, justify="right")
    table.add_column("mean by reason, ns", overflow="fold")
    for row in describe_flow(result, packets):
        table.add_row(*row)
    put_table(table)
