"""The command that fits unstated parameters to measured numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from silvan.cli.options import AsJson, Overwrite, wall_time
from silvan.cli.printer import note, put, put_json, put_table
from silvan.cli.searches import (
    Batch,
    OutFolder,
    SamplerSeed,
    Scheduler,
    TimeLimit,
    Trials,
    Workers,
    begin_on,
)

if TYPE_CHECKING:
    from rich.table import Table

    from silvan.comparing.tuning.fit import FitResult, FitRow

_MOST_FRONT = 10


def fit(
    problem: Annotated[
        str,
        typer.Argument(
            metavar="FIT.toml|PAPER",
            help="A file of parameters, cases and targets, or a paper that comes with one.",
            show_default=False,
        ),
    ],
    trials: Trials = 100,
    seeds: Annotated[
        int, typer.Option(min=1, metavar="N", help="Seeds that each case is run with.")
    ] = 1,
    check_seeds: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Further seeds, of other placements, that judge the fitted parameters.",
        ),
    ] = 1,
    seed: SamplerSeed = 1,
    batch: Batch = 4,
    out: OutFolder = None,
    timeout: TimeLimit = None,
    scheduler: Scheduler = "local",
    workers: Workers = None,
    *,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Fit unknown parameters to measured numbers.

    The search uses only targets that are not held out. Held-out targets, and other placements,
    judge its result. The table of parameters states which parameters the numbers do not determine.
    No result becomes a default. Repeat the command to continue a fit that was stopped or killed.
    """
    from silvan.comparing.tuning.fit import fit as do_fit
    from silvan.comparing.tuning.problem import read_problem
    from silvan.folders import write_text

    begin_on(scheduler)
    what = read_problem(problem)
    folder = out or Path("out") / f"fit-{what.name}"
    result = do_fit(
        what,
        folder,
        trials=trials,
        seeds=seeds,
        check_seeds=check_seeds,
        seed=seed,
        batch=batch,
        timeout_s=None if timeout is None else wall_time("--timeout", timeout),
        scheduler=scheduler,
        workers=workers,
        overwrite=overwrite,
        report=note,
    )
    values = result.to_dict()
    write_text(folder / "fit.json", json.dumps(values, indent=1) + "\n")
    if as_json:
        put_json({**values, "folder": str(folder)})
        return
    put_table(_parameters(result))
    put(_front_title(result))
    put_table(_front(result))
    put_table(_targets(result))
    note(_count("fitted", [row for row in result.rows if not row.held_out]))
    note(_count("held out", [row for row in result.rows if row.held_out]))
    note(f"written to {folder / 'fit.json'}; fitted values are not defaults")


def _parameters(result: FitResult) -> Table:
    from rich.table import Table

    table = Table(
        title=f"{result.name}: fitted, not defaults (trial {result.found.best.number} of "
        f"{len(result.found.trials)})"
    )
    table.add_column("parameter")
    for heading in ("default", "fitted", "as good from", "to", "importance", "identified"):
        table.add_column(heading, justify="right")
    for one in result.profiles:
        cells = (one.start, one.fitted, one.lowest, one.highest)
        words = [f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in cells]
        importance = "-" if one.importance is None else f"{one.importance:.0%}"
        identified = {True: "yes", False: "no", None: "too few trials"}[one.is_identified]
        table.add_row(one.key, *words, importance, identified)
    return table


def _front_title(result: FitResult) -> str:
    count = len(result.front)
    part = f"; the first {_MOST_FRONT} of {count}" if count > _MOST_FRONT else ""
    return f"Pareto front: root-mean-square errors in tolerances, by group{part}"


def _front(result: FitResult) -> Table:
    from rich.table import Table

    shown = result.front[:_MOST_FRONT]
    table = Table()
    table.add_column("trial", justify="right")
    for group in shown[0]["errors"]:
        table.add_column(group, justify="right")
    for row in shown:
        table.add_row(str(row["number"]), *(f"{one:.2f}" for one in row["errors"].values()))
    return table


def _targets(result: FitResult) -> Table:
    from rich.table import Table

    table = Table(title="targets; * outside of the tolerance")
    table.add_column("target")
    for heading in ("held out", "stated", "default", "fitted"):
        table.add_column(heading, justify="right")
    elsewhere = any(row.fitted_elsewhere is not None for row in result.rows)
    if elsewhere:
        for heading in ("default, other seeds", "fitted, other seeds"):
            table.add_column(heading, justify="right")

    def cell(row: FitRow, number: float | None) -> str:
        return "-" if number is None else f"{number:.4g}" + ("" if row.is_within(number) else " *")

    for row in result.rows:
        numbers = [row.start, row.fitted]
        numbers += [row.start_elsewhere, row.fitted_elsewhere] if elsewhere else []
        held_out = "yes" if row.held_out else ""
        table.add_row(row.id, held_out, f"{row.value:g}", *(cell(row, one) for one in numbers))
    return table


def _count(name: str, rows: list[FitRow]) -> str:
    before = sum(row.is_within(row.start) for row in rows)
    after = sum(row.is_within(row.fitted) for row in rows)
    return f"{name}: {after} of {len(rows)} targets within the tolerance, {before} by default"
