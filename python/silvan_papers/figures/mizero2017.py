"""Figures of mizero2017: throughputs and counters over time, and the choice of Marking_Rate."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from silvan.figures import style
from silvan.reproduce.experiment import PointTable
from silvan.results.receive_rates import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from silvan_papers.mizero2017_runs import Actions, Course

FLOW_COLOURS = {
    "X-Y": style.CC_COLOURS["on"],
    "B-D": style.SHADES[1],
    "C-D": style.SHADES[3],
    "A-D": style.SHADES[2],
}


def colours_of_timers(timers: Collection[int]) -> dict[int, str]:
    """Give the values of CCTI_Timer their colours in figure 4."""
    return dict(zip(sorted(timers), style.SHADES, strict=False))


def _plot_flows(axes: Axes, over_time: Course) -> None:
    for name, colour in FLOW_COLOURS.items():
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
    with style.styled(
        9.6, 3.3, "Figure 3: CCTI_Timer and Marking_Rate decide who suffers"
    ) as figure:
        grid = figure.subplots(1, len(courses), sharey=True)
        for axes, (name, over_time) in zip(grid, courses.items(), strict=True):
            _plot_flows(axes, over_time)
            axes.set_title(f"CCTI_Timer-Marking_Rate {name}")
            axes.set_xlabel("time, s")
            if axes is not grid[0]:
                axes.set_ylabel("")
        style.legend_below(grid[0], columns=4)
        return style.save(figure, folder, stem)


@dataclass(frozen=True, slots=True)
class Stated:
    """A value of figure 4; without a timer, the paper states it of all."""

    column: str
    timer: int | None
    rate: int
    value: float


def draw_tradeoff(
    points: PointTable, stated: Sequence[Stated], *, folder: Path, stem: str
) -> list[Path]:
    """Draw the victim's completion time and the contributors' sum by Marking_Rate (figure 4)."""
    with style.styled(7.6, 3.4, "Figure 4: what a Marking_Rate costs whom") as figure:
        left, right = figure.subplots(1, 2)
        for axes, column, title, unit in (
            (left, "victim_completion_s", "(a) victim X-Y", "completion time, s"),
            (
                right,
                "contributors_gbps",
                "(b) contributors A-D, B-D, C-D",
                "sum of throughputs, Gbit/s",
            ),
        ):
            _plot_tradeoff(axes, points, column, stated)
            axes.set_title(title)
            axes.set_ylabel(unit)
        style.legend_below(left, columns=4)
        return style.save(figure, folder, stem)


def _plot_tradeoff(axes: Axes, points: PointTable, column: str, stated: Sequence[Stated]) -> None:
    timer_at, rate_at, value_at = map(points.header.index, ("ccti_timer", "marking_rate", column))
    rates = sorted({int(row[rate_at]) for row in points.rows})
    place = {rate: position for position, rate in enumerate(rates)}
    colours = colours_of_timers({int(row[timer_at]) for row in points.rows})
    for timer, colour in colours.items():
        rows = [row for row in points.rows if row[timer_at] == timer]
        rows.sort(key=lambda row: int(row[rate_at]))
        axes.plot(
            [place[int(row[rate_at])] for row in rows],
            [float(row[value_at]) for row in rows],
            color=colour,
            marker="o",
            markersize=4,
            label=f"CCTI_Timer {timer}",
        )
    name: str | None = "stated in the paper"
    for one in stated:
        if one.column == column and one.rate in place:
            colour = style.INK if one.timer is None else colours.get(one.timer, style.INK)
            stated_mark = axes.scatter(
                place[one.rate],
                one.value,
                marker="D",
                s=40,
                facecolors="none",
                edgecolors=colour,
                linewidths=1.3,
                zorder=4,
                label=name,
            )
            of = "" if one.timer is None else f", CCTI_Timer {one.timer}"
            style.name_curve(stated_mark, f"stated in the paper{of}")
            name = None
    axes.set_xticks(list(place.values()), list(map(str, place)))
    axes.set_xlabel("Marking_Rate, packets")
    axes.set_ylim(0, None)


def draw_managed(
    over_time: Course, done: Actions, *, title: str, folder: Path, stem: str
) -> list[Path]:
    """Draw throughputs and counter rates over time, and when the DCMS acted (figures 5 and 6)."""
    with style.styled(8.2, 5.4, title) as figure:
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
