"""The load up to which a fabric delivers all that is offered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from silvan.errors import ScenarioError
from silvan.measures import measured_ps
from silvan.result import Result
from silvan.scenario import Scenario
from silvan.simulation import run

_LEAST_LOAD = 1 / 256
"""Loads below are not tried."""

_SIGMAS = 3
"""Standard deviations of the delivered packets that the tolerance should exceed."""


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """What was measured at a load.

    Attributes
    ----------
    load : float
        Share of the injection rate.
    delivered_gbps : float
        Payload that all hosts received, on average after the warm-up, in Gbit/s.
    share : float or None
        That part of what was offered; ``None`` for the loads that tell what is offered.
    latency_mean_ns, latency_p99_ns : float or None
        Of the packets of all classes: the mean, and the largest 99th percentile of a class.
    packets : int
        Packets delivered after the warm-up.
    """

    load: float
    delivered_gbps: float
    share: float | None
    latency_mean_ns: float | None
    latency_p99_ns: float | None
    packets: int


@dataclass(frozen=True, slots=True)
class Saturation:
    """Where a fabric saturates.

    Attributes
    ----------
    load : float
        Highest load that was delivered in full.
    above : float or None
        Lowest load that was not; ``None`` if that of 1 was.
    tolerance : float
        Share of what is offered that may be missing.
    points : tuple of LoadPoint
        All measurements, by load.
    """

    load: float
    above: float | None
    tolerance: float
    points: tuple[LoadPoint, ...]

    @property
    def most_gbps(self) -> float:
        """Highest rate that all hosts together received at any load, in Gbit/s."""
        return max(point.delivered_gbps for point in self.points)

    @property
    def is_certain(self) -> bool:
        """Whether the runs had enough packets to tell the tolerance from chance."""
        return min(point.packets for point in self.points) >= (_SIGMAS / self.tolerance) ** 2

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in plain values."""
        return {**asdict(self), "most_gbps": self.most_gbps, "is_certain": self.is_certain}


def load_keys(scenario: Scenario) -> list[str]:
    """Return the keys of a scenario that have a load as a share of the injection rate."""
    return list(_loads(scenario.to_dict()["traffic"], "traffic"))


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
    """Tell a share of the injection rate, or all of it, from a rate such as ``8 Gbit/s``."""
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

    Two low loads, of which one is half of the other, tell what is offered at a load. A load is
    delivered in full if the hosts receive no less than this, up to the tolerance, between the
    warm-up and the end.

    Parameters
    ----------
    scenario : Scenario
        What to simulate; its loads are replaced.
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
            "set the load of its traffic to a share of the injection rate, such as 0.5",
        )
    points: list[LoadPoint] = []

    def measure(load: float, offered_gbps: float | None) -> LoadPoint:
        result = run(scenario.override(dict.fromkeys(given, load)))
        points.append(_point(result, load, offered_gbps))
        if on_point is not None:
            on_point(points[-1])
        return points[-1]

    low = 1 / 4
    high_point, low_point = measure(low, None), measure(low / 2, None)
    while high_point.delivered_gbps < 2 * (1 - tolerance) * low_point.delivered_gbps:
        low /= 2
        if low < 2 * _LEAST_LOAD:
            raise ScenarioError(f"not even a load of {low:g} is delivered in full")
        high_point, low_point = low_point, measure(low / 2, None)
    slope = high_point.delivered_gbps / low
    if not slope:
        raise ScenarioError(
            "nothing was delivered after the warm-up", "make run.duration longer than run.warm-up"
        )

    def is_full(load: float) -> bool:
        return (measure(load, slope * load).share or 0) >= 1 - tolerance

    # A load that was too high for the line through the low ones is a bound, too.
    full, above = low, min((point.load for point in points if point.load > low), default=1.0)
    never = above == 1 and is_full(1.0)
    if never:
        full = 1.0
    while not never and above - full > resolution:
        middle = (full + above) / 2
        full, above = (middle, above) if is_full(middle) else (full, middle)
    for place in range(1, curve + 1):
        load = full * place / (curve + 1)
        if all(abs(load - point.load) > resolution for point in points):
            measure(load, slope * load)
    by_load = sorted(points, key=lambda point: point.load)
    return Saturation(full, None if never else above, tolerance, tuple(by_load))


def _point(result: Result, load: float, offered_gbps: float | None) -> LoadPoint:
    hosts, classes = result.hosts.to_pydict(), result.classes.to_pylist()
    gbps = sum(hosts["delivered_bytes"]) * 8000 / measured_ps(result)
    timed = [row for row in classes if row.get("latency_mean_ns") is not None]
    packets = sum(row["delivered_packets"] for row in timed)
    total = sum(row["latency_mean_ns"] * row["delivered_packets"] for row in timed)
    return LoadPoint(
        load=load,
        delivered_gbps=gbps,
        share=None if offered_gbps is None else gbps / offered_gbps,
        latency_mean_ns=total / packets if packets else None,
        latency_p99_ns=max((float(row["latency_p99_ns"]) for row in timed), default=None),
        packets=sum(hosts["delivered_packets"]),
    )
