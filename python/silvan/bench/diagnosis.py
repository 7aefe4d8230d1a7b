"""Speed of the diagnosis of a congested live fabric."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from silvan.bench.live import LiveBenchmark, socket_name
from silvan.bench.studies import live_scenario
from silvan.errors import EmulationError
from silvan.live.emulation import Emulation
from silvan.live.live_programs import attached
from silvan.scratch import scratch_folder

INCASTS = 4

SENDERS = 40

# Slow, so that the traffic leaves the processor to the diagnosis.
_TIME_SCALE = 0.002


def diagnosis_seconds(fabric: dict[str, Any], hosts: int) -> float:
    """Return the seconds of a sweep and its analysis on a fabric with incasts."""
    part = hosts // INCASTS
    incasts = [
        {
            "to": f"host-{first:04}",
            "from": [f"host-{first + 1 + sender:04}" for sender in range(SENDERS)],
        }
        for first in range(0, part * INCASTS, part)
    ]
    scenario = live_scenario(fabric, traffic={"incast": incasts})
    words = [sys.executable, "-m", "silvan", "diagnose", "--json", "--interval", "2 s"]
    with (
        scratch_folder("bench") as folder,
        Emulation(scenario, sockname=socket_name(), time_scale=_TIME_SCALE) as emulation,
        attached(emulation, folder, words, stdout=subprocess.PIPE) as process,
    ):
        printed, errors = process.communicate()
    if process.returncode != 1:
        raise EmulationError(f"no congestion is found: {errors.strip()}")
    report = json.loads(printed)
    if len(report["trees"]) != INCASTS:
        raise EmulationError(f"{len(report['trees'])} of {INCASTS} incasts are found")
    return float(report["datagrams"]["sweep_s"] + report["analysis_s"])


DIAGNOSIS_BENCHMARKS = (
    LiveBenchmark(
        "diagnose-648",
        f"2,592 ports of 648 hosts, {INCASTS} incasts: a sweep and the analysis of silvan diagnose",
        "s",
        0.15,
        lambda: (diagnosis_seconds({"generator": "fat-tree-648"}, 648), None),
    ),
    LiveBenchmark(
        "diagnose-5832",
        f"34,992 ports of 5,832 hosts, {INCASTS} incasts: the same",
        "s",
        3.0,
        lambda: (
            diagnosis_seconds({"generator": "k-ary-n-tree", "k": 18, "n": 3}, 5832),
            None,
        ),
    ),
)
