"""Programs built in Python, and what comes of programs that cannot end."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import silvan
from silvan.cli.app import run_command
from silvan.comparing.baselines import fitting
from silvan.errors import ProgramError, SilvanError
from silvan.inputs.programs import COLLECTIVES, LARGEST_TAG, LONGEST_S, Program
from tests.conftest import ddr_scenario


def _run(program: Program, **traffic: object) -> silvan.Result:
    scenario = ddr_scenario(
        fabric={"generator": "single-switch", "hosts": 4},
        traffic={"program": [program.entry(name="test")], **traffic},
        run={"duration": "10 ms"},
    )
    return silvan.run(scenario, seed=1)


def test_blocking_operations_follow_each_other() -> None:
    program = Program(1)
    program[0].compute("1 us")
    program[0].compute("0.5 us")
    ops = _run(program).tables["program_ops"].to_pylist()
    assert [(op["start_ps"], op["end_ps"]) for op in ops] == [(0, 10**6), (10**6, 1_500_000)]


def test_computing_overlaps_a_receive_until_it_is_waited_for() -> None:
    program = Program(2)
    program[0].compute("100 us")
    program[0].send(1, "8 B")
    request = program[1].irecv(None, "8 B", None)
    program[1].compute("20 us")
    program[1].wait(request)
    program[1].compute("1 us")
    rows = _run(program).tables["program_ops"].to_pylist()
    receive, compute, last = (row for row in rows if row["rank"] == 1)
    assert compute["end_ps"] == 20 * 10**6
    assert receive["end_ps"] > 100 * 10**6
    assert last["start_ps"] == receive["end_ps"]


def test_a_ring_of_any_size_passes_a_token_around() -> None:
    program = Program(4)
    for rank in program:
        if rank.number:
            rank.recv(rank.number - 1, "100 kB")
        rank.send((rank.number + 1) % 4, "100 kB")
    program[0].recv(3, "100 kB")
    ranks = _run(program).tables["ranks"].to_pylist()
    assert [row["receives"] for row in ranks] == [1, 1, 1, 1]
    assert [row["sent_bytes"] for row in ranks] == [100_000] * 4
    assert ranks[0]["end_ps"] == max(row["end_ps"] for row in ranks)


@pytest.mark.parametrize(
    ("pattern", "algorithm"),
    [*((name, None) for name in COLLECTIVES), ("allreduce", "doubling"), ("broadcast", "ring")],
)
def test_collectives_take_as_long_as_those_of_a_scenario(
    pattern: str, algorithm: str | None
) -> None:
    """Oracle: the same operation from the scenario, which makes it while it runs."""
    program = Program(4)
    program.collective(pattern, "100 kB", algorithm)
    chosen = {} if algorithm is None else {"algorithm": algorithm}
    built = _run(program)
    scenario = ddr_scenario(
        fabric={"generator": "single-switch", "hosts": 4},
        traffic={"program": [{"kind": pattern, "bytes": "100 kB", **chosen}]},
        run={"duration": "10 ms"},
    )
    made = silvan.run(scenario, seed=1)
    for column in ("sends", "sent_bytes", "receives"):
        got, wanted = (one.tables["ranks"][column].to_pylist() for one in (built, made))
        assert got == wanted, column
    ends = [one.tables["programs"]["end_ps"][0].as_py() for one in (built, made)]
    # A schedule's processor may take two messages in another order than a loop does.
    assert ends[0] == pytest.approx(ends[1], rel=0.02)


def test_operations_after_a_collective_wait_for_it() -> None:
    program = Program(3)
    program[2].compute("50 us")
    program.collective("barrier")
    for rank in program:
        rank.compute("1 us")
    ends = _run(program).tables["ranks"]["end_ps"].to_pylist()
    assert min(ends) > 51 * 10**6


def test_mistakes_name_the_rank() -> None:
    program = Program(2)
    with pytest.raises(SilvanError, match="rank 1: rank 2 is out of range: there are 2 ranks"):
        program[1].send(2, "1 B")
    request = program[0].irecv(1, "1 B")
    with pytest.raises(SilvanError, match="rank 1 waits for an operation of rank 0"):
        program[1].wait(request)
    with pytest.raises(SilvanError, match=r"invalid time span .soon."):
        program[0].compute("soon")
    with pytest.raises(SilvanError, match="no collective operation") as caught:
        program.collective("gossip")
    assert caught.value.hint == f"known: {', '.join(COLLECTIVES)}"
    with pytest.raises(SilvanError, match=r'no algorithm "x" of "broadcast"') as caught:
        program.collective("broadcast", "1 B", algorithm="x")
    assert caught.value.hint == "known: tree, ring, direct, hierarchical"
    for ranks in (0, -1, 2**20 + 1, 2**40):
        with pytest.raises(SilvanError, match=f"of {ranks} ranks: 1 to 1048576 are supported"):
            Program(ranks)
    wrong: list[Any] = [None, "x", 1.5, True]
    for value in wrong:
        with pytest.raises(SilvanError, match=r"^ranks: .* is of type "):
            Program(value)


PARTNER = r"^rank 0: partner: .* is of type "
TAG = r"^rank 0: tag"
NOT_STARTED: Any = "o0"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda rank: rank.isend(None, "1 B"), PARTNER),
        (lambda rank: rank.isend(1.0, "1 B"), PARTNER),
        (lambda rank: rank.send(True, "1 B"), PARTNER),
        (lambda rank: rank.recv("1", "1 B"), PARTNER),
        (lambda rank: rank.isend(0, "1 B"), "^rank 0 communicates with itself"),
        (lambda rank: rank.irecv(0, "1 B"), "^rank 0 communicates with itself"),
        (lambda rank: rank.irecv(-1, "1 B"), "^rank 0: rank -1 is out of range"),
        (lambda rank: rank.isend(1, "1 B", tag=-1), "^rank 0: tag -1 is out of range"),
        (lambda rank: rank.irecv(1, "1 B", tag=2**32), "^rank 0: tag 4294967296 is out of range"),
        (lambda rank: rank.isend(1, "1 B", tag="3 cpu 1"), f"{TAG}: '3 cpu 1' is of type str"),
        (lambda rank: rank.isend(1, "1 B", tag=None), f"{TAG}: None is of type NoneType"),
        (lambda rank: rank.irecv(1, "1 B", tag=True), f"{TAG}: True is of type bool"),
        (lambda rank: rank.wait(NOT_STARTED), "^wait: 'o0' is of type str"),
        (
            lambda rank: rank.compute("72000.1 s"),
            "^rank 0 computes for 72000.1 s: at most 20 hours",
        ),
        (lambda rank: rank.take_part(5), "^operation: 5 is of type int"),
        (lambda rank: rank.take_part("barrier", algorithm=5), "^algorithm: 5 is of type int"),
    ],
)
def test_arguments_are_checked_where_they_are_given(
    call: Callable[[Any], object], message: str
) -> None:
    program = Program(2)
    with pytest.raises(SilvanError, match=message) as caught:
        call(program[0])
    assert caught.value.hint
    assert program.goal() == Program(2).goal()


def test_the_limits_of_arguments_are_those_of_a_trace() -> None:
    """Oracle: what reads the trace takes the largest values, and not the next ones."""
    program = Program(2)
    program[0].compute("72000 s")
    program[0].isend(1, "0 B", tag=LARGEST_TAG)
    program[1].irecv(0, "0 B", tag=LARGEST_TAG)
    text = program.goal()

    def scenario(trace: str) -> silvan.Scenario:
        entry = program.entry(name="test") | {"trace": trace}
        return ddr_scenario(
            fabric={"generator": "single-switch", "hosts": 2}, traffic={"program": [entry]}
        )

    scenario(text)
    for limit in (LARGEST_TAG, LONGEST_S * 10**9):
        with pytest.raises(SilvanError, match="is not understood"):
            scenario(text.replace(str(limit), str(limit + 1)))


@pytest.mark.slow
def test_messages_without_bytes_arrive_under_every_scheme() -> None:
    """Between others of their queue pairs, on the way to a congested host."""
    program = Program(8)
    sizes = ("0 B", "60 kB", "0 B", "0 B")
    for rank in list(program)[1:]:
        sends = [rank.isend(0, size, tag) for tag, size in enumerate(sizes)]
        receives = [program[0].irecv(rank.number, size, tag) for tag, size in enumerate(sizes)]
        rank.wait(*sends)
        program[0].wait(*receives)
    program.collective("barrier")
    scenario = ddr_scenario(
        fabric={"generator": "k-ary-n-tree", "k": 4, "n": 2},
        traffic={
            "program": [program.entry(name="test") | {"hosts": 8}],
            "incast": [{"to": "host-0000", "from": ["host-0009", "host-0010"]}],
            "messaging": {"eager-limit": "1 MiB"},
        },
        run={"duration": "20 ms"},
    )
    for one in fitting(scenario).every:
        ranks = silvan.run(scenario.override(dict(one.overrides)), seed=1).ranks.to_pylist()
        assert [rank["sent_bytes"] for rank in ranks] == [0, *[60_000] * 7], one.name
        assert all(rank["end_ps"] for rank in ranks), one.name


def test_unmatched_tags_end_the_run_with_an_error() -> None:
    program = Program(2)
    program[0].send(1, "8 B", tag=1)
    program[1].recv(0, "8 B", tag=2)
    with pytest.raises(ProgramError, match=r"stuck.*rank 1, line \d+.*tag 2.*tag 1") as error:
        _run(program)
    assert error.value.hint
    assert "receive needs a send" in error.value.hint


_CUT = bytes.fromhex("070a05302e302e34") + bytes([90, 8, 3])


@pytest.mark.parametrize(
    ("kind", "files", "message"),
    [
        ("chakra", {"t.0.et": _CUT}, r"t\.0\.et: byte 8: a message of 90 bytes starts here, but"),
        ("chakra", {"t.1.et": _CUT}, r"traffic\.program\.0\.file: there is no .*t\.0\.et"),
        (
            "chakra",
            {"t.0.json": b'{"workload_graph": []}', "t.2.json": b"{}"},
            r"there is a file of rank 2, but none of rank 1",
        ),
        (
            "chakra",
            {
                "t.0.json": b'{"workload_graph": []}',
                "t.1.json": b'{"workload_graph": [{"Id": 4, "Name": "last", "NodeType": 6, '
                b'"data_deps": [], "comm_src": 0, "comm_size": 8}]}',
            },
            r"t\.1\.json: rank 1, node 4 \(last\): a receive without a send: rank 0 sends 0 of 1",
        ),
        (
            "chakra",
            {
                "t.0.json": b'{"workload_graph": [{"Id": 1, "NodeType": 4, "data_deps": [2]}, '
                b'{"Id": 2, "NodeType": 4, "data_deps": [1]}]}'
            },
            r"t\.0\.json: rank 0: a cycle of dependencies: node \d waits for node \d",
        ),
        (
            "chakra",
            {
                "t.0.json": b"\t\r\n"
                + b'{"workload_graph": [{"Id": 4, "NodeType": 4, "num_ops": -1}]}'
            },
            r"t\.0\.json:2: entry 0: node 4: num_ops is -1: whole numbers from 0 are supported",
        ),
        (
            "chakra",
            {"t.0.json": b'{"schema": "1.1.1-chakra.0.0.4",\n"nodes": []}'},
            r"t\.0\.json:2: a PyTorch execution trace of the host, not a Chakra trace",
        ),
        ("connections", {"t": b"Nodes 2\n0->1 start 0 size 1\nNodes 1"}, r"t:3: the number of"),
        ("connections", {"t": b"Nodes 2\n0->1 start 10 size 9"}, r"t:2: all starts are below"),
        ("connections", {"t": b"Nodes 9\nConnections 1\n0->1 start 0"}, r"t:3: it has no size"),
        ("aicb", {"t": b"[rank0 ~ rank3]\ncomm_type\n"}, r"t:2: there is no column"),
        ("goal", {"t": (4223).to_bytes(8, "little")}, r"t: byte 8: the data end within 4 bytes"),
    ],
)
def test_bad_traces_end_with_their_place(
    kind: str,
    files: dict[str, bytes],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    scenario = tmp_path / "trace.toml"
    scenario.write_text(f'[[traffic.program]]\nkind = "{kind}"\nfile = "t"\n')
    assert run_command(["run", str(scenario)]) == 2
    error = capsys.readouterr().err
    assert re.search(message, error), error
    assert "hint: " in error


def test_a_missing_file_of_a_rank_is_noticed_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for rank in (0, 1, 3):
        (tmp_path / f"t.{rank}.json").write_text('{"workload_graph": []}')
    (tmp_path / "trace.toml").write_text('[[traffic.program]]\nkind = "chakra"\nfile = "t"\n')
    monkeypatch.chdir(tmp_path)
    assert run_command(["run", "trace.toml"]) == 2
    error = capsys.readouterr().err
    assert "there is a file of rank 3, but none of rank 2: t.2.json" in error


def test_nodes_that_only_send_at_their_time_compute_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Oracle: all time is exposed; nodes that open no connection end at once."""
    (tmp_path / "t").write_text("Nodes 3\n0->1 start 10000000 size 1000\n")
    scenario = ddr_scenario(
        fabric={"generator": "single-switch", "hosts": 3},
        traffic={"program": [{"kind": "connections", "file": str(tmp_path / "t")}]},
    )
    result = silvan.run(scenario)
    assert result.programs["exposed_share"].to_pylist() == [1.0]
    ends = result.ranks["end_ps"].to_pylist()
    assert ends[1:] == [0, 0]
    assert ends[0] > 10_000_000
    (tmp_path / "s.toml").write_text(scenario.to_toml())
    monkeypatch.setenv("COLUMNS", "200")
    assert run_command(["run", str(tmp_path / "s.toml")]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if "100.000%" in line)
    # The end of the rank that sends is that of the first rank, of the program, and its length.
    assert row.count(f" {ends[0] / 1e6:.3f} ") == 3


def test_a_table_chooses_algorithms_by_size() -> None:
    """Oracle: a rank sends 2 (n - 1) / n of the bytes in a ring, log2 n times all by doubling."""

    def sent(size: str, **program: str) -> int:
        entry = {"kind": "allreduce", "bytes": size, **program}
        methods = [{"operation": "allreduce", "up-to": "8 KiB", "algorithm": "doubling"}]
        scenario = ddr_scenario(
            fabric={"generator": "single-switch", "hosts": 8},
            traffic={"program": [entry], "collective": methods},
            run={"duration": "10 ms"},
        )
        ranks = silvan.run(scenario, seed=1).tables["ranks"]["sent_bytes"].to_pylist()
        assert len(set(ranks)) == 1
        return int(ranks[0])

    assert sent("8 KiB") == 3 * 8192
    assert sent("16 KiB") == 2 * 7 * 2048
    assert sent("8 KiB", algorithm="ring") == 2 * 7 * 1024
    assert sent("16 KiB", chunk="1 KiB") == 2 * 7 * 2048


@pytest.mark.parametrize(
    ("text", "status", "message"),
    [
        ("num_ranks 2\nrank 0 {\nsend 8b to 1\n", 2, r"trace\.goal:2: .*never closed"),
        ("num_ranks 2\nrank 0 {\nsend 8b to 5\n}\n", 2, r"trace\.goal:3: rank 5 is out of range"),
        (
            "num_ranks 2\nrank 0 {\n}\nrank 1 {\nrecv 8b from 0\n}\n",
            2,
            r"rank 1, line 5: no rank sends.*\nhint: each receive needs a send",
        ),
    ],
)
def test_bad_schedules_end_with_one_line(
    text: str, status: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "trace.goal").write_text(text)
    scenario = tmp_path / "trace.toml"
    scenario.write_text('[[traffic.program]]\nkind = "goal"\nfile = "trace.goal"\n')
    assert run_command(["run", str(scenario)]) == status
    error = capsys.readouterr().err
    assert re.search(message, error), error
    assert error.count("\n") <= 2


@pytest.mark.parametrize(
    ("chain", "computed_us"),
    [
        # Two processors compute 100 us at once.
        ("", 100),
        # Two compute 100 us one after the other, a third 150 us beside them.
        ("c: calc 150000 cpu 2\nb requires a\n", 200),
    ],
    ids=["two-cpus", "three-cpus"],
)
def test_processors_of_a_rank_that_compute_at_once_count_once(chain: str, computed_us: int) -> None:
    """Oracle: the union of the intervals. An eager message of 8 bytes takes 0.301 us."""
    calculations = f"a: calc 100000 cpu 0\nb: calc 100000 cpu 1\n{chain}"
    after = "".join(f"s requires {name}\n" for name in "abc"[: 3 if chain else 2])
    goal = (
        f"num_ranks 2\nrank 0 {{\n{calculations}s: send 8b to 1 tag 1\n{after}}}\n"
        f"rank 1 {{\n{calculations}r: recv 8b from 0 tag 1\n}}\n"
    )
    result = silvan.run(
        silvan.Scenario(
            fabric={"generator": "single-switch", "hosts": 4},
            link={"rate": "400 Gbit/s", "latency": "100 ns"},
            host={"receive-buffer": "256 KiB"},
            switch={"buffer": "512 KiB"},
            packet={"mtu": "4 KiB"},
            traffic={
                "messaging": {"overhead": "0 ns", "eager-limit": "1 GiB"},
                "program": [{"name": "p", "kind": "goal", "trace": goal}],
            },
            run={"duration": "1 s"},
        )
    )
    first, second = result.ranks["end_ps"].to_pylist()
    assert first == computed_us * 1_000_000
    assert second == pytest.approx((computed_us + 0.301) * 1e6, abs=1000)
    assert result.ranks["compute_ps"].to_pylist() == [computed_us * 1_000_000] * 2
    share = 1 - 2 * computed_us * 1_000_000 / (first + second)
    assert result.measures["exposed_share"] == pytest.approx(share, rel=1e-12)
    assert f"{share:.3%}" == ("0.150%" if computed_us == 100 else "0.075%")
