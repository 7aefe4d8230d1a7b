"""The command that simulates a scenario."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from silvan.cli.options import AsJson, Assignments, ScenarioPath, SchemeFile, load, with_trees
from silvan.cli.printer import note, progress_bars, put_json, put_table
from silvan.cli.rates import rate_columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.table import Table

    from silvan.result import Result
    from silvan.scenario import Scenario
    from silvan.workers import Job


_MOST_LINES = 20
"""Lines of a table that are printed; more are for a program to read."""

_PERCENTILES = {
    "latency_p50_ns": "median",
    "latency_p99_ns": "99 %",
    "latency_p999_ns": "99.9 %",
}
_LATENCIES = {
    "latency_mean_ns": "mean",
    "latency_min_ns": "min",
    **_PERCENTILES,
    "latency_max_ns": "max",
}


@dataclass(frozen=True, slots=True)
class Run:
    """One run: which values the sweep gives, which seed, and where the result goes.

    Attributes
    ----------
    values : Mapping
        Values of the sweep's point by dotted key; none without a sweep.
    job : Job
        What to run.
    """

    values: Mapping[str, str]
    job: Job

    @property
    def label(self) -> str:
        """Values and seed in a few words."""
        words = [f"{key}={value}" for key, value in self.values.items()]
        return " ".join([*words, f"seed {self.job.seed}"])


def run(
    scenario: ScenarioPath,
    set_: Assignments = None,
    scheme: SchemeFile = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of runs, with consecutive seeds; by default the sweep's, or one.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="The first seed; by default the scenario's.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write Parquet tables and a manifest to DIR/seed-N; "
            "of a sweep to DIR/point-M/seed-N.",
            show_default=False,
        ),
    ] = None,
    *,
    trees: Annotated[
        bool,
        typer.Option(
            "--trees",
            help="Look for congestion trees, as the scenario's probe.trees says or its defaults.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Simulate a scenario, several seeds and the points of its sweep in parallel.

    Prints what was delivered. With --out it keeps every finished run, also when Ctrl-C
    stops the others.
    """
    from silvan._silvan import latency_percentile_resolution
    from silvan.folders import require_replaceable, require_writable
    from silvan.scenario import warn_without_traffic
    from silvan.workers import run_jobs

    loaded = load(scenario, set_, scheme)
    if trees:
        loaded = with_trees(loaded)
    runs = _plan(loaded, seeds, seed, out)
    if any(not one.job.scenario.has_traffic for one in runs):
        warn_without_traffic(loaded.name)
    if out is not None:
        require_writable(out)
        for one in runs:
            assert one.job.folder is not None
            require_replaceable(one.job.folder)
    reports: dict[int, dict[str, Any]] = {}
    with (
        progress_bars([one.label for one in runs]) as on_progress,
        closing(run_jobs([one.job for one in runs], on_progress=on_progress)) as finished,
    ):
        for index, result in finished:
            # What is printed is small, and a thousand results may be too large to keep.
            reports[index] = _report(runs[index], result)
    ordered = [reports[index] for index in range(len(runs))]
    lost = sum(report["summary"]["unroutable_packets"] for report in ordered)
    if lost:
        note(f"warning: switches discarded {lost} packets that they had no forwarding entry for")
    resolution = latency_percentile_resolution()
    if as_json:
        put_json(
            {
                "name": loaded.name,
                "hash": loaded.hash,
                "latency_percentile_resolution": resolution,
                "runs": ordered,
            }
        )
        return
    put_table(_table(loaded.name, ordered))
    latencies = _latency_table(ordered[0], resolution) if len(ordered) == 1 else None
    if latencies is not None:
        put_table(latencies)
    if out is not None:
        note(f"written to {out}")


def _plan(loaded: Scenario, seeds: int | None, seed: int | None, out: Path | None) -> list[Run]:
    """List all runs: every seed of every point of the sweep."""
    from silvan.sweeping.plan import seed_count, seeds_of
    from silvan.workers import Job

    count = seed_count(loaded, seeds, seed)
    points = list(loaded.sweep())
    runs = []
    for number, (values, scenario) in enumerate(points, start=1):
        root = out / f"point-{number}" if out and len(points) > 1 else out
        for one in seeds_of(scenario, count, seed):
            folder = root / f"seed-{one}" if root else None
            runs.append(Run(values, Job(scenario, one, folder)))
    return runs


def _report(one: Run, result: Result) -> dict[str, Any]:
    """Sum a run up in plain values."""
    from silvan.measures import receive_rates_gbps

    return {
        "seed": result.seed,
        "set": dict(one.values),
        "hash": result.scenario.hash,
        "receive_rates": receive_rates_gbps(result),
        "summary": result.summary,
        "classes": result.classes.to_pylist(),
        "folder": str(one.job.folder) if one.job.folder else None,
    }


def _table(name: str, reports: Sequence[Mapping[str, Any]]) -> Table:
    """Put one line per run in a table."""
    from rich.table import Table

    table = Table(title=f"{name}: receive rates in Gbit/s")
    columns = rate_columns([report["receive_rates"] for report in reports])
    speed = "simulation speed, M packet-hops/s"
    for heading in (*reports[0]["set"], "seed", *columns.values(), speed):
        table.add_column(heading, justify="right")
    for report in reports:
        rates, summary = report["receive_rates"], report["summary"]
        table.add_row(
            *report["set"].values(),
            str(report["seed"]),
            *(f"{rates[key]:.3f}" if key in rates else "-" for key in columns),
            f"{summary['packet_hops'] / max(summary['wall_s'], 1e-9) / 1e6:.1f}",
        )
    return table


def _latency_table(report: Mapping[str, Any], resolution: float) -> Table | None:
    """Put the latencies of a run in a table, a line for each traffic class."""
    from rich.table import Table

    rows = [row for row in report["classes"] if row["latency_mean_ns"] is not None]
    if not rows:
        return None
    shown = rows[:_MOST_LINES]
    more = f"; the first {len(shown)} of {len(rows)} classes" if len(shown) < len(rows) else ""
    table = Table(
        title=f"packet latency in ns (percentiles: \N{PLUS-MINUS SIGN}{resolution:.1%}){more}"
    )
    table.add_column("traffic class")
    for heading in _LATENCIES.values():
        table.add_column(heading, justify="right")
    for row in shown:
        values = (f"{row[name]:.{0 if name in _PERCENTILES else 3}f}" for name in _LATENCIES)
        table.add_row(row["name"], *values)
    return table
