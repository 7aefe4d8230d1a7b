"""Figures of the two switches of santos2003: links over time, and over a parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from silvan.figures import style

if TYPE_CHECKING:
    from silvan.results.receive_rates import FloatArray
    from silvan_papers.santos2003_scene import Shares

_COLOURS = {
    "root link": "#000000",
    "inter-switch link": style.VIOLET,
    "local flows": "#009E73",
    "remote flows": "#0072B2",
    "victim": "#D55E00",
    "LIPD": "#0072B2",
    "FIMD": "#009E73",
    "AIMD": "#D55E00",
    "static flows": "#0072B2",
    "dynamic flows": "#D55E00",
    "Jain's index": "#CC79A7",
}
_FALLBACK = "#CC79A7"
_DASHES = (0, (2.2, 1.6))
_LOOKS: Mapping[str, Mapping[str, Any]] = {
    "root link": {"linewidth": 1.1},
    "Jain's index": {"linewidth": 1.2, "linestyle": "dotted"},
}
_DASHED = ("discrete", "not persistent")


@dataclass(frozen=True, slots=True)
class Panel:
    """A pair of axes; variants of a line such as ``discrete`` are dashed."""

    title: str
    unit: str
    lines: Mapping[str, Mapping[float, float]]


def colour_of(name: str) -> str:
    """Return the colour of a line by its name."""
    return next((one for start, one in _COLOURS.items() if name.startswith(start)), _FALLBACK)


def draw_series(
    panels: Mapping[str, tuple[FloatArray, Shares]],
    *,
    title: str,
    folder: Path,
    stem: str,
) -> list[Path]:
    """Draw shares of the links over time (ms), and fairness, one panel per case."""
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    table: list[tuple[object, ...]] = []
    with style.styled(max(4.6 * columns, 6.4), 2.6 * rows + 1.0, title) as figure:
        grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for axes, (name, (times_ms, shares)) in zip(grid.flat, panels.items(), strict=False):
            axes.set_title(name)
            for line, values in shares.columns().items():
                look = _LOOKS.get(line, {"linewidth": 1.5})
                axes.plot(times_ms, values, color=colour_of(line), label=line, **look)
                table += [
                    (name, line, f"{time:.6g}", f"{value:.6g}")
                    for time, value in zip(times_ms, values, strict=True)
                ]
            axes.set_ylim(0, 1.06)
            axes.set_xlim(0, float(times_ms[-1] + times_ms[0]))
        for axes in grid[-1]:
            axes.set_xlabel("simulated time (ms)")
        for axes in grid[:, 0]:
            axes.set_ylabel("share of a link, index")
        style.legend_below(grid[0][0])
        header = ("case", "line", "time_ms", "share_or_index")
        return style.save(figure, folder, stem, (header, table))


def draw_curves(
    panels: Sequence[Panel],
    *,
    title: str,
    axis: str,
    folder: Path,
    stem: str,
    log: bool = False,
) -> list[Path]:
    """Draw curves over a parameter, panels side by side with one legend."""
    table: list[tuple[object, ...]] = []
    with style.styled(max(3.4 * len(panels), 6.4), 3.9, title) as figure:
        grid = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, panel in zip(grid, panels, strict=True):
            axes.set_title(panel.title)
            axes.set_ylabel(panel.unit)
            axes.set_xlabel(axis)
            for name, curve in panel.lines.items():
                is_dashed = name.endswith(_DASHED)
                axes.plot(
                    list(curve),
                    list(curve.values()),
                    color=colour_of(name),
                    label=name,
                    linewidth=1.2 if is_dashed else 1.8,
                    linestyle=_DASHES if is_dashed else "-",
                    marker="" if is_dashed else "o",
                    markersize=3.4,
                )
                table += [
                    (panel.title, name, f"{at:g}", f"{value:.6g}") for at, value in curve.items()
                ]
            if log:
                axes.set_xscale("log")
            axes.set_ylim(0, 1.06)
        most = 3 if len(panels) > 1 else 2
        style.legend_below(grid[0], columns=min(len(panels[0].lines), most))
        header = ("panel", "line", "at", "value")
        return style.save(figure, folder, stem, (header, table))


def draw_recovery(
    curves: Mapping[str, tuple[FloatArray, FloatArray, FloatArray, FloatArray]],
    *,
    folder: Path,
    stem: str,
) -> list[Path]:
    """Draw the recovery of rates: formulas as lines, simulations as points.

    Curves are times in ms and fractions of Rmax, of the formula and of the simulation.
    """
    table: list[tuple[object, ...]] = []
    with style.styled(6.8, 4.0, "Figure 5: recovery from Rmin = Rmax/256 without marks") as figure:
        axes = figure.subplots()
        for name, (times, formula, middles, rates) in curves.items():
            colour = colour_of(name)
            axes.plot(times, formula, color=colour, label=f"{name}, formula")
            axes.plot(
                middles,
                rates,
                color=colour,
                linestyle="",
                marker="o",
                markersize=3.5,
                markerfacecolor="none",
                label=f"{name}, simulated",
            )
            for source, at, values in (("formula", times, formula), ("simulated", middles, rates)):
                table += [
                    (name, source, f"{time:.6g}", f"{rate:.6g}")
                    for time, rate in zip(at, values, strict=True)
                ]
        axes.set_xscale("symlog", linthresh=1, linscale=0.6)
        ticks = (0, 1, 2, 5, 10, 20, 50, 100)
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.set_xlim(0, 150)
        axes.set_ylim(0, 1.06)
        axes.set_xlabel("time (ms), linear up to 1 ms")
        axes.set_ylabel("rate / Rmax")
        axes.legend(loc="upper left", fontsize=8)
        header = ("response", "source", "time_ms", "rate_over_rmax")
        return style.save(figure, folder, stem, (header, table))
