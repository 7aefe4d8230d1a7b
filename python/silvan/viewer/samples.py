"""Samples of a live fabric: messages of a JSON header and columns for the page."""

from __future__ import annotations

import json
import struct
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from silvan.live.emulation import ControlChannel
from silvan.viewer.dcms_log import DcmsLog

_COUNTED = {
    "xmit_bytes": ("xmit_bytes", 1.0),
    "xmit_wait_ps": ("xmit_wait_ns", 1e-3),
    "xmit_cong_ps": ("xmit_cong_ns", 1e-3),
    "fecn_marked": ("fecn_marked", 1.0),
}

_TREES = (
    "root_row",
    "root_vl",
    "destination",
    "contributors",
    "victims",
    "port_tree",
    "port_row",
    "port_depth",
    "port_parent",
    "port_queued",
    "host_tree",
    "host",
    "contributing",
    "victim",
)
_LIMITS = ("limit_source", "limit_destination", "limit_sl", "limit_ccti")
NO_LIMITS = {name: np.empty(0, np.uint32) for name in _LIMITS}

# Equal to those of viewer/src/live/history.ts.
_LEAST_KEPT, _MOST_KEPT = 20, 300
_MOST_CELLS = 4_000_000

_FABRIC_KEYS = ("generator", "sizes", "children", "parents", "k", "n", "switches")

Column = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Sample:
    """Counters since the start, and perhaps earlier congestion trees; ``routes`` only if new."""

    time_ps: int
    trees_ps: int
    classes: tuple[str, ...]
    routes_version: int
    columns: Mapping[str, Column]


class LiveFabric:
    """A running emulated fabric, as the page sees it."""

    def __init__(self, channel: ControlChannel, dcms: DcmsLog | None = None) -> None:
        self._channel = channel
        self._dcms = dcms
        self._before: Sample | None = None
        self._trees: tuple[int, dict[str, Column]] | None = None
        self._shown_trees_ps: int | None = None
        described = channel.answer("fabric")
        self._scenario_toml: str = described["scenario"]
        self._scenario = tomllib.loads(self._scenario_toml)
        self._nodes: list[dict[str, Any]] = described["nodes"]
        self._ports = np.asarray(described["ports"], np.float64).reshape(-1, 4)
        self._routes = 0, np.empty(0, np.uint8)
        self.sample()

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return str(self._scenario["name"])

    @property
    def most_messages(self) -> int:
        """Samples that a page gets when it is opened: as many as one keeps."""
        return max(_LEAST_KEPT, min(_MOST_KEPT, _MOST_CELLS // max(1, len(self._ports))))

    @property
    def version(self) -> str:
        """Version of the routes."""
        return str(self._routes[0])

    def facts(self) -> dict[str, Any]:
        """Return what the page says of the fabric."""
        from silvan import __version__

        fabric = self._scenario["fabric"]
        return {
            "label": self.name,
            "name": self.name,
            "description": self._scenario.get("description", ""),
            "scheme": self._scenario["control"]["scheme"],
            "seed": self._scenario["run"]["seed"],
            "version": __version__,
            "hash": "",
            "fabric": {key: fabric[key] for key in _FABRIC_KEYS if key in fabric},
            "path_choice": fabric["path-choice"],
            "hosts": sum(node["is_host"] for node in self._nodes),
            "duration_ps": 0,
            "warm_up_ps": 0,
            "link_gbps": float(self._ports[:, 3].max(initial=0)),
            "rates_gbps": {},
            "groups": ["all hosts"],
            "merged_samples": 1,
            "skipped_trees": 1,
            "tables": ["nodes", "ports", "routes"],
            "live_version": self.version,
            "live_is_off": self._is_off,
            "scenario": self._scenario_toml,
            "parameters": {},
        }

    @property
    def _is_off(self) -> bool:
        """True if the fabric began with Threshold 0; messages report marks of a switch."""
        switch = self._scenario["control"].get("ib-cc", {}).get("switch", {})
        return bool(switch.get("threshold") == 0)

    def tables(self) -> dict[str, pa.Table]:
        """Return nodes, ports and routes, as :func:`silvan.viewer.tables.page_tables` does."""
        nodes = self._nodes
        hosts = [node["is_host"] for node in nodes]
        lids = [node["lid"] or None for node in nodes]
        nothing = np.zeros(len(self._ports))
        return {
            "nodes": pa.table(
                {
                    "name": pa.array([node["name"] for node in nodes]),
                    "lid": pa.array(lids, pa.uint32()),
                    "role": pa.array([None] * len(nodes), pa.utf8()).dictionary_encode(),
                    "receives": pa.array(hosts),
                    "delivered_bytes": pa.array([None] * len(nodes), pa.float64()),
                    "injected_bytes": pa.array([None] * len(nodes), pa.float64()),
                }
            ),
            "ports": pa.table(
                {
                    "node": self._ports[:, 0].astype(np.uint32),
                    "number": self._ports[:, 1].astype(np.uint16),
                    "peer": self._ports[:, 2].astype(np.uint32),
                    "rate_gbps": self._ports[:, 3],
                    "xmit_bytes": nothing,
                    "xmit_pkts": nothing,
                    "xmit_wait_ps": nothing,
                    "xmit_cong_ps": nothing,
                    "fecn_marked": nothing,
                }
            ),
            "routes": pa.table({"port": self._routes[1]}),
        }

    def sample(self) -> Sample:
        """Read counters and trees of this instant."""
        known = {} if self._trees is None else {"trees": self._trees[0]}
        header = self._channel.answer("sample", routes=self._routes[0], **known)
        data = self._channel.numbers(header["bytes"])
        columns = {
            name: np.frombuffer(data, f"<u{width}", count, start)
            for name, (width, start, count) in header["columns"].items()
        }
        version: int = header["routes_version"]
        if "routes" in columns:
            # Both at once: the page may be made meanwhile.
            self._routes = version, columns["routes"]
        trees_ps: int = header["trees_ps"]
        if self._trees is None or self._trees[0] != trees_ps:
            self._trees = trees_ps, {name: columns[name] for name in _TREES}
        columns.update(self._trees[1])
        return Sample(header["time_ps"], trees_ps, tuple(header["classes"]), version, columns)

    def rest(self) -> bool:
        """Discard the last sample: later events are no part of the next one."""
        self._before = self._shown_trees_ps = None
        self._channel.answer("status")
        return True

    def updates(self) -> list[bytes]:
        """Return what the page needs of the time since the last call, if there is a last one."""
        before, after = self._before, self.sample()
        self._before = after
        if before is None or after.time_ps <= before.time_ps:
            return []
        events = self._dcms.take() if self._dcms is not None else ()
        shown, self._shown_trees_ps = self._shown_trees_ps, after.trees_ps
        return [message(before, after, events, shown_trees_ps=shown)]

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()


def message(
    before: Sample,
    after: Sample,
    events: Sequence[str] = (),
    *,
    shown_trees_ps: int | None = None,
) -> bytes:
    """Write a sample for the page.

    Trees of ``shown_trees_ps`` are omitted. The message is the header's length in 32 bits, the
    header, and columns at multiples of 8 bytes; all little-endian.
    """
    grown = {
        name: (after.columns[name] - before.columns[name]).astype(np.float32) * np.float32(factor)
        for name, (_, factor) in _COUNTED.items()
    }
    queued = after.columns["queued_bytes"]
    changed = np.flatnonzero(np.logical_or.reduce([queued, *grown.values()]))
    columns: dict[str, Column] = {
        "rows": changed.astype(np.uint32),
        **{name: grown[key][changed] for key, (name, _) in _COUNTED.items()},
        "queued_bytes": queued[changed].astype(np.float32),
        "down_rows": after.columns["down_rows"],
        "class_bytes": _since(before, after).astype(np.float64),
    }
    trees = _TREES if after.trees_ps != shown_trees_ps else ()
    for name in (*trees, *_LIMITS):
        values = after.columns[name]
        columns[name] = values.astype(np.float64) if values.itemsize == 8 else values
    if "routes" in after.columns:
        columns["routes"] = after.columns["routes"]
    header = {
        "from_ps": before.time_ps,
        "time_ps": after.time_ps,
        "trees_ps": after.trees_ps,
        "classes": after.classes,
        "dcms": list(events),
        "has_marked": bool(after.columns["fecn_marked"].any()),
        "version": str(after.routes_version),
    }
    return packed(header, columns)


def _since(before: Sample, after: Sample) -> npt.NDArray[np.uint64]:
    delivered: npt.NDArray[np.uint64] = after.columns["class_bytes"].astype(np.uint64)
    known = before.columns["class_bytes"]
    delivered[: len(known)] -= known
    return delivered


def packed(header: Mapping[str, Any], columns: Mapping[str, Column]) -> bytes:
    """Write a header and columns; see :func:`message`."""
    kinds = {}
    start = 0
    for name, values in columns.items():
        kinds[name] = [values.dtype.kind + str(8 * values.itemsize), start, len(values)]
        start += -(-values.nbytes // 8) * 8
    text = json.dumps({**header, "columns": kinds}, separators=(",", ":")).encode()
    parts = [struct.pack("<I", len(text)), text, b" " * (-(4 + len(text)) % 8)]
    for values in columns.values():
        parts += [values.tobytes(), b"\0" * (-values.nbytes % 8)]
    return b"".join(parts)
