"""Every scheme against every other: one fabric, one traffic, the same seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from silvan.baselines import Baseline, Fitting, chosen, fitting
from silvan.errors import SimulationError
from silvan.measures import PS_PER_MS, BoolArray, FloatArray, delivered, is_hotspot, jain_index

if TYPE_CHECKING:
    from silvan import gpcnet
    from silvan.result import Result
    from silvan.scenario import Scenario
    from silvan.toml_text import TomlValue
    from silvan.workers import OnProgress

LOOKS = 100
"""Samples of the congestion trees, and intervals of the series, in a run."""

_STEADY_STATE = 0.5
"""Rates are averaged over this last part of a run."""

_DISSOLVED = 0.1
"""Trees count as dissolved when they hold no more than this part of what they hold at most without
control."""

_RECOVERED = 0.9
"""Victims count as recovered from this part of their best rate under any scheme on."""

_SMOOTH = 5
"""Intervals over which the rate of victims is averaged to find when they have recovered."""

Numbers = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Quantity:
    """Something that schemes are compared by.

    Attributes
    ----------
    name : str
        Its name, with its unit.
    title : str
        Short heading, with its unit.
    better : str
        ``more`` or ``less``.
    digits : int
        Decimal places that are printed.
    """

    name: str
    title: str
    better: str
    digits: int = 2


QUANTITIES: Sequence[Quantity] = (
    Quantity("victims_gbps", "victims\nGbit/s", "more"),
    Quantity("hotspot_utilisation", "hotspot link\nutilisation", "more"),
    Quantity("fairness", "fairness\n(Jain)", "more"),
    Quantity("latency_mean_us", "latency\nmean, us", "less", 1),
    Quantity("latency_p999_us", "latency\n99.9 %, us", "less", 1),
    Quantity("dissolved_ms", "congestion\ncleared\nafter, ms", "less", 1),
    Quantity("recovered_ms", "victims\nrecovered\nafter, ms", "less", 1),
    Quantity("messages", "messages\nper packet", "less", 4),
)
"""What is measured, in the order of tables and figures."""

PROGRAMS = Quantity("programs_ms", "programs\nend, ms", "less", 3)
"""What is measured besides if the scenario runs programs."""


@dataclass(frozen=True, slots=True)
class RankingRow:
    """How one scheme did.

    Attributes
    ----------
    baseline : Baseline
        The scheme.
    numbers : Mapping
        The mean over the seeds of every quantity, by its name: not a number where the scenario has
        no such thing, infinite for what did not come about within the run.
    seeds : int
        Number of runs.
    deviations : Mapping
        The sample standard deviation over the seeds of every quantity: not a number with one seed,
        or where a seed has no finite value.
    failure : str
        Why a run has no result; then no number is one. Empty if all have.
    idle : str
        Why the scheme never acted in any run. Empty if it did in one.
    folders : tuple of Path
        Folders of the results of its runs.
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
    root: Path,
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
    root : Path
        Folder of finished runs; those that are there are not run again.
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
    from silvan.cache import run_folder

    wanted = choose(scenario, schemes, added)
    runs = [
        (of_scheme, scenario.seed + number)
        for of_scheme in (watched(scenario.override(one.overrides)) for one in wanted)
        for number in range(seeds)
    ]
    outcomes = _finish(root, runs, on_progress)
    groups = [outcomes[start : start + seeds] for start in range(0, len(runs), seeds)]
    references = [References.of([group[number] for group in groups]) for number in range(seeds)]
    folders = [run_folder(root, *run) for run in runs]
    return [
        _standing(one, group, references, folders[place * seeds : (place + 1) * seeds])
        for place, (one, group) in enumerate(zip(wanted, groups, strict=True))
    ]


def _finish(
    root: Path, runs: Sequence[tuple[Scenario, int]], on_progress: OnProgress | None
) -> list[Sampled | SimulationError]:
    """Do all runs at once or, if one of them fails, those that are left one after the other."""
    from silvan.cache import cached_runs

    outcomes: dict[int, Sampled | SimulationError] = {}
    try:
        with closing(cached_runs(root, runs, on_progress)) as finished:
            for index, result in finished:
                outcomes[index] = Sampled.at(result)
    except SimulationError:
        # It has stopped the others; which one it was shows when it fails again.
        for index, run in enumerate(runs):
            if index not in outcomes:
                try:
                    ((_, result),) = cached_runs(root, [run])
                    outcomes[index] = Sampled.at(result)
                except SimulationError as error:
                    outcomes[index] = error
    return [outcomes[index] for index in range(len(runs))]


def _standing(
    baseline: Baseline,
    group: Sequence[Sampled | SimulationError],
    references: Sequence[References],
    folders: Sequence[Path],
) -> RankingRow:
    for one in group:
        if isinstance(one, SimulationError):
            nothing = {quantity.name: math.nan for quantity in (*QUANTITIES, PROGRAMS)}
            return RankingRow(baseline, nothing, len(group), nothing, str(one))
    rows = [
        one.numbers(reference)
        for one, reference in zip(group, references, strict=True)
        if isinstance(one, Sampled)
    ]
    reasons = {one.idle for one in group if isinstance(one, Sampled)}
    idle = "" if None in reasons else "; ".join(sorted(filter(None, reasons)))
    return RankingRow(
        baseline, _mean(rows), len(group), _deviations(rows), idle=idle, folders=tuple(folders)
    )


def choose(
    scenario: Scenario, schemes: Sequence[str], added: Mapping[str, TomlValue] | None = None
) -> list[Baseline]:
    """Find the baselines of a comparison: those named, and no control as what they are held to.

    The added scheme in a Python file, or the scenario's own, always takes part.
    """
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


def quantities(ranking: Sequence[RankingRow]) -> list[Quantity]:
    """List what could be measured at all."""
    return measured([row.to_dict() for row in ranking])


def measured(
    rows: Sequence[Mapping[str, Any]], every: Sequence[Quantity] = (*QUANTITIES, PROGRAMS)
) -> list[Quantity]:
    """List what some row has a number of; rows are as :meth:`RankingRow.to_dict` writes them."""
    return [one for one in every if any(row.get(one.name) is not None for row in rows)]


def courses(result: Result) -> dict[tuple[str, str], tuple[FloatArray, FloatArray]]:
    """Return what a comparison draws over time.

    Parameters
    ----------
    result : Result
        A run of a comparison.

    Returns
    -------
    dict
        By name and unit the times in milliseconds, and the values: the mean receive rate of
        victims and of hotspots, and the Port VLs in congestion trees.
    """
    hot, victims = _groups(result)
    times_ps, sums = delivered(result)
    ends = times_ps.astype(np.float64)
    rates = sums.astype(np.float64) * 8e3 / np.diff(ends, prepend=0.0)[:, None]
    found = {
        (f"Receive rate of {name}", "Gbit/s"): (ends / PS_PER_MS, rates[:, hosts].mean(axis=1))
        for name, hosts in (("victims", victims), ("hotspots", hot))
        if hosts.any()
    }
    trees = result.forest["time_ps"].to_numpy() / PS_PER_MS
    ports = result.forest["ports"].to_numpy().astype(np.float64)
    return found | {("Congestion trees", "Port VLs"): (trees, ports)}


def watched(scenario: Scenario) -> Scenario:
    """Return a scenario that keeps what a comparison needs: series, congestion trees, latencies.

    Raises
    ------
    SilvanError
        GPCNeT takes part without the tests that are compared.
    """
    keys = scenario.to_dict()
    if "gpcnet" in keys["traffic"]:
        _gpcnet_tests(scenario)
    duration = scenario.duration_ps
    # An interval must divide the duration and the warm-up.
    common = math.gcd(duration, scenario.warm_up_ps)
    parts = max(1, LOOKS * common // duration)
    while common % parts:
        parts -= 1
    interval = f"{common // parts} ps"
    kept: dict[str, TomlValue] = {"probe.latency": "host"}
    if "gpcnet" in keys["traffic"] or keys["traffic"].get("program"):
        # The run ends with its programs, long before its duration: the scenario says when to look.
        interval = keys["probe"].get("interval", interval)
        # The ends of the programs are compared with those of the other schemes.
        kept["probe.slowdown"] = False
    kept |= {"probe.interval": interval, "probe.trees": {"interval": interval}}
    return scenario.override(kept)


@dataclass(frozen=True, slots=True)
class Sampled:
    """What is kept of a run, so that not all of them are in memory at once.

    Attributes
    ----------
    times_ms : numpy.ndarray of shape (n,)
        Ends of the probe intervals in milliseconds.
    victims_gbps : numpy.ndarray of shape (n,)
        Receive rate of the mean victim in each interval, in Gbit/s.
    tree_ports : numpy.ndarray of shape (n + 1,)
        Port VLs in congestion trees at each sample.
    own : Mapping of str to float
        The quantities that need no other run.
    idle : str, optional
        Why the scheme never acted; None if it did.
    """

    times_ms: FloatArray
    victims_gbps: FloatArray
    tree_ports: FloatArray
    own: Numbers
    idle: str | None = None

    @classmethod
    def at(cls, result: Result) -> Sampled:
        """Measure a run of a scenario that is :func:`watched`."""
        hot, victims = _groups(result)
        times_ps, sums = delivered(result)
        ends = times_ps.astype(np.float64)
        lengths = np.diff(ends, prepend=0.0)[:, None]
        rates = sums.astype(np.float64) * 8e3 / lengths
        by_host = np.full(len(hot), math.nan)
        if ends.size:
            # The last interval ends with the run or before it.
            steady = ends > min(result.summary["simulated_ps"], ends[-1]) * (1 - _STEADY_STATE)
            by_host = rates[steady].mean(axis=0)
        return cls(
            ends / PS_PER_MS,
            rates[:, victims].mean(axis=1) if victims.any() else np.zeros(len(ends)),
            result.forest["ports"].to_numpy().astype(np.float64),
            {
                "victims_gbps": float(by_host[victims].mean()) if victims.any() else math.nan,
                "hotspot_utilisation": float((by_host[hot] / _sink_gbps(result)[hot]).mean())
                if hot.any()
                else math.nan,
                "fairness": _fairness(result, hot, victims),
                **_latency(result, hot),
                "messages": _messages(result),
                "programs_ms": _programs_ms(result),
                **_gpcnet(result),
            },
            result.summary.get("idle_scheme"),
        )

    def numbers(self, references: References) -> Numbers:
        """Give all quantities; those of time need the other schemes' runs."""
        # Programs may end before the first sample.
        is_sampled = self.times_ms.size > 0
        return {
            **self.own,
            "dissolved_ms": self._first(self.tree_ports <= references.tree_ports, self.times_ms)
            if is_sampled and references.tree_ports > 0
            else math.nan,
            "recovered_ms": self._first(
                _smooth(self.victims_gbps) >= references.victims_gbps, self.times_ms
            )
            # Programs pause to compute; their end tells what they lost.
            if is_sampled
            and math.isnan(self.own["programs_ms"])
            and not math.isnan(self.own["victims_gbps"])
            else math.nan,
        }

    def steady_rate(self) -> float:
        """Average the rate of victims over the last part of the run; NaN without a sample."""
        if not self.times_ms.size:
            return math.nan
        steady = self.times_ms > self.times_ms[-1] * (1 - _STEADY_STATE)
        return float(self.victims_gbps[steady].mean())

    @staticmethod
    def _first(holds: BoolArray, times_ms: FloatArray) -> float:
        """Find from when on something holds to the end; infinity if not at the end."""
        times = times_ms[: len(holds)]
        failing = np.flatnonzero(~holds)
        if failing.size == 0:
            return 0.0
        last = int(failing[-1])
        return float(times[last]) if last + 1 < len(holds) else math.inf


@dataclass(frozen=True, slots=True)
class References:
    """What trees and victims of all schemes are held to, for one seed.

    Attributes
    ----------
    tree_ports : float
        Port VLs in trees up to which congestion counts as cleared.
    victims_gbps : float
        Receive rate from which victims count as recovered, in Gbit/s.
    """

    tree_ports: float
    victims_gbps: float

    @classmethod
    def of(cls, runs: Sequence[Sampled | SimulationError]) -> References:
        """Find them among the runs of all schemes, of which the first is without control."""
        without = runs[0]
        if isinstance(without, SimulationError):
            raise without
        rates = [run.steady_rate() for run in runs if isinstance(run, Sampled)]
        return cls(
            _DISSOLVED * float(without.tree_ports.max(initial=0.0)),
            _RECOVERED * max((rate for rate in rates if not math.isnan(rate)), default=math.nan),
        )


def _groups(result: Result) -> tuple[BoolArray, BoolArray]:
    """Tell which hosts are hotspots, and which others receive, or run what is waited for."""
    names = result.hosts["name"].to_pylist()
    traffic = result.scenario.to_dict()["traffic"]
    targets = {entry["to"] for entry in traffic.get("incast", [])}
    ranks = result.tables["ranks"].to_pylist() if "ranks" in result.tables else []
    kinds = {one["name"]: one["kind"] for one in traffic.get("program", [])}
    jobs = result.tables["programs"].to_pylist() if "programs" in result.tables else []
    incasts = {row["job"] for row in jobs if kinds.get(row["name"]) == "incast"}
    # All others of an incast send to rank 0.
    targets |= {names[row["host"]] for row in ranks if row["job"] in incasts and row["rank"] == 0}
    hot = np.array([name in targets for name in names], dtype=np.bool_)
    # Where hotspots move, every host is one in its turn: all count as others.
    if traffic.get("nodes", {}).get("hotspot-lifetime", "unlimited") == "unlimited":
        hot |= is_hotspot(result)
    suffers = result.hosts["delivered_bytes"].to_numpy() > 0
    if jobs:
        # Those of programs that the run waits for; without one, those that run no program.
        waited_for = {row["job"] for row in jobs if not row["background"]} - incasts
        places = np.arange(len(suffers))
        if waited_for:
            own = [row["host"] for row in ranks if row["job"] in waited_for]
            suffers = np.isin(places, own)
        else:
            suffers &= ~np.isin(places, [row["host"] for row in ranks])
    others: BoolArray = ~hot & suffers
    return hot, others


def _sink_gbps(result: Result) -> FloatArray:
    """Compute what each host can take in: the payload rate of its cable, or its sink's rate."""
    scenario = result.scenario
    mtu, header = scenario.packet.mtu.bytes, scenario.packet.header.bytes
    cables = dict(
        zip(*(result.ports[key].to_pylist() for key in ("node", "link_gbps")), strict=True)
    )
    rates = np.array([cables[name] for name in result.hosts["name"].to_pylist()])
    sinks: FloatArray = np.minimum(
        rates * mtu / (mtu + header), scenario.host.sink_rate.bits_per_s / 1e9
    )
    return sinks


def _fairness(result: Result, hot: BoolArray, victims: BoolArray) -> float:
    """Compute Jain's index over what those send that send to hotspots only, or victims receive."""
    roles = np.array([role.removeprefix("hotspot+") for role in result.hosts["role"].to_pylist()])
    contributors = roles == "c"
    if contributors.any():
        return jain_index(result.hosts["injected_bytes"].to_numpy()[contributors])
    received = result.hosts["delivered_bytes"].to_numpy()
    return jain_index(received[victims]) if victims.any() else math.nan


def _latency(result: Result, hot: BoolArray) -> Numbers:
    """Compute the latency of packets to other hosts than hotspots."""
    hosts = result.hosts
    means = hosts["latency_mean_ns"].to_numpy(zero_copy_only=False)
    packets = hosts["delivered_packets"].to_numpy()
    counted = ~hot & (packets > 0)
    if not counted.any():
        return {"latency_mean_us": math.nan, "latency_p999_us": math.nan}
    bins = result.tables["host_latencies"]
    chosen = counted[bins["host"].to_numpy()]
    highest = bins["to_ns"].to_numpy()[chosen]
    order = np.argsort(highest)
    up_to = np.cumsum(bins["packets"].to_numpy()[chosen][order])
    rank = math.ceil(0.999 * int(up_to[-1]))
    largest = np.nanmax(hosts["latency_max_ns"].to_numpy(zero_copy_only=False)[counted])
    return {
        "latency_mean_us": float(np.average(means[counted], weights=packets[counted])) / 1e3,
        "latency_p999_us": min(float(highest[order][np.searchsorted(up_to, rank)]), largest) / 1e3,
    }


def _messages(result: Result) -> float:
    """Count notifications, acknowledgements, grants and management datagrams per data packet."""
    keys = result.scenario.to_dict()["control"]
    packets = sum(result.hosts["delivered_packets"].to_pylist())
    if not packets:
        return math.nan
    count = sum(result.hosts["becn_received"].to_pylist())
    if keys["feedback"]["carrier"] == "ack-per-packet" and keys["scheme"] != "none":
        count = packets
    if "grants_received" in result.hosts.column_names:
        count += sum(result.hosts["grants_received"].to_pylist())
    if "dcms" in result.tables:
        # A sweep reads three counters of every port: two datagrams and their answers.
        interval_ps = result.scenario.control.dcms.interval.ps
        measured = result.scenario.duration_ps - result.scenario.warm_up_ps
        count += 4 * result.ports.num_rows * measured / interval_ps
    return float(count / packets)


def _programs_ms(result: Result) -> float:
    """Find when the last program has ended that the run waits for."""
    table = result.tables.get("programs")
    if table is None:
        return math.nan
    ends = [row["end_ps"] for row in table.to_pylist() if not row["background"]]
    return max(ends) / PS_PER_MS if ends else math.nan


def _gpcnet_tests(scenario: Scenario) -> tuple[gpcnet.Test, gpcnet.Test]:
    """Give the tests that a comparison looks at: latency and bandwidth.

    Asked before the first run, too, so that a scenario without them is refused then.
    """
    from silvan import gpcnet

    return gpcnet.test(scenario, "rr-latency"), gpcnet.test(scenario, "rr-bandwidth-sync")


def _gpcnet(result: Result) -> Numbers:
    """Take the ranks that measure in GPCNeT as the victims, if the scenario has it."""
    if "gpcnet" not in result.scenario.to_dict()["traffic"]:
        return {}
    from silvan import gpcnet

    latency, bandwidth = _gpcnet_tests(result.scenario)
    delays = gpcnet.statistics(result, latency)
    _, rates = gpcnet.values(result, bandwidth)
    mib_to_gbit = 8 * 2**20 / 1e9
    return {
        "victims_gbps": float(rates.mean()) * mib_to_gbit,
        "fairness": jain_index(rates.ravel()),
        "latency_mean_us": delays.mean,
        "latency_p999_us": delays.p999,
    }


def _smooth(values: FloatArray) -> FloatArray:
    """Average over several intervals; the last ones are averages of themselves and those before."""
    width = min(_SMOOTH, len(values))
    kernel = np.ones(width) / width
    return np.convolve(values, kernel, mode="valid")


def _mean(rows: Sequence[Numbers]) -> Numbers:
    return {name: statistics.fmean(row[name] for row in rows) for name in rows[0]}


def _deviations(rows: Sequence[Numbers]) -> Numbers:
    def over_seeds(name: str) -> float:
        values = [row[name] for row in rows]
        if len(values) < 2 or not all(map(math.isfinite, values)):
            return math.nan
        return statistics.stdev(values)

    return {name: over_seeds(name) for name in rows[0]}


def _plain(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return "never" if math.isinf(value) else value
