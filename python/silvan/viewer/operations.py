"""Operations of a program, in words: from the keys and the trace of the program."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_GOAL = re.compile(
    r"\b(?:(calc)\s+(\d+)|(send|recv)\s+(\d+)b\s+(?:to|from)\s+(-?\d+)(?:\s+tag\s+(-?\d+))?)"
)
_CONNECTION = re.compile(r"(\d+)->(\d+)\s.*?\bsize\s+(\d+)")


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of a rank, with facts such as bytes and partner."""

    name: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Operations:
    """The operations of a trace, by rank and line; a line may be several operations."""

    at: Callable[[int, int], Operation]
    are_whole: bool = True


def operations_of(program: Mapping[str, Any]) -> Operations:
    """Read the operations of a program; without a readable trace, they are named by line."""
    text = program.get("trace")
    if not isinstance(text, str):
        return Operations(_by_line)
    kind = program["kind"]
    if kind == "chakra":
        ranks = json.loads(text)["ranks"]
        return Operations(lambda rank, line: _node(ranks[rank][line - 1]))
    if kind == "aicb":
        lines = text.splitlines()
        if text.startswith("["):
            return Operations(_found(dict(_rows(lines))))
        return Operations(_found(dict(_layers(lines))), are_whole=False)
    read = {"goal": _goal, "connections": _connection}[kind]
    named = ((line, read(words)) for line, words in enumerate(text.splitlines(), 1))
    return Operations(_found({line: one for line, one in named if one is not None}))


def _by_line(_rank: int, line: int) -> Operation:
    return Operation(f"line {line}")


def _found(operations: Mapping[int, Operation]) -> Callable[[int, int], Operation]:
    return lambda rank, line: operations.get(line) or _by_line(rank, line)


def _message(verb: str, size: int, partner: int | None, **facts: Any) -> Operation:
    way = "to" if verb == "send" else "from"
    peer = "any rank" if partner is None else f"rank {partner}"
    return Operation(f"{verb} {size:,} B {way} {peer}", {"bytes": size, "peer": partner, **facts})


def _goal(text: str) -> Operation | None:
    """Read a line of a GOAL schedule.

    >>> _goal("l2: send 10b to 1 tag 3").name, _goal("l1: calc 100 cpu 0").name
    ('send 10 B to rank 1', 'compute 100 ns')
    >>> _goal("l2 requires l1"), _goal("l3: recv 4b from -1").name
    (None, 'receive 4 B from any rank')
    """
    found = _GOAL.search(text.partition("//")[0])
    if found is None:
        return None
    calc, ns, verb, size, partner, tag = found.groups()
    if calc:
        return Operation(f"compute {int(ns):,} ns", {"ns": int(ns)})
    peer = None if int(partner) < 0 else int(partner)
    words = {"send": "send", "recv": "receive"}
    return _message(words[verb], int(size), peer, tag=int(tag or 0))


def _connection(text: str) -> Operation | None:
    """Read a line of a connection matrix.

    >>> _connection("0->1 id 1 start 0 size 2000000").name
    'send 2,000,000 B to rank 1'
    """
    found = _CONNECTION.match(text.strip())
    return None if found is None else _message("send", int(found[3]), int(found[2]))


def _node(node: Mapping[str, Any]) -> Operation:
    work = node["work"]
    if isinstance(work, str):
        return Operation(node["name"], {"kind": work})
    ((kind, facts),) = work.items()
    if kind == "collective":
        name = f"{node['name']}: {facts['operation']} {facts['bytes']:,} B"
    elif kind == "compute":
        name = f"{node['name']}: compute"
    else:
        partner = facts.get("to", facts.get("from"))
        name = f"{node['name']}: {_message(kind, facts['bytes'], partner).name}"
        facts = facts | {"peer": partner}
    return Operation(name, {"kind": kind, **facts})


def _rows(lines: list[str]) -> Iterator[tuple[int, Operation]]:
    columns: list[str] = []
    for line, text in enumerate(lines, 1):
        cells = [cell.strip() for cell in text.split(",")]
        if text.startswith("["):
            columns = []
        elif not columns:
            columns = cells
        elif len(cells) == len(columns):
            row = dict(zip(columns, cells, strict=True))
            kind = row["comm_type"].removeprefix("CommType.")
            size, stage = row["msg_size"], row.get("stage", "")
            # The size of a computation is a shape.
            sized = f" {int(float(size)):,} B" if re.fullmatch(r"[1-9]\d*(\.0)?", size) else ""
            facts: dict[str, Any] = {"group": row["comm_group"].removeprefix("CommGroup.")}
            if sized:
                facts["bytes"] = int(float(size))
            name = f"{kind}{sized}{f' ({stage})' if stage not in ('', 'None') else ''}"
            yield line, Operation(name, facts)


def _layers(lines: list[str]) -> Iterator[tuple[int, Operation]]:
    for line, text in enumerate(lines[2:], 3):
        if words := text.split():
            yield line, Operation(f"layer {words[0]}")
