"""Gran et al., "Exploring the Scope of the InfiniBand Congestion Control Mechanism" (2012)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from silvan.measures import PS_PER_MS, Window, is_hotspot, mean_receive_rate_gbps
from silvan.reproduce.experiment import Case, Experiment, Measurement, Results
from silvan.result import Result

_CC_OFF = {"control.scheme": "none"}
_ONLY_V_NODES = {"traffic.nodes.c": 0.0, "traffic.nodes.hotspots": 0}

# The paper does not say over which part of a run it averages. Its Table II agrees with the whole
# of 0.1 s, in which the trees that congestion control has yet to dissolve still count. The late
# window is what is left when they are gone.
_LATE_MS = 30


def _late(result: Result) -> Window:
    end = result.scenario.duration_ps
    return Window(max(0, end - _LATE_MS * PS_PER_MS), end)


def _whole(result: Result) -> Window:
    return Window(0, result.scenario.duration_ps)


def _rates(name: str, runs: Sequence[Result], hosts: str, *, total: bool = False) -> Measurement:
    """Mean receive rates of a group of hosts, or the total of all, in both windows."""

    def rate(result: Result, window: Window) -> float:
        hotspots = is_hotspot(result)
        group = {"all": np.ones_like(hotspots), "hotspots": hotspots, "others": ~hotspots}[hosts]
        mean = mean_receive_rate_gbps(result, group, window)
        return mean * int(group.sum()) if total else mean

    return Measurement(
        name,
        values=tuple(rate(run, _whole(run)) for run in runs),
        late=tuple(rate(run, _late(run)) for run in runs),
    )


def _measure_table2(results: Results) -> list[Measurement]:
    measurements = []
    for cc in ("cc_off", "cc_on"):
        hot = results[f"hot.{cc}"]
        measurements += [
            _rates(f"table2.nohot.{cc}", results[f"nohot.{cc}"], "all"),
            _rates(f"table2.hot.{cc}.hotspots", hot, "hotspots"),
            _rates(f"table2.hot.{cc}.nonhotspots", hot, "others"),
            _rates(f"table2.total.{cc}", hot, "all", total=True),
        ]
    return measurements


def _draw_table2(results: Results, folder: Path) -> Sequence[Path]:
    # Matplotlib is slow to import, and only this needs it.
    from silvan.figures.receive_rate import draw_receive_rates

    return draw_receive_rates(
        {"off": results["hot.cc_off"], "on": results["hot.cc_on"]},
        without_hotspots=results["nohot.cc_off"],
        late_ms=_LATE_MS,
        title="Silent congestion trees in the 648-host fat tree of gran2012",
        folder=folder,
        stem="table2",
    )


TABLE2 = Experiment(
    id="table2",
    title="Table II: silent congestion trees, average receive rates in Gbit/s",
    cases=(
        Case("nohot.cc_off", "table2", 3, {**_ONLY_V_NODES, **_CC_OFF}),
        Case("nohot.cc_on", "table2", 3, _ONLY_V_NODES),
        Case("hot.cc_off", "table2", 6, _CC_OFF),
        Case("hot.cc_on", "table2", 3),
    ),
    windows=("the whole run", "its last 30 ms"),
    quick={"run.duration": "10 ms"},
    quick_note="10 ms instead of 100 ms: congestion control has no time to dissolve the trees",
    measure=_measure_table2,
    draw=_draw_table2,
)

EXPERIMENTS = (TABLE2,)
