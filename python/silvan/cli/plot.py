"""The command that draws a finished run."""

from __future__ import annotations

import hashlib
import re
from decimal import Decimal
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from silvan.cli.options import Overwrite
from silvan.cli.printer import put
from silvan.errors import SilvanError, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from silvan.figures.style import Page
    from silvan.folders import Origin
    from silvan.results.forest import Forests
    from silvan.results.result import Result

_PS = {"ps": 1, "ns": 10**3, "us": 10**6, "µs": 10**6, "ms": 10**9, "s": 10**12}
_MOST_FRAMES = 120
_MOST_PANELS = 8


class Figure(StrEnum):
    """Figures to draw, by the names of the methods of ``result.plot``."""

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
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="RESULT ... [FIGURE ...]",
            help="Folders of up to six finished runs, such as out of silvan run --out out; figures "
            "overlay them. Then figures: receive-rates, queues, utilisation, latency-cdf, "
            "fct-cdf, slowdown-by-size or trees; by default all for which the runs have "
            "samples.",
            show_default=False,
        ),
    ],
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
    title: Annotated[bool, typer.Option("--title/--no-title", help="Give figures a title.")] = True,
    animate: Annotated[
        bool, typer.Option("--animate", help="Write an animated GIF of the trees, too.")
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Draw figures of finished runs.

    Curves of several runs are in the same axes, with labels that name the facts in which the runs
    differ: scenario, scheme, seed or other keys. Each figure is written as PNG, SVG and PDF; the
    names of the files are printed.
    """
    from silvan.extras import require_extra
    from silvan.folders import claim_figures

    require_extra("figures", "figures")
    instants = [_picoseconds(text) for text in at or ()]
    if len(instants) > _MOST_PANELS:
        raise SilvanError(
            f"--at: {len(instants)} instants, and {_MOST_PANELS} fit into a picture",
            hint="draw them in several pictures, or use --animate",
        )
    folders, figures = _split(words)
    from silvan.figures import style

    results = _read(folders)
    chosen = figures or [
        figure
        for figure, tables in _TABLES.items()
        if all(any(_rows(result, one) for one in tables) for result in results)
    ]
    if Figure.TREES in chosen:
        for result in results:
            _ = result.forest
    if len(results) > 1 and (instants or animate):
        raise SilvanError(
            f"{len(results)} runs: {'--at' if instants else '--animate'} draws the trees of 1",
            hint=f"name the folder of one run, such as {folders[0]}",
        )
    claim_figures(out, "plot-*.*", _origin(results), overwrite=overwrite)
    page = style.Page(width, title, ("png", "svg", "pdf"))
    for figure in chosen:
        if figure is not Figure.TREES:
            paths = _draw(results, figure, out, page)
        elif len(results) > 1:
            paths = list(_draw_trees_over_time(results, out, page))
        else:
            paths = _draw_trees(results[0], instants, out, page, animated=animate)
        for path in paths:
            put(str(path))


def _split(words: Sequence[str]) -> tuple[list[Path], list[Figure]]:
    names = [str(figure) for figure in Figure]
    count = next((place for place, word in enumerate(words) if word in names), len(words))
    for word in words[count:]:
        if word not in names:
            raise typer.BadParameter(
                f"{shown(repr(word))} is not one of {', '.join(names)}", param_hint="[FIGURE ...]"
            )
    folders = [Path(word) for word in words[:count]]
    if not folders:
        raise typer.BadParameter("name the folder of a run first", param_hint="RESULT ...")
    for folder in folders:
        if not folder.is_dir():
            close = get_close_matches(str(folder), names, n=1)
            if close and folder != folders[0]:
                raise SilvanError(
                    f"{folder}: no figure and no folder", hint=f"did you mean {close[0]}?"
                )
            raise SilvanError(
                f"{folder}: {'not a' if folder.exists() else 'no such'} folder",
                hint="silvan run SCENARIO.toml --trees --out out writes out/seed-N; figures are "
                f"{', '.join(Figure)}",
            )
    return folders, [Figure(word) for word in words[count:]]


def _read(folders: Sequence[Path]) -> list[Result]:
    from silvan.figures.style import CURVES
    from silvan.folders import run_folders
    from silvan.results.result import Result

    found = run_folders(folders)
    if len(found) > len(CURVES):
        raise SilvanError(
            f"{len(found)} runs: at most {len(CURVES)} fit into a figure",
            hint=f"name some of them, such as {found[0]}",
        )
    return [Result.read(folder) for folder in found]


def _origin(results: Sequence[Result]) -> Origin:
    from silvan.folders import Origin

    origins = list(dict.fromkeys(result.origin for result in results))
    if len(origins) == 1:
        return origins[0]
    text = "".join(one.scenario_hash for one in origins).encode()
    return Origin(
        ", ".join(dict.fromkeys(one.name for one in origins)),
        hashlib.sha256(text).hexdigest(),
        ", ".join(dict.fromkeys(one.version for one in origins)),
    )


def _rows(result: Result, table: str) -> int:
    return result.tables[table].num_rows if table in result.tables else 0


def _picoseconds(text: str) -> int:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ps|ns|us|µs|ms|s)\s*", text)
    if match is None:
        raise SilvanError(f"--at: {text!r} is not a time", hint="write e.g. '12 ms'")
    return round(Decimal(match[1]) * _PS[match[2]])


def _draw(results: Sequence[Result], figure: Figure, out: Path, page: Page) -> list[Path]:
    from silvan.figures.result_plots import ResultPlots
    from silvan.figures.style import save
    from silvan.results.run_labels import run_labels

    draw = getattr(ResultPlots(results, run_labels(results), page), figure.replace("-", "_"))
    return save(draw(), out, f"plot-{figure}", formats=page.formats)


def _draw_trees(
    result: Result, instants: list[int], out: Path, page: Page, *, animated: bool
) -> list[Path]:
    from silvan.figures.forest import Drawing
    from silvan.figures.forest_movie import animate, draw_steps
    from silvan.figures.forest_time import draw_over_time
    from silvan.results.forest import Forests

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


def _draw_trees_over_time(results: Sequence[Result], out: Path, page: Page) -> Sequence[Path]:
    from silvan.figures.forest_time import draw_over_time
    from silvan.figures.style import run_colours
    from silvan.results.forest import Forests
    from silvan.results.run_labels import run_labels

    runs = dict(zip(run_labels(results), map(Forests, results), strict=True))
    names = dict.fromkeys(result.scenario.name for result in results)
    title = next(iter(names)) if len(names) == 1 else ""
    colours = run_colours(
        [result.scenario.to_dict()["control"]["scheme"] != "none" for result in results]
    )
    return draw_over_time(
        runs, title=title, folder=out, stem="plot-trees-over-time", page=page, colours=colours
    )


def _fullest(forests: Forests) -> int:
    import numpy as np

    return int(np.argmax(forests.result.forest["queued_bytes"].to_numpy()))
