"""A run as JSON trace events for ui.perfetto.dev and chrome://tracing.

The format is "Trace Event Format" (the Chromium project). A process is a kind of thing (programs,
flows, trees, ports, hosts), a thread one of them. Times are in microseconds.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from silvan.folders import write_text
from silvan.results.receive_rates import hotspots, other_receivers, receive_rate_series_gbps
from silvan.results.result import Result
from silvan.viewer.events import events_table
from silvan.viewer.operations import operations_of
from silvan.viewer.shapes import readable

MOST_PORTS = 32

TraceEvent = dict[str, Any]

TRACE_START = '{"displayTimeUnit": "ns", "traceEvents": ['

_PS_PER_US = 1e6


def write_trace(result: Result, path: Path) -> Path:
    """Write the trace of a run, without data that it did not record."""
    with readable(result.scenario.name):
        events = list(trace_events(result))
        text = json.dumps({"displayTimeUnit": "ns", "traceEvents": events}, allow_nan=False)
    write_text(path, text + "\n")
    return path


def trace_events(result: Result) -> Iterator[TraceEvent]:
    """Return the events of the trace of a run; see :func:`write_trace`."""
    end_us = result.summary.get("simulated_ps", result.scenario.duration_ps) / _PS_PER_US
    processes = count(1)
    if "programs" in result.tables:
        yield from _programs(result, processes, end_us)
    if "flows" in result.tables:
        yield from _flows(result, next(processes), end_us)
    if "packet_hops" in result.tables:
        yield from _messages(result, next(processes))
    if "forest" in result.tables:
        yield from _trees(result, next(processes))
    if "port_series" in result.tables:
        yield from _queues(result, next(processes))
    if "host_series" in result.tables:
        yield from _rates(result, next(processes))
    yield from _instants(result, next(processes))


def _named(process: int, name: str, thread: int | None = None) -> TraceEvent:
    if thread is None:
        place = {"ph": "M", "name": "process_name", "pid": process, "tid": 0}
        return place | {"args": {"name": name}}
    kind = {"ph": "M", "name": "thread_name", "pid": process, "tid": thread}
    return kind | {"args": {"name": name}}


def _slice(
    process: int, thread: int, name: str, start_us: float, end_us: float, **facts: Any
) -> TraceEvent:
    place = {"ph": "X", "pid": process, "tid": thread, "name": name}
    return place | {"ts": start_us, "dur": max(0.0, end_us - start_us), "args": facts}


def _counter(process: int, name: str, at_us: float, **values: float) -> TraceEvent:
    place = {"ph": "C", "pid": process, "tid": 0, "name": name}
    return place | {"ts": at_us, "args": values}


def _us(ps: float | None, otherwise: float) -> float:
    return otherwise if ps is None else ps / _PS_PER_US


def _programs(result: Result, processes: Iterator[int], end_us: float) -> Iterator[TraceEvent]:
    hosts = result.hosts["name"].to_pylist()
    pids: dict[int, tuple[int, float]] = {}
    keys = _keys(result)
    for row in result.programs.to_pylist():
        pid, start = next(processes), row["start_ps"] / _PS_PER_US
        pids[row["program"]] = pid, start
        yield _named(pid, f"program {row['name']}")
        facts = {"ranks": row["ranks"], "finished": row["finished"], "slowdown": row["slowdown"]}
        if "kind" in keys[row["program"]]:
            facts["kind"] = keys[row["program"]]["kind"]
        yield _slice(pid, 0, row["name"], start, _us(row["end_ps"], end_us), **facts)
    for row in result.ranks.to_pylist():
        pid, start = pids[row["program"]]
        thread = row["rank"] + 1
        yield _named(pid, f"rank {row['rank']} on {hosts[row['host']]}", thread)
        facts = {
            key: row[key] for key in ("sends", "sent_bytes", "receives", "compute_ps", "waiting_ps")
        }
        yield _slice(pid, thread, f"rank {row['rank']}", start, _us(row["end_ps"], end_us), **facts)
    yield from _phases(result, pids, keys)


def _phases(
    result: Result, pids: dict[int, tuple[int, float]], keys: list[Mapping[str, Any]]
) -> Iterator[TraceEvent]:
    """Return measured operations (slices), GOAL's operations and messages (asynchronous events)."""
    messages = count()
    yield from _measured(result, pids, keys)
    sent = _sent(result)
    for row in _rows(result, "program_steps"):
        job, rank = row["program"], row["rank"]
        begin, end = row["begin_ps"] / _PS_PER_US, row["end_ps"] / _PS_PER_US
        facts = {
            "program": keys[job]["name"],
            **_sends(sent[job, rank], row["begin_ps"], row["end_ps"]),
        }
        name = f"{keys[job].get('kind', '')} step {row['step']}".strip()
        yield _slice(pids[job][0], rank + 1, name, begin, end, **facts)
    yield from _scheduled(result, pids, keys)
    for row in _rows(result, "program_messages"):
        place = {"pid": pids[row["program"]][0], "tid": row["from_rank"] + 1, "cat": "message"}
        name = f"message from rank {row['from_rank']} to {row['to_rank']}"
        place |= {"id": f"message {next(messages)}", "name": name}
        facts = {"bytes": row["bytes"], "tag": row["tag"], "peer": row["to_rank"]}
        facts["program"] = keys[row["program"]]["name"]
        yield place | {"ph": "b", "ts": row["begin_ps"] / _PS_PER_US, "args": facts}
        yield place | {"ph": "e", "ts": row["end_ps"] / _PS_PER_US}


def _keys(result: Result) -> list[Mapping[str, Any]]:
    programs = result.scenario.to_dict()["traffic"].get("program", ())
    by_name = {one["name"]: one for one in programs}
    names = result.programs["name"].to_pylist()
    return [by_name.get(name, {"name": name}) for name in names]


def _measured(
    result: Result, pids: dict[int, tuple[int, float]], keys: list[Mapping[str, Any]]
) -> Iterator[TraceEvent]:
    before: dict[tuple[int, int], float] = {}
    for row in sorted(_rows(result, "program_marks"), key=lambda row: row["begin_ps"]):
        job, rank, index = row["program"], row["rank"], row["index"]
        pid, start = pids[job]
        own = keys[job]
        name, facts = f"{row['label']} {index}", {"program": own["name"]}
        begin, end = row["begin_ps"] / _PS_PER_US, row["end_ps"] / _PS_PER_US
        if own.get("kind") == "training":
            name, facts["iteration"] = f"training step {index}", index
        elif "kind" in own and row["label"] == "operation":
            size = f" {own['bytes']}" if "bytes" in own else ""
            name = f"{own['kind']}{size}, iteration {index}"
            facts |= {"iteration": index, **({"bytes": own["bytes"]} if size else {})}
            computed_from = before.get((job, rank), start)
            if "compute" in own and begin > computed_from:
                yield _slice(pid, rank + 1, "compute", computed_from, begin, job=own["name"])
        before[job, rank] = end
        yield _slice(pid, rank + 1, name, begin, end, **facts)


def _sent(result: Result) -> dict[tuple[int, int], list[tuple[int, int, int]]]:
    sent: dict[tuple[int, int], list[tuple[int, int, int]]] = defaultdict(list)
    for row in _rows(result, "program_messages"):
        message = row["begin_ps"], row["to_rank"], row["bytes"]
        sent[row["program"], row["from_rank"]].append(message)
    for messages in sent.values():
        messages.sort()
    return sent


def _sends(sent: list[tuple[int, int, int]], begin_ps: int, end_ps: int) -> dict[str, Any]:
    first, last = (bisect_left(sent, (at, -1, 0)) for at in (begin_ps, end_ps))
    own = sent[first:last]
    if not own:
        return {}
    peers = sorted({peer for _, peer, _ in own})
    facts = {"peer": peers[0]} if len(peers) == 1 else {"peers": str(peers)}
    return {"sent_bytes": sum(size for *_, size in own), **facts}


def _scheduled(
    result: Result, pids: dict[int, tuple[int, float]], keys: list[Mapping[str, Any]]
) -> Iterator[TraceEvent]:
    traces = [operations_of(one) for one in keys]
    spans: dict[tuple[int, int, int, int], tuple[int, int]] = {}
    for part, row in enumerate(_rows(result, "program_ops")):
        if row["start_ps"] is not None and row["end_ps"] is not None:
            own = 0 if traces[row["program"]].are_whole else part
            key = row["program"], row["rank"], row["line"], own
            start, end = spans.get(key, (row["start_ps"], row["end_ps"]))
            spans[key] = min(start, row["start_ps"]), max(end, row["end_ps"])
    for number, ((job, rank, line, _), (start_ps, end_ps)) in enumerate(spans.items()):
        operation = traces[job].at(rank, line)
        place = {"pid": pids[job][0], "tid": rank + 1, "cat": "operation"}
        place |= {"id": f"operation {number}", "name": operation.name}
        facts = {"program": keys[job]["name"], "line": line, **operation.facts}
        yield place | {"ph": "b", "ts": start_ps / _PS_PER_US, "args": facts}
        yield place | {"ph": "e", "ts": end_ps / _PS_PER_US}


def _rows(result: Result, table: str) -> list[dict[str, Any]]:
    return result.tables[table].to_pylist() if table in result.tables else []


def _flows(result: Result, pid: int, end_us: float) -> Iterator[TraceEvent]:
    yield _named(pid, "flows")
    for thread, row in enumerate(result.flows.to_pylist()):
        yield _named(pid, f"{row['name']}: {row['from']} to {row['to']}", thread)
        start, end = row["start_ps"] / _PS_PER_US, _us(row["end_ps"], end_us)
        facts = {
            key: row[key]
            for key in ("from", "to", "bytes", "delivered_bytes", "finished", "slowdown")
        }
        yield _slice(pid, thread, row["name"], start, end, **facts)


def _messages(result: Result, pid: int) -> Iterator[TraceEvent]:
    """Return received messages with packets on the last link; they overlap, so are asynchronous."""
    yield _named(pid, "messages")
    hops = result.packet_hops
    received = hops.filter(
        pc.and_(pc.equal(hops["kind"], "data"), pc.is_valid(hops["delivered_ps"]))
    )
    names, classes = result.hosts["name"].to_pylist(), result.classes["name"].to_pylist()
    packets: dict[tuple[int, int, int], list[dict[str, Any]]] = {}
    numbers = count()
    for hop in received.sort_by("born_ps").to_pylist():
        flow = (hop["source"], hop["destination"], hop["class"])
        parts = packets.setdefault(flow, [])
        parts.append(hop)
        if hop["last"]:
            source, destination, of = flow
            name = f"{classes[of]}: {names[source]} to {names[destination]}"
            facts = {"packets": len(parts), "wire_bytes": sum(one["wire_bytes"] for one in parts)}
            place = {"pid": pid, "tid": 0, "cat": "message", "id": next(numbers), "name": name}
            yield place | {"ph": "b", "ts": parts[0]["born_ps"] / _PS_PER_US, "args": facts}
            yield place | {"ph": "e", "ts": max(one["delivered_ps"] for one in parts) / _PS_PER_US}
            parts.clear()


def _trees(result: Result, pid: int) -> Iterator[TraceEvent]:
    yield _named(pid, "congestion trees")
    ports = _port_names(result)
    for row in result.tree_lifetimes.to_pylist():
        to = f" to {row['destination']}" if row["destination"] else ""
        name = f"tree {row['tree']}: {ports[row['root_row']]}{to}"
        yield _named(pid, name, row["tree"])
        facts = {key: value for key, value in row.items() if key.startswith("peak_")}
        birth, death = row["birth_ps"] / _PS_PER_US, row["death_ps"] / _PS_PER_US
        yield _slice(pid, row["tree"], name, birth, death, **facts)
    for row in result.forest.to_pylist():
        at = row["time_ps"] / _PS_PER_US
        yield _counter(pid, "trees", at, trees=row["trees"])
        yield _counter(pid, "bytes in trees", at, bytes=row["queued_bytes"])


def _port_names(result: Result) -> list[str]:
    columns = (result.ports[name].to_pylist() for name in ("node", "port"))
    return [f"{node}:{port}" for node, port in zip(*columns, strict=True)]


def _queues(result: Result, pid: int) -> Iterator[TraceEvent]:
    yield _named(pid, "queues")
    series, names = result.tables["port_series"], _port_names(result)
    queued = series["queued_bytes"].to_numpy().reshape(-1, len(names))
    times = series["time_ps"].to_numpy().reshape(-1, len(names))[:, 0] / _PS_PER_US
    longest = queued.max(axis=0)
    for row in np.argsort(-longest.astype(np.int64), kind="stable")[:MOST_PORTS]:
        if longest[row]:
            for at, value in zip(times, queued[:, row], strict=True):
                yield _counter(pid, f"queue {names[row]}", float(at), bytes=int(value))


def _rates(result: Result, pid: int) -> Iterator[TraceEvent]:
    yield _named(pid, "receive rates")
    for name, members in {
        "hotspots, Gbit/s": hotspots(result),
        "other receivers, Gbit/s": other_receivers(result),
    }.items():
        if members.any():
            times_ms, rates = receive_rate_series_gbps(result, members)
            for at, rate in zip(times_ms, rates, strict=True):
                yield _counter(pid, name, float(at) * 1e3, rate=float(rate))


def _instants(result: Result, pid: int) -> Iterator[TraceEvent]:
    events: pa.Table = events_table(result)
    if events.num_rows:
        yield _named(pid, "events")
    for row in events.to_pylist():
        name = f"{row['kind']}: {row['text']}"
        place = {"ph": "i", "s": "g", "pid": pid, "tid": 0, "name": name}
        yield place | {"ts": row["time_ps"] / _PS_PER_US}
