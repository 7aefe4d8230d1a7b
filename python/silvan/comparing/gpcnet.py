"""The runs of the benchmark GPCNeT: its tests alone, its congestors alone, and both together."""

from __future__ import annotations

from contextlib import closing
from typing import Final

from silvan.execution.workers import Job, OnProgress, run_jobs
from silvan.inputs.scenario import Scenario
from silvan.results.gpcnet import PARTS, Part, Report, report, section_of

_ALONE_MS: Final = 1.0


def part(scenario: Scenario, name: Part) -> Scenario:
    """Return ``isolated``, ``congestors`` or ``congested`` of ``traffic.gpcnet`` as a scenario."""
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
    """Run the benchmark in parallel: its tests alone, its congestors alone, and both."""
    jobs = [Job(part(scenario, name), scenario.seed if seed is None else seed) for name in PARTS]
    with closing(run_jobs(jobs, on_progress=on_progress)) as finished:
        return report(scenario, {PARTS[index]: result for index, result in finished})
