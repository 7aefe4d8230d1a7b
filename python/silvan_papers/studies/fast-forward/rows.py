"""Speed of runs that leap over repetition, and comparison of their tables.

    python studies/fast-forward/rows.py

runs each row with and without fast-forward, on one thread, one after the other, compares all
tables value by value, and prints processor time and the packet-hops that are left. `--quick` leaves
out the rows that take more than a minute without fast-forward.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import silvan

if TYPE_CHECKING:
    from collections.abc import Iterator

GPT_13B = Path(__file__).parents[1] / "training" / "gpt-13b.toml"


class Row(NamedTuple):
    """A run, and whether it takes more than a minute without fast-forward."""

    title: str
    scenario: silvan.Scenario
    is_long: bool


def collective(kind: str, hosts: tuple[int, int], uplinks: int, **settings: str) -> silvan.Scenario:
    """Describe a collective of all hosts of a tree of two levels."""
    return silvan.Scenario(
        name=kind,
        fabric={"generator": "xgft", "children": list(hosts), "parents": [1, uplinks]},
        traffic={"program": [{"name": kind, "kind": kind, **settings}]},
        probe={"interval": "1 s"},
        run={"duration": "1 s"},
    )


def beside(training: silvan.Scenario, hosts: int, other: dict[str, object]) -> silvan.Scenario:
    """Put four layers of a training job beside another program; rails share spines."""
    job = dict(training.to_dict()["traffic"]["program"][0], hosts=hosts)
    job["model"] = dict(job["model"], layers=4)
    programs = {"fabric.spines": 8, "traffic.program": [job, other]}
    return training.override(programs)


def two_jobs(training: silvan.Scenario) -> silvan.Scenario:
    """Add a narrower model, which is out of step with the first one."""
    second = training.to_dict()["traffic"]["program"][0]
    model = dict(second["model"], layers=4, hidden=4096)
    return beside(training, 64, dict(second, name="second", hosts=64, model=model))


def checkpoints(training: silvan.Scenario) -> silvan.Scenario:
    """Add sixteen hosts that write 6,400 KiB to one of them every 2 ms."""
    program = {"name": "checkpoint", "kind": "incast", "bytes": "6400 KiB", "hosts": 16}
    pauses = {"iterations": "unlimited", "burst": "1 us", "pause": "2 ms", "background": True}
    return beside(training, 112, program | pauses)


def rows() -> Iterator[Row]:
    """List all runs."""
    training = silvan.Scenario.from_file(GPT_13B)
    for layers, is_long in ((40, True), (4, False)):
        run = training.override({"traffic.program.0.model.layers": layers})
        yield Row(f"GPT-13B, {layers} layers, 128 GPUs", run, is_long)
    yield Row("two jobs of four layers, 64 GPUs each", two_jobs(training), is_long=False)
    beside_writes = checkpoints(training)
    control = {"control.scheme": "ib-cc"}
    yield Row("four layers on 112 GPUs, beside checkpoints", beside_writes, is_long=False)
    yield Row("the same with ib-cc", beside_writes.override(control), is_long=False)
    run = training.override({"traffic.program.0.model.layers": 4} | control)
    yield Row("GPT-13B, 4 layers, 128 GPUs, with ib-cc", run, is_long=False)
    for side, size, is_long in ((32, "1 GiB", True), (16, "256 MiB", False)):
        run = collective("allreduce", (side, side), side, algorithm="ring", bytes=size)
        yield Row(f"ring allreduce of {size}, {side * side:,} hosts", run, is_long)
    for uplinks, text in ((8, ""), (4, ", half the uplinks")):
        run = collective("alltoall", (8, 8), uplinks, algorithm="pairwise", bytes="1 MiB")
        yield Row(f"all-to-all of 1 MiB, pairwise, 64 hosts{text}", run, is_long=False)
    run = collective("alltoall", (8, 8), 8, algorithm="direct", bytes="4 MiB")
    yield Row("all-to-all of 4 MiB, direct, 64 hosts", run, is_long=False)


def measured(scenario: silvan.Scenario, setting: str) -> tuple[silvan.Result, float]:
    """Run a scenario, and give its result and the processor seconds that it took."""
    run = scenario.override({"run.fast-forward": setting, "run.threads": 1})
    started = time.process_time()
    result = silvan.run(run)
    return result, time.process_time() - started


def differences(one: silvan.Result, other: silvan.Result) -> list[str]:
    """Name the tables that are not the same."""
    return [name for name, table in one.tables.items() if not table.equals(other.tables[name])]


def printed(row: Row) -> str:
    """Run a row both ways, and write it as a line of a table."""
    with_leaps, fast = measured(row.scenario, "auto")
    without, slow = measured(row.scenario, "off")
    if different := differences(with_leaps, without):
        sys.exit(f"{row.title}: tables differ: {', '.join(different)}")
    summary = with_leaps.summary
    hops, leapt = summary["packet_hops"] / 1e6, summary["leapt_packet_hops"] / 1e6
    return (
        f"| {row.title} | {hops:,.1f} | {hops - leapt:,.1f} | {slow:,.1f} | {fast:,.2f} | "
        f"{slow / fast:,.1f} |"
    )


def put(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="leave out long rows")
    quick = parser.parse_args().quick
    put("| run | M packet-hops | of them left | without, s | with, s | times faster |")
    put("|---|---|---|---|---|---|")
    for row in rows():
        if not (quick and row.is_long):
            put(printed(row))


if __name__ == "__main__":
    main()
