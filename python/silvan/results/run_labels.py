"""Labels of runs: the facts in which they differ."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from silvan._silvan import scheme_tables

if TYPE_CHECKING:
    from silvan.results.result import Result

_UNNAMED = ("name", "description", "control.scheme", "run.seed", "run.threads", "probe.")
"""Prefixes of keys that labels omit, or that change no packet."""

_MOST_KEYS = 2

_MOST_ENTRIES = 16
"""Longest list of tables that is compared by key."""

_MOST_LETTERS = 300

_NOTIFICATIONS = "feedback"
"""The section of all schemes' notifications."""


def run_labels(results: Sequence[Result]) -> list[str]:
    """Name runs by the facts in which they differ: scenario, scheme, seed, other keys."""
    schemes = [result.scenario.to_dict()["control"]["scheme"] for result in results]
    parts = [
        [result.scenario.name for result in results],
        ["no congestion control" if scheme == "none" else scheme for scheme in schemes],
        [f"seed {result.seed}" for result in results],
    ]
    telling = [part for part in parts if len(set(part)) > 1]
    names = _joined(telling or parts[:1])
    if len(set(names)) == len(names):
        return names
    varied = differences([result.scenario.to_dict() for result in results])
    keys = [key for key in varied[0] if not key.startswith(_UNNAMED)][:_MOST_KEYS]
    telling += [[f"{key} {one[key]}" if one[key] else "" for one in varied] for key in keys]
    names = _joined(telling or parts[:1])
    names = [name or result.scenario.name for name, result in zip(names, results, strict=True)]
    if len(set(names)) == len(names):
        return names
    return [f"{name} ({number})" for number, name in enumerate(names, start=1)]


def _joined(parts: Sequence[Sequence[str]]) -> list[str]:
    return [", ".join(filter(None, words)) for words in zip(*parts, strict=True)]


def differences(scenarios: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Find the keys in which scenarios differ.

    Keys of a congestion-control scheme count only among the scenarios in which it is in effect.

    >>> differences([{"a": {"b": 1, "c": 2}}, {"a": {"b": 3, "c": 2}}])
    [{'a.b': '1'}, {'a.b': '3'}]
    >>> differences([{"flow": [{"to": "a"}]}, {"flow": [{"to": "b"}]}])
    [{'flow.0.to': 'a'}, {'flow.0.to': 'b'}]
    """
    flat = [(dict(_leaves(scenario, "")), _idle(scenario)) for scenario in scenarios]
    keys = dict.fromkeys(key for one, _ in flat for key in one)
    telling = [
        key
        for key in keys
        if len({one.get(key) for one, idle in flat if not key.startswith(idle)}) > 1
    ]
    return [
        {key: "" if key.startswith(idle) else one.get(key, "") for key in telling}
        for one, idle in flat
    ]


def _idle(scenario: Mapping[str, Any]) -> tuple[str, ...]:
    control = scenario.get("control", {})
    scheme = control.get("scheme")
    sections = [name for name, keys in control.items() if isinstance(keys, Mapping)]
    active = {scheme, *scheme_tables(str(scheme))}
    if scheme != "none":
        active.add(_NOTIFICATIONS)
    return tuple(f"control.{name}." for name in sections if name not in active)


def _leaves(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{key}.")
        elif _is_short_list_of_tables(value):
            entries = {str(place): entry for place, entry in enumerate(value)}
            yield from _leaves(entries, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", _brief(value)


def _is_short_list_of_tables(value: object) -> bool:
    return (
        isinstance(value, list)
        and 0 < len(value) <= _MOST_ENTRIES
        and all(isinstance(one, Mapping) for one in value)
    )


def _brief(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    if len(text) <= _MOST_LETTERS:
        return text
    size = f"{len(value)} entries" if isinstance(value, list) else f"{len(text)} characters"
    return f"{size} (SHA-256 {hashlib.sha256(text.encode()).hexdigest()[:8]})"
