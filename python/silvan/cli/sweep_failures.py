"""Sweeps of a subnet that fail: what is said of them, and when the next one is tried."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from silvan.cli.diagnosis_tables import stamp
from silvan.cli.printer import note

if TYPE_CHECKING:
    from silvan.errors import SilvanError

_LONGEST_S = 60.0


class SweepFailures:
    """Failed sweeps in a row; the time to the next try doubles, up to a minute or the interval."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._count = 0
        self._since_ns = 0

    def add(self, error: SilvanError) -> float:
        """Report a failed sweep; return the seconds from its start to the next."""
        now = time.time_ns()
        most = max(_LONGEST_S, self._interval_s)
        wait_s = min(most, self._interval_s * 2.0 ** min(self._count, 32))
        if self._count == 0:
            self._since_ns = now
            note(f"{stamp(now)}  no sweep: {error}")
        else:
            note(
                f"{stamp(now)}  still no sweep since {stamp(self._since_ns)}: {error}; "
                f"next try in {wait_s:g} s"
            )
        self._count += 1
        return wait_s

    def clear(self) -> None:
        """Report that sweeps succeed again, if the last one has failed."""
        if self._count:
            now = time.time_ns()
            note(f"{stamp(now)}  sweeps again, after {(now - self._since_ns) / 1e9:.0f} s")
        self._count = 0
