"""Checks of a result that was read: what later code relies on, so that damage is named at once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from io import BufferedReader
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_NEEDED = {
    "hosts": ("host", "name", "lid", "role", "receives", "delivered_bytes", "injected_bytes"),
    "classes": ("name", "delivered_bytes"),
    "ports": ("node", "port", "peer", "link_gbps", "xmit_bytes", "xmit_wait_ps"),
}
"""Columns required of the tables of every run."""

_PLACES = {"ports_row": "ports", "root_row": "ports", "host": "hosts"}

_PLACES_OF = {
    "class_series": {"class": "classes"},
    "flow_limits": {"source": "hosts", "destination": "hosts"},
    "trees": {"tree": "tree_lifetimes"},
    "tree_ports": {"tree": "tree_lifetimes", "parent_row": "ports"},
    "tree_hosts": {"tree": "tree_lifetimes"},
}

_NULLABLE = ("destination",)
"""Nullable: a limit can apply to all flows of a host."""

_COUNTS = ("_bytes", "_ps", "_ns", "_pkts", "_packets", "_gbps", "_marked")

_NUMBERS = 1 << 64


def digest(file: BufferedReader) -> str:
    """Return the SHA-256 digest of an open file."""
    return hashlib.file_digest(file, "sha256").hexdigest()


def require_undamaged(seed: object, tables: Mapping[str, pa.Table], summary: Any) -> None:
    """Check that a result has what every run writes."""
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
        places = _PLACES | _PLACES_OF.get(name, {})
        for column in places.keys() & set(table.column_names):
            if places[column] not in tables:
                raise ValueError(f"it has no table {places[column]}")
            _require_places(name, column, table[column], tables[places[column]].num_rows)
    _require_hosts(tables["hosts"])
    _require_ports(tables["ports"])


def _require_number(name: str, value: object, *, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < _NUMBERS:
        text = str(value)[:40]
        raise ValueError(f"its {name} is {text}, and no whole number from {least} to 2^64 - 1")


def _require_counts(name: str, table: pa.Table) -> None:
    import pyarrow as pa

    for field in table.schema:
        is_number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        if field.name.endswith(_COUNTS) and not (is_number or pa.types.is_null(field.type)):
            raise ValueError(f"its {name}.parquet: the column {field.name} holds no numbers")


def _require_places(table: str, column: str, values: pa.ChunkedArray, rows: int) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    where = f"its {table}.parquet: the column {column}"
    if not pa.types.is_integer(values.type):
        raise ValueError(f"{where} holds no whole numbers")
    if values.null_count and column not in _NULLABLE:
        raise ValueError(f"{where} has {values.null_count} values missing")
    ends = pc.min_max(values).as_py()
    if len(values) > values.null_count and not 0 <= ends["min"] <= ends["max"] < rows:
        raise ValueError(f"{where} names row {ends['max']} of {rows}")


def _require_hosts(hosts: pa.Table) -> None:
    import pyarrow as pa

    where = "its hosts.parquet"
    _require_kind(where, hosts, {"name": pa.types.is_string, "role": pa.types.is_string})
    _require_kind(where, hosts, {"lid": pa.types.is_integer, "receives": pa.types.is_boolean})
    for row, number in enumerate(hosts["host"].to_pylist()):
        if number != row:
            raise ValueError(f"{where}: row {row} is of host {number}")
    _require_unique(where, "name", hosts["name"])
    _require_amounts(where, hosts)


def _require_ports(ports: pa.Table) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    where = "its ports.parquet"
    kinds = {"node": pa.types.is_string, "port": pa.types.is_integer, "peer": pa.types.is_string}
    if ports.num_rows == 0:
        return
    _require_kind(where, ports, kinds)
    numbers = ports["port"].cast(pa.string())
    names = pc.binary_join_element_wise(ports["node"], numbers, ":").combine_chunks()
    _require_unique(where, "port", names)
    peers = ports["peer"].combine_chunks()
    places = pc.index_in(peers, names)
    if places.null_count:
        row = pc.index(places.is_null(), pa.scalar(value=True)).as_py()
        raise ValueError(
            f"{where}: row {row}: the column peer names {peers[row]}, and there is no such port"
        )
    backs = peers.take(places)
    if not backs.equals(names):
        row = pc.index(pc.not_equal(backs, names), pa.scalar(value=True)).as_py()
        found = f"{names[row]} has the peer {peers[row]}, whose peer is {backs[row]}"
        raise ValueError(f"{where}: row {row}: {found}")
    _require_amounts(where, ports)
    rates = ports["link_gbps"]
    if pc.min(rates).as_py() <= 0:
        raise ValueError(f"{where}: the column link_gbps holds {pc.min(rates)}, and no rate")


def _require_kind(where: str, table: pa.Table, kinds: Mapping[str, Any]) -> None:
    for column, is_kind in kinds.items():
        values = table[column]
        if not is_kind(values.type) and table.num_rows:
            raise ValueError(f"{where}: the column {column} is of type {values.type}")
        if values.null_count:
            raise ValueError(f"{where}: the column {column} has {values.null_count} values missing")


def _require_unique(where: str, column: str, values: pa.Array | pa.ChunkedArray) -> None:
    import pyarrow.compute as pc

    if len(pc.unique(values)) < len(values):
        counts = pc.value_counts(values).to_pylist()
        twice = next(one["values"] for one in counts if one["counts"] > 1)
        raise ValueError(f"{where}: the column {column} has {twice} twice")


def _require_amounts(where: str, table: pa.Table) -> None:
    import pyarrow.compute as pc

    for column in table.column_names:
        if not column.endswith(_COUNTS) or column.startswith("latency"):
            continue
        values = table[column]
        if values.null_count:
            raise ValueError(f"{where}: the column {column} has {values.null_count} values missing")
        least = pc.min(values).as_py()
        is_finite = pc.all(pc.is_finite(values)).as_py()
        if len(values) and (not is_finite or least < 0):
            raise ValueError(f"{where}: the column {column} holds a value that is no amount")
