"""santos2003, Fig. 5: how a rate recovers from Rmin, by the formulas and by simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np

from silvan.reproduce.curves import Curve, over_time
from silvan.reproduce.experiment import (
    Case,
    Experiment,
    Measurement,
    PointTable,
    Results,
    Verdict,
)
from silvan.results.receive_rates import PS_PER_MS, FloatArray, class_delivered
from silvan.results.result import Result
from silvan.schemes.response import Response
from silvan_papers.santos2003_scene import STUDY

# 2048 bytes at 1 GB/s without a header, as in the paper.
_PACKET_MS = 2.048e-3
_PACKET_BYTES = 2048

_FUNCTIONS: Mapping[str, Response] = {
    "FIMD": Response.fimd(),
    "LIPD": Response.lipd(),
    "AIMD": Response.aimd(),
}
_POINTS = 60
_EVERY = 10
_DURATION_MS = {"FIMD": 6, "LIPD": 150, "AIMD": 150}


@dataclass(frozen=True, slots=True)
class Recovery:
    """Packets of a flow since its rate was Rmin.

    ``formula`` is the integral of its rate, ``time_ms`` its time of Rmax; ``simulated_ms`` is the
    time of as many simulated packets.
    """

    times_ms: FloatArray
    simulated: FloatArray
    formula: FloatArray
    time_ms: float
    simulated_ms: float

    @classmethod
    def of(cls, result: Result, function: Response) -> Self:
        """Compare a run of a single flow with the formula."""
        times_ps, delivered_bytes = class_delivered(result)
        times_ms = times_ps.astype(np.float64) / PS_PER_MS
        packets = delivered_bytes[:, 0].cumsum().astype(np.float64) / _PACKET_BYTES
        steps_per_interval = 64
        step_ms = times_ms[0] / steps_per_interval
        middles = (np.arange(len(times_ms) * steps_per_interval) + 0.5) * step_ms
        rates = np.array([function.rate_after(at / _PACKET_MS) or 0.0 for at in middles])
        sent = (rates * step_ms / _PACKET_MS).cumsum()[steps_per_interval - 1 :: steps_per_interval]
        time_ms = (function.time_to(1.0) or 0.0) * _PACKET_MS
        at_full_rate = float(np.interp(time_ms, times_ms, sent))
        simulated_ms = float(np.interp(at_full_rate, packets, times_ms))
        return cls(times_ms, packets, sent, time_ms, simulated_ms)

    @property
    def largest_difference(self) -> float:
        """The largest difference between simulation and formula, in packets."""
        return float(np.abs(self.simulated - self.formula).max())


def _recoveries(results: Results) -> dict[str, Recovery]:
    return {name: Recovery.of(results[name][0], function) for name, function in _FUNCTIONS.items()}


def _measure(results: Results) -> list[Measurement | Verdict]:
    recoveries = _recoveries(results)

    def measured(target: str, name: str) -> Measurement:
        one = recoveries[name]
        note = f"packets delivered differ from the formula by at most {one.largest_difference:.1f}"
        return Measurement(target, (one.simulated_ms,), (one.time_ms,), note)

    return [measured(f"fig5.{name.lower()}_ms", name) for name in ("FIMD", "LIPD", "AIMD")]


def _draw(results: Results, folder: Path) -> Sequence[Path]:
    from silvan_papers.figures.two_switches import draw_recovery

    curves = {}
    for name, one in _recoveries(results).items():
        # Simulated rates from the times of equal numbers of packets.
        counts = np.linspace(0, one.simulated[-1], _POINTS + 1)
        ends = np.interp(counts, one.simulated, one.times_ms)
        is_known = np.diff(ends) > 0
        rates = np.diff(counts)[is_known] * _PACKET_MS / np.diff(ends)[is_known]
        times = np.linspace(0, one.time_ms * 1.02, 400)
        formula = np.array([_FUNCTIONS[name].rate_after(at / _PACKET_MS) or 0.0 for at in times])
        curves[name] = (times, formula, ((ends[1:] + ends[:-1]) / 2)[is_known], rates)
    return draw_recovery(curves, folder=folder, stem="fig5")


def _trace(results: Results) -> list[Curve]:
    from silvan_papers.figures.two_switches import colour_of

    curves = []
    for name, one in _recoveries(results).items():
        points = over_time("Packets delivered", "", name, one.times_ms, one.simulated, [name])
        formula = over_time("Packets delivered", "", name, one.times_ms, one.formula, [name])
        stated = tuple((point.x, point.y) for point in formula.points[::_EVERY])
        curves.append(replace(points, paper=stated, colour=colour_of(name)))
    return curves


def _tabulate(results: Results) -> PointTable:
    return PointTable(
        (
            "response",
            "Rmin to Rmax, formula (ms)",
            "simulated (ms)",
            "largest difference (packets)",
        ),
        tuple(
            (name, one.time_ms, one.simulated_ms, one.largest_difference)
            for name, one in _recoveries(results).items()
        ),
    )


def _case(name: str) -> Case:
    # Two packets in progress, so that the window does not limit the rate; none is marked.
    duration = _DURATION_MS[name]
    return Case(
        name,
        STUDY,
        1,
        {
            "fabric.local": 0,
            "fabric.remote": 1,
            "traffic.flow": [{"name": "remote-1", "from": "A1", "to": "BC"}],
            "packet.header": "0 B",
            "control.ecn.response": name.lower(),
            "control.ecn.initial-rate": 1 / 256,
            "control.ecn.window": 2,
            "probe.interval": f"{duration * 4} us",
            "run.duration": f"{duration} ms",
        },
    )


FIG5 = Experiment(
    id="fig5",
    title="Figure 5: recovery from Rmin = Rmax/256 to Rmax without marks",
    cases=tuple(_case(name) for name in _FUNCTIONS),
    windows=("the simulation", "the formula alone"),
    quick={"run.duration": "4800 us"},
    quick_note="4.8 ms instead of 150 ms: only FIMD has recovered by then",
    measure=_measure,
    draw=_draw,
    tabulate=_tabulate,
    trace=_trace,
)
