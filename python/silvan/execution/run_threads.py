"""Threads that simulate a run: the requested number, and the number of several runs at once."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, SupportsIndex

from silvan.errors import ScenarioError, shown

if TYPE_CHECKING:
    from silvan.inputs.scenario import Scenario

MOST_THREADS = 65535

ON_ONE_THREAD = "the page on the engine in silvan's documentation lists the runs that use one"

HOSTS_PER_THREAD = 128

_MOST_PARTS = "a fabric has at most a part for each switch, and four for each processor"


def checked_threads(threads: SupportsIndex | str) -> int:
    """Check a number of threads; 0 stands for ``"auto"``."""
    if isinstance(threads, str):
        if threads == "auto":
            return 0
    else:
        try:
            number = operator.index(threads)
        except TypeError:
            number = 0
        if not isinstance(threads, bool) and 1 <= number <= MOST_THREADS:
            return number
    raise ScenarioError(
        f"{shown(repr(threads))} is not a number of threads",
        hint=f'threads are a whole number from 1 to {MOST_THREADS}, or "auto"',
    )


def requested_threads(scenario: Scenario, threads: int | None = None) -> int:
    """Return ``threads`` or the scenario's number of threads, 0 for ``"auto"``."""
    if threads is not None:
        return threads
    return checked_threads(scenario.to_dict()["run"].get("threads", 1))


def fewer_threads(wanted: int, used: int, why: str | None = None) -> str | None:
    """Return a line saying that a run uses fewer threads than requested, if it does.

    With ``"auto"`` silvan chooses the number, so that no number is too small.

    >>> fewer_threads(4, 1, "the live fabric runs on one")
    '1 of 4 threads used: the live fabric runs on one'
    >>> fewer_threads(4, 4), fewer_threads(0, 1)
    (None, None)
    """
    if used >= wanted:
        return None
    usual = ON_ONE_THREAD if used == 1 else _MOST_PARTS
    return f"{used} of {wanted} threads used: {why or usual}"


def threads_of_last(left: int, total: int, processors: int) -> int:
    """Return the most threads of one of several runs that start as processors become free.

    Most runs use one. The runs that remain after each processor has had equally many share all.

    >>> [threads_of_last(left, 20, 8) for left in (20, 5, 4, 1)]
    [1, 1, 2, 2]
    >>> threads_of_last(1, 16, 8), threads_of_last(3, 3, 8)
    (1, 2)
    """
    remaining = total % processors
    return processors // remaining if left <= remaining else 1


def useful_threads(scenario: Scenario, most: int) -> int:
    """Limit a number of threads to those that may make a run faster."""
    if most == 1:
        return 1
    hosts: int = scenario.describe()["hosts"]
    return min(most, max(hosts // HOSTS_PER_THREAD, 1))
