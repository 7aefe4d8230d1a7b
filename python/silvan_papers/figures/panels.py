"""Figures of several panels side by side: curves over the points of a study."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from silvan.figures import style

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from silvan.reproduce.experiment import PointTable
    from silvan.results.receive_rates import FloatArray

_MARK_NAME = "stated in the paper"
_LETTERS_PER_INCH = 16.5
_LATE_DASHES = (0, (2.2, 1.6))


@dataclass(frozen=True, slots=True)
class Line:
    """A curve, averaged over the seeds.

    Each point has two rows, whole run and steady state, and one column per seed. ``steady`` draws
    the latter, too, dashed.
    """

    name: str
    colour: str
    points: Mapping[int, FloatArray]
    steady: bool = True
    marker: str = "o"


@dataclass(frozen=True, slots=True)
class Mark:
    """A value of the paper, at a point of the axis."""

    at: int
    value: float
    colour: str


@dataclass(frozen=True, slots=True)
class Panel:
    """A pair of axes with curves, the paper's values, and a thin horizontal line."""

    title: str
    unit: str
    lines: Sequence[Line]
    marks: Sequence[Mark] = ()
    level: float | None = None


def draw_panels(
    panels: Sequence[Sequence[Panel]],
    *,
    title: str,
    axis: str,
    ticks: Mapping[int, str],
    caption: str,
    table: PointTable,
    folder: Path,
    stem: str,
) -> list[Path]:
    """Draw rows of panels that share their horizontal axis, with one legend for all."""
    rows, columns = len(panels), len(panels[0])
    width = max(3.45 * columns, 6.9)
    with style.styled(width, 2.75 * rows + 1.05, title) as figure:
        grid = figure.subplots(rows, columns, squeeze=False)
        legend: dict[str, Artist] = {}
        for row, line_of_axes in zip(panels, grid, strict=True):
            for panel, axes in zip(row, line_of_axes, strict=True):
                legend.update(_fill(axes, panel))
                axes.set_xticks(list(ticks), list(ticks.values()))
        for axes in grid[-1]:
            axes.set_xlabel(axis)
        lines = [line for row in panels for panel in row for line in panel.lines]
        note = textwrap.fill(f"{caption} {_seeds(lines)}", round(_LETTERS_PER_INCH * width))
        style.legend_below(grid[0, 0], legend, note=note, handlelength=2.2, columnspacing=1.6)
        return style.save(figure, folder, stem, (table.header, table.rows))


def line_styles(windows: tuple[str, str]) -> str:
    """Explain solid and dashed lines by the averaging windows in words."""
    whole, steady = windows
    return f"Solid: mean over {whole}, from its first packet on. Dashed: over {steady}."


def _seeds(lines: Sequence[Line]) -> str:
    counts = sorted({values.shape[1] for one in lines for values in one.points.values()})
    if counts == [1]:
        return "One seed."
    several = " or ".join(str(count) for count in counts if count > 1)
    others = "; points without a bar: one seed" if 1 in counts else ""
    return f"Bars: smallest to largest of {several} seeds{others}."


def _fill(axes: Axes, panel: Panel) -> dict[str, Artist]:
    legend: dict[str, Artist] = {}
    axes.set_title(panel.title)
    axes.set_ylabel(panel.unit)
    if panel.level is not None:
        level = axes.axhline(panel.level, color=style.FAINT, linewidth=0.8)
        style.name_curve(level, "level")
    for line in panel.lines:
        at = np.array(list(line.points))
        mean, low, high = (
            np.array([reduce(values[0]) for values in line.points.values()])
            for reduce in (np.mean, np.min, np.max)
        )
        is_bar = np.array([values.shape[1] > 1 for values in line.points.values()])
        # Without a marker nothing was measured, and seeds differ by placement alone.
        if line.marker and is_bar.any():
            axes.errorbar(
                at[is_bar],
                mean[is_bar],
                # The mean of equal values may have a rounding error.
                yerr=np.maximum([mean - low, high - mean], 0)[:, is_bar],
                fmt="none",
                ecolor=line.colour,
                elinewidth=1,
                capsize=2,
            )
        (drawn,) = axes.plot(
            at,
            mean,
            color=line.colour,
            marker=line.marker or None,
            markersize=3.6,
        )
        legend[line.name] = drawn
        style.name_curve(drawn, line.name)
        if line.steady:
            (dashed,) = axes.plot(
                at,
                [values[1].mean() for values in line.points.values()],
                color=line.colour,
                linewidth=1.1,
                linestyle=_LATE_DASHES,
            )
            style.name_curve(dashed, f"{line.name}, steady state")
    for mark in panel.marks:
        stated = axes.scatter(
            mark.at,
            mark.value,
            marker="D",
            s=34,
            facecolors="none",
            edgecolors=mark.colour,
            linewidths=1.3,
            zorder=4,
        )
        legend[_MARK_NAME] = stated
        of = next((line.name for line in panel.lines if line.colour == mark.colour), "")
        style.name_curve(stated, f"{of}, {_MARK_NAME}" if of else _MARK_NAME)
    axes.set_ylim(0, axes.dataLim.ymax * 1.08)
    return legend
