"""gran2012, section III: figures 2 to 4, the kinds of congestion trees, drawn from runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from silvan.reproduce.curves import Curve, over_time
from silvan.reproduce.experiment import Case, Experiment, Measurement, Results
from silvan.results.receive_rates import PS_PER_MS

_CC_OFF = {"control.scheme": "none"}
_LOOKS = {"probe.trees.interval": "0.2 ms", "run.duration": "40 ms"}
# Twenty B nodes send a fifth more to their hotspot than it can receive, so a tree forms whose
# branches come and go. From p = 10 % on all branches stay, and no wind is seen.
_P_PERCENT = 6
_WINDY = {
    "traffic.nodes.v": 0.0,
    "traffic.nodes.c": 0.0,
    "traffic.nodes.b": 0.25,
    "traffic.nodes.p": _P_PERCENT,
}
_LIFETIME_MS = 10
_MOVING = {"traffic.nodes.hotspot-lifetime": f"{_LIFETIME_MS} ms"}

_SILENT_CASES = (
    Case("silent.off", "table2", 1, {**_LOOKS, **_CC_OFF}),
    Case("silent.on", "table2", 1, _LOOKS),
)
_WINDY_CASES = (
    Case("windy.off", "table2", 1, {**_LOOKS, **_WINDY, **_CC_OFF}),
    Case("windy.on", "table2", 1, {**_LOOKS, **_WINDY}),
)
_MOVING_CASES = (
    Case("moving.off", "table2", 1, {**_LOOKS, **_MOVING, **_CC_OFF}),
    Case("moving.on", "table2", 1, {**_LOOKS, **_MOVING}),
)

# Both instants of each kind in ms. Hotspots move at 10 ms; the old trees are gone by 14 ms.
_SILENT_MS = (15.0, 18.0)
_WINDY_MS = (15.0, 18.0)
_MOVING_MS = (10.0, 14.0)
_STEPS_MS = (10.0, 10.4, 11.0, 12.0, 13.0, 14.0)
_MOVIE_MS = (9.4, 15.0)

_TITLES = {
    "silent": "Silent congestion trees: 80 % C nodes, 20 % V nodes",
    "windy": f"Windy congestion trees: 25 % B nodes alone, p = {_P_PERCENT} %",
    "moving": f"Moving congestion trees: as silent, hotspots move every {_LIFETIME_MS} ms",
}


def _over_time(results: Results, kind: str, folder: Path, stem: str) -> Sequence[Path]:
    from silvan.figures.forest_time import draw_over_time
    from silvan.results.forest import Forests

    runs = {control: Forests(results[f"{kind}.{control}"][0]) for control in ("off", "on")}
    return draw_over_time(runs, title=_TITLES[kind], folder=folder, stem=stem)


def _draw_silent(results: Results, folder: Path) -> Sequence[Path]:
    from silvan.figures.forest import Drawing, Panel, draw_forests
    from silvan.results.forest import Forests

    forests = Forests(results["silent.off"][0])
    panel = Panel("CC off", Drawing(forests), forests.nearest(round(_SILENT_MS[0] * PS_PER_MS)))
    title = f"{_TITLES['silent']} (figure 2 of gran2012)"
    return [
        *draw_forests([[panel]], title=title, folder=folder, stem="fig2"),
        *_over_time(results, "silent", folder, "fig2-over-time"),
    ]


def _draw_windy(results: Results, folder: Path) -> Sequence[Path]:
    from silvan.figures.forest import Drawing, Panel, draw_forests
    from silvan.results.forest import Forests

    forests = Forests(results["windy.off"][0])
    drawing = Drawing(forests)
    first, second = (forests.nearest(round(at * PS_PER_MS)) for at in _WINDY_MS)
    rows = [
        [Panel("CC off", drawing, first)],
        [Panel("Branches that come and go", drawing, second, since=first)],
    ]
    title = f"{_TITLES['windy']} (figure 3 of gran2012)"
    return [
        *draw_forests(rows, title=title, folder=folder, stem="fig3"),
        *_over_time(results, "windy", folder, "fig3-over-time"),
    ]


def _draw_moving(results: Results, folder: Path) -> Sequence[Path]:
    from silvan.figures.forest import Drawing
    from silvan.figures.forest_movie import animate, draw_steps
    from silvan.results.forest import Forests

    forests = Forests(results["moving.off"][0])
    drawing = Drawing(forests)
    first, last = (forests.nearest(round(at * PS_PER_MS)) for at in _MOVIE_MS)
    steps = [forests.nearest(round(at * PS_PER_MS)) for at in _STEPS_MS]
    title = f"{_TITLES['moving']}, CC off (figure 4 of gran2012)"
    movie = animate(
        drawing, range(first, last + 1), title="Moving trees, CC off", path=folder / "fig4.gif"
    )
    return [
        *draw_steps(drawing, steps, title=title, folder=folder, stem="fig4"),
        *_over_time(results, "moving", folder, "fig4-over-time"),
        movie,
    ]


def _draw_kinds(results: Results, folder: Path) -> Sequence[Path]:
    from silvan.figures.forest import Drawing, Panel, draw_forests
    from silvan.results.forest import Forests

    rows = []
    for kind, instants in (("silent", _SILENT_MS), ("windy", _WINDY_MS), ("moving", _MOVING_MS)):
        forests = Forests(results[f"{kind}.off"][0])
        drawing = Drawing(forests)
        first, second = (forests.nearest(round(at * PS_PER_MS)) for at in instants)
        rows.append(
            [
                Panel(kind.capitalize(), drawing, first),
                Panel("Changes since then", drawing, second, since=first),
            ]
        )
    title = "Silent, windy and moving congestion trees, CC off (figures 2 to 4 of gran2012)"
    return draw_forests(rows, title=title, folder=folder, stem="forests")


def _trace(results: Results) -> list[Curve]:
    shown = (
        ("Congestion trees", "trees", "trees", 1.0),
        ("Port VLs in congestion trees", "Port VLs", "ports", 1.0),
        ("Data in congestion trees", "MB", "queued_bytes", 1e-6),
    )
    curves = []
    for chart, unit, column, factor in shown:
        for label, runs in results.items():
            forest = runs[0].forest
            times = forest["time_ps"].to_numpy() / PS_PER_MS
            values = forest[column].to_numpy() * factor
            kind, control = label.split(".")
            curves.append(over_time(chart, unit, f"{kind}, CC {control}", times, values, [label]))
    return curves


def _nothing_stated(_results: Results) -> list[Measurement]:
    return []


def _figure(
    name: str,
    title: str,
    cases: tuple[Case, ...],
    draw: Callable[[Results, Path], Sequence[Path]],
) -> Experiment:
    return Experiment(
        id=name,
        title=title,
        cases=cases,
        windows=("the whole run", "the same"),
        quick={"run.duration": "20 ms"},
        quick_note="20 ms instead of 40 ms: congestion control has no time to dissolve the trees",
        measure=_nothing_stated,
        draw=draw,
        trace=_trace,
    )


EXPERIMENTS = (
    _figure("fig2", "Figure 2: a silent forest", _SILENT_CASES, _draw_silent),
    _figure("fig3", "Figure 3: a windy forest", _WINDY_CASES, _draw_windy),
    _figure("fig4", "Figure 4: a moving forest", _MOVING_CASES, _draw_moving),
    _figure(
        "forests",
        "Figures 2 to 4 next to each other",
        (_SILENT_CASES[0], _WINDY_CASES[0], _MOVING_CASES[0]),
        _draw_kinds,
    ),
)
