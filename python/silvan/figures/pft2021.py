"""Figures of pft2021: injection rates over used credits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from silvan.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Curve = Mapping[int, float]


def draw_injection(
    fixed: Mapping[str, tuple[Curve, Curve]],
    chances: Mapping[str, tuple[Curve, Curve]],
    *,
    folder: Path,
    stem: str,
) -> list[Path]:
    """Draw Fig. 1: injection rate over used credits, lines by the formula, dots simulated.

    Parameters
    ----------
    fixed, chances : Mapping
        With fixed and with random intervals: for each curve by its name the rate by used credits,
        as a fraction of the link's, by the formula and simulated.
    folder : Path
        A folder that exists.
    stem : str
        Name of the files, without suffix.

    Returns
    -------
    list of Path
        The files written.
    """
    with style.styled(9.5, 4.2) as figure:
        left, right = figure.subplots(1, 2, sharey=True)
        _panel(left, fixed, drawn="steps-post")
        left.set_title("(a) fixed interval, m = 0")
        left.set_ylabel("injection rate, part of the link's")
        _panel(right, chances, drawn="default")
        right.set_title("(b) random interval, n = 0, k = 0")
        for axes in (left, right):
            axes.set_xlabel("used credits c")
            axes.set_ylim(0, 1.04)
            axes.margins(x=0.01)
        figure.suptitle(
            "What a throttled interface injects: lines by the formula, dots simulated",
            x=0.01,
            ha="left",
            fontsize=9.5,
            color=style.FAINT,
        )
        return style.save(figure, folder, stem)


def _panel(axes: Axes, curves: Mapping[str, tuple[Curve, Curve]], drawn: str) -> None:
    import matplotlib as mpl

    colours = mpl.colormaps["viridis"]
    names = list(curves)
    for place, name in enumerate(names):
        formula, simulated = curves[name]
        colour = colours(0.92 * place / max(1, len(names) - 1))
        axes.plot(
            list(formula), list(formula.values()), color=colour, drawstyle=drawn, lw=1.3, alpha=0.8
        )
        axes.plot(
            list(simulated),
            list(simulated.values()),
            color=colour,
            ls="",
            marker="o",
            ms=3.6,
            label=name,
        )
    axes.legend(fontsize=7.5, labelspacing=0.25, handletextpad=0.2)
