"""The arena from start to end: published settings, tuning, tuned settings, the judgement."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from silvan.comparing.arena.definition import Arena, Case
from silvan.comparing.arena.judge import Entry, judge
from silvan.comparing.arena.measure import MEASURE
from silvan.comparing.arena.objective import require_quantities
from silvan.comparing.arena.store import Measured, Run, Store
from silvan.comparing.baselines import Baseline, fitting
from silvan.comparing.comparison import choose_among, with_probes
from silvan.comparing.tuning.search import search
from silvan.comparing.tuning.settings import search_of
from silvan.errors import ScenarioError
from silvan.execution.scheme_check import is_in_python, require_scheme
from silvan.extras import require_extra
from silvan.folders import exclusive, require_writable
from silvan.inputs.toml_text import TomlValue
from silvan.sweeping.outcome import Succeeded
from silvan.sweeping.plan import require_few
from silvan.sweeping.sweep import SCHEME_LIMIT_S, outcomes, require_scheduler, scheduler_of
from silvan.sweeping.work import Task

PUBLISHED, TUNED = "published", "tuned"

BATCH = 8

SAMPLER_SEED = 1


@dataclass(frozen=True, slots=True)
class ArenaProgress:
    """Progress of an arena: finished runs of the step, or prepared schemes."""

    step: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class ArenaResult:
    """Result of an arena: tuned settings that beat the published, and reasons of absent schemes."""

    arena: Arena
    entries: tuple[Entry, ...]
    settings: dict[str, dict[str, dict[str, TomlValue]]]
    absent: dict[str, dict[str, str]]
    made: int
    wall_s: float


@dataclass(slots=True)
class Runner:
    """Makes runs on a scheduler, and keeps what came of them."""

    store: Store
    scheduler: str
    workers: int | None
    limit_s: float | None
    report: Callable[[ArenaProgress], object]
    made: int = 0
    failed: list[str] = field(default_factory=list)

    def measure(self, step: str, runs: Sequence[Run]) -> list[Measured]:
        """Return what comes of all runs, in their order."""
        todo = self.store.missing(runs)
        total = len({run.key for run in runs})
        kept = total - len(todo)
        self.report(ArenaProgress(step, kept, total))
        tasks = [
            Task(
                run.text,
                run.seed,
                tables=False,
                limit_s=self.limit_s,
                measure=MEASURE,
                # Threads wait for each other, which would count as processor time.
                threads=1,
            )
            for run in todo
        ]
        with closing(outcomes(self.scheduler, tasks, self.workers)) as ended:
            for number, outcome in enumerate(ended, 1):
                run = todo[outcome.index]
                if isinstance(outcome, Succeeded):
                    made = outcome.finished
                    self.store.keep(run, Measured(made.measures, made.processor_s))
                    self.made += 1
                else:
                    self.store.keep(run, Measured(None, 0.0, outcome.error))
                self.report(ArenaProgress(step, kept + number, total))
        found = [self.store.get(run) for run in runs]
        return [one for one in found if one is not None]


def run_arena(
    arena: Arena,
    root: Path,
    schemes: Sequence[str] = (),
    *,
    added: Mapping[str, TomlValue] | None = None,
    scheduler: str = "local",
    workers: int | None = None,
    run_timeout_s: float | None = None,
    report: Callable[[ArenaProgress], object] = lambda _progress: None,
) -> ArenaResult:
    """Run every scheme in every case; ``added`` are keys of a scheme in a Python file."""
    begun = time.monotonic()
    require_scheduler(scheduler)
    if arena.trials > 1:
        require_extra("tune", "searches")
    parts = {one.name: taking_part(one, schemes, added) for one in arena.cases}
    sides = {name: part.sides for name, part in parts.items()}
    absent = {name: part.absent for name, part in parts.items()}
    require_few(sum(map(len, sides.values())) * len(arena.seeds))
    require_python_scheme(arena, sides, run_timeout_s)
    require_writable(root)
    with exclusive(root, "arena"), scheduler_of(scheduler, workers) as address:
        runner = Runner(Store(root), address, workers, run_timeout_s, report)
        check_objectives(runner, arena, sides)
        published = {
            (case.name, one.name, PUBLISHED): dict(one.overrides)
            for case in arena.cases
            for one in sides[case.name]
        }
        runs = _measure(runner, PUBLISHED, arena, published)
        settings: dict[str, dict[str, dict[str, TomlValue]]] = {}
        if arena.trials > 1:
            found = _tune(runner, arena, sides)
            settings = {
                group: {n: words for n, (words, _) in of.items()} for group, of in found.items()
            }
            tuned = {
                (case.name, one.name, TUNED): {**one.overrides, **found[case.group][one.name][1]}
                for case in arena.cases
                for one in sides[case.name]
                if one.name in found.get(case.group, {})
            }
            runs |= _measure(runner, TUNED, arena, tuned)
        entries = [entry for case in arena.cases for entry in judge(case, sides[case.name], runs)]
    wall_s = time.monotonic() - begun
    return ArenaResult(arena, tuple(entries), settings, absent, runner.made, wall_s)


def require_python_scheme(
    arena: Arena, sides: Mapping[str, Sequence[Baseline]], run_timeout_s: float | None
) -> None:
    """Build the scheme in a Python file in its first case; a timeout is no error."""
    limit_s = min(SCHEME_LIMIT_S, run_timeout_s or SCHEME_LIMIT_S)
    for case in arena.cases:
        own = "python" if case.scenario.has_python_scheme else None
        for one in sides[case.name]:
            if is_in_python(one.overrides.get("control.scheme", own)):
                (run,) = prepared(case, one.overrides, arena.seeds[:1])
                require_scheme(run.scenario, run.seed, limit_s)
                return


def check_objectives(runner: Runner, arena: Arena, sides: Mapping[str, Sequence[Baseline]]) -> None:
    """Run each case once without control, and refuse objectives of missing quantities."""
    runs = [
        run
        for case in arena.cases
        for run in prepared(case, sides[case.name][0].overrides, arena.seeds[:1])
    ]
    for case, off in zip(arena.cases, runner.measure("without control", runs), strict=True):
        require_quantities(case.name, case.objective, off)


@dataclass(frozen=True, slots=True)
class TakingPart:
    """The schemes of a case, no control first, and reasons of absent schemes by name."""

    sides: list[Baseline]
    absent: dict[str, str]


def taking_part(
    case: Case, schemes: Sequence[str], added: Mapping[str, TomlValue] | None = None
) -> TakingPart:
    """Choose the named schemes, or all, that suit a case."""
    fits = fitting(case.scenario, added)
    named = [name for name in schemes if name not in fits.unsuited]
    # Without a scheme that takes part, no control runs alone.
    chosen = named or (["none"] if schemes else [])
    has_python = bool(added) or case.scenario.has_python_scheme
    return TakingPart(
        choose_among(case.scenario, fits, chosen, has_python=has_python),
        {name: why for name, why in fits.unsuited.items() if name in schemes or not schemes},
    )


_Key = tuple[str, str, str]


def _measure(
    runner: Runner, step: str, arena: Arena, settings: Mapping[_Key, Mapping[str, TomlValue]]
) -> dict[_Key, list[tuple[Run, Measured]]]:
    cases = {one.name: one for one in arena.cases}
    runs: dict[_Key, list[Run]] = {}
    for number, (key, overrides) in enumerate(settings.items()):
        runner.report(ArenaProgress(f"{step}, preparing", number, len(settings)))
        runs[key] = prepared(cases[key[0]], overrides, arena.seeds)
    measured = iter(runner.measure(step, [run for of_key in runs.values() for run in of_key]))
    return {key: [(run, next(measured)) for run in of_key] for key, of_key in runs.items()}


def prepared(case: Case, overrides: Mapping[str, TomlValue], seeds: Sequence[int]) -> list[Run]:
    """Prepare one run per seed, checked once if only the seed differs."""
    programs = case.scenario.to_dict()["traffic"].get("program", [])
    drawn = [place for place, one in enumerate(programs) if one.get("placement") == "random"]
    try:
        whole = case.scenario.override({**_placed(drawn, seeds[0]), **overrides})
        checked = with_probes(whole)
        of_seeds = [checked.override(_placed(drawn, one)) if drawn else checked for one in seeds]
        return [
            Run.of(one.single_run(seed), seed) for one, seed in zip(of_seeds, seeds, strict=True)
        ]
    except ScenarioError as error:
        where = f"case {case.name}"
        raise ScenarioError(error.message, where, hint=error.hint, key=error.key) from None


def _placed(programs: Sequence[int], seed: int) -> dict[str, TomlValue]:
    return {f"traffic.program.{place}.placement-seed": seed for place in programs}


def _tune(
    runner: Runner, arena: Arena, sides: Mapping[str, Sequence[Baseline]]
) -> dict[str, dict[str, tuple[dict[str, TomlValue], dict[str, TomlValue]]]]:
    found: dict[str, dict[str, tuple[dict[str, TomlValue], dict[str, TomlValue]]]] = {}
    for case in arena.cases:
        if not case.is_tuned:
            continue
        for one in sides[case.name]:
            better = _tune_one(runner, arena, case, one, sides[case.name][0])
            if better is not None:
                found.setdefault(case.group, {})[one.name] = better
    return found


def _tune_one(
    runner: Runner, arena: Arena, case: Case, baseline: Baseline, without: Baseline
) -> tuple[dict[str, TomlValue], dict[str, TomlValue]] | None:
    wanted = search_of(case.scenario.override(baseline.overrides))
    if wanted is None:
        return None
    step = f"tuning {baseline.name} on {case.name}"
    seeds = arena.tuning_seeds
    space = wanted.space
    base = {**baseline.overrides, **wanted.fixed}

    def evaluate(drawn: Sequence[Mapping[str, float]]) -> list[tuple[float, ...] | None]:
        runs = prepared(case, without.overrides, seeds)
        places: list[int | None] = []
        for one in drawn:
            try:
                tried = prepared(case, {**base, **space.overrides(one)}, seeds)
            except ScenarioError:  # values that are impossible together, such as Kmin above Kmax
                if one == wanted.start:
                    raise
                places.append(None)
                continue
            places.append(len(runs))
            runs += tried
        measured = runner.measure(step, runs)
        off = measured[: len(seeds)]
        values: list[tuple[float, ...] | None] = []
        for place in places:
            row = measured[place : place + len(seeds)] if place is not None else []
            reached = case.objectives(row, off)
            mean = math.nan if reached is None else statistics.fmean(reached)
            values.append((mean,) if math.isfinite(mean) else None)
        return values

    result = search(
        space,
        evaluate,
        [case.objective.direction],
        start=wanted.start,
        trials=arena.trials,
        seed=SAMPLER_SEED,
        batch=BATCH,
    )
    if not result.front or result.best.number == 0:
        return None
    return (
        space.in_words(result.best.drawn),
        {**wanted.fixed, **space.overrides(result.best.drawn)},
    )
