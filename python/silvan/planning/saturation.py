"""The load up to which a fabric delivers all that is offered."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from silvan.errors import ScenarioError
from silvan.execution.simulation import run
from silvan.inputs.scenario import Scenario
from silvan.results.measures import finite
from silvan.results.receive_rates import measured_ps

_LEAST_LOAD = 1 / 256

_MESSAGES = 10


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """Measurements at a load, a share of the injection rate.

    ``messages`` arrived at the sources after the warm-up; ``None`` at a load of 1.
    ``idle_scheme`` is why the scheme never acted.
    """

    load: float
    offered_gbps: float
    delivered_gbps: float
    share: float
    measures: dict[str, float | None]
    messages: int | None
    idle_scheme: str | None = None


@dataclass(frozen=True, slots=True)
class Saturation:
    """Saturation of a fabric.

    Attributes
    ----------
    load : float
        Highest load that was delivered in full.
    above : float or None
        Lowest load that was not; ``None`` if that of 1 was.
    tolerance : float
        Share of what is offered that may be missing.
    senders : int
        Hosts with traffic, at most.
    points : tuple of LoadPoint
        All measurements, by load.
    """

    load: float
    above: float | None
    tolerance: float
    senders: int
    points: tuple[LoadPoint, ...]

    @property
    def most_gbps(self) -> float:
        """Highest rate that all hosts together received at any load, in Gbit/s."""
        return max(point.delivered_gbps for point in self.points)

    @property
    def is_certain(self) -> bool:
        """True if the runs had enough messages to tell the tolerance from messages under way.

        At the beginning and at the end of what is measured, up to one message is on its way from
        each sender that is busy, and a few are in the fabric.
        """
        return all(
            point.messages * self.tolerance >= _MESSAGES + self.senders * point.load
            for point in self.points
            if point.messages is not None
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in plain values."""
        return {**asdict(self), "most_gbps": self.most_gbps, "is_certain": self.is_certain}


def load_keys(scenario: Scenario) -> list[str]:
    """Return the keys of a scenario that have a load as a share of the injection rate."""
    return list(_loads(scenario.settings()["traffic"], "traffic"))


def _loads(value: Any, key: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, part in value.items():
            if name == "load" and isinstance(part, int | float | str) and _is_share(part):
                yield f"{key}.load"
            else:
                yield from _loads(part, f"{key}.{name}")
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from _loads(part, f"{key}.{place}")


def _is_share(load: float | str) -> bool:
    return load == "saturating" or not isinstance(load, str)


def saturate(
    scenario: Scenario,
    *,
    keys: Sequence[str] | None = None,
    tolerance: float = 0.02,
    resolution: float = 0.01,
    curve: int = 0,
    on_point: Callable[[LoadPoint], object] | None = None,
) -> Saturation:
    """Find the load up to which a fabric delivers all that is offered, by bisection.

    A load is delivered in full if between the warm-up and the end the hosts receive no less, up to
    the tolerance, than arrives at the sources in the same run. Traffic classes of which sources
    make messages when they can send them are not counted.

    Parameters
    ----------
    scenario : Scenario
        Scenario to simulate; its loads are replaced.
    keys : sequence of str, optional
        Keys of the loads, such as ``traffic.uniform.0.load``; by default all loads of its traffic
        that are a share of the injection rate.
    tolerance : float
        Share of what is offered that may be missing.
    resolution : float
        Largest distance between the highest load delivered in full and the lowest one that is not.
    curve : int
        Measure at least so many loads at equal distances below saturation, for a figure.
    on_point : callable, optional
        Called with each measurement.

    Returns
    -------
    Saturation
        The load, and all measurements.

    Raises
    ------
    ScenarioError
        If there is no load, a key is unknown, or even the lowest load is not delivered.
    SimulationError
        If a run fails.
    """
    given = list(keys) if keys is not None else load_keys(scenario)
    if not given:
        raise ScenarioError(
            "the scenario has no load that could be changed",
            hint="set the load of its traffic to a share of the injection rate, such as 0.5",
        )
    points: list[LoadPoint] = []

    def at(load: float) -> Scenario:
        return scenario.override(dict.fromkeys(given, load))

    open_loop = [name for name, arrivals in at(0.5).arrivals().items() if arrivals is not None]

    def is_full(load: float) -> bool:
        points.append(_measure(at(load), load, open_loop))
        if on_point is not None:
            on_point(points[-1])
        return points[-1].share >= 1 - tolerance

    full, above = 0.0, 1.0
    never = _is_possible(at, above) and is_full(above)
    while not never and (above - full > resolution or not full):
        middle = (full + above) / 2
        if middle < _LEAST_LOAD:
            raise ScenarioError(f"not even a load of {above:g} is delivered in full")
        full, above = (middle, above) if is_full(middle) else (full, middle)
    if never:
        full = 1.0
    for place in range(1, curve + 1):
        load = full * place / (curve + 1)
        if all(abs(load - point.load) > resolution for point in points):
            is_full(load)
    by_load = tuple(sorted(points, key=lambda point: point.load))
    senders = int(scenario.describe()["hosts"])
    return Saturation(full, None if never else above, tolerance, senders, by_load)


def _is_possible(at: Callable[[float], Scenario], load: float) -> bool:
    try:
        at(load)
    except ScenarioError:
        return False
    return True


def _measure(scenario: Scenario, load: float, classes: Collection[str]) -> LoadPoint:
    arrivals = {name: of for name, of in scenario.arrivals().items() if name in classes and of}
    if len(arrivals) == len(classes):
        offered = float(sum(of.payload_bytes for of in arrivals.values()))
        messages = sum(of.messages for of in arrivals.values())
    else:
        # At a load of 1 sources make messages when they can send them.
        offered = sum(of for name, of in scenario.offered_bytes().items() if name in classes)
        messages = None
    if not offered:
        raise ScenarioError(
            "nothing arrives at the sources between the warm-up and the end",
            hint="give traffic with a load that starts before run.duration, and less warm-up; "
            "sources that saturate and closed loops are not counted",
        )
    result = run(scenario)
    rows = [row for row in result.classes.to_pylist() if row["name"] in classes]
    delivered = sum(row["delivered_bytes"] for row in rows)
    to_gbps = 8000 / measured_ps(result)
    return LoadPoint(
        load=load,
        offered_gbps=offered * to_gbps,
        delivered_gbps=delivered * to_gbps,
        share=delivered / offered,
        measures=finite(result.measures),
        messages=messages,
        idle_scheme=result.summary.get("idle_scheme"),
    )
