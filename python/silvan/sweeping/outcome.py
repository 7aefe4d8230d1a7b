"""What becomes of a task, on whatever scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from silvan.sweeping.work import Finished


@dataclass(frozen=True, slots=True)
class Succeeded:
    """A task is done.

    Attributes
    ----------
    index : int
        The task.
    finished : Finished
        What its worker gave back.
    """

    index: int
    finished: Finished


@dataclass(frozen=True, slots=True)
class Failed:
    """A task cannot be done.

    Attributes
    ----------
    index : int
        The task.
    error : str
        Why, in one line.
    attempts : int
        How often it was tried.
    """

    index: int
    error: str
    attempts: int


Outcome: TypeAlias = Succeeded | Failed
"""What becomes of a task."""
