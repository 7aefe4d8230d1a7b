"""Programs' clocks show simulated time, which stands still while programs work."""

from __future__ import annotations

import signal
import subprocess
import time

import pytest

from tests.emulator.conftest import LINE, Fabric, Serve
from tests.emulator.test_verbs import pair

pytestmark = [pytest.mark.slow, pytest.mark.needs("ibverbs-utils", "perftest")]

EDR = """\
[link]
speed = "EDR"
[packet]
mtu = "4 KiB"
"""
PACKET_NS = (4096 + 26) * 8 / 100
PATH_NS = 3 * 10 + 2 * 100
"""Propagation in three cables of 2 m, and two switches."""


@pytest.fixture
def following(serve: Serve) -> Fabric:
    """Serve a fabric whose time follows programs."""
    return serve(LINE + EDR, time="auto")


def last(printed: str) -> list[str]:
    """Give the numbers of perftest's last row."""
    rows = [line.split() for line in printed.splitlines()]
    return [row for row in rows if row and row[0].isdigit()][-1]


@pytest.mark.parametrize("operation", ["write", "send"])
def test_perftest_prints_the_fabrics_latency(following: Fabric, operation: str) -> None:
    """Oracle: the model's time of a packet, within the two digits that perftest prints."""
    words = (f"ib_{operation}_lat", "-F", "-n", "100", "-s", "4096", "-m", "4096")
    _, client = pair(following, *words)
    typical = float(last(client.stdout)[4])
    assert typical == pytest.approx((PACKET_NS + PATH_NS) / 1000, abs=0.006)


def test_perftest_prints_the_fabrics_bandwidth(following: Fabric) -> None:
    """Oracle: payload over payload and headers, at the rate of the link."""
    words = ("ib_write_bw", "-F", "-n", "200", "-s", "65536", "-m", "4096")
    _, client = pair(following, *words)
    average = float(last(client.stdout)[3])
    assert average == pytest.approx(4096 / PACKET_NS * 1e9 / 2**20, rel=0.02)
    exchange = following.control("status")["exchange"]
    assert exchange["simulated_s"] >= 200 * 16 * PACKET_NS / 1e9
    assert exchange["wall_s"] > exchange["simulated_s"]


def test_clocks_stand_still_with_the_fabric(following: Fabric) -> None:
    program = (
        "import time; clocks = time.time, time.monotonic, time.perf_counter\n"
        "old = [clock() for clock in clocks]; time.sleep(0.3)\n"
        "print(*(clock() - before for clock, before in zip(clocks, old)))"
    )

    def passed() -> list[float]:
        return [float(word) for word in following.run("python3", "-c", program).stdout.split()]

    assert passed() == [pytest.approx(0.3, abs=0.2)] * 3
    following.control("pause")
    assert passed() == [0, 0, 0]


def test_programs_without_such_a_clock_have_the_kernels(serve: Serve) -> None:
    fabric = serve()
    fabric.control("pause")
    shown = fabric.run("python3", "-c", "import time; print(time.time())").stdout
    assert float(shown) == pytest.approx(time.time(), abs=5)


def test_faults_of_programs_end_them_as_usual(following: Fabric) -> None:
    """The handler by which the time-stamp counter is read passes on what is not its own."""
    rank = ("env", "OMPI_COMM_WORLD_RANK=0", "python3")
    fault = "import ctypes; ctypes.string_at(0)"
    done: subprocess.CompletedProcess[str]
    done = following.run(*rank, "-c", fault, check=False)
    assert done.returncode == -signal.SIGSEGV
    done = following.run(*rank, "-X", "faulthandler", "-c", fault, check=False)
    assert "Fatal Python error: Segmentation fault" in done.stderr
