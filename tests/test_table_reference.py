"""The reference of tables lists every table and every column that a run can have, and no other."""

from __future__ import annotations

import re

import silvan
from tests.test_guide import ROOT

PAGES = sorted((ROOT / "docs" / "reference").glob("*.md"))
GOAL = "num_ranks 2\nrank 0 {\nl1: send 10b to 1 tag 3\n}\nrank 1 {\nl1: recv 10b from 0 tag 3\n}\n"


def documented() -> dict[str, set[str]]:
    """Read the columns of each table."""
    text = (ROOT / "docs" / "reference" / "tables.md").read_text()
    tables = {}
    for section in text.split("\n## ")[1:]:
        (name,) = re.findall(r"\A`(\w+)`", section)
        tables[name] = {column for cell in first_cells(section) for column in names(cell)}
    return tables


def first_cells(text: str) -> list[str]:
    """Return the first cell of each row of a table."""
    return re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE)


def names(cell: str) -> list[str]:
    """Return the names in a cell."""
    return re.findall(r"`(\w+)`", cell)


def every_table() -> dict[str, set[str]]:
    """Run a scenario with everything that adds a table or a column."""
    message = {"message": "4 KiB", "from": "host-0001", "to": ["host-0002"]}
    barrier = {"kind": "barrier", "hosts": ["host-0005", "host-0006"], "name": "barrier"}
    scenario = silvan.Scenario(
        fabric={
            "generator": "single-switch",
            "hosts": 8,
            "unreachable": "drop",
            "path-choice": "spray-random",
        },
        host={"in-order": True},
        traffic={
            "incast": [{"to": "host-0000"}],
            "sequence": [message],
            "flows": [{"sizes": {"fixed": "2 KiB"}, "load": 0.5}],
            "flow": [{"from": "host-0003", "to": "host-0004", "bytes": "16 KiB"}],
            "program": [barrier, {"kind": "goal", "trace": GOAL, "name": "goal"}],
        },
        probe={
            "ports": True,
            "latency": "host",
            "classes": True,
            "trees": {},
            "packets": {},
            "flow-limits": True,
            "messages": True,
        },
        run={"duration": "1 ms"},
    )
    tables = {name: set(table.column_names) for name, table in silvan.run(scenario).tables.items()}
    granted = silvan.run(
        silvan.Scenario(
            fabric={"generator": "single-switch", "hosts": 3},
            traffic={"incast": [{"to": "host-0000"}]},
            control={"scheme": "rccc"},
            run={"duration": "10 us"},
        )
    )
    tables["hosts"] |= set(granted.hosts.column_names)
    repeated = silvan.run(
        silvan.Scenario(
            fabric={"generator": "single-switch", "hosts": 3},
            host={"retry": {}},
            traffic={
                "flow": [{"from": "host-0000", "to": "host-0001", "bytes": "16 KiB"}],
                "program": [{"kind": "barrier", "name": "barrier"}],
            },
            fault=[{"do": "cut", "port": "host-0002", "at": "5 us", "for": "1 us"}],
            run={"duration": "100 us"},
        )
    )
    for name in ("hosts", "flows", "program_messages", "programs"):
        if name in repeated.tables:
            tables[name] |= set(repeated.tables[name].column_names)
    managed = silvan.run(
        silvan.Scenario(
            fabric={"generator": "single-switch", "hosts": 3},
            traffic={"incast": [{"to": "host-0000"}]},
            control={"scheme": "ib-cc", "ib-cc": {"switch": {"marking-rate": 128}}, "dcms": {}},
            run={"duration": "10 us"},
        )
    )
    tables["dcms"] = set(managed.tables["dcms"].column_names)
    return tables


def test_all_tables_and_columns_are_documented() -> None:
    listed, real = documented(), every_table()
    # Counters of ports may have a separate page.
    counters = {
        name for page in PAGES for cell in first_cells(page.read_text()) for name in names(cell)
    }
    assert listed.keys() == real.keys()
    for table, columns in real.items():
        assert listed[table] <= columns, table
        missing = columns - listed[table]
        assert missing <= (counters if table in ("ports", "port_series") else set()), table
