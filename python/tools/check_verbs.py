"""Run unmodified RDMA programs in a live fabric, and compare their numbers with the model.

``make check-verbs`` prints a table; with words, only rows whose program contains one of them.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from silvan.inputs.scenario import Scenario
from silvan.live.emulation import Emulation
from silvan.live.live_programs import wait_for
from silvan.testing import RunningFabric

FABRIC = """\
name = "check-verbs"

[fabric]
switch = [{ name = "left", ports = 8 }, { name = "right", ports = 8 }]
host = [{ name = "a" }, { name = "b" }, { name = "c" }, { name = "d" }]
cable = [
    { from = "a", to = "left:1" },
    { from = "b", to = "left:2" },
    { from = "c", to = "right:1" },
    { from = "d", to = "right:2" },
    { from = "left:5", to = "right:6" },
]
routing = "min-hop"

[link]
speed = "EDR"

[packet]
mtu = "4 KiB"
"""
BIT_ERROR_RATE = 6e-7
BAD_CABLE = f"""
[[fault]]
do = "bit-errors"
port = "left:5"
bit-error-rate = {BIT_ERROR_RATE}
retransmission = false
"""
"""The port receives what host c sends to host a, and discards bad packets."""
EIGHT_HOSTS = """\
name = "eight"

[fabric]
generator = "single-switch"
hosts = 8

[link]
speed = "EDR"

[packet]
mtu = "4 KiB"
"""
QP_TIMEOUT = 3
MTU = 4096
SMALL_MTU = 1024
HEADER = 26
GBPS = 100
CABLE_NS = 10
"""Propagation in a cable of 2 m."""
SWITCH_NS = 100
DEADLINE_S = 180
SLOW_S = 3.5
"""For so long after a program's last command, simulated time is slower."""
BANDWIDTH_SHARE, LATENCY_SHARE = 0.02, 0.05
_TRIES = 3
SIZES = (64, 4096, 65536, 1 << 20, 8 << 20)
MIB = 1 << 20


def wire_ns(size: int, mtu: int = MTU) -> float:
    """Time of a message's packets on a link."""
    packets = max(1, -(-size // mtu))
    return (size + packets * HEADER) * 8 / GBPS


def one_way_us(size: int, switches: int = 2) -> float:
    """Time of a message from host to host on the empty fabric."""
    return (wire_ns(size) + (switches + 1) * CABLE_NS + switches * SWITCH_NS) / 1000


def stream_mib(size: int, mtu: int = MTU) -> float:
    """Payload rate of messages back to back, in MiB/s."""
    return size / wire_ns(size, mtu) * 1e9 / MIB


def going_back_mib(size: int) -> float:
    """Payload rate of messages of which packets are lost, in MiB/s.

    The NAK follows the first packet behind the lost one that is not lost. The sender then ends the
    packet under way, and goes back. There is one NAK for each packet: if it is lost again, the
    timeout follows the departure of its message.
    """
    lost = 1 - (1 - BIT_ERROR_RATE) ** (8 * (MTU + HEADER))
    packet = wire_ns(MTU)
    refused = 2 * packet + 1000 * (one_way_us(0) + one_way_us(0)) - wire_ns(0)
    left = (size / MTU + 1) / 2
    again = left + 4096 * (1 << QP_TIMEOUT) / packet + 0.5
    cost = math.ceil(refused / packet) + lost / (1 - lost) + lost * again
    return stream_mib(size) / (1 + lost / (1 - lost) * cost)


def acknowledged_mib(size: int) -> float:
    """Payload rate of perftest's requests over RC.

    Small requests are signalled every 100, and 128 are open: the queue runs empty before the
    acknowledgement of the hundredth comes back.
    """
    if size >= 8192:
        return stream_mib(size)
    round_trip = 1000 * (one_way_us(0) + one_way_us(0))
    interval = max(100 * wire_ns(size), (2 * 100 - 128) * wire_ns(size) + round_trip)
    return 100 * size / interval * 1e9 / MIB


def read_mib(size: int) -> float:
    """Payload rate of RDMA reads, of which 16 are open."""
    round_trip = 1000 * (one_way_us(0) + one_way_us(size))
    return min(stream_mib(size), 16 * size / round_trip * 1e9 / MIB)


@dataclass(frozen=True)
class Row:
    """A program, a number that it prints, and that of the model."""

    program: str
    size: int | None
    unit: str
    measured: float | None
    expected: float | None
    remark: str = ""
    tries: int = 1

    @property
    def difference(self) -> float | None:
        """Relative difference."""
        if self.measured is None or self.expected is None:
            return None
        return self.measured / self.expected - 1

    @property
    def ok(self) -> bool:
        """True if the difference is small."""
        if self.remark:
            return False
        most = BANDWIDTH_SHARE if self.unit.startswith("Mi") else LATENCY_SHARE
        return self.difference is None or abs(self.difference) <= most

    def __str__(self) -> str:
        def number(value: float | None) -> str:
            return "" if value is None else f"{value:.6g}"

        share = "" if self.difference is None else f"{self.difference:+.2%}"
        size = "" if self.size is None else str(self.size)
        passed = "ran" if self.difference is None else "ok"
        verdict = self.remark or (passed if self.ok else "DIFFERS")
        verdict += f", try {self.tries}" if self.tries > 1 else ""
        return (
            f"{self.program:<34}{size:>9}{number(self.measured):>11}{number(self.expected):>11}"
            f" {self.unit:<6}{share:>10}  {verdict}"
        )


Parse = Callable[[str], float]


def perftest_bw(printed: str) -> float:
    """Average bandwidth of perftest's line, in MiB/s."""
    return float(_numbers(printed)[3])


def perftest_lat(printed: str) -> float:
    """Typical latency of perftest's line, in microseconds."""
    return float(_numbers(printed)[4])


def _numbers(printed: str) -> list[str]:
    lines = [line.split() for line in printed.splitlines()]
    rows = [line for line in lines if line and re.fullmatch(r"\d+", line[0]) and len(line) >= 4]
    return rows[-1]


class Checks:
    """Runs programs on two hosts or all."""

    def __init__(self, running: RunningFabric, wanted: list[str]) -> None:
        self._running = running
        self._wanted = wanted
        self.rows: list[Row] = []

    def wants_any(self, name: str) -> bool:
        """Say whether rows of this name are wanted."""
        return not self._wanted or any(word in name for word in self._wanted)

    def wants(self, program: str) -> bool:
        """Say whether rows of this program are wanted, and it is installed."""
        if not self.wants_any(program):
            return False
        name = program.split()[0]
        if shutil.which(name) is None:
            self.add(Row(program, None, "", None, None, "not installed"))
            return False
        return True

    def add(self, row: Row) -> None:
        """Add a row, and print it."""
        self.rows.append(row)
        print(row, flush=True)

    def pair(self, words: list[str], hosts: tuple[str, str] = ("a", "c")) -> str:
        """Run a program as server and client; return what the client prints."""
        port = str(_free_port())
        server = self._running.popen(*words, "-p", port, host=hosts[0])
        try:
            wait_for(
                lambda: _listens(int(port)) or server.poll() is not None,
                f"{words[0]} does not listen",
            )
            client = self._running.run(
                *words, "-p", port, "localhost", host=hosts[1], timeout_s=DEADLINE_S
            )
            server.communicate(timeout=DEADLINE_S)
        finally:
            server.kill()
            server.communicate()
        return client.stdout

    def pair_at(self, words: list[str], port: int) -> str:
        """Run a program as server and client that has a port of its own."""
        server = self._running.popen(*words, host="a")
        try:
            wait_for(
                lambda: _listens(port) or server.poll() is not None,
                f"{words[0]} does not listen",
            )
            client = self._running.run(*words, "localhost", host="c", timeout_s=DEADLINE_S)
            server.communicate(timeout=DEADLINE_S)
        finally:
            server.kill()
            server.communicate()
        return client.stdout

    def connected_pair(self, words: list[str]) -> str:
        """Run a program that connects by librdmacm, whose listeners the machine does not show."""
        port = str(_free_port())
        server = self._running.popen(*words, "-p", port, host="a")
        try:
            for _ in range(20):
                time.sleep(1)
                client = self._running.run(
                    *words, "-p", port, "localhost", host="c", timeout_s=DEADLINE_S, check=False
                )
                # A client that finds no listener ends by a fault of its own.
                if client.returncode == 0:
                    server.communicate(timeout=DEADLINE_S)
                    break
        finally:
            server.kill()
            server.communicate()
        return client.stdout

    def compare(
        self,
        words: list[str],
        size: int | None,
        unit: str,
        parse: Parse,
        expected: float | None,
        name: str = "",
    ) -> None:
        """Add a row with what a program prints on two hosts."""
        name = name or " ".join(words)
        if not self.wants(name):
            return
        options = [] if size is None else ["-s", str(size)]
        self.try_add(name, size, unit, lambda: parse(self.pair([*words, *options])), expected)

    def try_add(
        self,
        name: str,
        size: int | None,
        unit: str,
        measure: Callable[[], float],
        expected: float | None,
    ) -> None:
        """Add a row with a number, or with the reason why there is none."""
        try:
            for tries in range(1, _TRIES + 1):
                row = Row(name, size, unit, measure(), expected, tries=tries)
                # A busy machine may stop a program between two of its looks at the clock. perftest
                # may not even find the frequency of its counter, and says so.
                if row.measured and math.isfinite(row.measured) and row.ok:
                    break
            self.add(row)
        except subprocess.TimeoutExpired:
            self.add(Row(name, size, unit, None, expected, f"no end after {DEADLINE_S} s"))
        except Exception as error:
            self.add(Row(name, size, unit, None, expected, f"FAIL: {str(error)[-120:]!r}"))


def _free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("", 0))
        return int(unused.getsockname()[1])


def _listens(port: int) -> bool:
    tables = (Path(f"/proc/net/{name}") for name in ("tcp", "tcp6"))
    lines = [line.split() for table in tables for line in table.read_text().splitlines()[1:]]
    return any(line[1].endswith(f":{port:04X}") and line[3] == "0A" for line in lines)


def repeats(size: int) -> str:
    """Messages that take some milliseconds of simulated time."""
    return str(5000 if size < MTU else max(20, min(1000, (64 << 20) // size)))


def perftest(checks: Checks) -> None:
    """Compare perftest's bandwidths and latencies."""
    ways = [("send", "RC"), ("send", "UC"), ("write", "RC"), ("write", "UC"), ("read", "RC")]
    for operation, transport in ways:
        options = [] if transport == "RC" else ["-c", transport]
        for size in SIZES:
            words = [f"ib_{operation}_bw", *options, "-F", "-n", repeats(size), "-m", str(MTU)]
            name = " ".join([f"ib_{operation}_bw", *options])
            rate = read_mib if operation == "read" else acknowledged_mib
            expected = (rate if transport == "RC" else stream_mib)(size)
            checks.compare(words, size, "MiB/s", perftest_bw, expected, name)
    name, small = f"ib_write_bw -m {SMALL_MTU}", str(SMALL_MTU)
    words = ["ib_write_bw", "-F", "-n", "1000", "-m", small]
    checks.compare(words, 65536, "MiB/s", perftest_bw, stream_mib(65536, SMALL_MTU), name)
    name = "ib_send_bw -c UD"
    words = ["ib_send_bw", "-c", "UD", "-F", "-n", "1000", "-m", str(MTU)]
    checks.compare(words, 2048, "MiB/s", perftest_bw, stream_mib(2048), name)
    for operation, transport in ways:
        options = [] if transport == "RC" else ["-c", transport]
        for size in (2, 64, 4096, 65536):
            words = [f"ib_{operation}_lat", *options, "-F", "-n", "200", "-m", str(MTU)]
            name = " ".join([f"ib_{operation}_lat", *options])
            expected = one_way_us(size) + (one_way_us(0) if operation == "read" else 0)
            checks.compare(words, size, "us", perftest_lat, expected, name)
    for words in (["ib_send_lat", "-c", "UD"],):
        measured = [*words, "-F", "-n", "200", "-m", str(MTU)]
        checks.compare(measured, 64, "us", perftest_lat, one_way_us(64), " ".join(words))
    round_trip = one_way_us(0) + one_way_us(8)
    checks.compare(
        ["ib_atomic_lat", "-F", "-n", "200"], None, "us", perftest_lat, round_trip, "ib_atomic_lat"
    )


def eight_hosts(checks: Checks, running: RunningFabric) -> None:
    """Compare the lowest rate of four pairs that exchange data at once."""
    name = "ib_write_bw of 8 hosts"
    if not checks.wants(name):
        return

    def lowest() -> float:
        ports = [str(_free_port()) for _ in range(4)]
        words = ["ib_write_bw", "-F", "-n", "2000", "-m", str(MTU), "-p"]
        each = list(enumerate(ports))
        servers = [running.popen(*words, port, host=f"host-{n:04}") for n, port in each]
        wait_for(lambda: all(_listens(int(port)) for port in ports), "a server does not listen")
        clients = [
            running.popen(*words, port, "localhost", host=f"host-{n + 4:04}") for n, port in each
        ]
        printed = [client.communicate(timeout=DEADLINE_S)[0] for client in clients]
        for server in servers:
            server.communicate(timeout=DEADLINE_S)
        return min(map(perftest_bw, printed))

    checks.try_add(name, 65536, "MiB/s", lowest, stream_mib(65536))


def bad_cable(checks: Checks) -> None:
    """Compare the rate of connections that go back to lost packets."""
    words = ["ib_write_bw", "-F", "-n", "8000", "-m", str(MTU), "-u", str(QP_TIMEOUT)]
    expected = going_back_mib(65536)
    checks.compare(words, 65536, "MiB/s", perftest_bw, expected, "ib_write_bw on a bad cable")


def connected(checks: Checks) -> None:
    """Compare perftest over connections of librdmacm."""
    for name, size, unit, parse, expected in (
        ("ib_write_bw -R", 65536, "MiB/s", perftest_bw, stream_mib(65536)),
        ("ib_send_lat -R", 64, "us", perftest_lat, one_way_us(64)),
        ("ib_read_lat -R", 64, "us", perftest_lat, one_way_us(64) + one_way_us(0)),
    ):
        if checks.wants(name):
            words = [*name.split(), "-F", "-n", "200", "-m", str(MTU), "-s", str(size)]

            def measure(words: list[str] = words, parse: Parse = parse) -> float:
                return parse(checks.connected_pair(words))

            checks.try_add(name, size, unit, measure, expected)


def pingpongs(checks: Checks) -> None:
    """Compare the pingpongs of libibverbs: 4 KiB there and back."""

    def per_iteration(printed: str) -> float:
        found = re.search(r"= ([\d.]+) usec/iter", printed)
        if not found:
            raise ValueError(printed)
        return float(found[1])

    for name, options in (
        ("ibv_rc_pingpong", ["-c"]),
        ("ibv_uc_pingpong", ["-c"]),
        ("ibv_ud_pingpong", ["-s", "2048"]),
        ("ibv_srq_pingpong", ["-c"]),
    ):
        size = 2048 if "ud" in name else 4096
        words = [name, *options, "-n", "200", *([] if "ud" in name else ["-m", str(MTU)])]
        expected = None if "srq" in name else 2 * one_way_us(size)
        checks.compare(words, None, "us", per_iteration, expected, name)


def ucx(checks: Checks) -> None:
    """Compare ucx_perftest over RC."""
    for test, size, unit, expected in (
        ("tag_lat", 8, "us", one_way_us(8)),
        ("tag_bw", 65536, "MiB/s", stream_mib(65536)),
        ("ucp_put_bw", 65536, "MiB/s", stream_mib(65536)),
        ("ucp_get", 65536, "us", one_way_us(65536) + one_way_us(0)),
    ):

        def value(printed: str, unit: str = unit) -> float:
            words = printed.splitlines()[-1].split()
            return float(words[1] if unit == "us" else words[5])

        # UCX compares its counter with the clock when it is loaded, which a slow fabric disturbs.
        if checks.wants_any(f"ucx_perftest -t {test}"):
            time.sleep(SLOW_S)
        # Between processes of a machine, UCX would take shared memory.
        words = [
            "env",
            "UCX_TLS=rc_v,self",
            "ucx_perftest",
            "-t",
            test,
            "-n",
            "200",
            "-w",
            "10",
            "-f",
        ]
        checks.compare(words, size, unit, value, expected, f"ucx_perftest -t {test}")


RING = """
from mpi4py import MPI
import sys
world, size = MPI.COMM_WORLD, int(sys.argv[1])
rank, peers = world.rank, world.size
data, room = bytearray(size), bytearray(size)
rounds = 20
for turn in range(rounds + 5):
    if turn == 5:
        world.Barrier()
        start = MPI.Wtime()
    if rank == 0:
        world.Send(data, 1 % peers)
        world.Recv(room, peers - 1)
    else:
        world.Recv(room, rank - 1)
        world.Send(room, (rank + 1) % peers)
if rank == 0:
    print("hop", (MPI.Wtime() - start) / rounds / peers * 1e6)
"""
ALL = """
from mpi4py import MPI
import sys
world, size = MPI.COMM_WORLD, int(sys.argv[1])
out = bytearray(bytes([world.rank]) * (size * world.size))
room = bytearray(size * world.size)
for turn in range(12):
    if turn == 2:
        world.Barrier()
        start = MPI.Wtime()
    world.Alltoall(out, room)
took = (MPI.Wtime() - start) / 10 * 1e6
assert all(set(room[k * size : (k + 1) * size]) == {k} for k in range(world.size))
if world.rank == 0:
    print("hop", took)
"""


def mpi(checks: Checks, running: RunningFabric, folder: Path) -> None:
    """Run rings and all-to-alls; a ring's mean hop has a closed form."""
    ring, everyone = folder / "ring.py", folder / "all.py"
    ring.write_text(RING)
    everyone.write_text(ALL)

    def run(*words: str) -> float:
        own = [sys.executable, "-m", "silvan", "mpirun", *words]
        environment = ["env", f"PYTHONPATH={os.environ.get('PYTHONPATH', '')}"]
        done = running.run(*environment, *own, timeout_s=DEADLINE_S)
        return float(done.stdout.split()[-1])

    for ranks, size in ((2, 8), (4, 8), (4, 65536)):
        name = f"mpirun -n {ranks} ring"
        if checks.wants(name):
            words = ("-n", str(ranks), "/usr/bin/python3", str(ring), str(size))
            # Ranks a, b, c, d: two hops of four pass one switch, the others two.
            near, far = one_way_us(size, 1), one_way_us(size)
            expected = None if size > 8 else far if ranks == 2 else (near + far) / 2
            hosts = ("--hosts", "a,c") if ranks == 2 else ()
            checks.try_add(name, size, "us", partial(run, *hosts, *words), expected)
    for ranks in (4, 16):
        name = f"mpirun -n {ranks} all-to-all"
        if checks.wants(name):
            words = ("-n", str(ranks), "/usr/bin/python3", str(everyone), "16384")
            # A quarter of the pairs sends through the middle cable in a direction.
            floor = (ranks // 2) ** 2 * wire_ns(16384) / 1000
            checks.try_add(name, 16384, "us", partial(run, *words), floor)


def libfabric(checks: Checks) -> None:
    """Compare fi_pingpong: connected, by datagrams, and by messages over connections."""

    def per_transfer(printed: str) -> float:
        lines = [line.split() for line in printed.splitlines()]
        return float(next(line[6] for line in reversed(lines) if len(line) == 8))

    for provider, kind, size in (
        ("verbs", "msg", 64),
        ("verbs", "msg", 65536),
        ("verbs", "dgram", 64),
        ("verbs;ofi_rxm", "rdm", 64),
    ):
        name = f"fi_pingpong -p {provider} -e {kind}"
        if not checks.wants(name):
            continue
        words = ["fi_pingpong", "-p", provider, "-e", kind, "-I", "1000", "-S", str(size)]

        def measure(words: list[str] = words) -> float:
            return per_transfer(checks.pair_at(words, 47592))

        # The first message of ofi_rxm waits for the connection.
        expected = None if kind == "rdm" else one_way_us(size)
        checks.try_add(name, size, "us", measure, expected)
        # With data checks, programs work between the messages.

        def check(words: list[str] = words) -> float:
            return float(bool(per_transfer(checks.pair_at([*words, "-c"], 47592))))

        checks.try_add(f"{name} -c", size, "", check, None)


RING_C = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **words) {
    int rank, peers, size = atoi(words[2]), rounds = atoi(words[3]);
    double start = 0, took = 0;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &peers);
    char *out = malloc((size_t)size * peers), *room = calloc(size, peers);
    memset(out, rank, (size_t)size * peers);
    for (int turn = 0; turn < rounds + 2; turn++) {
        if (turn == 2) {
            MPI_Barrier(MPI_COMM_WORLD);
            start = MPI_Wtime();
        }
        if (!strcmp(words[1], "ring")) {
            if (rank == 0) MPI_Send(out, size, MPI_CHAR, 1 % peers, 0, MPI_COMM_WORLD);
            MPI_Recv(room, size, MPI_CHAR, (rank + peers - 1) % peers, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            if (rank > 0) MPI_Send(room, size, MPI_CHAR, (rank + 1) % peers, 0, MPI_COMM_WORLD);
        } else if (!strcmp(words[1], "all")) {
            MPI_Alltoall(out, size, MPI_CHAR, room, size, MPI_CHAR, MPI_COMM_WORLD);
        } else {
            /* As osu_bw: 64 messages, then one back. */
            MPI_Request open[64];
            for (int k = 0; k < 64; k++) {
                if (rank == 0) MPI_Isend(out, size, MPI_CHAR, 1, 1, MPI_COMM_WORLD, open + k);
                else MPI_Irecv(room, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD, open + k);
            }
            MPI_Waitall(64, open, MPI_STATUSES_IGNORE);
            if (rank == 0) MPI_Recv(room, 4, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            else MPI_Send(out, 4, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
        }
    }
    took = (MPI_Wtime() - start) / rounds;
    for (int peer = 0; peer < peers && !strcmp(words[1], "all"); peer++)
        for (int k = 0; k < size; k++)
            if (room[(size_t)peer * size + k] != peer) MPI_Abort(MPI_COMM_WORLD, 1);
    if (rank == 0) {
        double result = took * 1e6;
        if (!strcmp(words[1], "bw")) result = 64.0 * size / took / 1048576;
        if (!strcmp(words[1], "ring")) result /= peers;
        printf("result %f\\n", result);
    }
    MPI_Finalize();
}
"""


def mpich(checks: Checks, running: RunningFabric, folder: Path) -> None:
    """Run MPICH, by UCX: a ring, all-to-all, and a bandwidth as OSU's, on up to 16 ranks."""
    if not checks.wants("mpiexec.mpich") and not checks.wants("mpicc.mpich"):
        return
    program = folder / "exchange"
    (folder / "exchange.c").write_text(RING_C)
    subprocess.run(["mpicc.mpich", "-w", "-o", program, f"{program}.c"], check=True)

    def run(test: str, size: int, ranks: int, hosts: list[str] | None) -> float:
        done = running.mpirun(
            program,
            test,
            str(size),
            "5" if test == "all" else "20",
            ranks=ranks,
            hosts=hosts,
            launcher="mpiexec.mpich",
            timeout_s=DEADLINE_S,
        )
        return float(done.stdout.split()[-1])

    near, far = one_way_us(8, 1), one_way_us(8)
    floor = 8**2 * wire_ns(16384) / 1000
    for test, ranks, size, unit, expected in (
        ("ring", 4, 8, "us", (near + far) / 2),
        ("ring", 16, 8, "us", (near + far) / 2),
        ("all", 16, 16384, "us", floor),
        ("bw", 2, 65536, "MiB/s", stream_mib(65536)),
        ("bw", 2, 1 << 20, "MiB/s", stream_mib(1 << 20)),
    ):
        hosts = ["a", "c"] if ranks == 2 else None
        name = f"mpiexec.mpich -n {ranks} {test}"
        checks.try_add(name, size, unit, partial(run, test, size, ranks, hosts), expected)


def netpipe(checks: Checks, running: RunningFabric, folder: Path) -> None:
    """Run NetPIPE over both MPIs: its integrity check, and its time of small messages."""
    for program, launcher in (("NPopenmpi", "mpirun"), ("NPmpich2", "mpiexec.mpich")):
        if not checks.wants(program):
            continue

        def run(*options: str, program: str = program, launcher: str = launcher) -> str:
            running.mpirun(
                *(program, "-o", str(folder / "np.out"), *options),
                ranks=2,
                hosts=["a", "c"],
                launcher=launcher,
                timeout_s=DEADLINE_S,
            )
            return (folder / "np.out").read_text()

        def check(run: Callable[..., str] = run) -> float:
            run("-i", "-l", "1", "-u", "65536", "-p", "0", "-n", "3")
            return 1.0

        def latency(run: Callable[..., str] = run) -> float:
            return float(run("-l", "8", "-u", "8", "-p", "0", "-n", "100").split()[2]) * 1e6

        checks.try_add(f"{program} -i", None, "", check, None)
        checks.try_add(program, 8, "us", latency, one_way_us(8))


def hpcc(checks: Checks, running: RunningFabric, folder: Path) -> None:
    """Run HPC Challenge on 4 hosts, with a small matrix; its ping-pongs have closed forms."""
    if not checks.wants("hpcc"):
        return
    text = Path("/usr/share/doc/hpcc/examples/_hpccinf.txt").read_text()
    (folder / "hpccinf.txt").write_text(text.replace("1000         Ns", "100          Ns"))
    deadline = 5 * DEADLINE_S
    running.mpirun("hpcc", ranks=4, timeout_s=deadline)
    report = (folder / "hpccoutf.txt").read_text()
    values = dict(re.findall(r"^(\w+)=(\S+)$", report, flags=re.MULTILINE))
    for key, size, unit, factor, expected in (
        ("MinPingPongLatency_usec", 8, "us", 1.0, one_way_us(8, 1)),
        ("MaxPingPongLatency_usec", 8, "us", 1.0, one_way_us(8)),
        ("MaxPingPongBandwidth_GBytes", 2_000_000, "MiB/s", 1e9 / MIB, stream_mib(2_000_000)),
        ("NaturallyOrderedRingBandwidth_GBytes", 2_000_000, "MiB/s", 1e9 / MIB, None),
        ("MPIRandomAccess_ErrorsFraction", None, "", 1.0, None),
    ):
        remark = "" if values["Success"] == "1" else "FAIL"
        measured = float(values[key]) * factor
        checks.add(Row(f"hpcc {key}"[:34], size, unit, measured, expected, remark))


RACES = {"test_resize_cq"}
"""Tests of rdma-core that expect completions of six sends without waiting for them."""


def rdma_core(checks: Checks, running: RunningFabric) -> None:
    """Run rdma-core's own tests in real time, and print why some are skipped."""
    name = "rdma-core's tests"
    if not checks.wants_any(name):
        return
    tests = Path(__file__).with_name("rdma_core_tests.py")
    done = running.run("/usr/bin/python3", tests, timeout_s=DEADLINE_S)
    found = json.loads(done.stdout.splitlines()[-1])
    for reason, count in found["skipped"].items():
        print(f"  skipped {count:>3}: {reason[:90]}")
    print(f"  failed: {', '.join(found['failed']) or 'none'}")
    remark = "FAIL" if set(found["failed"]) - RACES else ""
    checks.add(Row(f"{name}, passed", None, "", float(found["passed"]), None, remark))


def main(wanted: list[str]) -> int:
    """Print the table; return 1 if a number differs."""
    print(f"{'program':<34}{'size':>9}{'measured':>11}{'model':>11} {'unit':<6}{'diff':>10}")
    scenario = Scenario.from_toml(FABRIC)
    started = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as name,
        Emulation(scenario, sockname=f"check-verbs-{os.getpid()}", time="auto") as one,
    ):
        running = RunningFabric(one, Path(name))
        checks = Checks(running, wanted)
        if checks.wants("ibv_devinfo"):
            shown = running.run("ibv_devinfo", host="a").stdout
            remark = "" if "PORT_ACTIVE" in shown else "FAIL"
            checks.add(Row("ibv_devinfo", None, "", None, None, remark))
        pingpongs(checks)
        perftest(checks)
        connected(checks)
        ucx(checks)
        libfabric(checks)
        mpi(checks, running, Path(name))
        mpich(checks, running, Path(name))
        netpipe(checks, running, Path(name))
        hpcc(checks, running, Path(name))
        exchange = one.control("status")["exchange"]
    with (
        tempfile.TemporaryDirectory() as name,
        Emulation(scenario, sockname=f"check-verbs-real-{os.getpid()}") as one,
    ):
        running = RunningFabric(one, Path(name))
        real = Checks(running, wanted)
        rdma_core(real, running)
        checks.rows += real.rows
    bad = Scenario.from_toml(FABRIC + BAD_CABLE)
    with (
        tempfile.TemporaryDirectory() as name,
        Emulation(bad, sockname=f"check-verbs-bad-{os.getpid()}", time="auto") as one,
    ):
        lossy = Checks(RunningFabric(one, Path(name)), wanted)
        bad_cable(lossy)
        checks.rows += lossy.rows
    eight = Scenario.from_toml(EIGHT_HOSTS)
    with (
        tempfile.TemporaryDirectory() as name,
        Emulation(eight, sockname=f"check-verbs-eight-{os.getpid()}", time="auto") as one,
    ):
        running = RunningFabric(one, Path(name))
        many = Checks(running, wanted)
        eight_hosts(many, running)
        checks.rows += many.rows
    wall, simulated = exchange["wall_s"], exchange["simulated_s"]
    different = sum(not row.ok for row in checks.rows)
    scale = f"1:{wall / simulated:.3g}" if simulated else "none"
    print(
        f"{len(checks.rows)} rows, {different} differ; {time.monotonic() - started:.0f} s, "
        f"of which {wall:.0f} s for {simulated:.3g} s of simulated time, a scale of {scale}"
    )
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
