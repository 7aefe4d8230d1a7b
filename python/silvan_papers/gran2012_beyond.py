"""Open questions of gran2012, on smaller fabrics and shorter runs, without targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from silvan.inputs.toml_text import TomlValue
from silvan.reproduce.experiment import Case, Experiment, Measurement, PointTable, Results, Verdict
from silvan.results.receive_rates import (
    PS_PER_MS,
    FloatArray,
    Window,
    is_hotspot,
    mean_receive_rate_gbps,
)
from silvan.results.result import Result
from silvan_papers.gran2012_cases import CONTROL, STUDY

STEADY_MS = 10
"""Steady-state window in ms: the trees have dissolved by then."""

_QUICK: Mapping[str, TomlValue] = {"run.duration": "4 ms"}
_QUICK_NOTE = "4 ms instead of 40 ms: congestion control has no time to dissolve the trees"
_SEEDS = 3

_SMALL: Mapping[str, TomlValue] = {"traffic.nodes.hotspots": 2, "run.duration": "40 ms"}
_TREE: Mapping[str, TomlValue] = {**_SMALL, "fabric.generator": "fat-tree-120"}
_GRID: Mapping[str, TomlValue] = {
    **_SMALL,
    "fabric.sizes": [8, 8],
    "fabric.hosts-per-switch": 2,
    "fabric.routing": "dimension-order",
}

FABRICS: Mapping[str, Mapping[str, TomlValue]] = {
    "fat tree": _TREE,
    "mesh": {**_GRID, "fabric.generator": "mesh"},
    "torus": {**_GRID, "fabric.generator": "torus", "vl.data-vls": 2},
}

_NO_HOTSPOTS: Mapping[str, TomlValue] = {"traffic.nodes.c": 0.0, "traffic.nodes.hotspots": 0}

Quantity = FloatArray
"""Two rows (whole run, steady-state window), one column per seed."""


@dataclass(frozen=True, slots=True)
class GroupRates:
    """Mean receive rates per host in Gbit/s: windows by seeds."""

    everyone: Quantity
    hotspots: Quantity
    others: Quantity


def rates(runs: Sequence[Result]) -> GroupRates:
    """Average the receive rates of a case's runs, one per seed."""

    def rate(run: Result, window: Window) -> tuple[float, float, float]:
        hot = is_hotspot(run)
        groups = (np.ones_like(hot), hot, ~hot)
        everyone, hotspots, others = (mean_receive_rate_gbps(run, one, window) for one in groups)
        return everyone, hotspots, others

    def windows(run: Result) -> tuple[Window, Window]:
        end = run.scenario.duration_ps
        return Window(0, end), Window(max(0, end - STEADY_MS * PS_PER_MS), end)

    values = np.array([[rate(run, window) for window in windows(run)] for run in runs])
    everyone, hotspots, others = values.transpose(2, 1, 0)
    return GroupRates(everyone, hotspots, others)


def windows_in_words(results: Results) -> tuple[str, str]:
    """Name both averaging windows of an experiment's runs."""
    length_ms = next(iter(results.values()))[0].scenario.duration_ps / PS_PER_MS
    return f"the whole run of {length_ms:g} ms", f"its last {min(STEADY_MS, length_ms):g} ms"


def _nothing_to_compare(_: Results) -> Sequence[Measurement | Verdict]:
    return ()


LEVELS: Mapping[str, Mapping[str, TomlValue]] = {
    "CC off": CONTROL["off"],
    "CC per queue pair": {"control.ib-cc.adapter.level": "qp"},
    "CC per service level": {"control.ib-cc.adapter.level": "sl"},
}

P_PERCENT = tuple(range(0, 101, 20))


def _level_label(level: str, p: int) -> str:
    return f"{level}, p = {p}"


def by_level(results: Results) -> dict[str, dict[int, GroupRates]]:
    """Sort the runs of the first experiment by level, then by p in per cent."""
    return {
        level: {
            p: rates(results[label])
            for p in P_PERCENT
            if (label := _level_label(level, p)) in results
        }
        for level in LEVELS
    }


def _tabulate_levels(results: Results) -> PointTable:
    rows: list[tuple[float | str, ...]] = [
        (level, p, *_means(one))
        for level, points in by_level(results).items()
        for p, one in points.items()
    ]
    return PointTable(("control", "p_percent", *_MEAN_COLUMNS), tuple(rows))


_MEAN_COLUMNS = (
    "hotspots_gbps",
    "others_gbps",
    "all_gbps",
    "hotspots_late_gbps",
    "others_late_gbps",
    "all_late_gbps",
)


def _means(one: GroupRates) -> tuple[float, ...]:
    return tuple(
        float(group[window].mean())
        for window in (0, 1)
        for group in (one.hotspots, one.others, one.everyone)
    )


def _draw_levels(results: Results, folder: Path) -> Sequence[Path]:
    from silvan_papers.figures.beyond import draw_levels

    return draw_levels(
        by_level(results),
        window=windows_in_words(results)[1],
        table=_tabulate_levels(results),
        folder=folder,
    )


LEVEL_EXPERIMENT = Experiment(
    id="beyond.sl",
    title="Beyond the paper: congestion control per service level",
    cases=tuple(
        Case(
            _level_label(level, p),
            STUDY,
            _SEEDS,
            {
                "name": "beyond-sl",
                **_TREE,
                "traffic.nodes.b": 1.0,
                "traffic.nodes.v": 0.0,
                "traffic.nodes.c": 0.0,
                "traffic.nodes.p": p,
                **setting,
            },
            quick=p in (0, 60),
        )
        for level, setting in LEVELS.items()
        for p in P_PERCENT
    ),
    windows=windows_in_words,
    quick=_QUICK,
    quick_note=_QUICK_NOTE,
    measure=_nothing_to_compare,
    draw=_draw_levels,
    tabulate=_tabulate_levels,
)


def by_fabric(results: Results) -> dict[str, dict[str, GroupRates]]:
    """Sort the runs of the second experiment by fabric, then ``off``, ``on`` and ``nohot``."""
    return {
        fabric: {case: rates(results[f"{fabric}, {case}"]) for case in (*CONTROL, "nohot")}
        for fabric in FABRICS
    }


def _tabulate_fabrics(results: Results) -> PointTable:
    rows: list[tuple[float | str, ...]] = [
        (fabric, case, *_means(one))
        for fabric, cases in by_fabric(results).items()
        for case, one in cases.items()
    ]
    return PointTable(("fabric", "case", *_MEAN_COLUMNS), tuple(rows))


def _draw_fabrics(results: Results, folder: Path) -> Sequence[Path]:
    from silvan_papers.figures.beyond import draw_fabrics

    return draw_fabrics(
        by_fabric(results),
        window=windows_in_words(results)[1],
        table=_tabulate_fabrics(results),
        folder=folder,
    )


FABRIC_EXPERIMENT = Experiment(
    id="beyond.torus",
    title="Beyond the paper: a silent forest on a mesh and a torus",
    cases=tuple(
        Case(f"{fabric}, {case}", STUDY, _SEEDS, {"name": "beyond-torus", **settings, **extra})
        for fabric, settings in FABRICS.items()
        for case, extra in (*CONTROL.items(), ("nohot", {**_NO_HOTSPOTS, **CONTROL["off"]}))
    ),
    windows=windows_in_words,
    quick=_QUICK,
    quick_note=_QUICK_NOTE,
    measure=_nothing_to_compare,
    draw=_draw_fabrics,
    tabulate=_tabulate_fabrics,
)


ROUTINGS: Mapping[str, Mapping[str, TomlValue]] = {
    "d-mod-k": {},
    "adaptive": {"fabric.path-choice": "adaptive"},
}

TRAFFICS: Mapping[str, Mapping[str, TomlValue]] = {
    "permutation": {
        **_NO_HOTSPOTS,
        "traffic.nodes.v": 0.0,
        "traffic.permutation": [{"pattern": "random"}],
    },
    "forest": {},
}


def by_routing(results: Results) -> dict[str, dict[str, dict[str, GroupRates]]]:
    """Sort the runs of the third experiment by traffic, routing and control."""
    return {
        traffic: {
            routing: {
                control: rates(results[f"{traffic}, {routing}, CC {control}"])
                for control in CONTROL
            }
            for routing in ROUTINGS
        }
        for traffic in TRAFFICS
    }


def _tabulate_routings(results: Results) -> PointTable:
    rows: list[tuple[float | str, ...]] = [
        (traffic, routing, control, *_means(one))
        for traffic, routings in by_routing(results).items()
        for routing, controls in routings.items()
        for control, one in controls.items()
    ]
    return PointTable(("traffic", "routing", "control", *_MEAN_COLUMNS), tuple(rows))


def _draw_routings(results: Results, folder: Path) -> Sequence[Path]:
    from silvan_papers.figures.beyond import draw_routings

    return draw_routings(
        by_routing(results),
        window=windows_in_words(results)[1],
        table=_tabulate_routings(results),
        folder=folder,
    )


ROUTING_EXPERIMENT = Experiment(
    id="beyond.adaptive",
    title="Beyond the paper: adaptive routing instead of and together with congestion control",
    cases=tuple(
        Case(
            f"{traffic}, {routing}, CC {control}",
            STUDY,
            _SEEDS,
            {"name": "beyond-adaptive", **_TREE, **sent, **chosen, **CONTROL[control]},
        )
        for traffic, sent in TRAFFICS.items()
        for routing, chosen in ROUTINGS.items()
        for control in CONTROL
    ),
    windows=windows_in_words,
    quick=_QUICK,
    quick_note=_QUICK_NOTE,
    measure=_nothing_to_compare,
    draw=_draw_routings,
    tabulate=_tabulate_routings,
)


TIMERS = (38, 75, 150, 300, 600)
INCREASES = (1, 2, 4, 8)
MARKING_RATES = (0, 7, 63)
THRESHOLDS = (15, 8)
_QUICK_TIMERS = (38, 150, 600)

Setting = tuple[int, int, int, int]
"""Threshold, Marking_Rate, CCTI_Timer, CCTI_Increase."""


def settings() -> list[Setting]:
    """List all points of the parameter space."""
    return list(product(THRESHOLDS, MARKING_RATES, TIMERS, INCREASES))


def _setting_label(setting: Setting) -> str:
    threshold, marking_rate, timer, increase = setting
    return f"T {threshold}, MR {marking_rate}, timer {timer}, increase {increase}"


def by_setting(results: Results) -> dict[Setting, GroupRates]:
    """Sort the runs of the fourth experiment by setting."""
    labels = {setting: _setting_label(setting) for setting in settings()}
    return {setting: rates(results[label]) for setting, label in labels.items() if label in results}


def ideal(results: Results) -> GroupRates:
    """Give what hotspots and others receive at most: alone, and without hotspots."""
    return GroupRates(
        everyone=rates(results["nohot"]).everyone,
        hotspots=rates(results["off"]).hotspots,
        others=rates(results["nohot"]).everyone,
    )


def _tabulate_space(results: Results) -> PointTable:
    most = ideal(results)
    rows = [
        (
            *setting,
            *_means(one),
            float(one.hotspots[1].mean() / most.hotspots[1].mean()),
            float(one.others[1].mean() / most.others[1].mean()),
        )
        for setting, one in by_setting(results).items()
    ]
    header = ("threshold", "marking_rate", "ccti_timer", "ccti_increase", *_MEAN_COLUMNS)
    return PointTable((*header, "hotspots_late_share", "others_late_share"), tuple(rows))


def _draw_space(results: Results, folder: Path) -> Sequence[Path]:
    from silvan_papers.figures.beyond import draw_space

    shares = {
        setting: (
            float(one.hotspots[1].mean() / ideal(results).hotspots[1].mean()),
            float(one.others[1].mean() / ideal(results).others[1].mean()),
        )
        for setting, one in by_setting(results).items()
    }
    return draw_space(
        shares, window=windows_in_words(results)[1], table=_tabulate_space(results), folder=folder
    )


SPACE_EXPERIMENT = Experiment(
    id="beyond.space",
    title="Beyond the paper: the parameter space around Table I",
    cases=(
        Case("off", STUDY, 1, {"name": "beyond-space", **_TREE, **CONTROL["off"]}),
        Case("nohot", STUDY, 1, {"name": "beyond-space", **_TREE, **_NO_HOTSPOTS}),
        *(
            Case(
                _setting_label(setting),
                STUDY,
                1,
                {
                    "name": "beyond-space",
                    **_TREE,
                    "control.ib-cc.switch.threshold": setting[0],
                    "control.ib-cc.switch.marking-rate": setting[1],
                    "control.ib-cc.adapter.ccti-timer": setting[2],
                    "control.ib-cc.adapter.ccti-increase": setting[3],
                },
                quick=setting[:2] == (15, 0) and setting[2] in _QUICK_TIMERS,
            )
            for setting in settings()
        ),
    ),
    windows=windows_in_words,
    quick=_QUICK,
    quick_note=_QUICK_NOTE,
    measure=_nothing_to_compare,
    draw=_draw_space,
    tabulate=_tabulate_space,
)

EXPERIMENTS = (LEVEL_EXPERIMENT, FABRIC_EXPERIMENT, ROUTING_EXPERIMENT, SPACE_EXPERIMENT)
