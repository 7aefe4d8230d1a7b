"""Grids as the command line takes them: ``key=v1,v2,...`` and ranges."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from decimal import Decimal

from silvan.errors import ScenarioError
from silvan.inputs.toml_text import TomlValue, parse_value
from silvan.sweeping.plan import MOST_POINTS

_NUMBER = r"-?\d+(?:\.\d+)?"
_RANGE = re.compile(rf"({_NUMBER})\.\.({_NUMBER})(?::({_NUMBER}))?(?:\s+(\S.*))?")
# A comma outside of quotes and brackets; both may hold commas of their own.
_ITEM = re.compile(r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|\[[^\]]*\]|[^,])+""")


def parse_grid(words: Sequence[str]) -> dict[str, list[TomlValue]]:
    """Read ``key=v1,v2,...`` words.

    Parameters
    ----------
    words : sequence of str
        A value may be any TOML literal; what is none is taken as text, so that quantities need no
        quotes of their own. ``FIRST..LAST:STEP`` means evenly spaced numbers, both ends
        included, the step being one by default; a unit behind it belongs to each.

    Returns
    -------
    dict
        Values by dotted key.

    Raises
    ------
    ScenarioError
        A word has no ``=``, no key or no values, a key comes twice, or a range is empty.

    Examples
    --------
    >>> parse_grid(["traffic.nodes.p=0..20:10,50", "run.duration=1 ms,2 ms"])
    {'traffic.nodes.p': [0, 10, 20, 50], 'run.duration': ['1 ms', '2 ms']}
    >>> parse_grid(["switch.latency=100..300:100 ns"])
    {'switch.latency': ['100 ns', '200 ns', '300 ns']}
    """
    grid: dict[str, list[TomlValue]] = {}
    for word in words:
        key, equals, text = word.partition("=")
        key = key.strip()
        if not equals or not key:
            raise _wrong(word, "is not of the form key=v1,v2,...")
        if key in grid:
            raise _wrong(word, f"gives values for {key} a second time")
        values = [value for item in _items(text) for value in _expand(word, item)]
        if not values:
            raise _wrong(word, "gives no values")
        grid[key] = values
    return grid


def _items(text: str) -> list[str]:
    return [item.strip() for item in _ITEM.findall(text) if item.strip()]


def _expand(word: str, item: str) -> list[TomlValue]:
    found = _RANGE.fullmatch(item)
    if not found:
        return [parse_value(item)]
    # Decimal numbers, so that 0..1:0.1 means what it says.
    first, last, step = (Decimal(part or 1) for part in found.group(1, 2, 3))
    if step <= 0 or last < first:
        raise _wrong(word, f"holds the range {item!r}, which is empty")
    count = int((last - first) / step) + 1
    if count > MOST_POINTS:
        raise _wrong(word, f"holds the range {item!r}, which has {count} values")
    numbers = [str(first + index * step) for index in range(count)]
    unit = found.group(4)
    if unit:
        return [f"{number} {unit}" for number in numbers]
    return [tomllib.loads(f"value = {number}")["value"] for number in numbers]


def _wrong(word: str, problem: str) -> ScenarioError:
    return ScenarioError(
        f"{word!r} {problem}",
        source="--grid",
        hint="write for example --grid traffic.nodes.p=0,50,100, or =0..100:10 for a range",
    )
