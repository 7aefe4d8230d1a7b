"""The demonstration of the DCMS: throughputs over time, and when it acted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from silvan.demos.dcms import ENDS_S, INTERVAL_S, STARTS_S, VICTIM
from silvan.figures import style

if TYPE_CHECKING:
    from silvan.demos.dcms import Course

# As in the figures of mizero2017's study.
_COLOURS = {
    VICTIM: style.CC_COLOURS["on"],
    "B-D": style.SHADES[1],
    "C-D": style.SHADES[3],
    "A-D": style.SHADES[2],
}


def draw(course: Course, *, folder: Path, stem: str) -> list[Path]:
    """Draw the demonstration as it went."""
    with style.styled(
        8.2, 3.9, "Real datagrams, OpenSM and silvan dcms: the victim gets its rate back"
    ) as figure:
        axes = figure.subplots()
        for flow in STARTS_S:
            points = [
                (sample.time_s, sample.flows_gbps[flow])
                for sample in course.samples
                if flow in sample.flows_gbps
            ]
            if not points:
                continue
            times, rates = zip(*points, strict=True)
            is_victim = flow == VICTIM
            axes.plot(
                times,
                rates,
                color=_COLOURS[flow],
                linewidth=2.2 if is_victim else 1.4,
                label=f"{flow} (victim)" if is_victim else flow,
                zorder=3 if is_victim else 2,
            )
        last = course.samples[-1].time_s
        restored = course.times_of("restored")
        label: str | None = "Marking_Rate of (S2, 23) is 0"
        for start in course.times_of("lowered"):
            end = min((one for one in restored if one > start), default=last)
            axes.axvspan(start, end, color="#EFEFEF", zorder=0, linewidth=0, label=label)
            label = None
        axes.set_xlim(0, last)
        axes.set_ylim(0, 8.6)
        axes.set_xlabel(
            f"time, s (a sweep every {INTERVAL_S:g} s; {VICTIM} ends at {ENDS_S[VICTIM]:g} s)"
        )
        axes.set_ylabel("throughput, Gbit/s")
        style.legend_below(axes, columns=5)
        return style.save(figure, folder, stem)
