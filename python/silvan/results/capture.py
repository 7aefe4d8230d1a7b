"""Packets of a port as a capture file for Wireshark and tshark.

A pcap file with nanosecond timestamps and link type 197 (Endace ERF) of InfiniBand records: LRH,
BTH with FECN and BECN, payload and check sums of zeros.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from silvan.errors import SilvanError, shown
from silvan.folders import written_file
from silvan.inputs.quantities import whole_number
from silvan.results.result import Result

_MAGIC = 0xA1B23C4D
FILE_START = struct.pack(">I", _MAGIC)

_LINK_TYPE = 197
_LONGEST = 16 + (1 << 14)
_ERF_INFINIBAND = 21
_ERF_VARYING_LENGTH = 4
_ERF_LEN = 16
_PS_PER_S = 10**12

_LOCAL_TRANSPORT = 2
_DEFAULT_P_KEY = 0xFFFF
_LRH_LEN, _BTH_LEN, _CRC_LEN = 8, 12, 6
_SEND = {(True, False): 0x00, (False, False): 0x01, (False, True): 0x02, (True, True): 0x04}
"""Operation codes of a reliable connection by (is first, is last)."""
_OTHERS = {"cnp": 0x80, "ack": 0x11, "grant": 0xC0}
"""A grant has a manufacturer's code."""
_FIRST_QP = 2


def write_pcap(result: Result, port: str, path: Path) -> int:
    """Write the packets of a recorded port (``SWITCH:NUMBER`` or a host); return their number."""
    if "packet_hops" not in result.tables:
        raise SilvanError("the run has recorded no packets", hint="set probe.packets.ports")
    hops = packets_of(result, port)
    lids = result.hosts["lid"].to_pylist()
    if 0 in lids:
        raise SilvanError(
            "the fabric has more nodes than LIDs, which packets of InfiniBand name hosts by",
            hint="use at most 49,151 switches and hosts",
        )
    with written_file(path) as file:
        file.write(struct.pack(">IHHIIII", _MAGIC, 2, 4, 0, 0, _LONGEST, _LINK_TYPE))
        for hop, opcode, sequence in _numbered(hops):
            file.write(_record(hop["time_ps"], _packet(hop, lids, opcode, sequence)))
    return int(hops.num_rows)


def packets_of(result: Result, port: str) -> pa.Table:
    """Return the rows of ``packet_hops`` of one port; the name of a host means its only port."""
    row = _row_of(result, port)
    hops = result.tables["packet_hops"]
    return hops.filter(pc.equal(hops["ports_row"], pa.scalar(row, hops["ports_row"].type)))


def _row_of(result: Result, port: str) -> int:
    nodes: list[str] = result.ports["node"].to_pylist()
    numbers: list[int] = result.ports["port"].to_pylist()
    if port in result.hosts["name"].to_pylist() and port in nodes:
        return nodes.index(port)
    node, _, number = port.rpartition(":")
    wanted = whole_number(number.removeprefix("+"))
    for row, (name, own) in enumerate(zip(nodes, numbers, strict=True)):
        if name == node and own == wanted:
            return row
    raise SilvanError(
        f"there is no port {shown(repr(port))}",
        hint="write SWITCH:NUMBER or the name of a host",
    )


def _numbered(hops: pa.Table) -> Iterator[tuple[Mapping[str, Any], int, int]]:
    sequences: dict[tuple[int, int, int], int] = {}
    ends: dict[tuple[int, int, int], bool] = {}
    for batch in hops.to_batches(max_chunksize=65536):
        for hop in batch.to_pylist():
            flow = (hop["source"], hop["destination"], hop["class"])
            sequence = sequences.get(flow, 0)
            if hop["kind"] == "data":
                opcode = _SEND[ends.get(flow, True), hop["last"]]
                ends[flow] = hop["last"]
                sequences[flow] = sequence + 1
            else:
                opcode = _OTHERS[hop["kind"]]
            yield hop, opcode, sequence & 0xFFFFFF


def _packet(hop: Mapping[str, Any], lids: list[int], opcode: int, sequence: int) -> bytes:
    """Write a packet (volume 1 of the specification, sections 7.7 and 9.2)."""
    least = _LRH_LEN + _BTH_LEN + _CRC_LEN + (4 if opcode == _OTHERS["ack"] else 0)
    payload = max(0, hop["wire_bytes"] - least)
    pad = -payload % 4
    # From the local route header to the ICRC, in words of four bytes.
    words = (least - 2 + payload + pad) // 4
    local = struct.pack(
        ">BBHHH",
        hop["vl"] << 4,
        hop["sl"] << 4 | _LOCAL_TRANSPORT,
        lids[hop["destination"]],
        words & 0x7FF,
        lids[hop["source"]],
    )
    bits = hop["fecn"] << 7 | hop["becn"] << 6
    base = struct.pack(
        ">BBHII",
        opcode,
        pad << 4,
        _DEFAULT_P_KEY,
        bits << 24 | (_FIRST_QP + hop["class"]) & 0xFFFFFF,
        sequence,
    )
    return (local + base).ljust(least + payload + pad, b"\0")


def _record(time_ps: int, packet: bytes) -> bytes:
    seconds, rest_ps = divmod(time_ps, _PS_PER_S)
    nanoseconds = rest_ps // 1000
    length = _ERF_LEN + len(packet)
    # ERF has units of 2^-32 s, as the only little-endian field.
    stamp = seconds << 32 | -(-(nanoseconds << 32) // 10**9)
    erf = struct.pack("<Q", stamp) + struct.pack(
        ">BBHHH", _ERF_INFINIBAND, _ERF_VARYING_LENGTH, length, 0, len(packet)
    )
    return struct.pack(">IIII", seconds, nanoseconds, length, length) + erf + packet
