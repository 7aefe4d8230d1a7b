"""Experiments that real programs carry out in a live fabric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from silvan.reproduce.experiment import PointTable


@dataclass(frozen=True, slots=True)
class LiveExperiment:
    """An experiment of real programs, beside a simulated one with one seed.

    ``run`` gets a folder for what programs write, the points of the experiment ``beside``, and a
    function that tells the user what goes on. Finished parts in the folder are not run again.
    """

    id: str
    title: str
    beside: str
    run: Callable[[Path, PointTable, Callable[[str], None]], PointTable]
