"""The command that reproduces papers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from silvan.cli.options import AsJson, Assignments, Overwrite
from silvan.cli.printer import fail, note, put_json, put_table
from silvan.cli.runs_view import runs_view

if TYPE_CHECKING:
    from rich.table import Table

    from silvan.errors import SilvanError
    from silvan.reproduce.experiment import PointTable, ShapeRow, TargetRow
    from silvan.reproduce.live import LiveExperiment
    from silvan.reproduce.plan import ReproductionPlan
    from silvan.reproduce.reproduction import Outcome


def reproduce(
    paper: Annotated[
        str,
        typer.Argument(
            metavar="PAPER", help="The paper's short name, such as gran2012.", show_default=False
        ),
    ],
    only: Annotated[
        str,
        typer.Option(metavar="PREFIX", help="Run only the experiments whose id has this prefix."),
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
    set_: Assignments = None,
    *,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="List the experiments with their numbers of runs; run nothing."
        ),
    ] = False,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Run fewer points, shorter, with one seed: a preview, not a reproduction.",
        ),
    ] = False,
    bundle: Annotated[
        bool,
        typer.Option(
            "--bundle",
            help="Write one archive with report, figures, tables, scenarios, versions and hashes.",
        ),
    ] = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Reproduce the experiments of a paper.

    Prints the paper's numbers next to measured numbers, draws the figures and writes a report. A
    difference is data, not an error: the exit status is 0. Finished runs are kept under --out and
    not run again, so Ctrl-C loses only runs in progress.
    """
    from silvan.extras import require_extra
    from silvan.folders import require_writable
    from silvan.inputs.toml_text import parse_assignments
    from silvan.reproduce import experiments, find_paper
    from silvan.reproduce.bundle import write_bundle
    from silvan.reproduce.plan import make_plan
    from silvan.reproduce.reproduction import claim_folder, stem, write_manifest
    from silvan.viewer.report import write_report
    from silvan.viewer.reproduction import reproduction_report

    for live in find_paper(paper).live:
        if live.id == only:
            if seeds or set_ or bundle or dry_run:
                what = "the experiment of real programs takes --out, --quick and --json alone"
                raise typer.BadParameter(what, param_hint="--only")
            _put_live(paper, live, out, quick=quick, as_json=as_json)
            return
    chosen = experiments(paper, only)
    overrides = parse_assignments(set_ or [])
    plan = make_plan(paper, chosen, seeds=seeds, quick=quick, overrides=overrides)
    if dry_run:
        _put_plan(plan, out / "runs", as_json=as_json)
        return
    require_extra("figures", "figures")
    figures = out / (f"{paper}-{plan.change}" if plan.change else paper)
    claim_folder(plan, figures, overwrite=overwrite)
    require_writable(figures)
    if quick:
        for remark in dict.fromkeys(experiment.quick_note for experiment in chosen):
            ids = ", ".join(one.id for one in chosen if one.quick_note == remark)
            note(f"quick: {ids}: {remark}")
    outcomes = _carry_out(plan, out / "runs", figures)
    for outcome in outcomes:
        for path in outcome.figures:
            note(f"wrote {path}")
    manifest = write_manifest(plan, outcomes, figures / f"{stem('reproduction', only)}.json")
    report = write_report(reproduction_report(manifest), figures / f"{stem('report', only)}.html")
    note(f"wrote {manifest}")
    note(f"wrote {report}")
    if bundle:
        words = _command(paper, only, seeds, set_ or [], quick=quick)
        note(f"wrote {write_bundle(outcomes, figures, (manifest, report), words)}")
    rows = {
        outcome.id: [row for row in outcome.rows if row.target.id.startswith(only)]
        for outcome in outcomes
    }
    if as_json:
        put_json([row.to_dict() for some in rows.values() for row in some])
        return
    for outcome in outcomes:
        _put_tables(outcome, rows[outcome.id], change=plan.change)


def _put_live(paper: str, live: LiveExperiment, out: Path, *, quick: bool, as_json: bool) -> None:
    from silvan.extras import require_extra
    from silvan.folders import require_writable, write_text
    from silvan.reproduce import experiments
    from silvan.reproduce.plan import make_plan

    require_extra("figures", "figures")
    folder = out / f"{paper}-{live.id}{'-quick' if quick else ''}"
    require_writable(folder)
    plan = make_plan(paper, experiments(paper, live.beside), seeds=1, quick=quick)
    (beside,) = _carry_out(plan, out / "runs", folder)
    assert beside.points is not None
    points = live.run(folder, beside.points, note)
    path = folder / f"{live.id}.csv"
    lines = [",".join(map(str, row)) for row in (points.header, *points.rows)]
    write_text(path, "\n".join(lines) + "\n")
    note(f"wrote {path}")
    if as_json:
        put_json([dict(zip(points.header, row, strict=True)) for row in points.rows])
    else:
        put_table(_point_table(live.title, points))


def _command(
    paper: str, only: str, seeds: int | None, assignments: Sequence[str], *, quick: bool
) -> list[str]:
    words = ["silvan", "reproduce", paper]
    words += ["--only", only] if only else []
    words += ["--seeds", str(seeds)] if seeds is not None else []
    words += [word for one in assignments for word in ("--set", one)]
    return [*words, *(["--quick"] if quick else [])]


def _put_plan(plan: ReproductionPlan, root: Path, *, as_json: bool) -> None:
    from rich.table import Table

    from silvan.execution.cache import finished_result

    is_finished = [finished_result(folder) is not None for folder in plan.folders(root)]
    rows = []
    for experiment, cases in plan.needs.items():
        places = {place for some in cases.values() for place in some}
        finished = sum(is_finished[place] for place in places)
        rows.append((experiment, len(cases), len(places), finished))
    if as_json:
        put_json(
            {
                "paper": plan.paper,
                "runs": len(plan.runs),
                "finished": sum(is_finished),
                "experiments": [
                    {"id": name, "cases": cases, "runs": runs, "finished": finished}
                    for name, cases, runs, finished in rows
                ],
            }
        )
        return
    table = Table(title=f"{plan.paper}: planned runs", caption="Experiments share equal runs.")
    table.add_column("experiment")
    for heading in ("cases", "runs", "finished"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*map(str, row))
    table.add_section()
    table.add_row("all", "", str(len(plan.runs)), str(sum(is_finished)))
    put_table(table)


def _carry_out(plan: ReproductionPlan, root: Path, figures: Path) -> list[Outcome]:
    from silvan.reproduce.execution import Evaluated, Evaluating, Failed, carry_out

    labels = [one.label for one in plan.runs]
    weights = [one.weight for one in plan.runs]
    outcomes: dict[str, Outcome] = {}
    errors: list[SilvanError] = []
    with (
        runs_view(labels, weights) as view,
        closing(carry_out(plan, root, figures, view.running)) as steps,
    ):
        for step in steps:
            match step:
                case Evaluating(experiment):
                    view.evaluating(experiment)
                case Evaluated(outcome):
                    outcomes[outcome.id] = outcome
                    view.evaluated(outcome.id)
                case Failed(experiment, error):
                    errors.append(error)
                    view.evaluated(experiment)
                case _:
                    (view.finished if step.is_new else view.kept)(step.index)
    for error in errors[1:]:
        fail(str(error), error.hint)
    if errors:
        raise errors[0]
    return [outcomes[experiment] for experiment in plan.needs]


def _put_tables(outcome: Outcome, rows: Sequence[TargetRow | ShapeRow], *, change: str) -> None:
    title = outcome.title + (f" ({change}: not comparable)" if change else "")
    if outcome.points is not None:
        put_table(_point_table(title, outcome.points))
    if rows:
        put_table(_target_table(outcome, title, rows))


def _point_table(title: str, points: PointTable) -> Table:
    """Omit the steady-state window, which the CSV and the report have."""
    from rich.table import Table

    names, rows = points.in_words()
    table = Table(title=title)
    for name in names:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*row)
    return table


def _target_table(outcome: Outcome, title: str, rows: Sequence[TargetRow | ShapeRow]) -> Table:
    from rich.table import Table

    from silvan.reproduce.experiment import ShapeRow

    whole, steady = outcome.windows
    table = Table(
        title=title,
        caption=f"measured: mean over the seeds, averaged over {whole}; steady state: {steady}. "
        "± is the standard deviation over the seeds; * marks numbers used for calibration.",
    )
    table.add_column("id", no_wrap=True)
    table.add_column("what")
    for heading in (
        "paper",
        "measured",
        "seeds",
        "steady state",
        "difference",
        "tolerance",
        "within tolerance",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        if isinstance(row, ShapeRow):
            _add_shape(table, row)
            continue
        target = row.target
        spread = "" if row.spread is None else f" ± {row.spread:.3f}"
        table.add_row(
            target.id + ("*" if target.calibrate else ""),
            f"{target.what} ({row.note})" if row.note else target.what,
            f"{target.value:.3f}",
            f"{row.measured:.3f}{spread}",
            str(len(row.values)),
            f"{row.steady:.3f}",
            f"{row.rel_diff:+.1%}",
            f"{target.tol:.0%}",
            _yes_or_no(row.within_tolerance),
        )
    return table


def _add_shape(table: Table, row: ShapeRow) -> None:
    found = row.verdict
    text = f"{row.target.shape}\nRule: {found.rule}\nFound: {found.whole.facts}"
    text += f"\nSteady state: {found.steady.facts}"
    steady = "holds" if found.steady.holds else "fails"
    table.add_row(row.target.id, text, "", "", "", steady, "", "", _yes_or_no(found.whole.holds))


def _yes_or_no(value: bool) -> str:  # noqa: FBT001 - there is nothing else to say
    return "[green]yes[/]" if value else "[yellow]no[/]"
