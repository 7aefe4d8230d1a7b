"""A scenario as HTML: a table and a drawing of a small fabric."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from silvan.errors import SilvanError
from silvan.notebook import FAINT, OTHERS, WIDTH, facts_table, image, list_text, page

if TYPE_CHECKING:
    from silvan.inputs.scenario import Scenario

MOST_NODES = 300

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
    rows += [(f"varied: {key}", list_text(values)) for key, values in scenario.axes().items()]
    return page(facts_table(rows), figure)


def _fabric_figure(scenario: Scenario) -> str:
    hosts, neighbours = _cables(scenario.export("ibsim"))
    rows: list[list[str]] = []
    row, seen, ends = hosts, set(hosts), frozenset(hosts)
    while row:
        rows.append(row)
        reached = dict.fromkeys(peer for node in row for peer in neighbours[node])
        row = [node for node in reached if node not in seen]
        seen.update(row)
    height = 30 + 50 * (len(rows) - 1)
    places = {
        node: (WIDTH * (number + 0.5) / len(nodes), height - 15 - 50 * level)
        for level, nodes in enumerate(rows)
        for number, node in enumerate(nodes)
    }
    lines = (
        f'<path d="M{places[one][0]:.2f} {places[one][1]:g}L{places[peer][0]:.2f}'
        f' {places[peer][1]:g}" stroke="{FAINT}" stroke-width="0.6"/>'
        for one in places
        for peer in neighbours[one]
        if peer in places and one < peer
    )
    size = max(1.5, min(4.0, WIDTH / 3 / max(map(len, rows), default=1)))
    dots = (
        f'<circle cx="{x:.2f}" cy="{y:g}" r="{size:.2f}"'
        f' fill="{OTHERS if node in ends else FAINT}"><title>{escape(node)}</title></circle>'
        for node, (x, y) in places.items()
    )
    return image([*lines, *dots], WIDTH, height, "hosts below, switches above, and their cables")


def _cables(net: str) -> tuple[list[str], dict[str, list[str]]]:
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
