"""Runs that were finished before are read, not run again."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path

from silvan import _silvan
from silvan.errors import OutputError
from silvan.execution.simulation import Progress
from silvan.execution.workers import Job, OnProgress, run_jobs
from silvan.folders import MANIFEST
from silvan.inputs.scenario import Scenario
from silvan.results.result import Result


@cache
def build_id() -> str:
    """Name the installed simulator by version and digest: builds of one version may differ."""
    code = Path(_silvan.__file__).read_bytes()
    return f"{_silvan.version()}-{hashlib.sha256(code).hexdigest()[:12]}"


def run_folder(root: Path, scenario: Scenario, seed: int) -> Path:
    """Name the folder of one finished run: scenario, seed and simulator decide it."""
    return root / build_id() / f"{scenario.hash[:16]}-seed-{seed}"


def finished_result(folder: Path) -> Result | None:
    """Read a result that was finished before, if it is there and whole."""
    if not (folder / MANIFEST).is_file():
        return None
    try:
        return Result.read(folder)
    except OutputError:
        return None


def cached_runs(
    root: Path,
    runs: Sequence[tuple[Scenario, int]],
    on_progress: OnProgress | None = None,
) -> Generator[tuple[int, Result], None, None]:
    """Yield index and result of every run, from the cache first; new results are added to it."""
    jobs = [Job(scenario, seed, run_folder(root, scenario, seed)) for scenario, seed in runs]
    missing: list[int] = []
    for index, job in enumerate(jobs):
        assert job.folder is not None
        result = finished_result(job.folder)
        if result is None:
            missing.append(index)
        else:
            yield index, result

    def report(position: int, state: Progress) -> None:
        if on_progress is not None:
            on_progress(missing[position], state)

    with closing(run_jobs([jobs[index] for index in missing], on_progress=report)) as finished:
        for position, result in finished:
            yield missing[position], result
