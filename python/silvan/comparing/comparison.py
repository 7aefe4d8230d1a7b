"""Every scheme against every other: one fabric, one traffic, the same seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from silvan.comparing.baselines import Baseline, Fitting, chosen, fitting
from silvan.errors import SimulationError
from silvan.results.measures import CLEARED, OF_COMPARISONS, Measure
from silvan.results.receive_rates import PS_PER_MS, FloatArray, delivered, hotspots, other_receivers
from silvan.scratch import scratch_folder

if TYPE_CHECKING:
    from silvan.execution.workers import OnProgress
    from silvan.inputs.scenario import Scenario
    from silvan.inputs.toml_text import TomlValue
    from silvan.results.result import Result

LOOKS = 100

_CLEARED_SHARE = 0.1
"""Congestion is cleared at this part of the most Port VLs in trees without control."""

_SMOOTH = 5

Numbers = Mapping[str, float]

COMPARED: Sequence[Measure] = tuple(
    OF_COMPARISONS[name]
    for name in (
        "other_receivers_gbps",
        "hotspot_utilisation",
        "fairness",
        "gpcnet_rank_gbps",
        "gpcnet_latency_mean_us",
        "gpcnet_latency_p999_us",
        "programs_end_ms",
        "flows_end_ms",
        "slowdown_mean",
        "slowdown_p99",
        "other_latency_mean_us",
        "other_latency_p999_us",
        "cleared_ms",
        "queued_max_mb",
        "control_packets",
    )
)


@dataclass(frozen=True, slots=True)
class RankingRow:
    """Results of one scheme.

    ``numbers`` are means over the seeds: not a number if missing, infinite if an event did not
    occur. ``deviations`` are sample standard deviations. ``failure`` and ``idle`` are reasons for
    no result, and for a scheme that never acted.
    """

    baseline: Baseline
    numbers: Numbers
    seeds: int
    deviations: Numbers
    failure: str = ""
    idle: str = ""
    folders: tuple[Path, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Give plain values, for JSON; what is not finite is a text or null."""
        return {
            "scheme": self.baseline.name,
            "settings": self.baseline.summary,
            **{name: _plain(value) for name, value in self.numbers.items()},
            "standard_deviations": {name: _plain(value) for name, value in self.deviations.items()},
            "switch_bytes_per_port_vl": self.baseline.cost.switch_bytes,
            "host_bytes": self.baseline.cost.host_bytes,
            "flow_bytes": self.baseline.cost.flow_bytes,
            "message_kinds": self.baseline.cost.messages,
            "seeds": self.seeds,
            "failure": self.failure or None,
            "idle": self.idle or None,
        }


def compare(
    scenario: Scenario,
    schemes: Sequence[str] = (),
    *,
    seeds: int = 1,
    out: str | Path | None = None,
    added: Mapping[str, TomlValue] | None = None,
    on_progress: OnProgress | None = None,
) -> list[RankingRow]:
    """Run a scenario with every scheme, and measure what they are compared by.

    Parameters
    ----------
    scenario : Scenario
        Fabric and traffic; what it says about congestion control is the background of the settings
        of every scheme.
    schemes : sequence of str
        Names of baselines; by default all. No control is always among them.
    seeds : int
        Runs of each, with consecutive seeds from the scenario's on.
    out : str or Path, optional
        Folder of finished runs; those that are there are not run again. Without one, nothing is
        kept.
    added : Mapping, optional
        Keys of a scheme in a Python file that takes part. The scenarios of the other schemes do not
        have them.
    on_progress : callable, optional
        Called with the index of a run that is going on, and its progress.

    Returns
    -------
    list of RankingRow
        One for each scheme, in the order of the baselines.

    Raises
    ------
    SilvanError
        There is no such scheme.
    SimulationError
        A run without control has no result. One of another scheme is told by its entry.
    """
    from silvan.execution.cache import run_folder

    wanted = choose(scenario, schemes, added)
    runs = [
        (of_scheme, scenario.seed + number)
        for of_scheme in (with_probes(scenario.override(one.overrides)) for one in wanted)
        for number in range(seeds)
    ]
    with ExitStack() as stack:
        kept = out
        if kept is None:
            kept = stack.enter_context(scratch_folder("compare"))
        outcomes = _finish(Path(kept), runs, on_progress)
    groups = [outcomes[start : start + seeds] for start in range(0, len(runs), seeds)]
    without = [_required(one) for one in groups[0]]
    folders = [] if out is None else [run_folder(Path(out), *run) for run in runs]
    return [
        _row(one, group, without, folders[place * seeds : (place + 1) * seeds])
        for place, (one, group) in enumerate(zip(wanted, groups, strict=True))
    ]


def _required(outcome: Sampled | SimulationError) -> Sampled:
    if isinstance(outcome, SimulationError):
        raise outcome
    return outcome


def _finish(
    root: Path, runs: Sequence[tuple[Scenario, int]], on_progress: OnProgress | None
) -> list[Sampled | SimulationError]:
    from silvan.execution.cache import cached_runs

    outcomes: dict[int, Sampled | SimulationError] = {}
    try:
        with closing(cached_runs(root, runs, on_progress)) as finished:
            for index, result in finished:
                outcomes[index] = Sampled.at(result)
    except SimulationError:
        # A failed run has stopped the others; it fails again.
        for index, run in enumerate(runs):
            if index not in outcomes:
                try:
                    ((_, result),) = cached_runs(root, [run])
                    outcomes[index] = Sampled.at(result)
                except SimulationError as error:
                    outcomes[index] = error
    return [outcomes[index] for index in range(len(runs))]


def _row(
    baseline: Baseline,
    group: Sequence[Sampled | SimulationError],
    without: Sequence[Sampled],
    folders: Sequence[Path],
) -> RankingRow:
    for one in group:
        if isinstance(one, SimulationError):
            nothing = dict.fromkeys(_NAMES, math.nan)
            return RankingRow(baseline, nothing, len(group), nothing, str(one))
    rows = [
        one.numbers(off)
        for one, off in zip(group, without, strict=True)
        if isinstance(one, Sampled)
    ]
    reasons = {one.idle for one in group if isinstance(one, Sampled)}
    idle = "" if None in reasons else "; ".join(sorted(filter(None, reasons)))
    return RankingRow(
        baseline,
        {name: statistics.fmean(row[name] for row in rows) for name in _NAMES},
        len(group),
        {name: _deviation([row[name] for row in rows]) for name in _NAMES},
        idle=idle,
        folders=tuple(folders),
    )


def choose(
    scenario: Scenario, schemes: Sequence[str], added: Mapping[str, TomlValue] | None = None
) -> list[Baseline]:
    """Find the named baselines, no control, and the scheme in a Python file."""
    has_python = bool(added) or scenario.has_python_scheme
    return choose_among(scenario, fitting(scenario, added), schemes, has_python=has_python)


def choose_among(
    scenario: Scenario, fits: Fitting, schemes: Sequence[str], *, has_python: bool
) -> list[Baseline]:
    """Find the baselines of a comparison among those that suit a scenario."""
    every = fits.every
    if not schemes:
        return list(every)
    named = chosen(scenario, fits, schemes)
    always = [every[0], *(every[-1:] if has_python else [])]
    ordered = [one for one in every if one in [*named, *always]]
    return [*ordered, *(one for one in named if one not in ordered)]


def without_effect(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """List schemes that never acted, and schemes with the numbers of no control nevertheless."""
    names = [one.name for one in COMPARED if one.name != "control_packets"]
    none = [rows[0].get(name) for name in names]
    said = []
    for row in rows[1:]:
        if row.get("idle"):
            said.append(f"{row['scheme']} never acted: {row['idle']}")
        elif not row["failure"] and [row.get(name) for name in names] == none:
            said.append(f"{row['scheme']} acted without effect: its numbers are those of none")
    return said


def compared(rows: Sequence[Mapping[str, Any]]) -> list[Measure]:
    """List the measures of a comparison that some row has."""
    return [one for one in COMPARED if any(row.get(one.name) is not None for row in rows)]


def courses(result: Result) -> dict[tuple[str, str], tuple[FloatArray, FloatArray]]:
    """Return receive rates and Port VLs in trees over time (ms), by name and unit."""
    times_ps, sums = delivered(result)
    ends = times_ps.astype(np.float64)
    rates = sums.astype(np.float64) * 8e3 / np.diff(ends, prepend=0.0)[:, None]
    found = {
        (f"Receive rate of {name}", "Gbit/s"): (ends / PS_PER_MS, rates[:, hosts].mean(axis=1))
        for name, hosts in (
            ("other receivers", other_receivers(result)),
            ("hotspots", hotspots(result)),
        )
        if hosts.any()
    }
    trees = result.forest["time_ps"].to_numpy() / PS_PER_MS
    ports = result.forest["ports"].to_numpy().astype(np.float64)
    return found | {("Congestion trees", "Port VLs"): (trees, ports)}


def with_probes(scenario: Scenario) -> Scenario:
    """Return a scenario that keeps what a comparison needs: series, congestion trees, latencies."""
    keys = scenario.to_dict()
    duration = scenario.duration_ps
    # An interval must divide the duration and the warm-up.
    common = math.gcd(duration, scenario.warm_up_ps)
    parts = max(1, LOOKS * common // duration)
    while common % parts:
        parts -= 1
    interval = f"{common // parts} ps"
    kept: dict[str, TomlValue] = {"probe.latency": "host"}
    if "gpcnet" in keys["traffic"] or keys["traffic"].get("program"):
        # Programs end long before the duration: the scenario states the interval.
        interval = keys["probe"].get("interval", interval)
        kept["probe.slowdown"] = False
    kept |= {"probe.interval": interval, "probe.trees": {"interval": interval}}
    return scenario.override(kept)


@dataclass(frozen=True, slots=True)
class Sampled:
    """Stored part of a run, because results of all runs would fill the memory."""

    times_ms: FloatArray
    tree_ports: FloatArray
    own: Numbers
    idle: str | None = None

    @classmethod
    def at(cls, result: Result) -> Sampled:
        """Measure a run of a scenario that :func:`with_probes` changed."""
        forest = result.forest
        return cls(
            forest["time_ps"].to_numpy() / PS_PER_MS,
            forest["ports"].to_numpy().astype(np.float64),
            result.measures,
            result.summary.get("idle_scheme"),
        )

    def numbers(self, without: Sampled) -> dict[str, float]:
        """Return all measures by name; `without` is the run without control."""
        found = dict.fromkeys(_NAMES, math.nan) | dict(self.own)
        most = float(without.tree_ports.max(initial=0))
        if most and self.tree_ports.size:
            found[CLEARED.name] = self._cleared_ms(_CLEARED_SHARE * most)
        return found

    def _cleared_ms(self, most: float) -> float:
        width = min(_SMOOTH, len(self.tree_ports))
        smooth = np.convolve(self.tree_ports, np.ones(width) / width, mode="valid")
        failing = np.flatnonzero(smooth > most)
        if failing.size == 0:
            return 0.0
        last = int(failing[-1])
        return float(self.times_ms[last + 1]) if last + 1 < len(smooth) else math.inf


_NAMES = tuple(OF_COMPARISONS)


def _deviation(values: Sequence[float]) -> float:
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return math.nan
    return statistics.stdev(values)


def _plain(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return "never" if math.isinf(value) else value
