"""Figures of what gran2012 leaves open: levels of control, grids, adaptive routing, parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.patches import Rectangle

from silvan.figures import style
from silvan_papers.gran2012_beyond import INCREASES, TIMERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

    from silvan.reproduce.experiment import PointTable
    from silvan_papers.gran2012_beyond import GroupRates, Quantity, Setting

_RATE = "receive rate per host (Gbit/s)"
_BAR_WIDTH = 0.36
_PAPERS_SETTING = (150, 1)
_LEVEL_COLOURS = (style.CC_COLOURS["off"], style.CC_COLOURS["on"], style.SHADES[1])


def draw_levels(
    levels: Mapping[str, Mapping[int, GroupRates]], *, window: str, table: PointTable, folder: Path
) -> list[Path]:
    """Draw rates by level of control and p in per cent."""
    stem = "beyond-sl"
    with style.styled(
        9.2, 3.5, "Throttling queue pairs or whole service levels: 120 B nodes, 2 hotspots"
    ) as figure:
        panels = (("Not hotspots", "others"), ("Hotspots", "hotspots"), ("All hosts", "everyone"))
        grid = figure.subplots(1, len(panels))
        for axes, (title, group) in zip(grid, panels, strict=True):
            axes.set_title(title)
            axes.set_ylabel(_RATE)
            axes.set_xlabel("share p of traffic to hotspots (%)")
            for (level, points), colour in zip(levels.items(), _LEVEL_COLOURS, strict=True):
                quantities = np.array([getattr(one, group) for one in points.values()])
                steady = quantities[:, 1]
                shade = axes.fill_between(
                    list(points),
                    steady.min(axis=1),
                    steady.max(axis=1),
                    color=colour,
                    alpha=0.18,
                    linewidth=0,
                )
                style.name_curve(shade, f"{level}: range over the seeds")
                axes.plot(
                    list(points),
                    steady.mean(axis=1),
                    color=colour,
                    marker="o",
                    markersize=3.6,
                    label=level,
                )
            axes.set_ylim(0, axes.dataLim.ymax * 1.08)
        style.legend_below(
            grid[-1], note=f"Rates: mean over {window}; shades: range over the seeds."
        )
        return style.save(figure, folder, stem, (table.header, table.rows))


def draw_fabrics(
    fabrics: Mapping[str, Mapping[str, GroupRates]], *, window: str, table: PointTable, folder: Path
) -> list[Path]:
    """Draw bars for each fabric: ``off``, ``on``, and ``nohot`` without hotspots."""
    stem = "beyond-torus"
    with style.styled(6.9, 3.4, "A silent forest of two trees on three fabrics") as figure:
        left, right = figure.subplots(1, 2)
        undisturbed = [float(cases["nohot"].everyone[1].mean()) for cases in fabrics.values()]
        _bars(left, "Not hotspots", fabrics, "others", levels=undisturbed)
        _bars(right, "Hotspots", fabrics, "hotspots")
        style.legend_below(left, note=f"Rates: mean over {window}; whiskers: range over the seeds.")
        return style.save(figure, folder, stem, (table.header, table.rows))


def draw_routings(
    traffics: Mapping[str, Mapping[str, Mapping[str, GroupRates]]],
    *,
    window: str,
    table: PointTable,
    folder: Path,
) -> list[Path]:
    """Draw bars for each routing, control off and on, and a panel for each traffic."""
    stem = "beyond-adaptive"
    with style.styled(
        8.6, 3.4, "Adaptive routing alone and together with congestion control, 120-host fat tree"
    ) as figure:
        first, second, third = figure.subplots(1, 3)
        _bars(first, "Random permutation: all", traffics["permutation"], "everyone")
        _bars(second, "Silent forest: not hotspots", traffics["forest"], "others")
        _bars(third, "Silent forest: hotspots", traffics["forest"], "hotspots")
        style.legend_below(
            third, note=f"Rates: mean over {window}; whiskers: range over the seeds."
        )
        return style.save(figure, folder, stem, (table.header, table.rows))


def _bars(
    axes: Axes,
    title: str,
    groups: Mapping[str, Mapping[str, GroupRates]],
    group: str,
    levels: Sequence[float] = (),
) -> None:
    axes.set_title(title)
    axes.set_ylabel(_RATE)
    axes.set_xticks(range(len(groups)), list(groups))
    axes.tick_params(axis="x", length=0, labelcolor=style.INK)
    for side, control in ((-0.5, "off"), (0.5, "on")):
        quantities: list[Quantity] = [getattr(cases[control], group) for cases in groups.values()]
        steady = np.array([quantity[1] for quantity in quantities])
        mean = steady.mean(axis=1)
        at = np.arange(len(groups)) + side * _BAR_WIDTH
        axes.bar(
            at,
            mean,
            _BAR_WIDTH - 0.03,
            color=style.CC_COLOURS[control],
            label=style.CC_LABELS[control],
        )
        spread = np.abs(np.array([steady.min(axis=1), steady.max(axis=1)]) - mean)
        axes.errorbar(at, mean, yerr=spread, fmt="none", ecolor=style.INK, elinewidth=1, capsize=2)
        tops = steady.max(axis=1)
        if levels:
            on_line = np.abs(tops - levels) < 0.1 * np.array(levels)
            tops = np.where(on_line, np.maximum(tops, levels), tops)
        for x, value, top in zip(at, mean, tops, strict=True):
            axes.annotate(
                f"{value:.2f}",
                (x, top),
                xytext=(0, 2),
                textcoords="offset points",
                ha="center",
                fontsize=7.5,
            )
    if levels:
        places = np.arange(len(levels))
        reach = _BAR_WIDTH + 0.04
        axes.hlines(
            levels,
            places - reach,
            places + reach,
            color=style.REFERENCE,
            linewidth=1.2,
            label="without hotspots",
        )
    axes.set_ylim(0, axes.dataLim.ymax * 1.1)


def draw_space(
    shares: Mapping[Setting, tuple[float, float]], *, window: str, table: PointTable, folder: Path
) -> list[Path]:
    """Draw heat maps over timer and increase, for each threshold and marking rate.

    ``shares`` are of what hotspots and others could receive, by setting.
    """
    stem = "beyond-space"
    thresholds = sorted({setting[0] for setting in shares}, reverse=True)
    marking_rates = sorted({setting[1] for setting in shares})
    rows, columns = len(thresholds), len(marking_rates)
    with style.styled(
        max(3.1 * columns + 0.9, 6.4),
        2.75 * rows + 0.8,
        "How settings serve hotspots and others: the lesser of both shares, in per cent",
    ) as figure:
        grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        for row, threshold in zip(grid, thresholds, strict=True):
            for axes, marking_rate in zip(row, marking_rates, strict=True):
                image = _heat(axes, shares, threshold, marking_rate)
                axes.set_title(f"Threshold {threshold}, Marking_Rate {marking_rate}", fontsize=9.5)
            row[0].set_ylabel("CCTI_Increase")
        for axes in grid[-1]:
            axes.set_xlabel("CCTI_Timer (1.024 µs)")
        bar = figure.colorbar(image, ax=grid, shrink=0.8, pad=0.02)
        bar.set_label("lesser share (%)")
        bar.outline.set_visible(False)
        note = figure.supxlabel(
            "Large: lesser share. Small: hotspots / others. Share of what the hotspots receive "
            f"without CC, and the others without hotspots; mean over {window}. Framed: Table I.",
            x=0.012,
            ha="left",
            fontsize=7.5,
        )
        note.set_color(style.FAINT)
        return style.save(figure, folder, stem, (table.header, table.rows))


def _heat(
    axes: Axes, shares: Mapping[Setting, tuple[float, float]], threshold: int, marking_rate: int
) -> AxesImage:
    cells = np.full((len(INCREASES), len(TIMERS)), np.nan)
    axes.grid(visible=False)
    for row, increase in enumerate(INCREASES):
        for column, timer in enumerate(TIMERS):
            found = shares.get((threshold, marking_rate, timer, increase))
            if found is None:
                continue
            hotspots, others = (100 * share for share in found)
            lesser = min(hotspots, others)
            cells[row, column] = lesser
            style.name_point(
                axes,
                column,
                row,
                f"Threshold {threshold}, Marking_Rate {marking_rate}\nCCTI_Timer: {timer}\n"
                f"CCTI_Increase: {increase}\nshare of hotspots (%): {hotspots:.6g}\n"
                f"share of others (%): {others:.6g}",
            )
            colour = "white" if lesser < 60 else style.REFERENCE
            axes.text(column, row - 0.12, f"{lesser:.0f}", ha="center", va="center", color=colour)
            axes.text(
                column,
                row + 0.26,
                f"{hotspots:.0f} / {others:.0f}",
                ha="center",
                va="center",
                color=colour,
                fontsize=6.2,
            )
            if (timer, increase) == _PAPERS_SETTING and (threshold, marking_rate) == (15, 0):
                corner = (column - 0.5, row - 0.5)
                frame = Rectangle(
                    corner, 1, 1, fill=False, edgecolor=style.REFERENCE, linewidth=1.8
                )
                axes.add_patch(frame)
    image = axes.imshow(cells, cmap="viridis", vmin=0, vmax=100, aspect="auto")
    axes.set_xticks(range(len(TIMERS)), [str(timer) for timer in TIMERS])
    axes.set_yticks(range(len(INCREASES)), [str(increase) for increase in INCREASES])
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    return image
