"""Experiment II of mizero2017, live: OpenSM and silvan dcms manage an emulated fabric.

  python dcms-live.py
  python dcms-live.py --perftest --time-scale 0.01

Three flows to D congest the port of switch S2 to it, and X-Y, which only shares the cable between
the switches with one of them, falls to a third of its rate. The manager finds this in the port
counters and lowers a Marking_Rate, and X-Y gets its rate back. It takes half a minute, needs
opensm, and writes dcms-live.png. With --perftest, the program ib_write_bw is X-Y, and prints its
throughput.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from silvan import ManagerError, Scenario
from silvan.emulation import Emulation
from silvan.figures import style
from silvan.live_programs import attached, environment, opensm

_FULL_GBPS = 8.0
_BARS = "▁▂▃▄▅▆▇█"
_COLUMNS = 72

STARTS_S: Mapping[str, float] = {"B-D": 0.0, "X-Y": 2.0, "C-D": 5.0, "A-D": 7.0}
"""In seconds (section 4.3)."""

VICTIM = "X-Y"
"""The flow that only shares the cable between the switches."""

ENDS_S: Mapping[str, float] = {VICTIM: 20.0, "A-D": 21.0}
"""Ends of flows across the cable, in seconds."""

LASTS_S = 26.0
"""In seconds."""

INTERVAL_S = 1.25
"""As in the study of figures 5 and 6."""

_SAMPLE_S = 0.25
_PATIENCE_S = 300
_EMULATED_TICK_NS = 4.0
# T_C, T_W and T_D as parts of what an interval has of ticks, and a 4x SDR link of words.
_CONGESTED = 8_000_000 * 22e-9 / INTERVAL_S
_WAITING = 27_400_000 * 22e-9 / INTERVAL_S
_WORDS_PER_S = 250_000_000


@dataclass(frozen=True, slots=True)
class Sample:
    """The fabric at a time in seconds since the first flow; rates in Gbit/s of running flows."""

    time_s: float
    flows_gbps: Mapping[str, float]
    is_low: bool


@dataclass(frozen=True, slots=True)
class Remark:
    """An event of the manager's log, in seconds since the first flow."""

    time_s: float
    event: Mapping[str, Any]


@dataclass(slots=True)
class Course:
    """Samples, and events of the manager without sweeps."""

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
    """Give mizero2017's testbed with the settings of its study, without traffic."""
    return Scenario(
        name="mizero2017-live",
        fabric={"generator": "two-switch-testbed", "routing": "min-hop"},
        link={"width": "4x", "speed": "SDR", "length": "2 m"},
        switch={"latency": "200 ns", "credit-delay": "100 ns", "buffer": "66 KiB"},
        host={"receive-buffer": "16896 B", "credit-delay": "100 ns"},
        packet={"mtu": "2 KiB", "header": "26 B"},
        control={
            "scheme": "ib-cc",
            "ib-cc": {
                "switch": {
                    "threshold": 15,
                    "threshold-lowest": "6222 B",
                    "packet-size": 0,
                    "marking-rate": 128,
                    "marking": "counter",
                },
                "adapter": {
                    "ccti-increase": 1,
                    "ccti-limit": 127,
                    "ccti-min": 0,
                    "ccti-timer": 75,
                    "trigger-threshold": 0,
                    "cct": {"shape": "linear", "slope": 5.5},
                },
            },
        },
    )


def configuration(time_scale: float, low_s: float) -> str:
    """Write the manager's configuration for a fabric that runs at this speed."""
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
[counters]
tick = "{tick_ns * 1000:.0f} ps"
[state]
folder = "state"
"""


@contextmanager
def _manager(
    emulation: Emulation, folder: Path, config: str
) -> Iterator[SimpleQueue[dict[str, Any]]]:
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
            status = process.wait(_PATIENCE_S)
            thread.join()
    if status != 0:
        raise ManagerError(f"silvan dcms has ended with status {status}")


class Perftest:
    """The victim's flow as unmodified ib_write_bw sends it, and the rate that it prints."""

    _PORT = "18599"
    _WORDS = (
        *("stdbuf", "-oL", "ib_write_bw", "--run_infinitely", "-D", "1"),
        *("-s", "262144", "-m", "2048", "-F", "-p", _PORT),
    )

    def __init__(self, emulation: Emulation, folder: Path, time_scale: float) -> None:
        self._time_scale = time_scale
        self._gbps = 0.0
        self._readers: list[Thread] = []
        self._ends = [self._start(emulation, folder, VICTIM.split("-")[1])]
        time.sleep(1)
        self._emulation, self._folder = emulation, folder

    def _start(
        self, emulation: Emulation, folder: Path, host: str, *words: str
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self._WORDS, *words],
            cwd=folder,
            env=environment(emulation, folder, host),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def begin(self) -> None:
        """Start the sender."""
        sender = VICTIM.split("-")[0]
        client = self._start(self._emulation, self._folder, sender, "localhost")
        self._ends.append(client)
        self._readers.append(Thread(target=self._read, args=(client,), daemon=True))
        self._readers[0].start()

    def _read(self, client: subprocess.Popen[str]) -> None:
        for line in client.stdout or ():
            words = line.split()
            # Size, iterations, peak and average in MiB/s, messages.
            if len(words) == 5 and words[0] == "262144":
                self._gbps = float(words[3]) * 2**20 * 8e-9 / self._time_scale

    @property
    def gbps(self) -> float | None:
        """The rate of the last second in simulated time, if the sender runs."""
        return self._gbps if len(self._ends) > 1 else None

    def end(self) -> None:
        """End both programs."""
        for process in self._ends:
            process.kill()
        for reader in self._readers:
            reader.join()
        for process in self._ends:
            process.communicate()
        self._ends, self._readers = [], []


def run(
    *,
    time_scale: float = 0.1,
    low_s: float = 15.0,
    perftest: bool = False,
    on_change: Callable[[Course], object],
) -> Course:
    """Run the experiment in real time."""
    course = Course()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
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
        program = Perftest(emulation, folder, time_scale) if perftest else None
        if program:
            stack.callback(program.end)
        _play(emulation, time_scale, said, course, on_change, program)
        ended = course.samples[-1].time_s if course.samples else 0.0
    # The manager has restored everything by now.
    _take(said, course, ended)
    on_change(course)
    return course


def _wait_for_event(said: SimpleQueue[dict[str, Any]], kind: str) -> dict[str, Any]:
    while True:
        try:
            event = said.get(timeout=_PATIENCE_S)
        except Empty as error:
            raise ManagerError("silvan dcms does not find the fabric") from error
        if event["event"] == kind and event.get("ports"):
            return event


def _take(said: SimpleQueue[dict[str, Any]], course: Course, now_s: float) -> None:
    while not said.empty():
        course.remarks.append(Remark(now_s, said.get()))


def _play(
    emulation: Emulation,
    time_scale: float,
    said: SimpleQueue[dict[str, Any]],
    course: Course,
    on_change: Callable[[Course], object],
    program: Perftest | None,
) -> None:
    """Start and stop the flows by the fabric's clock, and sample the fabric."""

    def fabric_s() -> float:
        return float(emulation.control("status")["simulated_s"]) / time_scale

    begin = fabric_s()
    to_start = sorted(STARTS_S, key=STARTS_S.__getitem__)
    to_end = sorted(ENDS_S, key=ENDS_S.__getitem__)
    while (now_s := fabric_s() - begin) < LASTS_S:
        while to_start and STARTS_S[to_start[0]] <= now_s:
            flow = to_start.pop(0)
            if program and flow == VICTIM:
                program.begin()
                continue
            sender, receiver = flow.split("-")
            emulation.control("start", **{"from": sender}, to=receiver, name=flow)
        while to_end and ENDS_S[to_end[0]] <= now_s:
            flow = to_end.pop(0)
            if program and flow == VICTIM:
                program.end()
            else:
                emulation.control("stop", flow=flow)
        _take(said, course, now_s)
        changes = [*course.times_of("lowered"), *(-at for at in course.times_of("restored"))]
        is_low = bool(changes) and max(changes, key=abs) > 0
        flows = {
            one["flow"]: float(one["receive_gbps"])
            for one in emulation.control("flows")
            if one["running"]
        }
        if program and program.gbps is not None:
            flows[VICTIM] = program.gbps
        course.samples.append(Sample(now_s, flows, is_low))
        on_change(course)
        time.sleep(_SAMPLE_S)


# The colours of mizero2017's figures.
_COLOURS = {
    VICTIM: style.CC_COLOURS["on"],
    "B-D": style.SHADES[1],
    "C-D": style.SHADES[3],
    "A-D": style.SHADES[2],
}


def draw(course: Course, *, folder: Path, stem: str) -> list[Path]:
    """Draw the demonstration as it went."""
    with style.styled(
        8.2, 3.9, "silvan dcms lowers a Marking_Rate, and the victim X-Y recovers"
    ) as figure:
        axes = figure.subplots()
        for flow in STARTS_S:
            points = [
                (sample.time_s, sample.flows_gbps[flow])
                for sample in course.samples
                if flow in sample.flows_gbps
            ]
            if not points:
                continue
            times, rates = zip(*points, strict=True)
            is_victim = flow == VICTIM
            axes.plot(
                times,
                rates,
                color=_COLOURS[flow],
                linewidth=2.2 if is_victim else 1.4,
                label=f"{flow} (victim)" if is_victim else flow,
                zorder=3 if is_victim else 2,
            )
        last = course.samples[-1].time_s
        restored = course.times_of("restored")
        label: str | None = "Marking_Rate of (S2, 23) is 0"
        for start in course.times_of("lowered"):
            end = min((one for one in restored if one > start), default=last)
            axes.axvspan(start, end, color="#EFEFEF", zorder=0, linewidth=0, label=label)
            label = None
        axes.set_xlim(0, last)
        axes.set_ylim(0, 8.6)
        axes.set_xlabel(
            f"time, s (a sweep every {INTERVAL_S:g} s; {VICTIM} ends at {ENDS_S[VICTIM]:g} s)"
        )
        axes.set_ylabel("throughput, Gbit/s")
        style.legend_below(axes, columns=5)
        return style.save(figure, folder, stem)


def _show(time_scale: float, low_s: float, *, perftest: bool) -> Course:
    if not sys.stderr.isatty():
        told = 0

        def say(course: Course) -> None:
            nonlocal told
            for remark in course.remarks[told:]:
                print(f"{remark.time_s:5.1f} s  {_words(remark.event)}", file=sys.stderr)
            told = len(course.remarks)

        return run(time_scale=time_scale, low_s=low_s, perftest=perftest, on_change=say)
    with Live(console=Console(stderr=True), refresh_per_second=8) as live:
        return run(
            time_scale=time_scale,
            low_s=low_s,
            perftest=perftest,
            on_change=lambda course: live.update(_view(course)),
        )


def _view(course: Course) -> RenderableType:
    per_column = LASTS_S / _COLUMNS
    flows = Table.grid(padding=(0, 1))
    samples = {int(sample.time_s / per_column): sample for sample in course.samples}
    newest = course.samples[-1] if course.samples else None
    for flow in STARTS_S:
        line = Text()
        for column in range(_COLUMNS):
            sample = samples.get(column)
            rate = sample.flows_gbps.get(flow) if sample else None
            if rate is None or sample is None:
                line.append(" ")
                continue
            height = min(int(rate / _FULL_GBPS * len(_BARS)), len(_BARS) - 1)
            colour = "bright_blue" if flow == VICTIM else "yellow"
            line.append(_BARS[height], f"{colour} on grey19" if sample.is_low else colour)
        now = newest.flows_gbps.get(flow) if newest else None
        name = f"{flow} (victim)" if flow == VICTIM else flow
        flows.add_row(name, line, "" if now is None else f"{now:.2f} Gbit/s")
    said = Text("\n".join(f"{one.time_s:5.1f} s  {_words(one.event)}" for one in course.remarks))
    at = f"{newest.time_s:.1f} s" if newest else ""
    return Group(
        Panel(flows, title=f"throughput, 0 to 8 Gbit/s; shaded: Marking_Rate low   {at}"),
        Panel(said, title="silvan dcms"),
    )


def _words(event: Mapping[str, Any]) -> str:
    kind = event["event"]
    port = event.get("port")
    where = f"{port['switch']}:{port['port']}" if isinstance(port, dict) else ""
    if kind == "discovered":
        return f"discovered {event['switches']} switches, {event['ports']} ports to watch"
    if kind == "decision":
        victim = event.get("victim")
        of = f", victim {victim['switch']}:{victim['port']}" if victim else ""
        return f"decision: {event['reason']} at {where}{of}"
    if kind == "lowered":
        return f"Marking_Rate of {where} lowered from {event['before']} to {event['now']}"
    if kind == "restored":
        return f"Marking_Rate of {where} restored to {event['now']}"
    if kind == "stopped":
        return f"stopped, {event['pending']} changes left"
    return str(kind)


def main() -> None:
    """Play the experiment and draw it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path(), help="folder of the figure")
    parser.add_argument(
        "--time-scale", type=float, default=0.1, help="simulated seconds per second"
    )
    parser.add_argument(
        "--low-duration",
        type=float,
        default=15.0,
        help="longest time of a low Marking_Rate, s",
    )
    parser.add_argument(
        "--perftest", action="store_true", help=f"send {VICTIM} by ib_write_bw, and draw its rates"
    )
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    print("starting the fabric and OpenSM", file=sys.stderr)
    course = _show(options.time_scale, options.low_duration, perftest=options.perftest)
    for path in draw(course, folder=options.out, stem="dcms-live"):
        print(path)


if __name__ == "__main__":
    main()
