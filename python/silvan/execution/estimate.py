"""The size of runs before they start."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from silvan.errors import SilvanError
from silvan.execution.processes import cores
from silvan.inputs.scenario import Scenario
from silvan.inputs.wording import duration
from silvan.interruptible import interruptible

HOPS_PER_S = 10e6
RUN_S = 0.02
REPORT_BYTES = 6e3
MOST_RUNS = 10_000
MOST_S = 24 * 3600.0

_HINT = "--yes starts it all the same; choose fewer hosts, samples, flows or seeds"


@dataclass(frozen=True, slots=True)
class Estimate:
    """Resources of runs: packet-hops of a run, bytes of its process, and concurrent processes."""

    packet_hops: float
    run_bytes: float
    runs: int = 1
    at_once: int = 1

    @property
    def seconds(self) -> float:
        """Time on the wall clock, at :data:`HOPS_PER_S` for each core."""
        return self.runs * (RUN_S + self.packet_hops / HOPS_PER_S) / self.at_once

    @property
    def memory_bytes(self) -> float:
        """Memory of all processes."""
        return self.at_once * self.run_bytes + self.runs * REPORT_BYTES

    def __str__(self) -> str:
        hops = f"{_short(self.packet_hops)} packet-hops"
        sizes = hops if self.runs == 1 else f"{self.runs:,} runs of {hops} each"
        return (
            f"{sizes}, {_short(self.memory_bytes, 'B')} of memory, about {duration(self.seconds)} "
            f"at {_short(HOPS_PER_S)} packet-hops/s a core"
        )


def estimate(scenario: Scenario, runs: int = 1) -> Estimate:
    """Estimate the size of runs of a scenario.

    Packet-hops are what the sources send, as far as the receivers take it, over routes of mean
    length; memory is that of ports, hosts, tables, flows and samples.

    >>> import silvan
    >>> from silvan.execution.estimate import estimate
    >>> scenario = silvan.Scenario(
    ...     fabric={"generator": "single-switch", "hosts": 2},
    ...     packet={"mtu": "2 KiB"},
    ...     traffic={"flow": [{"from": "host-0000", "to": "host-0001", "bytes": "2 MiB"}]},
    ... )
    >>> estimate(scenario).packet_hops
    2048.0
    """
    packet_hops, memory = interruptible(lambda: scenario._native.estimate(scenario.seed))
    return Estimate(packet_hops, memory, runs, min(runs, cores()))


def estimate_all(runs: Sequence[tuple[Scenario, int]], workers: int | None = None) -> Estimate:
    """Estimate runs of several scenarios: the mean of packet-hops, and the largest memory."""
    sizes = [estimate(scenario, count) for scenario, count in runs]
    count = sum(size.runs for size in sizes)
    return Estimate(
        sum(size.runs * size.packet_hops for size in sizes) / max(count, 1),
        max(size.run_bytes for size in sizes),
        count,
        max(1, min(count, workers or cores())),
    )


def memory_available() -> float:
    """Give the memory that new processes can have, in bytes."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        fields = dict(line.split(":", 1) for line in lines)
        return float(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def require_room(size: Estimate, *, is_wanted: bool, memory: float | None = None) -> None:
    """Refuse runs that exceed the memory or take very long, unless wanted."""
    if is_wanted:
        return
    there = memory_available() if memory is None else memory
    if size.memory_bytes > there:
        raise SilvanError(
            f"estimated memory: {_short(size.memory_bytes, 'B')}; "
            f"{_short(there, 'B')} are available",
            hint=_HINT,
        )
    require_count(size.runs, is_wanted=False)
    if size.seconds > MOST_S:
        raise SilvanError(f"estimated time: {duration(size.seconds)}", hint=_HINT)


def require_count(runs: int, *, is_wanted: bool) -> None:
    """Refuse more than :data:`MOST_RUNS` runs before reading them, unless wanted."""
    if runs > MOST_RUNS and not is_wanted:
        raise SilvanError(f"{runs:,} runs; more than {MOST_RUNS:,} need --yes", hint=_HINT)


def _short(number: float, unit: str = "") -> str:
    """Write a number with three digits and a prefix.

    >>> _short(950), _short(1234567), _short(5.2e12, "B")
    ('950', '1.23 M', '5.2 TB')
    """
    steps = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (0.0, ""))
    factor, prefix = next(step for step in steps if number >= step[0])
    return f"{number / (factor or 1.0):.3g} {prefix}{unit}".rstrip()
