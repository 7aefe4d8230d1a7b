"""``topology.conf`` of Slurm, for its plug-ins topology/tree and topology/block."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from silvan.inputs.exports.branches import Branch, leaves, trunk
from silvan.inputs.exports.cabling import Cabling

_NUMBERED = re.compile(r"(.*\D)(\d{1,9})")


def hostlist(names: Sequence[str]) -> str:
    """Join names as Slurm writes lists, with ranges of numbers of the same width.

    >>> hostlist(["n08", "n09", "n10", "n12", "login"])
    'n[08-10,12],login'
    """
    groups: dict[tuple[str, int], list[int]] = {}
    words: list[tuple[str, int] | str] = []
    for name in names:
        match = _NUMBERED.fullmatch(name)
        if match is None:
            words.append(name)
            continue
        key = (match[1], len(match[2]))
        if key not in groups:
            words.append(key)
        groups.setdefault(key, []).append(int(match[2]))
    return ",".join(
        word if isinstance(word, str) else _ranged(*word, sorted(groups[word])) for word in words
    )


def _ranged(prefix: str, width: int, numbers: Sequence[int]) -> str:
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    texts = [
        f"{low:0{width}}" if low == high else f"{low:0{width}}-{high:0{width}}"
        for low, high in ranges
    ]
    single = len(numbers) == 1
    return f"{prefix}{texts[0]}" if single else f"{prefix}[{','.join(texts)}]"


def slurm_tree(fabric: Cabling) -> str:
    """Write the file for topology/tree: leaves first, switches of one level as one where needed."""
    lines = ["# Slurm's topology.conf for TopologyPlugin=topology/tree", *_lines(trunk(fabric))]
    return "\n".join(lines) + "\n"


def _lines(branch: Branch) -> Iterator[str]:
    if branch.computers:
        yield f"SwitchName={branch.name} Nodes={hostlist(branch.computers)}"
        return
    for child in branch.children:
        yield from _lines(child)
    if branch.switches > 1:
        yield f"# {branch.name} stands for {branch.switches} switches"
    yield f"SwitchName={branch.name} Switches={hostlist([one.name for one in branch.children])}"


def slurm_block(fabric: Cabling) -> str:
    """Write the file for topology/block; sizes are the smallest block's, doubled repeatedly."""
    blocks = leaves(fabric)
    base = min(len(block.computers) for block in blocks)
    sizes = [base]
    while sizes[-1] * 2 <= base * len(blocks):
        sizes.append(sizes[-1] * 2)
    lines = ["# Slurm's topology.conf for TopologyPlugin=topology/block"]
    lines += [f"BlockName={one.name} Nodes={hostlist(one.computers)}" for one in blocks]
    lines.append(f"BlockSizes={','.join(map(str, sizes))}")
    return "\n".join(lines) + "\n"
