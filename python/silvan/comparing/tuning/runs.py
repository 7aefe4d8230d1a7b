"""The runs of a search, kept as points of a sweep's folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from silvan.errors import OutputError, ScenarioError
from silvan.execution.cache import build_id
from silvan.folders import write_text
from silvan.inputs.scenario import Scenario
from silvan.inputs.toml_text import TomlValue, literal
from silvan.sweeping.outcome import Succeeded
from silvan.sweeping.plan import Point, SweepPlan
from silvan.sweeping.store import SweepFolder
from silvan.sweeping.sweep import outcomes, require_scheduler, scheduler_of
from silvan.sweeping.table import SweepRow
from silvan.sweeping.work import Task

Measures = Mapping[str, float | None]

STUDY = "study.json"

OFF: Mapping[str, TomlValue] = {"control.scheme": "none"}


class Runs:
    """Runs on a scheduler, each kept in a folder and never repeated. Made by :func:`open_runs`."""

    def __init__(
        self,
        folder: SweepFolder,
        scenario: Scenario,
        scheduler: str,
        workers: int | None,
        limit_s: float | None,
        on_failure: Callable[[str], object],
    ) -> None:
        self._folder = folder
        self._scenario = scenario
        self._scheduler = scheduler
        self._workers = workers
        self._limit_s = limit_s
        self._on_failure = on_failure
        self.done = 0

    def point(self, values: Mapping[str, TomlValue], seed: int) -> Point:
        """Build one run."""
        # As literals, so that a table replaces the scenario's whole table.
        one = self._scenario.at({key: literal(value) for key, value in values.items()})
        return Point(dict(values), seed, one.single_run(seed).hash, one.to_toml())

    def measure(self, points: Sequence[Point]) -> list[Measures | None]:
        """Make missing runs, and return all measures; None for a failed run."""
        unique = {point.hash: point for point in points}
        todo = [one for one in unique.values() if not self._folder.is_finished(one)]
        tasks = [Task(one.text, one.seed, tables=False, limit_s=self._limit_s) for one in todo]
        with closing(outcomes(self._scheduler, tasks, self._workers)) as ended:
            for outcome in ended:
                point = todo[outcome.index]
                if isinstance(outcome, Succeeded):
                    made = outcome.finished
                    values = {"hash": point.hash, "seed": point.seed, "values": point.values}
                    row = SweepRow(**values, measures=made.measures, wall_s=made.wall_s)  # type: ignore[arg-type]
                    self._folder.finish(point, row, None)
                    self.done += 1
                else:
                    failure = self._folder.fail(point, outcome.error, outcome.attempts)
                    self._on_failure(f"failed: {failure.error} ({failure.scenario})")
        rows = self._folder.rows
        return [rows[one.hash].measures if one.hash in rows else None for one in points]


@contextmanager
def open_runs(
    path: Path,
    scenario: Scenario,
    keys: Sequence[str],
    study: Mapping[str, Any],
    *,
    scheduler: str = "local",
    workers: int | None = None,
    limit_s: float | None = None,
    overwrite: bool = False,
    on_failure: Callable[[str], object] = lambda _text: None,
) -> Iterator[Runs]:
    """Open the folder of a search; ``study`` must be unchanged when a search continues."""
    require_scheduler(scheduler)
    base = scenario.override({"sweep": {}})
    axes: dict[str, list[TomlValue]] = {key: [] for key in keys}
    plan = SweepPlan(base, axes, ())
    file = path / STUDY
    with (
        scheduler_of(scheduler, workers) as address,
        SweepFolder.open(path, plan, build_id(), tables=False, overwrite=overwrite) as folder,
    ):
        text = json.dumps(study, indent=2) + "\n"
        is_new = overwrite or not file.exists()
        if not is_new and file.read_text(encoding="utf-8") != text:
            raise OutputError(
                f"{path}: {_difference(file, json.loads(text))}",
                hint="name another folder with --out, or replace what is there with --overwrite",
            )
        write_text(file, text)
        try:
            yield Runs(folder, base, address, workers, limit_s, on_failure)
        except ScenarioError:
            # The search is impossible; a corrected one may use the runs.
            if is_new:
                file.unlink(missing_ok=True)
            raise


def _difference(file: Path, study: Mapping[str, Any]) -> str:
    try:
        there = dict(json.loads(file.read_text(encoding="utf-8")))
    except (ValueError, TypeError):
        return f"{file.name} is no search"
    keys = [key for key in {**there, **study} if there.get(key) != study.get(key)]
    return f"the search there has other values of {', '.join(keys) or 'its keys'}"


def require_valid(runs: Runs, values: Mapping[str, TomlValue], seed: int, source: str) -> None:
    """Make sure that values can be simulated, before a search begins."""
    try:
        runs.point(values, seed)
    except ScenarioError as error:
        raise ScenarioError(error.message, source, hint=error.hint, key=error.key) from None
