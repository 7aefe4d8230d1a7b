"""Signals to commands and to callers: no process, log or folder stays."""

from __future__ import annotations

import errno
import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from silvan.child_processes import child
from silvan.execution.descendants import mark, marked, with_mark
from silvan.folders import exclusive, replaced_folder
from silvan.scratch import mount_point, scratch_folder
from tests.conftest import INCAST, silvan_command
from tests.gate import PATIENCE_S, wait_until

pytestmark = pytest.mark.slow

OPENSM = f"""\
#!{sys.executable}
import os, signal, sys, time

for kind in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(kind, signal.SIG_IGN)
log = open(sys.argv[sys.argv.index("--log_file") + 1], "w")
while True:
    print("it computes", file=log, flush=True)
    open(os.environ["STARTED"], "w").close()
    time.sleep(0.05)
"""
"""An OpenSM in the midst of a sweep, which acts on no signal."""

CALLER = """\
import sys, time
from pathlib import Path
from silvan import Scenario
from silvan.live.opensm_routing import route

try:
    route(Scenario.from_file("incast.toml"), "minhop")
except KeyboardInterrupt:
    Path("caught").touch()
    time.sleep(1000)
"""
"""A caller, such as a notebook, that goes on after Ctrl-C."""

LONG = ("incast.toml", "--set", "run.duration=1000 s")
COMMANDS = {
    "route": ("route", "incast.toml", "--engine", "minhop", "--out", "tables"),
    "whatif": ("whatif", "incast.toml", "--engine", "minhop", "--engine", "updn"),
    "emulate": ("emulate", "incast.toml", "--opensm", "--", "sleep", "1000"),
    "sweep": ("sweep", *LONG, "--seeds", "4"),
    "compare": ("compare", *LONG),
    "tune": ("tune", *LONG, "--out", "tuned"),
}
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
_NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def _hangups_end_programs() -> Iterator[None]:
    """Let what tests start have the signal, which nohup has ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


class Started:
    """A program with a folder for temporary files, and all that it has started."""

    def __init__(self, process: subprocess.Popen[bytes], name: str, folder: Path) -> None:
        self.process = process
        self.name = name
        self.folder = folder

    def processes(self) -> set[int]:
        """List the program and its descendants."""
        return marked({self.name})

    def scratch(self) -> list[Path]:
        """List the folders that silvan removes at its end."""
        return list((self.folder / "temporary").glob("silvan-scratch-*"))


@contextmanager
def started(folder: Path, words: list[str], *, has_workers: bool = False) -> Iterator[Started]:
    """Start a program, and wait until it has started another one."""
    binaries, temporary = folder / "bin", folder / "temporary"
    for path in (binaries, temporary):
        path.mkdir(exist_ok=True)
    (binaries / "opensm").write_text(OPENSM)
    (binaries / "opensm").chmod(0o755)
    (folder / "incast.toml").write_text(INCAST)
    sign = folder / "started"
    sign.unlink(missing_ok=True)
    name = mark(next(_NUMBERS))
    environment = with_mark(dict(os.environ), name) | {
        "TMPDIR": str(temporary),
        "STARTED": str(sign),
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
    }
    with subprocess.Popen(words, cwd=folder, env=environment) as process:
        one = Started(process, name, folder)
        try:
            wait_until(
                lambda: (
                    process.poll() is not None
                    or (len(one.processes()) > 1 if has_workers else sign.exists())
                ),
                "another program",
            )
            assert process.returncode is None
            yield one
        finally:
            for pid in one.processes():
                os.kill(pid, signal.SIGKILL)


def remove_abandoned(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a folder, as the next command does."""
    monkeypatch.setattr("tempfile.tempdir", str(base))
    with scratch_folder("next"):
        pass


@pytest.mark.parametrize("kind", SIGNALS)
@pytest.mark.parametrize("name", COMMANDS)
def test_signals_leave_no_process_and_no_folder(
    tmp_path: Path, name: str, kind: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_workers = name in ("sweep", "compare", "tune")
    with started(tmp_path, silvan_command(*COMMANDS[name]), has_workers=has_workers) as command:
        command.process.send_signal(kind)
        status = command.process.wait(PATIENCE_S)
        wait_until(lambda: not command.processes(), "the end of all processes")
        is_handled = kind != signal.SIGKILL
        assert status == (130 if is_handled else -kind)
        if is_handled:
            assert command.scratch() == []
        remove_abandoned(tmp_path / "temporary", monkeypatch)
        assert command.scratch() == []


@pytest.mark.parametrize("kind", SIGNALS)
def test_signals_to_a_caller_leave_no_process_and_no_folder(
    tmp_path: Path, kind: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    with started(tmp_path, [sys.executable, "-c", CALLER]) as caller:
        caller.process.send_signal(kind)
        if kind == signal.SIGINT:
            wait_until((tmp_path / "caught").exists, "the interrupt in the caller")
            assert caller.processes() == {caller.process.pid}
            assert caller.scratch() == []
            return
        assert caller.process.wait(PATIENCE_S) == -kind
        wait_until(lambda: not caller.processes(), "the end of all processes")
        remove_abandoned(tmp_path / "temporary", monkeypatch)
        assert caller.scratch() == []


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
def test_whatif_ends_within_two_seconds(tmp_path: Path, kind: signal.Signals) -> None:
    """The fastest of several counts, because other programs may slow down any of them."""
    spans_s: list[float] = []
    while len(spans_s) < 5 and min(spans_s, default=2.0) >= 2:
        with started(tmp_path, silvan_command(*COMMANDS["whatif"])) as command:
            began = time.monotonic()
            command.process.send_signal(kind)
            assert command.process.wait(PATIENCE_S) == 130
            spans_s.append(time.monotonic() - began)
            assert command.scratch() == []
    assert min(spans_s) < 2


def test_folders_of_running_processes_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with started(tmp_path, silvan_command(*COMMANDS["route"])) as command:
        before = command.scratch()
        assert len(before) == 1
        remove_abandoned(tmp_path / "temporary", monkeypatch)
        assert command.scratch() == before


REPEATED = """\
import sys
from pathlib import Path
from silvan.child_processes import child
from silvan.scratch import scratch_folder

ended = Path(sys.argv[1])
while True:
    try:
        while not ended.exists():
            with scratch_folder("test"), child(["sleep", "1000"]):
                pass
        break
    except KeyboardInterrupt:
        continue
children = Path("/proc/self/task").glob("*/children")
print([one.read_text() for one in children], flush=True)
"""


def test_interrupts_at_any_instant_leave_no_child(tmp_path: Path) -> None:
    """Start and end programs in a loop, and interrupt the loop at random instants."""
    instants = random.Random(5)
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    words = [sys.executable, "-c", REPEATED, str(tmp_path / "ended")]
    with subprocess.Popen(
        words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_until(lambda: list(tmp_path.glob("silvan-scratch-*")), "the first program")
        for _ in range(300):
            time.sleep(instants.random() * 0.02)
            process.send_signal(signal.SIGINT)
            if process.poll() is not None:
                break
        (tmp_path / "ended").touch()
        out, errors = process.communicate(timeout=PATIENCE_S)
    # An interrupt in the handler of the one before may end the loop with a traceback.
    assert out == "['']\n" or "KeyboardInterrupt" in errors, errors
    assert not list(tmp_path.glob("silvan-scratch-*"))


def test_a_program_that_ignores_sigterm_is_killed_after_its_grace() -> None:
    """Oracle: the signal that the system says has ended it."""
    script = "trap '' TERM; echo ready; while :; do sleep 0.05; done"
    began = time.monotonic()
    with child(["sh", "-c", script], stdout=subprocess.PIPE, grace_s=0.2) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    assert process.returncode == -signal.SIGKILL
    assert time.monotonic() - began >= 0.2
    with child(["sleep", "1000"]) as process:
        pass
    assert process.returncode == -signal.SIGTERM


def test_a_file_system_without_locks_has_folders_that_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Oracle: flock(2) of directories on NFS, which needs them to be open for writing."""

    def refuse(_file: int, _kind: int) -> None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("fcntl.flock", refuse)
    with scratch_folder("one") as one, scratch_folder("other") as other:
        assert one.is_dir()
        assert other.is_dir()
    assert list(tmp_path.iterdir()) == []


WRITER = """\
import os, signal, sys, time
from pathlib import Path
from silvan import folders

place = sys.argv[2]
if place == "swap":
    # SIGKILL between the two renames.
    rename = Path.rename
    def renamed(path, target):
        moved = rename(path, target)
        os.kill(os.getpid(), signal.SIGKILL)
    Path.rename = renamed
with folders.replaced_folder(Path(sys.argv[1])) as work:
    (work / "manifest.json").write_text("{}")
    if place == "wait":
        Path(sys.argv[3]).touch()
        time.sleep(1000)
    if place == "fill":
        os.kill(os.getpid(), signal.SIGKILL)
"""


def hidden(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob(".*"))


@pytest.mark.parametrize("place", ["fill", "swap"])
def test_half_written_results_are_removed_by_the_next(tmp_path: Path, place: str) -> None:
    """A result that was there before is there afterwards."""
    target, others = tmp_path / "out", [tmp_path / ".out-mine", tmp_path / ".out-settings"]
    for other in others:
        other.mkdir()
        (other / "manifest.json").touch()
    with replaced_folder(target) as work:
        (work / "manifest.json").write_text("before")
    words = [sys.executable, "-c", WRITER, str(target), place]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    assert len(hidden(tmp_path)) == (3 if place == "fill" else 4)
    assert target.exists() == (place == "fill")
    script = "import sys, pathlib\nfrom silvan.folders import replaced_folder\n"
    script += "with replaced_folder(pathlib.Path(sys.argv[1])) as work:\n"
    script += "    (work / 'manifest.json').touch()"
    words = [sys.executable, "-c", script, str(tmp_path / "other")]
    subprocess.run(words, check=True)
    assert hidden(tmp_path) == [path.name for path in others]
    assert (target / "manifest.json").read_text() == "before"
    assert sorted(path.name for path in target.iterdir()) == ["manifest.json"]


def test_results_that_are_being_written_stay(tmp_path: Path) -> None:
    sign = tmp_path / "begun"
    words = [sys.executable, "-c", WRITER, str(tmp_path / "out"), "wait", str(sign)]
    with child(words):
        wait_until(sign.exists, "a result that is being written")
        before = hidden(tmp_path)
        assert len(before) == 1
        with replaced_folder(tmp_path / "other") as work:
            (work / "manifest.json").touch()
        assert hidden(tmp_path) == before
    with exclusive(tmp_path, "command"):
        assert hidden(tmp_path) == [".lock"]


def test_mount_points_of_killed_processes_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that is not empty may have something mounted on it."""
    for name in ("silvan-mount-left", "silvan-mount-used"):
        (tmp_path / name).mkdir()
    (tmp_path / "silvan-mount-used" / "file").touch()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with mount_point() as path:
        assert path.name.startswith("silvan-mount-")
        assert not (tmp_path / "silvan-mount-left").exists()
        remove_abandoned(tmp_path, monkeypatch)
        assert path.is_dir()
    assert [one.name for one in tmp_path.iterdir()] == ["silvan-mount-used"]


def test_links_and_files_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    linked = tmp_path / "linked"
    linked.mkdir()
    (tmp_path / "silvan-scratch-link").symlink_to(linked)
    (tmp_path / "silvan-scratch-file").touch()
    (tmp_path / "silvan-scratch-left").mkdir()
    (tmp_path / "silvan-other").mkdir()
    remove_abandoned(tmp_path, monkeypatch)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"linked", "silvan-scratch-link", "silvan-scratch-file", "silvan-other"}
