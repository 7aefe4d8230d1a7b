"""Targets: the numbers that a paper states."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources.abc import Traversable


@dataclass(frozen=True, slots=True)
class Target:
    """A number, or the shape of a curve, that a paper states.

    Attributes
    ----------
    id : str
        Experiment, case and quantity, joined by dots.
    what : str
        Description of the number, with its unit.
    value : float, optional
        The number. None where the paper only draws it.
    tol : float, optional
        Relative difference that is within the tolerance.
    shape : str, optional
        Rule for a drawn curve without a number.
    calibrate : bool
        True if the model's free parameters were fitted to this number.
    """

    id: str
    what: str = ""
    value: float | None = None
    tol: float | None = None
    shape: str | None = None
    calibrate: bool = False


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A number that a paper states and no simulation gives.

    Attributes
    ----------
    id : str
        Experiment and quantity, joined by dots.
    what : str
        The statement, with its number.
    why : str
        Why no run measures it.
    """

    id: str
    what: str
    why: str


def read_unmeasured(file: Traversable) -> tuple[Unmeasured, ...]:
    """Read the statements without a measurement, a table ``[[unmeasured]]`` for each.

    Parameters
    ----------
    file : Traversable
        The file of the targets.

    Returns
    -------
    tuple of Unmeasured
        The statements in the order of the file.
    """
    entries = tomllib.loads(file.read_text("utf-8")).get("unmeasured", [])
    return tuple(Unmeasured(**entry) for entry in entries)


def read_targets(file: Traversable) -> dict[str, Target]:
    """Read the targets of a paper from a TOML file with a table ``[[target]]`` for each.

    Parameters
    ----------
    file : Traversable
        The file.

    Returns
    -------
    dict of str to Target
        Targets by id, in the order of the file.
    """
    entries = tomllib.loads(file.read_text("utf-8"))["target"]
    targets = [Target(**entry) for entry in entries]
    return {target.id: target for target in targets}
