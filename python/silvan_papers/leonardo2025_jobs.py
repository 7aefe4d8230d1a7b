"""The jobs that were measured on Leonardo, and the scenarios that predict them.

Measurements: CRAB (HLC-Lab, MIT licence), the node map: pico (De Sensi and Pasqualoni 2025, MIT
licence).
"""

from __future__ import annotations

import csv
import functools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING

from silvan.reproduce.experiment import Case

if TYPE_CHECKING:
    from silvan.inputs.toml_text import TomlValue

STUDY = "machine"
SIZES = (8, 64, 512, 4096, 32768, 262144, 2097152, 16777216)

LEAVES_PER_CELL = 18
_RACKS_PER_CELL = 6
RAILS = 2

_AGGRESSOR_BYTES = 2 << 20
# Rate of an adapter pair [bit/s], for lengths of bursts.
_NODE_BPS = 196.5e9
# For a longer pause, the states with and without aggressors are simulated separately.
_LONG_PAUSE_S = 0.005

_WARM_UP_US = 5_000
_WINDOW_US = 5_000.0
_MOST_MESSAGES = 150_000
_LARGE = 4 << 20

_QUICK_JOBS = ("none", "Inc")
_QUICK_SIZES = (64, 32768, 2097152)


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the machine: cell from 1, leaf switch within the cell from 0."""

    name: str
    cell: int
    leaf: int

    @classmethod
    def parse(cls, text: str) -> Node:
        """Read ``node:cell:leaf``. A leaf is numbered by its rack and its place: 0, 2 or 4.

        >>> Node.parse("898:5:30602")
        Node(name='898', cell=5, leaf=16)
        """
        name, cell, leaf = text.split(":")
        rack, place = divmod(int(leaf), 100)
        rack_of_cell = (rack % 100 - 1) % _RACKS_PER_CELL
        return cls(name, int(cell), rack_of_cell * 3 + place // 2)


@dataclass(frozen=True, slots=True)
class LeonardoJob:
    """A job; victims and aggressors are in the order of ranks, the first aggressor receives.

    Pauses and bursts are in seconds; None without pauses.
    """

    name: str
    nodes: int
    victim: str
    aggressor: str
    pause_s: float | None
    burst_s: float | None
    victims: tuple[Node, ...]
    aggressors: tuple[Node, ...]

    @property
    def has_long_pauses(self) -> bool:
        """True if the states with and without aggressors are simulated separately."""
        return self.pause_s is not None and self.pause_s >= _LONG_PAUSE_S

    def mean_us(self, with_us: float, without_us: float) -> float:
        """Combine the mean times of an iteration with and without aggressors.

        Each state has its share of ``burst + pause``, so the rates add up. A burst ends with an
        operation of the aggressors.
        """
        if not self.has_long_pauses:
            return with_us
        assert self.pause_s is not None
        assert self.burst_s is not None
        senders = len(self.aggressors) - 1
        operation = senders * _AGGRESSOR_BYTES * 8 / _NODE_BPS
        burst = math.ceil(self.burst_s / operation) * operation
        return (burst + self.pause_s) / (burst / with_us + self.pause_s / without_us)


@functools.cache
def jobs() -> Mapping[str, LeonardoJob]:
    """Read all jobs, by name."""
    return MappingProxyType({job.name: job for job in map(_job, _rows("jobs.csv"))})


def cells() -> list[dict[str, str]]:
    """Read what was measured on 8, 16 and 32 nodes, a row for each job and size."""
    return list(_rows("cells.csv"))


def _rows(file: str) -> Iterator[dict[str, str]]:
    path = resources.files("silvan_papers").joinpath("studies", "leonardo2025", file)
    yield from csv.DictReader(path.read_text("utf-8").splitlines())


def _job(row: dict[str, str]) -> LeonardoJob:
    name, nodes, experiment, victims, aggressors = row.values()
    victim, *more = experiment.split()
    times = [float(value) for value in more[1:]]
    return LeonardoJob(
        name,
        int(nodes),
        victim,
        more[0].split("-")[0] if more else "none",
        times[0] if times else None,
        times[1] if times else None,
        tuple(map(Node.parse, victims.split())),
        tuple(map(Node.parse, (aggressors if more else "").split())),
    )


def label(job: LeonardoJob, size: int, *, aggressors: bool) -> str:
    """Name a run.

    >>> label(jobs()["2025-12-15_13-35-04-380838"], 64, aggressors=False)
    '2025-12-15_13-35-04-380838, 64 B, quiet'
    """
    return f"{job.name}, {size} B, {'beside' if aggressors else 'quiet'}"


def states(job: LeonardoJob) -> tuple[bool, ...]:
    """Tell in which states a job is simulated: with aggressors, or without."""
    if job.aggressor == "none":
        return (False,)
    return (True, False) if job.has_long_pauses else (True,)


def cases() -> tuple[Case, ...]:
    """Make a run for each job, size and state."""
    return tuple(
        Case(
            label(job, size, aggressors=state),
            STUDY,
            seeds=1,
            overrides=_overrides(job, size, aggressors=state),
            quick=_is_quick(job, size),
        )
        for job in jobs().values()
        for size in SIZES
        for state in states(job)
    )


def _is_quick(job: LeonardoJob, size: int) -> bool:
    is_steady = job.aggressor in _QUICK_JOBS and job.burst_s is None
    return is_steady and job.nodes <= 32 and size in _QUICK_SIZES


def _overrides(job: LeonardoJob, size: int, *, aggressors: bool) -> dict[str, TomlValue]:
    nodes = (*job.victims, *(job.aggressors if aggressors else ()))
    used = sorted({node.cell for node in nodes})
    most = max(Counter((node.cell, node.leaf) for node in nodes).values())
    cells_used = max(len(used), 2)
    ports = RAILS * most
    taken: Counter[int] = Counter()

    def adapters(chosen: tuple[Node, ...]) -> list[TomlValue]:
        names: list[TomlValue] = []
        for node in chosen:
            leaf = used.index(node.cell) * LEAVES_PER_CELL + node.leaf
            first = leaf * ports + taken[leaf] * RAILS
            taken[leaf] += 1
            names += [first + rail for rail in range(RAILS)]
        digits = max(4, len(str(cells_used * LEAVES_PER_CELL * ports - 1)))
        return [f"host-{number:0{digits}}" for number in names]

    is_gather = job.victim == "All-Gather"
    victim: dict[str, TomlValue] = {
        "name": "victim",
        "kind": "allgather" if is_gather else "alltoall",
        "algorithm": "ring" if is_gather else "direct",
        "hosts": adapters(job.victims),
        "rails": RAILS,
        "bytes": f"{size} B",
        "iterations": _iterations(job, size),
        "start": f"{_WARM_UP_US if aggressors else 1} us",
    }
    programs: list[TomlValue] = [victim]
    if aggressors:
        aggressor: dict[str, TomlValue] = {
            "name": "aggressor",
            "kind": "incast" if job.aggressor == "Inc" else "alltoall",
            "algorithm": "direct",
            "hosts": adapters(job.aggressors),
            "rails": RAILS,
            "bytes": f"{_AGGRESSOR_BYTES} B",
            "iterations": "unlimited",
            "background": True,
        }
        if job.burst_s is not None and job.pause_s is not None and not job.has_long_pauses:
            aggressor["burst"] = f"{job.burst_s * 1e6:.0f} us"
            aggressor["pause"] = f"{job.pause_s * 1e6:.0f} us"
        programs.append(aggressor)
    return {
        "fabric.groups": cells_used,
        "fabric.global-per-spine": cells_used - 1,
        "fabric.hosts-per-leaf": ports,
        "traffic.program": programs,
    }


def _iterations(job: LeonardoJob, size: int) -> int:
    ranks = len(job.victims)
    if size > _LARGE and job.victim == "All-to-All" and ranks > 16:
        return 1
    wanted = max(_WINDOW_US / _quiet_us(job, size), 2 if size > _LARGE else 4)
    return int(min(wanted, max(20, _MOST_MESSAGES // (ranks * (ranks - 1)))))


def _quiet_us(job: LeonardoJob, size: int) -> float:
    steps = len(job.victims) - 1
    if job.victim == "All-Gather":
        part = size / len(job.victims)
        return steps * (2 + part * 8e6 / 190e9 + (4 if part > 512 else 0))
    return 2 + steps * (0.3 + size * 8e6 / (190e9 if size > 100_000 else 97e9))
