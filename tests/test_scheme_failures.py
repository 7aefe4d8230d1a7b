"""Python schemes that fail or never end: the run ends with their file, line, hook and time."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import silvan
from silvan.cli.app import run_command
from silvan.inputs.toml_text import TomlValue
from silvan.schemes.hook_table import HOOKS
from tests.conftest import DDR_TOML, silvan_command
from tests.gate import PATIENCE_S

pytestmark = pytest.mark.slow

SCENARIO = f"""\
[fabric]
generator = "single-switch"
hosts = 4
{DDR_TOML}
[[traffic.incast]]
to = "host-0000"

[control.feedback]
carrier = "ack-per-packet"

[run]
duration = "200 us"
"""

ARGUMENTS = {name: ", ".join(hook.names) for name, hook in HOOKS.items()}


def scheme_text(hook: str, *body: str) -> str:
    """Write a scheme with one function; its body starts at line 6."""
    lines = "\n".join(f"    {line}" for line in body)
    return f"""\
import numpy as np
import silvan

LATE = 50_000_000
def {hook}({ARGUMENTS[hook]}):
{lines}


def scheme(setup):
    state = np.zeros(8)
    state[0] = setup.parameters.get("which", 0)
    return silvan.Callbacks(state, {hook}={hook})
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "incast.toml").write_text(SCENARIO)
    return tmp_path


CASES = [
    # Functions that raise, in every place of the run.
    ("release", ["if now > LATE:", "    raise ValueError('stop')", "return now"], 7, "ValueError"),
    ("host_release", ["if now > LATE:", "    return now // 0", "return now"], 7, "ZeroDivision"),
    ("on_departure", ["return 1 / state[3]"], 6, "ZeroDivisionError: division by zero"),
    ("on_feedback", ["x = -1", "assert acknowledged == x", "return False"], 7, "AssertionError"),
    ("on_queued", ["state[1] += 1", "if state[1] > 8:", "    state[port_vl + 9] = 1"], 8, "Index"),
    ("on_send", ["if now > LATE:", "    raise KeyError"], 7, "KeyError"),
    ("on_credit", ["if used > 0:", "    state[2] = 1 / state[3]"], 7, "ZeroDivisionError"),
    # The state of the first call is not that of the second: the exception is, the line is not.
    ("on_send", ["state[3] -= 1", "state[2] = 1 / (state[3] + 1)"], 5, "ZeroDivisionError"),
    ("on_send", ["state[3] += 1", "if state[3] == 4:", "    raise ValueError"], 8, "ValueError"),
    # Values that are none.
    ("release", ["return np.nan if now > LATE else 0.0"], 6, "returned nan"),
    ("release", ["if now < LATE:", "    return 0.0", "return np.inf"], 8, "returned inf"),
    ("host_release", ["return 1e30 if now > LATE else 0.0"], 6, "returned 1e+30"),
    ("release", ["return now - LATE"], 6, "returned -50000000"),
    ("release", ["return int(state[3] / (state[3] + np.inf) * np.nan)"], 6, "float NaN"),
    ("release", ["state[4] = 1e30", "return int(state[4])"], 7, "OverflowError"),
    ("on_feedback", ["return np.nan"], 6, "returned nan"),
]


@pytest.mark.parametrize(("hook", "body", "line", "reason"), CASES)
def test_a_run_ends_at_the_first_failure(
    hook: str,
    body: list[str],
    line: int,
    reason: str,
    files: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Oracle: the line in the text above."""
    (files / "mine.py").write_text(scheme_text(hook, *body))
    words = ["run", str(files / "incast.toml"), "--scheme", str(files / "mine.py")]
    assert run_command([*words, "--out", str(files / "out")]) == 1
    printed = capfd.readouterr()
    assert printed.out == ""
    error, hint = printed.err.splitlines()
    assert error.startswith(f"error: mine.py:{line}: {hook} at ")
    assert reason in error
    assert hint.startswith("hint: ")
    assert not list((files / "out").iterdir())


def test_the_error_has_hook_and_time() -> None:
    """Oracle: the first packet of a host starts at time 0, takes 1.037 us, and frees the host."""

    def host_release(state, now, host):  # type: ignore[no-untyped-def]
        return -1 if now > 0 else now

    scenario = silvan.Scenario.from_toml(SCENARIO.replace("hosts = 4", "hosts = 2"))
    broken = silvan.Callbacks(np.zeros(1), host_release=host_release)
    with pytest.raises(silvan.SchemeError) as caught:
        silvan.run(scenario, control=broken)
    error = caught.value
    assert (error.hook, error.source) == ("host_release", __file__)
    assert error.line == host_release.__code__.co_firstlineno + 1
    assert str(error).endswith(f"host_release at {(error.time_ps or 0) / 1e6:.6f} µs returned -1")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.hook, again.time_ps, again.hint) == (
        str(error),
        error.hook,
        error.time_ps,
        error.hint,
    )


def test_never_may_be_kept_in_the_state() -> None:
    """Oracle: hosts that may send one packet each, and no other."""

    def host_release(state, now, host):  # type: ignore[no-untyped-def]
        return state[host]

    def on_send(state, now, source, destination, sl, wire_time, payload):  # type: ignore[no-untyped-def]
        state[source] = silvan.NEVER

    once = silvan.Callbacks(np.zeros(4), host_release=host_release, on_send=on_send)
    result = silvan.run(silvan.Scenario.from_toml(SCENARIO), control=once)
    assert result.hosts["injected_bytes"].to_pylist() == [0, 2048, 2048, 2048]


FAILS_AT_2 = ["if state[0] == 2 and now > LATE:", "    return -1", "return now"]


def test_a_sweep_goes_on_without_a_point_that_fails(files: Path) -> None:
    """Oracle: single runs of the points that do not fail."""
    (files / "mine.py").write_text(scheme_text("release", *FAILS_AT_2))
    keys: dict[str, TomlValue] = {
        "control.scheme": "python",
        "control.python.file": str(files / "mine.py"),
    }
    scenario = silvan.Scenario.from_file(files / "incast.toml", overrides=keys)
    grid = {"control.python.parameters.which": [1, 2, 3]}
    for kept in (0, 2):
        seen: list[silvan.SweepProgress] = []
        result = silvan.sweep(scenario, grid, out=files / "out", workers=2, progress=seen.append)
        assert seen[0].kept == kept
        # The point that failed is tried again, and only that one.
        assert (seen[-1].done, seen[-1].failed) == (2 - kept, 1)
        (failure,) = result.failures
        assert failure.values == {"control.python.parameters.which": 2}
        assert failure.error.startswith("mine.py:7: release at ")
        assert failure.attempts == 1
        delivered = result.points["delivered_bytes"].to_pylist()
        free = silvan.run(scenario.override({"control.scheme": "none"}))
        assert delivered == [free.summary["delivered_bytes"]] * 2


ENDLESS = ["if state[0] == 2 and now > LATE:", "    while True:", "        pass", "return now"]
WAITING = [*ENDLESS[:2], "        usleep(10_000)", *ENDLESS[3:]]
"""A body without end that uses no processor."""
USLEEP = """
import ctypes

usleep = ctypes.CDLL(None).usleep
usleep.argtypes, usleep.restype = [ctypes.c_uint], ctypes.c_int
"""
LATER = ["if state[0] == 2 and now > LATE:", "    return now + 1", "return now"]


@pytest.mark.parametrize("body", [ENDLESS, LATER], ids=["loop", "later"])
@pytest.mark.parametrize("words", [["run"], ["run", "--seeds", "2"], ["sweep", "--seeds", "2"]])
def test_ctrl_c_ends_what_never_ends(words: list[str], body: list[str], files: Path) -> None:
    """Workers end by themselves: their caller would wait for them for an hour."""
    # The first call that never comes back says so.
    first = ["if state[0] == 2 and now > LATE and state[1] == 0:", "    state[1] = 1"]
    first += ["    print('in the function')"]
    (files / "mine.py").write_text(scheme_text("release", *first, *body))
    command, *more = words
    scheme = ["--scheme", str(files / "mine.py"), "--out", str(files / "out")]
    scheme += ["--set", "control.python.parameters.which=2"]
    program = "import sys, silvan.cli, silvan.execution.processes as processes"
    program += "; processes._PATIENCE_S = 3600"
    program += "; sys.exit(silvan.cli.main())"
    process = subprocess.Popen(
        [sys.executable, "-c", program, command, str(files / "incast.toml"), *scheme, *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stderr is not None
    # Their prints are no part of the output. Two workers may write theirs into one line.
    assert process.stderr.readline().startswith("in the function")
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert stderr.endswith("stopped; results that were finished are kept\n")
    assert "Traceback" not in stderr
    assert not list((files / "out").rglob("*.parquet")) or command == "sweep"
    assert not list((files / "out").rglob("points/*"))


HOG = "print('in the file', flush=True); sum(range(10**13))"
"""Code in C that never releases the interpreter's lock."""


@pytest.mark.parametrize("place", ["file", "function"])
@pytest.mark.parametrize("command", ["validate", "run", "sweep"])
def test_ctrl_c_ends_a_file_that_never_ends(command: str, place: str, files: Path) -> None:
    """The caller would wait an hour for a worker to end by itself."""
    text = scheme_text("release", "return now")
    inside = text.replace("    state = np.zeros(8)", f"    {HOG}\n    state = np.zeros(8)")
    (files / "mine.py").write_text(f"{HOG}\n{text}" if place == "file" else inside)
    scheme = ["--set", 'control.scheme="python"']
    scheme += ["--set", f"control.python.file={json.dumps(str(files / 'mine.py'))}"]
    out = [] if command == "validate" else ["--out", str(files / "out")]
    out += ["--seeds", "2"] if command == "sweep" else []
    program = "import sys, silvan.cli, silvan.execution.processes as processes"
    program += "; processes._PATIENCE_S = 3600"
    program += "; sys.exit(silvan.cli.main())"
    process = subprocess.Popen(
        [sys.executable, "-c", program, command, str(files / "incast.toml"), *scheme, *out],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "in the file\n"
    process.send_signal(signal.SIGINT)
    try:
        stdout, stderr = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    assert (process.returncode, stdout) == (130, "")
    kept = "" if command == "validate" else "; results that were finished are kept"
    assert stderr == f"stopped{kept}\n"


def test_ctrl_c_ends_a_run_whose_time_does_not_pass(files: Path) -> None:
    """The run is one of this process, as a script has it."""
    (files / "mine.py").write_text(scheme_text("release", "return now + 1"))
    (files / "script.py").write_text(
        f"""\
import silvan

keys = {{"control.scheme": "python", "control.python.file": {str(files / "mine.py")!r}}}
scenario = silvan.Scenario.from_file({str(files / "incast.toml")!r}, overrides=keys)
try:
    silvan.run(scenario, progress=lambda state: print(state.simulated_ps, flush=True))
except KeyboardInterrupt:
    print("interrupted")
"""
    )
    process = subprocess.Popen(
        [silvan_command()[0], str(files / "script.py")], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert 0 < int(process.stdout.readline()) < 200_000_000
    process.send_signal(signal.SIGINT)
    stdout, _ = process.communicate(timeout=PATIENCE_S)
    assert stdout.splitlines()[-1] == "interrupted"
    assert process.returncode == 0


def test_a_point_has_a_time_limit(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "mine.py").write_text(scheme_text("release", *WAITING) + USLEEP)
    words = [
        *("sweep", str(files / "incast.toml"), "--scheme", str(files / "mine.py"), "--workers"),
        *("1", "--grid", "control.python.parameters.which=1,2,3", "--point-timeout", "20 s"),
        *("--out", str(files / "out"), "--json"),
    ]
    assert run_command(words) == 1
    report = json.loads(capsys.readouterr().out)
    assert [one["control.python.parameters.which"] for one in report["points"]] == [1, 3]
    (failed,) = report["failed"]
    assert failed["error"] == "not finished within the time limit of 20 s"
    assert failed["values"] == {"control.python.parameters.which": 2}


def test_a_file_that_never_ends_at_the_first_point_stops_no_other(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("silvan.sweeping.sweep.SCHEME_LIMIT_S", 5.0)
    text = scheme_text("release", "return now")
    endless = (
        "    while setup.parameters['which'] == 2:\n        usleep(10_000)\n    state = np.zeros(8)"
    )
    (files / "mine.py").write_text(text.replace("    state = np.zeros(8)", endless) + USLEEP)
    words = [
        *("sweep", str(files / "incast.toml"), "--scheme", str(files / "mine.py"), "--workers"),
        *("1", "--grid", "control.python.parameters.which=2,1,3", "--point-timeout", "20 s"),
        *("--out", str(files / "out"), "--json"),
    ]
    assert run_command(words) == 1
    report = json.loads(capsys.readouterr().out)
    assert [one["control.python.parameters.which"] for one in report["points"]] == [1, 3]
    (failed,) = report["failed"]
    assert failed["values"] == {"control.python.parameters.which": 2}
    assert failed["error"] == "not finished within the time limit of 20 s"


def test_a_file_that_ends_its_process_is_named(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "mine.py").write_text("import os\nos._exit(0)\n")
    words = ["--seeds", "2", "--scheme", str(files / "mine.py"), "--out", str(files / "out")]
    assert run_command(["sweep", str(files / "incast.toml"), *words]) == 2
    error = capsys.readouterr().err.splitlines()[0]
    assert error == "error: mine.py: the file ended its process (status 0)"


@pytest.mark.parametrize("text", ["10", "0 s", "-3 s", "5 parsecs", "nan s"])
def test_time_limits_that_cannot_be(
    text: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["sweep", str(files / "incast.toml"), "--point-timeout", text]) == 2
    assert "is not a time above 0 with a unit of ms, s, min, h" in capsys.readouterr().err


HOSTILE = {
    "lone surrogate": ("raise ValueError('\\ud800 bad')", "ValueError: \\ud800 bad"),
    "toml": (
        "raise ValueError('first\\nname = 3 [[[\\n\\x00')",
        "ValueError: first name = 3 [[[ \\x00",
    ),
    "terminal": (
        "raise ValueError('\\x1b[31m\\nerror: second')",
        "ValueError: \\x1b[31m error: second",
    ),
    "long": ("raise ValueError(LONG)", "ValueError: " + "x" * 300 + "..."),
    "no text": ("raise Bad(3)", "Bad: (its text cannot be made: ZeroDivisionError)"),
}
BAD = """
LONG = "x" * 10_000_000
class Bad(Exception):
    def __str__(self):
        return 1 / 0
"""


@pytest.mark.parametrize("case", HOSTILE)
def test_any_exception_is_one_printable_line(
    case: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a command, in the file of the point that failed, and in the sweep's record."""
    raising, message = HOSTILE[case]
    body = ["if state[0] == 2 and now > LATE:", f"    {raising}", "return now"]
    (files / "mine.py").write_text(scheme_text("release", *body) + BAD)
    scheme = ["--scheme", str(files / "mine.py")]
    which = ["--set", "control.python.parameters.which=2"]
    assert run_command(["run", str(files / "incast.toml"), *scheme, *which]) == 1
    error, hint = capsys.readouterr().err.splitlines()
    assert error.startswith("error: mine.py:7: release at ")
    assert error.endswith(f" µs: {message}")
    assert hint == "hint: correct the function; nothing of the run is kept"

    words = ["--grid", "control.python.parameters.which=1,2,3", "--out", str(files / "out")]
    sweep = ["sweep", str(files / "incast.toml"), *scheme, *words, "--workers", "1", "--json"]
    assert run_command(sweep) == 1
    report = json.loads(capsys.readouterr().out)
    assert len(report["points"]) == 2
    (failed,) = report["failed"]
    assert f"error: {failed['error']}" == error
    # The file of the failed point can be read, and fails in the same way.
    assert run_command(["run", str(files / "out" / failed["scenario"])]) == 1
    assert capsys.readouterr().err.splitlines() == [error, hint]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("raise SystemExit(0)\n", 1, "SystemExit: 0"),
        ("import sys\n\ndef scheme(setup):\n    sys.exit(0)\n", 4, "SystemExit: 0"),
        ("raise GeneratorExit\n", 1, "GeneratorExit"),
        (f"{BAD}\nraise Bad\n", 7, "Bad: (its text cannot be made: ZeroDivisionError)"),
        ("raise ValueError('a\\n\\x1bb\\ud800')\n", 1, "ValueError: a \\x1bb\\ud800"),
    ],
)
@pytest.mark.parametrize("command", ["validate", "run", "sweep"])
def test_a_file_that_ends_the_program_is_refused(
    command: str,
    text: str,
    line: int,
    message: str,
    files: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (files / "mine.py").write_text(text)
    named = ['control.scheme="python"', f"control.python.file={json.dumps(str(files / 'mine.py'))}"]
    words = [command, str(files / "incast.toml"), "--set", named[0], "--set", named[1]]
    out = [] if command == "validate" else ["--seeds", "2", "--out", str(files / "out")]
    assert run_command([*words, *out]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    error, hint = printed.err.splitlines()
    assert error == f"error: mine.py:{line}: {message}"
    assert hint == "hint: the file is run before the simulation; correct it"


def test_the_search_for_the_line_ends_in_other_modules_too(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first call fails; the second, which looks for its line, never ends."""
    (files / "endless_helper.py").write_text(
        "from numba.extending import register_jitable\n@register_jitable\ndef spin(x):\n"
        "    while x > 0:\n        x += 1\n        x -= 1\n    return x\n"
    )
    monkeypatch.syspath_prepend(files)
    import endless_helper  # type: ignore[import-not-found]

    def release(state, now, source, destination, sl):  # type: ignore[no-untyped-def]
        state[0] += 1
        if state[0] == 1:
            state[1] = 1 / state[2]
        return endless_helper.spin(now + 1)

    with pytest.raises(silvan.SchemeError, match="ZeroDivisionError") as caught:
        silvan.run(
            silvan.Scenario.from_toml(SCENARIO),
            control=silvan.Callbacks([0.0] * 3, release=release),
        )
    assert caught.value.line == release.__code__.co_firstlineno
