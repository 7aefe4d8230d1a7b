"""A fabric as a tree of groups of switches, as workload managers describe networks.

Switches of one level that share a group below form one group, such as the 18 spines of a fat tree.
So each group has one parent, and two hosts are as near as in the fabric.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from silvan.errors import SilvanError, shown
from silvan.inputs.exports.cabling import Cabling


@dataclass(slots=True)
class Group:
    """Switches of one level with the same switches below them."""

    switches: list[str]
    children: list[Group] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name of the first switch."""
        return self.switches[0]


def roots(fabric: Cabling) -> list[str]:
    """List the switches at the top of a tree: named, farthest from hosts, or most central."""
    if named := fabric.table.get("roots"):
        return list(named)
    holders = [name for name, hosts in fabric.hosts_at.items() if hosts]
    distance = _distances(fabric, holders)
    tops = [
        name
        for name, cables in fabric.neighbours.items()
        if distance.get(name, 0) > 0
        and all(distance[cable.other(name)] <= distance[name] for cable in cables)
    ]
    if tops:
        return tops
    pairs = {frozenset(cable.ends) for cables in fabric.neighbours.values() for cable in cables}
    if len(pairs) >= len(fabric.switches):
        raise SilvanError(
            "the fabric is no tree: its switches form rings, and each has hosts",
            "name its roots in fabric.roots, or use a format without levels, such as slurm-block",
        )
    farthest = {name: max(_distances(fabric, [name]).values()) for name in fabric.switches}
    return [min(farthest, key=lambda name: farthest[name])]


def ranks(fabric: Cabling) -> dict[str, int]:
    """Return the level of each switch, 0 for the roots; cables must connect different levels."""
    rank = _distances(fabric, roots(fabric))
    for name, cables in fabric.neighbours.items():
        if name not in rank:
            raise SilvanError(
                f"switch {shown(name)} is cabled to no root of the tree",
                "name a root of each part in fabric.roots, or export the parts on their own",
            )
        for cable in cables:
            if rank[cable.other(name)] == rank[name]:
                raise SilvanError(
                    f"the fabric is no tree: switches {shown(name)} and"
                    f" {shown(cable.other(name))} of one level are cabled to each other",
                    "name its roots in fabric.roots, or use a format without levels, such as"
                    " slurm-block",
                )
    return rank


def tree(fabric: Cabling) -> Group:
    """Return the top group of the tree."""
    rank = ranks(fabric)
    by_rank: dict[int, list[str]] = {}
    for name in fabric.switches:
        by_rank.setdefault(rank[name], []).append(name)
    below: list[Group] = []
    for level in sorted(by_rank, reverse=True):
        below = _joined(fabric, by_rank[level], below)
    top, *others = below
    if others:
        raise SilvanError(
            f"the fabric is no tree: roots {shown(top.name)} and {shown(others[0].name)} share no"
            " switch",
            "export the parts on their own",
        )
    return top


def _joined(fabric: Cabling, names: Sequence[str], below: Sequence[Group]) -> list[Group]:
    child_of = {switch: number for number, group in enumerate(below) for switch in group.switches}
    children: dict[str, set[int]] = {}
    parents: dict[int, list[str]] = {number: [] for number in range(len(below))}
    for name in names:
        ends = (cable.other(name) for cable in fabric.neighbours[name])
        children[name] = {child_of[end] for end in ends if end in child_of}
        for number in children[name]:
            parents[number].append(name)
    found: list[Group] = []
    placed: set[str] = set()
    for first in names:
        if first in placed:
            continue
        part, held, waiting = {first}, set[int](), [first]
        while waiting:
            for number in children[waiting.pop()] - held:
                held.add(number)
                waiting += (name for name in parents[number] if name not in part)
                part.update(parents[number])
        placed |= part
        switches = [name for name in names if name in part] if len(part) > 1 else [first]
        found.append(Group(switches, [below[number] for number in sorted(held)]))
    return found


def _distances(fabric: Cabling, starts: Iterable[str]) -> dict[str, int]:
    found = dict.fromkeys(starts, 0)
    waiting = deque(found)
    while waiting:
        name = waiting.popleft()
        for cable in fabric.neighbours[name]:
            other = cable.other(name)
            if other not in found:
                found[other] = found[name] + 1
                waiting.append(other)
    return found
