"""A trace holds what the tables hold, in the form that Chromium's trace viewers load."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import silvan
from silvan.cli.app import run_command
from silvan.example_files import copy_example
from silvan.example_files import example as find_example
from silvan.viewer import write_trace
from tests.conftest import ddr_scenario

# Keys that "Trace Event Format" requires for each kind of event, beyond those of all kinds.
WANTED = {"X": {"ts", "dur"}, "C": {"ts", "args"}, "i": {"ts", "s"}, "M": {"args"}}
WANTED |= {"b": {"ts", "id", "cat"}, "e": {"ts", "id", "cat"}}


def _events(path: Path) -> list[dict[str, Any]]:
    trace = json.loads(path.read_text("utf-8"))
    assert set(trace) == {"displayTimeUnit", "traceEvents"}
    assert trace["displayTimeUnit"] in ("ms", "ns")
    events: list[dict[str, Any]] = trace["traceEvents"]
    for event in events:
        assert {"name", "ph", "pid", "tid"} | WANTED[event["ph"]] <= set(event)
        assert isinstance(event["name"], str)
        assert type(event["pid"]) is type(event["tid"]) is int
        assert event.get("ts", 0) >= 0
        assert event.get("dur", 0) >= 0
        assert event.get("s", "g") in ("g", "p", "t")
        if event["ph"] == "C":
            assert all(type(value) in (int, float) for value in event["args"].values())
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name")
    _check_slices(events)
    _check_asynchronous(events)
    return events


def _check_slices(events: list[dict[str, Any]]) -> None:
    """Slices of a thread lie apart or within each other; chrome://tracing loads no others."""
    threads = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            threads[event["pid"], event["tid"]].append((event["ts"], -event["dur"]))
    # Times are floats of microseconds: a picosecond is 1e-6.
    near = 1e-6
    for slices in threads.values():
        ends: list[float] = []
        for start, negative in sorted(slices):
            while ends and ends[-1] <= start + near:
                ends.pop()
            assert not ends or start - negative <= ends[-1] + near
            ends.append(start - negative)


def _check_asynchronous(events: list[dict[str, Any]]) -> None:
    """Every asynchronous event begins once and ends once, and not before it has begun."""
    begun: dict[tuple[str, int, object], float] = {}
    for event in events:
        key = (event.get("cat", ""), event["pid"], event.get("id"))
        if event["ph"] == "b":
            assert key not in begun
            begun[key] = event["ts"]
        elif event["ph"] == "e":
            assert begun.pop(key) <= event["ts"]
    assert not begun


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
        ddr_scenario(
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
        ddr_scenario(
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


def test_steps_and_messages_of_a_ring_allreduce(tmp_path: Path) -> None:
    """Oracle: the ring's 2 (n - 1) steps, in each of which a rank sends an n-th to its right."""
    result = silvan.run(
        ddr_scenario(
            fabric={"generator": "single-switch", "hosts": 4},
            traffic={
                "program": [
                    {"kind": "allreduce", "bytes": "64 KiB", "iterations": 3, "compute": "7 us"}
                ]
            },
            probe={"messages": True},
            run={"duration": "5 ms"},
        )
    )
    messages = result.tables["program_messages"].to_pylist()
    assert len(messages) == 3 * 4 * 6
    assert {one["bytes"] for one in messages} == {16 << 10}
    assert all(one["to_rank"] == (one["from_rank"] + 1) % 4 for one in messages)
    assert all(one["begin_ps"] < one["end_ps"] for one in messages)
    events = _events(write_trace(result, tmp_path / "trace.json"))
    for rank in range(4):
        own = [one for one in events if one["ph"] == "X" and one["tid"] == rank + 1]
        steps = [one for one in own if one["name"].startswith("allreduce step ")]
        assert [one["name"] for one in steps] == 3 * [f"allreduce step {step}" for step in range(6)]
        for step in steps:
            facts = {"sent_bytes": 16 << 10, "peer": (rank + 1) % 4}
            assert step["args"] == {"program": "program-1", **facts}
        rounds = [one for one in own if "iteration" in one["name"]]
        names = [f"allreduce 64 KiB, iteration {number}" for number in range(3)]
        assert [one["name"] for one in rounds] == names
        computed = [one for one in own if one["name"] == "compute"]
        assert [one["dur"] for one in computed] == pytest.approx([7, 7, 7])
        for number, step in enumerate(steps):
            whole = rounds[number // 6]
            assert step["ts"] >= whole["ts"] - 1e-9
            assert step["ts"] + step["dur"] <= whole["ts"] + whole["dur"] + 1e-9
            # A step ends no earlier than the message from the left that it waits for.
            left = [one for one in messages if one["to_rank"] == rank][number]
            assert step["ts"] + step["dur"] >= left["end_ps"] / 1e6 - 1e-9
    begins = [one for one in events if one["ph"] == "b"]
    assert len({one["id"] for one in begins}) == len(begins) == len(messages)
    assert len([one for one in events if one["ph"] == "e"]) == len(messages)


def test_operations_of_a_schedule_are_events(tmp_path: Path) -> None:
    send, receive = "l1: send 10b to 1 tag 3", "l1: recv 10b from 0 tag 3"
    goal = f"num_ranks 2\nrank 0 {{\n{send}\n}}\nrank 1 {{\n{receive}\n}}\n"
    result = silvan.run(
        ddr_scenario(
            fabric={"generator": "single-switch", "hosts": 2},
            traffic={"program": [{"kind": "goal", "trace": goal}]},
            probe={"messages": True},
            run={"duration": "1 ms"},
        )
    )
    (message,) = result.tables["program_messages"].to_pylist()
    assert (message["tag"], message["bytes"]) == (3, 10)
    events = _events(write_trace(result, tmp_path / "trace.json"))
    found = {(one["name"], one["tid"]): one["ts"] for one in events if one["ph"] == "b"}
    names = ("send 10 B to rank 1", "receive 10 B from rank 0")
    for row in result.tables["program_ops"].to_pylist():
        rank = row["rank"]
        assert found[names[rank], rank + 1] == pytest.approx(row["start_ps"] / 1e6)
    assert found["message from rank 0 to 1", 1] == pytest.approx(message["begin_ps"] / 1e6)


@pytest.mark.parametrize(
    ("example", "names"),
    [
        (
            "chakra-step",
            {
                "forward: compute",
                "forward sum: allreduce 65,536 B",
                "backward: compute",
                "backward sum: allreduce 65,536 B",
                "gradients: reduce-scatter 262,144 B",
                "weights: allgather 65,536 B",
            },
        ),
        (
            "layers",
            {
                "broadcast 40 B (forward_step)",
                "all_reduce 131,072 B (forward)",
                "all_reduce 131,072 B (backward)",
                "reduce_scatter 524,288 B (step)",
                "all_gather 262,144 B (step)",
            },
        ),
        ("serial", None),
    ],
)
def test_operations_of_a_trace_are_named_by_it(
    tmp_path: Path, example: str, names: set[str] | None
) -> None:
    """Oracle: the files of the example, and the times of the whole program."""
    copy_example(find_example(example), tmp_path)
    result = silvan.run(silvan.Scenario.from_file(tmp_path / f"{example}.toml"))
    events = _events(write_trace(result, tmp_path / "trace.json"))
    begins = [one for one in events if one["ph"] == "b" and one["cat"] == "operation"]
    if names is None:
        lines = (tmp_path / "serial.cm").read_text().splitlines()
        found = (re.match(r"\d+->(\d+) .*size (\d+)", line) for line in lines)
        names = {f"send {int(one[2]):,} B to rank {one[1]}" for one in found if one}
    assert {one["name"] for one in begins} == names
    # One operation of a rank for each line, though it has several parts.
    keys = [(one["tid"], one["args"]["line"]) for one in begins]
    assert len(set(keys)) == len(keys)
    ends = [one["ts"] for one in events if one["ph"] == "e" and one["cat"] == "operation"]
    (program,) = result.programs.to_pylist()
    assert max(ends) == pytest.approx(program["end_ps"] / 1e6)


def test_iterations_of_training_are_its_steps(tmp_path: Path) -> None:
    model = {"layers": 1, "hidden": 64, "sequence": 16, "vocabulary": 64, "tensor": 2}
    result = silvan.run(
        ddr_scenario(
            fabric={"generator": "single-switch", "hosts": 2},
            traffic={"program": [{"kind": "training", "iterations": 2, "model": model}]},
            run={"duration": "5 ms"},
        )
    )
    events = _events(write_trace(result, tmp_path / "trace.json"))
    for rank in (1, 2):
        own = [one["name"] for one in events if one["ph"] == "X" and one["tid"] == rank]
        assert own == [f"rank {rank - 1}", "training step 0", "training step 1"]


def test_messages_are_not_recorded_unasked() -> None:
    scenario = ddr_scenario(
        fabric={"generator": "single-switch", "hosts": 4},
        traffic={"program": [{"kind": "alltoall", "bytes": "4 KiB", "iterations": 2}]},
        run={"duration": "1 ms"},
    )
    plain, recorded = (
        dict(silvan.run(one).tables)
        for one in (scenario, scenario.override({"probe.messages": True}))
    )
    assert recorded.pop("program_messages").num_rows == 2 * 4 * 3
    assert recorded.pop("program_steps").num_rows > 0
    assert recorded == plain


def test_an_unfinished_flow_lasts_to_the_end(tmp_path: Path) -> None:
    flow = {"name": "long", "from": "host-0000", "to": "host-0001", "bytes": "1 GiB"}
    result = silvan.run(
        ddr_scenario(
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
    for number in range(13):
        run.write(tmp_path / f"many/seed-{number:02}")
    assert run_command(["view", str(tmp_path / "many"), "--perfetto", str(trace)]) == 2
    printed = capsys.readouterr().err
    assert "13 runs, and a trace is of 1" in printed
    assert f"such as {tmp_path / 'many/seed-00'}" in printed.replace("\n", "")


def test_rates_are_those_of_hotspots_and_other_receivers(
    run: silvan.Result, tmp_path: Path
) -> None:
    uniform = {"traffic.incast": [], "run.duration": "100 us"}
    even = silvan.run(run.scenario.override(uniform))
    found = [
        {
            name
            for name in _counters(_events(write_trace(one, tmp_path / "a.json")))
            if "Gbit" in name
        }
        for one in (run, even)
    ]
    assert found == [
        {"hotspots, Gbit/s", "other receivers, Gbit/s"},
        {"other receivers, Gbit/s"},
    ]
