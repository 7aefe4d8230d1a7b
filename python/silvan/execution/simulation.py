"""Simulating one scenario."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

from silvan import _silvan
from silvan.errors import ScenarioWarning, checked_argument
from silvan.execution.progress_bar import Update, progress_bar
from silvan.execution.run_threads import checked_threads, fewer_threads, requested_threads
from silvan.inputs.scenario import (
    Scenario,
    checked_scenario,
    checked_seed,
    warn_without_traffic,
)
from silvan.results.result import Result
from silvan.schemes.foreign_code import foreign_code
from silvan.schemes.scheme_file import scheme_of

if TYPE_CHECKING:
    from silvan.schemes.callbacks import Callbacks


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a run.

    Attributes
    ----------
    simulated_ps : int
        Simulated time so far, in picoseconds.
    duration_ps : int
        Simulated time of the whole run, in picoseconds.
    packet_hops : int
        Links crossed by packets so far.
    events : int
        Events processed so far.
    wall_s : float
        Time on the wall clock so far, in seconds.
    """

    simulated_ps: int
    duration_ps: int
    packet_hops: int
    events: int
    wall_s: float


def run(
    scenario: Scenario,
    *,
    seed: SupportsIndex | None = None,
    progress: bool | Callable[[Progress], object] | None = None,
    control: Callbacks | None = None,
    threads: SupportsIndex | Literal["auto"] | None = None,
) -> Result:
    """Simulate a scenario.

    Other Python threads go on meanwhile. Ctrl-C stops the run within a fraction of a
    second and raises :class:`KeyboardInterrupt`.

    Parameters
    ----------
    scenario : Scenario
        Scenario to simulate.
    seed : int, optional
        Seed of every random choice; by default the scenario's own. Equal seeds give equal
        results, to the bit.
    progress : bool or callable, optional
        True shows a progress bar in a notebook or on a terminal. A function is called about ten
        times a second, and once when the run has ended, with a :class:`Progress`; an exception
        that it raises stops the run and is passed on.
    control : Callbacks, optional
        A congestion-control scheme in Python, in place of the scenario's. A scheme in a file
        that the scenario names needs none.
    threads : int or "auto", optional
        Threads that simulate the run, in place of ``run.threads`` of the scenario. Results do not
        depend on it. ``result.summary["threads"]`` is the most that the run could use: one for
        fabrics, loads and schemes that cannot be divided. While the machine is busy, the run uses
        fewer of them.

    Returns
    -------
    Result
        Counts, samples and deliveries.

    Raises
    ------
    SimulationError
        The fabric is stalled by a credit loop, or cannot be built.
    SchemeError
        The scheme is in Python, and its file or one of its functions fails. The error of a
        function has ``hook`` and ``time_ps``.
    ScenarioError
        An argument is no scenario, no seed, or no number of threads.

    Warns
    -----
    ScenarioWarning
        No host sends anything; or the run uses fewer threads than the number that is asked for,
        because it cannot be divided among so many.

    See Also
    --------
    silvan.Scenario : what to simulate.
    silvan.Result.write : keep a result.

    Examples
    --------
    >>> import silvan
    >>> scenario = silvan.Scenario(
    ...     fabric={"generator": "single-switch", "hosts": 2},
    ...     traffic={"flow": [{"from": "host-0000", "to": "host-0001"}]},
    ...     run={"duration": "100 us"},
    ... )
    >>> result = silvan.run(scenario, seed=1)
    >>> result.summary["simulated_ps"]
    100000000
    """
    scenario = checked_scenario(scenario)
    if progress is not None:
        wanted = "True, or a function of a silvan.Progress"
        checked_argument("progress", progress, bool | Callable, wanted)
    if control is not None:
        from silvan.schemes.callbacks import Callbacks

        checked_argument("control", control, Callbacks, "silvan.Callbacks(state, ...)")
    number = scenario.seed if seed is None else checked_seed(seed)
    count = None if threads is None else checked_threads(threads)
    if not scenario.has_traffic:
        warn_without_traffic(scenario.name)
    if progress is True:
        with progress_bar(scenario.name) as update:
            show = partial(_show, update)
            result = simulate(scenario, number, progress=show, control=control, threads=count)
    else:
        report = progress or None
        result = simulate(scenario, number, progress=report, control=control, threads=count)
    remark = fewer_threads(requested_threads(scenario, count), result.summary["threads"])
    if remark is not None:
        warnings.warn(f"{scenario.name}: {remark}", ScenarioWarning, stacklevel=2)
    return result


def _show(update: Update, state: Progress) -> None:
    simulated, duration = state.simulated_ps / 1e9, state.duration_ps / 1e9
    update(simulated / duration, f"{simulated:.2f} of {duration:g} ms")


def simulate(
    scenario: Scenario,
    seed: int,
    *,
    progress: Callable[[Progress], object] | None = None,
    control: Callbacks | None = None,
    threads: int | None = None,
) -> Result:
    """Simulate a scenario that has been checked, as :func:`run` does; 0 threads means auto."""
    report: Callable[[dict[str, Any]], object] | None = None
    if progress is not None:

        def report(state: dict[str, Any]) -> object:
            return progress(Progress(**state))

    if control is None:
        control = scheme_of(scenario, seed)
    if control is None:
        output = _silvan.run(scenario._native, seed, report, threads=threads)
    else:
        output = _run_callbacks(scenario, seed, report, control)
    return Result.from_columns(scenario, seed, output.tables, json.loads(output.summary))


def _run_callbacks(
    scenario: Scenario,
    seed: int,
    report: Callable[[dict[str, Any]], object] | None,
    control: Callbacks,
) -> _silvan.RunOutput:
    from silvan.schemes.hook_failure import HookFailure, compiled_exceptions

    # The functions change the copy, which must live until the run is over.
    state = control.state.copy()
    callbacks = {**control.addresses(), "state": state.ctypes.data}
    with compiled_exceptions() as raised:
        try:
            return _silvan.run(scenario._native, seed, report, callbacks)
        except HookFailure as failure:
            with foreign_code():
                error = control.explain(failure, state, raised)
    raise error
