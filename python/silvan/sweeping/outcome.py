"""Outcome of a task, on any scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from silvan.sweeping.work import Finished


@dataclass(frozen=True, slots=True)
class Succeeded:
    """A task is done."""

    index: int
    finished: Finished


@dataclass(frozen=True, slots=True)
class Failed:
    """A task cannot be done."""

    index: int
    error: str
    attempts: int


Outcome: TypeAlias = Succeeded | Failed
