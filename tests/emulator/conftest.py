"""Emulated fabrics, and the real tools attached to them."""

from __future__ import annotations

import itertools
import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import silvan
from silvan.live.emulation import Emulation
from silvan.testing import RunningFabric
from tests.gate import PATIENCE_S

REAL_TOOLS = pytest.mark.needs("opensm", "infiniband-diags", "ibsim-utils")
"""For tests that run OpenSM or a program of infiniband-diags in a live fabric."""

LINE = """\
name = "line"

[fabric]
switch = [{ name = "left", ports = 8 }, { name = "right", ports = 8 }]
host = [{ name = "a" }, { name = "b" }, { name = "c" }, { name = "d" }]
cable = [
    { from = "a", to = "left:1" },
    { from = "b", to = "left:2" },
    { from = "c", to = "right:1" },
    { from = "d", to = "right:2" },
    { from = "left:5", to = "right:6" },
    { from = "left:7", to = "right:8" },
]
routing = "min-hop"
"""
"""Two switches with two cables between them, two hosts each, no traffic."""

LINKS = """\
[link]
speed = "DDR"
[packet]
mtu = "2 KiB"
"""
"""Links that all tools and ibsim know, and packets whose number tests compute."""


# Tools of infiniband-diags give up an answer after a second, and the request after three: a machine
# that stops for so long would make them fail.
DIAGS = re.compile(r"ib(?:cc|port|link|net|query)|perfquery|saquery|sminfo|smpquery")
PATIENT = ("--timeout", str(PATIENCE_S * 250))


class Fabric(RunningFabric):
    """A running fabric, with what tests read from tools."""

    def tool(self, *words: str | Path, host: str | None = None, status: int = 0) -> str:
        """Run a tool, check how it ends, and give what it prints."""
        program, *others = map(str, words)
        # A tool that is to fail may be waiting for an answer that does not come.
        if status == 0 and DIAGS.match(program):
            others = [*PATIENT, *others]
        done = self.run(program, *others, host=host, check=False, timeout_s=PATIENCE_S)
        printed = f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert done.returncode == status, printed
        return done.stdout

    def values(self, *words: str | Path, host: str | None = None) -> dict[str, str]:
        """Run a tool that prints ``Name:....value`` lines, and give them by name."""
        return values(self.tool(*words, host=host))

    def wait(self, condition: Callable[[], Any]) -> Any:
        """Wait until a condition holds, and give its value."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if value := condition():
                return value
            time.sleep(0.05)
        raise AssertionError(f"never: {condition}; {self.emulation.control('status')}")

    def pass_time(self, seconds: float) -> None:
        """Wait until this much simulated time has passed."""
        start = self.emulation.control("status")["simulated_s"]
        self.wait(lambda: self.emulation.control("status")["simulated_s"] > start + seconds)

    def lids(self) -> dict[str, int]:
        """Let discovery tell the LID of every node by its name."""
        lines = self.tool("ibnetdiscover", "-p").splitlines()
        found = (re.match(r"(?:CA|SW)\s+(\d+)\s[^']*'([^']+)'", line) for line in lines)
        return {match[2]: int(match[1]) for match in found if match}


def values(text: str) -> dict[str, str]:
    """Split ``Name:....value`` lines."""
    pairs = (line.split(":", 1) for line in text.splitlines() if ":." in line)
    return {name: value.lstrip(".").strip() for name, value in pairs}


Serve = Callable[..., Fabric]
_numbers = itertools.count()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Serve scenarios until the test is over."""
    running = []

    def start(text: str = LINE + LINKS, **options: Any) -> Fabric:
        name = f"test-{os.getpid()}-{next(_numbers)}"
        scenario = silvan.Scenario.from_toml(text)
        options = {"sockname": name} | options
        running.append(Emulation(scenario, **options))
        return Fabric(running[-1], tmp_path)

    yield start
    for emulation in running:
        emulation.stop()


def serve_udp(serve: Serve, **options: Any) -> Fabric:
    """Serve over UDP, at a port that is free."""
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unused:
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
        try:
            return serve(udp_port=port, **options)
        except silvan.EmulationError as error:
            # Another program was faster.
            if "in use" not in str(error):
                raise


@pytest.fixture
def line(serve: Serve) -> Fabric:
    """Serve the small fabric."""
    return serve()
