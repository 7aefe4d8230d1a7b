"""gran2012's silent, windy and moving forests, for schemes to be set side by side on them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from silvan.inputs.toml_text import TomlValue
from silvan.reproduce.experiment import Case, PointTable, Results
from silvan.results.receive_rates import (
    Window,
    delivered,
    delivered_within,
    is_hotspot,
    jain_index,
    mean_receive_rate_gbps,
)
from silvan.results.result import Result

FORESTS: Mapping[str, Mapping[str, TomlValue]] = {
    "silent": {},
    "windy, p = 60 %": {
        "traffic.nodes.v": 0.0,
        "traffic.nodes.c": 0.0,
        "traffic.nodes.b": 1.0,
        "traffic.nodes.p": 60.0,
    },
    "moving every 5 ms": {"traffic.nodes.hotspot-lifetime": "5 ms"},
}


def forest_cases(study: str, schemes: Mapping[str, Mapping[str, TomlValue]]) -> tuple[Case, ...]:
    """List a run of every scheme on every forest, one seed each."""
    return tuple(
        Case(_label(forest, scheme), study, 1, {**traffic, **control})
        for forest, traffic in FORESTS.items()
        for scheme, control in schemes.items()
    )


def tabulate_forests(
    results: Results, schemes: Mapping[str, Mapping[str, TomlValue]], *, whole: bool = False
) -> PointTable:
    """Compare the schemes by receive rates in Gbit/s and Jain's index of other hosts."""
    rows = [
        (forest, scheme, *_rates(results[_label(forest, scheme)][0], whole=whole))
        for forest in FORESTS
        for scheme in schemes
        if _label(forest, scheme) in results
    ]
    header = ("forest", "scheme", "hotspots (Gbit/s)", "others (Gbit/s)", "total (Gbit/s)")
    return PointTable((*header, "Jain's index of the others"), tuple(rows))


def _label(forest: str, scheme: str) -> str:
    return f"{forest}: {scheme}"


def _rates(run: Result, *, whole: bool) -> tuple[float, float, float, float]:
    times_ps = [0, *map(int, delivered(run)[0])]
    middle = (len(times_ps) - 1) // 2
    window = Window(times_ps[0 if whole else middle], times_ps[-1])
    nodes = run.scenario.to_dict()["traffic"]["nodes"]
    hot = is_hotspot(run) & (nodes["hotspot-lifetime"] == "unlimited")
    everyone = np.ones_like(hot)
    return (
        mean_receive_rate_gbps(run, hot, window) if hot.any() else float("nan"),
        mean_receive_rate_gbps(run, ~hot, window),
        mean_receive_rate_gbps(run, everyone, window) * len(hot),
        jain_index(delivered_within(run, window)[~hot]),
    )
