"""Columns of the compiled module as Arrow tables, without copying them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from silvan._silvan import Column

Columns = Mapping[str, "tuple[str, Column] | tuple[str, Column, Column]"]
"""Columns by name: type name and values, or ``"str"``, offsets and UTF-8 bytes."""

_TYPES = {
    "u8": pa.uint8(),
    "u16": pa.uint16(),
    "u32": pa.uint32(),
    "u64": pa.uint64(),
    "f64": pa.float64(),
}


def table_from_columns(columns: Columns) -> pa.Table:
    """Wrap columns as an Arrow table over the same memory.

    Parameters
    ----------
    columns : Mapping
        Columns by name; all of one length.

    Returns
    -------
    pyarrow.Table
        A table whose buffers keep the columns alive.
    """
    return pa.table({name: _array(column) for name, column in columns.items()})


def _array(column: tuple[str, Column] | tuple[str, Column, Column]) -> Any:
    if len(column) == 3:
        _, offsets, text = column
        rows = offsets.nbytes // 4 - 1
        return pa.Array.from_buffers(
            pa.utf8(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(text)]
        )
    name, values = column
    kind = _TYPES[name]
    return pa.Array.from_buffers(
        kind, values.nbytes // (kind.bit_width // 8), [None, pa.py_buffer(values)]
    )
