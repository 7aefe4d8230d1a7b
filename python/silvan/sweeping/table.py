"""Finished points as rows, and rows as one Arrow table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from silvan.inputs.toml_text import TomlValue
from silvan.results.measures import MEASURES
from silvan.sweeping.plan import plain


@dataclass(frozen=True, slots=True)
class SweepRow:
    """A finished point: values by dotted key, measures by name, and why its scheme never acted."""

    hash: str
    seed: int
    values: dict[str, TomlValue]
    measures: dict[str, int | float | None]
    wall_s: float
    idle_scheme: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give the row as plain values, for JSON."""
        return asdict(self)


_LAST = ("seed", "wall_s", "idle_scheme", "hash")


def to_table(rows: Sequence[SweepRow], keys: Sequence[str]) -> pa.Table:
    """Make one table of all rows; columns of numbers only are numbers."""
    known = {name for row in rows for name in row.measures}
    measures = [name for name in MEASURES if name in known]
    columns = {key: _column([row.values.get(key) for row in rows]) for key in keys}
    columns["seed"] = pa.array([row.seed for row in rows], pa.uint64())
    for name in measures:
        kind = pa.uint64() if MEASURES[name].is_whole else pa.float64()
        columns[name] = pa.array([row.measures.get(name) for row in rows], kind)
    columns["wall_s"] = pa.array([row.wall_s for row in rows], pa.float64())
    columns["idle_scheme"] = pa.array([row.idle_scheme for row in rows], pa.string())
    columns["hash"] = pa.array([row.hash for row in rows], pa.string())
    return pa.table(columns)


def from_table(table: pa.Table, keys: Sequence[str]) -> list[SweepRow]:
    """Give the rows of a table that :func:`to_table` has made."""
    measures = [name for name in table.column_names if name not in (*keys, *_LAST)]
    return [
        SweepRow(
            hash=row["hash"],
            seed=row["seed"],
            values={key: row[key] for key in keys},
            measures={name: row[name] for name in measures},
            wall_s=row["wall_s"],
            idle_scheme=row.get("idle_scheme"),
        )
        for row in table.to_pylist()
    ]


def _column(values: Sequence[TomlValue | None]) -> pa.Array:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pa.array(values, pa.bool_())
    if kinds == {int}:
        return pa.array(values, pa.int64())
    if kinds and kinds <= {int, float}:
        return pa.array([None if value is None else float(str(value)) for value in values])
    return pa.array([None if value is None else plain(value) for value in values], pa.string())
