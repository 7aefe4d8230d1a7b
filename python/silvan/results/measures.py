"""The measures of a run: name, unit and definition of each, and its value in a result.

Commands, sweeps, searches, comparisons, reports and ``result.measures`` take them from here.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal

import numpy as np

from silvan.errors import ScenarioError, shown
from silvan.results.receive_rates import (
    PS_PER_MS,
    BoolArray,
    FloatArray,
    hotspots,
    jain_index,
    measured_ps,
    other_receivers,
)

if TYPE_CHECKING:
    from silvan.results.result import Result

PS_PER_US = 1_000_000

_NARROW = 12

Values = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Measure:
    """A number that describes a run.

    Attributes
    ----------
    name : str
        Its name in formulas, columns and Python; it ends with the unit.
    heading : str
        Short name for tables and axes, without the unit.
    unit : str
        Unit; empty for ratios and counts.
    definition : str
        Sentence that defines it.
    better : str
        ``"more"``, ``"less"``, or empty where neither is better.
    digits : int
        Decimal places that tables show.
    is_whole : bool
        True for counts.
    """

    name: str
    heading: str
    unit: str
    definition: str
    better: Literal["more", "less", ""] = ""
    digits: int = 2
    is_whole: bool = False

    @property
    def title(self) -> str:
        """Heading with the unit."""
        return f"{self.heading}, {self.unit}" if self.unit else self.heading


@dataclass(frozen=True, slots=True)
class Group:
    """Measures that are computed together by ``compute``; ``basis`` holds for all of them."""

    title: str
    basis: str
    measures: tuple[Measure, ...]
    compute: Callable[[Result], Values]


def _rates(result: Result) -> Values:
    rates = result.hosts["delivered_bytes"].to_numpy().astype(np.float64) * 8e3
    rates /= measured_ps(result)
    hot, others = hotspots(result), other_receivers(result)
    found = {"total_gbps": float(rates.sum())}
    if others.any():
        found["other_receivers_gbps"] = float(rates[others].mean())
    if hot.any():
        found["hotspots_gbps"] = float(rates[hot].mean())
        found["hotspot_utilisation"] = float((rates[hot] / _sink_gbps(result)[hot]).mean())
    fairness = _fairness(result, others)
    return found if math.isnan(fairness) else {**found, "fairness": fairness}


def _sink_gbps(result: Result) -> FloatArray:
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


def _fairness(result: Result, others: BoolArray) -> float:
    roles = np.array([role.removeprefix("hotspot+") for role in result.hosts["role"].to_pylist()])
    contributors = roles == "c"
    if contributors.any():
        return jain_index(result.hosts["injected_bytes"].to_numpy()[contributors])
    return jain_index(result.hosts["delivered_bytes"].to_numpy()[others])


def _flows(result: Result) -> Values:
    table = result.tables.get("flows")
    if table is None:
        return {}
    import pyarrow.compute as pc

    table = table.filter(pc.and_(table["measured"], pc.greater(table["bytes"], 0)))
    if not table.num_rows:
        return {}
    finished = table["finished"].to_numpy(zero_copy_only=False).astype(bool)
    ends = table["end_ps"].to_numpy(zero_copy_only=False).astype(np.float64)
    completion = table["completion_ps"].to_numpy(zero_copy_only=False).astype(np.float64)
    slowdown = table["slowdown"].to_numpy(zero_copy_only=False).astype(np.float64)
    # A slowdown needs the flow's time on an empty fabric.
    is_known = ~finished | np.isfinite(slowdown)
    return {
        "flows_finished": float(finished.mean()),
        "flows_end_ms": float(ends.max()) / PS_PER_MS if finished.all() else math.inf,
        **_statistics("fct", "_us", completion / PS_PER_US, finished),
        **_statistics("slowdown", "", slowdown[is_known], finished[is_known]),
    }


def _statistics(name: str, unit: str, values: FloatArray, finished: BoolArray) -> Values:
    if not finished.any():
        return {}
    every = np.sort(np.where(finished, values, np.inf))
    return {
        f"{name}_mean{unit}": float(values[finished].mean()),
        **{f"{name}_p{text}{unit}": percentile(every, share) for text, share in _SHARES},
        f"{name}_max{unit}": float(every[-1]),
    }


_SHARES = (("50", 0.5), ("99", 0.99), ("999", 0.999))


def percentile(ordered: FloatArray, share: float) -> float:
    """Interpolate a percentile between the nearest ranks, as numpy does; infinity counts.

    Examples
    --------
    >>> percentile(np.array([1.0, 3.0]), 0.5), percentile(np.array([1.0, np.inf]), 0.5)
    (2.0, inf)
    """
    rank = share * (len(ordered) - 1)
    below, part = int(rank), rank - int(rank)
    if part == 0 or math.isinf(ordered[below]):
        return float(ordered[below])
    return float(ordered[below] + (ordered[below + 1] - ordered[below]) * part)


def _latency(result: Result) -> Values:
    latency = result.summary.get("latency")
    found: dict[str, float] = {}
    if latency is not None:
        for name in ("mean", "p50", "p99", "p999", "max"):
            found[f"latency_{name}_us"] = latency[f"{name}_ns"] / 1e3
    hosts = result.hosts
    if "host_latencies" not in result.tables:
        return found
    means = hosts["latency_mean_ns"].to_numpy(zero_copy_only=False)
    packets = hosts["delivered_packets"].to_numpy()
    counted = ~hotspots(result) & (packets > 0)
    if not counted.any():
        return found
    found["other_latency_mean_us"] = (
        float(np.average(means[counted], weights=packets[counted])) / 1e3
    )
    bins = result.tables["host_latencies"]
    chosen = counted[bins["host"].to_numpy()]
    highest = bins["to_ns"].to_numpy()[chosen]
    order = np.argsort(highest)
    up_to = np.cumsum(bins["packets"].to_numpy()[chosen][order])
    largest = float(np.nanmax(hosts["latency_max_ns"].to_numpy(zero_copy_only=False)[counted]))
    for text, share in _SHARES:
        rank = math.ceil(share * int(up_to[-1]))
        reached = float(highest[order][np.searchsorted(up_to, rank)])
        found[f"other_latency_p{text}_us"] = min(reached, largest) / 1e3
    return found


def _deliveries(result: Result) -> Values:
    classes, hosts = result.classes, result.hosts
    packets = int(classes["delivered_packets"].to_numpy().sum())
    marked = int(classes["marked_packets"].to_numpy().sum())
    found = {
        "delivered_bytes": int(classes["delivered_bytes"].to_numpy().sum()),
        "delivered_packets": packets,
        "marked_packets": marked,
    }
    for name in ("retries", "resent_bytes", "failed_connections"):
        if name in hosts.column_names:
            found[name] = int(hosts[name].to_numpy().sum())
    if not packets:
        return found
    return {
        **found,
        "marked_share": marked / packets,
        "control_packets": _control_packets(result)
        / int(hosts["delivered_packets"].to_numpy().sum()),
    }


def _control_packets(result: Result) -> float:
    hosts = result.hosts
    keys = result.scenario.to_dict()["control"]
    if keys["feedback"]["carrier"] == "ack-per-packet" and keys["scheme"] != "none":
        count = float(hosts["delivered_packets"].to_numpy().sum())
    else:
        count = float(hosts["becn_received"].to_numpy().sum())
    if "grants_received" in hosts.column_names:
        count += float(hosts["grants_received"].to_numpy().sum())
    if "dcms" in result.tables:
        # A sweep reads three counters of every port: two datagrams and their answers.
        span_ps = int(result.summary["simulated_ps"]) - result.scenario.warm_up_ps
        count += 4 * result.ports.num_rows * span_ps / result.scenario.control.dcms.interval.ps
    return count


def _links(result: Result) -> Values:
    ports = result.ports
    hosts = set(result.hosts["name"].to_pylist())
    is_switch = np.array([node not in hosts for node in ports["node"].to_pylist()], dtype=np.bool_)
    if not is_switch.any():
        return {}
    span_ps = measured_ps(result)
    sent = ports["xmit_bytes"].to_numpy().astype(np.float64) * 8e3 / span_ps
    used = (sent / ports["link_gbps"].to_numpy())[is_switch]
    waited = ports["xmit_wait_ps"].to_numpy().astype(np.float64)
    found = {
        "link_utilisation_mean": float(used.mean()),
        "link_utilisation_max": float(used.max()),
        "wait_share": float(waited.mean()) / span_ps,
    }
    if "xmit_paused_ps" in ports.column_names:
        found["pause_frames"] = int(ports["pause_sent"].to_numpy().sum())
        found["paused_share"] = float(ports["xmit_paused_ps"].to_numpy().mean()) / span_ps
    return found


def _queues(result: Result) -> Values:
    forest = result.tables.get("forest")
    if forest is None or not forest.num_rows:
        return {}
    counted = forest["time_ps"].to_numpy() > result.scenario.warm_up_ps
    if not counted.any():
        return {}
    waiting = forest["waiting_bytes"].to_numpy()[counted] / 1e6
    ports = forest["ports"].to_numpy()[counted]
    return {
        "queued_mean_mb": float(waiting.mean()),
        "queued_max_mb": float(waiting.max()),
        "tree_ports_mean": float(ports.mean()),
        "tree_ports_max": int(ports.max()),
    }


def _programs(result: Result) -> Values:
    table = result.tables.get("programs")
    if table is None:
        return {}
    rows = [row for row in table.to_pylist() if not row["background"]]
    ends = [row["end_ps"] for row in rows if row["end_ps"] is not None]
    found = {"programs_end_ms": max(ends) / PS_PER_MS} if ends else {}
    for name, column, scale in (
        ("program_slowdown", "slowdown", 1),
        ("iteration_mean_ms", "iteration_mean_ps", PS_PER_MS),
        ("exposed_share", "exposed_share", 1),
    ):
        values = [row[column] / scale for row in rows if row[column] is not None]
        if values:
            found[name] = max(values)
    for name in ("algbw_gb_per_s", "busbw_gb_per_s"):
        values = [row[name] for row in rows if row[name] is not None]
        if values:
            found[name] = min(values)
    return found


def _gpcnet(result: Result) -> Values:
    if "gpcnet" not in result.scenario.to_dict()["traffic"]:
        return {}
    from silvan.results import gpcnet

    chosen = {one.label: one for one in gpcnet.tests(result.scenario)}
    found: dict[str, float] = {}
    if "rr-latency" in chosen:
        delays = gpcnet.statistics(result, chosen["rr-latency"])
        found |= {"gpcnet_latency_mean_us": delays.mean, "gpcnet_latency_p999_us": delays.p999}
    if "rr-bandwidth-sync" in chosen:
        _, rates = gpcnet.values(result, chosen["rr-bandwidth-sync"])
        found["gpcnet_rank_gbps"] = float(rates.mean()) * 8 * 2**20 / 1e9
    return found


def _run(result: Result) -> Values:
    return {name: result.summary[name] for name in ("simulated_ps", "packet_hops", "events")}


def _percentiles(
    name: str, heading: str, unit: str, of: str, digits: int = 2
) -> tuple[Measure, ...]:
    end = {"µs": "_us"}.get(unit, "")
    texts = [
        ("mean", "mean", f"Mean {of}."),
        ("p50", "p50", f"Median {of}."),
        ("p99", "p99", f"99th percentile of the {of}."),
        ("p999", "p99.9", f"99.9th percentile of the {of}."),
        ("max", "max", f"Largest {of}."),
    ]
    return tuple(
        Measure(f"{name}_{short}{end}", f"{heading} {words}", unit, definition, "less", digits)
        for short, words, definition in texts
    )


_OF_OTHERS = _percentiles(
    "other_latency", "other latency", "µs", "latency of packets to hosts that are no hotspots", 1
)

GROUPS: tuple[Group, ...] = (
    Group(
        "Receive rates",
        "Payload from the warm-up to the end of the run. If all traffic consists of flows, "
        "sequences and programs that end before, up to the last of these ends. Hotspots are hosts "
        "with the role `hotspot`, unless hotspots move, and the roots of programs of the kind "
        "`incast`. Other receivers are all other hosts that some traffic is sent to. If the run "
        "waits for programs, hosts that only run incasts or programs in the background do not "
        "count.",
        (
            Measure("hotspots_gbps", "hotspots", "Gbit/s", "Mean rate per hotspot.", "more", 3),
            Measure(
                "other_receivers_gbps",
                "other receivers",
                "Gbit/s",
                "Mean rate per other receiver.",
                "more",
                3,
            ),
            Measure(
                "total_gbps",
                "total delivered",
                "Gbit/s",
                "Sum of the rates of all hosts.",
                "more",
                3,
            ),
            Measure(
                "hotspot_utilisation",
                "hotspot utilisation",
                "",
                "Mean rate of the hotspots over the payload rate of their cable, or over "
                "`host.sink-rate` if that is less.",
                "more",
            ),
            Measure(
                "fairness",
                "fairness (Jain)",
                "",
                "Jain's index of the payload that C nodes inject; without C nodes, of the payload "
                "that other receivers receive.",
                "more",
            ),
        ),
        _rates,
    ),
    Group(
        "Flows",
        "Flows with a number of bytes that start after the warm-up. Means are of finished flows. "
        "In percentiles and maxima an unfinished flow is infinite. Percentiles are interpolated "
        "between ranks.",
        (
            Measure(
                "flows_finished", "flows finished", "", "Finished flows over all flows.", "more", 4
            ),
            Measure("flows_end_ms", "flows end", "ms", "End of the last flow.", "less", 3),
            *_percentiles("fct", "FCT", "µs", "completion time of a flow"),
            *_percentiles(
                "slowdown", "slowdown", "", "completion time over that on an empty fabric"
            ),
        ),
        _flows,
    ),
    Group(
        "Latency",
        "From the first bit at the sender to the last byte in the receiver, of packets delivered "
        "after the warm-up. Percentiles come from a histogram with intervals of 1/128. Latencies "
        'of others need `probe.latency = "host"`.',
        (
            *_percentiles("latency", "latency", "µs", "latency of all packets", 1),
            *_OF_OTHERS[:4],
        ),
        _latency,
    ),
    Group(
        "Deliveries and marks",
        "Counted from the warm-up to the end of the run.",
        (
            Measure(
                "delivered_bytes",
                "delivered",
                "bytes",
                "Payload delivered.",
                "more",
                0,
                is_whole=True,
            ),
            Measure(
                "delivered_packets",
                "packets",
                "",
                "Data packets delivered.",
                "more",
                0,
                is_whole=True,
            ),
            Measure(
                "marked_packets",
                "marked",
                "",
                "Data packets delivered with FECN.",
                "",
                0,
                is_whole=True,
            ),
            Measure(
                "marked_share", "share marked", "", "Data packets delivered with FECN over all.", ""
            ),
            Measure(
                "control_packets",
                "control packets per packet",
                "",
                "Notifications, acknowledgements, grants and management datagrams for each data "
                "packet delivered.",
                "less",
                4,
            ),
            Measure(
                "retries",
                "retries",
                "",
                "Times that a connection went back to a lost packet, with `host.retry`.",
                "less",
                0,
                is_whole=True,
            ),
            Measure(
                "resent_bytes",
                "sent again",
                "bytes",
                "Payload that hosts sent again, with `host.retry`.",
                "less",
                0,
                is_whole=True,
            ),
            Measure(
                "failed_connections",
                "failed connections",
                "",
                "Connections that failed after the last retry, with `host.retry`.",
                "less",
                0,
                is_whole=True,
            ),
        ),
        _deliveries,
    ),
    Group(
        "Links",
        "Over the time of receive rates.",
        (
            Measure(
                "link_utilisation_mean",
                "mean utilisation",
                "",
                "Wire bytes that an output port of a switch sends over those that its cable can "
                "carry: mean of all ports with a cable.",
                "",
            ),
            Measure(
                "link_utilisation_max",
                "largest utilisation",
                "",
                "Largest utilisation of an output port of a switch.",
                "",
            ),
            Measure(
                "wait_share",
                "time waiting",
                "",
                "Time in which a port of a switch or host has packets and sends none, for lack of "
                "credits or because of arbitration: mean share of all ports.",
                "less",
            ),
            Measure(
                "pause_frames",
                "pause frames",
                "",
                "Frames of PFC that pause or resume a priority; with PFC only.",
                "less",
                0,
                is_whole=True,
            ),
            Measure(
                "paused_share",
                "time paused",
                "",
                "Time in which PFC pauses a port, summed over its priorities: mean share of all "
                "ports; with PFC only.",
                "less",
            ),
        ),
        _links,
    ),
    Group(
        "Queues and congestion trees",
        "Of the samples of `[probe.trees]` after the warm-up.",
        (
            Measure(
                "queued_mean_mb",
                "mean queue",
                "MB",
                "Mean of the bytes that wait in all switches.",
                "less",
                3,
            ),
            Measure(
                "queued_max_mb",
                "largest queue",
                "MB",
                "Most bytes that wait in all switches in a sample.",
                "less",
                3,
            ),
            Measure(
                "tree_ports_mean",
                "Port VLs in trees",
                "",
                "Mean number of Port VLs in congestion trees.",
                "less",
                1,
            ),
            Measure(
                "tree_ports_max",
                "most Port VLs in trees",
                "",
                "Largest number of Port VLs in congestion trees in a sample.",
                "less",
                0,
                is_whole=True,
            ),
        ),
        _queues,
    ),
    Group(
        "Programs",
        "Of the programs that the run waits for.",
        (
            Measure("programs_end_ms", "programs end", "ms", "End of the last program.", "less", 3),
            Measure(
                "program_slowdown",
                "program slowdown",
                "",
                "Largest completion time of a program over that alone, without control; below 1 "
                "if a program that congests itself runs faster next to other traffic.",
                "less",
            ),
            Measure(
                "iteration_mean_ms",
                "iteration",
                "ms",
                "Mean time of an iteration, of the program with the largest.",
                "less",
                3,
            ),
            Measure(
                "exposed_share",
                "exposed",
                "",
                "Share of the time of the ranks in which none of their processors computes, of "
                "the program with the largest.",
                "less",
                4,
            ),
            Measure(
                "algbw_gb_per_s",
                "algbw",
                "GB/s",
                "Bytes of a collective operation per time of an iteration, as nccl-tests defines "
                "it, of the program with the least.",
                "more",
                2,
            ),
            Measure(
                "busbw_gb_per_s",
                "busbw",
                "GB/s",
                "`algbw` times the part of the bytes that a rank's links must carry, as "
                "nccl-tests defines it, of the program with the least.",
                "more",
                2,
            ),
        ),
        _programs,
    ),
    Group(
        "GPCNeT",
        "Of the ranks that measure, in the iterations of the benchmark.",
        (
            Measure(
                "gpcnet_rank_gbps",
                "GPCNeT bandwidth",
                "Gbit/s",
                "Mean rate of a rank in the test `rr-bandwidth-sync`.",
                "more",
            ),
            Measure(
                "gpcnet_latency_mean_us",
                "GPCNeT latency mean",
                "µs",
                "Mean latency of the test `rr-latency`.",
                "less",
                1,
            ),
            Measure(
                "gpcnet_latency_p999_us",
                "GPCNeT latency p99.9",
                "µs",
                "99.9th percentile of the latency of the test `rr-latency`.",
                "less",
                1,
            ),
        ),
        _gpcnet,
    ),
    Group(
        "The run",
        "",
        (
            Measure("simulated_ps", "simulated", "ps", "Simulated time.", "", 0, is_whole=True),
            Measure(
                "packet_hops",
                "packet-hops",
                "",
                "Delivered packets, each times the links it crossed, the warm-up included.",
                "",
                0,
                is_whole=True,
            ),
            Measure(
                "events",
                "events",
                "",
                "Events that the engine processed, the work of the simulator. Samples add some, so "
                "that the number depends on `probe.interval`; results do not.",
                "",
                0,
                is_whole=True,
            ),
        ),
        _run,
    ),
)

CLEARED = Measure(
    "cleared_ms",
    "congestion cleared after",
    "ms",
    "Time after which, on average over five samples and to the end, congestion trees hold at most "
    "a tenth of the largest number of Port VLs without control. Comparisons alone have it.",
    "less",
    1,
)
"""Also needs the run without control."""

MEASURES: Mapping[str, Measure] = {one.name: one for group in GROUPS for one in group.measures}

OF_COMPARISONS: Mapping[str, Measure] = {**MEASURES, CLEARED.name: CLEARED}

_FINISHED: Mapping[str, str] = {
    "flows_end_ms": "flows_finished",
    **{f"fct_{part}_us": "fct_mean_us" for part in ("p50", "p99", "p999", "max")},
    **{f"slowdown_{part}": "slowdown_mean" for part in ("p50", "p99", "p999", "max")},
}

RATES = ("hotspots_gbps", "other_receivers_gbps", "total_gbps")


SUITED = (
    *("gpcnet_rank_gbps", "gpcnet_latency_mean_us", "gpcnet_latency_p999_us"),
    *("programs_end_ms", "program_slowdown", "iteration_mean_ms", "exposed_share"),
    *("flows_finished", "fct_mean_us", "fct_p99_us", "slowdown_mean", "slowdown_p99"),
    *("hotspots_gbps", "other_receivers_gbps", "total_gbps", "fairness"),
    *("latency_mean_us", "latency_p99_us", "link_utilisation_mean"),
)
"""Judging measures, those of benchmarks and finite traffic first."""


def narrow_title(one: Measure) -> str:
    """Write the title of a measure in lines, for a narrow column.

    Examples
    --------
    >>> narrow_title(MEASURES["other_receivers_gbps"]).splitlines()
    ['other', 'receivers,', 'Gbit/s']
    """
    return "\n".join(textwrap.wrap(one.title, _NARROW, break_long_words=False))


def measure(result: Result, groups: Iterable[Group] = GROUPS) -> dict[str, float]:
    """Compute the measures that a run has.

    Returns
    -------
    dict
        Values by name, in the order of the registry. A measure that the run does not have is
        missing; one that depends on a flow that has not finished is infinite.
    """
    found: dict[str, float] = {}
    for group in groups:
        values = group.compute(result)
        found |= {one.name: values[one.name] for one in group.measures if one.name in values}
    return found


def finite(values: Values) -> dict[str, float | None]:
    """Replace what is infinite by None, for JSON and tables."""
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


def value_of(values: Mapping[str, float | None], name: str) -> float | None:
    """Read a measure from JSON or a table, where infinite measures are null.

    Returns
    -------
    float or None
        The value, infinite if a flow that counts has not finished; None if the run has none.

    Examples
    --------
    >>> value_of({"fct_mean_us": 2.5, "fct_p99_us": None}, "fct_p99_us")
    inf
    """
    value = values.get(name)
    if value is not None or name not in _FINISHED:
        return value
    return None if values.get(_FINISHED[name]) is None else math.inf


def row_measures(result: Result) -> dict[str, float | None]:
    """Measure a run for a row of a sweep."""
    return finite(measure(result))


def definition_of(measure: Measure) -> str:
    """Return what a measure is, and what it needs."""
    basis = next((of.basis for of in GROUPS if measure in of.measures), "")
    return f"{measure.definition} {basis}".strip()


def require_measure(name: str, where: str, known: Sequence[str] = tuple(MEASURES)) -> None:
    """Refuse a name that no run measures."""
    if name in known:
        return
    close = get_close_matches(name, known, n=3)
    advice = f"did you mean {' or '.join(close)}? " if close else ""
    raise ScenarioError(
        f"a run has no measure {shown(name)}",
        where,
        hint=f"{advice}The reference page Measures lists all",
    )
