"""Measurements on mizero2017's testbed: each flow's throughput and three counters over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from silvan.results.receive_rates import FloatArray, delivered
from silvan.results.result import Result

PS_PER_S = 1_000_000_000_000
TICK_S = 22e-9
"""Tick of PortXmitWait and PortXmitTimeCong on the testbed (section 4.2)."""

SENDERS: Mapping[str, str] = {"X-Y": "X", "B-D": "B", "C-D": "C", "A-D": "A"}

CONTRIBUTORS = ("B-D", "C-D", "A-D")
"""Flows to D, which congest its port."""

VICTIM = "X-Y"
"""The flow that only shares the cable between the switches."""

UPSTREAM = ("S1", 15)
"""S1's end of the cable between the switches, slowed by congestion."""

ROOT = ("S2", 23)
"""S2's port to D, which congests."""


@dataclass(frozen=True, slots=True)
class Course:
    """A run by probe interval.

    Flows are Gbit/s on their sender's link; counters grow in ticks per second, PortXmitData in
    4-byte words per second.
    """

    time_s: FloatArray
    flows_gbps: Mapping[str, FloatArray]
    root_time_cong: FloatArray
    upstream_wait: FloatArray
    upstream_data: FloatArray
    host_wait: Mapping[str, FloatArray]

    def total(self, growth: FloatArray) -> float:
        """Add up what a counter has grown by, given per second."""
        return float(growth.sum() * self.time_s[0])

    def mean(self, values: FloatArray, start_s: float, end_s: float) -> float:
        """Average over the intervals that lie in a stretch of time; not a number if none does."""
        begins = self.time_s - self.time_s[0]
        inside = (begins >= start_s - 1e-9) & (self.time_s <= end_s + 1e-9)
        return float(values[inside].mean()) if inside.any() else float("nan")

    def contributors(self) -> FloatArray:
        """Add the contributors' throughputs up, in Gbit/s."""
        total: FloatArray = np.sum([self.flows_gbps[name] for name in CONTRIBUTORS], axis=0)
        return total


def course(result: Result) -> Course:
    """Lay a run out over time."""
    ports = {
        (node, port): row
        for row, (node, port) in enumerate(
            zip(result.ports["node"].to_pylist(), result.ports["port"].to_pylist(), strict=True)
        )
    }
    series = result.tables["port_series"]

    def column(name: str) -> FloatArray:
        values: FloatArray = series[name].to_numpy().reshape(-1, len(ports)).astype(np.float64)
        return values

    time_s = column("time_ps")[:, 0] / PS_PER_S
    step_s = float(time_s[0])
    sent, waited = column("xmit_bytes"), column("xmit_wait_ps")
    packet = result.scenario.packet
    payload = packet.mtu.bytes / (packet.mtu.bytes + packet.header.bytes)
    upstream, root = ports[UPSTREAM], ports[ROOT]
    tick_ps = TICK_S * PS_PER_S
    return Course(
        time_s=time_s,
        flows_gbps={
            flow: sent[:, ports[host, 1]] * payload * 8 / step_s / 1e9
            for flow, host in SENDERS.items()
        },
        root_time_cong=column("xmit_cong_ps")[:, root] / tick_ps / step_s,
        upstream_wait=waited[:, upstream] / tick_ps / step_s,
        upstream_data=sent[:, upstream] / 4 / step_s,
        host_wait={host: waited[:, ports[host, 1]] / tick_ps / step_s for host in SENDERS.values()},
    )


def completion_s(result: Result, host: str) -> float:
    """Return the time of the last byte at a host, in seconds.

    The last probe interval is assumed to have the rate of the one before.
    """
    times_ps, received = delivered(result)
    column = received[:, result.hosts["name"].to_pylist().index(host)].astype(np.float64)
    busy = np.flatnonzero(column)
    last = int(busy[-1])
    step_s = float(times_ps[0]) / PS_PER_S
    part = min(1.0, column[last] / column[last - 1]) if last else 1.0
    return (last + part) * step_s


@dataclass(frozen=True, slots=True)
class Actions:
    """Times in seconds of changes of the root's Marking_Rate by the DCMS."""

    lowered_s: tuple[float, ...]
    restored_s: tuple[float, ...]


def actions(result: Result) -> Actions:
    """Read from a run's decisions when the Marking_Rate went low and back."""
    log = result.tables["dcms"].to_pylist()
    low = False
    lowered: list[float] = []
    restored: list[float] = []
    for row in log:
        is_low = row["marking_rate"] == 0
        if is_low != low:
            (lowered if is_low else restored).append(row["time_ps"] / PS_PER_S)
        low = is_low
    return Actions(tuple(lowered), tuple(restored))
