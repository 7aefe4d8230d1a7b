"""Programs of a result as nccl-tests and the OSU micro-benchmarks print theirs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from silvan.errors import SilvanError, shown
from silvan.inputs.quantities import Quantity

if TYPE_CHECKING:
    from silvan.results.result import Result

PS_PER_US = 1e6
MB_PER_GB = 1000
_FLOAT_BYTES = 4
_HINT = (
    "add [[traffic.program]] with a collective operation as kind, e.g. allreduce, and iterations"
)


class BenchmarkFormat(StrEnum):
    """A benchmark whose output silvan prints."""

    NCCL_TESTS = "nccl-tests"
    OSU = "osu"


class _Operation(NamedTuple):
    nccl: str | None
    osu: str
    reduces: bool = False
    has_root: bool = False
    is_shared: bool = False
    """True if each rank has a part of the bytes."""
    is_message: bool = False
    """True if the bytes are those of one message."""


_OPERATIONS = {
    "allgather": _Operation("all_gather", "Allgather", is_shared=True),
    "allreduce": _Operation("all_reduce", "Allreduce", reduces=True),
    "alltoall": _Operation("alltoall", "All-to-All Personalized Exchange", is_message=True),
    "barrier": _Operation(None, "Barrier"),
    "broadcast": _Operation("broadcast", "Broadcast", has_root=True),
    "incast": _Operation("gather", "Gather", has_root=True, is_message=True),
    "reduce": _Operation("reduce", "Reduce", reduces=True, has_root=True),
    "reduce-scatter": _Operation("reduce_scatter", "Reduce_scatter", reduces=True, is_shared=True),
    "scatter": _Operation("scatter", "Scatter", has_root=True, is_message=True),
}


class _Measured(NamedTuple):
    name: str
    kind: str
    ranks: int
    bytes: int
    time_us: float
    algbw: float
    busbw: float

    @property
    def size(self) -> int:
        return self.bytes * (self.ranks if _OPERATIONS[self.kind].is_message else 1)


def export_programs(result: Result, name: str) -> str:
    """Print the programs of a result, see :meth:`silvan.Result.export`."""
    if name not in list(BenchmarkFormat):
        raise SilvanError(
            f"there is no format {shown(repr(name))}", f"use {', '.join(BenchmarkFormat)}"
        )
    kinds: dict[str, list[_Measured]] = {}
    for one in sorted(_measured(result), key=lambda one: (one.bytes, one.ranks)):
        kinds.setdefault(one.kind, []).append(one)
    write = _nccl_tests if name == BenchmarkFormat.NCCL_TESTS else _osu
    parts = [part for kind, programs in sorted(kinds.items()) for part in write(kind, programs)]
    if not parts:
        raise SilvanError(f"no program has measured rounds that {name} knows", _HINT)
    head = f"# silvan {result.version}: simulated, seed {result.seed}\n"
    return head + "\n".join(parts)


def _measured(result: Result) -> Iterator[_Measured]:
    rows = result.tables.get("programs")
    given = {one["name"]: one for one in result.scenario.to_dict()["traffic"].get("program", ())}
    for row in rows.to_pylist() if rows is not None else ():
        program: Mapping[str, Any] = given.get(row["name"], {})
        if program.get("kind") in _OPERATIONS and row["iteration_mean_ps"]:
            yield _Measured(
                row["name"],
                program["kind"],
                row["ranks"],
                _bytes(program),
                row["iteration_mean_ps"] / PS_PER_US,
                row["algbw_gb_per_s"] or 0.0,
                row["busbw_gb_per_s"] or 0.0,
            )


def _bytes(program: Mapping[str, Any]) -> int:
    return 0 if program["kind"] == "barrier" else Quantity(program["bytes"]).bytes


def _comment(programs: list[_Measured]) -> str:
    ranks = sorted({one.ranks for one in programs})
    names = ", ".join(one.name for one in programs)
    return f"# Programs: {names}; ranks: {', '.join(map(str, ranks))}"


def _nccl_tests(kind: str, programs: list[_Measured]) -> Iterator[str]:
    operation = _OPERATIONS[kind]
    if operation.nccl is None:
        return
    lines = [
        f"# Collective test starting: {operation.nccl}_perf",
        _comment(programs),
        "#",
        "#" + " " * 62 + "out-of-place" + " " * 23 + "in-place",
        "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}".format("size", "count", "type", "redop", "root")
        + "  {:>7}  {:>6}  {:>6} {:>6}".format("time", "algbw", "busbw", "#wrong") * 2,
        "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}".format("(B)", "(elements)", "", "", "")
        + "  {:>7}  {:>6}  {:>6}  {:>5}".format("(us)", "(GB/s)", "(GB/s)", "") * 2,
    ]
    for one in programs:
        share = one.size // one.ranks if operation.is_shared or operation.is_message else one.size
        width, type_ = (_FLOAT_BYTES, "float") if share % _FLOAT_BYTES == 0 else (1, "int8")
        redop = "sum" if operation.reduces else "none"
        root = 0 if operation.has_root else -1
        half = f"  {_nccl_time(one.time_us)}  {one.algbw:6.2f}  {one.busbw:6.2f}  {'N/A':>5}"
        lines.append(
            f"{one.size:12}  {share // width:12}  {type_:>8}  {redop:>6}  {root:6}" + half * 2
        )
    mean = sum(one.busbw for one in programs) / len(programs)
    lines += [f"# Avg bus bandwidth    : {mean:g}", "#", ""]
    yield "\n".join(line.rstrip() for line in lines)


def _nccl_time(time_us: float) -> str:
    if time_us >= 10_000:
        return f"{time_us:7.0f}"
    return f"{time_us:7.1f}" if time_us >= 100 else f"{time_us:7.2f}"


def _osu(kind: str, programs: list[_Measured]) -> Iterator[str]:
    operation = _OPERATIONS[kind]
    title = f"# OSU MPI {operation.osu} Latency Test"
    if kind == "barrier":
        rows = [f"{one.time_us:17.2f}" for one in programs]
        yield "\n".join([title, _comment(programs), "# Avg Latency(us)", *rows, ""])
        return
    # The size of an allgather is that of a rank's part.
    sizes = [one.bytes // one.ranks if kind == "allgather" else one.bytes for one in programs]
    latencies = zip(sizes, (one.time_us for one in programs), strict=True)
    yield _osu_table(title, programs, "# Size       Avg Latency(us)", latencies)
    pairs = [one for one in programs if one.ranks == 2]
    if not pairs or not operation.is_message:
        return
    both = kind == "alltoall"
    rates = ((one.bytes, one.busbw * MB_PER_GB * (2 if both else 1)) for one in pairs)
    direction = "Bi-Directional " if both else ""
    title = f"# OSU MPI {direction}Bandwidth Test"
    yield _osu_table(title, pairs, "# Size      Bandwidth (MB/s)", rates)


def _osu_table(
    title: str, programs: list[_Measured], heading: str, rows: Iterator[tuple[int, float]]
) -> str:
    lines = [f"{size:<10}{value:18.2f}" for size, value in rows]
    return "\n".join([title, _comment(programs), "# Datatype: MPI_CHAR.", heading, *lines, ""])
