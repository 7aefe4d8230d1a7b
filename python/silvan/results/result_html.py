"""A result as HTML: its measures, latencies and receive rates over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from silvan.notebook import (
    HOTSPOTS,
    MOST_ROWS,
    OTHERS,
    chart,
    facts_table,
    more,
    number_text,
    page,
    table,
)
from silvan.results.measures import MEASURES, SUITED, Measure
from silvan.results.receive_rates import delivered, hotspots, other_receivers

if TYPE_CHECKING:
    from silvan.results.result import Result

_MOST_STEPS = 200


def result_html(result: Result) -> str:
    """Show a result: its measures and latencies, and the receive rates over time."""
    measures = result.measures
    rows: list[tuple[str, object]] = [
        ("scenario", result.scenario.name),
        ("seed", result.seed),
        ("simulated time (ms)", number_text(result.summary["simulated_ps"] / 1e9)),
        ("hosts", result.hosts.num_rows),
        *(
            (
                _with_unit(MEASURES[name]),
                "never" if np.isinf(measures[name]) else number_text(measures[name]),
            )
            for name in SUITED
            if name in measures
        ),
    ]
    latencies = {
        "name": "traffic class",
        "delivered_packets": "packets delivered",
        "latency_p50_ns": "median latency (ns)",
        "latency_p99_ns": "99th percentile (ns)",
    }
    classes = result.tables.get("classes")
    classes_table = ""
    if classes is not None and set(latencies) <= set(classes.column_names):
        shown = classes.slice(0, MOST_ROWS).select(list(latencies)).to_pylist()
        classes_table = table(latencies.values(), [list(row.values()) for row in shown])
        classes_table += more(classes.num_rows, "traffic classes")
    return page(facts_table(rows) + classes_table, _rates_figure(result))


def _with_unit(measure: Measure) -> str:
    return f"{measure.heading} ({measure.unit})" if measure.unit else measure.heading


def _rates_figure(result: Result) -> str:
    if "host_series" not in result.tables or not result.tables["host_series"].num_rows:
        return ""
    times_ps, matrix = delivered(result)
    edges = np.concatenate(([0.0], times_ps.astype(np.float64)))
    kept = np.unique(
        np.append(np.arange(0, len(edges), -(-len(edges) // _MOST_STEPS)), len(times_ps))
    )
    groups = {
        "hotspots": (hotspots(result), HOTSPOTS),
        "other receivers": (other_receivers(result), OTHERS),
    }
    series = {}
    for name, (members, colour) in groups.items():
        if members.any():
            bytes_ = np.add.reduceat(matrix[:, members].mean(axis=1), kept[:-1])
            series[name] = (bytes_ * 8e3 / np.diff(edges[kept]), colour)
    return chart(edges[kept] / 1e9, series, "ms", "Gbit/s") if series else ""
