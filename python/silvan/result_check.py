"""Checks of a result that was read: what later code relies on, so that damage is named at once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_NEEDED = {
    "hosts": ("host", "name", "lid", "role", "receives", "delivered_bytes", "injected_bytes"),
    "classes": ("name", "delivered_bytes"),
    "ports": ("node", "port", "peer", "link_gbps", "xmit_bytes", "xmit_wait_ps"),
}
"""Tables that every run has, and columns that they cannot do without."""

_PLACES = {"ports_row": "ports", "root_row": "ports", "host": "hosts"}
"""Columns that are places in other tables."""

_COUNTS = ("_bytes", "_ps", "_ns", "_pkts", "_packets", "_gbps", "_marked")
"""How names of columns of numbers end."""

_NUMBERS = 1 << 64


def digest(path: Path) -> str:
    """Return the SHA-256 digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def require_whole(seed: object, tables: Mapping[str, pa.Table], summary: Any) -> None:
    """Make sure that a result has what every run writes.

    Parameters
    ----------
    seed : object
        Seed of the run.
    tables : Mapping of str to pyarrow.Table
        Its tables by name.
    summary : Any
        Numbers about the run itself.

    Raises
    ------
    ValueError
        Something is missing, of another type, or out of its range.
    """
    _require_number("seed", seed, least=0)
    if not isinstance(summary, Mapping):
        raise ValueError("its summary is no table")
    if "simulated_ps" not in summary:
        raise ValueError("its summary has no simulated_ps")
    _require_number("simulated_ps", summary["simulated_ps"], least=1)
    for name, columns in _NEEDED.items():
        if name not in tables:
            raise ValueError(f"it has no table {name}")
        for column in columns:
            if column not in tables[name].column_names:
                raise ValueError(f"its {name}.parquet has no column {column}")
            if tables[name][column].null_count == tables[name].num_rows > 0:
                raise ValueError(f"its {name}.parquet: the column {column} is empty")
    for name, table in tables.items():
        _require_counts(name, table)
        for column in _PLACES.keys() & set(table.column_names):
            _require_places(name, column, table[column], tables[_PLACES[column]].num_rows)


def _require_number(name: str, value: object, *, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < _NUMBERS:
        text = str(value)[:40]
        raise ValueError(f"its {name} is {text}, and no whole number from {least} to 2^64 - 1")


def _require_counts(name: str, table: pa.Table) -> None:
    """Make sure that columns with a unit are numbers."""
    import pyarrow as pa

    for field in table.schema:
        is_number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        if field.name.endswith(_COUNTS) and not (is_number or pa.types.is_null(field.type)):
            raise ValueError(f"its {name}.parquet: the column {field.name} holds no numbers")


def _require_places(table: str, column: str, values: pa.ChunkedArray, rows: int) -> None:
    """Make sure that all values are numbers of rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    where = f"its {table}.parquet: the column {column}"
    if not pa.types.is_integer(values.type):
        raise ValueError(f"{where} holds no whole numbers")
    if values.null_count:
        raise ValueError(f"{where} has {values.null_count} values missing")
    ends = pc.min_max(values).as_py()
    if len(values) and not 0 <= ends["min"] <= ends["max"] < rows:
        raise ValueError(f"{where} names row {ends['max']} of {rows}")
