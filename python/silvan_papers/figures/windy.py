"""Figures 5 to 8 of gran2012: rates and gain over the share of traffic that goes to hotspots."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from silvan.figures import style
from silvan_papers.figures.panels import Line, Mark, Panel, draw_panels, line_styles

if TYPE_CHECKING:
    from silvan.reproduce.experiment import PointTable
    from silvan_papers.gran2012_windy import WindyForest

_AXIS = "p (%)"
_TICKS = {p: str(p) for p in range(0, 101, 20)}

Stated = Mapping[str, Sequence[tuple[int, float]]]
"""Points and values of the paper, by curve: ``others.on``, ``others.off``, ``others.on/tmax`` (a
factor of tmax), ``hotspots.on``, ``hotspots.off`` and ``gain``.
"""


def gain_colours(shares: Collection[int]) -> dict[int, str]:
    """Return the colours of what control gains, by share of B nodes: a single one is black."""
    colours = style.SHADES if len(shares) > 1 else (style.INK,)
    return dict(zip(shares, colours, strict=False))


def draw_windy(
    forest: WindyForest,
    *,
    title: str,
    stated: Stated,
    windows: tuple[str, str],
    table: PointTable,
    folder: Path,
    stem: str,
) -> list[Path]:
    """Draw one share of B nodes in the paper's three panels."""
    by_control = {"off": forest.off, "on": forest.on}
    tmax = Line("tmax (computed)", style.REFERENCE, forest.tmax, steady=False, marker="")
    others = [
        Line(
            style.CC_LABELS[control],
            style.CC_COLOURS[control],
            {p: one.others for p, one in points.items()},
        )
        for control, points in by_control.items()
    ]
    hotspots = [
        Line(
            style.CC_LABELS[control],
            style.CC_COLOURS[control],
            {p: one.hotspots for p, one in points.items()},
        )
        for control, points in by_control.items()
    ]
    gain = Line("CC on / CC off", style.INK, forest.total_gain())
    rate = "receive rate per host (Gbit/s)"
    panels = [
        Panel("(a) Not hotspots", rate, [*others, tmax], list(_other_marks(forest, stated))),
        Panel("(b) Hotspots", rate, hotspots, list(_marks(stated, "hotspots"))),
        Panel(
            "(c) Total throughput",
            "CC on / CC off (ratio)",
            [gain],
            [Mark(p, value, style.INK) for p, value in stated.get("gain", ())],
            level=1,
        ),
    ]
    return draw_panels(
        [panels],
        title=title,
        axis=_AXIS,
        ticks=_TICKS,
        caption=_caption(windows),
        table=table,
        folder=folder,
        stem=stem,
    )


def draw_more_wind(
    forests: Mapping[int, WindyForest],
    *,
    windows: tuple[str, str],
    table: PointTable,
    folder: Path,
    stem: str,
) -> list[Path]:
    """Draw several shares of B nodes together: tmax, what is reached of it, and the total gain."""
    shades = gain_colours(forests)

    def lines(quantity: str, *, steady: bool = True) -> list[Line]:
        curves = {
            "tmax": lambda one: one.tmax,
            "of_tmax": lambda one: one.of_tmax(),
            "gain": lambda one: one.total_gain(),
        }
        return [
            Line(f"{share} % B nodes", shades[share], curves[quantity](one), steady=steady)
            for share, one in forests.items()
        ]

    panels = [
        Panel("tmax (computed)", "rate per host (Gbit/s)", lines("tmax", steady=False)),
        Panel("Not hotspots, CC on", "receive rate / tmax (ratio)", lines("of_tmax"), level=1),
        Panel("Total throughput", "CC on / CC off (ratio)", lines("gain"), level=1),
    ]
    return draw_panels(
        [panels],
        title="What changes as the share of B nodes grows",
        axis=_AXIS,
        ticks=_TICKS,
        caption=_caption(windows),
        table=table,
        folder=folder,
        stem=stem,
    )


def _caption(windows: tuple[str, str]) -> str:
    return f"p: share of a B node's traffic that goes to its hotspot. {line_styles(windows)}"


def _marks(stated: Stated, group: str) -> Iterator[Mark]:
    for control, colour in style.CC_COLOURS.items():
        for p, value in stated.get(f"{group}.{control}", ()):
            yield Mark(p, value, colour)


def _other_marks(forest: WindyForest, stated: Stated) -> Iterator[Mark]:
    yield from _marks(stated, "others")
    for p, factor in stated.get("others.on/tmax", ()):
        if p in forest.tmax:
            yield Mark(p, factor * float(forest.tmax[p][0].mean()), style.CC_COLOURS["on"])
