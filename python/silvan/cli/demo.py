"""Demonstrations in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from silvan.cli.printer import note

if TYPE_CHECKING:
    from rich.console import RenderableType

    from silvan.demos.dcms import Course

_FULL_GBPS = 8.0
_BARS = "▁▂▃▄▅▆▇█"
_COLUMNS = 72

demo = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Demonstrate how real programs manage an emulated fabric.",
)


@demo.callback()
def root() -> None:
    """Keep the demonstrations' names even while there is one."""


@demo.command()
def dcms(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the figure.")] = Path(
        "out/demo"
    ),
    time_scale: Annotated[
        float,
        typer.Option(min=0.01, max=1, help="Simulated seconds per second."),
    ] = 0.1,
    low_duration: Annotated[
        float,
        typer.Option(min=2, max=60, help="Seconds for which a Marking_Rate stays low at most."),
    ] = 15.0,
) -> None:
    """Play Experiment II of mizero2017 with OpenSM and silvan dcms, live (half a minute).

    Three flows to D congest S2's port to it, and X-Y, which only shares the cable between the
    switches with one of them, falls to a third of its rate. The manager sees it in the counters,
    lowers a Marking_Rate, and X-Y has its rate back. Needs opensm and libumad2sim0.
    """
    from silvan.figures.dcms_live import draw
    from silvan.folders import require_writable

    require_writable(out)
    note("starting the fabric and OpenSM")
    course = _show(time_scale, low_duration)
    for path in draw(course, folder=out, stem="dcms"):
        note(f"written to {path}")


def _show(time_scale: float, low_s: float) -> Course:
    """Run it with a live view on a terminal, and with remarks elsewhere."""
    from rich.console import Console
    from rich.live import Live

    from silvan.demos import dcms as demonstration

    if not sys.stderr.isatty():
        told = 0

        def say(course: Course) -> None:
            nonlocal told
            for remark in course.remarks[told:]:
                note(f"{remark.time_s:5.1f} s  {_words(remark.event)}")
            told = len(course.remarks)

        return demonstration.run(time_scale=time_scale, low_s=low_s, on_change=say)
    with Live(console=Console(stderr=True), refresh_per_second=8) as live:
        return demonstration.run(
            time_scale=time_scale,
            low_s=low_s,
            on_change=lambda course: live.update(_view(course)),
        )


def _view(course: Course) -> RenderableType:
    """Draw what has happened so far: a line of bars per flow, then what the manager said."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    from silvan.demos.dcms import LASTS_S, STARTS_S, VICTIM

    per_column = LASTS_S / _COLUMNS
    flows = Table.grid(padding=(0, 1))
    samples = {int(sample.time_s / per_column): sample for sample in course.samples}
    newest = course.samples[-1] if course.samples else None
    for flow in STARTS_S:
        line = Text()
        for column in range(_COLUMNS):
            sample = samples.get(column)
            rate = sample.flows_gbps.get(flow) if sample else None
            if rate is None or sample is None:
                line.append(" ")
                continue
            height = min(int(rate / _FULL_GBPS * len(_BARS)), len(_BARS) - 1)
            colour = "bright_blue" if flow == VICTIM else "yellow"
            line.append(_BARS[height], f"{colour} on grey19" if sample.is_low else colour)
        now = newest.flows_gbps.get(flow) if newest else None
        name = f"{flow} (victim)" if flow == VICTIM else flow
        flows.add_row(name, line, "" if now is None else f"{now:.2f} Gbit/s")
    said = Text("\n".join(f"{one.time_s:5.1f} s  {_words(one.event)}" for one in course.remarks))
    at = f"{newest.time_s:.1f} s" if newest else ""
    return Group(
        Panel(flows, title=f"throughput, 0 to 8 Gbit/s; shaded: Marking_Rate low   {at}"),
        Panel(said, title="silvan dcms"),
    )


def _words(event: Mapping[str, Any]) -> str:
    """Say an event of the manager's log in a few words."""
    kind = event["event"]
    port = event.get("port")
    where = f"{port['switch']}:{port['port']}" if isinstance(port, dict) else ""
    if kind == "discovered":
        return f"discovered {event['switches']} switches, {event['ports']} ports to watch"
    if kind == "decision":
        victim = event.get("victim")
        of = f", victim {victim['switch']}:{victim['port']}" if victim else ""
        return f"decision: {event['reason']} at {where}{of}"
    if kind == "lowered":
        return f"Marking_Rate of {where} lowered from {event['before']} to {event['now']}"
    if kind == "restored":
        return f"Marking_Rate of {where} restored to {event['now']}"
    if kind == "stopped":
        return f"stopped, {event['pending']} changes left"
    return str(kind)
