"""Run the benchmarks with ``python -m silvan.bench``."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from silvan.cli.options import AsJson
from silvan.cli.printer import note, put_json, put_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.table import Table

    from silvan.bench.live import MeasuredLive
    from silvan.bench.simulator import Measured
    from silvan.bench.sweeps import MeasuredSweep

_Result = TypeVar("_Result")


def bench(
    only: Annotated[
        str,
        typer.Option(metavar="PREFIX", help="Run only the benchmarks whose name has this prefix."),
    ] = "",
    repeats: Annotated[int, typer.Option(min=1, help="Fresh processes per benchmark.")] = 3,
    threads: Annotated[
        str,
        typer.Option(
            metavar="N,...",
            help="Numbers of threads to simulate with, such as 1,2,4; runs that cannot be divided "
            "are measured with one only.",
        ),
    ] = "1",
    *,
    as_json: AsJson = False,
) -> None:
    """Measure speed and memory, sweeps, and the live fabric; print the medians.

    Benchmarks of the live fabric (live-..., dcms-..., diagnose-..., whatif-...) need OpenSM, ibsim
    and infiniband-diags. Speeds differ from machine to machine and from hour to hour; compare only
    results measured side by side.
    """
    from silvan.bench.diagnosis import DIAGNOSIS_BENCHMARKS
    from silvan.bench.endurance import ENDURANCE_BENCHMARKS
    from silvan.bench.live import LIVE_BENCHMARKS, measure_live, missing_programs
    from silvan.bench.manager import DCMS_BENCHMARKS
    from silvan.bench.simulator import BENCHMARKS, measure
    from silvan.bench.sweeps import SWEEP_BENCHMARKS, measure_sweep
    from silvan.bench.whatif import WHATIF_BENCHMARKS
    from silvan.errors import SilvanError

    def say(name: str) -> Callable[[int], None]:
        return lambda number: note(f"{name}: run {number} of {repeats}")

    counts = _counts(threads)
    runs = [one for one in BENCHMARKS if one.name.startswith(only)]
    sweeps = [one for one in SWEEP_BENCHMARKS if one.name.startswith(only)]
    of_live = (
        *LIVE_BENCHMARKS,
        *ENDURANCE_BENCHMARKS,
        *DCMS_BENCHMARKS,
        *DIAGNOSIS_BENCHMARKS,
        *WHATIF_BENCHMARKS,
    )
    live = [one for one in of_live if one.name.startswith(only)]
    if not runs and not sweeps and not live:
        everything = (*BENCHMARKS, *SWEEP_BENCHMARKS, *of_live)
        known = ", ".join(one.name for one in everything)
        raise SilvanError(f"no benchmark starts with {only!r}", f"known: {known}")
    if live and not only and (missing := missing_programs()):
        note(f"the live fabric is left out; it needs: apt-get install {' '.join(missing)}")
        live = []
    measured: list[Measured] = []
    swept: list[MeasuredSweep] = []
    served: list[MeasuredLive] = []
    # Tables are printed as soon as they are complete, and after Ctrl-C.
    try:
        with _printed(_table, measured, quiet=as_json):
            for one in runs:
                on_repeat = say(one.name)
                measured += measure(one, repeats=repeats, on_repeat=on_repeat, threads=counts)
        with _printed(_sweep_table, swept, quiet=as_json):
            for sweep in sweeps:
                swept.append(measure_sweep(sweep, repeats=repeats, on_repeat=say(sweep.name)))
        with _printed(_live_table, served, quiet=as_json):
            for fabric in live:
                served.append(measure_live(fabric, repeats=repeats, on_repeat=say(fabric.name)))
    finally:
        if as_json:
            dicts = [one.to_dict() for one in measured]
            dicts += [one.to_dict() for one in swept]
            put_json(dicts + [one.to_dict() for one in served])


def _counts(text: str) -> list[int]:
    from silvan.errors import SilvanError, shown
    from silvan.execution.run_threads import MOST_THREADS
    from silvan.inputs.quantities import whole_number

    counts = {whole_number(word) or 0 for word in text.split(",")}
    if min(counts) < 1 or max(counts) > MOST_THREADS:
        raise SilvanError(
            f"{shown(repr(text))}: no numbers of threads",
            hint=f'give whole numbers from 1 to {MOST_THREADS}, as in "1,2,4"',
        )
    return sorted(counts)


@contextmanager
def _printed(
    table: Callable[[Sequence[_Result]], Table], results: Sequence[_Result], *, quiet: bool
) -> Iterator[None]:
    try:
        yield
    finally:
        if results and not quiet:
            put_table(table(results))


def _table(measured: Sequence[Measured]) -> Table:
    from rich.table import Table

    several = any(one.threads > 1 for one in measured)
    title = f"Medians of {max(one.repeats for one in measured)} fresh processes"
    table = Table(title=title)
    table.add_column("benchmark", no_wrap=True)
    for heading in (
        *(("threads", "ratio", "barrier µs", "imbalance") if several else ()),
        "set-up s",
        "loop s",
        "M packet-hops",
        "M hops/s",
        "range",
        *(() if several else ("events/hop", "bytes/port")),
        "peak MB",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    first: dict[str, float] = {}
    for one in measured:
        speeds = (one.slowest_packet_hops_per_s / 1e6, one.fastest_packet_hops_per_s / 1e6)
        ratio = one.packet_hops_per_s / first.setdefault(one.name, one.packet_hops_per_s)
        of_threads = (
            str(one.threads),
            f"{ratio:.2f}",
            "-" if one.barrier_s is None else f"{one.barrier_s * 1e6:.2f}",
            "-" if one.imbalance is None else f"{one.imbalance:.2f}",
        )
        of_work = (f"{one.events_per_packet_hop:.2f}", f"{one.bytes_per_port:.0f}")
        table.add_row(
            one.name,
            *(of_threads if several else ()),
            f"{one.setup_s:.2f}",
            f"{one.loop_s:.2f}",
            f"{one.packet_hops / 1e6:.1f}",
            f"{one.packet_hops_per_s / 1e6:.1f}",
            f"{speeds[0]:.1f} to {speeds[1]:.1f}",
            *(() if several else of_work),
            f"{one.peak_memory_bytes / 1e6:.0f}",
        )
    return table


def _sweep_table(measured: Sequence[MeasuredSweep]) -> Table:
    from rich.table import Table

    table = Table(title="Sweeps of small runs; median over the repeats")
    for heading in ("benchmark", "workers", "points", "runs/s", "range"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in measured:
        table.add_row(
            one.name,
            str(one.workers),
            str(one.points),
            f"{one.runs_per_s:.1f}",
            f"{one.slowest_runs_per_s:.1f} to {one.fastest_runs_per_s:.1f}",
        )
    return table


def _live_table(measured: Sequence[MeasuredLive]) -> Table:
    from rich.table import Table

    table = Table(title="The live fabric; median over the repeats")
    table.add_column("benchmark", no_wrap=True)
    table.add_column("what")
    for heading in ("median", "range", "ibsim", "goal"):
        table.add_column(heading, justify="right", no_wrap=True)

    def number(value: float) -> str:
        return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"

    for one in measured:
        table.add_row(
            one.name,
            one.what,
            f"{number(one.value)} {one.unit}",
            f"{number(one.lowest)} to {number(one.highest)}",
            "" if one.ibsim is None else f"{number(one.ibsim)} {one.unit}",
            _aim(one, number),
        )
    return table


def _aim(one: MeasuredLive, number: Callable[[float], str]) -> str:
    if one.goal is not None:
        return f"{number(one.goal)} {one.unit}"
    return "as ibsim" if one.ibsim is not None else ""


def main() -> int:
    """Run the benchmarks that the command line names."""
    from silvan.cli.app import run_command

    commands = typer.Typer(rich_markup_mode=None, add_completion=False)
    commands.command()(bench)
    return run_command(sys.argv[1:], commands, "python -m silvan.bench")


if __name__ == "__main__":
    sys.exit(main())
