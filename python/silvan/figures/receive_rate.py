"""Receive rate over time: hotspots and their victims, congestion control off and on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from silvan.figures import style
from silvan.measures import (
    BoolArray,
    FloatArray,
    is_hotspot,
    receive_rate_series_gbps,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from silvan.result import Result


@dataclass(frozen=True, slots=True)
class Band:
    """A series with its range over the seeds.

    Attributes
    ----------
    times_ms : ndarray of float
        Middle of each interval, in milliseconds.
    mean, low, high : ndarray of float
        Receive rate per host in Gbit/s: mean, smallest and largest over the seeds.
    """

    times_ms: FloatArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray


def band(runs: Sequence[Result], *, hotspots: bool | None) -> Band:
    """Put the receive rates of several seeds together.

    Parameters
    ----------
    runs : sequence of Result
        Runs of one scenario with different seeds.
    hotspots : bool, optional
        Take the hotspots only (True), the others only (False), or all hosts (None).

    Returns
    -------
    Band
        The series.
    """

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
    folder: Path,
    stem: str,
) -> list[Path]:
    """Draw hotspots above their victims, with congestion control off and on.

    Parameters
    ----------
    by_control : Mapping
        Runs with hotspots under ``"off"`` and ``"on"``.
    without_hotspots : sequence of Result
        Runs of the victims alone, which show what the hotspots cost.
    folder : Path
        A folder that exists.
    stem : str
        Name of the files, without suffix.

    Returns
    -------
    list of Path
        The PNG, the SVG and the CSV of the numbers behind them.
    """
    bands = {
        (group, control): band(runs, hotspots=hotspots)
        for control, runs in by_control.items()
        for group, hotspots in (("hotspots", True), ("others", False))
    }
    alone = band(without_hotspots, hotspots=None)
    reference = float(alone.mean[len(alone.mean) // 2 :].mean())
    first = next(iter(by_control.values()))[0]
    counts = {True: int(is_hotspot(first).sum()), False: int((~is_hotspot(first)).sum())}

    with style.styled(7.2, 5.6) as figure:
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(1, 1.7))
        _panel(upper, bands, "hotspots")
        _panel(lower, bands, "others")
        upper.set_title(f"The {counts[True]} hotspots")
        lower.set_title(f"The other {counts[False]} hosts: victims of the congestion trees")
        upper.set_ylim(0, 16)
        upper.set_yticks([0, 5, 10, 15])
        lower.set_ylim(0, reference * 1.2)
        lower.axhline(reference, color=style.REFERENCE, linewidth=1, linestyle=(0, (4, 3)))
        style.label_line(
            lower,
            alone.times_ms[-1],
            reference,
            f"with no hotspots in the fabric: {reference:.2f}",
            style.REFERENCE,
            ha="right",
        )
        for axes in (upper, lower):
            axes.set_ylabel("receive rate per host\n(Gbit/s)")
        lower.set_xlabel("simulated time (ms)")
        lower.set_xlim(0, float(alone.times_ms[-1] + alone.times_ms[0]))
        _name_lines(upper, lower, bands)
        paths = style.save(figure, folder, stem)
    rows = [
        (f"{time:.6g}", group, control, f"{mean:.6g}", f"{low:.6g}", f"{high:.6g}")
        for (group, control), one in bands.items()
        for time, mean, low, high in zip(one.times_ms, one.mean, one.low, one.high, strict=True)
    ]
    header = ("time_ms", "hosts", "cc", "mean_gbps", "min_gbps", "max_gbps")
    return [*paths, style.save_csv(header, rows, folder / f"{stem}.csv")]


def _panel(axes: Axes, bands: Mapping[tuple[str, str], Band], group: str) -> None:
    for control, colour in style.CC_COLOURS.items():
        one = bands[group, control]
        axes.fill_between(one.times_ms, one.low, one.high, color=colour, alpha=0.18, linewidth=0)
        axes.plot(one.times_ms, one.mean, color=colour)


def _name_lines(upper: Axes, lower: Axes, bands: Mapping[tuple[str, str], Band]) -> None:
    """Name each line where it runs level, late in the run."""
    for control, colour in style.CC_COLOURS.items():
        others = bands["others", control]
        at = round(len(others.times_ms) * 0.62)
        below = control == "on"
        style.label_line(
            lower,
            others.times_ms[at],
            float(others.low[at] if below else others.high[at]),
            f"{style.CC_LABELS[control]}: {others.mean[at:].mean():.2f}",
            colour,
            offset=(0, -6) if below else (0, 5),
            va="top" if below else "bottom",
        )
        hotspots = bands["hotspots", control]
        style.label_line(
            upper,
            hotspots.times_ms[at],
            float(hotspots.low[at] if below else hotspots.high[at]),
            f"{style.CC_LABELS[control]}: {hotspots.mean[at:].mean():.2f}",
            colour,
            offset=(0, -6) if below else (0, 4),
            va="top" if below else "bottom",
        )
