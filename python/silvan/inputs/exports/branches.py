"""The computers of a fabric as a tree, as workload managers see them."""

from __future__ import annotations

from dataclasses import dataclass, field

from silvan.errors import SilvanError
from silvan.inputs.exports.cabling import Cabling
from silvan.inputs.exports.hierarchy import Group, tree
from silvan.inputs.exports.names import computer, plain_names


@dataclass(frozen=True, slots=True)
class Branch:
    """A switch of a logical tree with computers or other switches."""

    name: str
    switches: int = 1
    computers: list[str] = field(default_factory=list)
    children: list[Branch] = field(default_factory=list)


def leaves(fabric: Cabling) -> list[Branch]:
    """Return a branch for each switch that has computers, each at its first switch."""
    fabric.require_cabled("a workload manager")
    names = plain_names(fabric.switches)
    seen: set[str] = set()
    found: dict[str, list[str]] = {}
    for switch, hosts in fabric.hosts_at.items():
        for host in hosts:
            name = computer(host)
            if name not in seen:
                seen.add(name)
                found.setdefault(switch, []).append(name)
    if not found:
        raise SilvanError("the fabric has no hosts", "export a fabric with hosts")
    return [Branch(names[switch], computers=computers) for switch, computers in found.items()]


def trunk(fabric: Cabling) -> Branch:
    """Return the top of the tree; branches without computers are left out."""
    names = plain_names(fabric.switches)
    held = {leaf.name: leaf for leaf in leaves(fabric)}
    made = _branch(tree(fabric), names, held)
    assert made is not None, "there are computers, and the tree has all switches"
    return made


def _branch(group: Group, names: dict[str, str], leaves: dict[str, Branch]) -> Branch | None:
    made = (_branch(child, names, leaves) for child in group.children)
    children = [child for child in made if child is not None]
    held = [leaves[names[switch]] for switch in group.switches if names[switch] in leaves]
    if not children and len(group.switches) == 1:
        return held[0] if held else None
    children += [Branch(f"{leaf.name}.nodes", computers=leaf.computers) for leaf in held]
    if not children:
        return None
    return Branch(names[group.name], len(group.switches), children=children)
