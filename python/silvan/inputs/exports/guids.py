"""Files of GUIDs that OpenSM reads with ``--root_guid_file`` and ``--cn_guid_file``."""

from __future__ import annotations

from collections.abc import Iterable

from silvan.errors import shown
from silvan.inputs.exports.cabling import Cabling
from silvan.inputs.exports.hierarchy import ranks, roots


def root_guids(fabric: Cabling) -> str:
    """Write the node GUIDs of the roots of a tree."""
    return _file((fabric.switches[name]["guid"], name) for name in roots(fabric))


def cn_guids(fabric: Cabling) -> str:
    """Write the port GUIDs of the compute nodes: those of the scenario, or the hosts at leaves."""
    named = fabric.table.get("compute-nodes")
    return _file((_port_guid(fabric, name), name) for name in named or _at_leaves(fabric))


def _at_leaves(fabric: Cabling) -> list[str]:
    rank = ranks(fabric)
    inner = {
        name
        for name, cables in fabric.neighbours.items()
        if any(rank[cable.other(name)] > rank[name] for cable in cables)
    }
    return [host for host, switch in fabric.switch_of.items() if switch not in inner]


def _port_guid(fabric: Cabling, name: str) -> str:
    host = fabric.hosts[name]
    usual = int(host["guid"], 16) + host.get("adapter-port", 1)
    return str(host.get("port-guid", f"{usual % 2**64:#018x}"))


def _file(lines: Iterable[tuple[str, str]]) -> str:
    return "".join(f"{guid} # {shown(name)}\n" for guid, name in lines)
