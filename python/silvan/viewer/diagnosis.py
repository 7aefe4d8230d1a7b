"""The page of a diagnosed subnet: trees have lost Gbit/s in place of waiting bytes."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from silvan.folders import write_text
from silvan.live.moments import LOADS, Moment, Report, Subnet
from silvan.viewer.dcms_log import EventSource
from silvan.viewer.page import document, facts_block, table_block
from silvan.viewer.samples import NO_LIMITS, packed
from silvan.viewer.tables import MOST_CELLS, NO_ROW

MOST_MOMENTS = 2000

_MOST_UNEXPLAINED = 20
_SHOWN = ("ports", "unknown_ports", "trees", "health", "manager")
_PS_PER_NS = 1000
_BYTES_PER_GBPS_NS = 1 / 8

Column = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class TreeRows:
    """A tree by rows of the subnet's tables, root first; rates in Gbit/s."""

    root: int
    destination: int | None
    ports: list[tuple[int, int, int, float]]
    hosts: list[tuple[int, float, float]]


def write_diagnosis(moments: Sequence[Moment], path: Path, title: str) -> Path:
    """Write the page of moments, which shows the last one's subnet."""
    write_text(path, diagnosis_html(moments, title))
    return path


def diagnosis_html(moments: Sequence[Moment], title: str) -> str:
    """Return the page as text; see :func:`write_diagnosis`."""
    subnet = moments[-1].subnet
    cells = len(moments) * len(subnet.ports)
    merged = max(1, -(-cells // MOST_CELLS), -(-len(moments) // MOST_MOMENTS))
    groups = [moments[at : at + merged] for at in range(0, len(moments), merged)]
    start_ns = moments[0].at_ns - moments[0].span_ns
    ends = [(group[-1].at_ns - start_ns) * _PS_PER_NS for group in groups]
    tables = subnet_tables(subnet) | {
        "samples": pa.table({"time_ps": np.asarray(ends, np.float64)}),
        "reports": pa.table({"report": [_shown(group[-1].report) for group in groups]}),
    }
    tables |= _series(subnet, groups, np.diff(np.asarray([0, *ends]) / _PS_PER_NS))
    tables |= _tree_tables(subnet, [group[-1] for group in groups], ends)
    facts = _facts(subnet, title, start_ns) | {
        "duration_ps": float(ends[-1]),
        "tables": list(tables),
        "merged_samples": merged,
        "skipped_trees": merged,
    }
    blocks = [table_block(f"run0-{name}", table) for name, table in tables.items()]
    return document(title, [facts_block(title, [facts]), *blocks])


def subnet_tables(subnet: Subnet) -> dict[str, pa.Table]:
    """Return nodes and ports, and routes if they are known."""
    nodes, ports = subnet.nodes, subnet.ports
    nothing = np.zeros(len(ports))
    unknown = pa.array([None] * len(nodes), pa.float64())
    tables = {
        "nodes": pa.table(
            {
                "name": pa.array([node["name"] for node in nodes], pa.utf8()),
                "lid": pa.array([node["lid"] or None for node in nodes], pa.uint32()),
                "role": pa.array([None] * len(nodes), pa.utf8()).dictionary_encode(),
                "receives": pa.array([node["is_host"] for node in nodes]),
                "delivered_bytes": unknown,
                "injected_bytes": unknown,
            }
        ),
        "ports": pa.table(
            {
                "node": ports[:, 0].astype(np.uint32),
                "number": ports[:, 1].astype(np.uint16),
                "peer": ports[:, 2].astype(np.uint32),
                "rate_gbps": ports[:, 3],
                **dict.fromkeys(
                    ("xmit_bytes", "xmit_pkts", "xmit_wait_ps", "xmit_cong_ps", "fecn_marked"),
                    nothing,
                ),
            }
        ),
    }
    if subnet.routes:
        tables["routes"] = pa.table({"port": np.frombuffer(subnet.routes, np.uint8)})
    return tables


def _facts(subnet: Subnet, title: str, start_ns: int) -> dict[str, Any]:
    from silvan import __version__

    began = datetime.fromtimestamp(start_ns / 1e9, UTC).isoformat(" ", "seconds")
    return {
        "label": title,
        "name": title,
        "description": "",
        "scheme": "",
        "seed": 0,
        "version": __version__,
        "hash": "",
        "fabric": {},
        "path_choice": "table",
        "hosts": subnet.hosts,
        "duration_ps": 0,
        "warm_up_ps": 0,
        "link_gbps": float(subnet.ports[:, 3].max(initial=0)),
        "rates_gbps": {},
        "groups": ["all hosts"],
        "merged_samples": 1,
        "skipped_trees": 1,
        "tables": [],
        "scenario": "",
        "parameters": {},
        "diagnosis": {"began": began},
    }


def _shown(report: Report) -> str:
    shown = {name: report[name] for name in _SHOWN if name in report}
    shown["trees"] = [
        {name: value for name, value in tree.items() if name != "branches"}
        for tree in report["trees"]
    ]
    shown["unexplained"] = report["unexplained"][:_MOST_UNEXPLAINED]
    return json.dumps(shown, separators=(",", ":"), allow_nan=False)


def _loads(subnet: Subnet, moment: Moment) -> npt.NDArray[np.float64]:
    own = moment.loads.astype(np.float64)
    if moment.subnet.text == subnet.text:
        return own
    loads = np.full((len(LOADS), len(subnet.ports)), np.nan)
    for name, row in moment.subnet.rows.items():
        if (place := subnet.rows.get(name)) is not None:
            loads[:, place] = own[:, row]
    return loads


def _series(
    subnet: Subnet, groups: Sequence[Sequence[Moment]], lengths_ns: npt.NDArray[np.float64]
) -> dict[str, pa.Table]:
    means = np.stack([_mean([_loads(subnet, one) for one in group]) for group in groups])
    load, wait, congested = means.transpose(1, 2, 0)
    rates = subnet.ports[:, 3:4]
    sent = load * rates * lengths_ns * _BYTES_PER_GBPS_NS
    nothing = np.zeros(sent.size, np.uint16)
    series = {
        "xmit_bytes": sent.ravel().astype(np.float32),
        "xmit_wait_ns": (wait * lengths_ns).ravel().astype(np.float32),
        "xmit_cong_ns": (congested * lengths_ns).ravel().astype(np.float32),
        "fecn_marked": nothing,
        "queued_bytes": nothing,
    }
    received = np.nansum(sent[_to_hosts(subnet)], axis=0) / max(1, subnet.hosts)
    return {
        "port_series": pa.table(series),
        "group_series": pa.table({"delivered_bytes": received}),
    }


def _mean(loads: Sequence[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
    values = np.stack(loads)
    known = ~np.isnan(values)
    count = known.sum(axis=0)
    total = np.where(known, values, 0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _to_hosts(subnet: Subnet) -> npt.NDArray[np.bool_]:
    peers = subnet.ports[:, 2]
    ends = np.full(len(peers), NO_ROW, np.int64)
    ends[peers < len(peers)] = subnet.ports[peers[peers < len(peers)].astype(int), 0]
    return ends < subnet.hosts


def tree_rows(subnet: Subnet, report: Report) -> list[TreeRows]:
    """Find the rows of the trees of a report; ports that the subnet lacks are left out."""
    return [tree for one in report["trees"] if (tree := _tree(subnet, one)) is not None]


def _tree(subnet: Subnet, tree: dict[str, Any]) -> TreeRows | None:
    rows, hosts = subnet.rows, subnet.node_rows
    root = rows.get(tree["root"])
    if root is None:
        return None
    ports = [(root, 0, root, 0.0)]
    for branch in tree["branches"]:
        row, parent = rows.get(branch["port"]), rows.get(branch["waits_for"])
        if row is not None and parent is not None:
            lost = (branch["wait"] or 0.0) * subnet.ports[row, 3]
            ports.append((row, branch["depth"], parent, float(lost)))
    sent: dict[int, list[float]] = {}
    for place, kind in enumerate(("contributors", "victims")):
        for one in tree[kind]:
            if (host := hosts.get(one["host"])) is not None:
                sent.setdefault(host, [0.0, 0.0])[place] += one["gbps"]
    peer = rows.get(tree["peer"])
    node = None if peer is None else int(subnet.ports[peer, 0])
    return TreeRows(
        root,
        node if node is not None and node < subnet.hosts else None,
        ports,
        [(host, through, past) for host, (through, past) in sent.items()],
    )


def _tree_tables(
    subnet: Subnet, moments: Sequence[Moment], ends: Sequence[float]
) -> dict[str, pa.Table]:
    names = [node["name"] for node in subnet.nodes]
    lives: list[dict[str, Any]] = []
    trees: list[dict[str, Any]] = []
    ports: list[tuple[float, ...]] = []
    hosts: list[tuple[float, ...]] = []
    forest = []
    standing: dict[int, int] = {}
    for sample, (moment, end) in enumerate(zip(moments, ends, strict=True)):
        found = tree_rows(subnet, moment.report)
        before, standing = standing, {}
        for tree in found:
            number = before.get(tree.root, len(lives))
            destination = "" if tree.destination is None else names[tree.destination]
            if number == len(lives):
                lives.append(_birth(number, tree.root, destination, end))
            standing[tree.root] = number
            row = {
                "sample": sample,
                "tree": number,
                "root_row": tree.root,
                "destination": destination,
                "depth": max(depth for _, depth, _, _ in tree.ports),
                "ports": sum(subnet.ports[row, 0] >= subnet.hosts for row, *_ in tree.ports),
                "sources": sum(subnet.ports[row, 0] < subnet.hosts for row, *_ in tree.ports),
                "queued_bytes": sum(lost for *_, lost in tree.ports),
                "contributors": sum(through > 0 for _, through, _ in tree.hosts),
                "victims": sum(past > 0 for *_, past in tree.hosts),
            }
            trees.append(row)
            _grow(lives[number], row, end)
            ports += [(sample, number, *one) for one in tree.ports]
            hosts += [(sample, number, *one) for one in tree.hosts]
        for root in before.keys() - standing.keys():
            lives[before[root]] |= {"death_ps": end, "died": True}
        lost = sum(row["queued_bytes"] for row in trees[len(trees) - len(found) :])
        forest.append({"time_ps": end, "trees": len(found), "queued_bytes": lost})
    return {
        "forest": _table(forest, ("time_ps", "trees", "queued_bytes")),
        "trees": _table(trees, tuple(_TREE)),
        "tree_lifetimes": _table(lives, tuple(_LIFE)),
        "tree_ports": _columns(
            ports, ("sample", "tree", "ports_row", "depth", "parent_row"), ("queued_bytes",)
        ),
        "tree_hosts": _columns(
            hosts, ("sample", "tree", "host"), ("contributing_bytes", "victim_bytes")
        ),
    }


_TREE = (
    "sample",
    "tree",
    "root_row",
    "destination",
    "depth",
    "ports",
    "sources",
    "queued_bytes",
    "contributors",
    "victims",
)
_PEAKS = {
    "peak_ports": "ports",
    "peak_queued_bytes": "queued_bytes",
    "peak_contributors": "contributors",
    "peak_victims": "victims",
}
_LIFE = ("root_row", "destination", "birth_ps", "death_ps", "died", "lineage", *_PEAKS)
_WHOLE = ("sample", "tree")


def _birth(number: int, root: int, destination: str, at: float) -> dict[str, Any]:
    life = {"root_row": root, "destination": destination, "birth_ps": at, "death_ps": at}
    return life | {"died": False, "lineage": number} | dict.fromkeys(_PEAKS, 0.0)


def _grow(life: dict[str, Any], row: dict[str, Any], at: float) -> None:
    life["death_ps"] = at
    for peak, name in _PEAKS.items():
        life[peak] = max(life[peak], row[name])


def _table(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> pa.Table:
    def column(name: str) -> pa.Array:
        values = [row[name] for row in rows]
        if name == "destination":
            return pa.array(values, pa.utf8())
        kind = np.uint32 if name in _WHOLE else np.float64
        return pa.array(np.asarray(values, kind))

    return pa.table({name: column(name) for name in names})


def _columns(
    rows: Sequence[tuple[float, ...]], whole: Sequence[str], parts: Sequence[str]
) -> pa.Table:
    values = np.asarray(rows, np.float64).reshape(len(rows), len(whole) + len(parts))
    names = (*whole, *parts)
    kinds = [np.uint32] * len(whole) + [np.float64] * len(parts)
    columns = zip(names, kinds, values.T, strict=True)
    return pa.table({name: column.astype(kind) for name, kind, column in columns})


class LiveDiagnosis:
    """A watched subnet, as the live page sees it. Moments come from another thread."""

    most_messages = 300

    def __init__(self, first: Moment, title: str, dcms: EventSource | None = None) -> None:
        self.name = title
        self._start_ns = first.at_ns - first.span_ns
        self._last_ns = self._start_ns
        self._subnet = first.subnet
        self._dcms = dcms
        self._waiting: list[bytes] = []
        self._lock = threading.Lock()
        self.add(first)

    @property
    def version(self) -> str:
        """Digest whose change makes a new page necessary."""
        return self._subnet.digest

    def facts(self) -> dict[str, Any]:
        """Return what the page says of the subnet."""
        facts = _facts(self._subnet, self.name, self._start_ns)
        return facts | {"tables": list(self.tables()), "live_version": self.version}

    def tables(self) -> dict[str, pa.Table]:
        """Return nodes, ports and routes."""
        return subnet_tables(self._subnet)

    def add(self, moment: Moment) -> None:
        """Take a moment; the page gets it with the next update."""
        at_ns = max(moment.at_ns, self._last_ns + 1)
        events = self._dcms.take() if self._dcms is not None else []
        data = _message(moment, self._last_ns - self._start_ns, at_ns - self._start_ns, events)
        with self._lock:
            self._subnet = moment.subnet
            self._last_ns = at_ns
            self._waiting = [*self._waiting[-self.most_messages + 1 :], data]

    def rest(self) -> bool:
        """Forget nothing: moments that come while no page is open are kept."""
        return False

    def updates(self) -> list[bytes]:
        """Return the messages since the last call."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        return waiting


def _message(moment: Moment, from_ns: int, to_ns: int, events: Sequence[str]) -> bytes:
    subnet = moment.subnet
    load, wait, congested = moment.loads.astype(np.float64)
    length_ns = to_ns - from_ns
    rates = subnet.ports[:, 3]
    sent = load * rates * length_ns * _BYTES_PER_GBPS_NS
    changed = np.flatnonzero(np.isnan(load) | np.isnan(wait) | (load > 0) | (wait > 0))
    received = np.nansum(sent[_to_hosts(subnet)])
    columns: dict[str, Column] = {
        "rows": changed.astype(np.uint32),
        "xmit_bytes": sent[changed].astype(np.float32),
        "xmit_wait_ns": (wait * length_ns)[changed].astype(np.float32),
        "xmit_cong_ns": (congested * length_ns)[changed].astype(np.float32),
        "fecn_marked": np.zeros(len(changed), np.float32),
        "queued_bytes": np.zeros(len(changed), np.float32),
        "down_rows": np.empty(0, np.uint32),
        "class_bytes": np.asarray([received]),
        **NO_LIMITS,
        **_live_trees(tree_rows(subnet, moment.report)),
    }
    header = {
        "from_ps": from_ns * _PS_PER_NS,
        "time_ps": to_ns * _PS_PER_NS,
        "classes": ["all hosts"],
        "dcms": list(events),
        "report": _shown(moment.report),
        "version": subnet.digest,
    }
    return packed(header, columns)


def _live_trees(trees: Sequence[TreeRows]) -> dict[str, Column]:
    ports = [(place, *one) for place, tree in enumerate(trees) for one in tree.ports]
    hosts = [(place, *one) for place, tree in enumerate(trees) for one in tree.hosts]

    def column(rows: Sequence[tuple[float, ...]], place: int, kind: type = np.uint32) -> Column:
        return np.asarray([row[place] for row in rows], kind)

    ends = [NO_ROW if tree.destination is None else tree.destination for tree in trees]
    return {
        "root_row": np.asarray([tree.root for tree in trees], np.uint32),
        "root_vl": np.zeros(len(trees), np.uint32),
        "destination": np.asarray(ends, np.uint32),
        "contributors": np.asarray(
            [sum(one[1] > 0 for one in tree.hosts) for tree in trees], np.uint32
        ),
        "victims": np.asarray([sum(one[2] > 0 for one in tree.hosts) for tree in trees], np.uint32),
        "port_tree": column(ports, 0),
        "port_row": column(ports, 1),
        "port_depth": column(ports, 2),
        "port_parent": column(ports, 3),
        "port_queued": column(ports, 4, np.float64),
        "host_tree": column(hosts, 0),
        "host": column(hosts, 1),
        "contributing": column(hosts, 2, np.float64),
        "victim": column(hosts, 3, np.float64),
    }
