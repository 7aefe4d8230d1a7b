"""Time in which congestion control removes a tree: a lower bound from Table I, and runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from silvan.inputs.scenario import Scenario
from silvan.reproduce.curves import Curve, over_time
from silvan.reproduce.experiment import Case, Experiment, PointTable, Results
from silvan.results.result import Result
from silvan_papers.gran2012_cases import STUDY

CONTRIBUTORS = {
    49: "figure 5 at p = 0",
    65: "Table II",
    69: "figure 5 at p > 0",
    81: "figure 8",
}

_HOSTS = 648
_TIMER_TICK_US = 1.024
_DURATION = "60 ms"


@dataclass(frozen=True, slots=True)
class Pruning:
    """Removal of a tree.

    At ``fair_index``, all contributors together send what the hotspot receives, after ``bound_ms``
    at least (infinite if the timer is faster than the BECNs). ``backlog_mib`` waits before the tree
    shrinks. From ``gone_ms`` on, only its root remains.
    """

    fair_index: float
    bound_ms: float
    backlog_mib: float
    gone_ms: float


def pruning_bound(scenario: Scenario, contributors: int) -> tuple[float, float]:
    """Compute the index at the fair share, and the smallest time in which it is reached.

    The hotspot receives a packet every τ = 1.2 µs. All of them are marked as long as the tree
    stands, so one of N contributors gets a BECN every Nτ on average, and its index rises by one;
    the CCTI_Timer lowers it by one every T = 153.6 µs. The fair share is one packet every Nτ. That
    is the index i = (Nτ / s - 1) / slope, since a packet of serialisation time s is followed by
    a pause of i * slope times s. So it takes i / (1 / Nτ - 1 / T).

    Contributors that get unequal numbers of BECNs take longer: the sum of all indices grows at the
    same pace, and as the rate is a convex function of the index, unequal indices of the same sum
    let more packets through. That the timer does not lower an index of 0 is neglected.
    """
    adapter, packet = scenario.control.ib_cc.adapter, scenario.packet
    sink_gbps = scenario.host.sink_rate.bits_per_s / 1e9
    payload = packet.mtu.bytes
    share_us = contributors * payload * 8e-3 / sink_gbps
    wire_us = (payload + packet.header.bytes) * 8e-3 / scenario.link_gbps
    index = (share_us / wire_us - 1) / adapter["cct"]["slope"]
    climb_per_us = 1 / share_us - 1 / (_TIMER_TICK_US * adapter["ccti-timer"])
    return index, index / climb_per_us / 1e3 if climb_per_us > 0 else float("inf")


def waiting(result: Result) -> tuple[Sequence[float], Sequence[float]]:
    """Give the sample times in milliseconds, and what waits in the tree in MiB."""
    forest = result.forest
    times = forest["time_ps"].to_numpy().astype(np.float64) / 1e9
    return times.tolist(), (forest["queued_bytes"].to_numpy() / 2**20).tolist()


def pruning(result: Result, contributors: int) -> Pruning:
    """Measure how a run's tree is removed."""
    index, bound_ms = pruning_bound(result.scenario, contributors)
    times, queued = waiting(result)
    has_branches = result.forest["ports"].to_numpy() > 1
    last = int(np.flatnonzero(has_branches)[-1])
    gone_ms = times[last + 1] if last + 1 < len(times) else float("inf")
    return Pruning(index, bound_ms, max(queued), gone_ms)


def _label(contributors: int) -> str:
    return f"{contributors} contributors"


def by_contributors(results: Results) -> dict[int, list[Pruning]]:
    """Measure all runs, by number of contributors and seed."""
    return {
        count: [pruning(run, count) for run in results[label]]
        for count in CONTRIBUTORS
        if (label := _label(count)) in results
    }


def _tabulate(results: Results) -> PointTable:
    rows: list[tuple[float | str, ...]] = []
    for count, runs in by_contributors(results).items():
        gone = np.mean([one.gone_ms for one in runs])
        backlog = np.mean([one.backlog_mib for one in runs])
        first = runs[0]
        rows.append(
            (
                *(count, CONTRIBUTORS[count], first.fair_index, first.bound_ms),
                *(float(backlog), float(gone), float(gone) / first.bound_ms),
            )
        )
    header = ("contributors", "as in", "fair_ccti", "bound_ms", "backlog_mib", "gone_ms")
    return PointTable((*header, "gone_over_bound"), tuple(rows))


def _trace(results: Results) -> list[Curve]:
    from silvan_papers.figures.pruning import curve_colour

    curves = []
    for place, count in enumerate(by_contributors(results)):
        label = _label(count)
        times_ms, queued = (np.asarray(one) for one in waiting(results[label][0]))
        curve = over_time("Data in the tree", "MiB", label, times_ms, queued, [label])
        curves.append(replace(curve, colour=curve_colour(place)))
    return curves


def _draw(results: Results, folder: Path) -> Sequence[Path]:
    from silvan_papers.figures.pruning import draw_pruning

    curves = {
        count: (waiting(results[_label(count)][0]), runs[0].bound_ms)
        for count, runs in by_contributors(results).items()
    }
    return draw_pruning(curves, table=_tabulate(results), folder=folder)


PRUNING = Experiment(
    id="beyond.pruning",
    title="Beyond the paper: the time to remove a tree, by its number of contributors",
    cases=tuple(
        Case(
            _label(count),
            STUDY,
            1,
            {
                "name": "beyond-pruning",
                "traffic.nodes.v": 0.0,
                "traffic.nodes.c": count / _HOSTS,
                "traffic.nodes.hotspots": 1,
                "probe.trees.interval": "0.2 ms",
                "run.duration": _DURATION,
            },
            quick=count == min(CONTRIBUTORS),
        )
        for count in CONTRIBUTORS
    ),
    windows=("the whole run", "the same"),
    quick={"run.duration": "20 ms"},
    quick_note="49 contributors only, and 20 ms instead of 60 ms",
    measure=lambda _results: (),
    draw=_draw,
    tabulate=_tabulate,
    trace=_trace,
)
