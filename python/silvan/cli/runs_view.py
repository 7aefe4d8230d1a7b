"""The progress of many runs: one bar for all of them, and a line for each that is going on."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from silvan.cli.printer import note
from silvan.inputs.wording import duration

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

    from silvan.execution.simulation import Progress

# Without a terminal, a line for each such step.
_LOG_STEP = 0.1


class RunsView:
    """Common progress of many runs, weighted by expected time; without bars, it writes lines."""

    def __init__(
        self, labels: Sequence[str], weights: Sequence[float], bars: Bars | None = None
    ) -> None:
        self._labels = labels
        self._weights = weights
        self._bars = bars
        self._parts = [0.0] * len(labels)
        self._kept: set[int] = set()
        self._done: set[int] = set()
        self._tasks: dict[int, Any] = {}
        self._experiments: dict[str, Any] = {}
        self._started = time.monotonic()
        self._logged = 0.0
        self._all = bars.add_task("", total=1.0, left="") if bars else None

    def kept(self, index: int) -> None:
        """Count a run that was finished before, and costs no time now."""
        self._kept.add(index)
        self._show()

    def running(self, index: int, state: Progress) -> None:
        """Note how far a run has come."""
        self._parts[index] = state.simulated_ps / state.duration_ps
        if self._bars is not None and index not in self._done:
            if index not in self._tasks:
                self._tasks[index] = self._bars.add_task(self._labels[index], total=1.0, left="")
            self._bars.update(self._tasks[index], completed=self._parts[index])
        self._show()

    def finished(self, index: int) -> None:
        """Count a run that was finished now."""
        self._parts[index] = 1.0
        self._done.add(index)
        if self._bars is not None and index in self._tasks:
            self._bars.remove_task(self._tasks.pop(index))
        self._show()

    def evaluating(self, experiment: str) -> None:
        """Note that an experiment's runs are being measured and drawn."""
        if self._bars is not None:
            words = f"{experiment}: figures"
            self._experiments[experiment] = self._bars.add_task(words, total=None, left="")

    def evaluated(self, experiment: str) -> None:
        """Note that this has ended."""
        if self._bars is not None:
            self._bars.remove_task(self._experiments.pop(experiment))

    def _show(self) -> None:
        whole = sum(weight for index, weight in enumerate(self._weights) if index not in self._kept)
        part = sum(
            weight * part for weight, part in zip(self._weights, self._parts, strict=True)
        ) / max(whole, 1e-9)
        words = f"{len(self._done) + len(self._kept)} of {len(self._labels)} runs"
        if self._kept:
            words += f" ({len(self._kept)} kept)"
        passed = time.monotonic() - self._started
        left = f"about {duration(passed / part - passed)} left" if part > 0 else ""
        if self._bars is not None and self._all is not None:
            self._bars.update(self._all, completed=part, description=words, left=left)
        elif self._logged + _LOG_STEP <= part < 1:
            self._logged = part
            note(f"{words}, {left}")


@contextmanager
def runs_view(labels: Sequence[str], weights: Sequence[float]) -> Iterator[RunsView]:
    """Show the progress of many runs on stderr."""
    if not sys.stderr.isatty():
        yield RunsView(labels, weights)
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bars

    bars = Bars(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TextColumn("{task.fields[left]}"),
        console=Console(stderr=True),
        transient=True,
    )
    with bars:
        yield RunsView(labels, weights, bars)
