"""A heat map of an arena: one row for each scheme, one column for each case."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from silvan.comparing.arena.judge import common_cases, mean_share
from silvan.figures import style

_COLOURS = "cividis"
_CAPTION = (
    "Percent of what the best one reaches in a case, the largest mean over the cases that all "
    "take part in first; 0: a run failed or did not reach it; empty: takes no part"
)
_OF_TUNED = "; tuned: published settings if no trial was better"
_LEAST_IN = 4.5
_LETTERS_PER_IN = 16
_WHITE_BELOW = 0.55


def draw_arena(
    rows: Sequence[tuple[str, Mapping[str, float]]],
    cases: Sequence[str],
    *,
    title: str,
    folder: Path,
    stem: str,
) -> list[Path]:
    """Draw each scheme's share of the best (0 to 1) in each case as a PNG and an SVG."""
    common = common_cases([of for _, of in rows])
    ordered = sorted(rows, key=lambda row: -mean_share(row[1], common))
    shares = np.array([[of.get(case, math.nan) for case in cases] for _, of in ordered])
    width = max(_LEAST_IN, 2.6 + 0.42 * len(cases))
    tuned = any(label.endswith("(tuned)") for label, _ in rows)
    caption = textwrap.wrap(_CAPTION + _OF_TUNED * tuned, round(_LETTERS_PER_IN * width))
    height = 2.3 + 0.21 * len(ordered) + 0.13 * len(caption)
    with style.styled(width, height, title) as figure:
        axes = figure.subplots()
        axes.grid(visible=False)
        axes.imshow(shares, vmin=0.0, vmax=1.0, cmap=_COLOURS, aspect="auto")
        for (row, column), share in np.ndenumerate(shares):
            if math.isfinite(share):
                style.name_point(
                    axes, column, row, f"{ordered[row][0]}\n{cases[column]}: {share:.2%}"
                )
                axes.text(
                    column,
                    row,
                    percent(share),
                    ha="center",
                    va="center",
                    fontsize=7,
                    color="white" if share < _WHITE_BELOW else style.INK,
                )
        axes.set_xticks(range(len(cases)), cases, rotation=60, ha="left", rotation_mode="anchor")
        axes.xaxis.tick_top()
        axes.set_yticks(range(len(ordered)), [label for label, _ in ordered])
        axes.tick_params(length=0, labelsize=8)
        for spine in axes.spines.values():
            spine.set_visible(False)
        figure.supxlabel(
            "\n".join(caption),
            fontsize=8,
            color=style.FAINT,
        )
        return style.save(figure, folder, stem)


def percent(share: float) -> str:
    """Write a share as a percentage that reads 0 for nothing alone.

    >>> percent(1.0), percent(0.998), percent(0.5), percent(0.002), percent(0.0)
    ('100', '100', '50', '<1', '0')
    """
    whole = round(100 * share)
    return "<1" if whole == 0 and share > 0 else str(whole)
