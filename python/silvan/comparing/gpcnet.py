"""The runs of the benchmark GPCNeT: its tests alone, its congestors alone, and both together."""

from __future__ import annotations

from contextlib import closing
from typing import Final

from silvan.execution.workers import Job, OnProgress, run_jobs
from silvan.inputs.scenario import Scenario
from silvan.results.gpcnet import PARTS, Part, Report, report, section_of

# Time for which congestors are measured alone, if the scenario gives them none to settle.
_ALONE_MS: Final = 1.0


def part(scenario: Scenario, name: Part) -> Scenario:
    """Give one part of the benchmark as a separate scenario.

    Parameters
    ----------
    scenario : Scenario
        A scenario with a table ``traffic.gpcnet``.
    name : str
        ``isolated``, ``congestors`` or ``congested``.

    Raises
    ------
    SilvanError
        If the scenario does not have the benchmark.
    """
    section = section_of(scenario)
    if name != "congestors":
        return scenario.override({"traffic.gpcnet.part": name})
    settle = section.settle.seconds * 1e3 or _ALONE_MS
    return scenario.override(
        {
            "traffic.gpcnet.part": name,
            "run.warm-up": f"{settle:g} ms",
            "run.duration": f"{2 * settle:g} ms",
            "probe.interval": f"{settle:g} ms",
        }
    )


def measure(
    scenario: Scenario, *, seed: int | None = None, on_progress: OnProgress | None = None
) -> Report:
    """Run the benchmark: its tests alone, its congestors alone, and both, in parallel.

    Parameters
    ----------
    scenario : Scenario
        A scenario with a table ``traffic.gpcnet``.
    seed : int, optional
        Seed of the runs; by default the scenario's.
    on_progress : callable, optional
        Called from time to time with the index of a part and its progress.

    Returns
    -------
    Report
        Measurements. Printed, it is the benchmark's table.
    """
    jobs = [Job(part(scenario, name), scenario.seed if seed is None else seed) for name in PARTS]
    with closing(run_jobs(jobs, on_progress=on_progress)) as finished:
        return report(scenario, {PARTS[index]: result for index, result in finished})
