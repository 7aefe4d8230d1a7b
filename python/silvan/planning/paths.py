"""Paths by forwarding tables, and their balance over cables, without simulation.

Effective bisection bandwidth is that of T. Hoefler, T. Schneider and A. Lumsdaine, "Multistage
switches are not crossbars: effects of static routing in high-performance networks", Cluster 2008.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from silvan import _silvan
from silvan.errors import EmulationError
from silvan.inputs.fabric_lists import Cable, FabricLists

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

LANE_GBPS = {
    "SDR": 2.0,
    "DDR": 4.0,
    "QDR": 8.0,
    "FDR10": 10.0,
    "FDR": 150 / 11,
    "EDR": 25.0,
    "HDR": 50.0,
    "NDR": 100.0,
    "XDR": 200.0,
}
"""Gbit/s of one lane without line code, by speed."""

_HEADING = re.compile(r"^Unicast lids .* switch Lid (\d+) guid")
_ENTRY = re.compile(r"^0x([0-9a-fA-F]+) (\d{3}) ")
_LEVELS = re.compile(r"'\) sl ([0-9: ]+)$")


def cable_gbps(cable: Cable) -> float:
    """Give the data rate of a cable in each direction, in Gbit/s."""
    if "rate" in cable.values:
        return _silvan.parse_quantity(str(cable.values["rate"]), "rate") / 1e9
    width = int(str(cable.values["width"]).removesuffix("x"))
    return width * LANE_GBPS[str(cable.values["speed"])]


@dataclass(frozen=True, slots=True)
class Balance:
    """Most and mean number of paths on a cable between switches, all to all."""

    max_paths: float
    mean_paths: float

    @property
    def ratio(self) -> float:
        """The most over the mean; 1 if all cables have the same."""
        return self.max_paths / self.mean_paths if self.mean_paths else 1.0


@dataclass(frozen=True, slots=True)
class Bisection:
    """Rates of random pairs of hosts, relative to their cables: effective bisection, and worst."""

    mean: float
    lowest: float
    permutations: int


class Paths:
    """All paths between hosts by forwarding tables in the form of ``dump_lfts``."""

    def __init__(self, lists: FabricLists, tables: str) -> None:
        names = list(lists.nodes)
        self.switches = [name for name in names if lists.is_switch(name)]
        self.hosts = [name for name in names if not lists.is_switch(name)]
        switch = {name: place for place, name in enumerate(self.switches)}
        host = {name: place for place, name in enumerate(self.hosts)}
        most = max((int(lists.nodes[name]["ports"]) for name in self.switches), default=0) + 1
        # By port of a switch: the next switch, and the channel to it.
        self._peer = np.full((len(self.switches), most), -1, dtype=np.int64)
        self._channel = np.full((len(self.switches), most), -1, dtype=np.int64)
        self._leaf = np.full(len(self.hosts), -1, dtype=np.int64)
        self._leaf_port = np.full(len(self.hosts), -1, dtype=np.int64)
        self._host_gbps = np.zeros(len(self.hosts))
        channels: list[tuple[str, int]] = []
        rates: list[float] = []
        for cable in lists.cables:
            rate = cable_gbps(cable)
            for (name, port), (other, _) in (cable.ends, cable.ends[::-1]):
                if name not in switch:
                    continue
                if other in switch:
                    self._peer[switch[name], port] = switch[other]
                    self._channel[switch[name], port] = len(channels)
                    channels.append((name, port))
                    rates.append(rate)
                else:
                    self._leaf[host[other]] = switch[name]
                    self._leaf_port[host[other]] = port
                    self._host_gbps[host[other]] = rate
        self.channels = channels
        self._gbps = np.array(rates)
        lids = {int(lists.nodes[name]["lid"]): name for name in names}
        self._next = self._read(tables, switch, host, lids, most)
        self.service_levels = len(_levels(tables))

    def _read(
        self,
        tables: str,
        switch: dict[str, int],
        host: dict[str, int],
        lids: dict[int, str],
        most: int,
    ) -> IntArray:
        following = np.zeros((len(self.switches), len(self.hosts)), dtype=np.int64)
        row = -1
        for line in tables.splitlines():
            if heading := _HEADING.match(line):
                row = switch.get(lids.get(int(heading[1]), ""), -1)
            elif (entry := _ENTRY.match(line)) and row >= 0:
                place = host.get(lids.get(int(entry[1], 16), ""))
                if place is not None:
                    following[row, place] = int(entry[2])
        if following.size and following.max() >= most:
            raise EmulationError("the forwarding tables name a port that the fabric does not have")
        return following

    @cached_property
    def _walk(self) -> tuple[IntArray, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Follow all paths at once.

        Returns channels by switch of the source, destination and hop, -1 behind the end; true for
        paths that arrive; true for endless ones.
        """
        count, hosts = self._next.shape
        destination = np.broadcast_to(np.arange(hosts), (count, hosts))
        at = np.broadcast_to(np.arange(count)[:, None], (count, hosts)).copy()
        arrived = np.zeros((count, hosts), dtype=np.bool_)
        active = np.ones((count, hosts), dtype=np.bool_)
        hops: list[IntArray] = []
        for _ in range(count + 1):
            port = np.where(active, self._next[at, destination], 0)
            here = active & (at == self._leaf) & (port == self._leaf_port)
            arrived |= here
            channel = np.where(active & ~here, self._channel[at, port], -1)
            active = channel >= 0
            if not active.any():
                break
            hops.append(channel)
            at = np.where(active, self._peer[at, port], at)
        steps = np.stack(hops, axis=-1) if hops else np.full((count, hosts, 1), -1, dtype=np.int64)
        return steps, arrived, active

    @cached_property
    def _pairs(self) -> IntArray:
        count = len(self.switches)
        cabled = self._leaf[self._leaf >= 0]
        at_switch = np.bincount(cabled, minlength=count)[:, None]
        own = np.arange(count)[:, None] == self._leaf[None, :]
        return np.asarray(at_switch - own, dtype=np.int64)

    @property
    def pairs(self) -> int:
        """Ordered pairs of different hosts."""
        return int(self._pairs.sum())

    @property
    def unconnected_pairs(self) -> int:
        """Pairs whose path does not arrive."""
        _, arrived, _ = self._walk
        return int(self._pairs[~arrived].sum())

    @property
    def looping_pairs(self) -> int:
        """Pairs whose path never ends."""
        _, _, looping = self._walk
        return int(self._pairs[looping].sum())

    @property
    def most_cables(self) -> int:
        """Cables of the longest path, those of the hosts included; 0 if none arrives."""
        steps, arrived, _ = self._walk
        lengths = (steps >= 0).sum(axis=-1)[arrived & (self._pairs > 0)]
        return int(lengths.max()) + 2 if lengths.size else 0

    def balance(self) -> Balance:
        """Count the paths over each cable between switches, if each host sends to each other."""
        if not self.channels:
            return Balance(0.0, 0.0)
        steps, arrived, _ = self._walk
        weights = np.where(arrived, self._pairs, 0)[..., None]
        used = steps >= 0
        counts = np.bincount(
            steps[used],
            weights=np.broadcast_to(weights, steps.shape)[used],
            minlength=len(self.channels),
        )
        return Balance(float(counts.max()), float(counts.mean()))

    def shares(self, sources: IntArray, destinations: IntArray) -> FloatArray:
        """Compute the share of its hosts' cable rate that each simultaneous flow gets.

        Flows divide each cable equally, and get the least share on their path; 0 if it does not
        arrive. Arguments are indexes into :attr:`hosts`.
        """
        steps, arrived, _ = self._walk
        leaves = self._leaf[sources]
        taken = steps[leaves, destinations]
        arrives = arrived[leaves, destinations]
        used = (taken >= 0) & arrives[:, None]
        loads = np.bincount(taken[used], minlength=max(len(self.channels), 1))
        sent = np.bincount(sources, minlength=len(self.hosts))
        received = np.bincount(destinations, minlength=len(self.hosts))
        own = np.minimum(
            self._host_gbps[sources] / sent[sources],
            self._host_gbps[destinations] / received[destinations],
        )
        full = np.minimum(self._host_gbps[sources], self._host_gbps[destinations])
        if len(self.channels):
            each = self._gbps / np.maximum(loads, 1)
            along = np.where(used, each[taken], np.inf).min(axis=1)
            own = np.minimum(own, along)
        return np.where(arrives, own / full, 0.0)

    def bisection(self, permutations: int, seed: int) -> Bisection:
        """Average the rates of random pairs: half of the hosts send to the other half."""
        means = [
            float(self.shares(*pairs).mean()) for pairs in self._drawn_pairs(permutations, seed)
        ]
        return Bisection(float(np.mean(means)), min(means), len(means))

    def _drawn_pairs(self, permutations: int, seed: int) -> Iterator[tuple[IntArray, IntArray]]:
        generator = np.random.default_rng(seed)
        half = len(self.hosts) // 2
        for _ in range(permutations):
            order = generator.permutation(len(self.hosts))
            yield order[:half], order[half : 2 * half]


def _levels(tables: str) -> set[int]:
    levels = {0}
    for line in tables.splitlines():
        if found := _LEVELS.search(line):
            first, *others = found[1].split()
            levels.add(int(first))
            levels.update(int(word.split(":")[1]) for word in others)
    return levels
