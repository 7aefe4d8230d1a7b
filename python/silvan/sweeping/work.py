"""One point of a sweep, as any worker does it, in this machine or in another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from silvan.scenario import Scenario
from silvan.simulation import Progress, simulate

if TYPE_CHECKING:
    from silvan.result import Result


@dataclass(frozen=True, slots=True)
class Task:
    """What a worker must know.

    Attributes
    ----------
    text : str
        The scenario in TOML.
    seed : int
        Seed of the run.
    tables : bool
        Whether to give back all tables of the result.
    """

    text: str
    seed: int
    tables: bool


@dataclass(frozen=True, slots=True)
class Finished:
    """What a worker gives back.

    Attributes
    ----------
    measures : dict
        The run in a few numbers, by name with unit; equal for equal scenarios.
    wall_s : float
        Time that the simulation took, in seconds.
    simulator : str
        The build that made it.
    result : Result, optional
        All tables, if they are wanted.
    """

    measures: dict[str, int | float | None]
    wall_s: float
    simulator: str
    result: Result | None


def run_task(task: Task, report: Callable[[Progress], object] | None = None) -> Finished:
    """Do one point.

    Parameters
    ----------
    task : Task
        What to run.
    report : callable, optional
        Takes reports of progress; an exception that it raises stops the run.

    Returns
    -------
    Finished
        The run in numbers.

    Raises
    ------
    SilvanError
        The run failed.
    """
    from silvan.reproduce.cache import build_id

    scenario = Scenario.from_toml(task.text).single_run(task.seed)
    result = simulate(scenario, task.seed, progress=report)
    return Finished(
        measures=_measures(result),
        wall_s=result.summary["wall_s"],
        simulator=build_id(),
        result=result if task.tables else None,
    )


def _measures(result: Result) -> dict[str, int | float | None]:
    from silvan.measures import RECEIVE_RATES, receive_rates_gbps

    rates = receive_rates_gbps(result)
    classes: list[dict[str, Any]] = result.classes.to_pylist()

    def worst(name: str) -> float | None:
        return max((one[name] for one in classes if one[name] is not None), default=None)

    return {
        **{name: rates.get(name) for name in RECEIVE_RATES},
        "delivered_bytes": sum(one["delivered_bytes"] for one in classes),
        "delivered_packets": sum(one["delivered_packets"] for one in classes),
        "marked_packets": sum(one["marked_packets"] for one in classes),
        "worst_latency_p50_ns": worst("latency_p50_ns"),
        "worst_latency_p99_ns": worst("latency_p99_ns"),
        "worst_latency_max_ns": worst("latency_max_ns"),
        "simulated_ps": result.summary["simulated_ps"],
        "packet_hops": result.summary["packet_hops"],
        "events": result.summary["events"],
    }
