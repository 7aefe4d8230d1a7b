"""Completion times of flows as ns-3's ``fct.txt``, for scripts of HPCC's artifact."""

from __future__ import annotations

from collections import Counter
from operator import itemgetter
from pathlib import Path

from silvan.folders import written_file
from silvan.results.result import Result

_FIRST_ADDRESS = 0x0B000001
"""11.0.0.1 of node 0; the node's number is in the two bytes in the middle."""
_FIRST_PORT = 10_000
_DESTINATION_PORT = 100
"""Scripts of HPCC's artifact measure flows to this port."""


def fct_text(result: Result) -> str:
    """Write the finished flows of a run as ns-3 does, by end."""
    places = {name: place for place, name in enumerate(result.hosts["name"].to_pylist())}
    entries = result.scenario.tables["traffic"].get("flow-file", ())
    files = {entry["name"]: (entry["first-host"], entry["origin"].ps) for entry in entries}
    ports: Counter[str] = Counter()
    lines = []
    for row in sorted(result.flows.to_pylist(), key=itemgetter("start_ps")):
        port = _FIRST_PORT + ports[row["from"]]
        ports[row["from"]] += 1
        if not row["finished"]:
            continue
        first, origin = files.get(row["name"], (0, 0))
        ends = (f"{_address(first + places[row[end]]):08x}" for end in ("from", "to"))
        times = (row["start_ps"] + origin, row["completion_ps"], row["ideal_ps"])
        numbers = (port, _DESTINATION_PORT, row["bytes"], *map(_nanoseconds, times))
        lines.append((row["end_ps"], " ".join([*ends, *map(str, numbers)])))
    return "".join(f"{line}\n" for _, line in sorted(lines, key=itemgetter(0)))


def write_fct(result: Result, path: Path) -> int:
    """Write :func:`fct_text` of a run to a file."""
    text = fct_text(result)
    with written_file(path) as file:
        file.write(text.encode())
    return text.count("\n")


def _address(node: int) -> int:
    """Give the address of a node, as HPCC's artifact numbers them.

    >>> f"{_address(0):08x}", f"{_address(257):08x}"
    ('0b000001', '0b010101')
    """
    return _FIRST_ADDRESS + (node // 256 << 16) + (node % 256 << 8)


def _nanoseconds(picoseconds: int) -> int:
    """Round picoseconds to nanoseconds, a half upwards.

    >>> _nanoseconds(1_499), _nanoseconds(1_500)
    (1, 2)
    """
    return (picoseconds + 500) // 1000
