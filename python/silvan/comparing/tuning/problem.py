"""Problem of a fit: parameters, cases and targets, as a file states them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from silvan.comparing.tuning.expression import Expression
from silvan.comparing.tuning.runs import OFF
from silvan.comparing.tuning.space import POWER, SLOPE, Parameter, Space, require_inside
from silvan.errors import ScenarioError, shown
from silvan.inputs.input_files import CONFIGURATION_BYTES, read_text
from silvan.inputs.scenario import Scenario
from silvan.inputs.toml_text import TomlValue
from silvan.reproduce.registry import find_paper, study
from silvan.results.measures import MEASURES, require_measure

_KEYS = {"paper", "study", "scenario", "parameters", "cases", "target"}
_PARAMETER = {"range", "start"}
_GUIDE = 'the guide page "Tuning and fitting" describes the keys of a fit'
_TARGET = {"id", "measure", "value", "tol", "group", "held-out"}


@dataclass(frozen=True, slots=True)
class FitTarget:
    """A measured number, and the formula for it; the search ignores ``held_out``."""

    id: str
    measure: Expression
    value: float
    tol: float
    group: str
    held_out: bool

    @property
    def cases(self) -> tuple[str, ...]:
        """The cases that the formula needs."""
        return tuple(dict.fromkeys(name.partition(".")[0] for name in self.measure.names))

    def error(self, measured: float) -> float:
        """Give the difference from the number in units of the tolerance."""
        return (measured / self.value - 1) / self.tol


@dataclass(frozen=True, slots=True, eq=False)
class FitProblem:
    """Problem of a fit. Of choices, ``start`` has the index."""

    name: str
    scenario: Scenario
    space: Space
    start: dict[str, float]
    cases: dict[str, dict[str, TomlValue]]
    targets: tuple[FitTarget, ...]

    @property
    def fitted(self) -> list[FitTarget]:
        """The targets that the search sees."""
        return [one for one in self.targets if not one.held_out]

    def values(self, case: str, drawn: Mapping[str, float]) -> dict[str, TomlValue]:
        """Return the keys of a case for drawn values; without control they lack its parameters."""
        own = self.cases[case]
        values = self.space.overrides(drawn)
        if own.get("control.scheme") == OFF["control.scheme"]:
            values = {key: one for key, one in values.items() if not key.startswith("control.")}
        return {**values, **own}

    @cache  # noqa: B019 - a fit has one problem
    def tmax_gbps(self, case: str, seed: int) -> float | None:
        """Compute what receivers that are no hotspots get at most, where the traffic says that."""
        try:
            return self.scenario.override(dict(self.cases[case])).tmax_gbps(seed=seed)
        except ScenarioError:
            return None

    @property
    def keys(self) -> list[str]:
        """Keys that any run changes."""
        own = [key for case in self.cases.values() for key in case]
        return list(dict.fromkeys([*self.space.keys, *own]))


def read_problem(source: str | Path) -> FitProblem:
    """Read a fit from a file, or the one that comes with a paper."""
    name = str(source)
    if not name.endswith(".toml") and not Path(name).is_file():
        try:
            fit = find_paper(name).fit
        except ScenarioError as error:
            raise ScenarioError(
                f"{name}: no file and no paper with a fit",
                hint=f"give a file in TOML, or the name of a paper ({error.hint})",
            ) from error
        if fit is None:
            raise ScenarioError(f"the paper {name} has no fit", hint="give a file in TOML")
        return parse_problem(fit.read_text("utf-8"), f"{name}.toml", Path())
    hint = "give a file in TOML, or the name of a paper with a fit, such as gran2012"
    text = read_text(name, CONFIGURATION_BYTES, "fit", hint)
    return parse_problem(text, name, Path(name).parent)


def parse_problem(text: str, source: str, folder: Path) -> FitProblem:
    """Read a fit from text; paths in it are relative to a folder."""

    def wrong(message: str, hint: str = _GUIDE) -> ScenarioError:
        return ScenarioError(message, source, hint=hint)

    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise wrong(f"not TOML: {error}") from None
    _require_keys(tables, _KEYS, "", source)
    if "study" in tables:
        scenario = _study(_text(tables, "paper", source), _text(tables, "study", source), source)
    elif "scenario" in tables:
        scenario = Scenario.from_file(folder / _text(tables, "scenario", source))
    else:
        raise wrong("no scenario", 'write scenario = "FILE.toml"')
    with _of_file(source):
        space, start = _space(tables.get("parameters"), scenario, source)
    cases = tables.get("cases")
    if not isinstance(cases, dict) or not cases:
        raise wrong("no cases", "write [cases] and on = {}")
    for case in cases:
        if not case.isidentifier():
            raise wrong(
                f"cases.{case}: a name that formulas cannot have", "use letters, digits and _"
            )
    entries = tables.get("target")
    if not isinstance(entries, list) or not entries:
        raise wrong("no targets", "write [[target]], with id, measure, value and tol")
    stated = find_paper(str(tables["paper"])).targets if "paper" in tables else {}
    targets = tuple(_target(entry, stated, cases, source) for entry in entries)
    ids = [one.id for one in targets]
    for name in ids:
        if ids.count(name) > 1:
            raise wrong(f"target {name}: there are {ids.count(name)} of this id", "rename one")
    if all(one.held_out for one in targets):
        raise wrong("all targets are held out", "fit at least one")
    return FitProblem(scenario.name, scenario, space, start, cases, targets)


@contextmanager
def _of_file(source: str) -> Iterator[None]:
    try:
        yield
    except ScenarioError as error:
        if source in str(error):
            raise
        raise ScenarioError(str(error), source, hint=error.hint or _GUIDE) from error


def _study(paper: str, name: str, source: str) -> Scenario:
    try:
        return study(paper, name)
    except (ScenarioError, OSError) as error:
        raise ScenarioError(
            f"study: the paper {paper} has no study {name!r}",
            source,
            hint="the folder studies of the paper's package has its studies, NAME.toml",
        ) from error


def _require_keys(table: object, known: set[str], where: str, source: str) -> None:
    if not isinstance(table, dict):
        raise ScenarioError(f"{where} is no table", source)
    for key in table:
        if key not in known:
            raise ScenarioError(
                f"{where}{key}: unknown key", source, hint=f"known: {', '.join(sorted(known))}"
            )


def _text(table: Mapping[str, Any], key: str, source: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value:
        what = "missing" if value is None else f"{shown(value)} is no text"
        raise ScenarioError(f"{key}: {what}", source, hint=_GUIDE)
    return value


def _number(table: Mapping[str, Any], key: str, where: str, source: str) -> float:
    value = table.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        what = "missing" if value is None else f"{shown(value)} is no number"
        raise ScenarioError(f"{where}.{key}: {what}", source, hint=_GUIDE)
    return float(value)


def _space(entries: object, scenario: Scenario, source: str) -> tuple[Space, dict[str, float]]:
    if not isinstance(entries, dict) or not entries:
        raise ScenarioError(
            "no parameters", source, hint='write [parameters."switch.buffer"] with range and start'
        )
    parameters: list[Parameter] = []
    start: dict[str, float] = {}
    for key, entry in entries.items():
        _require_keys(entry, _PARAMETER, f"parameters.{key}.", source)
        parameters.append(Parameter.parse(key, _text(entry, "range", source), source))
        start[key] = _number(entry, "start", f"parameters.{key}", source)
        if parameters[-1].whole:
            start[key] = int(start[key])
        _require_key(scenario, parameters[-1], start[key], source)
    require_inside(parameters, start)
    limit = int(scenario.to_dict()["control"]["ib-cc"]["adapter"]["ccti-limit"])
    return Space(tuple(parameters), limit, {SLOPE: 1.0, POWER: 1.0}), start


def _require_key(scenario: Scenario, one: Parameter, start: float, source: str) -> None:
    if one.key in (SLOPE, POWER):
        return
    try:
        scenario.override({one.key: one.in_scenario(start)})
    except ScenarioError as error:
        if "unknown key" in str(error):
            raise ScenarioError(
                f"parameters.{one.key}: a scenario has no such key", source, hint=error.hint
            ) from error


def _target(
    entry: object, stated: Mapping[str, Any], cases: Mapping[str, object], source: str
) -> FitTarget:
    _require_keys(entry, _TARGET, "target.", source)
    assert isinstance(entry, dict)
    name = _text(entry, "id", source)
    of_paper = stated.get(name)
    known = {"value": of_paper.value, "tol": of_paper.tol} if of_paper is not None else {}
    merged = {**known, **entry}
    value, tol = (_number(merged, key, f"target {name}", source) for key in ("value", "tol"))
    if not value or tol <= 0:
        raise ScenarioError(
            f"target {name}: value is {value:g} and tol {tol:g}",
            source,
            hint="tol is relative to value: give a value other than 0, and a tol above 0",
        )
    held_out = entry.get("held-out", False)
    if not isinstance(held_out, bool):
        raise ScenarioError(f"target {name}: held-out is neither true nor false", source)
    measure = Expression.parse(_text(entry, "measure", source), f"{source}: target {name}")
    group = str(entry.get("group") or name.partition(".")[0])
    target = FitTarget(name, measure, value, tol, group, held_out)
    for case in target.cases:
        if case not in cases:
            raise ScenarioError(
                f"target {name}: there is no case {shown(case)}",
                source,
                hint=f"cases: {', '.join(cases)}",
            )
    named = tuple(f"{case}.{one}" for case in target.cases for one in (*MEASURES, "tmax_gbps"))
    for case_and_measure in measure.names:
        require_measure(case_and_measure, f"{source}: target {name}", known=named)
    return target


def cases_of(targets: Sequence[FitTarget]) -> list[str]:
    """List the cases that some targets need."""
    return list(dict.fromkeys(case for one in targets for case in one.cases))
