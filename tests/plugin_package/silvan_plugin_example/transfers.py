"""A format of traces: a transfer a line, with sender, receiver and bytes."""

from dataclasses import dataclass

from silvan.plugins import Trace


@dataclass(frozen=True)
class Keys:
    scale: int = 1


def read(keys: Keys, data: bytes) -> str:
    """Send the transfers of a list one after the other."""
    rows = [[int(word) for word in line.split()] for line in data.decode().splitlines()]
    ranks = 1 + max(max(row[:2]) for row in rows)
    blocks: list[list[str]] = [[] for _ in range(ranks)]
    for tag, (sender, receiver, size) in enumerate(rows):
        size *= keys.scale
        blocks[sender].append(f"send {size}b to {receiver} tag {tag}")
        blocks[receiver].append(f"recv {size}b from {sender} tag {tag}")
    lines = [f"num_ranks {ranks}"]
    for number, operations in enumerate(blocks):
        lines.append(f"rank {number} {{")
        lines += [f"l{place}: {operation}" for place, operation in enumerate(operations)]
        lines += [f"l{place} requires l{place - 1}" for place in range(1, len(operations))]
        lines.append("}")
    return "\n".join(lines) + "\n"


TRANSFERS = Trace(read, Keys)
