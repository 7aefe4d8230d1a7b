"""Finished runs of the arena, one small file for each."""

from __future__ import annotations

import hashlib
import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from silvan.errors import OutputError, shown
from silvan.execution.cache import build_id
from silvan.folders import require_writable, write_text
from silvan.inputs.scenario import Scenario
from silvan.results.measures import MEASURES


@dataclass(frozen=True, slots=True)
class Run:
    """A scenario's text with a scheme's settings, and a seed."""

    text: str
    hash: str
    seed: int

    @classmethod
    def of(cls, scenario: Scenario, seed: int) -> Run:
        """Take what identifies a run."""
        return cls(scenario.to_toml(), scenario.hash, seed)

    @property
    def key(self) -> str:
        """Identity of the run, and name of its file."""
        return f"{self.hash[:16]}-seed-{self.seed}"

    @property
    def scenario(self) -> Scenario:
        """Read the scenario again."""
        return Scenario.from_toml(self.text)


@dataclass(frozen=True, slots=True)
class Measured:
    """Result of a run, or the reason for none. Processor time includes all around it."""

    numbers: dict[str, Any] | None
    processor_s: float
    failure: str = ""


class Store:
    """A folder of finished runs of this build of silvan; runs of others stay unread."""

    def __init__(self, root: Path) -> None:
        self._folder = root / build_id()
        require_writable(self._folder)
        self._known: dict[str, Measured] = {}

    def get(self, run: Run) -> Measured | None:
        """Return what came of a run that was finished before, or None."""
        found = self._known.get(run.key)
        if found is None and (found := _read(self._file(run))) is not None:
            self._known[run.key] = found
        return found

    def keep(self, run: Run, measured: Measured) -> None:
        """Store the result of a run. A failed run is tried again by another call."""
        self._known[run.key] = measured
        if measured.numbers is not None:
            written = _without_infinity(measured.numbers)
            text = json.dumps(
                {
                    "numbers": written,
                    "processor_s": measured.processor_s,
                    "digest": _digest(written),
                },
                allow_nan=False,
            )
            write_text(self._file(run), text + "\n")

    def missing(self, runs: Sequence[Run]) -> list[Run]:
        """List the runs to be made, each once."""
        unique = {run.key: run for run in runs}
        missing = []
        damaged: dict[Path, OutputError] = {}
        for run in unique.values():
            try:
                if self.get(run) is None:
                    missing.append(run)
            except OutputError as error:
                damaged[self._file(run)] = error
        if not damaged:
            return missing
        first = next(iter(damaged.values()))
        if len(damaged) == 1:
            raise first
        files = " ".join(shlex.quote(str(one)) for one in damaged)
        raise OutputError(
            f"{first.message}; {len(damaged)} files in all",
            hint=f"remove them and repeat the command; their runs are made again: rm {files}",
        )

    def _file(self, run: Run) -> Path:
        return self._folder / f"{run.key}.json"


def _read(path: Path) -> Measured | None:
    try:
        return _measured(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise OutputError(
            f"{path}: not readable: {shown(error)}",
            hint="remove this file and repeat the command; its run is made again",
        ) from None


def _measured(read: object) -> Measured:
    match read:
        case {
            "numbers": {
                "series": {
                    "times_ms": list(times),
                    "tree_ports": list(ports),
                },
                **values,
            } as numbers,
            "processor_s": processor_s,
            "digest": digest,
        }:
            pass
        case _:
            raise ValueError("it has no numbers of a run")
    for name in MEASURES:
        if values.get(name) not in (None, "inf") and not _is_number(values[name]):
            raise ValueError(f"{name} is no number")
    if not _is_number(values.get("packet_hops")):
        raise ValueError("packet_hops is missing")
    if not _is_number(processor_s) or processor_s <= 0:
        raise ValueError("processor_s is no number above 0")
    if not all(_is_number(one) for one in (*times, *ports)):
        raise ValueError("series holds something that is no number")
    if not 0 < len(times) == len(ports):
        raise ValueError("its series are of different lengths")
    if digest != _digest(numbers):
        raise ValueError("its numbers are not those that were written")
    return Measured(_with_infinity(numbers), float(processor_s))


def _digest(numbers: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(numbers).encode()).hexdigest()[:16]


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _without_infinity(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: "inf" if isinstance(value, float) and math.isinf(value) else value
        for name, value in values.items()
    }


def _with_infinity(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: math.inf if value == "inf" else value for name, value in values.items()}
