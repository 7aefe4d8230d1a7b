"""mizero2017's Experiment II, live: OpenSM, `silvan dcms` and an emulated testbed."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from silvan.emulation import Emulation
from silvan.errors import ManagerError
from silvan.live_programs import attached, opensm
from silvan.scenario import Scenario

STARTS_S: Mapping[str, float] = {"B-D": 0.0, "X-Y": 2.0, "C-D": 5.0, "A-D": 7.0}
"""When each flow starts (section 4.3), in seconds."""

VICTIM = "X-Y"
"""The flow that only shares the cable between the switches with one of the others."""

ENDS_S: Mapping[str, float] = {VICTIM: 20.0, "A-D": 21.0}
"""When the flows end that cross the cable between the switches, in seconds."""

LASTS_S = 26.0
"""When everything ends, in seconds."""

INTERVAL_S = 1.25
"""Time from one sweep to the next, as in the study of figures 5 and 6."""

_SAMPLE_S = 0.25
_EMULATED_TICK_NS = 4.0
# T_C, T_W and T_D as parts of what an interval has of ticks, and a 4x SDR link of words.
_CONGESTED = 8_000_000 * 22e-9 / INTERVAL_S
_WAITING = 27_400_000 * 22e-9 / INTERVAL_S
_WORDS_PER_S = 250_000_000


@dataclass(frozen=True, slots=True)
class Sample:
    """The fabric at an instant.

    Attributes
    ----------
    time_s : float
        Seconds since the first flow started.
    flows_gbps : Mapping
        Payload received, in Gbit/s, by the flow's name; only of flows that run.
    is_low : bool
        Whether the Marking_Rate of (S2, 23) is low.
    """

    time_s: float
    flows_gbps: Mapping[str, float]
    is_low: bool


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that the manager has said.

    Attributes
    ----------
    time_s : float
        Seconds since the first flow started.
    event : dict
        What, as in the manager's log.
    """

    time_s: float
    event: Mapping[str, Any]


@dataclass(slots=True)
class Course:
    """What has happened so far.

    Attributes
    ----------
    samples : list of Sample
        The fabric over time.
    remarks : list of Remark
        What the manager has said, sweeps left out.
    """

    samples: list[Sample] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)

    def times_of(self, event: str) -> list[float]:
        """Tell when the manager said something of this kind, in seconds."""
        return [one.time_s for one in self.remarks if one.event["event"] == event]

    def mean_gbps(self, flow: str, start_s: float, end_s: float) -> float:
        """Average a flow's throughput over a stretch of time; not a number if it did not run."""
        rates = [
            sample.flows_gbps[flow]
            for sample in self.samples
            if start_s <= sample.time_s <= end_s and flow in sample.flows_gbps
        ]
        return sum(rates) / len(rates) if rates else float("nan")


def testbed() -> Scenario:
    """Give mizero2017's testbed with its settings, without traffic of its own."""
    return Scenario(
        name="mizero2017-live",
        fabric={"generator": "two-switch-testbed", "routing": "min-hop"},
        control={
            "scheme": "ib-cc",
            "adapter": {"ccti-timer": 75},
            "switch": {"marking-rate": 128},
        },
    )


def configuration(time_scale: float, low_s: float) -> str:
    """Write the manager's configuration for a fabric that runs at this speed.

    Parameters
    ----------
    time_scale : float
        Simulated seconds per second. A tick takes as much longer as the fabric is slower.
    low_s : float
        Longest time for which the Marking_Rate is kept low, in seconds.
    """
    tick_ns = _EMULATED_TICK_NS / time_scale
    ticks = INTERVAL_S * 1e9 / tick_ns
    words = 0.1 * _WORDS_PER_S * INTERVAL_S * time_scale
    return f"""\
[dcms]
interval = "{INTERVAL_S * 1000:.0f} ms"
tick = "{tick_ns * 1000:.0f} ps"
congestion-threshold = {_CONGESTED * ticks:.0f}
rate-reduction-threshold = {_WAITING * ticks:.0f}
utilization-change-threshold = {words:.0f}
low-duration = "{low_s * 1000:.0f} ms"
low-marking-rate = 0
[state]
folder = "state"
"""


@contextmanager
def _manager(
    emulation: Emulation, folder: Path, config: str
) -> Iterator[SimpleQueue[dict[str, Any]]]:
    """Let the manager run, and pass on what it says."""
    (folder / "dcms.toml").write_text(config)
    words = [sys.executable, "-m", "silvan", "dcms", "dcms.toml", "--act", "--log", "json"]
    said: SimpleQueue[dict[str, Any]] = SimpleQueue()
    with attached(emulation, folder, words, host="A") as process:

        def listen() -> None:
            for line in process.stderr or ():
                said.put(json.loads(line) if line.startswith("{") else {"event": line.strip()})

        thread = Thread(target=listen)
        thread.start()
        try:
            yield said
        finally:
            process.terminate()
            status = process.wait(60)
            thread.join()
    if status != 0:
        raise ManagerError(f"silvan dcms has ended with status {status}")


def run(
    *, time_scale: float = 0.1, low_s: float = 15.0, on_change: Callable[[Course], object]
) -> Course:
    """Run the experiment in real time.

    Parameters
    ----------
    time_scale : float
        Simulated seconds per second; lower it if the processor cannot keep up.
    low_s : float
        Longest time for which the Marking_Rate is kept low, in seconds (T_I).
    on_change : callable
        Called with all that has happened so far, some times per second.

    Returns
    -------
    Course
        What has happened.

    Raises
    ------
    EmulationError
        If OpenSM or umad2sim is not installed, or OpenSM does not bring up the fabric.
    ManagerError
        If the manager could not restore everything.
    """
    course = Course()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="silvan-demo-")))
        emulation = stack.enter_context(
            Emulation(
                testbed(), sockname=f"silvan-demo-{os.getpid()}", time_scale=time_scale, blank=True
            )
        )
        stack.enter_context(opensm(emulation, folder, host="Y"))
        config = configuration(time_scale, low_s)
        said = stack.enter_context(_manager(emulation, folder, config))
        seen = _wait_for_event(said, "discovered")
        course.remarks.append(Remark(0.0, seen))
        _play(emulation, said, course, on_change)
        ended = course.samples[-1].time_s if course.samples else 0.0
    # The manager has restored everything by now.
    _take(said, course, ended)
    on_change(course)
    return course


def _wait_for_event(said: SimpleQueue[dict[str, Any]], kind: str) -> dict[str, Any]:
    while True:
        try:
            event = said.get(timeout=60)
        except Empty as error:
            raise ManagerError("silvan dcms does not find the fabric") from error
        if event["event"] == kind and event.get("ports"):
            return event


def _take(said: SimpleQueue[dict[str, Any]], course: Course, now_s: float) -> None:
    while not said.empty():
        course.remarks.append(Remark(now_s, said.get()))


def _play(
    emulation: Emulation,
    said: SimpleQueue[dict[str, Any]],
    course: Course,
    on_change: Callable[[Course], object],
) -> None:
    """Start and stop the flows by the clock, and look at the fabric."""
    begin = time.monotonic()
    to_start = sorted(STARTS_S, key=STARTS_S.__getitem__)
    to_end = sorted(ENDS_S, key=ENDS_S.__getitem__)
    while (now_s := time.monotonic() - begin) < LASTS_S:
        while to_start and STARTS_S[to_start[0]] <= now_s:
            flow = to_start.pop(0)
            sender, receiver = flow.split("-")
            emulation.control("start", **{"from": sender}, to=receiver, name=flow)
        while to_end and ENDS_S[to_end[0]] <= now_s:
            emulation.control("stop", flow=to_end.pop(0))
        _take(said, course, now_s)
        changes = [*course.times_of("lowered"), *(-at for at in course.times_of("restored"))]
        is_low = bool(changes) and max(changes, key=abs) > 0
        flows = {
            one["flow"]: float(one["receive_gbps"])
            for one in emulation.control("flows")
            if one["running"]
        }
        course.samples.append(Sample(now_s, flows, is_low))
        on_change(course)
        time.sleep(_SAMPLE_S)
