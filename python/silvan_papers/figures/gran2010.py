"""Figures of gran2010: what congestion does to HPCC, and who gets what in the parking lot."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from silvan.figures import style
from silvan.results.result import Result

_PICO = 1e-12
Ratios = Mapping[str, tuple[float, float]]


def draw_ratios(paper: Ratios, ours: Ratios, *, folder: Path, stem: str) -> list[Path]:
    """Draw b/a and c/a of every row of the slides, stated and measured, on a logarithmic scale."""
    names = list(paper)
    places = np.arange(len(names))[::-1]
    with style.styled(8.6, 5.4) as figure:
        axes = figure.subplots()
        level = axes.axvline(1, color="0.6", linewidth=0.8, zorder=0)
        style.name_curve(level, "no difference")
        for column, (key, label) in enumerate((("off", "CC off (b/a)"), ("on", "CC on (c/a)"))):
            colour = style.CC_COLOURS[key]
            theirs = [paper[name][column] for name in names]
            mine = [ours[name][column] for name in names]
            axes.hlines(places, theirs, mine, color=colour, linewidth=0.8, alpha=0.5)
            axes.plot(theirs, places, "o", mfc="white", color=colour, label=f"slides, {label}")
            axes.plot(mine, places, "o", color=colour, label=f"silvan, {label}")
        axes.set_xscale("log")
        ticks = [0.2, 0.3, 0.5, 1, 2, 5, 10, 20]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        axes.set_yticks(
            places, [name.replace("_", " ").replace("bw", "bandwidth") for name in names]
        )
        axes.set_xlabel("with congestion, relative to without")
        axes.set_title("HPCC together with three flows to a hotspot", loc="left")
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
        return style.save(figure, folder, stem)


def draw_parking(runs: Mapping[str, Result], *, folder: Path) -> list[Path]:
    """Draw the receive rate of every flow over time, one panel per run."""
    with style.styled(9.2, 3.2) as figure:
        grid = figure.subplots(1, len(runs), sharey=True)
        for axes, (label, run) in zip(grid, runs.items(), strict=True):
            _plot_flows(axes, run)
            axes.set_title(label, loc="left")
            axes.set_xlabel("time, ms")
        grid[0].set_ylabel("receive rate, Gbit/s")
        grid[-1].legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
        return style.save(figure, folder, "parking_lot")


def flow_colour(number: int, name: str) -> str:
    """Return the colour of a flow of the parking lot, by its number and its name."""
    return style.CC_COLOURS["on"] if name == "V1-V2" else style.SHADES[number + 1]


def _plot_flows(axes: object, run: Result) -> None:
    from matplotlib.axes import Axes

    assert isinstance(axes, Axes)
    series = run.tables["class_series"]
    times, which, moved = (
        series[name].to_numpy() for name in ("time_ps", "class", "delivered_bytes")
    )
    for number, name in enumerate(run.classes["name"].to_pylist()):
        at = times[which == number].astype(np.float64)
        rates = moved[which == number] * 8e3 / np.diff(at, prepend=0.0)
        victim = name == "V1-V2"
        # C1 and C2 are at the first switch, C3 at the hotspot's own.
        joins = f"{name}, joins at S{1 if number < 2 else 2}"
        axes.plot(
            at * _PICO * 1e3,
            rates,
            color=flow_colour(number, name),
            linewidth=2 if victim else 1.3,
            label=f"{name}, the victim" if victim else joins,
        )
    axes.set_ylim(0, 14)
