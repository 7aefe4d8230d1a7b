"""gran2012, section V-C: figures 9 and 10, the stormy forest of moving congestion trees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from silvan.reproduce.curves import Curve, Line, Row, coloured, curves
from silvan.reproduce.experiment import (
    Case,
    ClauseResult,
    Experiment,
    Measurement,
    PointTable,
    Results,
    Verdict,
)
from silvan.reproduce.registry import stated_value
from silvan.reproduce.shapes import Clause, judge, trend, words
from silvan_papers.gran2012_cases import (
    CONTROLS,
    MOVES,
    lifetime_ms,
    moving_silent,
    moving_windy,
    seeds_of,
    silent_label,
    windy_moving_label,
)
from silvan_papers.quantities import (
    Quantity,
    group_rate,
    mean_curve,
    measurement,
    ratio_of_pairs,
    spread,
    windows_in_words,
)

_P_PERCENT = (30, 60, 90)
_STATED_MOVES = {"fig9a": (10, 50, 100), "fig9b": (10, 100)}
_QUICK_MOVES = {"fig9a": (10, 50, 100), "fig9b": (10, 50, 100), "fig10": (10, 100)}
_QUICK_DURATION = "10 ms"
_QUICK_NOTE = "fewer lifetimes, and 10 ms instead of 100 ms: hotspots that live so long never move"


@dataclass(frozen=True, slots=True)
class Storm:
    """Mean receive rates of all hosts in Gbit/s by moves in 0.1 s, control off and on."""

    off: Mapping[int, Quantity]
    on: Mapping[int, Quantity]

    @classmethod
    def of(cls, results: Results, label: Callable[[int, str], str]) -> Storm:
        """Take the runs with some label from an experiment's."""
        off, on = (
            {
                moves: group_rate(results[label(moves, control)], "all")
                for moves in MOVES
                if label(moves, control) in results
            }
            for control in CONTROLS
        )
        return cls(off, on)

    def gain(self) -> dict[int, Quantity]:
        """Compute the rate of all hosts, on over off, by number of moves."""
        return {moves: ratio_of_pairs(self.on[moves], self.off[moves]) for moves in self.on}


def _measure_fig9(figure: str, v_percent: int, results: Results) -> list[Measurement | Verdict]:
    storm = Storm.of(results, partial(silent_label, v_percent))
    gain = storm.gain()
    measured: list[Measurement | Verdict] = []
    if figure == "fig9a":
        measured += [
            measurement("fig9a.10ms.on", storm.on[10]),
            measurement("fig9a.10ms.off", storm.off[10]),
            measurement("fig9a.2ms.on_over_off", gain[50]),
        ]
    return [
        *measured,
        measurement(f"{figure}.10ms.on_over_off", gain[10]),
        measurement(f"{figure}.1ms.on_over_off", gain[100]),
        judge(f"{figure}.lifetime", _shorter_lives(storm)),
    ]


def _shorter_lives(storm: Storm) -> list[Clause]:
    def rates_rise(window: int) -> ClauseResult:
        curves = {"off": storm.off, "on": storm.on}
        slopes = {name: trend(mean_curve(curve, window)) for name, curve in curves.items()}
        facts = ", ".join(
            f"CC {name} {mean_curve(curve, window)[10]:.3f} to "
            f"{mean_curve(curve, window)[100]:.3f} Gbit/s"
            for name, curve in curves.items()
        )
        return ClauseResult(min(slopes.values()) > 0, facts)

    def gain_falls(window: int) -> ClauseResult:
        curve = mean_curve(storm.gain(), window)
        facts = f"{curve[10]:.2f} to {curve[100]:.2f}"
        return ClauseResult(trend(curve) < 0 and curve[100] < curve[10], facts)

    return [
        Clause(
            "a straight line fitted to the receive rate over the number of moves rises, with CC "
            "and without",
            rates_rise,
        ),
        Clause(
            "one fitted to on/off falls, and on/off is smaller at 1 ms than at 10 ms", gain_falls
        ),
    ]


def _measure_fig10(results: Results) -> list[Measurement | Verdict]:
    storms = _fig10_storms(results)

    def always_above(window: int) -> ClauseResult:
        lowest = {p: min(mean_curve(one.gain(), window).values()) for p, one in storms.items()}
        return ClauseResult(min(lowest.values()) > 1, f"smallest on/off {words(lowest)}")

    def shrinks(window: int) -> ClauseResult:
        curves = [mean_curve(one.gain(), window) for one in storms.values()]
        facts = ", ".join(f"{curve[10]:.2f} to {curve[100]:.2f}" for curve in curves)
        return ClauseResult(
            all(curve[100] < curve[10] and trend(curve) < 0 for curve in curves), facts
        )

    return [
        judge(
            "fig10",
            [
                Clause("p = 30, 60, 90: CC on is above CC off at every lifetime", always_above),
                Clause(
                    "for each p on/off is smaller at 1 ms than at 10 ms, and a straight line "
                    "fitted over the number of moves falls",
                    shrinks,
                ),
            ],
        )
    ]


def _fig10_storms(results: Results) -> dict[int, Storm]:
    return {p: Storm.of(results, partial(windy_moving_label, p)) for p in _P_PERCENT}


_MARKS: Mapping[str, Sequence[tuple[str, int, str]]] = {
    "fig9a": (
        ("on", 10, "fig9a.10ms.on"),
        ("off", 10, "fig9a.10ms.off"),
        ("gain", 10, "fig9a.10ms.on_over_off"),
        ("gain", 50, "fig9a.2ms.on_over_off"),
        ("gain", 100, "fig9a.1ms.on_over_off"),
    ),
    "fig9b": (
        ("gain", 10, "fig9b.10ms.on_over_off"),
        ("gain", 100, "fig9b.1ms.on_over_off"),
    ),
}


def _stated(figure: str) -> dict[str, list[tuple[int, float]]]:
    stated: dict[str, list[tuple[int, float]]] = {}
    for curve, moves, target in _MARKS.get(figure, ()):
        stated.setdefault(curve, []).append((moves, stated_value("gran2012", target)))
    return stated


def _tabulate(storms: Mapping[str, Storm]) -> PointTable:
    rows = []
    for name, storm in storms.items():
        for moves in storm.on:
            off, on = storm.off[moves], storm.on[moves]
            row: list[float | str] = [name, moves, lifetime_ms(moves), off.shape[1], on.shape[1]]
            for window in (0, 1):
                for one in (off, on, ratio_of_pairs(on, off)):
                    row += [float(one[window].mean()), spread(one[window])]
            rows.append(tuple(row))
    columns = ("all_off_gbps", "all_on_gbps", "on_over_off")
    names = [*columns, *(f"{one}_steady" for one in columns)]
    header = ["traffic", "moves", "lifetime_ms", "seeds_off", "seeds_on"]
    header += [column for one in names for column in (one, f"{one}_sd")]
    return PointTable(tuple(header), tuple(rows))


def _fig9_storms(v_percent: int, results: Results) -> dict[str, Storm]:
    name = f"{v_percent} % V, {100 - v_percent} % C"
    return {name: Storm.of(results, partial(silent_label, v_percent))}


def _named_fig10_storms(results: Results) -> dict[str, Storm]:
    return {f"100 % B, p = {p}": storm for p, storm in _fig10_storms(results).items()}


_GAIN = "on over off"
_INK = "#333333"


def _plot(figure: str, label: Callable[[str, int, str], str], table: PointTable) -> list[Curve]:
    stated = _stated(figure)

    def line(column: str, chart: str, unit: str, mark: str, controls: Sequence[str]) -> Line:
        words = f"CC {controls[0]}" if len(controls) == 1 else _GAIN

        def cases(row: Row) -> list[str]:
            traffic, moves = str(row["traffic"]), int(row["moves"])
            return [label(traffic, moves, control) for control in controls]

        return Line(
            column,
            chart,
            unit,
            lambda row: f"{row['traffic']}, {words}",
            cases,
            lambda _: stated.get(mark, ()),
        )

    rates = [
        line(f"all_{control}_gbps", "Receive rate of all hosts", "Gbit/s", control, [control])
        for control in CONTROLS
    ]
    gain = line("on_over_off", "All hosts: CC on over off", "ratio", "gain", CONTROLS)
    drawn = curves(table, "moves", "moves of the hotspots in 100 ms", [*rates, gain])
    is_single = sum(one.label.endswith(_GAIN) for one in drawn) == 1
    return coloured(drawn, lambda label: _INK if is_single and label.endswith(_GAIN) else "")


def _fig9_case(v_percent: int, _traffic: str, moves: int, control: str) -> str:
    return silent_label(v_percent, moves, control)


def _fig10_case(traffic: str, moves: int, control: str) -> str:
    return windy_moving_label(int(traffic.rpartition(" ")[2]), moves, control)


def _draw(
    figure: str,
    forest: str,
    storms: Callable[[Results], Mapping[str, Storm]],
    results: Results,
    folder: Path,
) -> Sequence[Path]:
    from silvan_papers.figures.moving import draw_moving

    found = storms(results)
    return draw_moving(
        found,
        stated=_stated(figure),
        windows=windows_in_words(results),
        title=f"Figure {figure[3:]}: {forest} with moving hotspots",
        table=_tabulate(found),
        folder=folder,
        stem=figure,
    )


def _tabulated(storms: Callable[[Results], Mapping[str, Storm]], results: Results) -> PointTable:
    return _tabulate(storms(results))


def _seeds(control: str, *, is_ratio: bool) -> int:
    return seeds_of(control, stated=is_ratio, is_ratio=is_ratio)


def _experiment(
    figure: str,
    title: str,
    forest: str,
    cases: Sequence[Case],
    measure: Callable[[Results], Sequence[Measurement | Verdict]],
    storms: Callable[[Results], Mapping[str, Storm]],
    label: Callable[[str, int, str], str],
) -> Experiment:
    return Experiment(
        id=figure,
        title=title,
        cases=tuple(cases),
        windows=windows_in_words,
        quick={"run.duration": _QUICK_DURATION},
        quick_note=_QUICK_NOTE,
        measure=measure,
        draw=partial(_draw, figure, forest, storms),
        tabulate=partial(_tabulated, storms),
        plot=partial(_plot, figure, label),
    )


FIG9A, FIG9B = (
    _experiment(
        figure,
        f"Figure {figure[3:]}: moving silent congestion trees, {v_percent} % V and "
        f"{100 - v_percent} % C nodes",
        f"{v_percent} % V and {100 - v_percent} % C nodes",
        [
            moving_silent(
                v_percent,
                moves,
                control,
                seeds=_seeds(control, is_ratio=moves in _STATED_MOVES[figure]),
                quick=moves in _QUICK_MOVES[figure],
            )
            for moves in MOVES
            for control in CONTROLS
        ],
        partial(_measure_fig9, figure, v_percent),
        partial(_fig9_storms, v_percent),
        partial(_fig9_case, v_percent),
    )
    for figure, v_percent in (("fig9a", 20), ("fig9b", 60))
)

FIG10 = _experiment(
    "fig10",
    "Figure 10: moving windy congestion trees, 100 % B nodes",
    "B nodes only,",
    [
        moving_windy(
            p,
            moves,
            control,
            seeds=_seeds(control, is_ratio=False),
            quick=moves in _QUICK_MOVES["fig10"],
        )
        for p in _P_PERCENT
        for moves in MOVES
        for control in CONTROLS
    ],
    _measure_fig10,
    _named_fig10_storms,
    _fig10_case,
)

EXPERIMENTS = (FIG9A, FIG9B, FIG10)
