"""The command that draws a finished run."""

from __future__ import annotations

import re
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from silvan.cli.options import Overwrite
from silvan.cli.printer import put
from silvan.errors import SilvanError

if TYPE_CHECKING:
    from silvan.figures.style import Page
    from silvan.forest import Forests
    from silvan.result import Result

_PS = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}
_MOST_FRAMES = 120
_MOST_PANELS = 8


class Figure(StrEnum):
    """What can be drawn, by the names of the methods of ``result.plot``."""

    RECEIVE_RATES = "receive-rates"
    QUEUES = "queues"
    UTILISATION = "utilisation"
    LATENCY_CDF = "latency-cdf"
    FCT_CDF = "fct-cdf"
    SLOWDOWN_BY_SIZE = "slowdown-by-size"
    TREES = "trees"


class Width(StrEnum):
    """Widths of figures, by their names in ``silvan.figures.style``."""

    SCREEN = "screen"
    COLUMN = "column"
    PAGE = "page"


# The tables that each figure is drawn from; one of them is enough.
_TABLES = {
    Figure.RECEIVE_RATES: ("host_series",),
    Figure.QUEUES: ("port_series", "forest"),
    Figure.UTILISATION: ("ports",),
    Figure.LATENCY_CDF: ("host_latencies",),
    Figure.FCT_CDF: ("flows",),
    Figure.SLOWDOWN_BY_SIZE: ("flows",),
    Figure.TREES: ("forest",),
}


def plot(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="RESULT",
            help="The folder of a finished run, such as out/seed-1 of silvan run --out out.",
            show_default=False,
        ),
    ],
    figures: Annotated[
        list[Figure] | None,
        typer.Argument(
            metavar="[FIGURE ...]",
            help="receive-rates, queues, utilisation, latency-cdf, fct-cdf, slowdown-by-size or "
            "trees; by default all that the run has samples for.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the figures.")] = Path(
        "plots"
    ),
    at: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TIME",
            help="Instant at which to draw trees, such as '12 ms'; the nearest sample is drawn. "
            "May be repeated. By default, the instant with most bytes queued in trees.",
            show_default=False,
        ),
    ] = None,
    width: Annotated[
        Width,
        typer.Option(help="Width: that of a column (3.5 in) or a page (7.16 in) of a paper."),
    ] = Width.SCREEN,
    *,
    title: Annotated[
        bool, typer.Option("--title/--no-title", help="Whether figures have a title.")
    ] = True,
    animate: Annotated[
        bool, typer.Option("--animate", help="Write an animated GIF of the trees, too.")
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Draw figures of a finished run.

    Each figure is written as PNG, SVG and PDF; the names of the files are printed.
    """
    from silvan.extras import require_extra
    from silvan.folders import claim_figures
    from silvan.result import Result

    require_extra("figures", "figures")
    instants = [_picoseconds(text) for text in at or ()]
    if len(instants) > _MOST_PANELS:
        raise SilvanError(
            f"--at: {len(instants)} instants, and {_MOST_PANELS} fit into a picture",
            hint="draw them in several pictures, or use --animate",
        )
    if not folder.is_dir():
        raise SilvanError(
            f"{folder}: {'not a' if folder.exists() else 'no such'} folder",
            hint="silvan run SCENARIO.toml --trees --out out writes out/seed-N",
        )
    from silvan.figures import style

    result = Result.read(folder)
    chosen = figures or [
        figure for figure, tables in _TABLES.items() if any(_rows(result, one) for one in tables)
    ]
    if Figure.TREES in chosen:
        # An error of a result without trees comes before any file is written.
        _ = result.forest
    claim_figures(out, "plot-*.*", result.origin, overwrite=overwrite)
    page = style.Page(width, title, ("png", "svg", "pdf"))
    for figure in chosen:
        if figure is Figure.TREES:
            paths = _draw_trees(result, instants, out, page, animated=animate)
        else:
            paths = _draw(result, figure, out, page)
        for path in paths:
            put(str(path))


def _rows(result: Result, table: str) -> int:
    return result.tables[table].num_rows if table in result.tables else 0


def _picoseconds(text: str) -> int:
    """Read a time with its unit."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ps|ns|us|ms|s)\s*", text)
    if match is None:
        raise SilvanError(f"--at: {text!r} is not a time", hint="write e.g. '12 ms'")
    return round(Decimal(match[1]) * _PS[match[2]])


def _draw(result: Result, figure: Figure, out: Path, page: Page) -> list[Path]:
    """Write a figure of ``result.plot``."""
    from silvan.figures.result_plots import ResultPlots
    from silvan.figures.style import save

    draw = getattr(ResultPlots(result, page), figure.replace("-", "_"))
    return save(draw(), out, f"plot-{figure}", formats=page.formats)


def _draw_trees(
    result: Result, instants: list[int], out: Path, page: Page, *, animated: bool
) -> list[Path]:
    """Draw the fabric with its trees at some instants, and the trees over time."""
    from silvan.figures.forest import Drawing
    from silvan.figures.forest_movie import animate, draw_steps
    from silvan.figures.forest_time import draw_over_time
    from silvan.forest import Forests

    forests = Forests(result)
    drawing = Drawing(forests)
    samples = [forests.nearest(instant) for instant in instants] or [_fullest(forests)]
    name = result.scenario.name
    control = "off" if result.scenario.to_dict()["control"]["scheme"] == "none" else "on"
    paths = [
        *draw_steps(drawing, samples, title=name, folder=out, stem="plot-trees", page=page),
        *draw_over_time(
            {control: forests}, title=name, folder=out, stem="plot-trees-over-time", page=page
        ),
    ]
    if animated:
        step = -(-len(forests) // _MOST_FRAMES)
        frames = range(0, len(forests), step)
        paths.append(animate(drawing, frames, title=name, path=out / "plot-trees.gif"))
    return paths


def _fullest(forests: Forests) -> int:
    """Find the sample with most bytes queued in trees."""
    import numpy as np

    return int(np.argmax(forests.result.forest["queued_bytes"].to_numpy()))
