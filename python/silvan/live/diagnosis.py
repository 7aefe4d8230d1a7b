"""The diagnosis of a subnet: who causes its congestion, and who suffers from it.

Nothing is set in the subnet.
"""

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
"""Largest file of a dump."""

Ticks = str | Sequence[str] | None
"""Ticks that a user states."""

LINK_PERCENT = 1.0
"""The part of a management link that requests take at most, in percent."""

# The readings of a sweep are some milliseconds apart.
_MOST_WAIT = 1.05
_MANY_UNKNOWN = 0.1


class SubnetWatcher:
    """Sweeps of the subnet behind a port of an adapter, each compared with the one before.

    Parameters
    ----------
    device : str, optional
        The adapter; by default the first with an active port.
    port : int
        Its port; 0 is the first active one.
    tick : str or sequence of str, optional
        Length of a tick of PortXmitWait of all ports, such as ``"4 ns"``, or of the ports of a
        device, such as ``"Quantum=0.32 ns"``; by default that of each port's device.
    link_percent : float
        The part of a management link that requests take at most, as answers do the other way, in
        percent of its data rate: of the slowest among the link of this port and the cables between
        switches.
    clock : FabricClock, optional
        The clock of an emulated fabric.

    Raises
    ------
    UnsupportedSystemError
        This is not Linux.
    DiagnosisError
        There is no such port, or this user may not use it.
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
        """Serve metrics of each sweep for Prometheus, until this object is gone.

        Parameters
        ----------
        listen : str
            Address and port; port 0 is any free port.
        interval_s : float
            Seconds from one sweep to the next. A sweep that ended three of them ago, and 10 s at
            least, is not served any more.

        Returns
        -------
        str
            Address and port.

        Raises
        ------
        DiagnosisError
            Nothing can be served there.
        """
        return self._watch.serve(listen, interval_s)

    def note_failure(self) -> None:
        """Note in the metrics that a sweep has failed."""
        self._watch.note_failure()

    def sweep(self) -> Moment | None:
        """Read all counters.

        Returns
        -------
        Moment, optional
            Changes since the previous sweep; ``None`` for the first sweep, and for the
            first one after the subnet has changed.

        Raises
        ------
        DiagnosisError
            Nothing answers.
        """
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
        """Read the clocks of the fabric and of this machine, in seconds."""
        if self._clock is None:
            return 0.0, 0.0
        before, fabric, after = time.monotonic(), self._clock.seconds(), time.monotonic()
        return fabric, (before + after) / 2

    def _scale(self, began: tuple[float, float], ended: tuple[float, float]) -> float:
        """Return the simulated seconds per second since the sweep before, 1 of a real subnet."""
        middle = (began[0] + ended[0]) / 2, (began[1] + ended[1]) / 2
        before, self._read = self._read, middle
        if self._clock is None or before is None:
            return 1.0
        if middle[0] < before[0]:
            # Another fabric has the name by now, whose counters are compared with no other.
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
    """Diagnose the subnet behind a port of an adapter.

    Parameters
    ----------
    device, port, tick, link_percent, clock
        See :class:`SubnetWatcher`.
    interval : str
        Time between the two sweeps of the counters.

    Returns
    -------
    Moment
        The report, the subnet and the loads of its ports.

    Raises
    ------
    UnsupportedSystemError
        This is not Linux.
    DiagnosisError
        There is no such port, this user may not use it, or nothing answers.
    """
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
    """Diagnose a subnet from files of the common tools.

    Parameters
    ----------
    topology : Path
        The output of ``ibnetdiscover``, with or without ``-p``, or ibdiagnet's ``.db_csv``.
    before, after : Path
        Counters: the output of ``perfquery`` or ``ibqueryerrors``, or ibdiagnet's ``.db_csv``.
    routes : Path, optional
        The output of ``dump_lfts``.
    interval : str
        Time between the readings of ``before`` and ``after``.
    tick : str or sequence of str, optional
        See :class:`SubnetWatcher`.

    Returns
    -------
    tuple of Moment and list of str
        The diagnosis, and what is odd about the files.

    Raises
    ------
    ScenarioError
        A file cannot be read.
    DiagnosisError
        A file cannot be used; the message names file and line.
    """
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
    """Tell whether a report without congestion does not say that there is none.

    Parameters
    ----------
    report : dict
        The report.

    Returns
    -------
    bool
        True if ports wait although no cause is found and ports are not known, or more than a tenth
        of the ports is not known.
    """
    unknown = report["unknown_ports"]
    waiting = bool(report["unexplained"]) and unknown > 0
    return not report["trees"] and (waiting or unknown > report["ports"] * _MANY_UNKNOWN)


def _doubts(report: Report) -> list[str]:
    """Say what speaks against the time between the files, or against their order."""
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
    """The clock of an emulated fabric.

    Parameters
    ----------
    sockname : str
        Name of its sockets.

    Raises
    ------
    EmulationError
        There is no such fabric.
    """

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
    """Put the name of the file before an error in a line of the file."""
    found = re.match(r"line (\d+): ", text)
    if found:
        return f"{path}:{found[1]}: {text[found.end() :]}"
    return f"{path}: {text}"
