"""Figures of mizero2017: throughputs and counters over time, and the choice of Marking_Rate."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from silvan.figures import style
from silvan.measures import FloatArray
from silvan.reproduce.experiment import PointTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from silvan.reproduce.mizero2017 import Actions
    from silvan.reproduce.mizero2017_runs import Course

# The victim in the colour of what control is for; the contributors in three shades beside it.
_FLOW_COLOURS = {
    "X-Y": style.CC_COLOURS["on"],
    "B-D": style.SHADES[1],
    "C-D": style.SHADES[3],
    "A-D": style.SHADES[2],
}


def _plot_flows(axes: Axes, over_time: Course) -> None:
    for name, colour in _FLOW_COLOURS.items():
        rates = over_time.flows_gbps[name]
        busy = rates > 0
        axes.step(
            over_time.time_s[busy],
            rates[busy],
            where="pre",
            color=colour,
            linewidth=2.2 if name == "X-Y" else 1.5,
            label=f"{name} (victim)" if name == "X-Y" else name,
        )
    axes.set_ylim(0, 8.6)
    axes.set_ylabel("throughput, Gbit/s")


def draw_throughputs(courses: Mapping[str, Course], *, folder: Path, stem: str) -> list[Path]:
    """Draw the throughput of every flow over time, one panel per setting (figure 3)."""
    with style.styled(9.6, 3.3) as figure:
        figure.suptitle(
            "Figure 3: CCTI_Timer and Marking_Rate decide who suffers",
            x=0.012,
            ha="left",
            fontsize=11.5,
            fontweight="bold",
        )
        grid = figure.subplots(1, len(courses), sharey=True)
        for axes, (name, over_time) in zip(grid, courses.items(), strict=True):
            _plot_flows(axes, over_time)
            axes.set_title(f"CCTI_Timer-Marking_Rate {name}")
            axes.set_xlabel("time, s")
            if axes is not grid[0]:
                axes.set_ylabel("")
        handles, labels = grid[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower left", ncols=4)
        return style.save(figure, folder, stem)


def draw_tradeoff(points: PointTable, *, folder: Path, stem: str) -> list[Path]:
    """Draw the victim's completion time and the contributors' sum by Marking_Rate (figure 4)."""
    timers = sorted({int(row[0]) for row in points.rows})
    with style.styled(7.6, 3.4) as figure:
        figure.suptitle(
            "Figure 4: what a Marking_Rate costs whom",
            x=0.012,
            ha="left",
            fontsize=11.5,
            fontweight="bold",
        )
        grid = figure.subplots(1, 2)
        ticks = sorted({int(row[1]) for row in points.rows if float(row[1]) <= 128})
        at = {rate: position for position, rate in enumerate(ticks)}
        for axes, column, title, unit, marks in (
            (grid[0], 2, "(a) victim X-Y", "completion time, s", {0: 40.32, 128: 65.0}),
            (
                grid[1],
                3,
                "(b) contributors A-D, B-D, C-D",
                "sum of throughputs, Gbit/s",
                {64: 8.0},
            ),
        ):
            for timer, colour in zip(timers, style.SHADES, strict=False):
                rows = [row for row in points.rows if row[0] == timer and row[1] in at]
                axes.plot(
                    [at[int(row[1])] for row in rows],
                    [float(row[column]) for row in rows],
                    color=colour,
                    marker="o",
                    markersize=4,
                    label=f"CCTI_Timer {timer}",
                )
            if column == 3:
                for timer, stated, colour in zip(
                    TIMERS_STATED, TIMERS_STATED.values(), style.SHADES, strict=False
                ):
                    del timer
                    _mark(axes, at[0], stated, colour)
            for rate, stated in marks.items():
                if rate in at:
                    _mark(axes, at[rate], stated, style.INK)
            axes.set_title(title)
            axes.set_ylabel(unit)
            axes.set_xticks(list(at.values()), list(map(str, at)))
            axes.set_xlabel("Marking_Rate, packets")
            axes.set_ylim(0, None)
        handles, labels = grid[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower left", ncols=4)
        return style.save(figure, folder, stem)


TIMERS_STATED = {75: 3.18, 150: 2.46, 300: 2.1}


def _mark(axes: Axes, at: float, value: float, colour: str) -> None:
    axes.scatter(
        at,
        value,
        marker="D",
        s=40,
        facecolors="none",
        edgecolors=colour,
        linewidths=1.3,
        zorder=4,
        label="stated in the paper" if colour == style.INK else None,
    )


def draw_managed(
    over_time: Course, done: Actions, *, title: str, folder: Path, stem: str
) -> list[Path]:
    """Draw throughputs and counter rates over time, and when the DCMS acted (figures 5 and 6)."""
    with style.styled(8.2, 5.4) as figure:
        figure.suptitle(title, x=0.012, ha="left", fontsize=11.5, fontweight="bold")
        top, bottom = figure.subplots(2, 1, sharex=True)
        _plot_flows(top, over_time)
        top.set_title("(a) throughput of the flows")
        top.legend(ncols=4, loc="upper right", bbox_to_anchor=(1, 1.17))
        counters: tuple[tuple[str, FloatArray, str], ...] = (
            ("(S2, 23) PortXmitTimeCong, 10⁷ ticks/s", over_time.root_time_cong, style.SHADES[3]),
            ("(S1, 15) PortXmitWait, 10⁷ ticks/s", over_time.upstream_wait, style.SHADES[2]),
            ("(S1, 15) PortXmitData, 10⁷ words/s", over_time.upstream_data, style.SHADES[0]),
        )
        for name, values, colour in counters:
            bottom.step(over_time.time_s, values / 1e7, where="pre", color=colour, label=name)
        bottom.set_title("(b) counters")
        bottom.set_ylabel("growth, 10⁷ per second")
        bottom.set_xlabel("time, s")
        bottom.set_ylim(0, None)
        bottom.legend(loc="upper right")
        last = float(over_time.time_s[-1])
        for axes in (top, bottom):
            for start in done.lowered_s:
                end = min((one for one in done.restored_s if one > start), default=last)
                axes.axvspan(start, end, color="#EFEFEF", zorder=0, linewidth=0)
        return style.save(figure, folder, stem)
