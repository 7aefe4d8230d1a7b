"""Fabrics from graphs of networkx."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from silvan.errors import MissingExtraError, ScenarioError, shown
from silvan.inputs.toml_text import TomlInput

_SWITCH = ("ports", "lid", "guid")
_HOST = ("lid", "guid", "port-guid", "adapter-port", "router")
_CABLE = ("speed", "width", "rate", "length", "latency")
_SIMILAR = 0.75

MOST_PORTS = 254
"""IBA specification, volume 1, chapter 18."""


def fabric_lists(graph: Any) -> dict[str, TomlInput]:
    """Return ``switch``, ``host`` and ``cable`` of ``fabric``; ports follow the edges."""
    if not all(hasattr(graph, name) for name in ("nodes", "edges", "degree", "is_directed")):
        raise ScenarioError(
            f"{shown(repr(graph))} is not a graph of networkx", hint="give a networkx.Graph"
        )
    if graph.is_directed():
        raise ScenarioError(
            "the graph is directed, but a cable carries packets in both directions",
            hint="give graph.to_undirected()",
        )
    if not len(graph):
        raise ScenarioError(
            "the graph has no nodes", hint="give for example networkx.star_graph(4)"
        )
    names: dict[str, Any] = {}
    switches: list[dict[str, TomlInput]] = []
    hosts: list[dict[str, TomlInput]] = []
    next_port: dict[Any, int] = {}
    for node, values in graph.nodes(data=True):
        name = str(node)
        if name in names:
            raise ScenarioError(
                f"nodes {shown(repr(names[name]))} and {shown(repr(node))} have the same name"
                f" {shown(name)}",
                hint="rename nodes with networkx.relabel_nodes",
            )
        names[name] = node
        degree = graph.degree(node)
        kind = values.get("kind", "host" if degree == 1 else "switch")
        if kind == "switch":
            if degree > MOST_PORTS:
                raise ScenarioError(
                    f"switch {shown(name)} has {degree} edges, but a switch has at most"
                    f" {MOST_PORTS} ports",
                    hint="spread the edges over several switches",
                )
            switches.append({"name": name, "ports": degree, **_of(values, _SWITCH, f"node {name}")})
            next_port[node] = 1
        elif kind == "host":
            if degree != 1:
                raise ScenarioError(
                    f"host {shown(name)} has {degree} edges, but a host has one cable",
                    hint='give the node kind="switch", or one node per port of the adapter'
                    if degree
                    else "add an edge from it to a switch, or leave the node out",
                )
            hosts.append({"name": name, **_of(values, _HOST, f"node {name}")})
        else:
            raise ScenarioError(
                f"node {shown(name)}: kind is {shown(repr(kind))}", hint='use "host" or "switch"'
            )
    cables: list[dict[str, TomlInput]] = []
    for one, other, values in graph.edges(data=True):
        if one == other:
            raise ScenarioError(
                f"node {shown(str(one))} has an edge to itself",
                hint="graph.remove_edges_from(networkx.selfloop_edges(graph)) removes such edges",
            )
        ends = {}
        for key, node in (("from", one), ("to", other)):
            ends[key] = str(node)
            if node in next_port:
                ends[key] += f":{next_port[node]}"
                next_port[node] += 1
        cables.append({**ends, **_of(values, _CABLE, f"edge {one}, {other}")})
    return {"switch": switches, "host": hosts, "cable": cables}


def from_lists(fabric: dict[str, Any]) -> Any:
    """Give the graph of nodes and cables, see :meth:`silvan.Scenario.to_networkx`."""
    try:
        import networkx
    except ImportError as error:
        raise MissingExtraError(
            "graphs need networkx, which is not installed", hint="pip install networkx"
        ) from error
    graph = networkx.MultiGraph()
    for node in fabric["node"]:
        kind = "switch" if "ports" in node else "host"
        graph.add_node(node.pop("name"), kind=kind, **node)
    for (one, port), (other, far_port), keys in fabric["cable"]:
        graph.add_edge(one, other, ends={one: port, other: far_port}, **keys)
    return graph


def _of(values: Any, keys: tuple[str, ...], place: str) -> dict[str, TomlInput]:
    """Select attributes that are keys of a scenario, and refuse similar ones."""
    names = {name: key for key in keys for name in (key, key.replace("-", "_"))}
    for name in values:
        near = get_close_matches(str(name), names, n=1, cutoff=_SIMILAR)
        if near and name not in names:
            raise ScenarioError(
                f"{shown(place)}: there is no attribute {shown(repr(name))}",
                hint=f'did you mean "{near[0]}"?',
            )
    return {names[name]: values[name] for name in names if values.get(name) is not None}
