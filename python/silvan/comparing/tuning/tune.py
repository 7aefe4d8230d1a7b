"""Settings of congestion control that serve an objective, checked on other placements."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from silvan._silvan import scheme_tables, schemes
from silvan.comparing.tuning.expression import Expression
from silvan.comparing.tuning.opensm_conf import (
    OpensmSettings,
    as_opensm_sets,
    require_default_ports,
)
from silvan.comparing.tuning.runs import OFF, Runs, open_runs, require_valid
from silvan.comparing.tuning.search import BATCH, Found, Trial, search
from silvan.comparing.tuning.settings import Search, amount_in, search_of
from silvan.comparing.tuning.space import POWER, SLOPE, Parameter, Space, require_inside
from silvan.errors import ScenarioError, SilvanError
from silvan.folders import write_text
from silvan.inputs.fabric_lists import stated
from silvan.inputs.quantities import Quantity
from silvan.inputs.scenario import Scenario
from silvan.inputs.toml_text import TomlValue, literal
from silvan.results.measures import MEASURES, require_measure

OPENSM = "ib-cc"

_TABLE = "control.ib-cc.adapter.cct"

OBJECTIVE = "maximize other_receivers_gbps * min(1, hotspots_gbps / (0.95 * off.hotspots_gbps))"
"""Default: the rate of other receivers, reduced if hotspots get less than 95 % of uncontrolled."""

CONF, TUNED, RESULT = "opensm.conf", "tuned.toml", "tune.json"

REFERENCES: Mapping[str, str] = {
    "start": "the settings before",
    "off": "congestion control off",
}

_COMPARED = {
    "better": "better than",
    "equal": "neither better nor worse than",
    "worse": "worse than",
    "unknown": "of an unknown value next to",
}


@dataclass(frozen=True, slots=True)
class Objective:
    """Measure to maximize or minimize; formulas of runs without control begin with ``off.``."""

    direction: str
    formula: Expression

    @classmethod
    def parse(cls, text: str) -> Objective:
        """Read an objective, such as ``maximize other_receivers_gbps``."""
        direction, _, formula = text.strip().partition(" ")
        if direction not in ("maximize", "minimize"):
            raise ScenarioError(
                f"{text!r} begins with neither maximize nor minimize",
                "--objective",
                hint="write for example maximize other_receivers_gbps",
            )
        return cls(direction, Expression.parse(formula, "--objective"))

    def __str__(self) -> str:
        return f"{self.direction} {self.formula.text}"


@dataclass(frozen=True, slots=True)
class Score:
    """Mean objectives and measures over seeds; not a number or None after a failure."""

    objectives: tuple[float | None, ...]
    measures: dict[str, float | None]


@dataclass(frozen=True, slots=True)
class TuneResult:
    """Result of tuning.

    Scores are of ``"off"``, ``"start"`` and ``"tuned"``, on the seeds of the search and on held-out
    seeds. ``seeds_place`` is true if seeds place hosts. Verdicts compare the tuned settings with
    ``"start"`` and ``"off"`` by objective: ``"better"``, ``"equal"``, ``"worse"`` or ``"unknown"``.
    Settings are written only if ``is_better``: better than the start in some objective and worse in
    none, and better in some than control off. ``runs`` excludes those read from the folder.
    """

    found: Found
    picked: Trial
    settings: dict[str, TomlValue]
    searched: dict[str, Score]
    held_out: dict[str, Score]
    seeds_place: bool
    verdicts: dict[str, tuple[str, ...]]
    comparisons: tuple[str, ...]
    is_better: bool
    front: list[dict[str, Any]]
    runs: int
    files: tuple[Path, ...]

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values, for JSON; the same however often it was stopped."""
        return {
            "trials": [asdict(one) for one in self.found.trials],
            "picked": self.picked.number,
            "settings": self.settings,
            "searched": {name: asdict(one) for name, one in self.searched.items()},
            "held_out": {name: asdict(one) for name, one in self.held_out.items()},
            "seeds_place": self.seeds_place,
            "verdicts": self.verdicts,
            "comparisons": self.comparisons,
            "is_better": self.is_better,
            "front": self.front,
            "importance": self.found.importance,
        }


def start_of(scenario: Scenario, parameters: Sequence[Parameter]) -> dict[str, float]:
    """Give the scenario's own values of some parameters; of choices, the place."""
    tables = scenario.settings()
    cct = tables["control"]["ib-cc"]["adapter"]["cct"]
    start: dict[str, float] = {SLOPE: float(cct.get("slope", 1.0)), POWER: 1.0}
    for one in parameters:
        if one.key in start:
            continue
        value: Any = tables
        for part in one.key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if one.choices:
            start[one.key] = one.choices.index(value) if value in one.choices else -1
        elif isinstance(value, int | float) and not isinstance(value, bool):
            start[one.key] = value
        elif isinstance(value, str) and one.unit:
            start[one.key] = _amount(one, value)
        else:
            what = (
                "the scenario has no such key"
                if value is None
                else f"{literal(value)} is no number to start from"
            )
            raise ScenarioError(
                f"{one.key}: {what}",
                "--vary",
                hint="vary keys that are numbers, add the unit to the range, or give choices with "
                "the scenario's own",
            )
    chosen = {one.key: start[one.key] for one in parameters}
    require_inside(parameters, chosen)
    return chosen


def _amount(one: Parameter, value: str) -> float:
    try:
        return amount_in(Quantity(value), one.unit.removeprefix("x ").strip())
    except ScenarioError as error:
        raise ScenarioError(
            f"{one.key}: {error.message}",
            "--vary",
            hint=f"the scenario has {value}: give the range such a unit",
        ) from None


def _require_effect(scenario: Scenario, parameters: Sequence[Parameter]) -> None:
    scheme = str(scenario.control.scheme)
    others = {name for name, _ in schemes()} - set(scheme_tables(scheme))
    for one in parameters:
        section, _, rest = one.key.partition(".")
        if section == "control" and rest.partition(".")[0] in others:
            raise ScenarioError(
                f"{one.key} has no effect: control.scheme is {scheme}",
                "--vary",
                hint=f"--set control.scheme={rest.partition('.')[0]} chooses the scheme",
            )


def _search(scenario: Scenario, parameters: Sequence[Parameter] | None) -> Search:
    scheme = str(scenario.control.scheme)
    is_opensm = scheme_tables(scheme) == [OPENSM]
    limit = len(OpensmSettings.of(scenario).entries) - 1 if is_opensm else 0
    if parameters is not None:
        _require_effect(scenario, parameters)
        start = start_of(scenario, parameters)
        return Search(Space(tuple(parameters), limit), start, {})
    declared = search_of(scenario)
    if declared is None:
        raise ScenarioError(
            f"the scheme {scheme} declares no parameters to search",
            hint="name some: --vary KEY=RANGE",
            key="control.scheme",
        )
    if not is_opensm:
        return declared
    # The table of delays is tuned by its last entry and a power: OpenSM sets all entries.
    own = [one for one in declared.space.parameters if one.key != f"{_TABLE}.slope"]
    slope = float(scenario.to_dict()["control"][OPENSM]["adapter"]["cct"].get("slope", 1.0))
    shape = (
        Parameter(SLOPE, min(0.05, slope), max(4.0, slope), log=True),
        Parameter(POWER, 0.5, 2.0),
    )
    space = Space((*own, *shape), limit)
    return Search(space, start_of(scenario, space.parameters), {})


def tune(
    scenario: Scenario,
    objectives: str | Sequence[str | Objective] = OBJECTIVE,
    *,
    out: str | Path,
    parameters: Sequence[Parameter] | None = None,
    trials: int = 60,
    seeds: int = 3,
    held_out_seeds: int = 3,
    seed: int = 1,
    batch: int = BATCH,
    pick: int | None = None,
    timeout_s: float | None = None,
    scheduler: str = "local",
    workers: int | None = None,
    point_timeout_s: float | None = None,
    overwrite: bool = False,
    report: Callable[[str], object] = lambda _text: None,
) -> TuneResult:
    """Search for settings of the scheme of a scenario, or of InfiniBand's if it has none.

    Parameters
    ----------
    scenario : Scenario
        Fabric and load, and the settings to start from.
    objectives : str, or sequence of str or Objective
        Measure to maximize or minimize, such as ``"minimize slowdown_p99"``; by default the rate of
        other receivers, less where hotspots get less than 95 % of their rate without control.
    out : str or Path
        Folder of runs and results; a search that was stopped goes on there.
    parameters : sequence of Parameter, optional
        Parameters to search; by default those that the scheme declares.
    trials : int
        Settings to try, the scenario's own included.
    seeds : int
        Seeds that each trial is run with, from the scenario's on.
    held_out_seeds : int
        Further seeds that only the start and the chosen settings are run with.
    seed : int
        Seed of the sampler.
    batch : int
        Trials drawn at once.
    pick : int, optional
        The trial to choose; by default the best, or the best in the first of several objectives.
    timeout_s : float, optional
        Time after which no further batch begins.
    scheduler, workers, point_timeout_s, overwrite
        As for :func:`silvan.sweep`.
    report : callable
        Called with lines on the progress.

    Returns
    -------
    TuneResult
        The chosen settings, and how they do.

    Raises
    ------
    SilvanError
        The scenario, an objective or a parameter is impossible, the folder holds another search,
        or all trials failed.
    """
    out = Path(out)
    every = [objectives] if isinstance(objectives, str) else objectives
    goals = [Objective.parse(one) if isinstance(one, str) else one for one in every]
    _require_known(goals)
    has_scheme = scenario.control.scheme != OFF["control.scheme"]
    tuned = scenario if has_scheme else scenario.override({"control.scheme": OPENSM})
    if scheme_tables(str(tuned.control.scheme)) == [OPENSM]:
        require_default_ports(scenario)
        tuned = tuned.override(as_opensm_sets(tuned))
    wanted = _search(tuned, parameters)
    space, start = wanted.space, wanted.start

    def settings(drawn: Mapping[str, float]) -> dict[str, TomlValue]:
        return {**wanted.fixed, **space.overrides(drawn)}

    first = scenario.seed
    used = range(first, first + seeds)
    others = range(first + seeds, first + seeds + held_out_seeds)
    about = {
        "objectives": [str(one) for one in goals],
        "parameters": [one.to_dict() for one in space.parameters],
        "seeds": seeds,
        "seed": seed,
        "batch": batch,
    }
    with open_runs(
        out,
        tuned,
        [*wanted.fixed, *space.keys, "control.scheme"],
        about,
        scheduler=scheduler,
        workers=workers,
        limit_s=point_timeout_s,
        overwrite=overwrite,
        on_failure=report,
    ) as runs:
        require_valid(runs, settings(start), first, "start")
        judge = _Judge(runs, goals)

        def evaluate(drawn: Sequence[Mapping[str, float]]) -> list[tuple[float, ...] | None]:
            scores = judge.scores([settings(one) for one in drawn], used)
            return [_complete(one.objectives) for one in scores]

        def tell(fresh: Sequence[Trial]) -> None:
            report(f"{fresh[-1].number + 1} of {trials} trials")

        found = search(
            space,
            evaluate,
            [one.direction for one in goals],
            start=start,
            trials=trials,
            seed=seed,
            batch=batch,
            timeout_s=timeout_s,
            report=tell,
        )
        picked = _picked(found, pick, out)
        values = settings(picked.drawn)
        each = {"off": dict(OFF), "start": settings(start), "tuned": values}
        searched = dict(zip(each, judge.scores(list(each.values()), used), strict=True))
        other = judge.scores(list(each.values()), others) if others else []
        held_out = dict(zip(each, other, strict=bool(other)))
        done = runs.done
    scores = held_out or searched
    verdicts = {name: _verdicts(goals, scores[name], scores["tuned"]) for name in REFERENCES}
    front = [
        {
            "number": number,
            "values": space.in_words(found.trials[number].drawn),
            "objectives": found.trials[number].objectives,
        }
        for number in found.front
    ]
    chosen = tuned.at({key: literal(value) for key, value in values.items()})
    better = _is_better(verdicts)
    lines = _comparisons(goals, scores, verdicts, is_held_out=bool(held_out))
    about_trial = f"silvan tune, trial {picked.number} of {len(found.trials)}: {scenario.name}"
    files = _write(out, chosen, [about_trial, *lines], is_better=better)
    result = TuneResult(
        found,
        picked,
        space.in_words(picked.drawn),
        searched,
        held_out,
        _places(scenario),
        verdicts,
        lines,
        better,
        front,
        done,
        files,
    )
    write_text(out / RESULT, json.dumps(result.to_dict(), indent=1) + "\n")
    return result


class _Judge:
    def __init__(self, runs: Runs, objectives: Sequence[Objective]) -> None:
        self._runs = runs
        self._objectives = objectives

    def scores(
        self, settings: Sequence[Mapping[str, TomlValue]], seeds: Sequence[int]
    ) -> list[Score]:
        every = [dict(OFF), *settings]
        points = [self._runs.point(one, seed) for one in every for seed in seeds]
        measured = self._runs.measure(points)
        rows = [measured[place : place + len(seeds)] for place in range(0, len(points), len(seeds))]
        off = rows[0]

        def score(row: Sequence[Mapping[str, float | None] | None]) -> Score:
            numbers = [
                {**(one or {}), **{f"off.{name}": value for name, value in (base or {}).items()}}
                for one, base in zip(row, off, strict=True)
            ]
            return Score(
                tuple(
                    _mean([one.formula.value(each) for each in numbers]) for one in self._objectives
                ),
                {
                    name: _mean([each.get(name) for each in numbers])
                    for name in MEASURES
                    if any(name in each for each in numbers)
                },
            )

        return [score(row) for row in rows[1:]]


def _require_known(objectives: Sequence[Objective]) -> None:
    known = (*MEASURES, *(f"off.{name}" for name in MEASURES))
    for objective in objectives:
        for name in objective.formula.names:
            require_measure(name, "--objective", known=known)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return statistics.fmean(known) if known and len(known) == len(values) else None


def _complete(values: Sequence[float | None]) -> tuple[float, ...] | None:
    known = tuple(one for one in values if one is not None)
    return known if len(known) == len(values) else None


def _places(scenario: Scenario) -> bool:
    tables = stated(scenario)
    return "nodes" in tables.get("traffic", {}) or "programs" in tables


def _picked(found: Found, pick: int | None, out: Path) -> Trial:
    if not found.front:
        failed = out / "failed"
        if failed.is_dir() and any(failed.iterdir()):
            raise SilvanError("all trials failed", f"the scenarios are in {failed}")
        raise SilvanError(
            "no trial has a value of every objective",
            "an objective with the hotspots' rate needs a hotspot; a formula may divide by 0, too",
        )
    if pick is None:
        return found.best
    if not 0 <= pick < len(found.trials) or not found.trials[pick].objectives:
        raise SilvanError(
            f"there is no trial {pick} that was finished",
            f"give one of 0 to {len(found.trials) - 1}",
        )
    return found.trials[pick]


def _verdicts(objectives: Sequence[Objective], reference: Score, tuned: Score) -> tuple[str, ...]:
    def verdict(objective: Objective, before: float | None, after: float | None) -> str:
        if before is None or after is None:
            return "unknown"
        gain = after - before if objective.direction == "maximize" else before - after
        return "better" if gain > 0 else "worse" if gain < 0 else "equal"

    pairs = zip(objectives, reference.objectives, tuned.objectives, strict=True)
    return tuple(verdict(*one) for one in pairs)


def _is_better(verdicts: Mapping[str, Sequence[str]]) -> bool:
    start, off = verdicts["start"], verdicts["off"]
    return "better" in start and set(start) <= {"better", "equal"} and "better" in off


def _comparisons(
    objectives: Sequence[Objective],
    scores: Mapping[str, Score],
    verdicts: Mapping[str, Sequence[str]],
    *,
    is_held_out: bool,
) -> tuple[str, ...]:
    where = "on the seeds held out" if is_held_out else "on the seeds of the search"
    several = len(objectives) > 1
    lines = []
    for name, words in REFERENCES.items():
        for number, (objective, verdict) in enumerate(zip(objectives, verdicts[name], strict=True)):
            before, after = (scores[one].objectives[number] for one in (name, "tuned"))
            numbers = " and ".join(
                "not known" if one is None else f"{one:.4g}" for one in (after, before)
            )
            of = f" in objective {number + 1}, {objective}" if several else ""
            sign = "warning: " if verdict in ("worse", "unknown") else ""
            lines.append(
                f"{sign}{where} the tuned settings are {_COMPARED[verdict]} {words}{of}: {numbers}"
            )
    return tuple(lines)


def _write(
    out: Path, chosen: Scenario, remarks: Sequence[str], *, is_better: bool
) -> tuple[Path, ...]:
    is_opensm = scheme_tables(str(chosen.control.scheme)) == [OPENSM]
    files = (out / TUNED, *([out / CONF] if is_opensm else []))
    if not is_better:
        for file in files:
            file.unlink(missing_ok=True)
        return ()
    # A name may have any characters.
    head = "".join(f"# {' '.join(line.split())}\n" for line in remarks)
    write_text(out / TUNED, head + chosen.to_toml())
    if is_opensm:
        write_text(out / CONF, head + OpensmSettings.of(chosen).to_conf())
    return files
