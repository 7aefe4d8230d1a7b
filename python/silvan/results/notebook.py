"""Scenarios, results and sweeps as HTML, as notebooks show them: a table and a small figure.

The figures are SVG in data URIs, so they need no package for figures.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from silvan.errors import SilvanError

if TYPE_CHECKING:
    from silvan.inputs.scenario import Scenario
    from silvan.results.measures import Measure
    from silvan.results.receive_rates import FloatArray
    from silvan.results.result import Result
    from silvan.sweeping.sweep import SweepResult

MOST_NODES = 300
"""Hosts and switches of the largest fabric that is drawn."""

MOST_ROWS = 20
"""Points of a sweep that its table shows."""

_MOST_STEPS = 200
_WIDTH, _HEIGHT = 360.0, 150.0
_LEFT, _TOP, _BOTTOM = 48.0, 18.0, 24.0
_HOTSPOTS, _OTHERS = "#D55E00", "#0072B2"
_FAINT = "#8C8C8C"

_NODE = re.compile(r'^(Switch|Hca)\s+\d+\s+"(.*)"$')
_CABLE = re.compile(r'^\[\d+\]\s+"(.*)"\[\d+\]')


def scenario_html(scenario: Scenario) -> str:
    """Show a scenario: what it builds and runs, and a drawing of a small fabric."""
    rows: list[tuple[str, object]] = [("scenario", scenario.name)]
    tables = scenario.to_dict()
    if tables["description"]:
        rows.append(("description", tables["description"]))
    figure = ""
    try:
        facts = scenario.describe()
    except SilvanError as error:
        rows.append(("error", error))
    else:
        rows += [(key, facts[key]) for key in ("hosts", "switches", "links")]
        if facts["hosts"] + facts["switches"] <= MOST_NODES:
            figure = _fabric_figure(scenario)
    traffic = [
        f"{len(entries)} {kind}" if isinstance(entries, list) else kind
        for kind, entries in tables["traffic"].items()
        if isinstance(entries, list | dict) and entries
    ]
    rows += [
        ("traffic", ", ".join(traffic) if scenario.has_traffic else "none"),
        ("congestion control", tables["control"]["scheme"]),
        ("warm-up", tables["run"]["warm-up"]),
        ("duration", tables["run"]["duration"]),
        ("seed", scenario.seed),
    ]
    rows += [(f"varied: {key}", _list(values)) for key, values in scenario.axes().items()]
    return _page(_facts(rows), figure)


def result_html(result: Result) -> str:
    """Show a result: its measures and latencies, and the receive rates over time."""
    from silvan.results.measures import MEASURES, SUITED

    measures = result.measures
    rows: list[tuple[str, object]] = [
        ("scenario", result.scenario.name),
        ("seed", result.seed),
        ("simulated time (ms)", _number(result.summary["simulated_ps"] / 1e9)),
        ("hosts", result.hosts.num_rows),
        *(
            (
                _with_unit(MEASURES[name]),
                "never" if np.isinf(measures[name]) else _number(measures[name]),
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
    table = ""
    if classes is not None and set(latencies) <= set(classes.column_names):
        shown = classes.slice(0, MOST_ROWS).select(list(latencies)).to_pylist()
        table = _table(latencies.values(), [list(row.values()) for row in shown])
        table += _more(classes.num_rows, "traffic classes")
    return _page(_facts(rows) + table, _rates_figure(result))


def _with_unit(measure: Measure) -> str:
    return f"{measure.heading} ({measure.unit})" if measure.unit else measure.heading


def sweep_html(swept: SweepResult) -> str:
    """Show a sweep: its first points, its failures, and the total delivered at each point."""
    points = swept.points
    columns = [name for name in points.column_names if name != "hash"]
    shown = points.slice(0, MOST_ROWS).select(columns).to_pylist()
    table = _table(columns, [list(row.values()) for row in shown]) + _more(
        points.num_rows, "points"
    )
    if swept.failures:
        failures = [
            [", ".join(f"{key}={value}" for key, value in one.values.items()), one.seed, one.error]
            for one in swept.failures[:MOST_ROWS]
        ]
        table += _table(("failed point", "seed", "error"), failures)
        table += _more(len(swept.failures), "failed points")
    facts = _facts([("points", points.num_rows), ("failed", len(swept.failures))])
    figure = ""
    if "total_gbps" in columns and points.num_rows:
        totals = np.array(
            [np.nan if one is None else one for one in points["total_gbps"].to_pylist()]
        )
        edges = np.arange(len(totals) + 1, dtype=np.float64)
        figure = _chart(
            edges, {"total delivered": (totals, _OTHERS)}, "points", "Gbit/s", dots=True
        )
    return _page(facts + table, figure)


def _page(tables: str, figure: str) -> str:
    return f'<div class="silvan">{tables}{figure}</div>'


def _facts(rows: Iterable[tuple[str, object]]) -> str:
    """Write a table of names and values."""
    lines = (f"<tr><th>{_text(name)}</th><td>{_text(value)}</td></tr>" for name, value in rows)
    return f"<table><tbody>{''.join(lines)}</tbody></table>"


def _table(header: Iterable[str], rows: Sequence[Sequence[object]]) -> str:
    """Write a table with a header."""
    head = "".join(f"<th>{_text(name)}</th>" for name in header)
    lines = ("".join(f"<td>{_text(value)}</td>" for value in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _more(count: int, what: str) -> str:
    """State how many rows a table leaves out."""
    return f"<p>{MOST_ROWS} of {count:,} {what}</p>" if count > MOST_ROWS else ""


def _text(value: object) -> str:
    """Give a value as text that HTML shows as it is."""
    if value is None:
        return ""
    return escape(_number(value) if isinstance(value, float) else str(value))


def _number(value: float) -> str:
    return f"{value:.6g}"


def _list(values: Sequence[object]) -> str:
    shown = ", ".join(map(str, values[:MOST_ROWS]))
    return shown if len(values) <= MOST_ROWS else f"{shown}, .. ({len(values)})"


def _image(body: Iterable[str], width: float, height: float, words: str) -> str:
    """Wrap the parts of a drawing as an image that holds its own data."""
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}"'
        f' width="{width:g}" height="{height:g}" font-family="sans-serif" font-size="10">'
        f'<rect width="100%" height="100%" fill="#FFFFFF"/>{"".join(body)}</svg>'
    )
    data = base64.b64encode(svg.encode()).decode()
    return f'<img alt="{escape(words)}" src="data:image/svg+xml;base64,{data}"/>'


def _rates_figure(result: Result) -> str:
    """Draw the mean receive rates of hotspots and of the other receivers over time."""
    from silvan.results.receive_rates import delivered, hotspots, other_receivers

    if "host_series" not in result.tables or not result.tables["host_series"].num_rows:
        return ""
    times_ps, matrix = delivered(result)
    edges = np.concatenate(([0.0], times_ps.astype(np.float64)))
    # A picture of a few hundred points in width shows no more steps.
    kept = np.unique(
        np.append(np.arange(0, len(edges), -(-len(edges) // _MOST_STEPS)), len(times_ps))
    )
    groups = {
        "hotspots": (hotspots(result), _HOTSPOTS),
        "other receivers": (other_receivers(result), _OTHERS),
    }
    series = {}
    for name, (members, colour) in groups.items():
        if members.any():
            bytes_ = np.add.reduceat(matrix[:, members].mean(axis=1), kept[:-1])
            series[name] = (bytes_ * 8e3 / np.diff(edges[kept]), colour)
    return _chart(edges[kept] / 1e9, series, "ms", "Gbit/s") if series else ""


def _chart(
    edges: FloatArray,
    series: Mapping[str, tuple[FloatArray, str]],
    across: str,
    up: str,
    *,
    dots: bool = False,
) -> str:
    """Draw values over intervals as steps, or as dots in the middle of each interval."""
    highest = max((float(np.nanmax(values)) for values, _ in series.values()), default=0.0)
    width, floor = _WIDTH - _LEFT - 8, _HEIGHT - _BOTTOM
    span, top = float(edges[-1]) or 1.0, highest or 1.0

    def x(value: float) -> float:
        return _LEFT + width * value / span

    def y(value: float) -> float:
        return floor - (floor - _TOP) * value / top

    axes = f"M{_LEFT:g} {_TOP:g}V{floor:g}H{_LEFT + width:g}"
    body = [
        f'<path d="{axes}" fill="none" stroke="{_FAINT}"/>',
        f'<text x="{_LEFT - 4:g}" y="{_TOP + 4:g}" text-anchor="end">{highest:.3g}</text>',
        f'<text x="{_LEFT - 4:g}" y="{floor:g}" text-anchor="end">0</text>',
        f'<text x="4" y="10">{escape(up)}</text>',
        f'<text x="{_LEFT + width:g}" y="{_HEIGHT - 8:g}" text-anchor="end">'
        f"{edges[-1]:.4g} {escape(across)}</text>",
    ]
    for number, (name, (values, colour)) in enumerate(series.items()):
        if dots:
            middles = (edges[1:] + edges[:-1]) / 2
            body += [
                f'<circle cx="{x(at):.2f}" cy="{y(value):.2f}" r="2.5" fill="{colour}"/>'
                for at, value in zip(middles, values, strict=True)
                if np.isfinite(value)
            ]
        else:
            corners = (
                f"{x(at):.2f},{y(value):.2f}"
                for start, end, value in zip(edges[:-1], edges[1:], values, strict=True)
                for at in (start, end)
            )
            body.append(
                f'<polyline points="{" ".join(corners)}" fill="none" stroke="{colour}"'
                f' stroke-width="1.5"><title>{escape(name)}</title></polyline>'
            )
        body.append(
            f'<text x="{_LEFT + 60 + 110 * number:g}" y="10" fill="{colour}">{escape(name)}</text>'
        )
    return _image(body, _WIDTH, _HEIGHT, f"{', '.join(series)} ({up})")


def _fabric_figure(scenario: Scenario) -> str:
    """Draw a small fabric: hosts at the bottom, switches above by their distance from a host."""
    hosts, neighbours = _cables(scenario.to_ibsim())
    rows: list[list[str]] = []
    row, seen, ends = hosts, set(hosts), frozenset(hosts)
    while row:
        rows.append(row)
        reached = dict.fromkeys(peer for node in row for peer in neighbours[node])
        row = [node for node in reached if node not in seen]
        seen.update(row)
    height = 30 + 50 * (len(rows) - 1)
    places = {
        node: (_WIDTH * (number + 0.5) / len(nodes), height - 15 - 50 * level)
        for level, nodes in enumerate(rows)
        for number, node in enumerate(nodes)
    }
    lines = (
        f'<path d="M{places[one][0]:.2f} {places[one][1]:g}L{places[peer][0]:.2f}'
        f' {places[peer][1]:g}" stroke="{_FAINT}" stroke-width="0.6"/>'
        for one in places
        for peer in neighbours[one]
        # Both ends name the cable.
        if peer in places and one < peer
    )
    size = max(1.5, min(4.0, _WIDTH / 3 / max(map(len, rows), default=1)))
    dots = (
        f'<circle cx="{x:.2f}" cy="{y:g}" r="{size:.2f}"'
        f' fill="{_OTHERS if node in ends else _FAINT}"><title>{escape(node)}</title></circle>'
        for node, (x, y) in places.items()
    )
    return _image([*lines, *dots], _WIDTH, height, "hosts below, switches above, and their cables")


def _cables(net: str) -> tuple[list[str], dict[str, list[str]]]:
    """Read a net file: the hosts, and by node the nodes that it is cabled to."""
    hosts: list[str] = []
    neighbours: dict[str, list[str]] = {}
    node = ""
    for line in net.splitlines():
        if match := _NODE.match(line):
            node = match[2]
            neighbours[node] = []
            if match[1] == "Hca":
                hosts.append(node)
        elif match := _CABLE.match(line):
            neighbours[node].append(match[1])
    return hosts, neighbours
