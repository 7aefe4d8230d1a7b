"""Cost of a live page for the fabric and its server: the part of viewer_figures.py with --live."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from silvan.bench.live import datagrams_per_second
from silvan.bench.studies import bench_scenario
from silvan.child_processes import child
from silvan.live.emulation import Emulation

ROUNDS = 7
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Reader:
    """Reads the samples of a page in a thread, as a browser does."""

    def __init__(self, address: str) -> None:
        self.messages = self.size = 0
        self._address = address
        self._thread = Thread(target=lambda: asyncio.run(self._read()), daemon=True)
        self._thread.start()

    async def _read(self) -> None:
        samples = self._address.replace("http:", "ws:") + "samples"
        origin = f"http://{urlsplit(self._address).netloc}"
        async with connect(samples, origin=origin, max_size=None) as connection:  # type: ignore[arg-type]
            with suppress(ConnectionClosed):
                async for message in connection:
                    self.messages += 1
                    self.size += len(message)


def _processor_s(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def emulator_s() -> float:
    """Return the processor time of the emulator's thread in seconds, nearly independent of load."""
    for task in Path("/proc/self/task").iterdir():
        if (task / "comm").read_text("utf-8").rstrip() == "silvan-emulator":
            return int((task / "schedstat").read_text("utf-8").split()[0]) / 1e9
    msg = "no emulator runs in this process"
    raise RuntimeError(msg)


class Watch:
    """Resources that the servers of some pages have used."""

    def __init__(self) -> None:
        self.seconds = self.processor_s = 0.0
        self.messages = self.size = 0

    @contextmanager
    def page(self, emulation: Emulation) -> Iterator[None]:
        """Let a page watch a fabric during a block."""
        words = [sys.executable, "-m", "silvan", "view", "--live", "--json"]
        words += ["--sockname", emulation.sockname]
        with child(words, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            text = process.stdout.readline()
            while not text.rstrip().endswith("}"):
                text += process.stdout.readline()
            reader = Reader(json.loads(text)["address"])
            while not reader.messages:
                time.sleep(0.05)
            start, before = time.perf_counter(), _processor_s(process.pid)
            messages, size = reader.messages, reader.size
            try:
                yield
            finally:
                self.seconds += time.perf_counter() - start
                self.processor_s += _processor_s(process.pid) - before
                self.messages += reader.messages - messages
                self.size += reader.size - size


def live() -> None:
    """Print what a live page costs: medians of pairs, with and without a page in turn."""
    scenario = bench_scenario("uniform-100")
    watch = Watch()
    plain, watched = [], []
    for _ in range(ROUNDS):
        plain.append(datagrams_per_second(scenario, clock=emulator_s))
        watched.append(datagrams_per_second(scenario, watch.page, emulator_s))
    slower = sorted(one / two - 1 for one, two in zip(plain, watched, strict=True))
    print(f"| 648 hosts, live: samples | {watch.messages / watch.seconds:.1f} per second |")
    print(f"| 648 hosts, live: sample | {watch.size / watch.messages / 1e3:.0f} kB |")
    share = watch.processor_s / watch.seconds
    print(f"| 648 hosts, live: processor time of the server | {share:.1%} of a core |")
    middle, ends = statistics.median(slower), f"{slower[0]:+.1%} to {slower[-1]:+.1%}"
    print(f"| live-mads-running with a live page, per request | {middle:+.1%} ({ends}) |")
