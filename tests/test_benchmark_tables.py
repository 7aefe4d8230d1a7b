"""Results as nccl-tests and the OSU micro-benchmarks print them.

Oracle: the positions of the columns in outputs of the programs, and their definitions of sizes.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import silvan
from silvan.errors import SilvanError
from tests.conftest import Command

# Copied from outputs of all_reduce_perf and osu_bcast; numbers end where their columns end.
NCCL = (
    "#" + " " * 62 + "out-of-place" + " " * 23 + "in-place",
    "#       size         count      type   redop    root     time   algbw   busbw #wrong"
    "     time   algbw   busbw #wrong",
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)       "
    "     (us)  (GB/s)  (GB/s)",
    "     1048576        262144     float     sum      -1    105.9    9.90   17.33    N/A"
    "    105.7    9.92   17.37    N/A",
)
OSU = """\
# OSU MPI Broadcast Latency Test v7.3
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
1                       2.42
"""
KINDS = {
    "allgather": ("all_gather", "none", -1),
    "allreduce": ("all_reduce", "sum", -1),
    "alltoall": ("alltoall", "none", -1),
    "broadcast": ("broadcast", "none", 0),
    "incast": ("gather", "none", 0),
    "reduce": ("reduce", "sum", 0),
    "reduce-scatter": ("reduce_scatter", "sum", -1),
    "scatter": ("scatter", "none", 0),
}


def run(programs: list[dict[str, Any]], hosts: int = 4) -> silvan.Result:
    return silvan.run(
        silvan.Scenario(
            fabric={"generator": "single-switch", "hosts": hosts},
            traffic={"program": [{"iterations": 2, **program} for program in programs]},
            run={"duration": "1 s"},
        )
    )


@pytest.fixture(scope="module")
def result() -> silvan.Result:
    """Run every kind of operation in two sizes."""
    return run(
        [
            {"name": f"{kind} {size}", "kind": kind, "bytes": f"{size} B"}
            for kind in KINDS
            for size in (65536, 1000)
        ]
        + [{"name": "barrier", "kind": "barrier"}]
    )


def ends(line: str) -> list[int]:
    """Return the ends of the words of a line."""
    return [found.end() for found in re.finditer(r"[^\s#]+", line)]


def test_columns_stand_where_nccl_tests_has_them(result: silvan.Result) -> None:
    lines = result.export("nccl-tests").splitlines()
    at = next(number for number, line in enumerate(lines) if "out-of-place" in line)
    assert tuple(lines[at : at + 3]) == NCCL[:3]
    rows = [line for line in lines if line and not line.startswith("#")]
    assert len(rows) == 2 * len(KINDS)
    for row in rows:
        assert ends(row) == ends(NCCL[3])


def test_rows_of_nccl_tests_are_those_of_the_table(result: silvan.Result) -> None:
    table = {row["name"]: row for row in result.programs.to_pylist()}
    text = result.export("nccl-tests")
    for kind, (name, redop, root) in KINDS.items():
        part = text.split(f"# Collective test starting: {name}_perf\n")[1]
        lines = part.split("\n# Avg")[0].splitlines()
        rows = [line.split() for line in lines if not line.startswith("#")]
        for row, given in zip(rows, (1000, 65536), strict=True):
            program = table[f"{kind} {given}"]
            time_us = program["iteration_mean_ps"] / 1e6
            # algbw is the size over the time, whatever the operation.
            size = program["algbw_gb_per_s"] * time_us * 1e3
            shares = {"allreduce": 1, "broadcast": 1, "reduce": 1}.get(kind, 4)
            assert int(row[0]) == pytest.approx(size)
            assert int(row[1]) * {"float": 4, "int8": 1}[row[2]] == int(row[0]) // shares
            assert (row[3], int(row[4])) == (redop, root)
            assert float(row[5]) == pytest.approx(time_us, rel=1e-3, abs=0.005)
            assert float(row[6]) == pytest.approx(program["algbw_gb_per_s"], abs=0.005)
            assert float(row[7]) == pytest.approx(program["busbw_gb_per_s"], abs=0.005)
            assert row[5:9] == row[9:]


def test_latencies_stand_where_osu_has_them(result: silvan.Result) -> None:
    text = result.export("osu")
    table = {row["name"]: row for row in result.programs.to_pylist()}
    part = text.split("# OSU MPI Broadcast Latency Test\n")[1].split("\n\n")[0]
    _, datatype, heading, *rows = part.splitlines()
    assert [datatype, heading] == OSU.splitlines()[1:3]
    assert [row.split()[0] for row in rows] == ["1000", "65536"]
    for row in rows:
        assert ends(row)[1] == ends(OSU.splitlines()[3])[1]
        size, latency = row.split()
        mean_us = table[f"broadcast {size}"]["iteration_mean_ps"] / 1e6
        assert float(latency) == pytest.approx(mean_us, abs=0.005)
    # Of an allgather OSU has the size of a part.
    part = text.split("# OSU MPI Allgather Latency Test\n")[1].split("\n\n")[0]
    assert [row.split()[0] for row in part.splitlines()[3:]] == ["250", "16384"]
    barrier = text.split("# OSU MPI Barrier Latency Test\n")[1].split("\n\n")[0]
    assert float(barrier.splitlines()[-1]) > 0
    assert "Bandwidth" not in text


def test_two_ranks_have_bandwidths() -> None:
    """Oracle: the rate of the link, of which headers take a part."""
    size = 8 << 20
    kinds = ("incast", "alltoall")
    result = run([{"name": kind, "kind": kind, "bytes": f"{size} B"} for kind in kinds], hosts=2)
    text = result.export("osu")
    for name, kind, ways in (
        ("Bandwidth", "incast", 1),
        ("Bi-Directional Bandwidth", "alltoall", 2),
    ):
        part = text.split(f"# OSU MPI {name} Test\n")[1].split("\n\n")[0]
        assert part.splitlines()[2] == "# Size      Bandwidth (MB/s)"
        given, rate = part.splitlines()[-1].split()
        (row,) = [row for row in result.programs.to_pylist() if row["name"] == kind]
        assert int(given) == size
        expected = ways * size / (row["iteration_mean_ps"] / 1e6)
        assert float(rate) == pytest.approx(expected, rel=1e-4)


def test_other_results_are_refused(tmp_path: Path, command: Command, result: silvan.Result) -> None:
    with pytest.raises(SilvanError, match="no format 'imb'"):
        result.export("imb")
    quiet = silvan.run(
        silvan.Scenario(traffic={"incast": [{"to": "host-0000"}]}, run={"duration": "1 us"})
    )
    with pytest.raises(SilvanError, match="no program has measured rounds"):
        quiet.export("osu")
    scenario = tmp_path / "scenario.toml"
    scenario.write_text("")
    refused = command("export", scenario, "--format", "osu")
    assert refused.status == 2
    assert "osu is a format of results" in refused.stderr
    refused = command("export", tmp_path, "--format", "ibsim")
    assert refused.status == 2
    assert "ibsim is a format of fabrics" in refused.stderr


def test_the_command_prints_it(tmp_path: Path, command: Command, result: silvan.Result) -> None:
    folder = result.write(tmp_path / "result")
    printed = command("export", folder, "--format", "nccl-tests")
    assert printed.status == 0, printed.stderr
    assert printed.stdout.rstrip("\n") == result.export("nccl-tests").rstrip("\n")
    refused = command("export", folder, "--format", "osu", "--set", "run.seed=2")
    assert refused.status == 2
    assert "--set has no effect" in refused.stderr
