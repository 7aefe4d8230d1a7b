"""Targets: the numbers that a paper states."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources.abc import Traversable


@dataclass(frozen=True, slots=True)
class Target:
    """A number, or the shape of a curve, that a paper states; ``tol`` is relative."""

    id: str
    what: str = ""
    value: float | None = None
    tol: float | None = None
    shape: str | None = None
    calibrate: bool = False


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A number that a paper states and no simulation gives, with the reason."""

    id: str
    what: str
    why: str


def read_unmeasured(file: Traversable) -> tuple[Unmeasured, ...]:
    """Read the statements without a measurement, a table ``[[unmeasured]]`` for each."""
    entries = tomllib.loads(file.read_text("utf-8")).get("unmeasured", [])
    return tuple(Unmeasured(**entry) for entry in entries)


def read_targets(file: Traversable) -> dict[str, Target]:
    """Read the targets of a paper from a TOML file with a table ``[[target]]`` for each."""
    entries = tomllib.loads(file.read_text("utf-8"))["target"]
    targets = [Target(**entry) for entry in entries]
    return {target.id: target for target in targets}
