"""Speed of sweeps of a subnet's counters: `silvan dcms` next to the common tools."""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from silvan.bench.live import LiveBenchmark, socket_name
from silvan.bench.studies import live_scenario
from silvan.errors import EmulationError
from silvan.inputs.scenario import Scenario
from silvan.live.emulation import Emulation
from silvan.live.live_programs import attached, opensm
from silvan.scratch import scratch_folder

SWEEPS = 12

_MOST_SWEEPS = 100 * SWEEPS

_CONFIG = """\
[dcms]
interval = "500 ms"
tick = "4 ns"
congestion-threshold = 100000000
rate-reduction-threshold = 100000000
[datagrams]
in-flight = 256
per-switch = 8
timeout = "5 s"
[counters]
data = "{data}"
[state]
folder = "state"
[subnet]
require-sm = false
"""


def sweep_seconds(data: str, scenario: Scenario) -> float:
    """Return the median seconds of a sweep of `silvan dcms` on an idle fabric."""
    with (
        scratch_folder("bench") as folder,
        Emulation(scenario, sockname=socket_name(), paused=True) as emulation,
    ):
        (folder / "dcms.toml").write_text(_CONFIG.format(data=data))
        words = [sys.executable, "-m", "silvan", "dcms", "dcms.toml", "--verbose", "--log", "json"]
        seconds: list[float] = []
        sweeps = 0
        with attached(emulation, folder, words) as process:
            assert process.stderr is not None
            for line in process.stderr:
                event = json.loads(line) if line.startswith("{") else {"event": line}
                # Another sweep may be in progress at the stop, and does not finish.
                if event["event"] != "swept" or len(seconds) == SWEEPS:
                    continue
                sweeps += 1
                # On a busy machine an answer may come too late to count.
                if event["answered"] == event["ports"]:
                    seconds.append(float(event["seconds"]))
                elif sweeps == _MOST_SWEEPS:
                    raise EmulationError(
                        f"{event['answered']} of {event['ports']} ports have answered in time"
                    )
                if len(seconds) == SWEEPS:
                    process.terminate()
    if len(seconds) < SWEEPS:
        raise EmulationError("silvan dcms has ended by itself")
    return statistics.median(seconds[1:SWEEPS])


def tool_seconds(tool: str, scenario: Scenario) -> float:
    """Return the seconds in which a tool reads the counters of all switch ports."""
    with ExitStack() as stack:
        folder = stack.enter_context(scratch_folder("bench"))
        emulation = stack.enter_context(Emulation(scenario, sockname=socket_name(), paused=True))
        facts = scenario.describe()
        expected = 36 * facts["switches"]
        if tool == "ibqueryerrors":
            # The tool queries the subnet manager for the nodes.
            stack.enter_context(opensm(emulation, folder))
            calls = [[tool, "--counters", "--switch"]]
            line = r"^   GUID 0x\w+ port \d+: .*PortXmitData"
        else:
            tables = emulation.control("tables")["tables"]
            lids = re.findall(r"^Unicast lids .* of switch Lid (\d+)", tables, re.MULTILINE)
            calls = [[tool, "-l", lid, "1-36"] for lid in lids]
            line = "^PortXmitData:"
        start = time.perf_counter()
        printed = "".join(_output(emulation, folder, call) for call in calls)
        seconds = time.perf_counter() - start
    read = len(re.findall(line, printed, re.MULTILINE))
    if read != expected:
        raise EmulationError(f"{tool} has read {read} ports of {expected}")
    return seconds


def _output(emulation: Emulation, folder: Path, words: Sequence[str]) -> str:
    with attached(emulation, folder, words, stdout=subprocess.PIPE) as process:
        printed, errors = process.communicate()
    if process.returncode != 0:
        raise EmulationError(f"{words[0]} fails: {errors.strip()}")
    return printed


def _fabric() -> Scenario:
    return live_scenario({"generator": "fat-tree-648"})


_PORTS = "1,944 switch ports of 648 hosts"

DCMS_BENCHMARKS = (
    LiveBenchmark(
        "dcms-sweep",
        f"{_PORTS}: PortCounters and PortXmitConCtrl, by silvan dcms",
        "s",
        0.15,
        lambda: (sweep_seconds("32-bit", _fabric()), None),
    ),
    LiveBenchmark(
        "dcms-sweep-extended",
        f"{_PORTS}: PortCountersExtended, too",
        "s",
        None,
        lambda: (sweep_seconds("64-bit", _fabric()), None),
    ),
    LiveBenchmark(
        "dcms-ibqueryerrors",
        f"{_PORTS}: ibqueryerrors --counters --switch",
        "s",
        None,
        lambda: (tool_seconds("ibqueryerrors", _fabric()), None),
    ),
    LiveBenchmark(
        "dcms-perfquery",
        f"{_PORTS}: perfquery -l, once per switch",
        "s",
        None,
        lambda: (tool_seconds("perfquery", _fabric()), None),
    ),
)
