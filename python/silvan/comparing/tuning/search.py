"""A search by Optuna that is a function of its seed and of what the runs measure."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from silvan.comparing.tuning.space import Space
from silvan.extras import require_extra

if TYPE_CHECKING:
    import optuna

BATCH = 4

STARTUP = 12
"""Random trials before the sampler models anything, including the start."""

Evaluate = Callable[[Sequence[Mapping[str, float]]], Sequence[Sequence[float] | None]]


@dataclass(frozen=True, slots=True)
class Trial:
    """Values that a search has tried; of choices, the index. No objectives after a failure."""

    number: int
    drawn: dict[str, float]
    objectives: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """Result of a search; the front has trials that no other beats in all objectives."""

    trials: tuple[Trial, ...]
    front: tuple[int, ...]
    importance: dict[str, float]

    @property
    def best(self) -> Trial:
        """The best trial; of several objectives, the first of the front."""
        return self.trials[self.front[0]]


def search(
    space: Space,
    evaluate: Evaluate,
    directions: Sequence[str],
    *,
    start: Mapping[str, float],
    trials: int,
    seed: int,
    batch: int = BATCH,
    timeout_s: float | None = None,
    report: Callable[[Sequence[Trial]], object] | None = None,
) -> Found:
    """Search for the best values of some parameters.

    One objective is searched by TPE (tree-structured Parzen estimators), several by NSGA-II. Equal
    seeds, batches and evaluations give equal trials; more trials begin with the same ones.
    """
    require_extra("tune", "searches")
    import optuna
    from optuna.trial import TrialState

    begun = time.monotonic()
    with _quiet():
        named = [optuna.study.StudyDirection[one.upper()] for one in directions]
        study = optuna.create_study(directions=named, sampler=_sampler(directions, seed))
        study.enqueue_trial(dict(start))
        done: list[Trial] = []
        while len(done) < trials:
            if done and timeout_s is not None and time.monotonic() - begun > timeout_s:
                break
            asked = [study.ask() for _ in range(min(batch, trials - len(done)))]
            drawn = [space.suggest(one) for one in asked]
            fresh = []
            for one, values, objectives in zip(asked, drawn, evaluate(drawn), strict=True):
                if objectives is None:
                    study.tell(one, state=TrialState.FAIL)
                else:
                    study.tell(one, list(objectives))
                fresh.append(Trial(one.number, values, tuple(objectives or ())))
            done += fresh
            if report is not None:
                report(fresh)
        return Found(tuple(done), _front(study), _importance(study))


def _sampler(directions: Sequence[str], seed: int) -> optuna.samplers.BaseSampler:
    import optuna

    if len(directions) > 1:
        return optuna.samplers.NSGAIISampler(population_size=24, seed=seed)
    return optuna.samplers.TPESampler(
        seed=seed, n_startup_trials=STARTUP, multivariate=True, constant_liar=True
    )


def _front(study: optuna.Study) -> tuple[int, ...]:
    if not any(trial.values for trial in study.trials):
        return ()
    if len(study.directions) == 1:
        return (study.best_trial.number,)
    rising = study.directions[0].name == "MAXIMIZE"
    front = sorted(study.best_trials, key=lambda one: (-1 if rising else 1) * one.values[0])
    return tuple(one.number for one in front)


def _importance(study: optuna.Study) -> dict[str, float]:
    import optuna

    target = None
    if len(study.directions) > 1:

        def target(trial: optuna.trial.FrozenTrial) -> float:
            return float(trial.values[0])

    try:
        evaluator = optuna.importance.PedAnovaImportanceEvaluator()
        found = optuna.importance.get_param_importances(study, evaluator=evaluator, target=target)
    except (ValueError, RuntimeError, ZeroDivisionError):
        return {}
    return {key: float(value) for key, value in found.items() if value == value}


@contextmanager
def _quiet() -> Iterator[None]:
    import optuna

    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(level)
