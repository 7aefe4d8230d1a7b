"""A sweep from start to end."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from silvan.errors import SchedulerError, SilvanError, checked_argument, shown
from silvan.execution.cache import build_id
from silvan.execution.progress_bar import Update, progress_bar
from silvan.execution.scheme_check import is_in_python, require_scheme
from silvan.extras import require_extra
from silvan.inputs.scenario import Scenario
from silvan.scratch import scratch_folder
from silvan.sweeping.local import run_here
from silvan.sweeping.outcome import Outcome, Succeeded
from silvan.sweeping.plan import Grid, SweepPlan, plan
from silvan.sweeping.store import Failure, SweepFolder
from silvan.sweeping.table import SweepRow
from silvan.sweeping.work import Task

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


SLURM_JOBS = 4

LAST_PORT = 65535

SCHEME_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class SweepProgress:
    """Progress of a sweep.

    Attributes
    ----------
    total : int
        Points of the sweep.
    kept : int
        Points that were finished before it began.
    done : int
        Points finished since.
    failed : int
        Points that failed since.
    failure : Failure, optional
        The point that has failed just now.
    """

    total: int
    kept: int
    done: int
    failed: int
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class SweepResult:
    """Result of a sweep.

    Attributes
    ----------
    points : pyarrow.Table
        One row per finished point: a column per varied key, the seed, the run in numbers, and the
        hash that names the point.
    failures : tuple of Failure
        The points that could not be finished.
    folder : Path, optional
        Folder of the sweep.
    """

    points: pa.Table
    failures: tuple[Failure, ...]
    folder: Path | None

    def to_polars(self) -> pl.DataFrame:
        """Give the points as a polars data frame. Needs polars, which silvan does not install."""
        import polars as pl

        frame = pl.from_arrow(self.points)
        assert isinstance(frame, pl.DataFrame)
        return frame

    def to_pandas(self) -> pd.DataFrame:
        """Give the points as a pandas data frame. Needs pandas, which silvan does not install."""
        frame: pd.DataFrame = self.points.to_pandas()
        return frame

    def _repr_html_(self) -> str:
        from silvan.sweeping.sweep_html import sweep_html

        return sweep_html(self)


def sweep(
    scenario: Scenario,
    grid: Grid | None = None,
    *,
    seeds: int | None = None,
    seed: int | None = None,
    out: str | Path | None = None,
    scheduler: str = "local",
    workers: int | None = None,
    tables: bool = False,
    overwrite: bool = False,
    point_timeout_s: float | None = None,
    progress: bool | Callable[[SweepProgress], object] | None = None,
    changes: Sequence[str] = (),
) -> SweepResult:
    """Run a scenario at every point of a grid, several points at once.

    A point is identified by the hash of its effective scenario with its seed. Points that a folder
    holds already are not run again, and a sweep that is killed continues from them.

    Parameters
    ----------
    scenario : Scenario
        Scenario to vary. Its own sweep is part of the grid.
    grid : Mapping, optional
        Values to vary by dotted key; quantities are text with their unit.
    seeds : int, optional
        Runs of each combination, with consecutive seeds; by default the scenario's sweep's, or one.
    seed : int, optional
        The first seed; by default the scenario's.
    out : str or Path, optional
        Folder to keep points in, as they finish. Without one, nothing is written.
    scheduler : str, optional
        ``"local"`` for the cores of this machine, ``"slurm"``, or the address of a Dask scheduler
        such as ``"tcp://login1:8786"``.
    workers : int, optional
        Processes at once, one per core by default; with Slurm, jobs at once. A running Dask cluster
        has its own number.
    tables : bool, optional
        True keeps all tables of every point, too, in ``tables/HASH`` of the folder.
    overwrite : bool, optional
        True removes another sweep in the folder; by default it is an error.
    point_timeout_s : float, optional
        Seconds on the wall clock that a point may take; by default any time. The process of a point
        that takes longer is ended, and the point has failed.
    progress : bool or callable, optional
        True shows a progress bar in a notebook or on a terminal. A function is called with a
        :class:`SweepProgress` at the start and whenever a point ends.
    changes : sequence of str, optional
        Words of a command line that made the scenario from its file, such as ``--set`` with its
        assignment. The command that the sweep's report shows has them; they change nothing here.

    Returns
    -------
    SweepResult
        The finished points as one table, and those that failed. A point that fails stops no other.

    Raises
    ------
    ScenarioError
        A key is unknown, or a point is impossible. Nothing has been run.
    SchemeError
        The scheme is in a Python file that fails. Nothing has been run.
    OutputError
        The folder cannot be written, or holds another sweep. Finished points stay.
    SchedulerError
        The scheduler does not answer, or is gone. Finished points stay.

    See Also
    --------
    silvan.run : simulate a single scenario.

    Examples
    --------
    >>> import silvan
    >>> scenario = silvan.Scenario(
    ...     fabric={"generator": "single-switch", "hosts": 4},
    ...     traffic={"incast": [{"to": "host-0000"}]},
    ...     run={"duration": "100 us"},
    ... )
    >>> result = silvan.sweep(scenario, {"host.sink-rate": ["4 Gbit/s", "8 Gbit/s"]}, seeds=2)
    >>> result.points.num_rows
    4
    >>> result.points["host.sink-rate"].to_pylist()
    ['4 Gbit/s', '4 Gbit/s', '8 Gbit/s', '8 Gbit/s']
    """
    _check_arguments(seeds, seed, out, workers, point_timeout_s, progress)
    require_scheduler(scheduler)
    planned = plan(scenario, grid, seeds=seeds, seed=seed)
    _require_scheme(planned, point_timeout_s)
    with ExitStack() as stack:
        path = Path(stack.enter_context(scratch_folder("sweep")) if out is None else out)
        folder = stack.enter_context(
            SweepFolder.open(
                path,
                planned,
                build_id(),
                tables=tables and out is not None,
                overwrite=overwrite,
                changes=changes,
            )
        )
        todo = [point for point in planned.points if not folder.is_finished(point)]
        total, kept = len(planned.points), len(planned.points) - len(todo)
        done, failed = 0, 0

        show = progress
        if progress is True:
            update = stack.enter_context(progress_bar(scenario.name))
            show = partial(_show, update)

        def tell(failure: Failure | None = None) -> None:
            if callable(show):
                show(SweepProgress(total, kept, done, failed, failure))

        tell()
        tasks = [Task(point.text, point.seed, folder.tables, point_timeout_s) for point in todo]
        jobs = min(workers or SLURM_JOBS, max(len(tasks), 1))
        address = stack.enter_context(scheduler_of(scheduler if tasks else "local", jobs))
        for outcome in stack.enter_context(closing(outcomes(address, tasks, workers))):
            point = todo[outcome.index]
            if isinstance(outcome, Succeeded):
                made = outcome.finished
                row = SweepRow(
                    hash=point.hash,
                    seed=point.seed,
                    values=point.values,
                    measures=made.measures,
                    wall_s=made.wall_s,
                    idle_scheme=made.idle_scheme,
                )
                folder.finish(point, row, made.result)
                done += 1
                tell()
            else:
                failed += 1
                tell(folder.fail(point, outcome.error, outcome.attempts))
        failures = [folder.failures[one.hash] for one in todo if one.hash in folder.failures]
        return SweepResult(folder.to_arrow(), tuple(failures), None if out is None else path)


def _show(update: Update, state: SweepProgress) -> None:
    ended = state.kept + state.done + state.failed
    failed = f", {state.failed} failed" if state.failed else ""
    update(ended / max(state.total, 1), f"{ended} of {state.total} points{failed}")


def _check_arguments(
    seeds: object, seed: object, out: object, workers: object, limit: object, progress: object
) -> None:
    for name, value, kind, wanted in (
        ("seeds", seeds, Integral, "a whole number"),
        ("seed", seed, Integral, "a whole number"),
        ("out", out, str | os.PathLike, "the path of a folder"),
        ("workers", workers, Integral, "a whole number"),
        ("point_timeout_s", limit, Real, "a number of seconds"),
        ("progress", progress, bool | Callable, "True, or a function of a silvan.SweepProgress"),
    ):
        if value is not None:
            checked_argument(name, value, kind, wanted)
    if isinstance(workers, Integral) and int(workers) < 1:
        raise SilvanError(
            f"workers: {workers} is less than 1", "give at least 1, or None for one per core"
        )


def _require_scheme(planned: SweepPlan, point_timeout_s: float | None) -> None:
    """Build the Python scheme of the first point, as it would fail at all others."""
    limit_s = min(SCHEME_LIMIT_S, point_timeout_s or SCHEME_LIMIT_S)
    own = "python" if planned.scenario.has_python_scheme else None
    for point in planned.points:
        if is_in_python(point.values.get("control.scheme", own)):
            require_scheme(point.scenario(), point.seed, limit_s)
            return


def require_scheduler(scheduler: str) -> None:
    """Make sure that a word names a scheduler that can be used."""
    checked_argument("scheduler", scheduler, str, "local, slurm, or an address")
    if scheduler not in ("local", "slurm") and "://" not in scheduler:
        raise SchedulerError(
            f"{scheduler!r} is no scheduler",
            hint="use local, slurm, or an address such as tcp://login1:8786",
        )
    if "://" in scheduler and not _has_port(scheduler):
        raise SchedulerError(
            f"{shown(scheduler)} has no host and port",
            hint="give the scheduler's address as tcp://HOST:PORT",
        )
    if scheduler != "local":
        require_extra("cluster", "sweeps on a cluster")


def _has_port(address: str) -> bool:
    place = address.partition("://")[2].partition("/")[0]
    found = re.fullmatch(r".+:([0-9]{1,5})", place)
    return found is not None and 0 < int(found[1]) <= LAST_PORT


@contextmanager
def scheduler_of(scheduler: str, jobs: int | None) -> Iterator[str]:
    """Hold a scheduler, so that Slurm jobs are submitted once for several lists of tasks."""
    if scheduler != "slurm":
        yield scheduler
        return
    # Dask takes a second to import.
    from silvan.sweeping.cluster import slurm_scheduler

    with slurm_scheduler(jobs) as address:
        yield address


def outcomes(
    scheduler: str, tasks: Sequence[Task], workers: int | None
) -> Generator[Outcome, None, None]:
    """Run tasks on a scheduler of :func:`scheduler_of`."""
    if not tasks:
        return
    if scheduler == "local":
        yield from run_here(tasks, workers)
        return
    from silvan.sweeping.cluster import run_on_cluster

    yield from run_on_cluster(scheduler, tasks)
