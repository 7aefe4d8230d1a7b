"""The command that runs the benchmark GPCNeT."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from silvan.cli.options import AsJson, Assignments, Overwrite, ScenarioPath, SchemeFile, load
from silvan.cli.printer import note, progress_bars, put, put_json

if TYPE_CHECKING:
    from silvan.gpcnet import Part
    from silvan.result import Result


def gpcnet(
    scenario: ScenarioPath,
    set_: Assignments = None,
    scheme: SchemeFile = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, help="Seed of the runs; by default the scenario's.", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write the results of the three parts to DIR/isolated, DIR/congestors and "
            "DIR/congested.",
            show_default=False,
        ),
    ] = None,
    *,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print all columns, and the congestors' rates.")
    ] = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Run the benchmark GPCNeT on a scenario: its tests alone, its congestors alone, and both.

    The scenario has a table [traffic.gpcnet], which may be empty. Prints the benchmark's own table
    with the congestion impact factors.
    """
    from silvan.folders import claimed_results
    from silvan.gpcnet import PARTS, part, report, text
    from silvan.workers import Job, run_jobs

    loaded = load(scenario, set_, scheme)
    jobs = []
    for name in PARTS:
        folder = out / name if out else None
        jobs.append(Job(part(loaded, name), loaded.seed if seed is None else seed, folder))
    planned = {job.folder: job.origin for job in jobs if job.folder is not None}
    results: dict[Part, Result] = {}
    with (
        claimed_results(out, planned, overwrite=overwrite),
        progress_bars(list(PARTS)) as on_progress,
        closing(run_jobs(jobs, on_progress=on_progress)) as finished,
    ):
        for index, result in finished:
            results[PARTS[index]] = result
    done = report(loaded, results)
    if as_json:
        put_json({"name": loaded.name, "hash": loaded.hash, **done.to_json()})
        return
    put(text(done, verbose=verbose))
    if out is not None:
        note(f"written to {out}")
