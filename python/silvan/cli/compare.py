"""The command that compares congestion-control schemes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from silvan.cli.options import AsJson, Assignments, Overwrite, ScenarioPath, SchemeFile, load
from silvan.cli.printer import note, progress_bars, put_json, put_table

if TYPE_CHECKING:
    from rich.table import Table

    from silvan.compare import Quantity, RankingRow


_SETTLED_PS = 20_000_000_000
"""Time in which CCTI falls from 127 to 0 with the CCTI_Timer of gran2012."""


def compare(
    scenario: ScenarioPath,
    schemes: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME,...",
            help="Schemes to compare, separated by commas, such as 'ib-cc,pft'; "
            "'none' always takes part.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(
            min=1,
            help="Runs of each scheme, with consecutive seeds; with two or more, the standard "
            "deviation is printed and drawn, too.",
        ),
    ] = 1,
    set_: Assignments = None,
    scheme: SchemeFile = None,
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Folder of the figure and of finished runs."),
    ] = Path("out"),
    *,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Compare congestion-control schemes on a scenario.

    The schemes are no control, InfiniBand's with Table I of gran2012, the DCMS on top of it,
    explicit notification with two response functions, proactive throttling alone and together with
    InfiniBand's, DCQCN, and the scenario's own if it is in a Python file. Finished runs are
    kept under --out and not run again. Prints a table and draws it as dots. A scheme whose run
    fails has no numbers; the exit status is then 1.
    """
    from silvan import _silvan
    from silvan.compare import choose
    from silvan.compare import compare as do_compare
    from silvan.figures.compare import draw_comparison
    from silvan.folders import Origin, claim_figures
    from silvan.viewer.comparison import comparison_report, write_comparison
    from silvan.viewer.report import write_report

    loaded = load(scenario, set_, scheme)
    names = [name.strip() for name in schemes.split(",")] if schemes is not None else []
    labels = [
        f"{one.name}, seed {loaded.seed + number}"
        for one in choose(loaded, names)
        for number in range(seeds)
    ]
    folder = out / f"compare-{loaded.name}"
    origin = Origin(loaded.name, loaded.hash, _silvan.version())
    claim_figures(folder, "compare.*", origin, overwrite=overwrite)
    with progress_bars(labels) as on_progress:
        ranking = do_compare(loaded, names, seeds=seeds, root=out / "runs", on_progress=on_progress)
    written = draw_comparison(ranking, title=loaded.name, folder=folder, stem="compare")
    manifest = write_comparison(loaded, ranking, names, folder)
    page = write_report(comparison_report(manifest), folder / "compare.html")
    if as_json:
        put_json([one.to_dict() for one in ranking])
    else:
        put_table(_table(loaded.name, ranking))
    if loaded.duration_ps < _SETTLED_PS:
        note(
            f"note: {loaded.duration_ps / 1e9:g} ms show how schemes begin, not how they settle: a "
            "throttled flow may take 20 ms to recover; --set run.duration='50 ms' shows both"
        )
    note(f"wrote {written[0]}, and the same as SVG, CSV and JSON")
    note(f"wrote {page}")
    failed = [one for one in ranking if one.failure]
    for one in failed:
        note(f"error: {one.baseline.name}: {one.failure}")
    if failed:
        raise typer.Exit(1)


def _over(seeds: int) -> str:
    return "one seed" if seeds == 1 else f"mean ± standard deviation over {seeds} seeds"


def _table(name: str, ranking: Sequence[RankingRow]) -> Table:
    from rich.table import Table

    from silvan.compare import quantities

    shown = quantities(ranking)
    table = Table(
        title=f"{name}: schemes side by side, {_over(ranking[0].seeds)}",
        caption="Rates: second half of the run. State: bytes of a switch per port and lane; of a "
        "host, and for each flow. Congestion is cleared when the trees hold at most a tenth of the "
        "largest number of Port VLs without control; victims are recovered at nine tenths of their "
        "best rate under any scheme.",
    )
    table.add_column("scheme", no_wrap=True)
    for one in shown:
        table.add_column(one.title, justify="right", no_wrap=True)
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


def _cell(entry: RankingRow, quantity: Quantity) -> str:
    value, deviation = (numbers[quantity.name] for numbers in (entry.numbers, entry.deviations))
    if math.isnan(value):
        return ""
    text = "never" if math.isinf(value) else f"{value:.{quantity.digits}f}"
    # On a line of its own: the table has many columns.
    return text if math.isnan(deviation) else f"{text}\n±{deviation:.{quantity.digits}f}"
