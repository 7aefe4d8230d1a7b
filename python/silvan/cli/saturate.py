"""The command that finds the load at which a fabric saturates."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from silvan.cli.measure_columns import (
    Measures,
    add_measures,
    cell,
    chosen_measures,
    measure_table,
)
from silvan.cli.options import (
    AsJson,
    Assignments,
    Overwrite,
    ScenarioPath,
    Scheme,
    Yes,
    load,
    require_size,
)
from silvan.cli.printer import note, put, put_json, put_table
from silvan.cli.without_effect import never_acted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from silvan.planning.saturation import LoadPoint, Saturation
    from silvan.results.measures import Measure

_CURVE = 8


def saturate(
    scenario: ScenarioPath,
    key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            help="Key of a load, such as traffic.uniform.0.load. May be repeated; by default all "
            "loads that are a share of the injection rate.",
            show_default=False,
        ),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(min=1e-6, max=0.5, help="Share of the offered load that may be missing."),
    ] = 0.02,
    resolution: Annotated[
        float, typer.Option(min=1e-4, max=0.5, help="Largest uncertainty of the load.")
    ] = 0.01,
    grid: Annotated[
        list[str] | None,
        typer.Option(
            "--grid",
            metavar="KEY=V1,V2,...",
            help="Values of a key, such as control.scheme=none,ib-cc or fabric.routing=...; one "
            "curve for each combination. May be repeated.",
            show_default=False,
        ),
    ] = None,
    set_: Assignments = None,
    scheme: Scheme = None,
    measures: Measures = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder for a figure of latency and delivery by load.",
            show_default=False,
        ),
    ] = None,
    *,
    yes: Yes = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Find the load at which a fabric saturates, by bisection.

    A load is delivered in full if hosts receive, between warm-up and end of the run, all that
    arrives at sources. The search replaces the scenario's loads. --grid compares schemes, routings
    or values of any other key, in one table and one figure.
    """
    from silvan.inputs.toml_text import parse_value
    from silvan.planning.saturation import saturate as search
    from silvan.sweeping.plan import parse_grid, plain

    shown = chosen_measures(measures)
    loaded = load(scenario, set_, scheme).varying(parse_grid(grid or []))
    if out is not None:
        from silvan import __version__
        from silvan.extras import require_extra
        from silvan.folders import Origin, claim_figures

        require_extra("figures", "figures")
        origin = Origin(loaded.name, loaded.hash, __version__)
        claim_figures(out, "saturation.*", origin, overwrite=overwrite)

    points = loaded.sweep_values()
    each = math.ceil(-math.log2(resolution)) + 1 + (0 if out is None else _CURVE)
    size = require_size([(loaded.at(points[0]), each * len(points))], is_wanted=yes, workers=1)
    if size is not None:
        note(size)
    found: dict[str, Saturation] = {}
    curves: list[dict[str, Any]] = []
    for values in points:
        name = ", ".join(plain(parse_value(value)) for value in values.values())

        def say(point: LoadPoint, name: str = name) -> None:
            note(
                f"{name}{': ' if name else ''}load {point.load:.3f}: "
                f"{point.delivered_gbps:.4g} Gbit/s, {100 * point.share:.1f} % of what is offered"
            )

        found[name] = search(
            loaded.at(values),
            keys=key,
            tolerance=tolerance,
            resolution=resolution,
            curve=0 if out is None else _CURVE,
            on_point=say,
        )
        typed = {one: parse_value(value) for one, value in values.items()}
        curves.append({"values": typed, **found[name].to_dict()})
    if as_json:
        put_json({"name": loaded.name, "curves": curves})
    else:
        for name, one in found.items():
            _print(name, one, shown)
    for values, one in zip(points, found.values(), strict=True):
        scheme = loaded.at(values).control.scheme
        if remark := never_acted(scheme, (point.idle_scheme for point in one.points)):
            note(remark)
    if out is not None:
        from silvan.figures.style import Page
        from silvan.planning.saturation_figure import draw_saturation

        page = Page(formats=("png", "svg", "pdf"))
        for path in draw_saturation(found, title=loaded.name, folder=out, page=page):
            note(str(path))


def _print(name: str, found: Saturation, chosen: Sequence[Measure]) -> None:
    from rich.table import Table

    from silvan.results.measures import RATES

    def make(measures: Sequence[Measure]) -> Table:
        table = Table(title=name or None)
        for heading in ("load", "payload,\nGbit/s", "of offered,\n%"):
            table.add_column(heading, justify="right")
        add_measures(table, measures)
        for point in found.points:
            table.add_row(
                f"{point.load:.3f}",
                f"{point.delivered_gbps:.4g}",
                f"{100 * point.share:.1f}",
                *(cell([point.measures], one) for one in measures),
            )
        return table

    table = measure_table([point.measures for point in found.points], chosen, make, omitted=RATES)
    put_table(table)
    if found.above is None:
        put("not saturated: a load of 1 is delivered in full")
    else:
        put(
            f"saturation load: {found.load:.3f} is delivered in full, {found.above:.3f} is not; "
            f"at most {found.most_gbps:.4g} Gbit/s"
        )
    if not found.is_certain:
        least = min(point.messages for point in found.points if point.messages is not None)
        put(
            f"uncertain: a run had {least:,} messages or flows only, too few to tell "
            f"{found.tolerance:g} from those under way; set a longer run.duration"
        )
