"""Paths between the hosts of a subnet, by its forwarding tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from silvan.errors import DiagnosisError
from silvan.live.moments import Subnet

Rows = npt.NDArray[np.int32]
Values = npt.NDArray[np.float64]

_MOST_HOPS = 64
_NO_ROW = -1
_NO_PEER = 2**32 - 1


@dataclass(frozen=True)
class Paths:
    """Paths of pairs of hosts: rows of hosts, and in ``steps`` rows of output ports.

    ``starts`` has the first step of each pair, and the length at the end.
    """

    sources: Rows
    destinations: Rows
    starts: npt.NDArray[np.int64]
    steps: Rows
    ports: int

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def hops(self) -> npt.NDArray[np.int64]:
        """Number of ports of each path."""
        return np.diff(self.starts)

    def loads(self, rates: Values) -> Values:
        """Add up the rates of the pairs at each port."""
        weights = np.repeat(rates, self.hops)
        return np.bincount(self.steps, weights, self.ports).astype(np.float64)

    def sums(self, values: Values) -> Values:
        """Add up a value of each port along each path."""
        return np.add.reduceat(values[self.steps], self.starts[:-1])

    def least(self, values: Values) -> Values:
        """Find the smallest value along each path."""
        return np.minimum.reduceat(values[self.steps], self.starts[:-1])

    def most(self, values: Values) -> Values:
        """Find the largest value along each path."""
        return np.maximum.reduceat(values[self.steps], self.starts[:-1])

    def chosen(self, keep: npt.NDArray[np.bool_]) -> Paths:
        """Leave out the other pairs."""
        hops = self.hops[keep]
        starts = np.concatenate(([0], np.cumsum(hops)))
        steps = self.steps[np.repeat(keep, self.hops)]
        return Paths(self.sources[keep], self.destinations[keep], starts, steps, self.ports)


class Router:
    """Follows the forwarding tables of a subnet."""

    def __init__(self, subnet: Subnet) -> None:
        if not subnet.routes:
            raise DiagnosisError(
                "the forwarding tables are not known, so the paths of the traffic are not",
                "add the output of dump_lfts as --routes",
            )
        ports = subnet.ports
        self._hosts = subnet.hosts
        self._ports = len(ports)
        nodes = len(subnet.nodes)
        self._tables = np.frombuffer(subnet.routes, np.uint8).reshape(-1, self._hosts)
        self._outputs = np.full((nodes, 256), _NO_ROW, np.int32)
        owners = ports[:, 0].astype(np.int64)
        self._outputs[owners, ports[:, 1].astype(np.int64)] = np.arange(len(ports))
        # The node at the other end of each cable.
        peers = ports[:, 2].astype(np.int64)
        known = peers < _NO_PEER
        self._next = np.full(len(ports), _NO_ROW, np.int64)
        self._next[known] = owners[peers[known]]
        self.host_ports = np.full(self._hosts, _NO_ROW, np.int32)
        of_hosts = np.flatnonzero(owners < self._hosts)
        self.host_ports[owners[of_hosts]] = of_hosts

    def paths(self, sources: Rows, destinations: Rows) -> tuple[Paths, int]:
        """Follow packets of pairs of hosts; also return the number of pairs that do not arrive."""
        count = len(sources)
        rows = np.full((count, 8), _NO_ROW, np.int32)
        rows[:, 0] = self.host_ports[sources]
        hops = np.ones(count, np.int64)
        arrived = np.zeros(count, bool)
        going = np.flatnonzero(rows[:, 0] != _NO_ROW)
        for hop in range(1, _MOST_HOPS):
            if not len(going):
                break
            if hop == rows.shape[1]:
                rows = np.hstack((rows, np.full_like(rows, _NO_ROW)))
            at = self._next[rows[going, hop - 1]]
            there = at == destinations[going]
            arrived[going[there]] = True
            inside = ~there & (at >= self._hosts)
            going, at = going[inside], at[inside]
            numbers = self._tables[at - self._hosts, destinations[going]]
            outputs = np.where(numbers, self._outputs[at, numbers], _NO_ROW)
            led = outputs != _NO_ROW
            going = going[led]
            rows[going, hop] = outputs[led]
            hops[going] = hop + 1
        kept = rows[arrived]
        lengths = hops[arrived]
        columns = np.arange(kept.shape[1])
        steps = kept[columns[None, :] < lengths[:, None]]
        starts = np.concatenate(([0], np.cumsum(lengths)))
        found = Paths(sources[arrived], destinations[arrived], starts, steps, self._ports)
        return found, int(count - arrived.sum())
