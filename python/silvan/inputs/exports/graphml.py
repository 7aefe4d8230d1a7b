"""GraphML, which networkx, Gephi, yEd and igraph read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from silvan.inputs.exports.cabling import Cabling

_INTEGERS = ("lid", "ports", "adapter-port", "from-port", "to-port")
_OF_NODES = ("kind", "guid", "lid", "ports", "adapter-port", "port-guid")
_OF_EDGES = ("from-port", "to-port", "width", "speed", "length", "rate", "latency")


def graphml(fabric: Cabling) -> str:
    """Write nodes with their kind, GUID and LID, and cables with their ports and keys."""
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
    ]
    for domain, keys in (("node", _OF_NODES), ("edge", _OF_EDGES)):
        for key in keys:
            kind = "int" if key in _INTEGERS else "string"
            lines.append(f'  <key id="{key}" for="{domain}" attr.name="{key}" attr.type="{kind}"/>')
    lines.append('  <graph id="fabric" edgedefault="undirected">')
    for kind, nodes in (("switch", fabric.switches), ("host", fabric.hosts)):
        for name, values in nodes.items():
            data = _data({"kind": kind, **values}, _OF_NODES)
            lines.append(f"    <node id={quoteattr(name)}>{data}</node>")
    for number, cable in enumerate(fabric.cables):
        ends = " ".join(
            f"{key}={quoteattr(end)}"
            for key, end in zip(("source", "target"), cable.ends, strict=True)
        )
        ports = dict(zip(("from-port", "to-port"), cable.ports, strict=True))
        data = _data({**ports, **cable.kind}, _OF_EDGES)
        lines.append(f'    <edge id="cable-{number}" {ends}>{data}</edge>')
    lines += ["  </graph>", "</graphml>"]
    return "\n".join(lines) + "\n"


def _data(values: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    return "".join(
        f'<data key="{key}">{escape(str(values[key]))}</data>' for key in keys if key in values
    )
