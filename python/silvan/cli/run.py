"""The command that simulates a scenario."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from silvan.cli.options import AsJson, Assignments, ScenarioPath, load
from silvan.cli.printer import note, progress_bars, put_json, put_table

if TYPE_CHECKING:
    from rich.table import Table

    from silvan.result import Result
    from silvan.scenario import Scenario


def run(
    scenario: ScenarioPath,
    set_: Assignments = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of runs, with consecutive seeds.")] = 1,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="The first seed; by default the scenario's.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write Parquet tables and a manifest to DIR/seed-N.",
            show_default=False,
        ),
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Simulate a scenario, several seeds in parallel.

    Prints what was delivered. With --out it keeps every finished run, also when Ctrl-C
    stops the others.
    """
    from silvan.folders import require_replaceable, require_writable
    from silvan.workers import Job, run_jobs

    loaded = load(scenario, set_)
    if out is not None:
        require_writable(out)
    first = loaded.seed if seed is None else seed
    jobs = [
        Job(loaded, number, out / f"seed-{number}" if out else None)
        for number in range(first, first + seeds)
    ]
    for job in jobs:
        if job.folder is not None:
            require_replaceable(job.folder)
    results: dict[int, Result] = {}
    labels = [f"seed {job.seed}" for job in jobs]
    with (
        progress_bars(labels) as on_progress,
        closing(run_jobs(jobs, on_progress=on_progress)) as finished,
    ):
        for index, result in finished:
            results[index] = result
    ordered = [results[index] for index in range(len(jobs))]
    if as_json:
        put_json(_as_json(loaded, ordered, out))
        return
    put_table(_table(loaded, ordered))
    if out is not None:
        note(f"written to {out}")


def _rates(result: Result) -> dict[str, float]:
    """Mean receive rates in Gbit/s after the warm-up: hotspots, other hosts, and the sum."""
    import numpy as np

    from silvan.measures import is_hotspot

    span_ps = result.scenario.duration_ps - result.scenario.warm_up_ps
    rates = result.hosts["delivered_bytes"].to_numpy().astype(np.float64) * 8e3 / span_ps
    hotspots = is_hotspot(result)
    groups = {"hotspots": rates[hotspots], "other_hosts": rates[~hotspots]}
    means = {f"{name}_gbps": float(group.mean()) for name, group in groups.items() if group.size}
    return {**means, "total_gbps": float(rates.sum())}


def _as_json(scenario: Scenario, results: list[Result], out: Path | None) -> dict[str, Any]:
    return {
        "name": scenario.name,
        "hash": scenario.hash,
        "version": results[0].version,
        "runs": [
            {
                "seed": result.seed,
                "receive_rates": _rates(result),
                "summary": result.summary,
                "classes": result.classes.to_pylist(),
                "folder": str(out / f"seed-{result.seed}") if out else None,
            }
            for result in results
        ],
    }


def _table(scenario: Scenario, results: list[Result]) -> Table:
    from rich.table import Table

    table = Table(title=f"{scenario.name}: mean receive rate per host, Gbit/s")
    for heading in ("seed", "hotspots", "other hosts", "all hosts, sum", "M packet-hops/s"):
        table.add_column(heading, justify="right")
    for result in results:
        rates = _rates(result)
        speed = result.summary["packet_hops"] / max(result.summary["wall_s"], 1e-9) / 1e6
        table.add_row(
            str(result.seed),
            *(
                f"{rates[key]:.3f}" if key in rates else "-"
                for key in ("hotspots_gbps", "other_hosts_gbps", "total_gbps")
            ),
            f"{speed:.1f}",
        )
    return table
