"""Which papers can be reproduced, and which of their experiments."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from silvan.errors import SilvanError
from silvan.reproduce.experiment import Experiment

# A paper is a module of this package with a tuple EXPERIMENTS, a folder of studies, and a file of
# targets, all of the same name.
_PAPERS = ("gran2010", "gran2012", "mizero2017", "pft2021", "santos2003")
# Ids of experiments that no paper has numbers for start so.
_BEYOND = "beyond."


def papers() -> tuple[str, ...]:
    """List the papers that can be reproduced.

    Examples
    --------
    >>> "gran2012" in papers()
    True
    """
    return _PAPERS


def experiments(paper: str, prefix: str = "") -> Sequence[Experiment]:
    """Find the experiments of a paper.

    Parameters
    ----------
    paper : str
        The paper's short name.
    prefix : str
        Id of an experiment, or start of several ids. It may reach into an experiment's targets,
        as in ``table2.hot``: the whole experiment is then run. Experiments beyond the paper are
        found only by a prefix.

    Returns
    -------
    sequence of Experiment
        In the paper's order.

    Raises
    ------
    SilvanError
        There is no such paper, or nothing starts with the prefix.
    """
    if paper not in _PAPERS:
        raise SilvanError(f"no studies of a paper {paper!r}", f"known: {', '.join(_PAPERS)}")
    module = importlib.import_module(f"silvan.reproduce.{paper}")
    every: tuple[Experiment, ...] = module.EXPERIMENTS
    # An id in full means that experiment alone: fig6 is not fig6_7.
    exact = [one for one in every if one.id == prefix]
    found = exact or [
        one for one in every if one.id.startswith(prefix) or prefix.startswith(f"{one.id}.")
    ]
    if not prefix:
        found = [one for one in found if not one.id.startswith(_BEYOND)]
    if not found:
        known = ", ".join(one.id for one in every)
        raise SilvanError(f"nothing in {paper} starts with {prefix!r}", f"known: {known}")
    return found
