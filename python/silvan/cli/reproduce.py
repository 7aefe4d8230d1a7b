"""The command that reproduces papers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from silvan.cli.options import AsJson
from silvan.cli.printer import note, progress_bars, put_json, put_table

if TYPE_CHECKING:
    from rich.table import Table

    from silvan.reproduce.experiment import Experiment, Results, Row
    from silvan.result import Result
    from silvan.scenario import Scenario


def reproduce(
    paper: Annotated[
        str, typer.Argument(help="The paper's short name, such as gran2012.", show_default=False)
    ],
    only: Annotated[
        str, typer.Option(metavar="PREFIX", help="Only ids that start so, such as table2.")
    ] = "",
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Seeds of every case; by default as many as each case needs.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of figures and finished runs.")
    ] = Path("out"),
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="Short runs and one seed: a look, not a reproduction.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run a paper's experiments, print its numbers beside ours, and draw the figures.

    A difference is data, not an error: the exit status is 0. Finished runs are kept under
    --out and not run again.
    """
    from silvan.folders import require_writable
    from silvan.reproduce import compare, experiments, load_targets

    chosen = experiments(paper, only)
    figures = out / paper
    require_writable(figures)
    rows: list[tuple[Experiment, list[Row]]] = []
    for experiment in chosen:
        if quick:
            note(f"quick: {experiment.quick_note}")
        results = _run(paper, experiment, out / "runs", seeds=seeds, quick=quick)
        compared = compare(load_targets(paper), experiment.measure(results))
        rows.append((experiment, [row for row in compared if row.target.id.startswith(only)]))
        for path in experiment.draw(results, figures):
            note(f"wrote {path}")
    if as_json:
        put_json([row.to_dict() for _, some in rows for row in some])
    else:
        for experiment, some in rows:
            put_table(_table(experiment, some, quick=quick))


def _run(
    paper: str, experiment: Experiment, root: Path, *, seeds: int | None, quick: bool
) -> Results:
    """Do all runs of an experiment, longest cases not last so that no core idles at the end."""
    from silvan.reproduce.cache import cached_runs, study

    runs: list[tuple[Scenario, int]] = []
    labels: list[str] = []
    for case in experiment.cases:
        overrides = {**case.overrides, **(experiment.quick if quick else {})}
        scenario = study(paper, case.study).override(overrides)
        for seed in range(1, 1 + (seeds or (1 if quick else case.seeds))):
            runs.append((scenario, seed))
            labels.append(case.label)
    results: dict[int, Result] = {}
    bars = [f"{label} seed {seed}" for label, (_, seed) in zip(labels, runs, strict=True)]
    with (
        progress_bars(bars) as on_progress,
        closing(cached_runs(root, runs, on_progress)) as finished,
    ):
        for index, result in finished:
            results[index] = result
    grouped: dict[str, list[Result]] = {label: [] for label in labels}
    for index, label in enumerate(labels):
        grouped[label].append(results[index])
    return grouped


def _table(experiment: Experiment, rows: Sequence[Row], *, quick: bool) -> Table:
    from rich.table import Table

    whole, late = experiment.windows
    table = Table(
        title=experiment.title + (" (quick: not comparable)" if quick else ""),
        caption=f"measured: mean over the seeds, averaged over {whole}; late: {late}. "
        "± is the standard deviation over the seeds; * marks numbers used for calibration.",
    )
    table.add_column("id", no_wrap=True)
    table.add_column("what")
    for heading in ("paper", "measured", "seeds", "late", "difference", "aim", "within"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        target = row.target
        spread = "" if row.spread is None else f" ± {row.spread:.3f}"
        table.add_row(
            target.id + ("*" if target.calibrate else ""),
            target.what,
            f"{target.value:.3f}",
            f"{row.measured:.3f}{spread}",
            str(len(row.values)),
            f"{row.late:.3f}",
            f"{row.rel_diff:+.1%}",
            f"{target.tol:.0%}",
            "[green]yes[/]" if row.within else "[yellow]no[/]",
        )
    return table
