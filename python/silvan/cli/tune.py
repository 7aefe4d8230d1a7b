"""The command that searches for settings of congestion control."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from silvan.cli.measure_columns import (
    Measures,
    add_measures,
    cell,
    chosen_measures,
    measure_table,
)
from silvan.cli.options import AsJson, Assignments, Overwrite, Yes, require_size, wall_time
from silvan.cli.printer import note, put_json, put_table, warn
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
from silvan.cli.whatif import FabricPath
from silvan.errors import ScenarioError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from silvan.comparing.tuning.space import Parameter
    from silvan.comparing.tuning.tune import Objective, TuneResult
    from silvan.inputs.scenario import Scenario
    from silvan.results.measures import Measure


def tune(
    fabric: FabricPath,
    objective: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FORMULA",
            help="maximize or minimize, and a formula of measures, such as 'maximize "
            "other_receivers_gbps'; measures without congestion control begin with off. May be "
            "repeated: several objectives have a Pareto front. By default the rate of receivers "
            "that are no hotspots, less in proportion where hotspots get less than 95 % of "
            "their rate without congestion control.",
            show_default=False,
        ),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=RANGE",
            help="A parameter in place of those that the scheme declares: a key of the scenario, "
            "cct-slope or "
            "cct-power, and LOW..HIGH [UNIT] [log], or choices V1,V2,... May be repeated.",
            show_default=False,
        ),
    ] = None,
    trials: Trials = 60,
    seeds: Annotated[
        int, typer.Option(min=1, metavar="N", help="Seeds that each trial is run with.")
    ] = 3,
    held_out_seeds: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Further seeds, of other placements, that judge the chosen settings.",
        ),
    ] = 3,
    pick: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="TRIAL",
            help="The trial whose settings are written; by default the best in the first "
            "objective.",
            show_default=False,
        ),
    ] = None,
    seed: SamplerSeed = 1,
    batch: Batch = 4,
    set_: Assignments = None,
    measures: Measures = None,
    out: OutFolder = None,
    timeout: TimeLimit = None,
    scheduler: Scheduler = "local",
    workers: Workers = None,
    *,
    yes: Yes = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Search for settings of congestion control.

    The scheme is control.scheme, or ib-cc if that is none. Each trial is simulated with several
    seeds. The found settings are then judged with seeds that the search has not used. If they are
    better there than the scenario's own and than no control, silvan writes them to tuned.toml in
    the output folder, and settings of ib-cc also to opensm.conf. Repeat the command to continue a
    search that was stopped or killed.
    """
    from silvan.comparing.tuning.runs import STUDY
    from silvan.comparing.tuning.tune import OBJECTIVE, Objective
    from silvan.comparing.tuning.tune import tune as do_tune

    shown = chosen_measures(measures)
    begin_on(scheduler)
    scenario = _read(fabric, set_)
    objectives = [Objective.parse(text) for text in objective or [OBJECTIVE]]
    parameters = [_parameter(word) for word in vary or []] or None
    folder = out or Path("out") / f"tune-{scenario.name}"
    if pick is not None and not (folder / STUDY).exists():
        raise typer.BadParameter(f"there is no search in {folder}", param_hint="--pick")
    runs = (trials + 1) * seeds + 3 * held_out_seeds
    size = require_size([(scenario, runs)], is_wanted=yes or timeout is not None, workers=workers)
    if size is not None:
        note(size)
    result = do_tune(
        scenario,
        objectives,
        out=folder,
        parameters=parameters,
        trials=trials,
        seeds=seeds,
        held_out_seeds=held_out_seeds,
        seed=seed,
        batch=batch,
        pick=pick,
        timeout_s=None if timeout is None else wall_time("--timeout", timeout),
        scheduler=scheduler,
        workers=workers,
        overwrite=overwrite,
        report=note,
    )
    if as_json:
        put_json({"name": scenario.name, "folder": str(folder), **result.to_dict()})
    else:
        put_table(_parameters(result))
        if len(objectives) > 1:
            put_table(_front(result, objectives))
        put_table(_scores(result, objectives, shown))
    _remarks(result)


def _read(path: Path, set_: list[str] | None) -> Scenario:
    from silvan.inputs.fabric_lists import read_fabric
    from silvan.inputs.toml_text import parse_assignments
    from silvan.planning.whatif import with_hotspots

    scenario = read_fabric(path, parse_assignments(set_ or []))
    warn(scenario.warnings)
    return scenario if scenario.has_traffic else with_hotspots(scenario, 1)


def _parameter(word: str) -> Parameter:
    from silvan.comparing.tuning.space import Parameter

    key, equals, text = word.partition("=")
    if not equals or not key.strip():
        raise ScenarioError(
            f"{word!r} is not of the form KEY=RANGE", "--vary", hint="write for example k=1..9 log"
        )
    return Parameter.parse(key.strip(), text, "--vary")


def _parameters(result: TuneResult) -> Table:
    from rich.table import Table

    table = Table(title=f"trial {result.picked.number} of {len(result.found.trials)}")
    for heading in ("parameter", "tuned", "importance"):
        table.add_column(heading, justify="left" if heading == "parameter" else "right")
    for key, value in result.settings.items():
        importance = result.found.importance.get(key)
        shown = f"{value:.4g}" if isinstance(value, float) else str(value)
        table.add_row(key, shown, "-" if importance is None else f"{importance:.0%}")
    return table


def _front(result: TuneResult, objectives: Sequence[Objective]) -> Table:
    from rich.table import Table

    table = Table(title="Pareto front, on the seeds of the search")
    table.add_column("trial", justify="right")
    for one in objectives:
        table.add_column(str(one), justify="right")
    for row in result.front:
        table.add_row(str(row["number"]), *(f"{value:.4g}" for value in row["objectives"]))
    return table


def _scores(
    result: TuneResult, objectives: Sequence[Objective], chosen: Sequence[Measure]
) -> Table:
    from rich.table import Table

    headings = [f"objective {number}" for number in range(1, len(objectives) + 1)]
    headings = headings if len(headings) > 1 else ["objective"]
    named = {"of the search": result.searched, "held out": result.held_out}

    def make(measures: Sequence[Measure]) -> Table:
        table = Table(title="means over the seeds")
        table.add_column("seeds")
        table.add_column("settings")
        for heading in headings:
            table.add_column(heading, justify="right")
        add_measures(table, measures)
        for name, scores in named.items():
            for settings, score in scores.items():
                words = {"off": "CC off", "start": "before", "tuned": "tuned"}[settings]
                values = ("-" if one is None else f"{one:.3f}" for one in score.objectives)
                table.add_row(
                    name, words, *values, *(cell([score.measures], one) for one in measures)
                )
        return table

    rows = [score.measures for scores in named.values() for score in scores.values()]
    return measure_table(rows, chosen, make)


def _remarks(result: TuneResult) -> None:
    if not result.seeds_place:
        note("the seed places no hosts in this load, so the seeds held out are a weak check")
    for line in result.comparisons:
        note(line)
    if result.files:
        note(f"wrote {' and '.join(map(str, result.files))}")
    elif "better" in result.verdicts["off"]:
        note("nothing written: the settings found are not better than those before")
    else:
        note("nothing written: the settings found are not better than congestion control off")
