"""Runs of a sweep: every combination of values, every seed."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from silvan.errors import ScenarioError
from silvan.execution.processes import cores
from silvan.inputs.scenario import (
    LARGEST_SEED,
    Scenario,
    checked_scenario,
    warn_without_traffic,
)
from silvan.inputs.toml_text import SupportsToList, TomlValue, literal, parse_value

Grid: TypeAlias = Mapping[str, Sequence[object] | SupportsToList]

MOST_POINTS = 100_000

_SEED = "run.seed"


@dataclass(frozen=True, slots=True)
class Point:
    """A run of a sweep. The hash of its effective scenario with seed identifies it."""

    values: dict[str, TomlValue]
    seed: int
    hash: str
    text: str

    @property
    def label(self) -> str:
        """Values and seed in a few words."""
        return label(self.values, self.seed)

    def scenario(self) -> Scenario:
        """Build the scenario of the run."""
        return Scenario.from_toml(self.text).single_run(self.seed)


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """All runs of a sweep; the seed varies fastest, then the last key."""

    scenario: Scenario
    axes: dict[str, list[TomlValue]]
    points: tuple[Point, ...]


def label(values: Mapping[str, TomlValue], seed: int) -> str:
    """Say in a few words which point is meant."""
    words = [f"{key}={plain(value)}" for key, value in values.items()]
    return " ".join([*words, f"seed {seed}"])


def plain(value: TomlValue) -> str:
    """Write a value as the command line takes it: text without its quotes."""
    return value if isinstance(value, str) else literal(value)


def seed_count(whole: Scenario, seeds: int | None, seed: int | None) -> int:
    """Return the number of seeds per combination: the given one, the sweep's, or one."""
    sweep = whole.to_dict().get("sweep", {})
    axes = sweep.get("vary", {})
    if seed is not None and _SEED in axes:
        raise ScenarioError(
            f"the sweep varies {_SEED}, and a first seed is given as well",
            hint="leave one of them out",
        )
    count: int = (sweep.get("seeds") or 1) if seeds is None else seeds
    first = whole.seed if seed is None else seed
    last = first + count - 1
    if count < 1:
        raise ScenarioError(f"number of seeds {count}: it must be at least 1", hint="write e.g. 4")
    if first < 0 or last > LARGEST_SEED:
        raise ScenarioError(
            f"seed {first if first < 0 else last}: seeds are from 0 to {LARGEST_SEED}",
            hint="choose another first seed"
            if count == 1
            else "choose another first seed, or fewer seeds",
        )
    runs = math.prod(map(len, axes.values())) * count
    require_few(runs, "use fewer values or seeds, or several sweeps")
    return count


def require_few(runs: int, hint: str = "use fewer seeds") -> None:
    """Refuse more runs than a command holds in memory."""
    if runs > MOST_POINTS:
        raise ScenarioError(f"{runs} runs; at most {MOST_POINTS} are supported", hint=hint)


def seeds_of(point: Scenario, count: int, seed: int | None) -> range:
    """List the seeds of one combination, from its own or from a given one on."""
    first = point.seed if seed is None else seed
    return range(first, first + count)


def plan(
    scenario: Scenario,
    grid: Grid | None = None,
    *,
    seeds: int | None = None,
    seed: int | None = None,
) -> SweepPlan:
    """List the runs of a sweep; every one is built and checked."""
    whole = checked_scenario(scenario).varying({} if grid is None else grid)
    axes = whole.axes()
    per_combination = seed_count(whole, seeds, seed)

    idle: list[str] = []

    def build(values: dict[str, str]) -> list[Point]:
        one = whole.at(values)
        if not one.has_traffic:
            idle.append(one.name)
        text, typed = one.to_toml(), {key: parse_value(word) for key, word in values.items()}
        return [
            Point(typed, number, one.single_run(number).hash, text)
            for number in seeds_of(one, per_combination, seed)
        ]

    executor = ThreadPoolExecutor(cores())
    try:
        # Building a large fabric takes a while without the interpreter's lock.
        points = [one for few in executor.map(build, whole.sweep_values()) for one in few]
    finally:
        executor.shutdown(cancel_futures=True)
    _require_distinct(points)
    if idle:
        warn_without_traffic(idle[0])
    return SweepPlan(scenario, axes, tuple(points))


def _require_distinct(points: Sequence[Point]) -> None:
    first: dict[str, Point] = {}
    for point in points:
        other = first.setdefault(point.hash, point)
        if other is not point:
            raise ScenarioError(
                f"points {other.label!r} and {point.label!r} are the same run",
                hint="give each value once",
            )


_NUMBER = r"-?\d+(?:\.\d+)?"
_RANGE = re.compile(rf"({_NUMBER})\.\.({_NUMBER})(?::({_NUMBER}))?(?:\s+(\S.*))?")
_ITEM = re.compile(r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|\[[^\]]*\]|[^,])+""")


def parse_grid(words: Sequence[str]) -> dict[str, list[TomlValue]]:
    """Read ``key=v1,v2,...`` words.

    Values are TOML literals, or text without quotes. ``FIRST..LAST:STEP`` means evenly spaced
    numbers, both ends included, the step being one by default; a unit behind it belongs to each.

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
    # Decimal numbers make 0..1:0.1 exact.
    first, last, step = (Decimal(part or 1) for part in found.group(1, 2, 3))
    if step <= 0 or last < first:
        raise _wrong(word, f"holds the range {item!r}, which is empty")
    count = int((last - first) / step) + 1
    if count > MOST_POINTS:
        most = f"a grid has at most {MOST_POINTS:,}"
        raise _wrong(word, f"holds the range {item!r}, which has {count:,} values; {most}")
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
