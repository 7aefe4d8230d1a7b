"""Columns of measures in the tables of runs."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Annotated

import typer

from silvan.cli.printer import note

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from rich.table import Table

    from silvan.results.measures import Measure

Measures = Annotated[
    str | None,
    typer.Option(
        "--measures",
        metavar="NAME,NAME,...",
        help="Measures to print, separated by commas, such as fct_p99_us,slowdown_mean; by default "
        "those that suit the traffic. The reference page Measures lists all.",
        show_default=False,
    ),
]

_WIDEST = 100


def chosen_measures(
    listed: str | None, known: Mapping[str, Measure] | None = None
) -> list[Measure]:
    """Read the value of ``--measures``."""
    from silvan.results.measures import MEASURES, require_measure

    if listed is None:
        return []
    known = MEASURES if known is None else known
    names = list(dict.fromkeys(name.strip() for name in listed.split(",")))
    for name in names:
        require_measure(name, "--measures", tuple(known))
    return [known[name] for name in names]


def measure_table(
    rows: Sequence[Mapping[str, float | None]],
    chosen: Sequence[Measure],
    make: Callable[[Sequence[Measure]], Table],
    omitted: Collection[str] = (),
) -> Table:
    """Make a table of runs with chosen measures.

    By default, it has as many suitable measures as fit, and its caption lists the others.
    """
    from silvan.results.measures import MEASURES, SUITED, definition_of, value_of

    if chosen:
        for one in chosen:
            if all(value_of(row, one.name) is None for row in rows):
                note(f"note: {one.name} has no value here. {definition_of(one)}")
        return make(chosen)
    suited = [
        MEASURES[name]
        for name in SUITED
        if name not in omitted and any(value_of(row, name) is not None for row in rows)
    ]
    for count in range(len(suited), 1, -1):
        table = make(suited[:count])
        if _width(table) <= _WIDEST:
            break
    else:
        count, table = 1, make(suited[:1])
    if left := [one.name for one in suited[count:]]:
        table.caption = f"--measures prints others, such as {', '.join(left[:3])}."
    return table


def _width(table: Table) -> int:
    from rich.console import Console

    console = Console(width=10_000)
    return console.measure(table).maximum


def add_measures(table: Table, measures: Iterable[Measure]) -> None:
    """Add a column for each measure."""
    from silvan.results.measures import narrow_title

    for one in measures:
        table.add_column(narrow_title(one), justify="right", no_wrap=True)


def cell(rows: Sequence[Mapping[str, float | None]], measure: Measure) -> str:
    """Write a measure of one run, or its mean ± standard deviation over several.

    >>> from silvan.results.measures import MEASURES
    >>> total, tail = MEASURES["total_gbps"], MEASURES["fct_p99_us"]
    >>> cell([{"total_gbps": 12.0}], total), cell([{"total_gbps": 1.0}, {"total_gbps": 3.0}], total)
    ('12.000', '2.000 ± 1.414')
    >>> cell([{"fct_mean_us": 2.0, "fct_p99_us": None}], tail), cell([{}], tail)
    ('never', '-')
    """
    from silvan.results.measures import value_of

    values = [value for row in rows if (value := value_of(row, measure.name)) is not None]
    if not values:
        return "-"
    if any(map(math.isinf, values)):
        return "never"
    spread = f" ± {statistics.stdev(values):.{measure.digits}f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.{measure.digits}f}{spread}"
