"""A trace holds what the tables hold, in the form that Chromium's trace viewers load."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import silvan
from silvan.cli.app import run_command
from silvan.viewer import write_trace

# Keys that "Trace Event Format" wants of each kind of event, beyond name, phase and process.
WANTED = {"X": {"ts", "dur", "tid"}, "C": {"ts", "args"}, "i": {"ts", "s"}, "M": {"args"}}
WANTED |= {"b": {"ts", "id", "cat"}, "e": {"ts", "id", "cat"}}


def _events(path: Path) -> list[dict[str, Any]]:
    trace = json.loads(path.read_text("utf-8"))
    events: list[dict[str, Any]] = trace["traceEvents"]
    for event in events:
        assert {"name", "ph", "pid"} | WANTED[event["ph"]] <= set(event)
        assert event.get("ts", 0) >= 0
        assert event.get("dur", 0) >= 0
    return events


def _counters(events: list[dict[str, Any]]) -> dict[str, list[tuple[float, float]]]:
    found = defaultdict(list)
    for event in events:
        if event["ph"] == "C":
            (value,) = event["args"].values()
            found[event["name"]].append((event["ts"], value))
    return found


def test_trees_and_queues_are_those_of_the_result(run: silvan.Result, tmp_path: Path) -> None:
    events = _events(write_trace(run, tmp_path / "trace.json"))
    lives = run.tree_lifetimes.to_pylist()
    slices = [one for one in events if one["ph"] == "X" and one["name"].startswith("tree ")]
    spans = [(one["ts"] * 1e6, (one["ts"] + one["dur"]) * 1e6) for one in slices]
    expected = [(life["birth_ps"], life["death_ps"]) for life in lives]
    assert [value for span in spans for value in span] == pytest.approx(
        [value for span in expected for value in span]
    )
    counters = _counters(events)
    forest = run.forest.to_pylist()
    assert counters["bytes in trees"] == [
        (row["time_ps"] / 1e6, row["queued_bytes"]) for row in forest
    ]
    ports = run.ports.to_pylist()
    queued = run.tables["port_series"]["queued_bytes"].to_numpy().reshape(-1, len(ports))
    shown = {name for name in counters if name.startswith("queue ")}
    used = {
        f"queue {one['node']}:{one['port']}" for at, one in enumerate(ports) if queued[:, at].any()
    }
    assert shown == used
    for at, one in enumerate(ports):
        if queued[:, at].any():
            values = [value for _, value in counters[f"queue {one['node']}:{one['port']}"]]
            assert values == queued[:, at].tolist()


def test_messages_of_recorded_flows_last_from_start_to_delivery(tmp_path: Path) -> None:
    pair = {"from": "host-0001", "to": "host-0002"}
    result = silvan.run(
        silvan.Scenario(
            fabric={"generator": "single-switch", "hosts": 4},
            traffic={
                "flow": [{**pair, "bytes": "40 KiB"}],
                "message": "8 KiB",
                "uniform": [{"load": 0.2}],
            },
            probe={"packets": {"flows": [pair]}},
            run={"duration": "1 ms"},
        )
    )
    events = _events(write_trace(result, tmp_path / "trace.json"))
    name = "flow-1: host-0001 to host-0002"
    begins = [one for one in events if one["ph"] == "b" and one["name"] == name]
    ends = {one["id"]: one["ts"] for one in events if one["ph"] == "e"}
    (flow,) = result.flows.to_pylist()
    # Five messages of 8 KiB, each of four packets of 2 KiB with headers of 26 bytes.
    assert [one["args"] for one in begins] == 5 * [{"packets": 4, "wire_bytes": 4 * (2048 + 26)}]
    assert begins[0]["ts"] * 1e6 == pytest.approx(flow["start_ps"])
    assert ends[begins[-1]["id"]] * 1e6 == pytest.approx(flow["end_ps"])
    times = [one["ts"] for one in begins]
    assert times == sorted(times)


def test_ranks_have_the_time_of_their_program(tmp_path: Path) -> None:
    result = silvan.run(
        silvan.Scenario(
            fabric={"generator": "single-switch", "hosts": 4},
            traffic={"program": [{"kind": "allreduce", "bytes": "64 KiB"}]},
            run={"duration": "1 ms"},
        )
    )
    events = _events(write_trace(result, tmp_path / "trace.json"))
    slices = {one["name"]: one for one in events if one["ph"] == "X"}
    for rank in result.ranks.to_pylist():
        one = slices[f"rank {rank['rank']}"]
        assert one["ts"] + one["dur"] == pytest.approx(rank["end_ps"] / 1e6)
        assert one["args"]["sent_bytes"] == rank["sent_bytes"]
    threads = {one["args"]["name"] for one in events if one["name"] == "thread_name"}
    assert {f"rank {number} on host-{number:04}" for number in range(4)} <= threads


def test_an_unfinished_flow_lasts_to_the_end(tmp_path: Path) -> None:
    flow = {"name": "long", "from": "host-0000", "to": "host-0001", "bytes": "1 GiB"}
    result = silvan.run(
        silvan.Scenario(
            fabric={"generator": "single-switch", "hosts": 2},
            traffic={"flow": [flow]},
            run={"duration": "50 us"},
        )
    )
    events = _events(write_trace(result, tmp_path / "trace.json"))
    (one,) = (event for event in events if event["ph"] == "X")
    assert (one["name"], one["ts"], one["dur"]) == ("long", 0, 50)
    assert one["args"]["finished"] is False


def test_the_command_writes_a_trace(
    run: silvan.Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run.write(tmp_path / "run")
    trace = tmp_path / "trace.json"
    assert run_command(["view", str(tmp_path / "run"), "--perfetto", str(trace)]) == 0
    assert capsys.readouterr().out.strip() == str(trace)
    assert _events(trace)
    words = ["view", str(tmp_path / "run"), "--perfetto", str(trace), "--out", "page.html"]
    assert run_command(words) == 2
    assert "a trace or a page" in capsys.readouterr().err
