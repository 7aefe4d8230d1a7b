"""A subnet, and what its diagnosis said at a moment."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Report = dict[str, Any]

LOADS = ("load", "wait", "congested")
"""Loads of a port: parts of its link's rate and of the time."""


@dataclass(frozen=True)
class Subnet:
    """Nodes and cables of a subnet, and its forwarding tables.

    ``text`` is JSON: ``nodes`` with ``name``, ``is_host`` and ``lid``, hosts first; ``ports`` with
    row of the node, number, row of the peer, and Gbit/s. ``routes`` are output ports by switch and
    host, 0 for none; empty if unknown.
    """

    text: str
    routes: bytes

    @cached_property
    def digest(self) -> str:
        """A name that other subnets do not have."""
        return hashlib.sha256(self.text.encode() + b"\0" + self.routes).hexdigest()

    @cached_property
    def nodes(self) -> list[dict[str, Any]]:
        """The hosts, then the switches."""
        nodes: list[dict[str, Any]] = json.loads(self.text)["nodes"]
        return nodes

    @cached_property
    def ports(self) -> npt.NDArray[np.float64]:
        """Row of the node, number, row of the port at the other end, and Gbit/s, by port."""
        return np.asarray(json.loads(self.text)["ports"], np.float64).reshape(-1, 4)

    @cached_property
    def hosts(self) -> int:
        """Number of hosts."""
        return sum(node["is_host"] for node in self.nodes)

    @cached_property
    def rows(self) -> dict[str, int]:
        """Rows of the ports by their names."""
        names = [node["name"] for node in self.nodes]
        numbered = zip(self.ports[:, 0].astype(int), self.ports[:, 1].astype(int), strict=True)
        return {f"{names[node]}:{number}": row for row, (node, number) in enumerate(numbered)}

    @cached_property
    def node_rows(self) -> dict[str, int]:
        """Rows of the nodes by their names."""
        return {node["name"]: row for row, node in enumerate(self.nodes)}


@dataclass(frozen=True)
class Moment:
    """Diagnosis of two sweeps. ``at_ns`` is the end of the second, in nanoseconds since 1970."""

    subnet: Subnet
    report: Report
    values: bytes
    at_ns: int

    @property
    def span_ns(self) -> int:
        """Time between the sweeps, in nanoseconds of the subnet."""
        return int(self.report["interval_s"] * 1e9)

    @property
    def loads(self) -> npt.NDArray[np.float32]:
        """The values of :data:`LOADS` of each port; not a number where they are not known."""
        return np.frombuffer(self.values, "<f4").reshape(len(LOADS), -1)
