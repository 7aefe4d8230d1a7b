"""Suggestions for options that a command does not have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher, get_close_matches
from typing import Any

_MOST_KEYS = 3

_SIMILAR = 0.75

_NEARLY_EQUAL = 0.9


def suggestion(option: str, command: Any) -> str | None:
    """Suggest a similar option, or the scenario key for ``--set``."""
    names = [name for one in command.params for name in (*one.opts, *one.secondary_opts)]
    words = {name.lstrip("-"): name for name in ["--help", *names] if name.startswith("-")}
    word = option.lstrip("-")
    close = get_close_matches(word, words, n=1)
    keys = similar_keys(word) if "set" in words else []
    if close and not (keys and _means_key(word, keys[0].rpartition(".")[2], close[0])):
        return f"did you mean {words[close[0]]}?"
    return f"did you mean {' or '.join(f'--set {key}=VALUE' for key in keys)}?" if keys else None


def _means_key(word: str, key: str, option: str) -> bool:
    """Return true if a word is more similar to a key than to an option that is not nearly equal."""
    of_option = SequenceMatcher(None, option, word).ratio()
    return of_option < _NEARLY_EQUAL and SequenceMatcher(None, key, word).ratio() > of_option


def similar_keys(word: str) -> list[str]:
    """List scenario keys whose last part is similar to a word, if they are few.

    >>> similar_keys("durations"), similar_keys("xyz")
    (['run.duration'], [])
    """
    from silvan.inputs import scenario

    schema = scenario.schema()
    by_name: dict[str, list[str]] = {}
    for key in _keys(schema, schema, "", ()):
        of_name = by_name.setdefault(key.rpartition(".")[2], [])
        if key not in of_name:
            of_name.append(key)
    close = get_close_matches(word, by_name, n=1, cutoff=_SIMILAR)
    if not close:
        return []
    # Prefer keys of a run to those of single flows, which need an index.
    found = by_name[close[0]]
    of_run = [key for key in found if key.startswith("run.")] or found
    return of_run if len(of_run) <= _MOST_KEYS else []


def _keys(
    root: Mapping[str, Any], schema: Mapping[str, Any], path: str, passed: tuple[str, ...]
) -> Iterator[str]:
    reference = schema.get("$ref", "")
    if reference:
        name = reference.rpartition("/")[2]
        if name not in passed:
            yield from _keys(root, root["$defs"][name], path, (*passed, name))
        return
    for key, inner in schema.get("properties", {}).items():
        whole = f"{path}.{key}" if path else key
        yield whole
        yield from _keys(root, inner, whole, passed)
    for choice in _choices(schema):
        yield from _keys(root, choice, path, passed)


def _choices(schema: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    for name in ("anyOf", "oneOf", "allOf"):
        for one in schema.get(name, ()):
            yield one
            if "then" in one:
                yield one["then"]
