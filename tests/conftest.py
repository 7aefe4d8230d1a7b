"""Shared fixtures: a small scenario, and the command line as its users call it."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import hypothesis
import numpy as np
import pyarrow as pa
import pytest

import silvan
from silvan.cli import main
from silvan.results.receive_rates import PS_PER_MS, BoolArray, FloatArray
from tests.gate import PATIENCE_S
from tests.inline_pool import InlinePool
from tests.needs import Needs

# Equal examples on every machine, so that no failure depends on chance.
hypothesis.settings.register_profile(
    "fixed",
    derandomize=True,
    database=None,
    # A busy machine is slow; that is no failure.
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("fixed")


def pytest_configure(config: pytest.Config) -> None:
    """Check the needs of tests, list those that are missing, and allow Ctrl-C."""
    config.pluginmanager.register(Needs(), "needs")
    # A shell's background jobs start with it ignored, as would the commands that tests interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


DDR: dict[str, dict[str, str]] = {
    "link": {"width": "4x", "speed": "DDR", "length": "2 m"},
    "switch": {"buffer": "64 KiB"},
    "host": {"receive-buffer": "16 KiB"},
    "packet": {"mtu": "2 KiB"},
}
"""Tables of a scenario: links of 16 Gbit/s, whose oracles tests compute by hand."""

DDR_KEYS = {f"{table}.{key}": value for table, keys in DDR.items() for key, value in keys.items()}
"""The values of :data:`DDR` by dotted key, as overrides."""

DDR_TOML = "".join(
    f"\n[{table}]\n" + "".join(f'{key} = "{value}"\n' for key, value in keys.items())
    for table, keys in DDR.items()
)
"""The tables of :data:`DDR` as TOML text."""


def ddr_scenario(**tables: Any) -> silvan.Scenario:
    """Build a scenario with the links, buffers and packets of :data:`DDR`, unless it has others."""
    links = {name: {**keys, **tables.get(name, {})} for name, keys in DDR.items()}
    if links["link"].get("flow-control") == "pfc":
        # Buffers follow from the thresholds.
        del links["switch"]["buffer"], links["host"]["receive-buffer"]
    return silvan.Scenario(**{**tables, **links})


INCAST = f"""\
name = "incast"

[fabric]
generator = "single-switch"
hosts = 4
{DDR_TOML}
[traffic]
[[traffic.incast]]
to = "host-0000"

[probe]
interval = "50 us"

[run]
duration = "200 us"
seed = 3
"""
"""Three hosts that send to a fourth as fast as they can."""


@dataclass(frozen=True)
class Outcome:
    """Output and status of a command."""

    status: int
    stdout: str
    stderr: str


def made_up_result(
    scenario: silvan.Scenario,
    seed: int,
    hotspots: BoolArray,
    rates_gbps: FloatArray,
    interval_ms: int = 1,
) -> silvan.Result:
    """Make a result in which every host receives at a known, constant rate."""
    interval_ps = interval_ms * PS_PER_MS
    intervals, hosts = scenario.duration_ps // interval_ps, len(hotspots)
    times = (np.arange(intervals, dtype=np.uint64) + 1) * interval_ps
    numbers = np.arange(hosts, dtype=np.uint32)
    delivered = np.tile(np.round(rates_gbps * interval_ps / 8e3), intervals).astype(np.uint64)
    tables = {
        "hosts": pa.table(
            {
                "host": numbers,
                "name": [f"host-{number:04}" for number in numbers],
                "lid": numbers + 1,
                "role": ["hotspot+c" if hot else "c" for hot in hotspots],
                "receives": np.full(hosts, fill_value=True),
                "delivered_bytes": delivered.reshape(intervals, hosts).sum(axis=0),
                "injected_bytes": np.zeros(hosts, np.uint64),
            }
        ),
        # Columns that a result must have, and that no test with made-up rates reads.
        "classes": pa.table({"name": [], "delivered_bytes": []}),
        "ports": pa.table(
            {
                name: []
                for name in ("node", "port", "peer", "link_gbps", "xmit_bytes", "xmit_wait_ps")
            }
        ),
        "host_series": pa.table(
            {
                "time_ps": np.repeat(times, hosts),
                "host": np.tile(numbers, intervals),
                "delivered_bytes": delivered,
            }
        ),
    }
    summary = {
        "simulated_ps": scenario.duration_ps,
        "wall_s": 1.5,
        "events": 30,
        "packet_hops": 20,
    }
    return silvan.Result(scenario, seed, tables, summary)


Command = Callable[..., Outcome]


def silvan_command(*words: str | Path) -> list[str]:
    """Name the process that runs a command."""
    return [sys.executable, "-m", "silvan", *map(str, words)]


@pytest.fixture
def process() -> Command:
    """Run a command in a separate process, for tests that need one."""

    def run(*words: str | Path, cwd: Path | None = None) -> Outcome:
        done = subprocess.run(
            silvan_command(*words),
            cwd=cwd,
            env=os.environ | {"COLUMNS": "100"},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def command() -> Command:
    """Run a command in the tests' own process, which has imported most of it already."""

    def run(*words: str | Path, cwd: Path | None = None) -> Outcome:
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("COLUMNS", "100")
            if cwd is not None:
                patched.chdir(cwd)
            return captured(lambda: main([str(word) for word in words]))

    return run


def captured(call: Callable[[], int]) -> Outcome:
    """Call the command line as a process would, and return what it and its children print."""
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        with standard_streams(stdout, stderr), _as_in_a_process():
            # SIGALRM ends the process, and pytest-xdist names the test.
            signal.alarm(PATIENCE_S)
            try:
                status = call()
            finally:
                signal.alarm(0)
        texts = []
        for file in (stdout, stderr):
            file.seek(0)
            texts.append(file.read().decode("utf-8").replace("\r\n", "\n"))
    return Outcome(int(status), *texts)


@contextmanager
def standard_streams(stdout: IO[bytes], stderr: IO[bytes]) -> Iterator[None]:
    """Let file descriptors 1 and 2, and Python's streams, be these files."""
    streams = sys.stdout, sys.stderr
    for stream in streams:
        stream.flush()
    numbers = [os.dup(number) for number in (1, 2)]
    try:
        os.dup2(stdout.fileno(), 1)
        os.dup2(stderr.fileno(), 2)
        with (
            open(1, "w", encoding="utf-8", closefd=False) as sys.stdout,
            open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False) as sys.stderr,
        ):
            yield
    finally:
        sys.stdout, sys.stderr = streams
        for number, kept in enumerate(numbers, start=1):
            os.dup2(kept, number)
            os.close(kept)


@contextmanager
def _as_in_a_process() -> Iterator[None]:
    """Show warnings as an interpreter does by default, and let a command change logging."""
    disabled = logging.root.manager.disable
    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.simplefilter("default")
        for quiet in (
            DeprecationWarning,
            PendingDeprecationWarning,
            ImportWarning,
            ResourceWarning,
        ):
            warnings.simplefilter("ignore", quiet)
        try:
            yield
        finally:
            logging.disable(disabled)


@pytest.fixture(scope="module")
def inline_pool() -> Iterator[None]:
    """Do the runs of all comparisons and sweeps of a module in the tests' own process."""
    with pytest.MonkeyPatch.context() as patched:
        for module in ("execution.workers", "sweeping.local", "reproduce.execution"):
            patched.setattr(f"silvan.{module}.Pool", InlinePool)
        yield


@pytest.fixture
def incast_file(tmp_path: Path) -> Path:
    """Write the small scenario to a file."""
    path = tmp_path / "incast.toml"
    path.write_text(INCAST)
    return path


@pytest.fixture(scope="session")
def incast() -> silvan.Result:
    """Run the small scenario once for all tests."""
    return silvan.run(silvan.Scenario.from_toml(INCAST))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures that tests have measured."""
    reports = terminalreporter.stats.get("passed", [])
    figures = [
        value
        for report in reports
        for name, value in report.user_properties
        if name == "figure" and report.when == "call"
    ]
    if figures:
        terminalreporter.section("figures")
        for figure in figures:
            terminalreporter.write_line(figure)
