"""The tables of the page: small, and quick to read in a browser.

Tables are Arrow IPC files with zstd. JavaScript is slow with 64-bit integers, so times and totals
are 64-bit floats (exact up to 2**53), samples 32-bit integers. Series are stored port by port, and
members tree by tree, which halves the size.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from silvan.errors import OutputError
from silvan.results.receive_rates import hotspots, other_receivers
from silvan.results.result import Result
from silvan.viewer.events import events_table
from silvan.viewer.limits import MOST_LIMITS, count_limited_flows, limit_tables

MOST_CELLS = 8_000_000

MOST_MEMBERS = 2_000_000

MOST_ROWS = 100_000

MOST_EVENTS = 2000

LARGEST_LATENCY = "latency_max_ns"

NO_ROW = 2**32 - 1

Matrix = npt.NDArray[np.float64]

Number = TypeVar("Number", np.float64, np.uint64)

_SUMS = {
    "xmit_bytes": ("xmit_bytes", 1),
    "xmit_wait_ps": ("xmit_wait_ns", 1000),
    "xmit_cong_ps": ("xmit_cong_ns", 1000),
    "fecn_marked": ("fecn_marked", 1),
}
_TREE_PORTS = ("ports_row", "depth", "parent_row", "queued_bytes")
_TREE_HOSTS = ("host", "contributing_bytes", "victim_bytes")
_AS_THEY_ARE = ("flows", "sequences", "programs", "ranks")


@dataclass(frozen=True, slots=True)
class PageTables:
    """The tables of one run in a page.

    A sample of the port series covers ``merged_samples``; one of ``skipped_trees`` samples of the
    trees is kept. ``cut`` are full row counts of shortened tables.
    """

    tables: Mapping[str, pa.Table]
    groups: tuple[str, ...]
    merged_samples: int
    skipped_trees: int
    cut: Mapping[str, int]


def page_tables(
    result: Result, *, most_cells: int = MOST_CELLS, most_members: int = MOST_MEMBERS
) -> PageTables:
    """Make the tables of a page, without those that the run did not record."""
    tables = {"nodes": _nodes(result), "ports": _ports(result), "routes": _routes(result)}
    samples = _sample_count(result)
    merged = max(1, -(-samples * result.ports.num_rows // most_cells))
    groups: dict[str, Matrix] = {}
    wholes = {name: result.tables[name] for name in _AS_THEY_ARE if name in result.tables}
    rows = {name: table.num_rows for name, table in wholes.items()}
    if samples:
        groups = _groups(result, samples, merged)
        tables["samples"] = _samples(result, samples, merged)
        if groups:
            values = np.concatenate(list(groups.values()))
            tables["group_series"] = pa.table({"delivered_bytes": values})
        if "class_series" in result.tables:
            tables["class_series"] = _class_series(result, samples, merged)
        if "port_series" in result.tables:
            tables["port_series"] = _port_series(result, samples, merged)
        if "flow_limits" in result.tables:
            times = tables["samples"]["time_ps"].to_numpy()
            tables |= limit_tables(result, times, most=MOST_LIMITS * most_cells // MOST_CELLS)
            rows["limited_flows"] = count_limited_flows(result)
    tables["classes"] = _numbers_as_floats(result.classes)
    skipped = 1
    if "forest" in result.tables:
        skipped = max(1, -(-result.tree_ports.num_rows // most_members))
        tables |= _tree_tables(result, skipped)
    if "host_latencies" in result.tables:
        tables["latencies"] = _latencies(result)
    if samples and "latency_series" in result.tables:
        tables["latency_series"] = _latency_series(result, merged)
    for name, whole in wholes.items():
        kept = _slowest(whole) if name == "flows" else whole.slice(0, MOST_ROWS)
        tables[name] = _numbers_as_floats(kept)
    events = events_table(result)
    if events.num_rows:
        tables["events"] = events.slice(0, MOST_EVENTS)
        rows["events"] = events.num_rows
    cut = {name: count for name, count in rows.items() if count > tables[name].num_rows}
    return PageTables(tables, tuple(groups), merged, skipped, cut)


def _slowest(flows: pa.Table) -> pa.Table:
    if flows.num_rows <= MOST_ROWS:
        return flows
    slowdown = flows["slowdown"].cast(pa.float64()).fill_null(np.inf).to_numpy()
    return flows.take(np.sort(np.argsort(-slowdown, kind="stable")[:MOST_ROWS]))


def _nodes(result: Result) -> pa.Table:
    hosts = result.hosts
    switches = _switches(result)
    blank = [None] * len(switches)
    of_switches = _switch_lids(result)
    lids = hosts["lid"].to_pylist() + [of_switches.get(name) for name in switches]
    return pa.table(
        {
            "name": pa.array(hosts["name"].to_pylist() + switches),
            "lid": pa.array([lid or None for lid in lids], pa.uint32()),
            "role": pa.array(hosts["role"].to_pylist() + blank).dictionary_encode(),
            "receives": pa.array(hosts["receives"].to_pylist() + [False] * len(switches)),
            "delivered_bytes": pa.array(hosts["delivered_bytes"].to_pylist() + blank, pa.float64()),
            "injected_bytes": pa.array(hosts["injected_bytes"].to_pylist() + blank, pa.float64()),
        }
    )


def _switches(result: Result) -> list[str]:
    hosts = set(result.hosts["name"].to_pylist())
    return [name for name in dict.fromkeys(result.ports["node"].to_pylist()) if name not in hosts]


def _switch_lids(result: Result) -> dict[str, int | None]:
    nodes = json.loads(result.scenario._native.graph())["node"]
    return {node["name"]: node.get("lid") for node in nodes if "ports" in node}


def _ports(result: Result) -> pa.Table:
    hosts = result.hosts["name"].to_pylist()
    numbers = {name: row for row, name in enumerate([*hosts, *_switches(result)])}
    ports = result.ports
    nodes, port_numbers = ports["node"].to_pylist(), ports["port"].to_pylist()
    own = list(zip(nodes, port_numbers, strict=True))
    rows = {f"{node}:{port}": row for row, (node, port) in enumerate(own)}
    peers = [rows.get(peer, NO_ROW) for peer in ports["peer"].to_pylist()]
    columns = {
        "node": pa.array([numbers[node] for node in nodes], pa.uint32()),
        "number": pa.array(port_numbers, pa.uint16()),
        "peer": pa.array(peers, pa.uint32()),
        "rate_gbps": ports["link_gbps"],
    }
    totals = ("xmit_bytes", "xmit_pkts", "xmit_wait_ps", "xmit_cong_ps", "fecn_marked")
    return pa.table(columns | {name: ports[name].cast(pa.float64()) for name in totals})


def _routes(result: Result) -> pa.Table:
    egress = result.scenario.egress_ports()
    switches = _switches(result)
    lengths = {len(ports) for ports in egress.values()}
    if set(switches) != set(egress) or not lengths <= {result.hosts.num_rows}:
        raise _other_fabric(result, "its ports.parquet names other switches")
    _require_cables(result)
    columns = [np.frombuffer(egress[name], np.uint8) for name in switches]
    return pa.table({"port": np.concatenate([np.empty(0, np.uint8), *columns])})


def _require_cables(result: Result) -> None:
    graph = json.loads(result.scenario._native.graph())
    ends = [[f"{node}:{port}" for node, port in (one, other)] for one, other, *_ in graph["cable"]]
    peers = {one: other for pair in ends for one, other in (pair, pair[::-1])}
    ports = result.ports
    for row, (node, port, peer) in enumerate(
        zip(*(ports[name].to_pylist() for name in ("node", "port", "peer")), strict=True)
    ):
        wanted = peers.pop(f"{node}:{port}", None)
        if peer != wanted:
            what = f"there is no port {node}:{port}" if wanted is None else f"it is {wanted}"
            found = f"its ports.parquet: row {row}: the peer of {node}:{port} is {peer}"
            raise _other_fabric(result, f"{found}; in the scenario {what}")
    if peers:
        raise _other_fabric(result, f"its ports.parquet has no port {next(iter(peers))}")
    lids = {node["name"]: node.get("lid") for node in graph["node"]}
    hosts = result.hosts
    for name, lid in zip(hosts["name"].to_pylist(), hosts["lid"].to_pylist(), strict=True):
        if lids.get(name) not in (None, lid):
            found = f"its hosts.parquet: {name} has LID {lid}"
            raise _other_fabric(result, f"{found}; in the scenario it is {lids[name]}")


def _other_fabric(result: Result, what: str) -> OutputError:
    refused = f"{result.scenario.name}: the result's tables are not of the fabric of its scenario"
    return OutputError(f"{refused}: {what}", hint="the result is damaged: run again")


def _sample_count(result: Result) -> int:
    hosts = result.hosts.num_rows
    return result.host_series.num_rows // hosts if "host_series" in result.tables else 0


def _edges(samples: int, merged: int) -> npt.NDArray[np.int64]:
    return np.arange(0, samples, merged)


def _ends(samples: int, merged: int) -> npt.NDArray[np.int64]:
    return np.append(_edges(samples, merged)[1:], samples) - 1


def _summed(matrix: npt.NDArray[Number], merged: int) -> npt.NDArray[Number]:
    if merged == 1:
        return matrix
    return np.add.reduceat(matrix, _edges(len(matrix), merged), axis=0)


def _samples(result: Result, samples: int, merged: int) -> pa.Table:
    times = result.host_series["time_ps"].to_numpy().reshape(samples, -1)[:, 0]
    return pa.table({"time_ps": times[_ends(samples, merged)].astype(np.float64)})


def _groups(result: Result, samples: int, merged: int) -> dict[str, Matrix]:
    matrix = result.host_series["delivered_bytes"].to_numpy().reshape(samples, -1)
    members = {"hotspots": hotspots(result), "other receivers": other_receivers(result)}
    return {
        name: _summed(matrix[:, chosen].mean(axis=1, dtype=np.float64), merged)
        for name, chosen in members.items()
        if chosen.any()
    }


def _class_series(result: Result, samples: int, merged: int) -> pa.Table:
    series = result.tables["class_series"]["delivered_bytes"].to_numpy()
    matrix = _summed(series.reshape(samples, -1).astype(np.float64), merged)
    return pa.table({"delivered_bytes": matrix.T.ravel()})


def _port_series(result: Result, samples: int, merged: int) -> pa.Table:
    series = result.tables["port_series"]
    columns = {}
    for name, (label, unit) in _SUMS.items():
        values = series[name].to_numpy().reshape(samples, -1)
        columns[label] = _smallest(_in_unit(_summed(values, merged), unit))
    queued = series["queued_bytes"].to_numpy().reshape(samples, -1)
    columns["queued_bytes"] = _smallest(queued[_ends(samples, merged)])
    return pa.table({name: matrix.T.ravel() for name, matrix in columns.items()})


def _in_unit(values: npt.NDArray[np.uint64], unit: int) -> npt.NDArray[np.uint64]:
    if unit == 1:
        return values
    return np.diff(np.cumsum(values, axis=0) // np.uint64(unit), axis=0, prepend=np.uint64(0))


def _smallest(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.generic]:
    largest = int(values.max(initial=0))
    if largest < 2**16:
        return values.astype(np.uint16)
    return values.astype(np.uint32 if largest < 2**32 else np.float64)


def _tree_tables(result: Result, skipped: int) -> dict[str, pa.Table]:
    times = result.forest["time_ps"].to_numpy()
    kept = times[::skipped]
    trees, trees_at = _at_samples(result.trees, kept)
    tables = {
        "forest": _numbers_as_floats(result.forest.take(np.arange(0, len(times), skipped))),
        "trees": _numbers_as_floats(trees.drop_columns(["time_ps"])).append_column(
            "sample", pa.array(trees_at)
        ),
        "tree_lifetimes": _numbers_as_floats(result.tree_lifetimes),
    }
    for name, columns in {"tree_ports": _TREE_PORTS, "tree_hosts": _TREE_HOSTS}.items():
        rows, at = _at_samples(result.tables[name], kept)
        values = {column: rows[column].to_numpy() for column in ("tree", *columns)}
        order = np.lexsort((at, values[columns[0]], values["tree"]))
        small = {column: _smallest(of[order].astype(np.uint64)) for column, of in values.items()}
        tables[name] = pa.table({"sample": at[order], **small})
    return tables


def _at_samples(
    table: pa.Table, kept: npt.NDArray[np.uint64]
) -> tuple[pa.Table, npt.NDArray[np.uint32]]:
    times = table["time_ps"].to_numpy()
    at = np.searchsorted(kept, times)
    inside = at < len(kept)
    inside[inside] = kept[at[inside]] == times[inside]
    return table.filter(pa.array(inside)), at[inside].astype(np.uint32)


def _latencies(result: Result) -> pa.Table:
    table = result.tables["host_latencies"]
    whole = {name: table[name].to_numpy() for name in ("host", "from_ns", "to_ns", "packets")}
    columns = {name: _smallest(values.astype(np.uint64)) for name, values in whole.items()}
    # Intervals hold whole nanoseconds; no packet took longer than the largest.
    if LARGEST_LATENCY in result.hosts.column_names:
        largest = result.hosts[LARGEST_LATENCY].to_numpy(zero_copy_only=False)[whole["host"]]
        columns["to_ns"] = np.where(whole["to_ns"] + 1 > largest, largest, whole["to_ns"])
    return pa.table(columns)


def _latency_series(result: Result, merged: int) -> pa.Table:
    """Return each sample's latencies; an interval's smallest implies its largest."""
    table = result.tables["latency_series"]
    times = np.unique(result.tables["host_series"]["time_ps"].to_numpy())
    sample = np.searchsorted(times, table["time_ps"].to_numpy()) // merged
    columns = {"sample": sample.astype(np.uint64)}
    columns |= {name: table[name].to_numpy().astype(np.uint64) for name in ("from_ns", "packets")}
    return pa.table({name: _smallest(values) for name, values in columns.items()})


def _numbers_as_floats(table: pa.Table) -> pa.Table:
    columns = {}
    for name in table.column_names:
        column = table[name]
        if column.type in (pa.uint64(), pa.int64()):
            column = column.cast(pa.float64())
        columns[name] = column
    return pa.table(columns)
