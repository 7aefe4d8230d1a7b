"""The sweeps of the congestion manager as moments of the live page."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from silvan.errors import EmulationError
from silvan.live.moments import Moment, Report, Subnet
from silvan.viewer.dcms_log import DcmsLines

if TYPE_CHECKING:
    from silvan._silvan import Manager
    from silvan.live.diagnosis import FabricClock


class ManagedMoments:
    """Reads the reports of a manager, or of its successor after a reload."""

    def __init__(self, clock: FabricClock | None = None) -> None:
        self.events = DcmsLines()
        self._clock = clock
        self._read: tuple[float, float] | None = None
        self._scale: float | None = 1.0 if clock is None else None
        self._subnet: Subnet | None = None

    def take(self, manager: Manager) -> list[Moment]:
        """Return the sweeps since the last call."""
        self._follow_clock()
        self.events.add(manager.log())
        if self._scale is None:
            return []
        moments = []
        for at_ns, text, loads, subnet in manager.rounds(self._scale):
            if subnet is not None:
                self._subnet = Subnet(*subnet)
            report = moment_report(json.loads(text))
            if self._subnet is not None and report["interval_s"] > 0:
                moments.append(Moment(self._subnet, report, loads, at_ns))
        return moments

    def _follow_clock(self) -> None:
        now = time.monotonic()
        if self._clock is None or (self._read is not None and now - self._read[1] < 1):
            return
        try:
            read = self._clock.seconds(), now
        except EmulationError:
            # The manager will report the end of the fabric.
            return
        before, self._read = self._read, read
        if before is not None and read[0] > before[0]:
            self._scale = (read[0] - before[0]) / (read[1] - before[1])


def moment_report(manager: dict[str, Any]) -> Report:
    """Write the manager's knowledge as a report, whose trees are its ports with victims."""
    trees = [
        {
            "root": low["port"],
            "peer": low["peer"],
            "branches": [
                {"port": victim, "waits_for": low["port"], "depth": 1, "wait": wait}
                for victim, wait in low["victims"]
            ],
            "contributors": [],
            "victims": [],
        }
        for low in manager["low"]
    ]
    return {
        "ports": manager["ports"],
        "unknown_ports": manager["unknown_ports"],
        "interval_s": manager["interval_s"],
        "trees": trees,
        "unexplained": [],
        "health": [],
        "manager": {"act": manager["act"], "low": manager["low"]},
    }
