"""Finished runs of the arena, one small file for each."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from silvan.cache import build_id
from silvan.errors import OutputError
from silvan.folders import require_writable, write_text
from silvan.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Run:
    """A scenario with a scheme's settings, and a seed.

    Attributes
    ----------
    scenario : Scenario
        The scenario.
    seed : int
        The seed.
    """

    scenario: Scenario
    seed: int

    @property
    def key(self) -> str:
        """Its identity, and the name of its file."""
        return f"{self.scenario.hash[:16]}-seed-{self.seed}"


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of a run.

    Attributes
    ----------
    numbers : dict, optional
        What was measured, as :func:`silvan.arena.measure.numbers` returns it.
    processor_s : float
        Processor time that the run took with all around it, in seconds.
    failure : str
        Why there is no result; empty if there is one.
    """

    numbers: dict[str, Any] | None
    processor_s: float
    failure: str = ""


class Store:
    """A folder of finished runs of this build of silvan.

    Parameters
    ----------
    root : Path
        The folder. Runs of other builds may be in it, and are not read.

    Raises
    ------
    OutputError
        The folder cannot be written.
    """

    def __init__(self, root: Path) -> None:
        self._folder = root / build_id()
        require_writable(self._folder)
        self._known: dict[str, Measured] = {}

    def get(self, run: Run) -> Measured | None:
        """Return what came of a run that was finished before, or None."""
        if run.key not in self._known:
            path = self._file(run)
            try:
                read = json.loads(path.read_text(encoding="utf-8"))
                measured = Measured(_with_infinity(read["numbers"]), float(read["processor_s"]))
            except FileNotFoundError:
                return None
            except (OSError, ValueError, TypeError, KeyError) as error:
                raise OutputError(
                    f"{path}: not readable: {error}",
                    hint="remove this file and repeat the command; its run is made again",
                ) from None
            self._known[run.key] = measured
        return self._known[run.key]

    def keep(self, run: Run, measured: Measured) -> None:
        """Keep what came of a run. One that failed is remembered, and tried again by another call.

        Raises
        ------
        OutputError
            It cannot be written; what was finished before is kept.
        """
        self._known[run.key] = measured
        if measured.numbers is not None:
            text = json.dumps(
                {
                    "numbers": _without_infinity(measured.numbers),
                    "processor_s": measured.processor_s,
                },
                allow_nan=False,
            )
            write_text(self._file(run), text + "\n")

    def missing(self, runs: Sequence[Run]) -> list[Run]:
        """List the runs that are still to be made, each once."""
        unique = {run.key: run for run in runs}
        return [run for run in unique.values() if self.get(run) is None]

    def _file(self, run: Run) -> Path:
        return self._folder / f"{run.key}.json"


def _without_infinity(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: "inf" if isinstance(value, float) and math.isinf(value) else value
        for name, value in values.items()
    }


def _with_infinity(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: math.inf if value == "inf" else value for name, value in values.items()}
