"""Removal of congestion trees of different sizes over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from silvan.figures import style

if TYPE_CHECKING:
    from silvan.reproduce.experiment import PointTable

Curve = tuple[tuple[Sequence[float], Sequence[float]], float]
"""Times in ms with waiting MiB, and the lower bound in ms."""


def curve_colour(place: int) -> str:
    """Return the colour of a curve by its place."""
    return style.SHADES[place % len(style.SHADES)]


def draw_pruning(curves: Mapping[int, Curve], *, table: PointTable, folder: Path) -> list[Path]:
    """Draw what waits in the tree over time for each number of contributors."""
    with style.styled(7.2, 3.6, "A tree is removed the later the more hosts contribute") as figure:
        axes = figure.subplots()
        for place, (count, ((times, queued), bound_ms)) in enumerate(curves.items()):
            colour = curve_colour(place)
            axes.plot(times, queued, color=colour, label=f"{count} contributors")
            bound = axes.axvline(bound_ms, color=colour, linewidth=1.1, linestyle=(0, (2.2, 1.6)))
            style.name_curve(bound, f"{count} contributors, lower bound")
        axes.set_xlabel("simulated time (ms)")
        axes.set_ylabel("waiting in the tree (MiB)")
        axes.set_xlim(0, None)
        axes.set_ylim(0, None)
        style.legend_below(axes, note="Dashed: lower bound of the time to the fair share.")
        return style.save(figure, folder, "beyond-pruning", (table.header, table.rows))
