"""Speed of the live fabric: next to ibsim, and next to the wall clock."""

from __future__ import annotations

import os
import re
import shutil
import socket
import statistics
import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

from silvan.bench.studies import bench_scenario, live_scenario
from silvan.child_processes import child, run_child
from silvan.errors import EmulationError
from silvan.inputs.scenario import Scenario
from silvan.live.emulation import Emulation, umad2sim_library
from silvan.live.live_programs import (
    PATH,
    SUBNET_UP,
    LogLines,
    opensm_log,
    opensm_variables,
    opensm_words,
)
from silvan.scratch import scratch_folder

PROGRAMS: Mapping[str, str] = {
    "opensm": "opensm",
    "ibsim": "ibsim-utils",
    "libumad2sim.so": "libumad2sim0",
}

MAD_SECONDS = 3.0

LIVE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class LiveBenchmark:
    """A benchmark of the live fabric: ``measure`` returns the value, and ibsim's."""

    name: str
    what: str
    unit: str
    goal: float | None
    measure: Callable[[], tuple[float, float | None]]


@dataclass(frozen=True, slots=True)
class MeasuredLive:
    """Medians over the repeats of a benchmark; ``ibsim`` is measured in turns."""

    name: str
    what: str
    unit: str
    repeats: int
    value: float
    lowest: float
    highest: float
    ibsim: float | None
    goal: float | None

    def to_dict(self) -> dict[str, Any]:
        """Give the measurements as plain values, for JSON."""
        return asdict(self)


def missing_programs() -> list[str]:
    """Name the Debian packages that the benchmarks need and that are not installed."""
    missing = []
    for program, package in PROGRAMS.items():
        if program.endswith(".so"):
            try:
                umad2sim_library()
            except EmulationError:
                missing.append(package)
        elif shutil.which(program, path=PATH) is None:
            missing.append(package)
    return missing


def measure_live(
    benchmark: LiveBenchmark, *, repeats: int, on_repeat: Callable[[int], object]
) -> MeasuredLive:
    """Run a benchmark of the live fabric several times."""
    if missing := missing_programs():
        raise EmulationError(
            f"{benchmark.name} needs programs that are not installed",
            f"apt-get install {' '.join(missing)}",
        )
    values, references = [], []
    for number in range(1, repeats + 1):
        on_repeat(number)
        value, ibsim = benchmark.measure()
        values.append(value)
        if ibsim is not None:
            references.append(ibsim)
    return MeasuredLive(
        name=benchmark.name,
        what=benchmark.what,
        unit=benchmark.unit,
        repeats=repeats,
        value=statistics.median(values),
        lowest=min(values),
        highest=max(values),
        ibsim=statistics.median(references) if references else None,
        goal=benchmark.goal,
    )


def socket_name() -> str:
    """Give a name for the sockets of a fabric of this process."""
    return f"silvan-bench-{os.getpid()}"


def _bring_up(environment: Mapping[str, str]) -> float:
    with scratch_folder("bench") as folder:
        start = time.perf_counter()
        done = run_child(
            opensm_words(folder, "--once", "--routing_engine", "ftree"),
            cwd=folder,
            env=os.environ | environment | opensm_variables(folder),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        seconds = time.perf_counter() - start
        is_up = any(SUBNET_UP in line for line in LogLines(opensm_log(folder)).new())
    if done.returncode != 0 or not is_up:
        raise EmulationError(f"OpenSM has not brought up the fabric (status {done.returncode})")
    return seconds


@contextmanager
def _ibsim(scenario: Scenario, sockname: str) -> Iterator[None]:
    facts = scenario.describe()
    nodes = facts["hosts"] + facts["switches"]
    with scratch_folder("bench") as folder:
        net = folder / "net"
        net.write_text(scenario.export("ibsim"))
        room = ("-N", nodes + 1, "-S", facts["switches"] + 1, "-P", 2 * nodes + 64 * nodes)
        with child(
            ["ibsim", "-s", "-n", *map(str, room), net.name],
            cwd=folder,
            env=os.environ | {"IBSIM_SOCKNAME": sockname, "PATH": PATH},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            deadline = time.monotonic() + 60
            while f"@{sockname}:ctl" not in Path("/proc/net/unix").read_text():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise EmulationError("ibsim does not serve the fabric")
                time.sleep(0.05)
            yield


class _BesideIbsim:
    _FIRST_HOST = "host-0000"

    def __init__(self, fabric: Mapping[str, Any]) -> None:
        self._fabric = fabric
        self._own_first = cycle((True, False))

    def __call__(self) -> tuple[float, float]:
        scenario = live_scenario(self._fabric)
        if next(self._own_first):
            own, theirs = self._own(scenario), self._theirs(scenario)
        else:
            theirs, own = self._theirs(scenario), self._own(scenario)
        return own, theirs

    def _own(self, scenario: Scenario) -> float:
        with Emulation(scenario, sockname=socket_name(), blank=True) as emulation:
            return _bring_up(emulation.attach(self._FIRST_HOST))

    def _theirs(self, scenario: Scenario) -> float:
        sockname = f"{socket_name()}-ibsim"
        environment = {
            "LD_PRELOAD": str(umad2sim_library()),
            "SIM_HOST": self._FIRST_HOST,
            "IBSIM_SOCKNAME": sockname,
        }
        with _ibsim(scenario, sockname):
            return _bring_up(environment)


class _Client:
    _ON_THE_WAY = 32
    _BATCH = 8
    _MAGIC = 0xDEADBEEF
    _CONNECT = 1
    _DISCONNECT = 2
    _MAD_AT = 32

    def __init__(self, sockname: str) -> None:
        base = f"\0{sockname}:"
        self._control = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._data = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        for one, role in ((self._control, "ctl"), (self._data, "in")):
            one.settimeout(20)
            one.bind(f"{base}{role}{os.getpid()}\0")
        self._control.connect(f"{base}ctl\0")
        self._number = self._ask(0, self._CONNECT, struct.pack("=I", os.getpid()))
        self._data.connect(f"{base}out{self._number}\0")

    def _ask(self, client: int, kind: int, data: bytes) -> int:
        self._control.send(struct.pack("=IIII64s", self._MAGIC, client, kind, 64, data))
        answer = self._control.recv(80)
        _, _, answered, _, first = struct.unpack("=IIIII", answer[:20])
        if answered != kind:
            raise EmulationError("the fabric refuses the benchmark")
        return int(first)

    def close(self) -> None:
        self._ask(self._number, self._DISCONNECT, b"")
        self._control.close()
        self._data.close()

    @classmethod
    def port_counters(cls, lid: int) -> bytes:
        header = struct.pack(">HHHHII", lid, 0, 0, 0, 1, 1) + struct.pack(">IIQ", 0, 0, 256)
        mad = struct.pack(">BBBBHHQHHI", 1, 4, 1, 1, 0, 0, lid, 0x12, 0, 0).ljust(65, b"\0")
        return (header + mad + b"\1").ljust(288, b"\0")

    def answered_per_second(
        self, requests: Sequence[bytes], seconds: float, clock: Callable[[], float]
    ) -> float:
        send, receive = self._data.send, self._data.recv
        count = len(requests)
        sent = answered = 0
        while sent < self._ON_THE_WAY:
            send(requests[sent % count])
            sent += 1
        start = clock()
        while clock() - start < seconds:
            for _ in range(self._BATCH):
                answer = receive(512)
                # The header's status, the method, and the datagram's own status.
                if answer[16:20] != bytes(4) or answer[35:38] != b"\x81\0\0":
                    raise EmulationError("a request has not been answered")
                answered += 1
            for _ in range(self._BATCH):
                send(requests[sent % count])
                sent += 1
        passed = clock() - start
        for _ in range(sent - answered):
            receive(512)
        return answered / passed


def datagrams_per_second(
    scenario: Scenario,
    meanwhile: Callable[[Emulation], AbstractContextManager[object]] = nullcontext,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Measure the requests that a fabric answers per second of a clock, with a load meanwhile."""
    with Emulation(scenario, sockname=socket_name()) as emulation:
        tables = emulation.control("tables")["tables"]
        lids = {int(lid, 16) for lid in re.findall(r"^0x(\w+) \d+ : \(Channel", tables, re.M)}
        time.sleep(0.5)
        client = _Client(emulation.sockname)
        try:
            requests = [_Client.port_counters(lid) for lid in sorted(lids)]
            with meanwhile(emulation):
                return client.answered_per_second(requests, MAD_SECONDS, clock)
        finally:
            client.close()


@contextmanager
def _on_one_core() -> Iterator[None]:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _per_second(*, clock: Callable[[], float]) -> float:
    with _on_one_core(), Emulation(bench_scenario("live"), sockname=socket_name()) as emulation:
        time.sleep(0.5)
        start, first = clock(), emulation.control("status")["simulated_s"]
        time.sleep(LIVE_SECONDS)
        end, last = clock(), emulation.control("status")["simulated_s"]
    return float(last - first) / (end - start)


_TESTBED = "mizero2017's testbed, 4 flows at 8 Gbit/s, one core"

LIVE_BENCHMARKS = (
    LiveBenchmark(
        "live-opensm-648",
        "OpenSM brings up 648 hosts, 54 switches",
        "s",
        2.0,
        _BesideIbsim({"generator": "fat-tree-648"}),
    ),
    LiveBenchmark(
        "live-opensm-5832",
        "OpenSM brings up 5,832 hosts, 972 switches",
        "s",
        15.0,
        _BesideIbsim({"generator": "k-ary-n-tree", "k": 18, "n": 3}),
    ),
    LiveBenchmark(
        "live-mads-idle",
        "datagrams answered, 648 hosts without traffic",
        "1/s",
        50_000,
        lambda: (datagrams_per_second(live_scenario({"generator": "fat-tree-648"})), None),
    ),
    LiveBenchmark(
        "live-mads-running",
        "datagrams answered, 648 hosts at 100 % load",
        "1/s",
        10_000,
        lambda: (datagrams_per_second(bench_scenario("uniform-100")), None),
    ),
    LiveBenchmark(
        "live-time-scale",
        f"{_TESTBED}: simulated seconds per second",
        "s/s",
        1,
        lambda: (_per_second(clock=time.perf_counter), None),
    ),
    LiveBenchmark(
        "live-processor",
        f"{_TESTBED}: simulated seconds per second of processor time",
        "s/s",
        1,
        lambda: (_per_second(clock=time.process_time), None),
    ),
)
