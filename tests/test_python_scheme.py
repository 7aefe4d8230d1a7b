"""Schemes of one's own: the guide shows what is compiled, and both doors lead to one result."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import silvan
from silvan.cli.app import run_command
from silvan.inputs.toml_text import TomlValue
from tests.conftest import ddr_scenario
from tests.test_guide import ROOT, blocks

GUIDE = ROOT / "docs" / "guide" / "add-a-scheme.md"
EXAMPLE = ROOT / "examples" / "python-scheme"
SCHEMES = ROOT / "crates" / "silvan-cc" / "src" / "schemes"

INCAST = ddr_scenario(
    fabric={"generator": "single-switch", "hosts": 6},
    link={"speed": "EDR"},
    traffic={
        "incast": [{"to": "host-0000", "from": [f"host-000{n}" for n in range(1, 5)]}],
        "flow": [{"from": "host-0001", "to": "host-0005"}],
    },
    probe={"interval": "100 us"},
    run={"duration": "2 ms", "warm-up": "1 ms"},
)


def test_the_guide_lists_the_file_that_is_compiled() -> None:
    listed = blocks(GUIDE, "rust")
    assert len(listed) >= 6
    source, _, _ = (SCHEMES / "half.rs").read_text().partition("#[cfg(test)]")
    for block in listed:
        assert textwrap.dedent(block) in source
    # Together they are the file without its tests.
    assert sum(map(len, listed)) > 0.95 * len(source.replace("\n\n", "\n"))
    assert 'half::Half = "half"' in (SCHEMES / "mod.rs").read_text()


def test_schemes_of_one_file_change_what_happens() -> None:
    """Oracle: without control a victim of an incast gets only its share of the port."""

    def victim_bytes(scheme: str) -> int:
        result = silvan.run(INCAST.override({"control.scheme": scheme}))
        flow = result.classes.to_pylist()[1]
        return int(flow["delivered_bytes"])

    without = victim_bytes("none")
    assert victim_bytes("half") > 2 * without
    assert victim_bytes("dcqcn") > 1.2 * without


def half_in_python() -> silvan.Callbacks:
    """Take the guide's program up to its scenario."""
    program, _ = blocks(GUIDE, "python")
    names: dict[str, object] = {}
    exec(compile(program.split("scenario =")[0], str(GUIDE), "exec"), names)
    half = names["half"]
    assert isinstance(half, silvan.Callbacks)
    return half


@pytest.mark.slow
@pytest.mark.parametrize(
    "traffic",
    [
        {"permutation": [{"pattern": "shift", "shift": 1}], "incast": [{"to": "host-0000"}]},
        {"uniform": [{"load": 0.6}], "incast": [{"to": "host-0000", "load": 0.3}]},
        # Hosts that draw their next destination when the engine polls them.
        {"uniform": [{}], "incast": [{"to": "host-0000"}]},
        {"nodes": {"c": 0.5, "hotspots": 1, "p": 40}},
    ],
)
def test_python_and_rust_give_the_same_run(traffic: dict[str, TomlValue]) -> None:
    """Oracle: the same scheme in Rust, to the last bit of every table."""
    scenario = ddr_scenario(
        fabric={"generator": "k-ary-n-tree", "k": 2, "n": 3},
        traffic=traffic,
        control={"scheme": "half", "feedback": {"carrier": "ack-per-packet"}},
        # A compiled scheme may have more events where samples interrupt a run.
        probe={"interval": "2 ms"},
        run={"duration": "2 ms"},
    )
    built_in = silvan.run(scenario, seed=3)
    mine = silvan.run(
        scenario.override({"control.scheme": "none"}), seed=3, control=half_in_python()
    )
    assert mine.tables.keys() == built_in.tables.keys()
    for table, rows in mine.tables.items():
        assert rows.equals(built_in.tables[table]), table
    assert mine.summary["events"] == built_in.summary["events"]
    assert sum(built_in.hosts["becn_received"].to_pylist()) > 0


def test_runs_do_not_touch_each_other() -> None:
    half = half_in_python()
    scenario = INCAST.override({"control.feedback.carrier": "ack-per-packet"})
    first, second = (silvan.run(scenario, control=half) for _ in range(2))
    assert first.hosts.equals(second.hosts)
    assert half.state[..., 0].min() == 1
    # There is one interpreter.
    with pytest.warns(silvan.ScenarioWarning, match="1 of 2 threads used"):
        silvan.run(scenario, control=half, threads=2)


def test_host_calls_arrive() -> None:
    """Oracle: a host that may start a packet every 10 us and no sooner."""

    def host_release(state, now, host):  # type: ignore[no-untyped-def]
        return int(state[host])

    def on_send(state, now, source, destination, sl, wire_time, payload):  # type: ignore[no-untyped-def]
        state[source] = now + 10_000_000

    slow = silvan.Callbacks(np.zeros(6), host_release=host_release, on_send=on_send)
    result = silvan.run(INCAST, control=slow)
    # A millisecond after the warm-up, and a packet in 10 us.
    assert result.hosts["injected_bytes"].to_pylist() == [0, *[2048 * 100] * 4, 0]


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ({"on_arrival": lambda state: 0}, "a scheme has no hook 'on_arrival'"),
        ({"release": lambda state, now: 0}, "release takes 2 arguments, not 5"),
        (
            {"host_release": lambda state, now, host: now.missing},
            "numba cannot compile host_release",
        ),
    ],
)
def test_functions_that_cannot_be_are_refused(
    functions: dict[str, Callable[..., object]], message: str
) -> None:
    with pytest.raises(silvan.SilvanError, match=message) as raised:
        silvan.Callbacks([0.0], **functions)
    assert raised.value.hint


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        # numba would run on with the lowest 64 bits.
        ("def release(s, now, a, b, sl):\n    x = 1\n    return 2**70 + 7\n", 3, "71 bits"),
        ("def release(s, now, a, b, sl):\n    return 2**64\n", 2, "65 bits"),
        ("def release(s, now, a, b, sl):\n    return now - 2**63 - 1 - 2**64\n", 2, "65 bits"),
        ("def release(s, now, a, b, sl):\n    return (1, (3 << 99, 2))[1][0]\n", 2, "101 bits"),
        (
            "import numba\n@numba.njit\ndef f():\n    return 2**70\n"
            "def release(s, now, a, b, sl):\n    return f()\n",
            4,
            "71 bits",
        ),
        # Errors of the compiler are at their statement.
        ("def release(s, now, a, b, sl):\n    x = 1\n    raise SystemExit\n", 3, "compile"),
        ("def release(s, now, a, b, sl):\n    x = 1\n\n    return 'x'\n", 4, "release returns"),
        ("def release(s, now, a, b, sl):\n    x = 1\n    return open\n", 3, "compile"),
    ],
)
def test_what_cannot_be_compiled_is_refused_with_its_line(
    text: str, line: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scheme = "\ndef scheme(setup):\n    return silvan.Callbacks([0], release=release)\n"
    (tmp_path / "mine.py").write_text(f"{text}\nimport silvan\n{scheme}")
    words = ["--scheme", str(tmp_path / "mine.py"), "--out", str(tmp_path / "out")]
    assert run_command(["run", str(EXAMPLE / "half.toml"), *words]) == 2
    error, hint = capsys.readouterr().err.splitlines()
    assert error.startswith(f"error: mine.py:{line}: ")
    assert message in error
    assert hint.startswith("hint: ")


def test_numbers_of_64_bits_are_compiled() -> None:
    def on_credit(state, now, host, used, capacity):  # type: ignore[no-untyped-def]
        state[0] = 2**64 - 1
        state[1] = -(2**63)

    silvan.Callbacks([0.0, 0.0], on_credit=on_credit)


def test_never_and_numbers_of_numpy_are_times() -> None:
    """Oracle: hosts that may send one packet each after 5 ps, and no other."""

    def host_release(state, now, host):  # type: ignore[no-untyped-def]
        return np.int64(5) if state[host] == 0 else silvan.NEVER

    def on_send(state, now, source, destination, sl, wire_time, payload):  # type: ignore[no-untyped-def]
        state[source] = now

    once = silvan.Callbacks(np.zeros(6), host_release=host_release, on_send=on_send)
    result = silvan.run(INCAST.override({"run.warm-up": "0 us"}), control=once)
    assert result.hosts["injected_bytes"].to_pylist() == [0, *[2048] * 4, 0]


def test_the_guide_lists_the_files_of_the_example() -> None:
    _, listed = blocks(GUIDE, "python")
    assert listed in (EXAMPLE / "half.py").read_text()
    # All but the imports and the two functions that are there already.
    assert "def scheme(setup):" in listed
    (scenario, *_) = blocks(GUIDE, "toml")
    assert scenario in (EXAMPLE / "half.toml").read_text()


def test_a_scenario_names_a_python_file() -> None:
    """Oracle: the same scheme in Rust with the same parameters."""
    scenario = silvan.Scenario.from_file(EXAMPLE / "half.toml")
    keys: dict[str, TomlValue] = {"control.python.parameters.step": 0.01}
    mine = silvan.run(scenario.override(keys))
    rust = scenario.override({"control.scheme": "half", "control.half.step": 0.01})
    assert mine.classes.equals(silvan.run(rust).classes)
    assert not mine.classes.equals(silvan.run(scenario).classes)
    # An argument has priority over the scenario.
    free = silvan.run(scenario, control=silvan.Callbacks([0.0]))
    none = silvan.run(scenario.override({"control.scheme": "none"}))
    assert free.classes.equals(none.classes)


@pytest.mark.slow
def test_a_sweep_runs_a_python_file_in_other_processes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Oracle: single runs of the same points, and the same scheme in Rust."""
    (tmp_path / "incast.toml").write_text((EXAMPLE / "half.toml").read_text().split("[control]")[0])
    (tmp_path / "mine.py").write_text((EXAMPLE / "half.py").read_text().replace("scheme(", "mine("))
    words = [
        *("sweep", str(tmp_path / "incast.toml"), "--scheme", f"{tmp_path / 'mine.py'}:mine"),
        *("--set", "control.feedback.carrier=ack-per-packet", "--set", "run.duration=500 us"),
        *("--grid", "control.python.parameters.step=0.001,0.05", "--workers", "2"),
        *("--out", str(tmp_path / "out"), "--json"),
    ]
    assert run_command(words) == 0
    points = json.loads(capsys.readouterr().out)["points"]
    assert [point["control.python.parameters.step"] for point in points] == [0.001, 0.05]
    base = silvan.Scenario.from_file(EXAMPLE / "half.toml").override(
        {"control.scheme": "half", "run.duration": "500 us"}
    )
    for point in points:
        step = {"control.half.step": point["control.python.parameters.step"]}
        result = silvan.run(base.override(step))
        assert point["delivered_bytes"] == result.summary["delivered_bytes"]
        assert point["events"] > 0
    assert points[0]["delivered_bytes"] != points[1]["delivered_bytes"]

    # Another text is another scheme: what the first has brought is not taken for it.
    first = {point["hash"] for point in points}
    changed = (tmp_path / "mine.py").read_text().replace("1 / 256", "1 / 128")
    (tmp_path / "mine.py").write_text(changed)
    assert run_command(words) == 2
    assert "another" in capsys.readouterr().err
    words[words.index(str(tmp_path / "out"))] = str(tmp_path / "again")
    assert run_command(words) == 0
    again = {point["hash"] for point in json.loads(capsys.readouterr().out)["points"]}
    assert len(first | again) == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def scheme(setup:\n", "mine.py:1: '(' was never closed"),
        ("\nimport nowhere\n", "mine.py:2: ModuleNotFoundError: No module named 'nowhere'"),
        ("x = 1\n", "mine.py: there is no function 'scheme'"),
        ("def scheme(setup):\n    return 3\n", "mine.py: scheme gives int, not silvan.Callbacks"),
        (
            "def scheme(setup):\n    return setup.parameters['rate']\n",
            "mine.py:2: KeyError: 'rate'",
        ),
        (
            "import silvan\ndef release(state, now):\n    return 0\n"
            "def scheme(setup):\n    return silvan.Callbacks([0], release=release)\n",
            "mine.py:2: release takes 2 arguments, not 5",
        ),
        (
            "import silvan\ndef host_release(state, now, host):\n    x = 1\n"
            "    return now.missing\n"
            "def scheme(setup):\n    return silvan.Callbacks([0], host_release=host_release)\n",
            "mine.py:4: numba cannot compile host_release",
        ),
    ],
)
@pytest.mark.parametrize("command", ["run", "sweep"])
def test_bad_files_are_refused_with_their_line(
    command: str,
    text: str,
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    (tmp_path / "mine.py").write_text(text)
    out = tmp_path / "out"
    words = [command, str(EXAMPLE / "half.toml"), "--scheme", str(tmp_path / "mine.py")]
    assert run_command([*words, "--out", str(out), "--seeds", "2"]) == 2
    error, hint = capsys.readouterr().err.splitlines()
    assert error.startswith(f"error: {message}")
    assert hint.startswith("hint: ")
    assert not list(out.glob("**/*.parquet"))


def test_a_file_that_is_not_there_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["validate", str(EXAMPLE / "half.toml")]
    assert run_command(words) == 0
    missing = tmp_path / "missing.py"
    assert run_command(["run", str(EXAMPLE / "half.toml"), "--scheme", str(missing)]) == 2
    assert f"{missing}: cannot read the scheme of --scheme" in capsys.readouterr().err
