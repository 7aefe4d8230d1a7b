"""Wrong input of the arena, and objectives of any sign."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import silvan
from silvan.comparing.arena import plan_arena, read_arena, run_arena
from silvan.comparing.arena.judge import share
from silvan.comparing.arena.measure import numbers
from silvan.comparing.arena.run import prepared, require_python_scheme
from silvan.comparing.arena.store import Measured, Store
from silvan.comparing.baselines import fitting
from silvan.comparing.comparison import with_probes
from silvan.execution.cache import build_id
from silvan.execution.processes import Pool, Returned
from silvan.execution.worker_process import echo
from silvan.results.measures import MEASURES
from tests.conftest import Command
from tests.test_arena import ARENA, SMALL
from tests.test_guide import ROOT

pytestmark = pytest.mark.usefixtures("inline_pool")

HALF = ROOT / "examples" / "python-scheme" / "half.py"

ONE_CASE = """\
name = "one"
[[case]]
name = "incast"
file = "small.toml"
objective = "minimize other_latency_mean_us"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder with an arena of one case."""
    (tmp_path / "small.toml").write_text(SMALL)
    (tmp_path / "arena.toml").write_text(ONE_CASE)
    return tmp_path


@pytest.mark.parametrize("name", ["none", "nscc", "srp+lhrp", "vl-mapping", "pft", "python"])
@pytest.mark.parametrize("links", ["credits", "pfc"])
def test_a_python_file_does_not_take_the_name_of_a_scheme(
    folder: Path, name: str, links: str
) -> None:
    (folder / name).write_bytes(HALF.read_bytes())
    scenario = silvan.Scenario.from_file(folder / "small.toml").override(
        {
            "control.scheme": "python",
            "control.python.file": str(folder / name),
            "link.flow-control": links,
        }
    )
    with pytest.raises(silvan.ScenarioError, match="which another scheme has"):
        fitting(scenario)


def test_a_taken_name_is_refused_before_any_run(command: Command, folder: Path) -> None:
    (folder / "none").write_bytes(HALF.read_bytes())
    done = command("compare", folder / "arena.toml", "--arena", "--schemes", folder / "none")
    assert done.status == 2
    assert "has the name none, which another scheme has" in done.stderr
    assert "made" not in done.stderr


def test_what_is_refused_leaves_no_folder(command: Command, folder: Path) -> None:
    (folder / "broken.py").write_text("def scheme(setup):\n  return (\n")
    words = ("--arena", "--schemes", folder / "broken.py", "--out", folder / "out")
    assert command("compare", folder / "arena.toml", *words).status == 2
    assert not (folder / "out").exists()


def test_settings_that_are_given_are_not_called_published_alone(
    command: Command, folder: Path
) -> None:
    """Oracle: the words of the command, on the page and in the numbers."""
    words = ("--arena", "--schemes", "hpcc", "--out", folder, "--set", "control.hpcc.eta=0.9")
    done = command("compare", folder / "arena.toml", *words)
    assert done.status == 0, done.stderr
    said = "state the key: control.hpcc.eta = 0.9. Settings that are called published have it, too."
    assert said in " ".join(done.stderr.split())
    (facts,) = folder.glob("arena-one/*/arena.json")
    assert json.loads(facts.read_text())["set"] == {"control.hpcc.eta": 0.9}
    assert said in facts.with_name("arena.html").read_text()


def test_a_share_is_right_whatever_the_sign() -> None:
    """Oracle: what a share must have, for all pairs of some values."""
    values = [-1e300, -3.0, -2.0, -5e-324, 0.0, 5e-324, 1.0, 4.0, 1e300]
    for best in values:
        reached = [share(one, best) for one in values]
        assert all(0 <= one <= 1 for one in reached)
        assert [value for value, one in zip(values, reached, strict=True) if one == 1] == [best]
        # The farther from the best, the less, on either side of it.
        place = values.index(best)
        assert reached[: place + 1] == sorted(reached[: place + 1])
        assert reached[place:] == sorted(reached[place:], reverse=True)
    for value, best in itertools.product(values, values):
        # Minimizing a value is maximizing its negative.
        assert share(value, best) == share(-value, -best)
        if value > 0 and best > 0:
            assert share(value, best) == min(value / best, best / value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # No control sends no message: the best value is 0.
        ("minimize control_packets", "maximize -control_packets"),
        ("minimize other_latency_mean_us", "maximize 0 - other_latency_mean_us"),
    ],
)
def test_the_opposite_of_an_objective_has_the_same_shares(
    folder: Path, one: str, other: str
) -> None:
    shares = []
    for objective in (one, other):
        text = ONE_CASE.replace("minimize other_latency_mean_us", objective)
        (folder / "arena.toml").write_text(text)
        arena = read_arena(folder / "arena.toml")
        result = run_arena(arena, folder / "runs", ["hpcc", "ib-cc"], workers=1)
        shares.append([entry.share for entry in result.entries])
    assert shares[0] == shares[1]
    assert max(shares[0]) == 1
    assert min(shares[0]) < 1


def test_what_an_objective_can_be_a_formula_of_is_what_runs_measure() -> None:
    """Oracle: the measures of a run with flows that have a size."""
    sized = SMALL.replace("load = 0.5", 'bytes = "20 kB"')
    result = silvan.run(with_probes(silvan.Scenario.from_toml(sized)))
    found = numbers(result)
    assert {name: found[name] for name in found if name != "series"} == dict(result.measures)
    assert found.keys() - {"series"} < MEASURES.keys()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("other_latency_mean_us", "victims", "a run has no measure victims"),
        ("other_latency_mean_us", "off.off.fairness", "a run has no measure off.off.fairness"),
        ("other_latency_mean_us", "series", "a run has no measure series"),
        ("minimize other_latency_mean_us", "minimize", "there is no formula"),
        ("minimize other_latency_mean_us", "", "objective: no text"),
        ('name = "one"', 'name = "../one"', "contains '/'"),
        ('name = "one"', 'name = ""', "name: no text"),
        ('name = "one"', 'name = ["one"]', "name: no text"),
        ('name = "incast"', 'name = ""', "case 1: name: no text"),
        ('name = "incast"', 'name = "incast"\ntitel = 1', "case 1: case.titel: unknown key"),
        ('name = "incast"', 'name = "incast"\ntitle = 1', "case incast: title: no text"),
        ('name = "incast"', 'name = "incast"\ngroup = []', "case incast: group: no text"),
        ('name = "incast"', 'name = "incast"\nquick = 3', "case incast: quick is no table"),
        ("small.toml", "bad.toml", "case incast: file: "),
    ],
)
def test_a_wrong_arena_is_refused_when_it_is_read(
    folder: Path, old: str, new: str, message: str
) -> None:
    (folder / "bad.toml").write_text("[fabric]\nhost = 4\n")
    (folder / "arena.toml").write_text(ONE_CASE.replace(old, new))
    with pytest.raises(silvan.ScenarioError) as caught:
        read_arena(folder / "arena.toml")
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{folder / 'arena.toml'}: ")
    if "objective" in str(caught.value) and "no text" not in str(caught.value):
        assert "The reference page Measures" in str(caught.value.hint) or "maximize" in str(
            caught.value.hint
        )


def test_an_error_in_a_scenario_of_a_case_keeps_its_own_place(folder: Path) -> None:
    (folder / "small.toml").write_text(SMALL.replace("hosts = 8", "hosts = eight"))
    (folder / "arena.toml").write_text(ARENA)
    with pytest.raises(silvan.ScenarioError, match=r"case incast: file: .*small\.toml:3: "):
        read_arena(folder / "arena.toml")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _: [], "it has no numbers of a run"),
        (lambda read: {**read, "numbers": []}, "it has no numbers of a run"),
        (lambda read: {"numbers": read["numbers"]}, "it has no numbers of a run"),
        (lambda read: {**read, "processor_s": 0}, "processor_s is no number above 0"),
        (lambda read: {**read, "processor_s": "1"}, "processor_s is no number above 0"),
        (lambda read: _with(read, packet_hops=None), "packet_hops is missing"),
        (
            lambda read: _with(read, other_receivers_gbps="a lot"),
            "other_receivers_gbps is no number",
        ),
        (lambda read: _with(read, fairness=[1.0]), "fairness is no number"),
        (lambda read: _with(read, series={}), "it has no numbers of a run"),
        # A check cannot know the measured values themselves, only their names and kinds.
        (lambda read: _without(read, "other_latency_mean_us"), "not those that were written"),
        (lambda read: _with(read, other_latency_mean_us=-3.0), "not those that were written"),
        (lambda read: {**read, "digest": None}, "not those that were written"),
        (lambda read: _with_series(read, times_ms=[1.0]), "its series are of different lengths"),
        (lambda read: _with_series(read, tree_ports=["1"]), "something that is no number"),
    ],
)
def test_a_kept_run_that_is_something_else_is_named(
    folder: Path, change: Callable[[Any], Any], message: str
) -> None:
    """Oracle: a file of the store is read, and is not with any of its parts changed."""
    arena = read_arena(folder / "arena.toml")
    (run,) = prepared(arena.cases[0], {}, [1])
    written = Measured(numbers(silvan.run(run.scenario)), 0.5)
    Store(folder).keep(run, written)
    (path,) = folder.glob("*/*.json")
    assert Store(folder).get(run) == written
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(silvan.OutputError, match=f"not readable: .*{message}") as caught:
        Store(folder).get(run)
    assert str(caught.value).startswith(str(path))
    assert "remove this file" in str(caught.value.hint)


def test_a_kept_run_with_endless_lists_is_named(folder: Path) -> None:
    arena = read_arena(folder / "arena.toml")
    (run,) = prepared(arena.cases[0], {}, [1])
    store = Store(folder)
    (folder / build_id() / f"{run.key}.json").write_text("[" * 100_000)
    with pytest.raises(silvan.OutputError, match="not readable"):
        store.get(run)


def test_all_kept_runs_that_cannot_be_read_are_named_at_once(
    command: Command, folder: Path
) -> None:
    """Oracle: the files that were damaged; without them the command ends."""
    words = ("compare", folder / "arena.toml", "--arena", "--schemes", "none", "--out", folder)
    assert command(*words, "--seeds", "3").status == 0
    # The run with the first seed is needed before all others.
    damaged = sorted(folder.glob("arena-one/runs/*/*-seed-[23].json"))
    for path in damaged:
        path.write_text("{")
    done = command(*words, "--seeds", "3")
    assert done.status == 2
    assert "2 files in all" in done.stderr
    hint = done.stderr[done.stderr.index("rm ") :].split()
    assert sorted(hint[1:3]) == [str(path) for path in damaged]
    for path in damaged:
        path.unlink()
    assert command(*words, "--seeds", "3").status == 0


def _with(read: dict[str, Any], **values: object) -> dict[str, Any]:
    return {**read, "numbers": {**read["numbers"], **values}}


def _without(read: dict[str, Any], name: str) -> dict[str, Any]:
    return {**read, "numbers": {key: one for key, one in read["numbers"].items() if key != name}}


def _with_series(read: dict[str, Any], **values: object) -> dict[str, Any]:
    return _with(read, series={**read["numbers"]["series"], **values})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--scheduler", "tcp://"], "tcp:// has no host and port"),
        (["--scheduler", "tcp://login1"], "tcp://login1 has no host and port"),
        (["--scheduler", "tcp://login1:0"], "tcp://login1:0 has no host and port"),
        (["--scheduler", "tcp://:8786"], "tcp://:8786 has no host and port"),
        (["--scheduler", "foo://login1:8786"], "unknown address scheme 'foo'"),
        (["--scheduler", "tcp://login1:99999"], "tcp://login1:99999 has no host and port"),
        (["--set", "run.seed=7"], "an arena states its seeds hint: --seeds N"),
        (["--set", "control.scheme=hpcc"], "an arena runs all schemes hint: --schemes"),
        (["--set", "run.threads=2"], "each run of an arena has one thread"),
        (["--schemes", "a.py,b.py"], "one Python file at a time can take part"),
        (["--run-timeout", "9" * 30 + " h"], "is more than 8760 h"),
        (["--run-timeout", "9" * 400 + " s"], "is more than 8760 h"),
        (["--run-timeout", "8760.1 h"], "is more than 8760 h"),
        (["--seeds", "1000000000"], "1000000000 runs; at most 100000 are supported"),
        (["--schemes", ":mine"], "names no file"),
        (["--schemes", "a\x1b[31m.py"], "has characters that cannot be shown"),
    ],
)
def test_a_scheduler_or_a_time_that_cannot_be_is_refused(
    command: Command, folder: Path, words: list[str], message: str
) -> None:
    done = command("compare", folder / "arena.toml", "--arena", "--out", folder, *words)
    assert done.status == 2
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_a_long_time_is_waited_for_in_parts() -> None:
    """Oracle: the system counts a wait in milliseconds with 31 bits, and a year has more."""
    with Pool(1) as pool:
        pool.submit(1, echo, "hello")
        assert pool.wait(8760 * 3600.0) == [Returned(1, "hello")]


def test_what_a_scheme_prints_is_no_part_of_the_output(process: Command, folder: Path) -> None:
    text = HALF.read_text().replace("    rate = ", "    print('hello')\n    rate = ", 1)
    (folder / "chatty.py").write_text(text)
    words = ("--arena", "--out", folder, "--json", "--workers", "1")
    done = process("compare", folder / "arena.toml", *words, "--schemes", folder / "chatty.py")
    assert done.status == 0, done.stderr
    assert [row["scheme"] for row in json.loads(done.stdout)] == ["none", "chatty.py"]
    assert "hello\n" in done.stderr


BROKEN = {
    "syntax.py": ("def scheme(setup):\n  return (\n", "syntax.py:2: "),
    "missing.py": ("def other(setup):\n    return None\n", "there is no function 'scheme'"),
    "imports.py": ("import silvan_of_tomorrow\n", "imports.py:1: ModuleNotFoundError"),
    "leaves.py": ("import os\nos._exit(3)\n", "the file ended its process (status 3)"),
    "nothing.py": ("def scheme(setup):\n    return None\n", "gives NoneType"),
}


@pytest.mark.parametrize("file", BROKEN)
@pytest.mark.parametrize("plan", [False, True])
def test_a_broken_python_file_is_found_before_anything_runs(
    folder: Path, file: str, plan: bool
) -> None:
    """Oracle: the error of the file, and an empty folder of runs."""
    text, message = BROKEN[file]
    (folder / file).write_text(text)
    arena = read_arena(folder / "arena.toml")
    added: dict[str, Any] = {
        "control.scheme": "python",
        "control.python.file": str(folder / file),
        "control.python.function": "scheme",
    }
    arenas = (arena, arena) if plan else (arena,)
    make: Callable[..., object] = plan_arena if plan else run_arena
    with pytest.raises(silvan.SchemeError) as caught:
        make(*arenas, folder / "runs", ["none"], added=added, workers=1)
    assert message in str(caught.value)
    assert not list(folder.rglob("*.json"))


def test_runs_of_all_schemes_are_counted_before_any_is_prepared(folder: Path) -> None:
    arena = replace(read_arena(folder / "arena.toml"), seeds=tuple(range(2000, 52_000)))
    for make in (run_arena, lambda *words: plan_arena(arena, *words)):
        with pytest.raises(silvan.ScenarioError, match="100000 are supported"):
            make(arena, folder / "runs", ["hpcc", "nscc"])
    assert not (folder / "runs").exists()


def test_a_file_that_takes_too_long_is_no_error(folder: Path) -> None:
    """Oracle: it never ends, and may be slow in this case only."""
    (folder / "endless.py").write_text("while True:\n    pass\n")
    added = {"control.scheme": "python", "control.python.file": str(folder / "endless.py")}
    arena = read_arena(folder / "arena.toml")
    (case,) = arena.cases
    require_python_scheme(arena, {case.name: fitting(case.scenario, added).every}, 1.0)


def test_schemes_are_set_up_for_runs_of_any_length(folder: Path) -> None:
    """Oracle: the checks of the scenario with each scheme's settings."""
    scenario = silvan.Scenario.from_file(folder / "small.toml")
    has_dcms = []
    for nanoseconds in (1, 1000, 1124, 2174, 2175, 2200, 2300, 3350, 5000, 100_000):
        length = {"run.warm-up": "0 s", "run.duration": f"{nanoseconds} ns"}
        short = scenario.override(length)
        found = fitting(short)
        for one in found.every:
            short.override(one.overrides)
        names = {one.name for one in found.every}
        assert ("ib-cc+dcms" in found.unsuited) != ("ib-cc+dcms" in names)
        has_dcms.append("ib-cc+dcms" in names)
    # 50 sweeps of 44 ns, rounded to whole nanoseconds.
    assert has_dcms == [False] * 4 + [True] * 6
