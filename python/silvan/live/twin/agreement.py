"""Agreement of a simulated twin's counters with those of the subnet."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from silvan.live.moments import Subnet
from silvan.live.twin.paths import Values
from silvan.results.result import Result

LOADED = 0.002
"""Ports below this part of their link are not compared."""


@dataclass(frozen=True)
class Agreement:
    """Errors of a twin's counters over loaded ports.

    Median and 95th percentile are relative errors of the load, ``wait`` a mean difference.
    ``verdict`` is the part of roots, and of victims, that only one of both diagnoses has.
    """

    median: float
    p95: float
    wait: float
    verdict: float = 0.0

    @property
    def cost(self) -> float:
        """A number that is smaller for a better twin."""
        return self.median + self.p95 + 3 * self.wait + self.verdict


def counters(result: Result, subnet: Subnet) -> tuple[Values, Values]:
    """Return load and waiting part of the time of each port of a subnet, from a run of its twin."""
    loads = np.zeros(len(subnet.ports))
    waits = np.zeros(len(subnet.ports))
    rows = subnet.rows
    counted_s = (result.scenario.duration_ps - result.scenario.warm_up_ps) / 1e12
    columns = ("node", "port", "link_gbps", "xmit_bytes", "xmit_wait_ps")
    table = result.tables["ports"].select(columns).to_pylist()
    for row in table:
        place = rows.get(f"{row['node']}:{row['port']}")
        if place is not None:
            loads[place] = row["xmit_bytes"] * 8 / counted_s / (row["link_gbps"] * 1e9)
            waits[place] = row["xmit_wait_ps"] / 1e12 / counted_s
    return loads, waits


def agreement(
    subnet: Subnet, measured: tuple[Values, Values], result: Result, verdict: float = 0.0
) -> Agreement:
    """Compare the counters of a twin's run with loads and waits of the subnet."""
    loads, waits = counters(result, subnet)
    load, wait = measured
    counted = np.nan_to_num(load) > LOADED
    errors = np.abs(loads - load)[counted] / load[counted]
    known = np.isfinite(wait)
    apart = np.abs(waits - wait)[known]
    return Agreement(
        float(np.median(errors)) if len(errors) else 0.0,
        float(np.percentile(errors, 95)) if len(errors) else 0.0,
        float(apart.mean()) if len(apart) else 0.0,
        verdict,
    )


def delivered_gbps(result: Result) -> Values:
    """Return the payload that each flow of a twin delivered, in the order of the flows."""
    counted_s = (result.scenario.duration_ps - result.scenario.warm_up_ps) / 1e12
    delivered = result.tables["classes"]["delivered_bytes"].to_numpy()
    return np.asarray(delivered * 8 / counted_s / 1e9, np.float64)
