"""Many RDMA programs in a live fabric, of which any ends at any time."""

from __future__ import annotations

import subprocess
import time
from random import Random

import pytest

from tests.emulator.conftest import Fabric, Serve
from tests.emulator.test_verbs import free_port, listens, pair
from tests.gate import PATIENCE_S

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.needs("ibverbs-utils", "perftest", "infiniband-diags"),
]

PAIRS = 8
ROUNDS = 6


def start(fabric: Fabric, number: int) -> list[subprocess.Popen[str]]:
    """Start two programs that send without end, by words of their number."""
    words = ("ib_write_bw", "ib_send_bw", "ib_read_bw", "ib_atomic_bw")
    port = free_port()
    one = (words[number % 4], "-D", "600", "-q", "64", "-s", "8", "-p", port)
    server = fabric.popen(*one, host="abcd"[number % 4])
    fabric.wait(lambda: listens(port) or server.poll() is not None)
    return [server, fabric.popen(*one, "localhost", host="abcd"[(number + 1) % 4])]


def test_programs_that_are_killed_leave_the_others_running(serve: Serve) -> None:
    """16 programs with 1,024 queue pairs: killed in any order, the fabric carries data."""
    fabric = serve()
    random = Random(1)
    running: list[subprocess.Popen[str]] = []
    for number in range(PAIRS):
        running += start(fabric, number)
    for _ in range(ROUNDS):
        time.sleep(2)
        random.shuffle(running)
        killed, running = running[:2], running[2:]
        for process in killed:
            process.kill()
        for process in killed:
            process.communicate(timeout=PATIENCE_S)
        done = pair(fabric, "ibv_rc_pingpong", "-c", "-n", "20")
        assert [one.returncode for one in done] == [0, 0], done
    for process in running:
        process.kill()
        process.communicate(timeout=PATIENCE_S)
    assert fabric.emulation.is_running
