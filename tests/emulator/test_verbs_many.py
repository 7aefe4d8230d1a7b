"""Many RDMA programs in a live fabric, of which any ends at any time."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from random import Random

import pytest

from tests.emulator.conftest import Fabric, Serve
from tests.emulator.test_verbs import free_port, listens, pair
from tests.gate import PATIENCE_S

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.needs("ibverbs-utils", "perftest", "infiniband-diags"),
]

PAIRS = 32
QUEUE_PAIRS = 16
MESSAGES = 1_000_000
ROUNDS = 6
MOST_GROWTH = 64 << 20
"""Of memory, in bytes: what the allocator keeps, not what each message would leave."""
DEADLINE_S = 1800


def start(fabric: Fabric, number: int) -> list[subprocess.Popen[str]]:
    """Start two programs that send without end, by words of their number."""
    words = ("ib_write_bw", "ib_send_bw", "ib_read_bw", "ib_atomic_bw")
    port = free_port()
    size = () if number % 4 == 3 else ("-s", "8")
    one = (words[number % 4], "-D", "3600", "-q", str(QUEUE_PAIRS), *size, "-p", port)
    server = fabric.popen(*one, host="abcd"[number % 4])
    fabric.wait(lambda: listens(port) or server.poll() is not None)
    return [server, fabric.popen(*one, "localhost", host="abcd"[(number + 1) % 4])]


def resident() -> int:
    """Memory of this process, which serves the fabric, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def packets(fabric: Fabric) -> int:
    """Packets that all hosts have sent: for each message a request and an acknowledgement."""
    return sum(int(fabric.values("perfquery", "-x", host=host)["PortXmitPkts"]) for host in "abcd")


def test_programs_that_are_killed_leave_the_others_running(serve: Serve) -> None:
    """64 programs with 1,024 queue pairs and a million messages: any is killed at any time."""
    fabric = serve()
    random = Random(1)
    running: list[subprocess.Popen[str]] = []
    for number in range(PAIRS):
        running += start(fabric, number)
    deadline = time.monotonic() + DEADLINE_S
    warm, rounds = 0, 0
    while (sent := packets(fabric)) < 2 * MESSAGES or rounds < ROUNDS:
        assert time.monotonic() < deadline, f"{sent} packets"
        time.sleep(5)
        if rounds < ROUNDS and sent > 2 * MESSAGES * (rounds + 1) / (ROUNDS + 2):
            rounds += 1
            if rounds == 1:
                warm = resident()
            random.shuffle(running)
            killed, running = running[:4], running[4:]
            for process in killed:
                process.kill()
            for process in killed:
                process.communicate(timeout=PATIENCE_S)
            done = pair(fabric, "ibv_rc_pingpong", "-c", "-n", "20")
            assert [one.returncode for one in done] == [0, 0], done
    grown = resident() - warm
    assert grown < MOST_GROWTH, f"{packets(fabric)} packets, {grown / 2**20:.1f} MiB more"
    for process in running:
        process.kill()
        process.communicate(timeout=PATIENCE_S)
    assert fabric.emulation.is_running
