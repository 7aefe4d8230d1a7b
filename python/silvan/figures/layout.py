"""Places of hosts, switches and output ports in a drawing where packets travel downwards."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from silvan.results.result import Result

Point = tuple[float, float]

_ONE_ROW = 8
_HOST_COLUMNS = 3
_HOST_STEP = 0.26
_BLOCK_WIDTH = 0.78


@dataclass(frozen=True, slots=True)
class Layout:
    """Places of hosts, switches (up and down) and output ports; lines are the ends of cables."""

    senders: npt.NDArray[np.float64]
    receivers: npt.NDArray[np.float64]
    switches: list[Point]
    switch_names: list[str]
    port_names: list[str]
    lines: list[tuple[Point, Point]]
    is_uplink: npt.NDArray[np.bool_]
    is_last: npt.NDArray[np.bool_]
    width: float
    height: float


def lay_out(result: Result) -> Layout:
    """Lay a result's fabric out; levels are distances from the nearest host."""
    hosts = result.hosts["name"].to_pylist()
    nodes = result.ports["node"].to_pylist()
    peers = [peer.rpartition(":")[0] for peer in result.ports["peer"].to_pylist()]
    levels = _levels(hosts, nodes, peers)
    leaf_of = dict(zip(nodes, peers, strict=True))
    leaves = [node for node, level in levels.items() if level == 0]
    groups: dict[str, list[str]] = {leaf: [] for leaf in leaves}
    for host in hosts:
        groups[leaf_of[host]].append(host)
    top = max(levels.values())
    most = max(len(group) for group in groups.values())
    columns = most if most <= _ONE_ROW else _HOST_COLUMNS
    step = _BLOCK_WIDTH / columns
    block = 0.55 + _HOST_STEP * -(-most // columns)
    gap = 1.5 + 0.085 * len(leaves)
    width = float(len(leaves))

    def height_of(node: str, *, up: bool) -> float:
        below = levels[node] if up else 2 * top - levels[node]
        return gap * (top - below)

    x = {}
    for level in range(top + 1):
        members = [node for node, own in levels.items() if own == level]
        apart = width / len(members)
        x.update({node: (place + 0.5) * apart - 0.5 for place, node in enumerate(members)})
    senders, receivers = {}, {}
    for leaf, group in groups.items():
        for place, host in enumerate(group):
            row, column = divmod(place, columns)
            dx = (column - (columns - 1) / 2) * step
            dy = 0.5 + row * _HOST_STEP
            senders[host] = (x[leaf] + dx, height_of(leaf, up=True) + dy)
            receivers[host] = (x[leaf] + dx, height_of(leaf, up=False) - dy)

    def place_of(node: str, *, up: bool) -> Point:
        return (x[node], height_of(node, up=up))

    def line(node: str, peer: str) -> tuple[Point, Point]:
        if node in senders:
            return senders[node], place_of(peer, up=True)
        if peer in receivers:
            return place_of(node, up=False), receivers[peer]
        up = levels[peer] > levels[node]
        # Between switches of one level the path is neither up nor down.
        level_way = levels[peer] == levels[node]
        return place_of(node, up=up or level_way), place_of(peer, up=up)

    places = {place_of(node, up=up): node for node in levels for up in (True, False)}
    ports = result.ports["port"].to_pylist()
    return Layout(
        senders=np.array([senders[host] for host in hosts]),
        receivers=np.array([receivers[host] for host in hosts]),
        switches=sorted(places),
        switch_names=[places[place] for place in sorted(places)],
        port_names=[f"{node}:{port}" for node, port in zip(nodes, ports, strict=True)],
        lines=[line(node, peer) for node, peer in zip(nodes, peers, strict=True)],
        is_uplink=np.array([node in senders for node in nodes]),
        is_last=np.array([peer in receivers for peer in peers]),
        width=width,
        height=2 * (gap * top + block),
    )


def _levels(hosts: list[str], nodes: list[str], peers: list[str]) -> dict[str, int]:
    neighbours: dict[str, list[str]] = {}
    for node, peer in zip(nodes, peers, strict=True):
        neighbours.setdefault(node, []).append(peer)
    distance = dict.fromkeys(hosts, -1)
    queue = deque(hosts)
    while queue:
        node = queue.popleft()
        for peer in neighbours.get(node, ()):
            if peer not in distance:
                distance[peer] = distance[node] + 1
                queue.append(peer)
    is_host = set(hosts)
    return {node: distance[node] for node in dict.fromkeys(nodes) if node not in is_host}
