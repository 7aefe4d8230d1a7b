"""Gran et al., "Exploring the Scope of the InfiniBand Congestion Control Mechanism" (2012)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from silvan.reproduce.curves import Curve, by_name, over_time
from silvan.reproduce.experiment import Case, Experiment, Measurement, Results
from silvan.reproduce.registry import find_paper
from silvan.results.receive_rates import is_hotspot, receive_rate_series_gbps
from silvan_papers import (
    gran2012_beyond,
    gran2012_moving,
    gran2012_pruning,
    gran2012_trees,
    gran2012_windy,
)
from silvan_papers.gran2012_cases import CONTROL, OFF_SEEDS, STUDY
from silvan_papers.papers import paper
from silvan_papers.quantities import (
    STEADY_MS,
    Quantity,
    group_rate,
    measurement,
    ratio,
    windows_in_words,
)

_ONLY_V_NODES = {"traffic.nodes.c": 0.0, "traffic.nodes.hotspots": 0}


def _measure_table2(results: Results) -> list[Measurement]:
    measurements = []
    totals: dict[str, Quantity] = {}
    for control in ("off", "on"):
        alone, hot = results[f"nohot.cc_{control}"], results[f"hot.cc_{control}"]
        total = group_rate(hot, "all") * hot[0].hosts.num_rows
        totals[control] = total
        measurements += [
            measurement(f"table2.nohot.cc_{control}", group_rate(alone, "all")),
            measurement(f"table2.hot.cc_{control}.hotspots", group_rate(hot, "hotspots")),
            measurement(f"table2.hot.cc_{control}.nonhotspots", group_rate(hot, "others")),
            measurement(f"table2.total.cc_{control}", total),
        ]

    def on_over_off(hosts: str) -> Quantity:
        on, off = (group_rate(results[f"hot.cc_{control}"], hosts) for control in ("on", "off"))
        return ratio(on, off)

    undisturbed = group_rate(results["nohot.cc_off"], "all")
    kept = ratio(group_rate(results["hot.cc_on"], "others"), undisturbed)
    return [
        *measurements,
        measurement("table2.hot.hotspots_on_over_off", on_over_off("hotspots")),
        measurement("table2.hot.nonhotspots_on_over_off", on_over_off("others")),
        measurement("table2.hot.nonhotspots_of_alone", kept),
        measurement("table2.total.on_over_off", ratio(totals["on"], totals["off"])),
    ]


def _draw_table2(results: Results, folder: Path) -> Sequence[Path]:
    from silvan_papers.figures.receive_rate import draw_receive_rates

    return draw_receive_rates(
        {"off": results["hot.cc_off"], "on": results["hot.cc_on"]},
        without_hotspots=results["nohot.cc_off"],
        steady_ms=STEADY_MS,
        title="Silent congestion trees in the 648-host fat tree of gran2012",
        folder=folder,
        stem="table2",
    )


def _trace_table2(results: Results) -> list[Curve]:
    known = find_paper("gran2012").targets
    groups = {
        "all, without hotspots": ("nohot", "all", "table2.nohot.cc_{}"),
        "hotspots": ("hot", "hotspots", "table2.hot.cc_{}.hotspots"),
        "other hosts": ("hot", "others", "table2.hot.cc_{}.nonhotspots"),
    }
    bars, courses = [], []
    for control in ("off", "on"):
        rates = {}
        for name, (traffic, hosts, _) in groups.items():
            label = f"{traffic}.cc_{control}"
            rates[name] = (group_rate(results[label], hosts)[0].tolist(), [label])
        paper = {
            name: known[target.format(control)].value or 0.0
            for name, (_, _, target) in groups.items()
        }
        words = f"CC {control}"
        bars.append(by_name("Mean receive rate of a host", "Gbit/s", words, rates, paper))
        label = f"hot.cc_{control}"
        run = results[label][0]
        is_hot = is_hotspot(run)
        for name, group in (("hotspots", is_hot), ("other hosts", ~is_hot)):
            times, series = receive_rate_series_gbps(run, group)
            words, chart = f"{name}, CC {control}", f"Receive rate of {name}"
            courses.append(
                over_time(f"{chart} over time, seed 1", "Gbit/s", words, times, series, [label])
            )
    return [*bars, *courses]


TABLE2 = Experiment(
    id="table2",
    title="Table II: silent congestion trees, average receive rates in Gbit/s",
    cases=(
        Case("nohot.cc_off", STUDY, OFF_SEEDS, {**_ONLY_V_NODES, **CONTROL["off"]}),
        Case("nohot.cc_on", STUDY, 1, {**_ONLY_V_NODES, **CONTROL["on"]}),
        Case("hot.cc_off", STUDY, OFF_SEEDS, CONTROL["off"]),
        Case("hot.cc_on", STUDY, 3, CONTROL["on"]),
    ),
    windows=windows_in_words,
    quick={"run.duration": "10 ms"},
    quick_note="10 ms instead of 100 ms: congestion control has no time to dissolve the trees",
    measure=_measure_table2,
    draw=_draw_table2,
    trace=_trace_table2,
)

EXPERIMENTS = (
    TABLE2,
    *gran2012_trees.EXPERIMENTS,
    *gran2012_windy.EXPERIMENTS,
    *gran2012_moving.EXPERIMENTS,
    *gran2012_beyond.EXPERIMENTS,
    gran2012_pruning.PRUNING,
)

PAPER = paper("gran2012", EXPERIMENTS)
