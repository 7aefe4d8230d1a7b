"""Ctrl-C: the run stops soon, finished seeds are kept, nothing is half-written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import silvan
from silvan.interruptible import interruptible
from silvan.reproduce.plan import make_plan
from silvan.reproduce.registry import experiments
from tests.conftest import INCAST, silvan_command
from tests.gate import PATIENCE_S, wait_until

pytestmark = pytest.mark.slow


def interrupted(
    words: list[str | Path],
    when: Callable[[int], object],
    number: signal.Signals = signal.SIGINT,
) -> tuple[int, str]:
    """Start a command, and send a signal when a condition on its process id holds."""
    with subprocess.Popen(
        silvan_command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            wait_until(lambda: when(process.pid), "the moment of the signal")
            process.send_signal(number)
            stdout, stderr = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
    assert stdout == ""
    return process.returncode, stderr


def processor_s(pid: int) -> float:
    """Tell how long a process has computed."""
    words = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


IMPORTING = """\
import os, signal, sys
from importlib.abc import MetaPathFinder

class Interrupt(MetaPathFinder):
    # Ctrl-C while this module is imported.
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
from silvan.cli import main
sys.exit(main(["diagnose", "--from", "none.ring"]))
"""


@pytest.mark.parametrize(
    "module", ["typer", "silvan.cli.app", "silvan.live.diagnosis", "silvan.live.ring"]
)
def test_ctrl_c_during_imports_ends_without_a_traceback(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTING, module], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr in ("", "stopped\n")


IN_A_STRING = """\
import sys
from importlib.abc import MetaPathFinder

class Interrupt(MetaPathFinder):
    # Ctrl-C while code runs that is a string, as data classes make it, in a command that has begun.
    def find_spec(self, name, path=None, target=None):
        if name == "silvan.live.ring":
            sys.meta_path.remove(self)
            exec("import os, signal; os.kill(os.getpid(), signal.SIGINT)\\nwhile True: pass")

sys.meta_path.insert(0, Interrupt())
"""


def test_ctrl_c_in_code_of_a_string_has_the_same_status(tmp_path: Path) -> None:
    """Oracle: the documented status; by default Python reports that SIGINT has killed it."""
    (tmp_path / "sitecustomize.py").write_text(IN_A_STRING)
    search = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        silvan_command("diagnose", "--from", "none.ring"),
        env=os.environ | {"PYTHONPATH": search},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped\n")


CALL = """\
import signal, time
from silvan.interruptible import interruptible

def call():
    print("begun", flush=True)
    time.sleep(1)
    print("returned", flush=True)

signal.setitimer(signal.ITIMER_REAL, 0.2)
signal.signal(signal.SIGALRM, signal.default_int_handler)
try:
    interruptible(call)
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


def test_the_end_of_the_interpreter_waits_for_a_call_that_was_left() -> None:
    """Oracle: Python ends threads in the midst of compiled code, which aborts the process."""
    done = subprocess.run([sys.executable, "-c", CALL], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["begun", "stopped", "returned"]
    assert (done.returncode, done.stderr) == (0, "")


def test_a_signal_that_another_thread_gets_ends_the_wait_for_a_call() -> None:
    """Oracle: its handler, which the main thread runs while the call goes on."""

    def interrupt(_signal: int, _frame: object) -> None:
        raise KeyboardInterrupt

    def strike() -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, interrupt)
    over = threading.Event()
    later = threading.Timer(0.2, strike)
    try:
        later.start()
        with pytest.raises(KeyboardInterrupt):
            interruptible(over.wait)
    finally:
        over.set()
        later.join()
        signal.signal(signal.SIGUSR1, before)


READING = """\
import os, signal, sys, threading
from silvan import _silvan
from silvan.cli import main

ended = threading.Event()

class Slow:
    # Compiled code, which no signal ends: it is not in the thread that signals interrupt.
    @staticmethod
    def from_toml(*_):
        assert threading.current_thread() is not threading.main_thread()
        os.kill(os.getpid(), signal.SIGINT)
        ended.wait()

_silvan.Scenario = Slow
status = main(["validate", sys.argv[1]])
ended.set()
sys.exit(status)
"""


def test_ctrl_c_does_not_wait_for_a_large_fabric(tmp_path: Path) -> None:
    path = tmp_path / "incast.toml"
    path.write_text(INCAST)
    done = subprocess.run(
        [sys.executable, "-c", READING, path],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_search_stops_while_arrivals_are_counted(tmp_path: Path, number: signal.Signals) -> None:
    """Oracle: the arrivals of 100,000 s take minutes to count."""
    path = tmp_path / "long.toml"
    path.write_text(INCAST.replace("[[traffic.incast]]", "[[traffic.incast]]\nload = 0.5"))
    words: list[str | Path] = ["saturate", path, "--yes", "--set", "run.duration=100000 s"]
    words += ["--set", "probe.interval=100 s"]
    status, stderr = interrupted(words, lambda pid: processor_s(pid) > 3, number)
    assert status == 130
    assert "Traceback" not in stderr


def test_a_command_does_not_wait_for_what_it_has_left(tmp_path: Path) -> None:
    """Oracle: the call never ends, and other programs would wait for it for an hour."""
    path = tmp_path / "incast.toml"
    path.write_text(INCAST)
    code = READING.replace(
        "status = main(",
        "from silvan import interruptible\ninterruptible.LONGEST_WAIT_S = 3600.0\nstatus = main(",
    ).replace('["validate", sys.argv[1]]', "")
    done = subprocess.run(
        [sys.executable, "-c", code, "validate", path],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped\n")


def test_a_single_run_stops_and_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "endless.toml"
    path.write_text(INCAST.replace('"200 us"', '"1000 s"').replace('"50 us"', '"1 s"'))
    out = tmp_path / "out"
    began: list[float] = []

    def computes(pid: int) -> bool:
        # The folder is made before the run; after that only the run takes so much computing.
        if not began and out.exists():
            began.append(processor_s(pid))
        return bool(began) and processor_s(pid) > began[0] + 1

    status, stderr = interrupted(["run", path, "--out", out], computes)
    assert status == 130
    size, last = stderr.splitlines()
    assert size.startswith("estimate: ")
    assert last == "stopped; results that were finished are kept"
    assert list(out.iterdir()) == []


def test_finished_seeds_are_kept(tmp_path: Path) -> None:
    # More seeds than can finish; each is long enough for the signal to meet some of them running.
    path = tmp_path / "many.toml"
    path.write_text(INCAST.replace('"200 us"', '"200 ms"').replace('"50 us"', '"100 ms"'))
    out = tmp_path / "out"
    words: list[str | Path] = ["run", path, "--seeds", "1000", "--seed", "1", "--out", out]
    first = out / "seed-1" / "manifest.json"
    status, stderr = interrupted(words, lambda _: first.exists())
    assert status == 130
    assert "Traceback" not in stderr
    folders = sorted(out.iterdir())
    assert 1 <= len(folders) < 1000
    for folder in folders:
        assert silvan.Result.read(folder).scenario.name == "incast"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_reproduction_keeps_its_finished_runs(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    # The work after the first run takes far longer than the signal.
    words: list[str | Path] = ["reproduce", "gran2012", "--only", "fig9a", "--out", tmp_path]
    runs = tmp_path / "runs"
    ended, stderr = interrupted(words, lambda _: any(runs.glob("*/[!.]*/manifest.json")), number)
    assert ended == status
    assert "Traceback" not in stderr
    assert list((tmp_path / "gran2012").iterdir()) == [], "no figure, no report"
    manifests = list(runs.glob("*/[!.]*/manifest.json"))
    assert 1 <= len(manifests) < len(make_plan("gran2012", experiments("gran2012", "fig9a")).runs)
    for manifest in manifests:
        assert silvan.Result.read(manifest.parent).scenario.name == "gran2012-moving"


def test_a_stopped_sweep_keeps_its_points_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "many.toml"
    path.write_text(INCAST.replace('"200 us"', '"20 ms"').replace('"50 us"', '"20 ms"'))
    out = tmp_path / "out"
    words: list[str | Path] = ["sweep", path, "--out", out, "--workers", "2", "--seeds"]
    status, stderr = interrupted([*words, "5000"], lambda _: any(out.glob("points/*.json")))
    assert status == 130
    size, last = stderr.splitlines()
    assert size.startswith("estimate: ")
    assert last == "stopped; results that were finished are kept"
    kept = pq.read_table(out / "points.parquet").num_rows
    assert kept < 5000
    seen: list[silvan.SweepProgress] = []
    grown = silvan.sweep(
        silvan.Scenario.from_file(path), seeds=kept + 2, out=out, progress=seen.append
    )
    assert seen[0].kept == kept
    assert grown.points.num_rows == kept + 2


DAEMONS = f"""
import threading
import silvan

scenario = silvan.Scenario.from_toml({INCAST!r}).override(
    {{"run.duration": "1000 s", "probe.interval": "1 s"}}
)
running = [threading.Event() for _ in range(4)]
for event in running:
    run = lambda event=event: silvan.run(scenario, progress=lambda _: event.set())
    threading.Thread(target=run, daemon=True).start()
for event in running:
    event.wait()
"""
"""A program that ends while four daemon threads are in the midst of a run."""


def test_runs_in_daemon_threads_end_quietly_with_the_program() -> None:
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", DAEMONS], capture_output=True, check=False, timeout=PATIENCE_S
        )
        assert (done.returncode, done.stderr) == (0, b"")


def test_a_run_at_the_end_of_the_interpreter_comes_to_its_end() -> None:
    # The function was registered before silvan's own, and runs after it.
    program = f"""
import atexit
atexit.register(lambda: print(silvan.run(scenario).summary["simulated_ps"]))
import silvan
scenario = silvan.Scenario.from_toml({INCAST!r})
silvan.run(scenario)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=False, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"200000000\n", b"")
