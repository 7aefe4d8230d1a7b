"""The figure of a search for saturation: latency and delivery by load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from silvan.figures import style

if TYPE_CHECKING:
    from pathlib import Path

    from silvan.planning.saturation import Saturation

_MEAN, _TAIL = "#0072B2", "#D55E00"


def draw_saturation(found: Saturation, folder: Path, stem: str = "saturation") -> list[Path]:
    """Draw latency and delivered payload by load, with the load at which the fabric saturates.

    Parameters
    ----------
    found : Saturation
        What :func:`silvan.planning.saturation.saturate` has found.
    folder : Path
        A folder that exists.
    stem : str
        Name of the files, without suffix.

    Returns
    -------
    list of Path
        The figure as PNG and SVG, and its numbers as CSV.
    """
    points = found.points
    loads = [point.load for point in points]
    with style.styled(8.6, 3.6) as figure:
        latency, delivered = figure.subplots(1, 2)
        timed = [point for point in points if point.latency_mean_ns is not None]
        timed_loads = [point.load for point in timed]
        means = [(point.latency_mean_ns or 0.0) / 1e3 for point in timed]
        tails = [(point.latency_p99_ns or 0.0) / 1e3 for point in timed]
        latency.plot(timed_loads, means, "o-", color=_MEAN, label="mean")
        latency.plot(timed_loads, tails, "s--", color=_TAIL, label="99th percentile")
        latency.set_yscale("log")
        latency.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        latency.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        latency.yaxis.set_minor_locator(NullLocator())
        latency.set_title("Packet latency from injection (µs)")
        gbps = [point.delivered_gbps for point in points]
        delivered.plot(loads, gbps, "o-", color=_MEAN, label="all hosts")
        delivered.set_title("Payload received by all hosts (Gbit/s)")
        delivered.set_ylim(bottom=0)
        for axes in (latency, delivered):
            axes.set_xlabel("load (share of the injection rate)")
            axes.set_xlim(0, 1.02)
            if found.above is not None:
                axes.axvline(found.load, color=style.FAINT, linestyle=":")
        if found.above is not None:
            text = f"saturation: {found.load:.3f}"
            beside: dict[str, Any] = {"rotation": 90, "offset": (-12, 6)}
            style.label_line(delivered, found.load, 0, text, style.INK, **beside)
        style.legend_below(latency)
        header = (
            "load",
            "offered_gbps",
            "delivered_gbps",
            "share",
            "latency_mean_ns",
            "latency_p99_ns",
        )
        rows = [tuple(getattr(point, name) for name in header) for point in points]
        return style.save(figure, folder, stem, (header, rows))
