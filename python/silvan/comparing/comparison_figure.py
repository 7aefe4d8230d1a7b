"""A dot plot of schemes: one row for each, one panel for each thing they are compared by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from silvan.comparing.comparison import compared
from silvan.figures import style
from silvan.results.measures import narrow_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.ticker import Locator

    from silvan.comparing.comparison import RankingRow
    from silvan.results.measures import Measure

_BEST = "#009E73"
_DOT = "#0072B2"
_WITHOUT = "#D55E00"
_CROSS = "x"
_BEYOND = 1.2
"""Width of a panel with a band for infinite values, over one without."""
_BAND = "#F2F2F2"


def draw_comparison(
    ranking: Sequence[RankingRow],
    *,
    title: str,
    folder: Path,
    stem: str,
    measures: Sequence[Measure] = (),
) -> list[Path]:
    """Draw a comparison as dots, no control first. Writes a PNG, an SVG and a CSV."""
    shown = measures or compared([row.to_dict() for row in ranking])
    with style.styled(1.6 + 1.25 * len(shown), 1.5 + 0.3 * len(ranking), title) as figure:
        grid = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
        places = list(range(len(ranking)))[::-1]
        drawn: set[str] = set()
        for axes, measure in zip(grid, shown, strict=True):
            drawn |= _panel(axes, measure, ranking, places)
        grid[0].set_yticks(places, [one.baseline.name for one in ranking])
        grid[0].set_ylim(-0.6, len(ranking) - 0.4)
        figure.supxlabel(
            _legend(drawn) + _bars(ranking),
            fontsize=8,
            color=style.FAINT,
        )
        deviations = shown if ranking[0].seeds > 1 else []
        header = (
            "scheme",
            *(one.name for one in shown),
            *(f"{one.name}_deviation" for one in deviations),
        )
        rows = [
            (
                one.baseline.name,
                *(one.numbers[q.name] for q in shown),
                *(one.deviations[q.name] for q in deviations),
            )
            for one in ranking
        ]
        return style.save(figure, folder, stem, (header, rows))


def _legend(drawn: set[str]) -> str:
    meanings = {
        _BEST: "green: best",
        _WITHOUT: "orange: no control",
        _CROSS: "a cross in the grey band: not within the run",
    }
    return "; ".join(text for mark, text in meanings.items() if mark in drawn)


def _bars(ranking: Sequence[RankingRow]) -> str:
    seeds = ranking[0].seeds
    return f"; bars: standard deviation over {seeds} seeds" if seeds > 1 else ""


def _panel(
    axes: Axes, measure: Measure, ranking: Sequence[RankingRow], places: Sequence[int]
) -> set[str]:
    drawn = set()
    values = [one.numbers[measure.name] for one in ranking]
    deviations = [one.deviations[measure.name] for one in ranking]
    finite = [value for value in values if math.isfinite(value)]
    top = max(finite, default=1.0) or 1.0
    pick = max if measure.better == "more" else min
    best = pick(finite, default=math.nan)
    bars = zip(values, deviations, strict=True)
    ends = [value + bar for value, bar in bars if math.isfinite(value) and math.isfinite(bar)]
    right = axis_end = max([1.55 * top, *(1.05 * end for end in ends)])
    axes.set_xlim(-0.05 * top, right)
    if any(map(math.isinf, values)):
        right *= _BEYOND
        axes.set_xlim(-0.05 * top, right)
        axes.axvspan(axis_end, right, color=_BAND, zorder=0)
    title = measure.title
    for one, place, value, deviation in zip(ranking, places, values, deviations, strict=True):
        if math.isinf(value):
            beyond = (axis_end + right) / 2
            style.name_point(
                axes, beyond, place, f"{one.baseline.name}\n{title}: not within the run"
            )
            axes.plot(beyond, place, _CROSS, color=style.INK, markersize=6)
            drawn.add(_CROSS)
            continue
        if math.isnan(value):
            continue
        bar = f" \N{PLUS-MINUS SIGN} {deviation:.6g}" if math.isfinite(deviation) else ""
        style.name_point(axes, value, place, f"{one.baseline.name}\n{title}: {value:.6g}{bar}")
        colour = _WITHOUT if place == places[0] else _DOT
        if value == best:
            colour = _BEST
        axes.plot(value, place, "o", color=colour, markersize=6.5)
        drawn.add(colour)
        if math.isfinite(deviation):
            axes.errorbar(value, place, xerr=deviation, color=colour, linewidth=1.2)
        has_bar = math.isfinite(deviation) and deviation > 0
        axes.annotate(
            label(value, measure.digits),
            (value, place),
            xytext=(3, 3) if has_bar else (6, 0),
            textcoords="offset points",
            va="bottom" if has_bar else "center",
            fontsize=7.5,
        )
    axes.set_title(narrow_title(measure), fontsize=8.5)
    axes.grid(visible=False)
    axes.grid(visible=True, axis="y")
    axes.tick_params(axis="x", labelsize=7)
    axes.tick_params(axis="y", length=0)
    # A panel without values has no scale, and the band has no ticks.
    ticks = _few_ticks().tick_values(0, top) if finite else []
    axes.set_xticks([tick for tick in ticks if 0 <= tick <= 1.3 * top])
    return drawn


def label(value: float, digits: int) -> str:
    """Write a value with so many decimal places, or more where these would all be 0.

    >>> label(12.345, 1), label(0.0, 4), label(0.00001234, 4)
    ('12.3', '0', '1.2e-05')
    """
    if value == 0:
        return "0"
    text = f"{value:.{digits}f}"
    return text if float(text) != 0 else f"{value:.2g}"


def _few_ticks() -> Locator:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(3, steps=[1, 2, 5, 10])
