"""pft2021, Figs. 3 to 5: throttling strategies under GPCNeT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from silvan import gpcnet
from silvan.reproduce.experiment import (
    Case,
    Experiment,
    Finding,
    Measurement,
    PointTable,
    Results,
    Verdict,
)
from silvan.reproduce.shapes import Clause, judge

if TYPE_CHECKING:
    from silvan.measures import FloatArray
    from silvan.result import Result
    from silvan.toml_text import TomlValue

STUDY = "gpcnet"
WITHOUT = "none"

# The paper's best configuration, for AT-RI.
_ENTER, _ESCAPE = 0x250, 0x2A0
PAPERS_BEST = "AT-RI m=18, 0x250 0x2a0"

_SHIFTS_RIGHT = (8, 6, 4)
_SHIFTS_LEFT = (18, 20, 22)
STRATEGIES = ("FT-FI", "FT-RI", "AT-FI", "AT-RI")
# Thresholds of the grid: near where the paper's stand, and low enough to act before a buffer fills.
_THRESHOLDS = ((0x250, 0x200), (0x100, 0x80))

# One configuration of each strategy is drawn over the distribution without control.
_WINDOWS = ("the whole benchmark", "its second ring")


def _settings(strategy: str, strength: int, enter: int, escape: int) -> dict[str, TomlValue]:
    threshold, interval = strategy.split("-")
    fixed = interval == "FI"
    return {
        "control.pft.threshold": "fixed" if threshold == "FT" else "average",
        "control.pft.interval": "fixed" if fixed else "random",
        "control.pft.enter": enter,
        "control.pft.escape": escape,
        "control.pft.m": 0 if fixed else strength,
        "control.pft.n": strength if fixed else 0,
        "control.pft.k": 0,
    }


def label(strategy: str, strength: int, enter: int, escape: int) -> str:
    """Name a configuration as Fig. 5 does: strategy, m or n, and the thresholds.

    Examples
    --------
    >>> label("AT-RI", 18, 0x250, 0x2a0)
    'AT-RI m=18, 0x250 0x2a0'
    """
    letter = "n" if strategy.endswith("FI") else "m"
    return f"{strategy} {letter}={strength}, {enter:#x} {escape:#x}"


def _cases() -> tuple[Case, ...]:
    grid = [
        (strategy, strength, enter, escape)
        for strategy in STRATEGIES
        for strength in (_SHIFTS_RIGHT if strategy.endswith("FI") else _SHIFTS_LEFT)
        for enter, escape in _THRESHOLDS
    ]
    grid.append(("AT-RI", 18, _ENTER, _ESCAPE))
    return (
        Case(WITHOUT, STUDY, 1, {"control.scheme": "none"}),
        *(
            Case(label(*one), STUDY, 1, _settings(*one), quick=one[1] in (6, 18, 22))
            for one in grid
        ),
    )


@dataclass(frozen=True, slots=True)
class Processes:
    """What each process of the random rings has seen.

    Attributes
    ----------
    delays_us : ndarray of float
        Mean latency of every process in every ring.
    rates_mib : ndarray of float
        Mean bandwidth, in MiB/s.
    """

    delays_us: FloatArray
    rates_mib: FloatArray

    @classmethod
    def of(cls, result: Result, *, late: bool = False) -> Processes:
        """Read them from a run; late ones are those of the last ring."""
        chosen = (
            gpcnet.test(result.scenario, label) for label in ("rr-latency", "rr-bandwidth-sync")
        )
        (_, delays), (_, rates) = (gpcnet.values(result, test) for test in chosen)
        first = delays.shape[0] - 1 if late else 0
        return cls(delays[first:].ravel(), rates[first:].ravel())

    @property
    def ratio(self) -> float:
        """Bandwidth over delay: what the control factor compares."""
        return float(self.rates_mib.mean() / self.delays_us.mean())


def factors(results: Results, *, late: bool = False) -> dict[str, float]:
    """Compute F_C = (B_C / D_C) / (B_0 / D_0) of every configuration (equation (2))."""
    without = Processes.of(results[WITHOUT][0], late=late).ratio
    return {
        name: Processes.of(runs[0], late=late).ratio / without
        for name, runs in results.items()
        if name != WITHOUT
    }


def best(values: Mapping[str, float]) -> str:
    """Name the configuration with the largest control factor."""
    return max(values, key=lambda name: values[name])


def best_of_each(values: Mapping[str, float]) -> list[str]:
    """Name the best configuration of every strategy."""
    return [
        best({name: value for name, value in values.items() if name.startswith(strategy)})
        for strategy in STRATEGIES
    ]


def _moved(results: Results) -> Clause:
    def check(window: int) -> Finding:
        late = window == 1
        shown = best_of_each(factors(results))
        before = Processes.of(results[WITHOUT][0], late=late)
        facts, holds = [], True
        for name in shown:
            after = Processes.of(results[name][0], late=late)
            delay, rate = (
                float(np.median(a) / np.median(b) - 1)
                for a, b in (
                    (after.delays_us, before.delays_us),
                    (after.rates_mib, before.rates_mib),
                )
            )
            holds = holds and delay < 0 < rate
            facts.append(f"{name}: delay {delay:+.0%}, bandwidth {rate:+.0%}")
        return Finding(holds, "; ".join(facts))

    return Clause(
        "with the best configuration of each strategy the median process has a smaller latency and "
        "a larger bandwidth than without control",
        check,
    )


def _most(results: Results) -> list[Clause]:
    def configurations(window: int) -> Finding:
        values = factors(results, late=window == 1)
        above = sum(value > 1 for value in values.values())
        return Finding(2 * above > len(values), f"{above} of {len(values)}")

    def strategies(window: int) -> Finding:
        values = factors(results, late=window == 1)
        each = {name.split()[0]: values[name] for name in best_of_each(values)}
        facts = ", ".join(f"{name} {value:.2f}" for name, value in each.items())
        return Finding(sum(value > 1 for value in each.values()) > 2, facts)

    return [
        Clause("F_C is above 1 for more than half of the configurations", configurations),
        Clause("the best F_C is above 1 for at least three of the four strategies", strategies),
    ]


def _measure_fig3_4(results: Results) -> list[Measurement | Verdict]:
    return [judge("fig3_4", [_moved(results)])]


def _measure_fig5(results: Results) -> list[Measurement | Verdict]:
    values, late = factors(results), factors(results, late=True)
    winner = best(values)
    note = (
        f"the best of {len(values)} configurations, {winner}; "
        f"the paper's best, {PAPERS_BEST}, has {values[PAPERS_BEST]:.2f} here"
    )
    return [
        Measurement("fig5.best_control_factor", (values[winner],), (late[winner],), note),
        judge("fig5.most", _most(results)),
    ]


def _tabulate(results: Results) -> PointTable:
    rows = []
    values = {WITHOUT: 1.0, **factors(results)}
    for name, value in values.items():
        seen = Processes.of(results[name][0])
        rows.append((name, float(seen.delays_us.mean()), float(seen.rates_mib.mean()), value))
    return PointTable(("configuration", "delay_us", "bandwidth_mib_s", "F_C"), tuple(rows))


def _draw_fig3_4(results: Results, folder: Path) -> Sequence[Path]:
    from silvan.figures.pft2021 import draw_distributions

    shown = [WITHOUT, *best_of_each(factors(results))]
    seen = {name: Processes.of(results[name][0]) for name in shown}
    return draw_distributions(seen, folder=folder, stem="fig3_4")


def _draw_fig5(results: Results, folder: Path) -> Sequence[Path]:
    from silvan.figures.pft2021 import draw_factors

    return draw_factors(factors(results), marked=PAPERS_BEST, folder=folder, stem="fig5")


_QUICK: Mapping[str, TomlValue] = {
    "run.duration": "200 ms",
    "traffic.gpcnet.ranks-per-host": 4,
    "traffic.gpcnet.rings": 1,
    "traffic.gpcnet.latency-iterations": 4,
}
_QUICK_NOTE = "4 processes per port instead of 16, one ring, fewer configurations"

FIG3_4 = Experiment(
    id="fig3_4",
    title="Figures 3 and 4: delays and bandwidths of processes under GPCNeT",
    cases=_cases(),
    windows=_WINDOWS,
    quick=_QUICK,
    quick_note=_QUICK_NOTE,
    measure=_measure_fig3_4,
    draw=_draw_fig3_4,
    tabulate=None,
)

FIG5 = Experiment(
    id="fig5",
    title="Figure 5: the control factor of strategies and parameters",
    cases=_cases(),
    windows=_WINDOWS,
    quick=_QUICK,
    quick_note=_QUICK_NOTE,
    measure=_measure_fig5,
    draw=_draw_fig5,
    tabulate=_tabulate,
)
