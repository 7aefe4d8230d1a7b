"""Remains of servers and programs: folders of killed servers, closed streams, and processes that
have detached themselves.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.conftest import Command, silvan_command
from tests.emulator.conftest import LINE, Serve
from tests.gate import PATIENCE_S, wait_until

SERVER = f"""\
import json, sys
from silvan import Scenario
from silvan.live.emulation import Emulation

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


@pytest.fixture(autouse=True)
def _hangups_end_programs() -> Iterator[None]:
    """Let what tests start have the signal, which nohup has ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@contextmanager
def server(folder: Path, name: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """Serve a fabric from a process with a separate folder for temporary files."""
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
        lines = [Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") for pid in started]
        (of_opensm,) = (words for words in lines if words[0] == b"opensm")
        assert b"--log_limit" in of_opensm
        process.kill()
        process.wait()
        wait_until(
            lambda: not [pid for pid in started if Path(f"/proc/{pid}/exe").exists()],
            "the end of OpenSM and the command",
        )


@pytest.mark.slow
@pytest.mark.needs("opensm")
@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGHUP])
def test_signals_end_the_command_and_opensm(kind: signal.Signals) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="silvan-test-") as base,
        managed(base) as (process, started),
    ):
        process.send_signal(kind)
        assert process.wait(PATIENCE_S) == 128 + kind
        assert not [pid for pid in started if Path(f"/proc/{pid}").exists()]
        assert not list(Path(base).glob("silvan-scratch-*"))
        assert not list(Path(base).glob("silvan-fabric-*"))


def runs(pid: int) -> bool:
    return Path(f"/proc/{pid}/exe").exists()


DETACH = "setsid sleep 1000 > /dev/null 2>&1 & echo $!"
STUBBORN = (
    "setsid sh -c 'trap \"\" TERM; touch ready; while :; do sleep 1000; done' > log 2>&1 & echo $!"
)


@pytest.mark.slow
def test_what_a_command_has_detached_ends_with_it(process: Command, tmp_path: Path) -> None:
    wait = "while ! test -e ready; do sleep 0.05; done"
    for script, count in ((f"{DETACH}; {DETACH}", 2), (f"{STUBBORN}; {wait}", 1)):
        words = ("--no-opensm", "--", "sh", "-c", f"{script}; exit 3")
        done = process("emulate", "--example", "incast", *words, cwd=tmp_path)
        assert done.status == 3
        started = [int(line) for line in done.stdout.split()]
        assert len(started) == count
        assert not any(map(runs, started))
        assert "that the command has left running: ended with the fabric" in done.stderr


@pytest.mark.slow
def test_what_a_command_has_detached_ends_by_sigterm(tmp_path: Path) -> None:
    words = ("emulate", "--example", "incast", "--no-opensm", "--", "sh", "-c")
    with subprocess.Popen(
        silvan_command(*words, f"{DETACH}; exec sleep 1000"),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        pid = int(process.stdout.readline())
        assert runs(pid)
        process.terminate()
        assert process.wait(PATIENCE_S) == 128 + signal.SIGTERM
        assert not runs(pid)


def inside(folder: Path) -> list[int]:
    """List the processes whose current folder this is."""
    found = []
    for one in Path("/proc").iterdir():
        with suppress(OSError):
            if one.name.isdigit() and (one / "cwd").readlink() == folder:
                found.append(int(one.name))
    return found


def test_programs_of_a_fabric_end_with_it(serve: Serve) -> None:
    fabric = serve()
    pid = int(fabric.run("sh", "-c", DETACH).stdout)
    with fabric.popen("sh", "-c", f"{DETACH}; exec sleep 1000") as process:
        assert process.stdout
        other = int(process.stdout.readline())
        assert set(inside(fabric.folder)) == {pid, other, process.pid}
        fabric.end()
        assert inside(fabric.folder) == []
        assert process.returncode == -signal.SIGTERM
    with pytest.raises(subprocess.TimeoutExpired):
        fabric.run("sh", "-c", "sleep 1000 & sleep 1001; true", timeout_s=0.1)
    assert inside(fabric.folder) == []


STAYS = f"""\
import time
from pathlib import Path
from silvan.example_files import example
from silvan.testing import fabric

def test_it(fabric):
    running = fabric(example("incast").path)
    pid = running.run("sh", "-c", {DETACH!r}).stdout
    Path("started.new").write_text(pid)
    Path("started.new").rename("started")
    time.sleep(1000)
"""


@contextmanager
def pytest_run(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run pytest in a folder, and give a process that the program of its test has detached."""
    folder.mkdir()
    (folder / "test_it.py").write_text(STAYS)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
    environment = os.environ | {"TMPDIR": str(folder)}
    with subprocess.Popen(words, cwd=folder, env=environment) as process:
        try:
            wait_until((folder / "started").exists, "the program of the test")
            yield process, int((folder / "started").read_text())
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_pytest_ends_in_order(tmp_path: Path, kind: signal.Signals) -> None:
    with pytest_run(tmp_path / "one") as (process, pid):
        assert runs(pid)
        process.send_signal(kind)
        status = process.wait(PATIENCE_S)
        assert status == (pytest.ExitCode.INTERRUPTED if kind == signal.SIGINT else 128 + kind)
        assert not runs(pid)
        assert not list((tmp_path / "one").glob("silvan-fabric-*"))


@pytest.mark.slow
def test_the_next_pytest_ends_what_a_killed_one_has_left(tmp_path: Path) -> None:
    with (
        pytest_run(tmp_path / "living") as (_, kept),
        pytest_run(tmp_path / "killed") as (killed, left),
    ):
        killed.kill()
        killed.wait()
        with pytest_run(tmp_path / "next") as (_, pid):
            assert not runs(left)
            assert runs(kept)
            assert runs(pid)


def started_by_threads(pid: int) -> list[int]:
    found = []
    for one in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended meanwhile
            found += [int(word) for word in one.read_text().split()]
    return found


@pytest.mark.slow
@pytest.mark.needs("opensm")
@pytest.mark.parametrize("stage", ["routing", "simulation"])
@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_whatif_leaves_nothing_behind(tmp_path: Path, kind: signal.Signals, stage: str) -> None:
    (tmp_path / "line.toml").write_text(LINE)
    base = tmp_path / "temporary"
    base.mkdir()
    # Without the signal it would run for hours.
    words = ("whatif", "line.toml", "--duration", "1000 s", "--engine", "minhop")
    with subprocess.Popen(
        silvan_command(*words), cwd=tmp_path, env=os.environ | {"TMPDIR": str(base)}
    ) as process:
        try:
            wait_until(lambda: bool(started_by_threads(process.pid)), "OpenSM")
            started = started_by_threads(process.pid)
            if stage == "simulation":
                wait_until(lambda: not started_by_threads(process.pid), "its end")
            process.send_signal(kind)
            status = process.wait(PATIENCE_S)
        finally:
            process.kill()
    wait_until(lambda: not any(map(runs, started)), "the end of OpenSM")
    if kind != signal.SIGKILL:
        assert status == 130
        assert [one.name for one in base.iterdir()] == [f"silvan-{os.getuid()}"]


def test_a_closed_stream_of_an_umad_file_is_forgotten(serve: Serve) -> None:
    assert serve().run(sys.executable, "-c", STREAM).stdout == "of the pipe\n"
