"""Objective of a case: a formula of the measures of its runs."""

from __future__ import annotations

import math

from silvan.comparing.arena.measure import as_sampled
from silvan.comparing.arena.store import Measured
from silvan.comparing.tuning.tune import Objective
from silvan.errors import ScenarioError
from silvan.results.measures import CLEARED, MEASURES, require_measure

_WITHOUT = "off."

NAMES = (*MEASURES, CLEARED.name)
"""Names in objectives; those of the run without control begin with ``off.``."""

_FORMULA = (
    "write maximize or minimize, and a formula with + - * /, min and max, such as maximize "
    f"other_receivers_gbps; those without control begin with {_WITHOUT}"
)


def read_objective(text: str, where: str) -> Objective:
    """Read an objective: ``maximize`` or ``minimize``, and a formula."""
    try:
        objective = Objective.parse(text)
    except ScenarioError as error:
        raise ScenarioError(f"objective: {error.message}", where, hint=_FORMULA) from None
    known = (*NAMES, *(f"{_WITHOUT}{name}" for name in NAMES))
    for name in objective.formula.names:
        require_measure(name, f"{where}: objective", known=known)
    return objective


def reached(objective: Objective, run: Measured, without: Measured) -> float | None:
    """Compute the objective of a run: infinite without an event, None if the run failed."""
    own, off = _quantities(run, without), _quantities(without, without)
    known = {**own, **{f"{_WITHOUT}{name}": value for name, value in off.items()}}
    return objective.formula.value(known, infinite=True)


def require_quantities(case: str, objective: Objective, off: Measured) -> None:
    """Refuse an objective of quantities that a run without control lacks; not if it failed."""
    if off.numbers is None:
        return
    has = _quantities(off, off)
    for name in objective.formula.names:
        if name.removeprefix(_WITHOUT) not in has:
            raise ScenarioError(
                f"case {case}: objective: its runs have no {name.removeprefix(_WITHOUT)}",
                hint=f"they have: {', '.join(one for one in NAMES if one in has)}",
            )


def _quantities(run: Measured, without: Measured) -> dict[str, float]:
    if run.numbers is None:
        return {}
    sampled = as_sampled(run.numbers)
    found = sampled.own
    if without.numbers is not None:
        found = sampled.numbers(as_sampled(without.numbers))
    return {name: value for name, value in found.items() if not math.isnan(value)}
