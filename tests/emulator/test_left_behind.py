"""What servers and programs leave behind: folders of servers that were killed, closed streams."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import silvan_command
from tests.emulator.conftest import LINE, Serve
from tests.gate import PATIENCE_S, wait_until

SERVER = f"""\
import json, sys
from silvan import Scenario
from silvan.emulation import Emulation

with Emulation(Scenario.from_toml({LINE!r}), sockname=sys.argv[1]) as emulation:
    print(json.dumps(emulation.attach()), flush=True)
    sys.stdin.read()
"""

STREAM = """\
import ctypes, os

libc = ctypes.CDLL(None, use_errno=True)
libc.fdopen.restype = ctypes.c_void_p
libc.fclose.argtypes = [ctypes.c_void_p]
umad = os.open("/dev/infiniband/umad0", os.O_RDWR)
assert libc.fclose(libc.fdopen(umad, b"r+")) == 0
ends = os.pipe()
assert umad in ends, "the number of the closed file is free for another one"
os.write(ends[1], b"of the pipe")
print(os.read(ends[0], 100).decode())
"""


@contextmanager
def server(folder: Path, name: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """Serve a fabric from a process with a folder for temporary files of its own."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, name],
        env=os.environ | {"TMPDIR": str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        yield process, json.loads(process.stdout.readline())


def attach(environment: dict[str, str]) -> None:
    """Let a program list the adapters, for which the server makes its folder."""
    words = [sys.executable, "-c", "import os; print(os.listdir('/sys/class/infiniband'))"]
    done = subprocess.run(
        words, env=os.environ | environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "['silvan0']\n"


@pytest.mark.slow
def test_the_folder_of_a_killed_server_is_removed_and_those_of_others_stay() -> None:
    with tempfile.TemporaryDirectory(prefix="silvan-test-") as base:
        folder = Path(base)

        def folders() -> set[Path]:
            return set(folder.glob("silvan-fabric-*"))

        name = f"test-{os.getpid()}-behind"
        with server(folder, f"{name}-1") as (living, environment):
            attach(environment)
            own = folders()
            assert len(own) == 1
            with server(folder, f"{name}-2") as (killed, environment):
                attach(environment)
                assert len(folders()) == 2
                killed.kill()
            left = folders() - own
            assert len(left) == 1, "nothing removes it before another server needs a folder"
            with server(folder, f"{name}-3") as (_, environment):
                attach(environment)
                assert own < folders()
                assert not left & folders()
            assert folders() == own, "a server removes its folder at its end"
            assert living.poll() is None
        assert folders() == set()


def children(pid: int) -> list[int]:
    """List the processes that a process has started."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextmanager
def managed(base: str) -> Iterator[tuple[subprocess.Popen[bytes], list[int]]]:
    """Give a process that serves a fabric to a command and OpenSM, and these two."""
    words = silvan_command("emulate", "--example", "two-tier", "--opensm", "--", "sleep", "1000")
    with subprocess.Popen(words, env=os.environ | {"TMPDIR": base}) as process:
        try:
            wait_until(lambda: len(children(process.pid)) == 2, "OpenSM and the command")
            yield process, children(process.pid)
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.needs("opensm")
def test_sigkill_leaves_no_program_behind() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="silvan-test-") as base,
        managed(base) as (process, started),
    ):
        process.kill()
        process.wait()
        wait_until(
            lambda: not [pid for pid in started if Path(f"/proc/{pid}/exe").exists()],
            "the end of OpenSM and the command",
        )
        (options,) = Path(base).glob("silvan-opensm-*/opensm.conf")
        assert "log_max_size" in options.read_text()


@pytest.mark.slow
@pytest.mark.needs("opensm")
def test_sigterm_ends_the_command_and_opensm() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="silvan-test-") as base,
        managed(base) as (process, started),
    ):
        process.terminate()
        assert process.wait(PATIENCE_S) == 128 + signal.SIGTERM
        assert not [pid for pid in started if Path(f"/proc/{pid}").exists()]
        assert not list(Path(base).glob("silvan-opensm-*"))
        assert not list(Path(base).glob("silvan-fabric-*"))


def test_a_closed_stream_of_an_umad_file_is_forgotten(serve: Serve) -> None:
    assert serve().run(sys.executable, "-c", STREAM).stdout == "of the pipe\n"
