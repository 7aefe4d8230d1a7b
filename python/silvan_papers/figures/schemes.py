"""Schemes side by side on several kinds of traffic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from silvan.figures import style
from silvan.reproduce.experiment import PointTable


def draw_schemes(
    table: PointTable, *, panels: Sequence[str], title: str, folder: Path, stem: str
) -> list[Path]:
    """Draw what hosts that are no hotspots receive, one panel per kind of traffic."""
    with style.styled(9.6, 3.2, title) as figure:
        grid = figure.subplots(1, len(panels), sharey=True)
        for axes, panel in zip(grid, panels, strict=True):
            rows = [row for row in table.rows if row[0] == panel]
            places = list(range(len(rows)))[::-1]
            values = [float(row[3]) for row in rows]
            axes.hlines(places, 0, values, color=style.FAINT, linewidth=1)
            (dots,) = axes.plot(values, places, "o", color=style.CC_COLOURS["on"], markersize=7)
            style.name_curve(dots, panel)
            for value, place in zip(values, places, strict=True):
                axes.annotate(
                    f"{value:.2f}",
                    (value, place),
                    xytext=(7, 0),
                    textcoords="offset points",
                    va="center",
                    fontsize=8,
                )
            served = [float(row[2]) for row in rows]
            moving = any(map(math.isnan, served))
            axes.set_title(panel)
            axes.set_yticks(places, [str(row[1]) for row in rows])
            axes.set_ylim(-0.5, len(rows) - 0.5)
            axes.set_xlim(0, 1.25 * max(values))
            axes.grid(visible=False)
            hosts = "all hosts" if moving else "hosts that are no hotspots"
            axes.set_xlabel(f"receive rate (Gbit/s)\nof {hosts}")
        return style.save(figure, folder, stem, (table.header, table.rows))
