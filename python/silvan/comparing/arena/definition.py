"""Definition of an arena, as a file states it."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from silvan.comparing.arena.objective import reached, read_objective
from silvan.comparing.arena.store import Measured
from silvan.comparing.tuning.tune import Objective
from silvan.errors import ScenarioError, SilvanError, shown
from silvan.inputs.input_files import CONFIGURATION_BYTES, read_text
from silvan.inputs.scenario import Scenario
from silvan.inputs.toml_text import TomlValue

_KEYS = {"name", "seeds", "links", "tuning", "case"}
_TUNING = {"trials", "seeds", "links"}
_VARIED = {"links", "set", "pfc", "quick"}
_CASE = {"name", "title", "note", "file", "group", "objective", "tune", *_VARIED}

_OF_ARENA = {
    "run.seed": ("an arena states its seeds", "--seeds N changes their number"),
    "run.threads": ("each run of an arena has one thread", "--workers N makes N runs at once"),
    "control.scheme": ("an arena runs all schemes", "--schemes NAME,NAME chooses some"),
}

_GUIDE = 'the guide\'s page "Schemes side by side" has an arena with all keys'

LINKS = ("credits", "pfc")


@dataclass(frozen=True, slots=True)
class Case:
    """A fabric with its traffic; settings are tuned once per group, on cases with ``is_tuned``."""

    name: str
    title: str
    group: str
    scenario: Scenario
    objective: Objective
    is_tuned: bool
    note: str = ""

    @property
    def link(self) -> str:
        """Kind of its links, one of :data:`LINKS`."""
        return flow_control(self.scenario)

    def objectives(
        self, measured: Sequence[Measured], off: Sequence[Measured]
    ) -> list[float] | None:
        """Compute the objective by seed: infinite without an event, None after a failure."""
        values = []
        for one, without in zip(measured, off, strict=False):
            value = reached(self.objective, one, without)
            if value is None:
                return None
            values.append(value)
        return values or None


@dataclass(frozen=True, slots=True)
class Arena:
    """A set of cases, and how often each runs.

    ``trials`` settings of each scheme and group are tried, the published ones included. ``given``
    are values of :meth:`override`, by dotted key. ``tuned_elsewhere`` are, by group, omitted cases
    on which its settings are tuned.
    """

    name: str
    cases: tuple[Case, ...]
    seeds: tuple[int, ...]
    tuning_seeds: tuple[int, ...]
    trials: int
    given: Mapping[str, TomlValue] = field(default_factory=dict)
    tuned_elsewhere: Mapping[str, str] = field(default_factory=dict)

    def only(self, names: Sequence[str], kinds: Sequence[str] = ()) -> Arena:
        """Return an arena with some cases; with ``kinds``, a name also selects its PFC case."""
        of_kind = self.on_links(kinds) if kinds else self
        kept: set[str] = set()
        for name in names:
            meant = {name, f"{name}-pfc"} if kinds else {name}
            found = {one.name for one in of_kind.cases if one.name in meant}
            if not found:
                others = any(one.name == name for one in self.cases)
                raise SilvanError(
                    f"case {name!r} has no links with {' or '.join(kinds)}"
                    if others
                    else f"there is no case {name!r}",
                    f"cases: {', '.join(one.name for one in of_kind.cases)}",
                )
            kept |= found
        return _keep(of_kind, [one for one in of_kind.cases if one.name in kept])

    def on_links(self, kinds: Sequence[str]) -> Arena:
        """Return an arena with the cases on links of some kinds, in their order."""
        for kind in kinds:
            if kind not in LINKS:
                raise SilvanError(f"there are no links {kind!r}", f"links: {', '.join(LINKS)}")
        kept = [one for one in self.cases if one.link in kinds]
        if not kept:
            raise SilvanError(
                f"no case has links with {' or '.join(kinds)}",
                'write links = ["credits", "pfc"] in the arena',
            )
        return _keep(self, kept)

    def override(self, overrides: Mapping[str, TomlValue]) -> Arena:
        """Return an arena whose scenarios have other values of keys."""
        for key, (why, hint) in _OF_ARENA.items():
            if key in overrides and overrides[key] != "python":
                raise ScenarioError(why, hint=hint, key=key)
        cases = []
        for one in self.cases:
            try:
                cases.append(replace(one, scenario=one.scenario.override(overrides)))
            except ScenarioError as error:
                where = f"case {one.name}"
                raise ScenarioError(error.message, where, hint=error.hint, key=error.key) from None
        return replace(self, cases=tuple(cases), given={**self.given, **overrides})

    @property
    def sets_control(self) -> bool:
        """Return true if settings of schemes are given, and not all of them are published ones."""
        return any(key.partition(".")[0] == "control" for key in self.given)

    @property
    def hash(self) -> str:
        """Equal for arenas whose runs and judgements are equal."""
        state = hashlib.sha256(repr((self.seeds, self.tuning_seeds, self.trials)).encode())
        for one in self.cases:
            objective = (one.objective.direction, one.objective.formula.text)
            of_case = (one.name, one.title, one.group, one.scenario.hash, one.is_tuned)
            state.update(repr((of_case, objective)).encode())
        return state.hexdigest()[:16]

    def tuned_on(self, group: str) -> Case | None:
        """Return the case that the settings of a group are tuned on, or None if they are not."""
        if self.trials == 1:
            return None
        return next((one for one in self.cases if one.group == group and one.is_tuned), None)

    @property
    def untuned(self) -> dict[str, list[str]]:
        """Names of cases without separate tuning, by the case whose tuned settings they share."""
        found: dict[str, list[str]] = {}
        for one in self.cases:
            case = self.tuned_elsewhere.get(one.group)
            if case is not None and self.trials > 1:
                found.setdefault(case, []).append(one.name)
        return found

    @property
    def links(self) -> list[str]:
        """Kinds of links of its cases, in their order."""
        return list(dict.fromkeys(one.link for one in self.cases))

    @property
    def groups(self) -> list[str]:
        """The groups of its cases, in their order."""
        return list(dict.fromkeys(one.group for one in self.cases))


def _keep(arena: Arena, kept: Sequence[Case]) -> Arena:
    names = {one.name for one in kept}
    missing = {one.group: one.name for one in arena.cases if one.is_tuned and one.name not in names}
    return replace(arena, cases=tuple(kept), tuned_elsewhere={**arena.tuned_elsewhere, **missing})


def read_arena(path: Path | None = None, *, quick: bool = False) -> Arena:
    """Read an arena, by default the installed one; ``quick`` reduces cases and tunes nothing."""
    if path is None:
        folder = Path(str(files("silvan.comparing.arena")))
        path = folder / "arena.toml"
    hint = "name a file in TOML, or leave it out for the arena that is installed"
    text = read_text(path, CONFIGURATION_BYTES, "arena", hint)
    source = str(path)
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"not TOML: {error}", source, hint=_GUIDE) from None
    if "case" not in tables and "fabric" in tables:
        raise ScenarioError(
            "a scenario, and not the cases of an arena",
            source,
            hint="leave --arena out, or name a file with [[case]], which names scenarios",
        )
    _require_keys(tables, _KEYS, "", source)
    tuning = tables.get("tuning", {})
    _require_keys(tuning, _TUNING, "tuning.", source)
    name = _text({"name": path.stem, **tables}, "name", source)
    _require_folder_name(name, source)
    seeds = _seeds(tables.get("seeds", [1]), "seeds", source)
    tuning_seeds = _seeds(tuning.get("seeds", [1001]), "tuning.seeds", source)
    both = set(seeds) & set(tuning_seeds)
    if both:
        raise ScenarioError(
            f"tuning.seeds: {min(both)} is one of seeds, too",
            source,
            hint="judge settings with other seeds than they were tuned with",
        )
    entries = tables.get("case")
    if not isinstance(entries, list) or not entries:
        raise ScenarioError("no cases", source, hint="write [[case]], with name and file")
    links = _links(tables, source)
    tuned_links = _links(tuning, f"{source}: tuning") or LINKS
    cases = tuple(
        case
        for number, entry in enumerate(entries, 1)
        for case in _cases(entry, number, path.parent, source, links, tuned_links, quick=quick)
    )
    _require_distinct(cases, source)
    trials = tuning.get("trials", 1)
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < 1:
        why = f"tuning.trials: {shown(trials)} is no number above 0"
        raise ScenarioError(why, source, hint="write e.g. trials = 16")
    if quick:
        return Arena(name, cases, seeds[:1], tuning_seeds[:1], 1)
    return Arena(name, cases, seeds, tuning_seeds, trials)


def _cases(
    entry: object,
    number: int,
    folder: Path,
    source: str,
    links: Sequence[str],
    tuned_links: Sequence[str],
    *,
    quick: bool,
) -> Iterator[Case]:
    nameless = f"{source}: case {number}"
    _require_keys(entry, _CASE, "case.", nameless)
    assert isinstance(entry, dict)
    name = _text(entry, "name", nameless)
    where = f"{source}: case {name}"
    read = _scenario(folder / _text(entry, "file", where), where)
    objective = read_objective(_text(entry, "objective", where), where)
    tune = entry.get("tune", False)
    if not isinstance(tune, bool):
        raise ScenarioError("tune is neither true nor false", where, hint="write tune = true")
    title = _text({"title": name, **entry}, "title", where)
    group = _text({"group": name, **entry}, "group", where)
    note = _text(entry, "note", where) if "note" in entry and not quick else ""
    reduced = _table(entry, "quick", where)
    reduction = reduced if quick else {}
    given = {**_table(entry, "set", where), **reduction}
    with_pfc = _table(entry, "pfc", where)
    wanted = _links(entry, where) or links
    for kind in wanted or [flow_control(read)]:
        keys = {**given, **(with_pfc if kind == "pfc" else {})}
        behind = "-pfc" if kind == "pfc" and len(wanted) > 1 else ""
        if wanted:
            keys["link.flow-control"] = kind
        try:
            scenario = read.override({**keys, "name": f"{name}{behind}"})
        except ScenarioError as error:
            raise ScenarioError(error.message, where, hint=error.hint, key=error.key) from None
        yield Case(
            f"{name}{behind}",
            ", ".join([title, *(["PFC"] if behind else []), *(["reduced"] if reduction else [])]),
            f"{group}{behind}",
            scenario,
            objective,
            tune and kind in tuned_links,
            note,
        )


def _scenario(path: Path, where: str) -> Scenario:
    try:
        return Scenario.from_file(path)
    except ScenarioError as error:
        raise ScenarioError(f"file: {error}", where, hint=error.hint, key=error.key) from None


def _require_folder_name(name: str, source: str) -> None:
    try:
        Scenario(name=name)
    except ScenarioError as error:
        raise ScenarioError(error.message, source, hint=error.hint, key="name") from None


def flow_control(scenario: Scenario) -> str:
    """Return the kind of links of a scenario, one of :data:`LINKS`."""
    return str(scenario.to_dict()["link"].get("flow-control", LINKS[0]))


def _links(table: Mapping[str, Any], source: str) -> list[str]:
    value = table.get("links", [])
    if not isinstance(value, list) or any(one not in LINKS for one in value):
        raise ScenarioError(
            f"links: {shown(value)} is no list of kinds of links",
            source,
            hint=f"kinds: {', '.join(LINKS)}",
        )
    if len(set(value)) < len(value):
        raise ScenarioError("links: a kind is listed twice", source, hint="list each once")
    return value


def _require_distinct(cases: Sequence[Case], source: str) -> None:
    names = [one.name for one in cases]
    for name in names:
        if names.count(name) > 1:
            why = f"two cases have the name {shown(name)}"
            raise ScenarioError(why, source, hint="give each a different name")
    tuned = [one.group for one in cases if one.is_tuned]
    for group in tuned:
        if tuned.count(group) > 1:
            raise ScenarioError(
                f"two cases of the group {shown(group)} have tune = true",
                source,
                hint="settings of a group are tuned on one case",
            )


def _require_keys(table: object, known: set[str], where: str, source: str) -> None:
    if not isinstance(table, dict):
        raise ScenarioError(f"{where.rstrip('.')} is no table", source, hint=_GUIDE)
    for key in table:
        if key not in known:
            raise ScenarioError(
                f"{where}{shown(key)}: unknown key",
                source,
                hint=f"known: {', '.join(sorted(known))}",
            )


def _text(table: Mapping[str, Any], key: str, source: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value:
        raise ScenarioError(f"{key}: no text", source, hint=_GUIDE)
    return value


def _table(table: Mapping[str, Any], key: str, source: str) -> dict[str, TomlValue]:
    value = table.get(key, {})
    if not isinstance(value, dict):
        raise ScenarioError(f"{key} is no table", source, hint='write { "run.duration" = "1 ms" }')
    return value


def _seeds(value: object, key: str, source: str) -> tuple[int, ...]:
    whole = isinstance(value, list) and all(
        isinstance(one, int) and not isinstance(one, bool) and one >= 0 for one in value
    )
    if not whole or not value:
        why = f"{key}: {shown(value)} is no list of seeds"
        raise ScenarioError(why, source, hint="write e.g. [1, 2, 3]")
    assert isinstance(value, list)
    if len(set(value)) < len(value):
        raise ScenarioError(f"{key}: a seed is listed twice", source, hint="list each once")
    return tuple(value)
