"""The command that runs a scenario at every point of a grid."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from silvan.cli.measure_columns import (
    Measures,
    add_measures,
    cell,
    chosen_measures,
    measure_table,
)
from silvan.cli.options import (
    AsJson,
    Assignments,
    Overwrite,
    ScenarioPath,
    Scheme,
    Yes,
    changes,
    load,
    require_size,
    wall_time,
)
from silvan.cli.printer import note, put_json, put_table
from silvan.cli.searches import begin_on
from silvan.cli.without_effect import never_acted
from silvan.errors import ScenarioError
from silvan.inputs.wording import duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from silvan.results.measures import Measure
    from silvan.sweeping.sweep import SweepProgress, SweepResult

_MOST_LINES = 40

_SAY_EVERY_S = 60.0


def sweep(
    scenario: ScenarioPath,
    grid: Annotated[
        list[str] | None,
        typer.Option(
            "--grid",
            metavar="KEY=V1,V2,...",
            help="Values of a key, such as traffic.nodes.p=0,50,100 or =0..100:10 for a range. "
            "May be repeated: every combination is run.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Consecutive seeds of each combination; by default those of the table [sweep], or "
            "one.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="The first seed; by default the scenario's.", show_default=False),
    ] = None,
    set_: Assignments = None,
    scheme: Scheme = None,
    measures: Measures = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder to keep points in, and to go on from; by default out/sweep-NAME.",
            show_default=False,
        ),
    ] = None,
    scheduler: Annotated[
        str,
        typer.Option(
            metavar="WHERE",
            help="local: the cores of this machine; tcp://HOST:PORT: a running Dask cluster; "
            "slurm: jobs of Slurm.",
        ),
    ] = "local",
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Processes at once, by default one per core; with Slurm, jobs at once.",
            show_default=False,
        ),
    ] = None,
    point_timeout: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Time on the wall clock that a point may take, such as '90 s', '10 min' or '2 h'. "
            "A point that takes longer has failed. By default, there is no limit.",
            show_default=False,
        ),
    ] = None,
    *,
    tables: Annotated[
        bool, typer.Option("--tables", help="Keep all tables of every point in DIR/tables.")
    ] = False,
    yes: Yes = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Simulate a scenario at every point of a grid, in parallel.

    The grid comes from --grid and the scenario's table [sweep]. Every finished point is kept at
    once and never run again: repeat the command to continue a sweep that was stopped or killed. If
    a point fails, the others continue; the exit status is then 1.
    """
    from silvan.execution.estimate import require_count
    from silvan.sweeping.plan import parse_grid, seed_count
    from silvan.sweeping.sweep import sweep as do_sweep
    from silvan.viewer.report import write_report
    from silvan.viewer.sweep import sweep_report

    shown = chosen_measures(measures)
    begin_on(scheduler)
    loaded = load(scenario, set_, scheme)
    values = parse_grid(grid or [])
    limit_s = None if point_timeout is None else wall_time("--point-timeout", point_timeout)
    count = seed_count(loaded, seeds, seed)
    # Each value is checked, which takes hours for millions.
    lengths = map(len, {**loaded.axes(), **values}.values())
    require_count(math.prod(lengths) * count, is_wanted=yes)
    varied = loaded.varying(values)
    keys = list(varied.axes())
    if not keys and count == 1:
        raise ScenarioError(
            "nothing is varied",
            hint="give values of a key, such as --grid traffic.nodes.p=0,50,100, a table [sweep] "
            "in the scenario, or --seeds 5",
        )
    points = varied.sweep_values()
    size = require_size(
        [(varied.at(points[0]), len(points) * count)], is_wanted=yes, workers=workers
    )
    folder = out or Path("out") / f"sweep-{loaded.name}"
    with _progress(size) as progress:
        result = do_sweep(
            loaded,
            values,
            seeds=seeds,
            seed=seed,
            out=folder,
            scheduler=scheduler,
            workers=workers,
            tables=tables,
            overwrite=overwrite,
            point_timeout_s=limit_s,
            progress=progress,
            changes=changes(set_, scheme),
        )
    if as_json:
        put_json(_report(loaded.name, result))
    elif result.points.num_rows:
        put_table(_table(loaded.name, keys, result.points.to_pylist(), shown))
    for line in _idle_schemes(loaded.control.scheme, result.points.to_pylist()):
        note(line)
    rows = result.points.num_rows
    note(f"{rows} point{'s' * (rows != 1)} in {folder / 'points.parquet'}")
    if rows:
        note(f"wrote {write_report(sweep_report(folder), folder / 'report.html')}")
    if result.failures:
        note(
            f"{len(result.failures)} points failed; the scenario of each is in {folder / 'failed'}"
        )
        raise typer.Exit(1)


@contextmanager
def _progress(size: str | None) -> Iterator[Callable[[SweepProgress], None]]:
    if not sys.stderr.isatty():
        yield _remarks(size)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    bar = Progress(
        TextColumn("points"),
        BarColumn(bar_width=32),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        speed_estimate_period=1800,
        transient=True,
    )
    task = bar.add_task("", total=None)

    def update(state: SweepProgress) -> None:
        ended = state.done + state.failed
        words = [f"{state.kept} from before"] * bool(state.kept)
        words += [f"{state.failed} failed"] * bool(state.failed)
        bar.update(
            task, total=state.total - state.kept, completed=ended, description=", ".join(words)
        )
        if line := _line(state, size):
            bar.console.print(line, highlight=False, markup=False, soft_wrap=True)

    with bar:
        yield update


def _remarks(size: str | None) -> Callable[[SweepProgress], None]:
    start = time.monotonic()
    said = start

    def update(state: SweepProgress) -> None:
        nonlocal said
        if line := _line(state, size):
            note(line)
        ended, now = state.done + state.failed, time.monotonic()
        if ended and now - said >= _SAY_EVERY_S:
            said = now
            todo = state.total - state.kept
            left = duration((now - start) / ended * (todo - ended))
            note(f"{state.kept + ended} of {state.total} points, about {left} left")

    return update


def _line(state: SweepProgress, size: str | None) -> str | None:
    from silvan.sweeping.plan import label

    failure = state.failure
    if failure is None:
        if state.done or state.failed:
            return None
        there = f"{state.kept} of {state.total} points are there from before"
        return "\n".join(filter(None, [size, there if state.kept else None])) or None
    return (
        f"failed: {label(failure.values, failure.seed)}: {failure.error} "
        f"(attempts: {failure.attempts}; hash {failure.hash[:16]}; {failure.scenario})"
    )


def _idle_schemes(own: str, points: Sequence[dict[str, Any]]) -> Iterator[str]:
    reasons: dict[str, list[str | None]] = {}
    for point in points:
        scheme = str(point.get("control.scheme", own))
        reasons.setdefault(scheme, []).append(point["idle_scheme"])
    yield from filter(None, map(never_acted, reasons, reasons.values()))


def _report(name: str, result: SweepResult) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "name": name,
        "folder": str(result.folder),
        "points": result.points.to_pylist(),
        "failed": [asdict(one) for one in result.failures],
    }


def _table(
    name: str,
    keys: Sequence[str],
    points: Sequence[dict[str, Any]],
    chosen: Sequence[Measure],
) -> Table:
    from rich.table import Table

    combinations: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for point in points:
        values = tuple("" if point[key] is None else str(point[key]) for key in keys)
        combinations.setdefault(values, []).append(point)
    shown = list(combinations.items())[:_MOST_LINES]
    of = "" if len(combinations) == len(points) else ": mean ± standard deviation over the seeds"
    more = (
        f"; the first {len(shown)} of {len(combinations)}" if len(combinations) > len(shown) else ""
    )

    def make(measures: Sequence[Measure]) -> Table:
        table = Table(title=f"{name}{of}{more}")
        for heading in (*keys, "seeds"):
            table.add_column(heading, justify="right")
        add_measures(table, measures)
        for values, group in shown:
            table.add_row(*values, str(len(group)), *(cell(group, one) for one in measures))
        return table

    return measure_table(points, chosen, make)
