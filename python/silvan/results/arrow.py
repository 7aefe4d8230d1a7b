"""Columns of the compiled module as Arrow tables, without copying them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from silvan._silvan import Column, latency_percentile_resolution

Values = tuple[str, Column] | tuple[str, Column, Column]
"""Type name and values (truth values as bits), with validity bits before them if some are missing;
or ``"str"``, offsets and UTF-8 bytes.
"""

Columns = Mapping[str, Values]

_TYPES = {
    "u8": pa.uint8(),
    "u16": pa.uint16(),
    "u32": pa.uint32(),
    "u64": pa.uint64(),
    "f64": pa.float64(),
}


def table_from_columns(columns: Columns) -> pa.Table:
    """Wrap columns as an Arrow table over the same memory."""
    arrays = {name: _array(values, columns) for name, values in columns.items()}
    fields = [
        pa.field(name, array.type, metadata=_metadata(name)) for name, array in arrays.items()
    ]
    return pa.table(arrays, schema=pa.schema(fields))


def _metadata(name: str) -> dict[str, str] | None:
    if not name.startswith("latency_p"):
        return None
    return {"relative_resolution": str(latency_percentile_resolution())}


def _array(column: Values, columns: Columns) -> Any:
    name, *others, values = column
    buffers = [pa.py_buffer(other) for other in (*others, values)]
    if name == "str":
        return pa.Array.from_buffers(pa.utf8(), _rows(column), [None, *buffers])
    if name == "bool":
        # Bytes hold eight bits: another column has the length.
        rows = next(_rows(other) for other in columns.values() if other[0] != "bool")
        return pa.Array.from_buffers(pa.bool_(), rows, [None, *buffers])
    validity = [] if others else [None]
    return pa.Array.from_buffers(_TYPES[name], _rows(column), [*validity, *buffers])


def _rows(column: Values) -> int:
    if column[0] == "str":
        return column[1].nbytes // 4 - 1
    width: int = _TYPES[column[0]].bit_width // 8
    return column[-1].nbytes // width
