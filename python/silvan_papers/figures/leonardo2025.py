"""Figure of leonardo2025: predicted over measured times."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from silvan.figures import style

if TYPE_CHECKING:
    from silvan_papers.leonardo2025 import Cell

_NAMES = {"none": "quiet", "A2A": "beside an all-to-all", "Inc": "beside an incast"}


def draw_cells(found: Sequence[Cell], *, folder: Path, stem: str) -> list[Path]:
    """Draw a dot for each cell: its slow-down as measured and as predicted."""
    title = "Time of an iteration over that measured on quiet nodes: a dot for each cell"
    with style.styled(9.5, 4.6, title) as figure:
        panels = figure.subplots(1, 2, sharex=True, sharey=True)
        for axes, victim in zip(panels, ("All-Gather", "All-to-All"), strict=True):
            for place, (aggressor, name) in enumerate(_NAMES.items()):
                chosen = [
                    cell
                    for cell in found
                    if cell.job.victim == victim and cell.job.aggressor == aggressor
                ]
                axes.loglog(
                    [cell.measured_us / cell.base_us for cell in chosen],
                    [cell.predicted_us / cell.base_us for cell in chosen],
                    "o",
                    markersize=3,
                    alpha=0.6,
                    color=style.CURVES[place],
                    label=name,
                )
            limits = (0.4, 16)
            axes.plot(limits, limits, color="black", linewidth=0.8)
            for factor in (1.3, 1 / 1.3):
                axes.plot(
                    limits, [factor * one for one in limits], ":", color="grey", linewidth=0.8
                )
            axes.set_title(victim)
            axes.set_xlabel("measured")
        panels[0].set_ylabel("predicted")
        panels[0].legend(loc="upper left")
        return style.save(figure, folder, stem)
