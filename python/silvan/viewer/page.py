"""The page: one HTML file with program, style and data, which needs neither server nor network."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from silvan.folders import write_text
from silvan.results.measures import MEASURES, RATES
from silvan.results.result import Result
from silvan.results.run_labels import differences, run_labels
from silvan.viewer.shapes import readable
from silvan.viewer.tables import LARGEST_LATENCY, MOST_CELLS, PageTables, page_tables

FORMAT = 2
"""Version of the page's data, which the page's program requires."""

PAGE_START = """<!doctype html>
<html lang="en">
<head>
<meta name="generator" content="silvan">
"""
"""First part of every page."""

_LEVEL = 9
"""zstd: level 19 would save a fifth, and take 25 times as long."""

_ARROW = "application/vnd.apache.arrow.file"
_FABRIC_KEYS = ("generator", "sizes", "children", "parents", "k", "n", "switches")


def write_page(
    results: Sequence[Result],
    path: Path,
    *,
    title: str | None = None,
    labels: Sequence[str] = (),
) -> Path:
    """Write the page of one or more runs; two are compared."""
    write_text(path, page_html(results, title=title, labels=labels))
    return path


def page_html(
    results: Sequence[Result], *, title: str | None = None, labels: Sequence[str] = ()
) -> str:
    """Return the page of one or more runs as text; see :func:`write_page`."""
    labels = labels or run_labels(results)
    title = title or results[0].scenario.name
    varied = differences([result.scenario.to_dict() for result in results])
    runs: list[dict[str, Any]] = []
    blocks: list[Block] = []
    for number, (result, label) in enumerate(zip(results, labels, strict=True)):
        facts, data = embedded(result, number, label=label, most_cells=MOST_CELLS // len(results))
        runs.append(facts | {"parameters": varied[number]})
        blocks += data
    return document(title, [facts_block(title, runs), *blocks])


@dataclass(frozen=True, slots=True)
class Block:
    """Data in an element of the page that no browser runs."""

    name: str
    kind: str
    text: str

    @property
    def html(self) -> str:
        """The element."""
        return f'<script type="{self.kind}" id="{self.name}">{self.text}</script>'


def embedded(
    result: Result, place: int, *, label: str, most_cells: int
) -> tuple[dict[str, Any], list[Block]]:
    """Return facts and data of a run at a place of the page."""
    with readable(label):
        page = page_tables(result, most_cells=most_cells)
        blocks = [table_block(f"run{place}-{name}", table) for name, table in page.tables.items()]
        facts = _run_facts(result, label, page) | {"parameters": {}}
        json.dumps(facts, allow_nan=False)
    return facts, blocks


def table_block(name: str, table: pa.Table) -> Block:
    """Return the block of a table."""
    return Block(name, _ARROW, _encoded(table))


def facts_block(
    title: str,
    runs: Sequence[Mapping[str, Any]],
    *,
    report: Mapping[str, Any] | None = None,
    live: Mapping[str, Any] | None = None,
) -> Block:
    """Return the block that says what the page holds."""
    facts = {
        "format": FORMAT,
        "title": title,
        "measures": {one.name: [one.heading, one.unit] for one in MEASURES.values()},
        "runs": list(runs),
        "report": report,
        "live": live,
    }
    return Block("page", "application/json", _script_json(facts))


def live_html(
    title: str, facts: Mapping[str, Any], tables: Mapping[str, pa.Table], live: Mapping[str, Any]
) -> str:
    """Return the page of a live fabric; ``live`` has the relative path of the samples."""
    blocks = [table_block(f"run0-{name}", table) for name, table in tables.items()]
    page = facts_block(title, [facts], live=live)
    # The page connects to its own server only.
    return document(title, [page, *blocks], connect="'self'")


def _run_facts(result: Result, label: str, page: PageTables) -> dict[str, Any]:
    scenario = result.scenario
    tables = scenario.to_dict()
    return {
        "label": label,
        "name": scenario.name,
        "description": tables["description"],
        "scheme": tables["control"]["scheme"],
        "seed": result.seed,
        "version": result.version,
        "hash": scenario.hash,
        "fabric": {key: tables["fabric"][key] for key in _FABRIC_KEYS if key in tables["fabric"]},
        "path_choice": tables["fabric"]["path-choice"],
        "hosts": result.hosts.num_rows,
        "duration_ps": float(result.summary.get("simulated_ps", scenario.duration_ps)),
        "warm_up_ps": float(scenario.warm_up_ps),
        "link_gbps": scenario.link_gbps,
        "rates_gbps": {name: result.measures[name] for name in RATES if name in result.measures},
        "latency_max_ns": _largest_latency_ns(result),
        "groups": list(page.groups),
        "merged_samples": page.merged_samples,
        "skipped_trees": page.skipped_trees,
        "cut": dict(page.cut),
        "tables": list(page.tables),
        "scenario": scenario.to_toml(),
    }


def _largest_latency_ns(result: Result) -> float | None:
    if LARGEST_LATENCY not in result.hosts.column_names:
        return None
    largest = pc.max(result.hosts[LARGEST_LATENCY]).as_py()
    return None if largest is None else float(largest)


def _encoded(table: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", _LEVEL))
    plain = table.combine_chunks().replace_schema_metadata(None)
    with pa.ipc.new_file(sink, plain.schema, options=options) as writer:
        writer.write_table(plain)
    return base64.b64encode(sink.getvalue()).decode("ascii")


def _script_json(value: Mapping[str, Any]) -> str:
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def document(title: str, blocks: Sequence[Block], *, connect: str = "'none'") -> str:
    """Put the page together. Its policy lets run only the program that is in it."""
    assets = files("silvan.viewer") / "assets"
    data = "\n".join(block.html for block in blocks)
    program = (assets / "viewer.js").read_text("utf-8")
    style = (assets / "viewer.css").read_text("utf-8")
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_digest(program)}'",
            f"style-src '{_digest(style)}'",
            "img-src blob: data:",
            f"connect-src {connect}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return f"""{PAGE_START}<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)} - silvan</title>
<style>{style}</style>
</head>
<body>
<div id="app"><p>Reading the run ...</p></div>
<noscript>This page draws with JavaScript, which is switched off here.</noscript>
{data}
<script>{program}</script>
</body>
</html>
"""


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode()
