"""Curves of all figures of quick reproductions have names, values, and their colour on the page."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_hex
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import silvan
from silvan.figures import style
from silvan.reproduce import Experiment, experiments
from silvan.reproduce.curves import Curve
from silvan.reproduce.registry import study

pytestmark = pytest.mark.slow

PAPERS = ("gran2010", "gran2012", "mizero2017", "pft2021", "santos2003")
COLOURS_OF_PAGE = Path(__file__).resolve().parents[1] / "viewer" / "src" / "ui" / "lines.ts"
SVG = "{http://www.w3.org/2000/svg}"

# Shortest runs from which the figures can be drawn; the others are as quick as for a reader.
SHORTER: Mapping[str, Mapping[str, str]] = {
    "gran2012": {"run.duration": "1 ms"},
    **{
        f"gran2012 beyond.{name}": {"run.duration": "200 us", "probe.interval": "100 us"}
        for name in ("sl", "torus", "adaptive", "space")
    },
    "gran2010 parking_lot": {"run.duration": "2 ms"},
    "mizero2017 exp1": {"run.duration": "100 ms"},
    "mizero2017 exp2": {"run.duration": "200 ms", "probe.interval": "10 ms"},
    "santos2003 fig2": {"run.duration": "20 ms"},
    "santos2003 fig3": {"run.duration": "20 ms"},
    "santos2003 fig4": {"run.duration": "20 ms"},
    "santos2003 fig6": {"run.duration": "120 ms"},
    "santos2003 fig7a": {"run.duration": "120 ms"},
    "santos2003 fig7b": {"run.duration": "120 ms"},
    "santos2003 beyond.forests": {"run.duration": "500 us"},
    "santos2003 beyond.window": {"run.duration": "1 ms"},
    "santos2003 beyond.sizes": {"run.duration": "1 ms"},
}


# A third of the total time; other figures of these papers have curves of equal kinds.
LONG = ("pft2021 fig3_4", "gran2012 forests", "gran2012 fig4")


def _experiments() -> Iterator[tuple[str, Experiment]]:
    for paper in PAPERS:
        every = {one.id: one for one in experiments(paper)}
        if paper in ("gran2012", "santos2003"):
            every |= {one.id: one for one in experiments(paper, "beyond")}
        for one in every.values():
            yield paper, one


ALL = {f"{paper} {one.id}": (paper, one) for paper, one in _experiments()}


@pytest.fixture(scope="module")
def kept() -> dict[str, silvan.Result]:
    """Runs by scenario: figures share many."""
    return {}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.nightly if name in LONG else (), id=name)
        for name in ALL
    ],
)
def test_curves_have_names_values_and_the_colours_of_the_page(
    name: str,
    kept: dict[str, silvan.Result],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    paper, one = ALL[name]
    results = {}
    shorter = SHORTER.get(name, SHORTER.get(paper))
    for case in (case for case in one.cases if case.quick):
        scenario = study(paper, case.study).override({**case.overrides, **one.quick})
        if shorter:
            scenario = scenario.override(shorter)
        if scenario.hash not in kept:
            kept[scenario.hash] = silvan.run(scenario, seed=1)
        results[case.label] = [kept[scenario.hash]]
    drawn: list[Figure] = []
    save = style.save

    def noted(figure: Figure, *rest: Any, **options: Any) -> list[Path]:
        drawn.append(figure)
        return save(figure, *rest, **options)

    monkeypatch.setattr(style, "save", noted)
    monkeypatch.setattr(style, "_file", vector_graphics(style._file))
    files = one.draw(results, tmp_path)
    titles = [
        (title.text or "").splitlines()
        for file in files
        if file.suffix == ".svg"
        for title in ET.parse(file).iter(f"{SVG}title")
    ]
    colours: dict[str, str] = {}
    for figure in drawn:
        for axes in figure.axes:
            for curve in _curves(axes):
                found = style.curve_name(curve)
                assert found, (axes.get_title("left"), curve)
                colours.setdefault(found, _colour(curve))
                if isinstance(curve, Line2D) and not np.isfinite(curve.get_xydata()).any():
                    continue  # In so short a run, flows that start later have no rate.
                # The name, and a value with the name of its axis.
                own = [words for words in titles if words[0] == found]
                assert any(re.search(r": -?[\d.]", line) for words in own for line in words), found
    curves = [*_plotted(one, results), *(one.trace(results) if one.trace else ())]
    _compare(curves, colours)


def vector_graphics(write: Callable[..., bytes]) -> Callable[..., bytes]:
    """Leave out the pixels, which take most of the time, but not what drawing them decides."""

    def written(figure: Figure, **options: Any) -> bytes:
        if options.get("format") == "svg":
            return write(figure, **options)
        figure.draw_without_rendering()
        return b""

    return written


def _curves(axes: Axes) -> Iterator[Artist]:
    """Give the curves and marks of axes, but no whiskers, shades, and lines from marks on."""
    if not axes.get_visible() or not axes.axison:
        return
    whiskers = [
        part
        for container in axes.containers
        if isinstance(container, ErrorbarContainer)
        for part in container.get_children()
    ]
    for curve in (*axes.get_lines(), *axes.collections):
        is_stem = isinstance(curve, LineCollection) and str(curve.get_label()).startswith("_")
        is_curve = isinstance(curve, (Line2D, PathCollection, LineCollection)) and not is_stem
        if curve.get_visible() and curve not in whiskers and is_curve:
            yield curve


def _colour(curve: Artist) -> str:
    if isinstance(curve, Line2D):
        return to_hex(curve.get_color()).upper()
    edges = curve.get_edgecolor()  # type: ignore[attr-defined]
    return to_hex(edges[0]).upper() if len(edges) else ""


def _plotted(one: Experiment, results: Mapping[str, Sequence[silvan.Result]]) -> Sequence[Curve]:
    return one.plot(one.tabulate(results)) if one.plot and one.tabulate else ()


def _compare(curves: Sequence[Curve], colours: Mapping[str, str]) -> None:
    """Oracle: the colours that matplotlib has drawn, and the table of the page's colours."""
    text = COLOURS_OF_PAGE.read_text("utf-8")
    places = {colour.upper(): int(at) for colour, at in re.findall(r'"(#\w{6})": (\d)', text)}
    charts: dict[str, dict[int, str]] = {}
    for curve in curves:
        control = re.search(r"\bCC (off|on)\b", curve.label)
        colour = curve.colour or (style.CC_COLOURS[control[1]] if control else "")
        drawn = _named(curve.label, colours)
        if not colour:
            continue
        assert colour.upper() in places, curve.label
        if drawn is not None and (curve.colour or len(_of_control(curves, curve)) == 1):
            assert drawn == colour.upper(), curve.label
        if curve.colour:
            # Two colours of the figure are not one on the page.
            of_chart = charts.setdefault(curve.chart, {})
            assert of_chart.setdefault(places[colour.upper()], colour) == colour, curve.label


def _of_control(curves: Sequence[Curve], one: Curve) -> list[str]:
    """Return the labels of the chart's curves with the same control."""
    words = one.label[-6:]
    return [
        other.label for other in curves if other.chart == one.chart and other.label.endswith(words)
    ]


def _named(label: str, colours: Mapping[str, str]) -> str | None:
    """Find the colour of the curve of the figure that has a label, or a part of it, as its name."""
    named = [colour for name, colour in colours.items() if f"{name},".startswith(f"{label},")]
    named += [colours[part] for part in label.split(", ") if part in colours]
    return named[0] if named else None
