"""Duration of an arena: its points, and their cost by the runs measured so far."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from silvan.comparing.arena.definition import Arena, Case
from silvan.comparing.arena.run import (
    PUBLISHED,
    ArenaProgress,
    Runner,
    check_objectives,
    prepared,
    require_python_scheme,
    taking_part,
)
from silvan.comparing.arena.store import Measured, Run, Store
from silvan.comparing.baselines import Baseline
from silvan.comparing.tuning.settings import search_of
from silvan.folders import exclusive, require_writable
from silvan.inputs.scenario import Scenario
from silvan.inputs.toml_text import TomlValue
from silvan.sweeping.plan import require_few
from silvan.sweeping.sweep import require_scheduler, scheduler_of


@dataclass(frozen=True, slots=True)
class Estimate:
    """Cost of a scheme in a case.

    ``run_s`` is processor time: measured on the full case, or on the reduced case and scaled by the
    runs without control.
    """

    case: str
    link: str
    scheme: str
    published: int
    tuned: int
    trials: int
    run_s: float
    hops_per_s: float
    is_measured: bool

    @property
    def points(self) -> int:
        """All its runs."""
        return self.published + self.tuned + self.trials

    @property
    def processor_s(self) -> float:
        """Processor time of all its runs, in seconds."""
        return self.points * self.run_s


def plan_arena(
    arena: Arena,
    reduced: Arena,
    root: Path,
    schemes: Sequence[str] = (),
    *,
    added: Mapping[str, TomlValue] | None = None,
    scheduler: str = "local",
    workers: int | None = None,
    run_timeout_s: float | None = None,
    report: Callable[[ArenaProgress], object] = lambda _progress: None,
) -> list[Estimate]:
    """Estimate the cost of an arena from runs of its reduced form and finished runs."""
    require_scheduler(scheduler)
    sides = {one.name: taking_part(one, schemes, added).sides for one in arena.cases}
    require_few(sum(map(len, sides.values())) * len(arena.seeds))
    small = {one.name: one for one in reduced.cases}
    require_python_scheme(arena, sides, run_timeout_s)
    require_writable(root)
    with exclusive(root, "arena"), scheduler_of(scheduler, workers) as address:
        store = Store(root)
        runner = Runner(store, address, workers, run_timeout_s, report)
        tried: dict[tuple[str, str], Run] = {}
        for case in arena.cases:
            for one in taking_part(small[case.name], schemes, added).sides:
                (tried[case.name, one.name],) = prepared(
                    small[case.name], one.overrides, reduced.seeds[:1]
                )
        check_objectives(runner, arena, sides)
        runner.measure(f"{PUBLISHED}, reduced", list(tried.values()))
        return [
            _estimate(arena, case, one, sides[case.name][0], store, tried)
            for case in arena.cases
            for one in sides[case.name]
        ]


def _estimate(
    arena: Arena,
    case: Case,
    baseline: Baseline,
    without: Baseline,
    store: Store,
    tried: Mapping[tuple[str, str], Run],
) -> Estimate:
    finished = _finished(store, prepared(case, baseline.overrides, arena.seeds))
    own = _finished(store, [tried[case.name, baseline.name]])
    if finished:
        run_s = statistics.fmean(one.processor_s for one in finished)
    else:
        off = _finished(store, [tried[case.name, without.name]])
        full = _finished(store, prepared(case, without.overrides, arena.seeds[:1]))
        longer = full[0].processor_s / off[0].processor_s if full and off else float("nan")
        run_s = own[0].processor_s * longer if own else float("nan")
    known = [*own, *finished]
    hops = sum(one.numbers["packet_hops"] for one in known if one.numbers)
    spent_s = sum(one.processor_s for one in known)
    return Estimate(
        case.name,
        case.link,
        baseline.name,
        *_counts(arena, case, baseline, without),
        run_s,
        hops / spent_s if spent_s else float("nan"),
        bool(finished),
    )


def _counts(
    arena: Arena, case: Case, baseline: Baseline, without: Baseline
) -> tuple[int, int, int]:
    seeds = len(arena.seeds)
    if arena.trials <= 1:
        return seeds, 0, 0
    tuned_on = arena.tuned_on(case.group)
    chosen = None if tuned_on is None else tuned_on.scenario.override(baseline.overrides)
    searched = chosen is not None and search_of(chosen) is not None
    of_trial = len(arena.tuning_seeds)
    # Without control, trials are judged by runs on the same seeds.
    trials = arena.trials * of_trial if searched else of_trial * (baseline.name == without.name)
    return seeds, seeds if searched else 0, trials if case.is_tuned else 0


def arena_runs(
    arena: Arena,
    schemes: Sequence[str] = (),
    *,
    added: Mapping[str, TomlValue] | None = None,
) -> list[tuple[Scenario, int]]:
    """List a scenario of each case, and its number of runs with all schemes and trials."""
    found = []
    for case in arena.cases:
        sides = taking_part(case, schemes, added).sides
        (run,) = prepared(case, sides[0].overrides, arena.seeds[:1])
        counts = (sum(_counts(arena, case, one, sides[0])) for one in sides)
        found.append((run.scenario, sum(counts)))
    return found


def _finished(store: Store, runs: Sequence[Run]) -> list[Measured]:
    found = [store.get(run) for run in runs]
    return [one for one in found if one is not None and one.numbers is not None]
