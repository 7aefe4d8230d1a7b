"""The forest over time: trees, their size and their victims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.ticker import MaxNLocator

from silvan.figures import style
from silvan.results.forest import Forests
from silvan.results.receive_rates import PS_PER_MS, FloatArray

_MEASURES = (
    ("trees", "congestion\ntrees"),
    ("ports", "Port VLs\nin trees"),
    ("victims_percent", "hosts with\nvictims (%)"),
    ("waiting_mib", "waiting in\ntrees (MiB)"),
)


def forest_series(forests: Forests) -> dict[str, FloatArray]:
    """Compute the curves of the figure by sample: ports and victims in trees, waiting MiB."""
    table = forests.result.tables["forest"]

    def column(name: str) -> FloatArray:
        return np.asarray(table[name].to_numpy(), dtype=np.float64)

    return {
        "time_ms": column("time_ps") / PS_PER_MS,
        "trees": column("trees"),
        "ports": column("ports"),
        "victims_percent": 100 * column("victims") / forests.result.hosts.num_rows,
        "waiting_mib": column("queued_bytes") / 2**20,
    }


def draw_over_time(
    runs: Mapping[str, Forests],
    *,
    title: str,
    folder: Path,
    stem: str,
    page: style.Page = style.SCREEN,
    colours: Sequence[str] = style.CURVES,
) -> Sequence[Path]:
    """Draw number and size of trees against time."""
    series = {label: forest_series(forests) for label, forests in runs.items()}
    curves = dict(zip(series, colours, strict=False)) | style.CC_COLOURS
    with page.figure(7.2, 6.6, title) as figure:
        panels = figure.subplots(len(_MEASURES), 1, sharex=True)
        for axes, (name, quantity) in zip(panels, _MEASURES, strict=True):
            for label, one in series.items():
                axes.plot(
                    one["time_ms"],
                    one[name],
                    color=curves[label],
                    label=style.CC_LABELS.get(label, label),
                )
            axes.set_ylabel(quantity)
            axes.set_ylim(0, max(1.0, axes.dataLim.ymax) * 1.12)
            axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=name in ("trees", "ports")))
        panels[-1].set_xlabel("simulated time (ms)")
        panels[-1].set_xlim(0, max(one["time_ms"][-1] for one in series.values()))
        if len(series) > 1:
            figure.legend(
                *panels[0].get_legend_handles_labels(), loc="outside upper right", ncols=2
            )
        header = ("run", "time_ms", *(name for name, _ in _MEASURES))
        rows = [
            (label, *(f"{one[name][look]:.6g}" for name in header[1:]))
            for label, one in series.items()
            for look in range(len(one["time_ms"]))
        ]
        return style.save(figure, folder, stem, (header, rows), page.formats)
