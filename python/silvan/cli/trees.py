"""The command that draws congestion trees."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from silvan.cli.options import AsJson, Assignments, Overwrite, load, with_trees
from silvan.cli.printer import note, progress_bars, put_json, put_table
from silvan.errors import SilvanError

if TYPE_CHECKING:
    from rich.table import Table

    from silvan.forest import Forests
    from silvan.result import Result

_PS = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}
_MOST_FRAMES = 120
_MOST_PANELS = 8
_MOST_LISTED = 20


def trees(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SCENARIO.toml|RESULT",
            help="A scenario file, or the folder of a finished run.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Folder of the pictures, and of the run in DIR/run."),
    ] = Path("trees"),
    set_: Assignments = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Seed of the run; by default the scenario's.", show_default=False),
    ] = None,
    at: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TIME",
            help="Instant to draw, such as '12 ms', to the nearest look. May be repeated. "
            "By default the one with most waiting in trees.",
            show_default=False,
        ),
    ] = None,
    *,
    animate: Annotated[
        bool, typer.Option("--animate", help="Write an animated forest.gif, too.")
    ] = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Draw the congestion trees of a run: the fabric with its forest, and the forest over time.

    A scenario is simulated first, and its result kept in DIR/run, from where it can be drawn again.
    Prints the largest trees.
    """
    from silvan.extras import require_extra
    from silvan.folders import claim_figures
    from silvan.forest import Forests

    require_extra("figures", "pictures of trees")

    instants = [_picoseconds(text) for text in at or ()]
    if len(instants) > _MOST_PANELS:
        raise SilvanError(
            f"--at: {len(instants)} instants, and {_MOST_PANELS} fit into a picture",
            hint="draw them in several pictures, or use --animate",
        )
    if source.is_dir() and (set_ or seed is not None):
        raise SilvanError(
            f"{source}: a finished run cannot be changed by --set or --seed",
            hint="name the scenario file instead",
        )
    if source.is_dir():
        result = _finished(source)
    else:
        result = _simulated(source, set_, seed, out, overwrite=overwrite)
    forests = Forests(result)
    claim_figures(out, "forest*.*", result.origin, overwrite=overwrite)
    _draw(forests, instants, out, animated=animate)
    lives = _lives(forests)
    if as_json:
        put_json({"name": result.scenario.name, "trees": lives})
        return
    put_table(_table(result.scenario.name, lives))


def _picoseconds(text: str) -> int:
    """Read a time with its unit."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ps|ns|us|ms|s)\s*", text)
    if match is None:
        raise SilvanError(f"--at: {text!r} is no time", hint="write e.g. '12 ms'")
    return round(Decimal(match[1]) * _PS[match[2]])


def _finished(folder: Path) -> Result:
    from silvan.result import Result

    return Result.read(folder)


def _simulated(
    path: Path, set_: list[str] | None, seed: int | None, out: Path, *, overwrite: bool
) -> Result:
    """Run a scenario, and keep the result."""
    from contextlib import closing

    from silvan.folders import claimed_results
    from silvan.scenario import warn_without_traffic
    from silvan.workers import Job, run_jobs

    scenario = with_trees(load(path, set_))
    if not scenario.has_traffic:
        warn_without_traffic(scenario.name)
    job = Job(scenario, scenario.seed if seed is None else seed, out / "run")
    with (
        claimed_results(out, {out / "run": job.origin}, overwrite=overwrite),
        progress_bars([scenario.name]) as on_progress,
        closing(run_jobs([job], on_progress=on_progress)) as finished,
    ):
        ((_, result),) = finished
    note(f"wrote {out / 'run'}")
    return result


def _draw(forests: Forests, instants: list[int], out: Path, *, animated: bool) -> None:
    import numpy as np

    from silvan.figures.forest import Drawing
    from silvan.figures.forest_movie import animate, draw_steps
    from silvan.figures.forest_time import draw_over_time

    scenario = forests.result.scenario
    drawing = Drawing(forests)
    looks = [forests.nearest(instant) for instant in instants]
    if not looks:
        looks = [int(np.argmax(forests.result.forest["queued_bytes"].to_numpy()))]
    control = "off" if scenario.to_dict()["control"]["scheme"] == "none" else "on"
    paths = [
        *draw_steps(drawing, looks, title=scenario.name, folder=out, stem="forest"),
        *draw_over_time(
            {control: forests}, title=scenario.name, folder=out, stem="forest-over-time"
        ),
    ]
    if animated:
        step = -(-len(forests) // _MOST_FRAMES)
        frames = range(0, len(forests), step)
        paths.append(animate(drawing, frames, title=scenario.name, path=out / "forest.gif"))
    for path in paths:
        note(f"wrote {path}")


def _lives(forests: Forests) -> list[dict[str, Any]]:
    """Tell the lives of all trees, the largest first."""
    table = forests.result.tree_lifetimes
    ports = forests.result.ports.select(["node", "port"]).to_pylist()
    lives = []
    for life in table.to_pylist():
        root = ports[life.pop("root_row")]
        others = {
            key: life.pop(key) for key in ("moved_from", "split_from", "merged_into", "lineage")
        }
        none = life["tree"]
        lives.append(
            {
                **life,
                "died": bool(life["died"]),
                "root": f"{root['node']}:{root['port']}",
                "lineage": others.pop("lineage"),
                **{key: None if value == none else value for key, value in others.items()},
            }
        )
    return sorted(lives, key=lambda life: (-life["peak_ports"], life["tree"]))


def _table(name: str, lives: list[dict[str, Any]]) -> Table:
    from rich.table import Table

    shown = lives[:_MOST_LISTED]
    left = len(lives) - len(shown)
    table = Table(
        title=f"{name}: congestion trees, the largest first",
        caption=f"and {left} smaller ones" if left else None,
    )
    for heading in ("tree", "root", "hotspot", "from (ms)", "to (ms)"):
        table.add_column(heading, justify="right")
    for heading in ("Port VLs", "depth", "contributors", "victims", "moved from"):
        table.add_column(heading, justify="right")
    for life in shown:
        moved = life["moved_from"]
        table.add_row(
            str(life["tree"]),
            life["root"],
            life["destination"] or "-",
            f"{life['birth_ps'] / 1e9:g}",
            f"{life['death_ps'] / 1e9:g}" if life["died"] else "the end",
            *(str(life[f"peak_{key}"]) for key in ("ports", "depth", "contributors", "victims")),
            "-" if moved is None else str(moved),
        )
    return table
