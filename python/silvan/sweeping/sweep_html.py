"""A sweep as HTML: its first points, its failures, and the total delivered at each point."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from silvan.notebook import MOST_ROWS, OTHERS, chart, facts_table, more, page, table

if TYPE_CHECKING:
    from silvan.sweeping.sweep import SweepResult


def sweep_html(swept: SweepResult) -> str:
    """Show a sweep: its first points, its failures, and the total delivered at each point."""
    points = swept.points
    columns = [name for name in points.column_names if name != "hash"]
    shown = points.slice(0, MOST_ROWS).select(columns).to_pylist()
    tables = table(columns, [list(row.values()) for row in shown]) + more(points.num_rows, "points")
    if swept.failures:
        failures = [
            [", ".join(f"{key}={value}" for key, value in one.values.items()), one.seed, one.error]
            for one in swept.failures[:MOST_ROWS]
        ]
        tables += table(("failed point", "seed", "error"), failures)
        tables += more(len(swept.failures), "failed points")
    facts = facts_table([("points", points.num_rows), ("failed", len(swept.failures))])
    figure = ""
    if "total_gbps" in columns and points.num_rows:
        totals = np.array(
            [np.nan if one is None else one for one in points["total_gbps"].to_pylist()]
        )
        edges = np.arange(len(totals) + 1, dtype=np.float64)
        figure = chart(edges, {"total delivered": (totals, OTHERS)}, "points", "Gbit/s", dots=True)
    return page(facts + tables, figure)
