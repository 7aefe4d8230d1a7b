"""The command that compares congestion-control schemes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from silvan.cli.arena import OPTIONS, compare_arena
from silvan.cli.measure_columns import Measures, add_measures, chosen_measures
from silvan.cli.options import (
    AsJson,
    Assignments,
    Overwrite,
    Schemes,
    Yes,
    added_scheme,
    changes,
    chosen_schemes,
    load,
    require_size,
)
from silvan.cli.printer import note, progress_bars, put_json, put_widest
from silvan.cli.searches import Scheduler, Workers

if TYPE_CHECKING:
    from rich.table import Table

    from silvan.comparing.comparison import RankingRow
    from silvan.inputs.scenario import Scenario
    from silvan.results.measures import Measure


_SETTLED_PS = 20_000_000_000
"""Time in which CCTI falls from 127 to 0 with the CCTI_Timer of gran2012."""


def compare(
    scenario: Annotated[
        Path | None,
        typer.Argument(
            metavar="[SCENARIO.toml]",
            help="The scenario file. With --arena, a file that states the cases; by default the "
            "arena that is installed with silvan.",
            show_default=False,
        ),
    ] = None,
    schemes: Schemes = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Runs of each scheme, with consecutive seeds, by default 1; with two or more, the "
            "standard deviation is printed and drawn, too. With --arena, by default as the arena "
            "states.",
            show_default=False,
        ),
    ] = None,
    set_: Assignments = None,
    measures: Measures = None,
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Folder of the figure and of finished runs."),
    ] = Path("out"),
    *,
    arena: Annotated[
        bool,
        typer.Option(
            "--arena",
            help="Compare in all cases of an arena, with published settings and with tuned ones.",
        ),
    ] = False,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Run the reduced cases, with one seed and published settings."
        ),
    ] = False,
    cases: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME,...",
            help="Cases of the arena to run, separated by commas; by default all.",
            show_default=False,
        ),
    ] = None,
    links: Annotated[
        str | None,
        typer.Option(
            metavar="KIND,KIND",
            help="Cases of the arena to run by their links, 'credits' or 'pfc'; by default all.",
            show_default=False,
        ),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Settings to try for each scheme and group of cases, the published ones included; "
            "by default as the arena states.",
            show_default=False,
        ),
    ] = None,
    plan: Annotated[
        bool,
        typer.Option(
            "--plan",
            help="Print how long the arena takes, estimated from its reduced form and finished "
            "runs.",
        ),
    ] = False,
    scheduler: Scheduler = "local",
    workers: Workers = None,
    run_timeout: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Time on the wall clock that a run of the arena may take, such as '10 min'; the "
            "start of its process counts.",
            show_default=False,
        ),
    ] = None,
    yes: Yes = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Compare congestion-control schemes on a scenario.

    Runs the scenario without control, with every scheme that suits the fabric, and with its own
    scheme if that is a Python file. The guide's page "Schemes side by side" lists schemes and
    published settings. --schemes chooses schemes, and adds one in a Python file. Finished runs are
    kept under --out and not run again. Prints a table and draws it as dots. A scheme whose run
    fails has no numbers; the exit status is then 1.

    --arena runs all schemes in some twenty cases, on links with credits and on links with PFC. It
    uses published settings, and settings tuned on other seeds with an equal number of trials for
    each scheme. It prints the share of the best scheme that each scheme reaches in each case, and
    writes a page with all numbers. Each choice of options has a separate folder. Repeat the command
    to continue an arena that was stopped or killed.
    """
    names, added = chosen_schemes(schemes)
    if arena:
        if measures is not None:
            raise typer.BadParameter(
                "each case of an arena states its own", param_hint="--measures"
            )
        compare_arena(
            scenario,
            names,
            seeds=seeds,
            assignments=set_,
            scheme=added,
            listed=schemes,
            out=out,
            quick=quick,
            cases=cases,
            links=links,
            trials=trials,
            plan=plan,
            scheduler=scheduler,
            workers=workers,
            run_timeout=run_timeout,
            is_wanted=yes,
            overwrite=overwrite,
            as_json=as_json,
        )
        return
    from silvan.results.measures import OF_COMPARISONS

    given = (quick, cases, links, trials, plan, scheduler != "local", workers, run_timeout)
    for option, value in zip(OPTIONS, given, strict=True):
        if value:
            raise typer.BadParameter(
                "needs --arena; without it, the runs of one scenario use all cores"
                if option == "--workers"
                else "needs --arena",
                param_hint=option,
            )
    if scenario is None:
        raise typer.BadParameter(
            "name a scenario file, or give --arena", param_hint="[SCENARIO.toml]"
        )
    _compare_scenario(
        scenario,
        names,
        seeds or 1,
        set_,
        added,
        out,
        listed=schemes,
        measures=chosen_measures(measures, OF_COMPARISONS),
        is_wanted=yes,
        overwrite=overwrite,
        as_json=as_json,
    )


def _compare_scenario(
    scenario: Path,
    names: Sequence[str],
    seeds: int,
    set_: list[str] | None,
    scheme: str | None,
    out: Path,
    *,
    listed: str | None,
    measures: Sequence[Measure],
    is_wanted: bool,
    overwrite: bool,
    as_json: bool,
) -> None:
    from silvan import _silvan
    from silvan.comparing.comparison import choose, without_effect
    from silvan.comparing.comparison import compare as do_compare
    from silvan.comparing.comparison_figure import draw_comparison
    from silvan.folders import Origin, claim_figures
    from silvan.sweeping.plan import require_few
    from silvan.viewer.comparison import comparison_report, write_comparison
    from silvan.viewer.report import write_report

    overrides, added = added_scheme(scheme, set_)
    loaded = load(scenario, None, overrides=overrides)
    chosen = choose(loaded, names, added)
    require_few(seeds * len(chosen))
    size = require_size([(loaded, seeds * len(chosen))], is_wanted=is_wanted)
    labels = [
        f"{one.name}, seed {loaded.seed + number}" for one in chosen for number in range(seeds)
    ]
    folder = out / f"compare-{loaded.name}"
    origin = Origin(loaded.name, loaded.hash, _silvan.version())
    claim_figures(folder, "compare.*", origin, overwrite=overwrite)
    if size is not None:
        note(size)
    with progress_bars(labels) as on_progress:
        ranking = do_compare(
            loaded, names, seeds=seeds, out=out / "runs", added=added, on_progress=on_progress
        )
    written = draw_comparison(
        ranking, title=loaded.name, folder=folder, stem="compare", measures=measures
    )
    manifest = write_comparison(loaded, ranking, listed, changes(set_, None), folder, measures)
    page = write_report(comparison_report(manifest), folder / "compare.html")
    if as_json:
        put_json([one.to_dict() for one in ranking])
    else:
        table = _table(loaded.name, ranking, measures)
        put_widest(table, [table])
    if loaded.duration_ps < _SETTLED_PS and not _ended_early(loaded, ranking):
        note(
            f"note: a run of {loaded.duration_ps / 1e9:g} ms shows how schemes begin, not how they "
            "settle: a throttled flow may take 20 ms to recover; "
            "--set run.duration='50 ms' shows both"
        )
    note(f"wrote {written[0]}, and the same as SVG, CSV and JSON")
    note(f"wrote {page}")
    for text in without_effect([one.to_dict() for one in ranking]):
        note(f"note: {text}")
    failed = [one for one in ranking if one.failure]
    for one in failed:
        note(f"error: {one.baseline.name}: {one.failure}")
    if failed:
        raise typer.Exit(1)


def _ended_early(loaded: Scenario, ranking: Sequence[RankingRow]) -> bool:
    measured = [
        entry.numbers["delivered_bytes"] * 8e3 / entry.numbers["total_gbps"]
        for entry in ranking
        if not entry.failure and entry.numbers["total_gbps"] > 0
    ]
    whole_ps = (loaded.duration_ps - loaded.warm_up_ps) * 0.995
    return bool(measured) and all(time_ps < whole_ps for time_ps in measured)


def _over(seeds: int) -> str:
    return "one seed" if seeds == 1 else f"mean ± standard deviation over {seeds} seeds"


def _table(name: str, ranking: Sequence[RankingRow], measures: Sequence[Measure]) -> Table:
    from rich.table import Table

    from silvan.comparing.comparison import compared

    shown = measures or compared([row.to_dict() for row in ranking])
    table = Table(
        title=f"{name}: schemes side by side, {_over(ranking[0].seeds)}",
        caption="Measures from the warm-up to the end of the run. State: bytes of a switch per "
        "port and lane; of a host, and for each flow. Congestion is cleared when the trees hold at "
        "most a tenth of the largest number of Port VLs without control.",
    )
    table.add_column("scheme", no_wrap=True)
    add_measures(table, shown)
    table.add_column("state\nswitch, B", justify="right", no_wrap=True)
    table.add_column("state\nhost, B", justify="right", no_wrap=True)
    for entry in ranking:
        cost = entry.baseline.cost
        table.add_row(
            entry.baseline.name,
            *(_cell(entry, one) for one in shown),
            "" if cost.switch_bytes is None else f"{cost.switch_bytes}",
            "" if cost.host_bytes is None else f"{cost.host_bytes} + {cost.flow_bytes}/flow",
        )
    return table


def _cell(entry: RankingRow, measure: Measure) -> str:
    value, deviation = (numbers[measure.name] for numbers in (entry.numbers, entry.deviations))
    if math.isnan(value):
        return ""
    text = "never" if math.isinf(value) else f"{value:.{measure.digits}f}"
    return text if math.isnan(deviation) else f"{text}\n±{deviation:.{measure.digits}f}"
