"""Endurance of the live fabric: a day of simulated time, and many tools at once."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from silvan.bench.live import LiveBenchmark, socket_name
from silvan.bench.studies import live_scenario
from silvan.child_processes import run_child
from silvan.errors import EmulationError
from silvan.inputs.scenario import Scenario
from silvan.live.emulation import Emulation
from silvan.live.live_programs import attached
from silvan.scratch import scratch_folder

DAY_S = 86_400

CLIENTS = 100

_TIME_SCALE = 1440
# Part of the day after which queues, tables and Python's own memory have their size.
_SETTLED = 0.1
_PAUSE_S = 0.2
_PAGE = os.sysconf("SC_PAGE_SIZE")


def grown_megabytes(simulated_s: float, scenario: Scenario, time_scale: float) -> float:
    """Return the growth of this process's memory in MB, after the first tenth of the time."""
    settled: int | None = None
    with (
        scratch_folder("bench") as folder,
        Emulation(scenario, sockname=socket_name(), time_scale=time_scale) as emulation,
    ):
        environment = os.environ | emulation.attach()
        while (passed := emulation.control("status")["simulated_s"]) < simulated_s:
            _printed(["perfquery", "-x"], environment, folder)
            if settled is None and passed >= _SETTLED * simulated_s:
                settled = _resident()
            time.sleep(_PAUSE_S)
        grown = _resident() - (settled or 0)
        if settled is None or not emulation.control("status")["delivered_bytes"]:
            raise EmulationError("the fabric has delivered nothing")
    return grown / 1e6


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def _printed(words: list[str], environment: Mapping[str, str], folder: Path) -> str:
    done = run_child(words, cwd=folder, env=environment)
    if done.returncode != 0:
        raise EmulationError(f"{words[0]} has failed: {done.stderr.strip()}")
    return done.stdout


def all_clients_seconds(fabric: dict[str, object], clients: int) -> float:
    """Return the seconds in which many ``ibnetdiscover`` discover a fabric at once."""
    scenario = live_scenario(fabric)
    facts = scenario.describe()
    nodes = facts["hosts"] + facts["switches"]
    with (
        scratch_folder("bench") as folder,
        Emulation(scenario, sockname=socket_name()) as emulation,
        ExitStack() as stack,
    ):
        outputs = [folder / str(number) for number in range(clients)]
        began = time.perf_counter()
        running = []
        for output in outputs:
            file = stack.enter_context(output.open("w"))
            words = ["ibnetdiscover", "--list", "--timeout", "60000"]
            running.append(
                stack.enter_context(attached(emulation, folder, words, stdout=file.fileno()))
            )
        failed = sum(process.wait() != 0 for process in running)
        seconds = time.perf_counter() - began
        found = {len(output.read_text().splitlines()) for output in outputs}
    if failed or found != {nodes}:
        raise EmulationError(f"{failed} of {clients} clients failed; they found {found} nodes")
    return seconds


_TWO_TIERS = live_scenario(
    {"generator": "leaf-spine", "leaf-hosts": [4, 4, 4, 4], "spine-cables": [1, 1]},
    traffic={"uniform": [{"load": "100 kbit/s"}]},
)

ENDURANCE_BENCHMARKS = (
    LiveBenchmark(
        "live-day",
        "24 simulated hours, 16 hosts with traffic, a tool five times a second: growth of memory "
        "after the first tenth",
        "MB",
        1.0,
        lambda: (grown_megabytes(DAY_S, _TWO_TIERS, _TIME_SCALE), None),
    ),
    LiveBenchmark(
        "live-clients-100",
        f"{CLIENTS} ibnetdiscover at once discover 648 hosts, 54 switches",
        "s",
        None,
        lambda: (all_clients_seconds({"generator": "fat-tree-648"}, CLIENTS), None),
    ),
)
