"""The figure of a search for saturation: latency and delivery by load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from silvan.figures import style
from silvan.results.measures import MEASURES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from silvan.planning.saturation import Saturation

_NUMBERS = ("load", "offered_gbps", "delivered_gbps", "share")


def draw_saturation(
    found: Mapping[str, Saturation],
    *,
    title: str,
    folder: Path,
    stem: str = "saturation",
    page: style.Page = style.SCREEN,
) -> list[Path]:
    """Draw latency and delivered payload by load, with the load at which each fabric saturates."""
    with page.figure(8.6, 3.6, title) as figure:
        latency, delivered = figure.subplots(2, 1) if page.is_narrow else figure.subplots(1, 2)
        for place, (name, one) in enumerate(found.items()):
            colour = style.CURVES[place % len(style.CURVES)]
            timed = [point for point in one.points if "latency_mean_us" in point.measures]
            loads = [point.load for point in timed]
            for column, line, words in (
                ("latency_mean_us", "o-", "mean"),
                ("latency_p99_us", "s--", "99th percentile"),
            ):
                values = [point.measures[column] for point in timed]
                (drawn,) = latency.plot(loads, values, line, color=colour, markersize=4)
                style.name_curve(drawn, f"{name}, {words}" if name else words)
            loads = [point.load for point in one.points]
            rates = [point.delivered_gbps for point in one.points]
            (drawn,) = delivered.plot(loads, rates, "o-", color=colour, markersize=4)
            style.name_curve(drawn, name or "all hosts")
            if one.above is not None:
                for axes in (latency, delivered):
                    axes.axvline(one.load, color=colour, linestyle=":", linewidth=1)
        latency.set_yscale("log")
        latency.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        latency.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        latency.yaxis.set_minor_locator(NullLocator())
        latency.set_ylabel("packet latency (µs)")
        delivered.set_ylabel("payload received (Gbit/s)")
        delivered.set_ylim(bottom=0)
        for axes in (latency, delivered):
            axes.set_xlabel("load (share of the injection rate)")
            axes.set_xlim(0, 1.02)
        style.legend_below(latency, _handles(found), columns=2 if page.is_narrow else None)
        known = {of for one in found.values() for point in one.points for of in point.measures}
        measured = [of for of in MEASURES if of in known]
        header = ("curve", *_NUMBERS, *measured)
        rows = [
            (
                name,
                *(getattr(point, column) for column in _NUMBERS),
                *(point.measures.get(of) for of in measured),
            )
            for name, one in found.items()
            for point in one.points
        ]
        return style.save(figure, folder, stem, (header, rows), page.formats)


def _handles(found: Mapping[str, Saturation]) -> dict[str, Line2D]:
    handles = {}
    for place, (name, one) in enumerate(found.items()):
        colour = style.CURVES[place % len(style.CURVES)]
        load = "not saturated" if one.above is None else f"saturation at {one.load:.3f}"
        handles[f"{name}: {load}" if name else load] = Line2D([], [], color=colour)
    return {
        **handles,
        "mean": Line2D([], [], color=style.FAINT, marker="o", markersize=4),
        "99th percentile": Line2D(
            [], [], color=style.FAINT, marker="s", markersize=4, linestyle="--"
        ),
    }
