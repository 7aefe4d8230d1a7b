"""Congestion measured on Leonardo (HDR InfiniBand, Dragonfly+), predicted."""

from __future__ import annotations

import csv
import itertools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from silvan.reproduce.experiment import (
    ClauseResult,
    Experiment,
    Measurement,
    PointTable,
    Results,
    Verdict,
)
from silvan.reproduce.shapes import Clause, judge
from silvan.results.result import Result
from silvan_papers.leonardo2025_jobs import SIZES, LeonardoJob, cases, cells, jobs, label, states
from silvan_papers.papers import paper

_LEFT_OUT = 8
# Ratio of a slow cell to its quiet base.
SLOW = 1.3
_WINDOWS = ("all iterations", "the second half of the iterations")
_PS_PER_US = 1e6


def slowest_us(result: Result, *, steady: bool = False) -> float:
    """Average the slowest rank over iterations, in µs; ``steady`` omits the first half."""
    marks = result.tables["program_marks"]
    program, index, begin, end = (
        marks[name].to_numpy() for name in ("program", "index", "begin_ps", "end_ps")
    )
    times = np.zeros(int(index[program == 0].max()) + 1)
    spent = (end - begin)[program == 0] / _PS_PER_US
    np.maximum.at(times, index[program == 0], spent)
    return float(times[len(times) // 2 if steady else 0 :].mean())


def predictions(results: Results, *, steady: bool = False) -> dict[tuple[str, int], float]:
    """Predict the mean time of each job and size that has been run, in microseconds."""
    seen = {name: slowest_us(runs[0], steady=steady) for name, runs in results.items() if runs}
    found = {}
    for job, size in itertools.product(jobs().values(), SIZES):
        names = [label(job, size, aggressors=state) for state in states(job)]
        if all(name in seen for name in names):
            found[job.name, size] = job.mean_us(seen[names[0]], seen[names[-1]])
    return found


@dataclass(frozen=True, slots=True)
class Cell:
    """A measured cell and its prediction: mean times of the slowest rank, and the quiet base."""

    job: LeonardoJob
    size: int
    measured_us: float
    predicted_us: float
    base_us: float

    @property
    def is_slow(self) -> bool:
        """True if it was measured slower than 1.3 times its quiet base."""
        return self.measured_us > SLOW * self.base_us

    @property
    def factor(self) -> float:
        """Predicted over measured time."""
        return self.predicted_us / self.measured_us


def compared(predicted: Mapping[tuple[str, int], float]) -> list[Cell]:
    """Put predictions next to what was measured, without the rows of 8 B."""
    known, rows = jobs(), cells()
    base = {
        (row["nodes"], row["victim"], row["bytes"]): float(row["mean_us"])
        for row in rows
        if row["aggressor"] == "none"
    }
    return [
        Cell(
            known[row["job"]],
            size,
            float(row["mean_us"]),
            predicted[row["job"], size],
            base[row["nodes"], row["victim"], row["bytes"]],
        )
        for row in rows
        if (size := int(row["bytes"])) != _LEFT_OUT and (row["job"], size) in predicted
    ]


def share_within(factors: Iterable[float], limit: float) -> float:
    """Compute the part of factors within a limit, above and below 1.

    >>> share_within([1.0, 1.9, 0.4], 2.0)
    0.6666666666666666
    """
    inside = [1 / limit <= factor <= limit for factor in factors]
    return statistics.fmean(inside) if inside else 0.0


def kendall_tau(one: Sequence[float], other: Sequence[float]) -> float:
    """Compute Kendall's tau-a: pairs in the same order less those in the other, over all pairs.

    >>> kendall_tau([1, 2, 3], [10, 30, 20])
    0.3333333333333333
    """
    a, b = np.array(one), np.array(other)
    upper = np.triu_indices(len(a), 1)
    if not len(upper[0]):
        return 1.0
    signs = np.sign(a[:, None] - a)[upper] * np.sign(b[:, None] - b)[upper]
    return float(signs.mean())


def placements_tau(found: Sequence[Cell]) -> float:
    """Average Kendall's tau over victims, sizes and numbers of nodes with a slow job."""
    groups: dict[tuple[str, int, int], list[Cell]] = {}
    for cell in found:
        if cell.job.aggressor != "none":
            groups.setdefault((cell.job.victim, cell.size, cell.job.nodes), []).append(cell)
    taus = [
        kendall_tau([one.measured_us for one in group], [one.predicted_us for one in group])
        for group in groups.values()
        if len(group) > 1 and any(one.is_slow for one in group)
    ]
    return statistics.fmean(taus) if taus else 0.0


def _scores(found: Sequence[Cell]) -> tuple[float, ...]:
    slow = [cell.factor for cell in found if cell.is_slow]
    every = [cell.factor for cell in found]
    shares = (share_within(one, limit) for one in (slow, every) for limit in (1.3, 2.0))
    return (*shares, placements_tau(found))


def _measure(results: Results) -> list[Measurement | Verdict]:
    windows = [compared(predictions(results, steady=steady)) for steady in (False, True)]
    goals = (
        ("slow.within_1_3", "of the slow cells within a factor of 1.3", 0.60),
        ("slow.within_2", "of the slow cells within a factor of 2", 0.85),
        ("all.within_1_3", "of all cells within a factor of 1.3", 0.85),
        ("all.within_2", "of all cells within a factor of 2", 0.95),
        ("tau", "of pairs of placements, ordered less misordered (Kendall's tau)", 0.80),
    )
    scores = [_scores(found) for found in windows]

    def clause(place: int, words: str, goal: float) -> Clause:
        def check(window: int) -> ClauseResult:
            value = scores[window][place]
            return ClauseResult(value >= goal, f"{value:.2f}")

        return Clause(f"at least {goal:.2f} {words}", check)

    def quiet(window: int) -> ClauseResult:
        found = windows[window]
        none = share_within([cell.base_us / cell.measured_us for cell in found], 1.3)
        ours = share_within([cell.factor for cell in found], 1.3)
        return ClauseResult(ours > none, f"{ours:.2f} against {none:.2f}")

    beats = Clause("more cells within 1.3 than the quiet base itself has", quiet)
    return [
        *(
            judge(f"congestion.{name}", [clause(place, words, goal)])
            for place, (name, words, goal) in enumerate(goals)
        ),
        judge("congestion.beats_quiet", [beats]),
    ]


def _tabulate(results: Results) -> PointTable:
    header = ("job", "nodes", "victim", "aggressor", "bytes", "predicted_us", "measured_us")
    predicted = predictions(results)
    known = {(cell.job.name, cell.size): cell for cell in compared(predicted)}
    rows = []
    for (name, size), value in predicted.items():
        job, cell = jobs()[name], known.get((name, size))
        measured = "" if cell is None else cell.measured_us
        rows.append((name, job.nodes, job.victim, job.aggressor, size, value, measured))
    return PointTable(header, tuple(rows))


def write_predictions(predicted: Mapping[tuple[str, int], float], file: Path) -> None:
    """Write predictions: job, victim, bytes, and the mean time in microseconds."""
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("job", "victim", "bytes", "mean_us"))
        known = jobs()
        for (name, size), value in predicted.items():
            writer.writerow((name, known[name].victim, size, f"{value:.3f}"))


def _draw(results: Results, folder: Path) -> Sequence[Path]:
    from silvan_papers.figures.leonardo2025 import draw_cells

    predicted = predictions(results)
    file = folder / "predictions.csv"
    write_predictions(predicted, file)
    return [file, *draw_cells(compared(predicted), folder=folder, stem="leonardo2025")]


CONGESTION = Experiment(
    id="congestion",
    title="Mean times of all-gathers and all-to-alls beside aggressors",
    cases=cases(),
    windows=_WINDOWS,
    quick={"run.duration": "1 s"},
    quick_note="steady incasts on up to 32 nodes, three sizes",
    measure=_measure,
    draw=_draw,
    tabulate=_tabulate,
)

PAPER = paper("leonardo2025", (CONGESTION,))
