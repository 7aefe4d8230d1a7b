"""Receive rate over time: hotspots and their victims, congestion control off and on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from silvan.figures import style
from silvan.results.receive_rates import (
    BoolArray,
    FloatArray,
    is_hotspot,
    receive_rate_series_gbps,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from silvan.results.result import Result


_RECOVERED = 0.95


@dataclass(frozen=True, slots=True)
class Band:
    """A series in Gbit/s per host, with its range over the seeds, at the middle of intervals."""

    times_ms: FloatArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray

    def steady_mean(self, steady_ms: float) -> float:
        """Average the mean over the last part of the run, ``steady_ms`` milliseconds long."""
        end_ms = self.times_ms[-1] + self.times_ms[0]
        return float(self.mean[self.times_ms > end_ms - steady_ms].mean())


def band(runs: Sequence[Result], *, hotspots: bool | None) -> Band:
    """Join the receive rates of several seeds; ``hotspots`` None means all hosts."""

    def group(result: Result) -> BoolArray:
        hot = is_hotspot(result)
        return np.ones_like(hot) if hotspots is None else hot == hotspots

    series = [receive_rate_series_gbps(run, group(run)) for run in runs]
    rates = np.stack([rate for _, rate in series])
    return Band(series[0][0], rates.mean(axis=0), rates.min(axis=0), rates.max(axis=0))


def draw_receive_rates(
    by_control: Mapping[str, Sequence[Result]],
    *,
    without_hotspots: Sequence[Result],
    steady_ms: float,
    title: str,
    folder: Path,
    stem: str,
) -> list[Path]:
    """Draw hotspots above their victims; the last ``steady_ms`` of the runs are averaged."""
    bands = {
        (group, control): band(runs, hotspots=hotspots)
        for control, runs in by_control.items()
        for group, hotspots in (("hotspots", True), ("others", False))
    }
    alone = band(without_hotspots, hotspots=None)
    end_ms = float(alone.times_ms[-1] + alone.times_ms[0])
    steady_ms = min(steady_ms, end_ms)
    reference = alone.steady_mean(steady_ms)
    hot = is_hotspot(next(iter(by_control.values()))[0])

    with style.styled(7.2, 6.0, title) as figure:
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(1, 1.7))
        upper.set_title(f"The {int(hot.sum())} hotspots")
        lower.set_title(f"The {int((~hot).sum())} other receivers")
        for axes, group in ((upper, "hotspots"), (lower, "others")):
            for control, colour in style.CC_COLOURS.items():
                _line(axes, bands[group, control], style.CC_LABELS[control], colour, steady_ms)
            axes.set_ylabel("receive rate\nper host (Gbit/s)")
            axes.set_ylim(0, axes.dataLim.ymax * 1.2)
        level = lower.axhline(reference, color=style.REFERENCE, linewidth=1, linestyle=(0, (4, 3)))
        style.name_curve(level, "without hotspots")
        name = f"without hotspots: {reference:.2f}"
        style.label_line(lower, end_ms, reference, name, style.REFERENCE, ha="right")
        _mark_recovery(lower, bands["others", "on"], reference)
        lower.set_xlim(0, end_ms)
        lower.set_xlabel("simulated time (ms)")
        figure.supxlabel(
            "Lines: mean over the seeds; shades: their range. "
            f"Numbers: mean over the last {steady_ms:g} ms, and over the whole run.",
            fontsize=7.5,
            color=style.FAINT,
        )
        rows = [
            (f"{time:.6g}", group, control, f"{mean:.6g}", f"{low:.6g}", f"{high:.6g}")
            for (group, control), one in bands.items()
            for time, mean, low, high in zip(one.times_ms, one.mean, one.low, one.high, strict=True)
        ]
        header = ("time_ms", "hosts", "cc", "mean_gbps", "min_gbps", "max_gbps")
        return style.save(figure, folder, stem, (header, rows))


def _line(axes: Axes, one: Band, name: str, colour: str, steady_ms: float) -> None:
    shade = axes.fill_between(
        one.times_ms, one.low, one.high, color=colour, alpha=0.18, linewidth=0
    )
    style.name_curve(shade, f"{name}: range over the seeds")
    (line,) = axes.plot(one.times_ms, one.mean, color=colour)
    style.name_curve(line, name)
    at = round(len(one.times_ms) * 0.47)
    below = name == style.CC_LABELS["on"]
    style.label_line(
        axes,
        one.times_ms[at],
        float(one.low[at:].min() if below else one.high[at:].max()),
        f"{name}: {one.steady_mean(steady_ms):.2f} steady, {one.mean.mean():.2f} overall",
        colour,
        offset=(0, -6) if below else (0, 5),
        va="top" if below else "bottom",
    )


def _mark_recovery(axes: Axes, controlled: Band, reference: float) -> None:
    recovered = controlled.mean >= _RECOVERED * reference
    first = int(np.flatnonzero(~recovered)[-1]) + 1 if not recovered.all() else 0
    if first == 0 or first >= len(recovered):
        return
    at = float(controlled.times_ms[first])
    instant = axes.axvline(at, color=style.FAINT, linewidth=0.8, linestyle=(0, (1, 2)))
    style.name_curve(instant, "victims recovered")
    axes.annotate(
        f"trees dissolved: after {at:.0f} ms the victims\n"
        f"are back at {100 * _RECOVERED:g} % of their undisturbed rate",
        (at, reference / 2),
        xytext=(6, 0),
        textcoords="offset points",
        va="center",
    )
