"""The papers that are installed, and what belongs to each.

A package of papers announces each of them by an entry point of the group ``silvan.papers``, whose
name is the paper's and whose object is a :class:`Paper`::

    [project.entry-points."silvan.papers"]
    gran2012 = "silvan_papers.gran2012:PAPER"
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.resources.abc import Traversable

from silvan.errors import SilvanError
from silvan.inputs.scenario import Scenario
from silvan.reproduce.experiment import Experiment
from silvan.reproduce.live import LiveExperiment
from silvan.reproduce.targets import Target, Unmeasured

GROUP = "silvan.papers"

_BEYOND = "beyond."


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper that can be reproduced; ``fit`` has the parameters for ``silvan fit``.

    ``live`` are experiments of real programs, which run only by their id.
    """

    name: str
    studies: Traversable
    targets: Mapping[str, Target]
    experiments: tuple[Experiment, ...]
    fit: Traversable | None = None
    unmeasured: tuple[Unmeasured, ...] = ()
    live: tuple[LiveExperiment, ...] = ()


def papers() -> tuple[str, ...]:
    """List the papers that can be reproduced."""
    return tuple(sorted(_installed()))


@cache
def _installed() -> Mapping[str, EntryPoint]:
    return {one.name: one for one in entry_points(group=GROUP)}


@cache
def find_paper(name: str) -> Paper:
    """Load an installed paper."""
    if name not in _installed():
        known = ", ".join(papers()) or "none"
        raise SilvanError(f"no studies of a paper {name!r}", f"installed: {known}")
    paper: Paper = _installed()[name].load()
    return paper


def experiments(paper: str, prefix: str = "") -> Sequence[Experiment]:
    """Find a paper's experiments by prefix; those beyond the paper only by prefix."""
    every = find_paper(paper).experiments
    # An id in full means that experiment alone: fig6 is not fig6_7.
    exact = [one for one in every if one.id == prefix]
    found = exact or [
        one for one in every if one.id.startswith(prefix) or prefix.startswith(f"{one.id}.")
    ]
    if not prefix:
        found = [one for one in found if not one.id.startswith(_BEYOND)]
    if not found:
        ids = [one.id for one in every] + [one.id for one in find_paper(paper).live]
        known = ", ".join(ids)
        raise SilvanError(f"nothing in {paper} starts with {prefix!r}", f"known: {known}")
    return found


def study(paper: str, name: str) -> Scenario:
    """Read one study of a paper."""
    text = find_paper(paper).studies.joinpath(f"{name}.toml").read_text("utf-8")
    return Scenario.from_toml(text, source=f"{paper}/{name}.toml")


def stated_value(paper: str, target: str) -> float:
    """Return the number that a paper states.

    >>> stated_value("gran2012", "fig5a.p0.on")
    4.75
    """
    value = find_paper(paper).targets[target].value
    assert value is not None, f"{target} is a shape"
    return value
