"""pft2021, Fig. 1: the injection rate of a throttled interface, by formula and simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from silvan import _silvan
from silvan.inputs.toml_text import TomlValue
from silvan.reproduce import curves as figures
from silvan.reproduce.experiment import (
    Case,
    ClauseResult,
    Experiment,
    Measurement,
    PointTable,
    Results,
    Verdict,
)
from silvan.reproduce.registry import study
from silvan.reproduce.shapes import Clause, judge
from silvan.results.result import Result

STUDY = "interface"

# Fig. 1(a) and its caption: m = 0, k = 0, n from 8 to 12; and one n with k varying.
SHIFTS_RIGHT = (8, 9, 10, 11, 12)
ADDED = (0, 1, 2, 4, 8)
_ADDED_AT = 8
# Fig. 1(b): n = 0, k = 0, m from 15 to 22.
SHIFTS_LEFT = (15, 16, 17, 18, 19, 20, 21, 22)

# 8191 credits show the steps of n = 8 to 12; beyond 1024 the highest m sends nothing.
_FINE_A = (*range(0, 8192, 64), 8191)
_USED_A = (*range(0, 8192, 512), 8191)
_USED_B = tuple(range(0, 1025, 64))
_CYCLES = 200_000

# The engine runs with constant f(c) = k: gaps of k cycles, or chances of a cycle.
_GAPS = (0, 1, 3, 7)
_CHANCES = (0.75, 0.25)
_BITS = 32

Curve = Mapping[int, float]


def gap(used: int, *, m: int = 0, n: int = 0, k: int = 0) -> int:
    """Compute f(c) = 2^(m - n) c + k with the shifts of the hardware.

    >>> gap(1000, n=8), gap(1000, n=8, k=2), gap(3, m=4)
    (3, 5, 48)
    """
    return (used << m >> n) + k


def fixed_rate(used: int, *, n: int, k: int = 0) -> float:
    """Compute the injection rate with fixed intervals, as a fraction of the link's.

    >>> fixed_rate(1000, n=8)
    0.25
    """
    return 1 / (1 + gap(used, n=n, k=k))


def random_rate(used: int, *, m: int) -> float:
    """Compute the probability of sending in a cycle with random intervals.

    >>> random_rate(512, m=22), random_rate(1024, m=22)
    (0.5, 0.0)
    """
    return max(0.0, 1 - gap(used, m=m) / (1 << _BITS))


def _simulated(settings: Mapping[str, TomlValue], used: Sequence[int]) -> Curve:
    overrides = {f"control.pft.{key}": value for key, value in settings.items()}
    native = study("pft2021", STUDY).override(overrides)._native
    curve: dict[int, float] = {}
    for one in used:
        rate = _silvan.pft_injection_rate(native, one, _CYCLES, 1)
        assert rate is not None, "the study's scheme is pft"
        curve[one] = rate
    return curve


def curves_a() -> dict[str, tuple[Curve, Curve]]:
    """Give Fig. 1(a): by the formula and simulated, for each n, and for each k at n = 8."""
    wanted = {f"n = {n}": (n, 0) for n in SHIFTS_RIGHT}
    wanted |= {f"n = {_ADDED_AT}, k = {k}": (_ADDED_AT, k) for k in ADDED if k}
    return {
        name: (
            {used: fixed_rate(used, n=n, k=k) for used in _FINE_A},
            _simulated({"interval": "fixed", "m": 0, "n": n, "k": k}, _USED_A),
        )
        for name, (n, k) in wanted.items()
    }


def curves_b() -> dict[str, tuple[Curve, Curve]]:
    """Give Fig. 1(b): by the formula and simulated, for each m."""
    return {
        f"m = {m}": (
            {used: random_rate(used, m=m) for used in _USED_B},
            _simulated({"interval": "random", "m": m, "n": 0, "k": 0}, _USED_B),
        )
        for m in SHIFTS_LEFT
    }


def _cases() -> tuple[Case, ...]:
    fixed = (
        Case(f"FI {k}", STUDY, 1, {"control.pft.interval": "fixed", "control.pft.k": k})
        for k in _GAPS
    )
    chances = (
        Case(
            f"RI {chance:g}",
            STUDY,
            1,
            {"control.pft.interval": "random", "control.pft.k": round((1 - chance) * (1 << _BITS))},
        )
        for chance in _CHANCES
    )
    return (*fixed, *chances)


def _link_use(results: Results, label: str) -> float:
    packet_ps = 2080 * 8 * 10  # at 100 Gbit/s

    def of(run: Result) -> float:
        span_ps = run.scenario.duration_ps - run.scenario.warm_up_ps
        return float(run.classes["delivered_packets"][0].as_py()) * packet_ps / span_ps

    return fmean(of(run) for run in results[label])


def _falls(curves: Mapping[str, tuple[Curve, Curve]]) -> Clause:
    def check(_window: int) -> ClauseResult:
        every = [list(curve.values()) for both in curves.values() for curve in both]
        never_up = all(a >= b for one in every for a, b in pairwise(one))
        down = all(one[-1] < one[0] for one in every)
        ends = ", ".join(
            f"{name}: {simulated[_USED_A[-1]]:.3f}" for name, (_, simulated) in curves.items()
        )
        return ClauseResult(never_up and down, f"at the most credits {ends}")

    return Clause("every curve falls from the fewest to the most credits, and never rises", check)


def _agrees(curves: Mapping[str, tuple[Curve, Curve]], bound: float) -> Clause:
    def check(_window: int) -> ClauseResult:
        worst = max(
            abs(formula[used] - simulated[used])
            for formula, simulated in curves.values()
            for used in simulated
        )
        return ClauseResult(worst <= bound, f"at most {worst:.2g}")

    return Clause(f"the simulated interface is within {bound:g} of the formula", check)


def _in_the_engine(results: Results, wanted: Mapping[str, float]) -> Clause:
    def check(_window: int) -> ClauseResult:
        used = {label: _link_use(results, label) for label in wanted if label in results}
        facts = ", ".join(f"{used[label]:.4f} for {wanted[label]:.4g}" for label in used)
        holds = all(abs(used[label] - wanted[label]) <= 0.01 for label in used)
        return ClauseResult(holds, facts)

    return Clause("a host of the whole simulation has that rate within 0.01 of the link", check)


def _measure(results: Results) -> list[Measurement | Verdict]:
    fixed = {f"FI {k}": 1 / (1 + k) for k in _GAPS}
    chances = {f"RI {chance:g}": chance for chance in _CHANCES}
    curves, random_curves = curves_a(), curves_b()
    return [
        judge(
            "fig1a",
            [_falls(curves), _agrees(curves, 1e-4), _in_the_engine(results, fixed)],
        ),
        judge(
            "fig1b",
            [
                _falls_by_chance(random_curves),
                _agrees(random_curves, 0.006),
                _in_the_engine(results, chances),
            ],
        ),
    ]


def _falls_by_chance(curves: Mapping[str, tuple[Curve, Curve]]) -> Clause:
    def check(_window: int) -> ClauseResult:
        formulas = [list(formula.values()) for formula, _ in curves.values()]
        falls = all(a > b for one in formulas for a, b in pairwise(one))
        ends = {name: simulated[_USED_B[-1]] for name, (_, simulated) in curves.items()}
        down = all(end < 1 for end in ends.values())
        facts = ", ".join(f"{name}: {end:.3f}" for name, end in ends.items())
        return ClauseResult(falls and down, f"with {_USED_B[-1]} credits {facts}")

    return Clause("the probability falls with every step of c, for every m", check)


def _draw(_results: Results, folder: Path) -> Sequence[Path]:
    from silvan_papers.figures.pft2021 import draw_injection

    return draw_injection(curves_a(), curves_b(), folder=folder, stem="fig1")


def _tabulate(_results: Results) -> PointTable:
    rows = [
        (panel, name, float(used), formula[used], simulated[used])
        for panel, curves in (("a", curves_a()), ("b", curves_b()))
        for name, (formula, simulated) in curves.items()
        for used in list(simulated)[::4]
    ]
    return PointTable(("panel", "curve", "used_credits", "formula", "simulated"), tuple(rows))


def _plot(table: PointTable) -> list[figures.Curve]:
    found: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for panel, name, *numbers in table.rows:
        used, formula, simulated = map(float, numbers)
        found.setdefault((str(panel), str(name)), []).append((used, formula, simulated))
    from silvan_papers.figures.pft2021 import injection_colours

    colours = {
        (panel, name): colour
        for panel in ("a", "b")
        for name, colour in injection_colours(one for of, one in found if of == panel).items()
    }
    intervals = {"a": "fixed intervals", "b": "random intervals"}
    return [
        figures.Curve(
            f"Injection rate, {intervals[panel]}",
            "of the link",
            "credits in use",
            name,
            tuple(figures.CurvePoint(used, simulated, None, ()) for used, _, simulated in points),
            tuple((used, formula) for used, formula, _ in points),
            colour=colours[panel, name],
        )
        for (panel, name), points in found.items()
    ]


FIG1 = Experiment(
    id="fig1",
    title="Figure 1: what a throttled interface injects",
    cases=_cases(),
    windows=("the whole run", "the same"),
    quick={"run.duration": "1 ms"},
    quick_note="1 ms instead of 5 ms in the engine",
    measure=_measure,
    draw=_draw,
    tabulate=_tabulate,
    plot=_plot,
)
