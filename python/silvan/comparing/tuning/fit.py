"""Fitting unstated parameters to measured numbers, and what the numbers say about them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from silvan.comparing.tuning.problem import FitProblem, FitTarget, cases_of
from silvan.comparing.tuning.runs import Runs, open_runs, require_valid
from silvan.comparing.tuning.search import BATCH, Found, Trial, search
from silvan.errors import SilvanError
from silvan.inputs.toml_text import TomlValue

IDENTIFIED = 0.5
"""Largest part of the range with an equally good fit of an identified parameter."""

ENOUGH = 30
"""Trials per parameter that a statement needs."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Information of the targets on one parameter.

    ``lowest`` to ``highest`` is the interval in which some trial has a sum of squared errors, in
    tolerances, of at most 1 above the best, and ``part`` its part of the range. ``importance`` is
    the share in the variance of the errors.
    """

    key: str
    start: TomlValue
    fitted: TomlValue
    lowest: TomlValue
    highest: TomlValue
    part: float
    importance: float | None
    is_identified: bool | None


@dataclass(frozen=True, slots=True)
class FitRow:
    """A target with the numbers of the default and the fitted parameters, means over seeds."""

    id: str
    value: float
    tol: float
    held_out: bool
    start: float | None
    fitted: float | None
    start_elsewhere: float | None
    fitted_elsewhere: float | None

    def is_within(self, number: float | None) -> bool:
        """Tell whether a number is within the tolerance."""
        return number is not None and abs(number / self.value - 1) <= self.tol


@dataclass(frozen=True, slots=True)
class FitResult:
    """Result of a fit.

    Losses are mean squared errors in tolerances by trial. The front has trials that no other beats
    in the root-mean-square errors of all groups. ``runs`` excludes the folder's.
    """

    name: str
    found: Found
    losses: dict[int, float]
    front: list[dict[str, Any]]
    profiles: tuple[Profile, ...]
    rows: tuple[FitRow, ...]
    runs: int

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values, for JSON."""
        return {
            "name": self.name,
            "trials": [
                {"number": one.number, "drawn": one.drawn, "loss": self.losses.get(one.number)}
                for one in self.found.trials
            ],
            "best": self.found.best.number,
            "front": self.front,
            "parameters": [asdict(one) for one in self.profiles],
            "targets": [asdict(one) for one in self.rows],
        }


def fit(
    problem: FitProblem,
    out: Path,
    *,
    trials: int,
    seeds: int = 1,
    check_seeds: int = 1,
    seed: int = 1,
    batch: int = BATCH,
    timeout_s: float | None = None,
    scheduler: str = "local",
    workers: int | None = None,
    overwrite: bool = False,
    report: Callable[[str], object] = lambda _text: None,
) -> FitResult:
    """Fit parameters to numbers; ``check_seeds`` are further seeds for the result."""
    about = {
        "fit": problem.name,
        "parameters": [one.to_dict() for one in problem.space.parameters],
        "start": problem.start,
        "cases": problem.cases,
        "targets": [
            {"id": one.id, "measure": one.measure.text, "value": one.value, "tol": one.tol}
            for one in problem.fitted
        ],
        "seeds": seeds,
        "seed": seed,
        "batch": batch,
    }
    first = problem.scenario.seed
    used = range(first, first + seeds)
    others = range(first + seeds, first + seeds + check_seeds)
    errors: dict[int, list[float]] = {}
    number = 0
    with open_runs(
        out,
        problem.scenario,
        problem.keys,
        about,
        scheduler=scheduler,
        workers=workers,
        overwrite=overwrite,
        on_failure=report,
    ) as runs:
        for case in problem.cases:
            require_valid(runs, problem.values(case, problem.start), first, f"case {case}")

        def evaluate(drawn: Sequence[Mapping[str, float]]) -> list[tuple[float] | None]:
            nonlocal number
            losses: list[tuple[float] | None] = []
            for measured in _measured(problem, runs, drawn, problem.fitted, used):
                found = [
                    target.error(value)
                    for target, value in zip(problem.fitted, measured, strict=True)
                    if value is not None
                ]
                complete = len(found) == len(measured)
                if complete:
                    errors[number] = found
                losses.append((_mean_square(found),) if complete else None)
                number += 1
            return losses

        best = math.inf

        def tell(fresh: Sequence[Trial]) -> None:
            nonlocal best
            best = min([best, *(one.objectives[0] for one in fresh if one.objectives)])
            last = fresh[-1].number + 1
            report(f"{last} of {trials} trials, best mean squared error {best:.3f} tolerances²")

        found = search(
            problem.space,
            evaluate,
            ["minimize"],
            start=problem.start,
            trials=trials,
            seed=seed,
            batch=batch,
            timeout_s=timeout_s,
            report=tell,
        )
        if not found.front:
            failed = out / "failed"
            if failed.is_dir() and any(failed.iterdir()):
                raise SilvanError("all trials failed", f"the scenarios are in {failed}")
            raise SilvanError(
                "no trial has a number for every target",
                "a formula divides by 0, or a rate has no hosts that it is of",
            )
        rows = _rows(problem, runs, found, used, others)
        done = runs.done
    losses = {number: _mean_square(one) for number, one in errors.items()}
    front = _front(problem, found, errors)
    profiles = _profiles(problem, found, losses)
    return FitResult(problem.name, found, losses, front, profiles, rows, done)


def _mean_square(errors: Sequence[float]) -> float:
    return statistics.fmean(one * one for one in errors)


def _measured(
    problem: FitProblem,
    runs: Runs,
    drawn: Sequence[Mapping[str, float]],
    targets: Sequence[FitTarget],
    seeds: Sequence[int],
) -> list[list[float | None]]:
    cases = cases_of(targets)
    wanted = {name for target in targets for name in target.measure.names}
    jobs = [(place, case, seed) for place in range(len(drawn)) for case in cases for seed in seeds]
    points = [runs.point(problem.values(case, drawn[place]), seed) for place, case, seed in jobs]
    numbers: dict[tuple[int, int], dict[str, float | None]] = {}
    for (place, case, seed), measures in zip(jobs, runs.measure(points), strict=True):
        named = numbers.setdefault((place, seed), {})
        named.update({f"{case}.{name}": one for name, one in (measures or {}).items()})
        if f"{case}.tmax_gbps" in wanted:
            named[f"{case}.tmax_gbps"] = problem.tmax_gbps(case, seed)

    def mean(place: int, target: FitTarget) -> float | None:
        values = [target.measure.value(numbers[place, seed]) for seed in seeds]
        known = [one for one in values if one is not None and math.isfinite(one)]
        return statistics.fmean(known) if len(known) == len(values) else None

    return [[mean(place, target) for target in targets] for place in range(len(drawn))]


def _rows(
    problem: FitProblem, runs: Runs, found: Found, used: Sequence[int], others: Sequence[int]
) -> tuple[FitRow, ...]:
    both = [problem.start, found.best.drawn]
    here = _measured(problem, runs, both, problem.targets, used)
    empty: list[list[float | None]] = [[None] * len(problem.targets)] * 2
    there = _measured(problem, runs, both, problem.targets, others) if others else empty
    return tuple(
        FitRow(one.id, one.value, one.tol, one.held_out, *numbers)
        for one, *numbers in zip(problem.targets, *here, *there, strict=True)
    )


def _front(
    problem: FitProblem, found: Found, errors: Mapping[int, Sequence[float]]
) -> list[dict[str, Any]]:
    groups = list(dict.fromkeys(one.group for one in problem.fitted))
    scores = {
        number: [
            math.sqrt(
                _mean_square(
                    [
                        error
                        for target, error in zip(problem.fitted, one, strict=True)
                        if target.group == group
                    ]
                )
            )
            for group in groups
        ]
        for number, one in errors.items()
    }

    def is_beaten(number: int) -> bool:
        own = scores[number]
        return any(
            other != own and all(a <= b for a, b in zip(other, own, strict=True))
            for other in scores.values()
        )

    drawn = {one.number: one.drawn for one in found.trials}
    front = [number for number in scores if not is_beaten(number)]
    front.sort(key=lambda number: _mean_square(errors[number]))
    return [
        {
            "number": number,
            "values": problem.space.in_words(drawn[number]),
            "errors": dict(zip(groups, scores[number], strict=True)),
        }
        for number in front
    ]


def _profiles(
    problem: FitProblem, found: Found, losses: Mapping[int, float]
) -> tuple[Profile, ...]:
    count = len(problem.fitted)
    limit = losses[found.best.number] + 1 / count
    good = [one.drawn for one in found.trials if losses.get(one.number, math.inf) <= limit]
    enough = ENOUGH * len(problem.space.parameters)
    profiles = []
    for one in problem.space.parameters:
        values = sorted(drawn[one.key] for drawn in good)
        part = one.fraction(values[-1]) - one.fraction(values[0])
        profiles.append(
            Profile(
                one.key,
                one.in_scenario(problem.start[one.key]),
                one.in_scenario(found.best.drawn[one.key]),
                one.in_scenario(values[0]),
                one.in_scenario(values[-1]),
                part,
                found.importance.get(one.key),
                part <= IDENTIFIED if len(losses) >= enough else None,
            )
        )
    return tuple(profiles)
