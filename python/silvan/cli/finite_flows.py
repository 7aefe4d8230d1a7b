"""What is printed of the flows with a number of bytes, of which a run may have millions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.table import Table

    from silvan.results.result import Result


def some_flows(result: Result, most: int) -> dict[str, Any]:
    """Sum up the flows of a run, and list some of them.

    Parameters
    ----------
    result : Result
        A run with the table ``flows``.
    most : int
        How many flows to list.

    Returns
    -------
    dict
        ``flow_totals``, and in ``slowest_flows`` the rows of those that have not finished, then of
        those with the largest slowdowns. Classes with a table of sizes are not listed. ``listable``
        counts the flows of all others.
    """
    import pyarrow.compute as pc

    flows = result.flows
    others = flows
    if "flow_sizes" in result.tables:
        sized = pc.unique(result.flow_sizes["class"])
        others = flows.filter(pc.invert(pc.is_in(flows["class"], value_set=sized)))
    slowness = others["slowdown"].fill_null(math.inf).combine_chunks()
    order = pc.array_sort_indices(slowness, order="descending")
    return {
        "flow_totals": {
            "flows": flows.num_rows,
            "finished": pc.sum(flows["finished"]).as_py() or 0,
        },
        "slowest_flows": others.take(order[:most]).to_pylist(),
        "listable": others.num_rows,
    }


_PARTS = {"mean": "mean", "p99": "99 %", "max": "max"}


def finished_flows(report: Mapping[str, Any]) -> str:
    """Tell how many flows of a run have finished; empty if it has none."""
    totals = report.get("flow_totals", {"flows": 0})
    return f"{totals['finished']} of {totals['flows']}" if totals["flows"] else ""


def flow_line(report: Mapping[str, Any]) -> str | None:
    """Sum the flows of a run up in a line, if there are any; times of those after the warm-up."""
    finished = finished_flows(report)
    if not finished:
        return None
    line = f"{finished} flows finished"
    measures = report["measures"]
    for name, words, unit in (("fct", "completion time", " µs"), ("slowdown", "slowdown", "")):
        end = "_us" if unit else ""
        if measures.get(f"{name}_mean{end}") is None:
            continue
        parts = ((part, measures[f"{name}_{part}{end}"]) for part in ("mean", "p99", "max"))
        values = (
            f"{_PARTS[part]} {'unfinished' if value is None else f'{value:.2f}{unit}'}"
            for part, value in parts
        )
        line += f"; {words} {', '.join(values)}"
    return line


def flow_table(report: Mapping[str, Any]) -> Table | None:
    """Put the listed flows of a run in a table."""
    from rich.table import Table

    shown = report.get("slowest_flows")
    if not shown:
        return None
    count = report["listable"]
    more = f"; the slowest {len(shown)} of {count}" if len(shown) < count else ""
    table = Table(title=f"flows with a number of bytes{more}")
    for heading in ("flow", "from", "to"):
        table.add_column(heading)
    for heading in ("bytes", "delivered", "start, µs", "end, µs", "completion, µs", "slowdown"):
        table.add_column(heading, justify="right")
    for flow in shown:
        times = (flow["start_ps"], flow["end_ps"], flow["completion_ps"])
        start, end, completion = (f"{ps / 1e6:.3f}" if ps is not None else "" for ps in times)
        table.add_row(
            *(flow[name] for name in ("name", "from", "to")),
            f"{flow['bytes']:,}",
            f"{flow['delivered_bytes']:,}",
            start,
            end if flow["finished"] else "unfinished",
            completion,
            "" if flow["slowdown"] is None else f"{flow['slowdown']:.3f}",
        )
    return table
