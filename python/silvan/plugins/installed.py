"""The plug-ins that are installed, found by their entry points."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from functools import cache, lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

from silvan import _silvan
from silvan.errors import ScenarioError, describe, shown
from silvan.inputs.toml_text import literal
from silvan.plugins.keys import default_keys
from silvan.plugins.kinds import (
    KINDS,
    ROUTING,
    SCHEME,
    TOPOLOGY,
    TRACE,
    TRAFFIC,
    Kind,
    PlugInObject,
    summary,
)

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_ENVIRONMENTS = 16


@dataclass(frozen=True, slots=True)
class PlugIn:
    """An installed plug-in, with its package and entry point."""

    kind: Kind
    name: str
    package: str
    version: str
    entry: EntryPoint

    @property
    def title(self) -> str:
        """Kind, name and package in a few words."""
        return f"{self.kind.word} {self.name} of {self.package} {self.version}"

    def load(self) -> PlugInObject:
        """Import the object of the entry point."""
        hint = f"correct the entry point {self.entry.value} of {self.package}, or uninstall it"
        try:
            found = self.entry.load()
        except (Exception, GeneratorExit, SystemExit) as error:
            message = f"{self.title} cannot be imported: {describe(error)}"
            raise ScenarioError(message, hint=hint) from error
        if not isinstance(found, self.kind.type):
            wanted = f"silvan.plugins.{self.kind.type.__name__}"
            message = f"{self.title} is {type(found).__name__}, not {wanted}"
            raise ScenarioError(message, hint=hint)
        if not callable(found.function):
            message = f"{self.title} has no function: {shown(repr(found.function))}"
            raise ScenarioError(message, hint=hint)
        if not (isinstance(found.keys, type) and is_dataclass(found.keys)):
            message = f"{self.title} has keys that are no dataclass: {shown(repr(found.keys))}"
            raise ScenarioError(message, hint=hint)
        return cast(PlugInObject, found)


def installed(kind: Kind) -> Mapping[str, PlugIn]:
    """Give the installed plug-ins of a kind, by name."""
    found, misnamed = _installed(kind, tuple(sys.path))
    for _, message, hint in misnamed:
        raise ScenarioError(message, hint=hint)
    return found


def every() -> Iterator[dict[str, Any]]:
    """Describe each installed plug-in by kind and name: default keys, or error and hint."""
    for kind in KINDS:
        found, misnamed = _installed(kind, tuple(sys.path))
        for one in found.values():
            yield _identity(one) | _described(one)
        for one, message, hint in misnamed:
            yield _identity(one) | {"error": message, "hint": hint}


def _identity(plug_in: PlugIn) -> dict[str, Any]:
    return {
        "kind": plug_in.kind.word,
        "name": plug_in.name,
        "package": plug_in.package,
        "version": plug_in.version,
    }


def _described(plug_in: PlugIn) -> dict[str, Any]:
    try:
        found = plug_in.load()
    except ScenarioError as error:
        return {"error": error.message, "hint": error.hint}
    try:
        keys = default_keys(found.keys)
        literal({key: value for key, value in keys.items() if value is not None})
    except (Exception, SystemExit) as error:
        hint = f"correct the keys of {plug_in.entry.value}, or uninstall {plug_in.package}"
        return {"error": f"{plug_in.title}: {describe(error)}", "hint": hint}
    return {"summary": summary(found), "keys": keys}


@lru_cache(_ENVIRONMENTS)
def _installed(
    kind: Kind, path: Sequence[str]
) -> tuple[Mapping[str, PlugIn], Sequence[tuple[PlugIn, str, str]]]:
    # Packages are those of the import path, which may change.
    del path
    found: dict[str, PlugIn] = {}
    misnamed: list[tuple[PlugIn, str, str]] = []
    for entry in sorted(entry_points(group=kind.group), key=lambda one: (one.name, one.value)):
        package = entry.dist.name if entry.dist else "an unknown package"
        version = entry.dist.version if entry.dist else "0"
        one = PlugIn(kind, entry.name, package, version, entry)
        message = _refusal(one, found)
        if message is None:
            found[entry.name] = one
        else:
            hint = f"uninstall {package}, or rename its entry point in the group {kind.group}"
            misnamed.append((one, shown(message), hint))
    return found, misnamed


def _refusal(one: PlugIn, others: Mapping[str, PlugIn]) -> str | None:
    if one.name in reserved(one.kind):
        return f"{one.title} has the name of what is built in"
    if one.name in others:
        other = others[one.name]
        return f"{one.title} has the name of another of {other.package} {other.version}"
    if not _NAME.fullmatch(one.name):
        return f"{one.title} has a name that is no key of TOML without quotes"
    return None


def reserved(kind: Kind) -> frozenset[str]:
    """Give the names that plug-ins of a kind cannot have: those built in, and keys beside them."""
    return _reserved()[kind]


def section_keys(name: str) -> frozenset[str]:
    """Give the keys of a table of scenarios, such as ``fabric``."""
    return frozenset(_properties(_schema()["properties"][name]))


@cache
def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(_silvan.schema())
    return schema


@cache
def _reserved() -> Mapping[Kind, frozenset[str]]:
    fabric = _properties(_schema()["properties"]["fabric"])
    control = _properties(_schema()["properties"]["control"])
    traffic = _properties(_schema()["properties"]["traffic"])
    program = _properties(_resolved(traffic["program"])["items"])
    schemes = frozenset(_silvan.scheme_names())
    keys = frozenset(fabric)
    return {
        SCHEME: frozenset(control) | schemes,
        TOPOLOGY: _choices(fabric["generator"]),
        TRAFFIC: frozenset(traffic),
        ROUTING: keys | _choices(fabric["routing"]),
        TRACE: frozenset(program) | _choices(program["kind"]),
    }


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in schema:
        return schema
    name = schema["$ref"].rpartition("/")[2]
    return _resolved(_schema()["$defs"][name])


def _properties(schema: dict[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = _resolved(schema)["properties"]
    return properties


def _choices(schema: dict[str, Any]) -> frozenset[str]:
    schema = _resolved(schema)
    inner = [one for key in ("oneOf", "anyOf") for one in schema.get(key, ())]
    own = [schema["const"]] if "const" in schema else schema.get("enum", [])
    return frozenset(own).union(*map(_choices, inner))
