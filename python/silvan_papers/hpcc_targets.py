"""The targets of gran2010's table of the HPC Challenge benchmark."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources.abc import Traversable

from silvan.reproduce.targets import Target

# The rows of gran2010's table by the ends of their names.
_UNITS = {"_ms": "ms", "_MBps": "MB/s", "_GBps": "GB/s", "_gflops": "Gflop/s", "_gups": "GUP/s"}
# Rows that measure the network alone, whose values without congestion are targets too; and those to
# which the model of the hosts was fitted.
_NETWORK = ("latency", "bw")
_FITTED = ("min_pingpong_latency", "max_pingpong_latency", "min_pingpong_bw", "max_pingpong_bw")
# The tolerances are ours. With congestion control nearly all ratios lie within 5 % of 1, so a wider
# one would accept a simulation in which nothing happens.
_TOLERANCES = {"no_congestion": 0.25, "cc_off": 0.25, "cc_on": 0.05}


def hpcc_targets(file: Traversable) -> dict[str, Target]:
    """Read the table ``[hpcc]`` of a file of targets, and derive a target from each value."""
    table = tomllib.loads(file.read_text("utf-8"))["hpcc"]
    return {target.id: target for target in _derived(table)}


def _derived(table: Mapping[str, Sequence[float]]) -> Iterator[Target]:
    """Derive targets from a table of absolute values of one cluster.

    What must hold on another cluster is what congestion does to them, so each value with
    congestion becomes a ratio to the one without.
    """
    for key, (alone, off, on) in table.items():
        if key == "columns":
            continue
        unit = next(unit for end, unit in _UNITS.items() if key.endswith(end))
        name = key.rpartition("_")[0].removeprefix("mpi_")
        words = name.replace("_", " ").replace("bw", "bandwidth")
        if name.endswith(_NETWORK):
            yield Target(
                f"hpcc.{name}.no_congestion",
                f"{words} without congestion, {unit}",
                alone,
                _TOLERANCES["no_congestion"],
                calibrate=name in _FITTED,
            )
        for column, control, value in (("cc_off", "off", off), ("cc_on", "on", on)):
            yield Target(
                f"hpcc.{name}.{column}",
                f"{words} with congestion and CC {control}, over that without",
                value / alone,
                _TOLERANCES[column],
            )
