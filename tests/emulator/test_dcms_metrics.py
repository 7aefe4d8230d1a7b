"""The metrics' endpoint of a running manager: attacked, and without file descriptors."""

from __future__ import annotations

import re
import resource
import socket
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tests.emulator.conftest import REAL_TOOLS, Fabric, Serve
from tests.emulator.test_dcms import TESTBED, Manager, configure, managed, stop, until
from tests.gate import PATIENCE_S

pytestmark = REAL_TOOLS

QUIET = "[subnet]\nrequire-sm = false\n"


def address(fabric: Fabric, manager: Manager) -> tuple[str, int]:
    (served,) = until(fabric, lambda: manager.seen("metrics-served"))
    host, _, port = served["address"].rpartition(":")
    return host, int(port)


def metrics(place: tuple[str, int]) -> dict[str, float]:
    url = f"http://{place[0]}:{place[1]}/metrics?a=b"
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as page:
        lines = page.read().decode().splitlines()
    values = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in values}


def resident_kib(manager: Manager) -> int:
    status = Path(f"/proc/{manager.process.pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0])


@contextmanager
def limited(manager: Manager, descriptors: int) -> Iterator[None]:
    """Let the process open no more than so many files."""
    pid = manager.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (descriptors, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def test_attacks_cost_little_and_exclude_no_client(serve: Serve) -> None:
    fabric = serve(TESTBED)
    config = configure(fabric, QUIET)
    config.write_text(config.read_text().replace("127.0.0.1:0", "localhost:0"))
    with managed(fabric, config) as manager, ExitStack() as stack:
        place = address(fabric, manager)
        until(fabric, lambda: metrics(place)["silvan_dcms_sweeps_total"] > 0)
        before = resident_kib(manager)
        for _ in range(516):
            stack.enter_context(socket.create_connection(place))
        with socket.create_connection(place) as endless:
            sent = 0
            with suppress(BrokenPipeError, ConnectionResetError):
                endless.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
                while sent < 600 << 20:
                    endless.sendall(b"a" * (1 << 16))
                    sent += 1 << 16
            # Upper bound of the sockets' buffers.
            assert sent < 64 << 20
        with socket.create_connection(place) as deaf:
            deaf.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000)
            values = metrics(place)
        # If this takes longer than a request may, some connections have been closed for it.
        closed = 'silvan_dcms_metrics_connections_closed_total{reason="%s"}'
        reasons = ("too-many", "no-request")
        assert sum(values.get(closed % reason, 0) for reason in reasons) >= 484
        assert resident_kib(manager) - before < 16 << 10
        assert stop(manager) == 0


def test_a_lack_of_file_descriptors_is_survived_and_named(serve: Serve) -> None:
    fabric = serve(TESTBED)
    with managed(fabric, configure(fabric, QUIET)) as manager:
        place = address(fabric, manager)
        until(fabric, lambda: manager.seen("discovered"))
        # No client has connected yet. New descriptors get the lowest free number.
        descriptors = {int(path.name) for path in Path(f"/proc/{manager.process.pid}/fd").iterdir()}
        free = min(set(range(len(descriptors) + 1)) - descriptors)
        with limited(manager, free), socket.create_connection(place):
            (refused,) = until(fabric, lambda: manager.seen("metrics-not-accepted"))
            assert "Too many open files" in refused["why"]
            assert refused["level"] == "warning"
        until(fabric, lambda: manager.seen("metrics-accepted"))
        errors = metrics(place)["silvan_dcms_metrics_accept_errors_total"]
        assert errors == manager.seen("metrics-accepted")[0]["errors"] > 0
        # However often it is tried, one line says so.
        assert len(manager.seen("metrics-not-accepted")) == 1
        assert stop(manager) == 0
