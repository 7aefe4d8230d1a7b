"""Targets: the numbers that a paper states."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class Target:
    """One number, or the shape of one curve, that a paper states.

    Attributes
    ----------
    id : str
        Experiment, case and quantity, joined by dots.
    what : str
        What the number is, with its unit.
    value : float, optional
        The number. None where the paper only draws it.
    tol : float, optional
        Relative difference that we aim to stay within.
    shape : str, optional
        What a drawn curve must do, where there is no number.
    calibrate : bool
        Whether the model's free parameters were fitted to this number.
    """

    id: str
    what: str = ""
    value: float | None = None
    tol: float | None = None
    shape: str | None = None
    calibrate: bool = False


@cache
def load_targets(paper: str) -> dict[str, Target]:
    """Read the targets of one paper.

    Parameters
    ----------
    paper : str
        The paper's short name.

    Returns
    -------
    dict of str to Target
        Targets by id, in the paper's order.

    Examples
    --------
    >>> load_targets("gran2012")["table2.nohot.cc_off"].value
    2.699
    """
    text = resources.files("silvan").joinpath("targets", f"{paper}.toml").read_text("utf-8")
    targets = [Target(**entry) for entry in tomllib.loads(text)["target"]]
    return {target.id: target for target in targets}


def stated_value(paper: str, name: str) -> float:
    """Give the number that a paper states.

    Parameters
    ----------
    paper : str
        The paper's short name.
    name : str
        Id of a target that has a number.

    Returns
    -------
    float
        The number.

    Examples
    --------
    >>> stated_value("gran2012", "fig5a.p0.on")
    4.75
    """
    value = load_targets(paper)[name].value
    assert value is not None, f"{name} is a shape"
    return value
