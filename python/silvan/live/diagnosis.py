"""The diagnosis of a subnet's congestion, without setting anything."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from pathlib import Path

from silvan.errors import DiagnosisError, EmulationError
from silvan.inputs.input_files import read_text
from silvan.inputs.quantities import Quantity
from silvan.interruptible import interruptible
from silvan.live.moments import Moment, Report, Subnet

DUMP_BYTES = 1 << 30

Ticks = str | Sequence[str] | None

LINK_PERCENT = 1.0
"""Maximum part of a management link for requests, in percent."""

_MOST_WAIT = 1.05
_MANY_UNKNOWN = 0.1


class SubnetWatcher:
    """Sweeps of a subnet, each compared with the one before.

    By default, they use the first adapter with an active port; port 0 is its first active one.
    ``tick`` is that of PortXmitWait, for all ports (``"4 ns"``) or by device (``"Quantum=0.32
    ns"``). Requests and answers each take ``link_percent`` of the slowest management link.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        port: int = 0,
        tick: Ticks = None,
        link_percent: float = LINK_PERCENT,
        clock: FabricClock | None = None,
    ) -> None:
        from silvan import _silvan
        from silvan.live.systems import require_linux

        require_linux("the diagnosis of a live subnet")
        self._watch = _silvan.SubnetWatch(
            device=device,
            port=port,
            ticks=_texts(tick),
            link_share=link_percent / 100,
        )
        self._clock = clock
        self._read: tuple[float, float] | None = None
        self._subnet: Subnet | None = None

    def serve(self, listen: str, interval_s: float) -> str:
        """Serve metrics of each sweep for Prometheus; return address and port."""
        return self._watch.serve(listen, interval_s)

    def note_failure(self) -> None:
        """Note in the metrics that a sweep has failed."""
        self._watch.note_failure()

    def sweep(self) -> Moment | None:
        """Read all counters; None for the first sweep, and after a change of the subnet."""
        interruptible(self._watch.prepare)
        began = self._times()
        interruptible(self._watch.sweep)
        at_ns = time.time_ns()
        scale = self._scale(began, self._times())
        swept = interruptible(lambda: self._watch.report(scale))
        if swept is None:
            return None
        report, loads, subnet = swept
        if subnet is not None:
            self._subnet = Subnet(*subnet)
        if self._subnet is None:
            raise DiagnosisError("the subnet was not read")
        return Moment(self._subnet, json.loads(report), loads, at_ns)

    def _times(self) -> tuple[float, float]:
        if self._clock is None:
            return 0.0, 0.0
        before, fabric, after = time.monotonic(), self._clock.seconds(), time.monotonic()
        return fabric, (before + after) / 2

    def _scale(self, began: tuple[float, float], ended: tuple[float, float]) -> float:
        middle = (began[0] + ended[0]) / 2, (began[1] + ended[1]) / 2
        before, self._read = self._read, middle
        if self._clock is None or before is None:
            return 1.0
        if middle[0] < before[0]:
            return 1.0
        if middle[0] == before[0]:
            raise EmulationError(
                "the fabric is paused, so its counters stand still",
                "silvan ctl resume lets its time pass",
            )
        return (middle[0] - before[0]) / (middle[1] - before[1])


def diagnose_subnet(
    *,
    device: str | None = None,
    port: int = 0,
    interval: str = "1 s",
    tick: Ticks = None,
    link_percent: float = LINK_PERCENT,
    clock: FabricClock | None = None,
) -> Moment:
    """Diagnose a subnet by two sweeps. Arguments as for :class:`SubnetWatcher`."""
    interval_s = span_ps("interval", interval) / 1e12
    watcher = SubnetWatcher(
        device=device, port=port, tick=tick, link_percent=link_percent, clock=clock
    )
    moment = None
    while moment is None:
        moment = watcher.sweep()
        if moment is None:
            time.sleep(interval_s)
    return moment


def diagnose_files(
    *,
    topology: Path,
    before: Path,
    after: Path,
    routes: Path | None = None,
    interval: str = "1 s",
    tick: Ticks = None,
) -> tuple[Moment, list[str]]:
    """Diagnose a subnet from files of ibnetdiscover, perfquery and others; also return doubts."""
    from silvan import _silvan

    paths = {"topology": topology, "routes": routes, "before": before, "after": after}
    hint = "name the output of a tool, saved as text"
    texts = {
        role: None if path is None else read_text(path, DUMP_BYTES, "dump", hint)
        for role, path in paths.items()
    }
    interval_ps = span_ps("interval", interval)
    if texts["before"] == texts["after"]:
        raise DiagnosisError(
            f"{before} and {after} are the same: no counter has changed in between",
            "give counters of the same ports that were read later as --after",
        )
    try:
        report, loads, subnet, odd = _silvan.diagnose_dumps(
            topology=texts["topology"] or "",
            routes=texts["routes"],
            before=texts["before"] or "",
            after=texts["after"] or "",
            interval_ps=interval_ps,
            ticks=_texts(tick),
        )
    except DiagnosisError as error:
        role, _, text = error.message.partition(":")
        if role not in paths:
            raise
        raise DiagnosisError(_placed(paths.get(role), text), error.hint) from None
    moment = Moment(Subnet(*subnet), json.loads(report), loads, time.time_ns())
    doubts = [_placed(paths[role], text) for role, text in odd]
    return moment, doubts + _doubts(moment.report)


def is_undecided(report: Report) -> bool:
    """Return true if a report does not exclude congestion: too many ports are unknown."""
    unknown = report["unknown_ports"]
    waiting = bool(report["unexplained"]) and unknown > 0
    return not report["trees"] and (waiting or unknown > report["ports"] * _MANY_UNKNOWN)


def _doubts(report: Report) -> list[str]:
    doubts = []
    waits = max((one["wait"] or 0 for one in report["losses"]), default=0)
    if waits > _MOST_WAIT:
        doubts.append(
            f"a port waits {waits:.0%} of the interval of {report['interval_s']:g} s: "
            "more time has passed between the readings"
        )
    if report["unknown_ports"] > report["ports"] * _MANY_UNKNOWN:
        doubts.append(
            f"{report['unknown_ports']} of {report['ports']} ports are not known: the files may be "
            "swapped or cut off, or the interval is too short"
        )
    return doubts


class FabricClock:
    """The clock of an emulated fabric."""

    def __init__(self, sockname: str) -> None:
        from silvan.live.emulation import ControlChannel

        self._sockname = sockname
        self._channel: ControlChannel | None = ControlChannel(sockname)

    def seconds(self) -> float:
        """Return the simulated time. After an error, the next call connects again."""
        from silvan.live.emulation import ControlChannel

        if self._channel is None:
            self._channel = ControlChannel(self._sockname)
        try:
            return float(self._channel.answer("status")["simulated_s"])
        except EmulationError:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        if self._channel is not None:
            self._channel.close()
        self._channel = None


def _texts(ticks: Ticks) -> list[str]:
    if ticks is None:
        return []
    return [ticks] if isinstance(ticks, str) else list(ticks)


def span_ps(name: str, text: str) -> int:
    """Read a time above 0 in picoseconds."""
    ps = Quantity(text).ps
    if ps <= 0:
        raise DiagnosisError(f"{name}: {text} is no time above 0", 'write, for example, "10 s"')
    return ps


def _placed(path: Path | None, text: str) -> str:
    found = re.match(r"line (\d+): ", text)
    if found:
        return f"{path}:{found[1]}: {text[found.end() :]}"
    return f"{path}: {text}"
