"""Figures of pft2021: injection rates over used credits, distributions, control factors."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from silvan.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from silvan.results.receive_rates import FloatArray
    from silvan_papers.pft2021_gpcnet import Processes

Curve = Mapping[int, float]


def draw_injection(
    fixed: Mapping[str, tuple[Curve, Curve]],
    chances: Mapping[str, tuple[Curve, Curve]],
    *,
    folder: Path,
    stem: str,
) -> list[Path]:
    """Draw Fig. 1: injection rate over used credits, lines by the formula, dots simulated."""
    title = "What a throttled interface injects: lines by the formula, dots simulated"
    with style.styled(9.5, 4.2, title) as figure:
        left, right = figure.subplots(1, 2, sharey=True)
        _panel(left, fixed, drawn="steps-post")
        left.set_title("(a) fixed interval, m = 0")
        left.set_ylabel("injection rate, part of the link's")
        _panel(right, chances, drawn="default")
        right.set_title("(b) random interval, n = 0, k = 0")
        for axes in (left, right):
            axes.set_xlabel("used credits c")
            axes.set_ylim(0, 1.04)
            axes.margins(x=0.01)
        return style.save(figure, folder, stem)


def injection_colours(names: Iterable[str]) -> dict[str, str]:
    """Return the colours of curves in figure 1; beyond six, curves have those of others again."""
    return dict(zip(names, itertools.cycle(style.CURVES), strict=False))


def _panel(axes: Axes, curves: Mapping[str, tuple[Curve, Curve]], drawn: str) -> None:
    colours = injection_colours(curves)
    for place, (name, (formula, simulated)) in enumerate(curves.items()):
        colour = colours[name]
        # The second curve of a colour is dashed, with other marks.
        is_second = place >= len(style.CURVES)
        (line,) = axes.plot(
            list(formula),
            list(formula.values()),
            color=colour,
            drawstyle=drawn,
            lw=1.3,
            ls="--" if is_second else "-",
            alpha=0.8,
        )
        style.name_curve(line, f"{name}, formula")
        (dots,) = axes.plot(
            list(simulated),
            list(simulated.values()),
            color=colour,
            ls="",
            marker="D" if is_second else "o",
            ms=3.6,
            label=name,
        )
        style.name_curve(dots, f"{name}, simulated")
    axes.legend(fontsize=7.5, labelspacing=0.25, handletextpad=0.2)


def distribution_colour(place: int) -> str:
    """Return the colour of a configuration in figures 3 and 4; the first one is without control."""
    return style.REFERENCE if place == 0 else style.SHADES[(place - 1) % len(style.SHADES)]


def draw_distributions(
    processes: Mapping[str, Processes], *, folder: Path, stem: str
) -> list[Path]:
    """Draw Figs. 3 and 4: how many processes have which delay, and which bandwidth."""
    import numpy as np

    with style.styled(9.5, 4.4) as figure:
        left, right = figure.subplots(1, 2)
        delays = {name: one.delays_us for name, one in processes.items()}
        rates = {name: one.rates_mib for name, one in processes.items()}
        for axes, values, unit, title in (
            (left, delays, "delay (µs)", "Figure 3: delay"),
            (right, rates, "bandwidth (MiB/s)", "Figure 4: bandwidth"),
        ):
            every = np.concatenate(list(values.values()))
            is_delay = axes is left
            space = np.geomspace if is_delay else np.linspace
            bins = space(every.min(), every.max() * 1.001, 26)
            middles = (bins[1:] + bins[:-1]) / 2
            for place, (name, one) in enumerate(values.items()):
                counts, _ = np.histogram(one, bins)
                colour = distribution_colour(place)
                axes.plot(middles, counts, color=colour, lw=2.2 if place == 0 else 1.5, label=name)
            axes.set_xscale("log" if is_delay else "linear")
            axes.set_xlabel(unit)
            axes.set_title(title)
            axes.set_ylim(bottom=0)
            axes.set_ylabel("processes")
        right.legend(fontsize=7.5)
        return style.save(figure, folder, stem)


def draw_factors(
    factors: Mapping[str, FloatArray], *, marked: str, folder: Path, stem: str
) -> list[Path]:
    """Draw Fig. 5: the control factor of every configuration."""
    names = list(factors)
    with style.styled(8.0, 0.9 + 0.21 * len(names)) as figure:
        axes = figure.subplots()
        places = list(range(len(names)))[::-1]
        means = {name: float(values.mean()) for name, values in factors.items()}
        winner = max(means, key=lambda name: means[name])
        for name, place in zip(names, places, strict=True):
            colour = "#009E73" if name == winner else style.CC_COLOURS["on"]
            mean, low, high = means[name], float(factors[name].min()), float(factors[name].max())
            axes.hlines(place, 1, mean, color=style.FAINT, lw=1)
            (seeds,) = axes.plot(
                factors[name], [place] * len(factors[name]), "|", color=colour, ms=7
            )
            (dot,) = axes.plot(mean, place, "o", color=colour, ms=6)
            style.name_curve(seeds, "each seed")
            style.name_curve(dot, "mean over the seeds")
            is_above = mean >= 1
            axes.annotate(
                f"{mean:.2f}",
                (high if is_above else low, place),
                xytext=(7 if is_above else -7, 0),
                textcoords="offset points",
                ha="left" if is_above else "right",
                va="center",
                fontsize=8,
            )
        style.name_curve(axes.axvline(1, color=style.REFERENCE, lw=1), "no control")
        labels = [f"{name}  (the paper's best: 2.58)" if name == marked else name for name in names]
        axes.set_yticks(places, labels, fontsize=8)
        axes.set_ylim(-0.7, len(names) - 0.3)
        axes.set_xlabel(
            "control factor F_C: mean over the seeds (dot), and each seed; 1 is no control"
        )
        axes.set_title("Figure 5: control factor under GPCNeT")
        axes.margins(x=0.12)
        axes.grid(visible=False)
        return style.save(figure, folder, stem)
