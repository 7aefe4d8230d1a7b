"""gran2012's silent, windy and moving forests, for schemes to be set side by side on them."""

from __future__ import annotations

from collections.abc import Mapping

from silvan.measures import is_hotspot, jain_index
from silvan.reproduce.experiment import Case, PointTable, Results
from silvan.result import Result
from silvan.toml_text import TomlValue

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
"""What makes each forest of the study that Table II's traffic is the default of."""

_GBPS = 8e3


def forest_cases(study: str, schemes: Mapping[str, Mapping[str, TomlValue]]) -> tuple[Case, ...]:
    """List a run of every scheme on every forest.

    Parameters
    ----------
    study : str
        A study of the paper with the silent forest.
    schemes : Mapping
        What to change in it for each scheme, by the scheme's name.

    Returns
    -------
    tuple of Case
        One per forest and scheme, one seed each.
    """
    return tuple(
        Case(_label(forest, scheme), study, 1, {**traffic, **control})
        for forest, traffic in FORESTS.items()
        for scheme, control in schemes.items()
    )


def tabulate_forests(
    results: Results, schemes: Mapping[str, Mapping[str, TomlValue]], *, whole: bool = False
) -> PointTable:
    """Set the schemes side by side.

    Parameters
    ----------
    results : Results
        Runs of `forest_cases`.
    schemes : Mapping
        The same schemes.
    whole : bool, default False
        Average over the whole run, not only over its second half.

    Returns
    -------
    PointTable
        Receive rates in Gbit/s and Jain's index of those that are no hotspots. Where hotspots
        move, every host is one in its turn: all count as others, and nobody as a hotspot.
    """
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
    hosts = run.hosts.num_rows
    delivered = run.host_series["delivered_bytes"].to_numpy().reshape(-1, hosts)
    kept = delivered if whole else delivered[len(delivered) // 2 :]
    # The series has a row per probe interval, in equal steps up to the end.
    length_ps = run.scenario.duration_ps * len(kept) / len(delivered)
    rates = kept.sum(axis=0) * _GBPS / length_ps
    nodes = run.scenario.to_dict()["traffic"]["nodes"]
    hot = is_hotspot(run) & (nodes["hotspot-lifetime"] == "unlimited")
    return (
        float(rates[hot].mean()) if hot.any() else float("nan"),
        float(rates[~hot].mean()),
        float(rates.sum()),
        jain_index(rates[~hot]),
    )
