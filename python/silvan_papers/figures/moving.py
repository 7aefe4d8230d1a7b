"""Figures 9 and 10 of gran2012: rates and gain over the lifetime of moving hotspots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from silvan.figures import style
from silvan_papers.figures.panels import Line, Mark, Panel, draw_panels, line_styles
from silvan_papers.gran2012_cases import lifetime_ms

if TYPE_CHECKING:
    from silvan.reproduce.experiment import PointTable
    from silvan_papers.gran2012_moving import Storm

_AXIS = "moves of the hotspots in 100 ms\n(below: hotspot lifetime, ms)"
_TICKS = {moves: f"{moves}\n({lifetime_ms(moves):.2g})" for moves in (10, 20, 30, 50, 70, 100)}

Stated = Mapping[str, Sequence[tuple[int, float]]]
"""Values of the paper by curve (``on``, ``off``, ``gain``): number of moves, and value."""


def draw_moving(
    storms: Mapping[str, Storm],
    *,
    stated: Stated,
    windows: tuple[str, str],
    title: str,
    table: PointTable,
    folder: Path,
    stem: str,
) -> list[Path]:
    """Draw a column for each kind of traffic: rates above, gains below."""
    rates, gains = [], []
    for name, storm in storms.items():
        by_control = {"off": storm.off, "on": storm.on}
        lines = [
            Line(style.CC_LABELS[control], style.CC_COLOURS[control], points)
            for control, points in by_control.items()
        ]
        marks = [
            Mark(moves, value, colour)
            for control, colour in style.CC_COLOURS.items()
            for moves, value in stated.get(control, ())
        ]
        rates.append(Panel(name, "receive rate\nper host (Gbit/s)", lines, marks))
        gain_marks = [Mark(moves, value, style.INK) for moves, value in stated.get("gain", ())]
        gain = Line("CC on / CC off", style.INK, storm.gain())
        gains.append(Panel("What CC gains", "CC on / CC off (ratio)", [gain], gain_marks, level=1))
    return draw_panels(
        [[*rates, *gains]] if len(storms) == 1 else [rates, gains],
        title=title,
        axis=_AXIS,
        ticks=_TICKS,
        caption=line_styles(windows),
        table=table,
        folder=folder,
        stem=stem,
    )
