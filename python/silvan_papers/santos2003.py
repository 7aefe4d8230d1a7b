"""Santos et al., "End-to-end congestion control for InfiniBand" (INFOCOM 2003)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from silvan.reproduce.curves import Curve, coloured, over_time
from silvan.reproduce.experiment import (
    Case,
    ClauseResult,
    Experiment,
    Measurement,
    PointTable,
    Results,
    Verdict,
)
from silvan.reproduce.shapes import Clause, judge
from silvan.results.receive_rates import PS_PER_MS, Window
from silvan_papers import santos2003_beyond, santos2003_curves, santos2003_recovery
from silvan_papers.papers import paper
from silvan_papers.santos2003_scene import STUDY, Shares, scene

if TYPE_CHECKING:
    from silvan.inputs.toml_text import TomlValue

# The victim runs from 40 to 60 ms; a window of 2 ms must lie within.
_VICTIM_MS = (40, 60)
_WINDOWS_MS = ((41, 59), (50, 59))
_WINDOWS = ("41 to 59 ms, while the victim sends", "the second half of that")
_QUICK_NOTE = "60 ms instead of 100 ms, without what follows the victim"

_NO_CONTROL: Mapping[str, TomlValue] = {"control.scheme": "none"}
# A window of one packet and constant rates.
_WINDOW_ONLY: Mapping[str, TomlValue] = {"control.ecn.response": "fixed"}

# "fully used" and "high" for a link, and "under-used".
_HIGH = 0.9
_LOW = 0.75
# "saturates" and "most of the bandwidth".
_SATURATED = 0.99
_MOST = 0.5
# Jain's index of "approximately the same".
_SAME = 0.98
# "its ideal throughput".
_IDEAL = 0.02
# Part of naive marking's distance from one half that is "clearly fairer".
_FAIRER = 0.25


def _window(window: int) -> Window:
    start, end = _WINDOWS_MS[window]
    return Window(start * PS_PER_MS, end * PS_PER_MS)


def _shares(results: Results, label: str, window: int) -> Shares:
    return Shares.mean(results[label], _window(window))


def _measured(name: str, results: Results, read: Callable[[Shares], float]) -> Measurement:
    whole, steady = (
        tuple(read(Shares.of(run, _window(window))) for run in results[name.split(".")[0]])
        for window in range(2)
    )
    return Measurement(name, whole, steady)


def _measure_fig2(results: Results) -> list[Measurement | Verdict]:
    def full(window: int) -> ClauseResult:
        used = float(_shares(results, "fig2", window).root)
        return ClauseResult(used >= _SATURATED, f"{used:.3f}")

    return [
        _measured("fig2.victim_share", results, lambda shares: float(shares.victim)),
        _measured("fig2.interswitch_utilisation", results, lambda one: float(one.interswitch)),
        judge("fig2.root", [Clause(f"root link at least {_SATURATED} used", full)]),
    ]


def _measure_fig3(results: Results) -> list[Measurement | Verdict]:
    def busy(window: int) -> ClauseResult:
        used = float(_shares(results, "fig3b", window).interswitch)
        return ClauseResult(used >= _HIGH, f"{used:.2f}")

    def root(window: int) -> ClauseResult:
        used = float(_shares(results, "fig3b", window).root)
        return ClauseResult(_HIGH <= used < _SATURATED, f"{used:.3f}")

    def idle(window: int) -> ClauseResult:
        one, five = (
            float(_shares(results, label, window).interswitch) for label in ("fig3b", "fig3c")
        )
        return ClauseResult(five <= _LOW < one, f"{five:.2f}, and {one:.2f} with one remote flow")

    def ideal(window: int) -> ClauseResult:
        shares = _shares(results, "fig3d", window)
        worst = max(
            abs(float(got) / 0.5 - 1) for got in (shares.local, shares.remote, shares.victim)
        )
        return ClauseResult(
            worst <= _IDEAL and float(shares.jain) >= 1 - _IDEAL,
            f"local {shares.local:.3f}, remote {shares.remote:.3f}, victim {shares.victim:.3f}, "
            f"Jain's index over the ten flows {shares.jain:.3f}",
        )

    return [
        judge("fig3b", [Clause(f"inter-switch link at least {_HIGH} used", busy)]),
        judge(
            "fig3b.root",
            [Clause(f"root link at least {_HIGH} used, and less than {_SATURATED}", root)],
        ),
        judge("fig3c", [Clause(f"inter-switch link at most {_LOW} used", idle)]),
        judge(
            "fig3d",
            [Clause(f"each group of flows within {_IDEAL:.0%} of one half, and all equal", ideal)],
        ),
    ]


def _measure_fig4(results: Results) -> list[Measurement | Verdict]:
    def local_share(label: str, window: int) -> float:
        shares = _shares(results, label, window)
        return float(shares.local / shares.root)

    def busy(window: int) -> ClauseResult:
        used = float(_shares(results, "fig4b", window).interswitch)
        return ClauseResult(used >= _HIGH, f"{used:.2f}")

    def fairer(window: int) -> ClauseResult:
        naive, proposed, scan = (
            local_share(label, window) for label in ("fig4a", "fig4b", "fig4b.scan")
        )
        return ClauseResult(
            0.5 < proposed <= naive - _FAIRER * (naive - 0.5),
            f"local share {proposed:.2f} (by scanning {scan:.2f}) against {naive:.2f}",
        )

    def equal(window: int) -> ClauseResult:
        groups = Shares.jain_of_groups(results["fig4a"][0], _window(window))
        facts = ", ".join(f"{name} {index:.3f}" for name, index in groups.items())
        return ClauseResult(min(groups.values()) >= _SAME, facts)

    return [
        judge(
            "fig4a.equal",
            [
                Clause(
                    f"Jain's index over the flows of each group at least {_SAME}, local and remote",
                    equal,
                )
            ],
        ),
        _measured("fig4a.local_share", results, lambda one: float(one.local / one.root)),
        judge(
            "fig4b",
            [
                Clause(f"inter-switch link at least {_HIGH} used", busy),
                Clause(
                    f"local flows' share at least {_FAIRER:.0%} closer to one half than with naive "
                    "marking, and above it",
                    fairer,
                ),
            ],
        ),
    ]


def _draw(titles: Mapping[str, str], title: str, stem: str) -> Callable[..., Sequence[Path]]:
    def draw(results: Results, folder: Path) -> Sequence[Path]:
        from silvan_papers.figures.two_switches import draw_series

        panels = {
            name: Shares.series(results[label][0], window_ms=2.0) for label, name in titles.items()
        }
        return draw_series(panels, title=title, folder=folder, stem=stem)

    return draw


def _trace(titles: Mapping[str, str]) -> Callable[[Results], list[Curve]]:
    def trace(results: Results) -> list[Curve]:
        from silvan_papers.figures.two_switches import colour_of

        curves = []
        for label, name in titles.items():
            times_ms, shares = Shares.series(results[label][0], window_ms=2.0)
            chart = f"Shares of a link, and fairness: {name}"
            curves += [
                over_time(chart, "", line, times_ms, values, [label])
                for line, values in shares.columns().items()
            ]
        return coloured(curves, colour_of)

    return trace


def _tabulate(titles: Mapping[str, str]) -> Callable[[Results], PointTable]:
    def tabulate(results: Results) -> PointTable:
        rows: list[tuple[float | str, ...]] = []
        for label, name in titles.items():
            shares = _shares(results, label, 0)
            values = [float(value) for value in shares.columns().values()]
            rows.append((name, *values))
        names = tuple(_shares(results, next(iter(titles)), 0).columns())
        return PointTable(("case", *names), tuple(rows))

    return tabulate


def _experiment(
    name: str,
    title: str,
    cases: Sequence[Case],
    titles: Mapping[str, str],
    measure: Callable[[Results], Sequence[Measurement | Verdict]],
) -> Experiment:
    return Experiment(
        id=name,
        title=title,
        cases=tuple(cases),
        windows=_WINDOWS,
        quick={"run.duration": "60 ms"},
        quick_note=_QUICK_NOTE,
        measure=measure,
        draw=_draw(titles, title, name),
        tabulate=_tabulate(titles),
        trace=_trace(titles),
    )


def _case(
    label: str,
    flows: Mapping[str, TomlValue],
    control: Mapping[str, TomlValue] | None = None,
) -> Case:
    return Case(label, STUDY, 1, {**flows, **(control or {})})


_FIVE_AND_ONE = scene(5, 1, victim_ms=_VICTIM_MS)
_FIVE_AND_FIVE = scene(5, 5, victim_ms=_VICTIM_MS)
_TEN_AND_TEN = scene(10, 10, victim_ms=_VICTIM_MS)

FIG2 = _experiment(
    "fig2",
    "Figure 2: congestion spreading without control, L = 5, R = 1",
    [_case("fig2", _FIVE_AND_ONE, _NO_CONTROL)],
    {"fig2": "No congestion control"},
    _measure_fig2,
)

FIG3 = _experiment(
    "fig3",
    "Figure 3: a window of one packet, and rates set by hand",
    [
        _case("fig3a", _FIVE_AND_ONE, _NO_CONTROL),
        _case("fig3b", _FIVE_AND_ONE, _WINDOW_ONLY),
        _case("fig3c", _FIVE_AND_FIVE, _WINDOW_ONLY),
        _case("fig3d", scene(5, 5, victim_ms=_VICTIM_MS, loads=(0.1, 0.5)), _WINDOW_ONLY),
    ],
    {
        "fig3a": "(a) No control, L = 5, R = 1",
        "fig3b": "(b) Window of 1, L = 5, R = 1",
        "fig3c": "(c) Window of 1, L = 5, R = 5",
        "fig3d": "(d) Window of 1 and best rates, L = 5, R = 5",
    },
    _measure_fig3,
)

FIG4 = _experiment(
    "fig4",
    "Figure 4: naive and proposed marking, LIPD, L = 10, R = 10",
    [
        _case("fig4a", _TEN_AND_TEN, {"control.ecn.marking": "naive"}),
        _case("fig4b", _TEN_AND_TEN, {"control.ecn.marking": "proposed-counters"}),
        _case("fig4b.scan", _TEN_AND_TEN, {"control.ecn.marking": "proposed-scan"}),
    ],
    {"fig4a": "(a) Naive marking", "fig4b": "(b) Proposed marking, two counters"},
    _measure_fig4,
)


def _measure_window(results: Results) -> list[Measurement | Verdict]:
    def used(label: str, window: int) -> float:
        return float(_shares(results, label, window).root)

    def one(window: int) -> ClauseResult:
        share = used("window.1", window)
        return ClauseResult(_MOST < share < _SATURATED, f"{share:.3f}")

    def two(window: int) -> ClauseResult:
        share = used("window.2", window)
        return ClauseResult(share >= _SATURATED, f"{share:.3f}")

    return [
        judge(
            "window.alone",
            [
                Clause(
                    f"a flow alone with a window of one packet uses more than {_MOST} of its path, "
                    f"and less than {_SATURATED}",
                    one,
                ),
                Clause(f"with a window of two it uses at least {_SATURATED}", two),
            ],
        )
    ]


_ALONE: Mapping[str, TomlValue] = {
    "fabric.local": 0,
    "fabric.remote": 1,
    "traffic.flow": [{"name": "remote-1", "from": "A1", "to": "BC"}],
}

WINDOW = _experiment(
    "window",
    "Section IV-B: windows of one and two packets in an empty network",
    [
        _case(f"window.{size}", _ALONE, {**_WINDOW_ONLY, "control.ecn.window": size})
        for size in (1, 2)
    ],
    {"window.1": "Window of 1", "window.2": "Window of 2"},
    _measure_window,
)

EXPERIMENTS = (
    FIG2,
    WINDOW,
    FIG3,
    FIG4,
    santos2003_recovery.FIG5,
    *santos2003_curves.EXPERIMENTS,
    *santos2003_beyond.EXPERIMENTS,
)

PAPER = paper("santos2003", EXPERIMENTS)
