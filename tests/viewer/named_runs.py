"""A scenario with names that CSV must quote, and values of its results that pages show."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

import silvan

SCENARIO = r"""
name = "names"

[fabric]
routing = "min-hop"
switch = [{ name = "s", ports = 3 }, { name = "t", ports = 5 }]
host = [
    { name = "c" }, { name = "d" }, { name = "e" }, { name = "f" },
    { name = "a, \"b\"\n=cmd()" }, { name = "=cmd()|' /C calc'!A0" },
]
cable = [
    { from = "s:3", to = "t:5", speed = "EDR" },
    { from = "a, \"b\"\n=cmd()", to = "s:1" },
    { from = "=cmd()|' /C calc'!A0", to = "s:2", speed = "EDR" },
    { from = "c", to = "t:1" },
    { from = "d", to = "t:2" },
    { from = "e", to = "t:3" },
    { from = "f", to = "t:4", speed = "FDR" },
]

[link]
speed = "DDR"

[switch]
buffer = "64 KiB"

[host]
receive-buffer = "16 KiB"

[packet]
mtu = "2 KiB"

[[traffic.incast]]
name = "in, \"cast\"\n"
to = "a, \"b\"\n=cmd()"
from = ["c", "d", "e"]
start = "30 us"

[[traffic.flow]]
from = "f"
to = "=cmd()|' /C calc'!A0"
bytes = "64 KiB"

[[traffic.flow]]
from = "d"
to = "=cmd()|' /C calc'!A0"
bytes = "1 MiB"

[[traffic.sequence]]
from = "f"
to = ["=cmd()|' /C calc'!A0"]
message = "3 KiB"
iterations = 5

[[traffic.program]]
name = "=job, \"x\""
kind = "allreduce"
hosts = ["c", "d", "=cmd()|' /C calc'!A0"]
bytes = "10 kB"
compute = "3 us"
iterations = 2
background = true

[[traffic.program]]
name = "endless"
kind = "allreduce"
hosts = ["e", "f"]
bytes = "4 kB"
iterations = "unlimited"
background = true

[control]
scheme = "timely"

[control.timely]
delta = "10 Mbit/s"
min-rate = "10 Mbit/s"
min-rtt = "20 us"
t-low = "50 us"
t-high = "500 us"

[probe]
interval = "20 us"
ports = true
classes = true
latency = "host"
flow-limits = true
trees = { interval = "20 us", threshold = "8 KiB" }

[run]
warm-up = "20 us"
duration = "400 us"
"""
INTERVAL_PS = 20e6
WARM_UP_PS = 20e6
END_PS = 400e6
HOST = 'a, "b"\n=cmd()'
Table = list[dict[str, Any]]


def port_names(result: silvan.Result) -> list[str]:
    """Name the ports as pages do."""
    return [f"{port['node']}:{port['port']}" for port in result.ports.to_pylist()]


def series(result: silvan.Result, column: str, name: str = "port_series") -> npt.NDArray[Any]:
    """Lay a series out by sample."""
    values: npt.NDArray[Any] = result.tables[name][column].to_numpy()
    return values.astype(float).reshape(20, -1)


def gbps(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return bytes of an interval as rates."""
    return np.asarray(values * 8 * 1000 / INTERVAL_PS)


def wait_ns(result: silvan.Result) -> npt.NDArray[Any]:
    """Return what ports wait in whole nanoseconds, whose sums are less than 1 ns too small."""
    whole_ns = np.cumsum(result.tables["port_series"]["xmit_wait_ps"].to_numpy().reshape(20, -1), 0)
    return np.diff((whole_ns // 1000).astype(float), axis=0, prepend=0)


def cdf(rows: Table, most_ns: float) -> dict[float, float]:
    """Return the percentage of packets by the largest latency of their interval in microseconds."""
    counts: dict[int, float] = {}
    ends: dict[int, float] = {}
    for row in rows:
        counts[row["from_ns"]] = counts.get(row["from_ns"], 0) + row["packets"]
        # An interval holds whole nanoseconds.
        ends[row["from_ns"]] = most_ns if row["to_ns"] + 1 > most_ns else row["to_ns"]
    total = sum(counts.values())
    shares = {(min(counts) - 1) / 1e3: 0.0}
    below = 0.0
    for start in sorted(counts):
        below += counts[start]
        shares[ends[start] / 1e3] = 100 * below / total
    return shares


def largest_ns(result: silvan.Result) -> float:
    """Return the largest latency of a packet."""
    return float(pc.max(result.hosts["latency_max_ns"]).as_py())


def rows_within(rows: Table, first_ps: float, last_ps: float) -> Table:
    """Return the rows of samples in a window, whose start is not part of it."""
    return [row for row in rows if first_ps < row["time_ps"] <= last_ps]
