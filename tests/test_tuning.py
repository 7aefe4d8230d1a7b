"""Searches: known optima, equal seeds, killed and repeated, and what is refused."""

from __future__ import annotations

import itertools
import json
import math
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import silvan
from silvan.comparing.tuning.expression import Expression
from silvan.comparing.tuning.opensm_conf import OpensmSettings, as_opensm_sets
from silvan.comparing.tuning.search import Found, search
from silvan.comparing.tuning.space import POWER, SLOPE, Parameter, Space, cct_entries, cct_entry
from silvan.comparing.tuning.tune import OBJECTIVE, Objective, tune
from silvan.errors import OutputError, ScenarioError, SilvanError
from silvan.sweeping.store import read_rows
from tests.conftest import DDR_TOML, Command, silvan_command
from tests.gate import PATIENCE_S

pytestmark = pytest.mark.usefixtures("inline_pool")

HOTSPOT = f"""\
name = "hotspot"
[fabric]
generator = "leaf-spine"
leaf-hosts = [3, 3]
spine-cables = [1]
{DDR_TOML}
[traffic.nodes]
v = 0.2
c = 0.8
hotspots = 1
[run]
duration = "200 us"
"""
PLANE = Space((Parameter("x", -5, 5), Parameter("y", 0.01, 100, log=True)))
START = {"x": -4.0, "y": 50.0}


def bowl(drawn: Sequence[Mapping[str, float]]) -> list[tuple[float]]:
    """Give a formula with its least value, 0, at x = 2 and y = 1."""
    return [((one["x"] - 2) ** 2 + math.log10(one["y"]) ** 2,) for one in drawn]


def found(trials: int = 80, seed: int = 1, **options: Any) -> Found:
    return search(PLANE, bowl, ["minimize"], start=START, trials=trials, seed=seed, **options)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_optimum_of_a_formula_is_found(seed: int) -> None:
    result = found(seed=seed)
    assert result.trials[0].drawn == START
    assert result.best.objectives[0] == min(one.objectives[0] for one in result.trials)
    assert result.best.objectives[0] < 0.1
    assert result.best.drawn["x"] == pytest.approx(2, abs=0.35)


def test_the_parameter_that_matters_is_the_important_one() -> None:
    def steep(drawn: Sequence[Mapping[str, float]]) -> list[tuple[float]]:
        return [(one["x"] ** 2,) for one in drawn]

    result = search(PLANE, steep, ["minimize"], start=START, trials=80, seed=1)
    assert result.importance["x"] > 0.9
    assert sum(result.importance.values()) == pytest.approx(1)


def test_several_objectives_have_their_front() -> None:
    def schaffer(drawn: Sequence[Mapping[str, float]]) -> list[tuple[float, float]]:
        return [(one["x"] ** 2, (one["x"] - 2) ** 2) for one in drawn]

    line = Space((Parameter("x", -5, 5),))
    result = search(line, schaffer, ["minimize"] * 2, start={"x": -4}, trials=200, seed=1)
    front = [result.trials[number] for number in result.front]
    # By brute force over all trials, and by the formula: x from 0 to 2.
    unbeaten = {
        one.number
        for one in result.trials
        if not any(
            other.objectives != one.objectives
            and all(a <= b for a, b in zip(other.objectives, one.objectives, strict=True))
            for other in result.trials
        )
    }
    assert set(result.front) == unbeaten
    assert [one.objectives[0] for one in front] == sorted(one.objectives[0] for one in front)
    inside = [one for one in front if -0.2 <= one.drawn["x"] <= 2.2]
    assert len(inside) >= 10
    assert len(inside) >= 0.9 * len(front)


def test_equal_seeds_try_equal_values_and_more_trials_begin_alike() -> None:
    assert found(30).trials == found(30).trials
    assert found(60).trials[:30] == found(32).trials[:30]
    assert found(30, seed=2).trials[1:] != found(30).trials[1:]


def test_trials_that_fail_are_left_out() -> None:
    def half(drawn: Sequence[Mapping[str, float]]) -> list[tuple[float] | None]:
        return [None if one["x"] > 0 else (one["x"] ** 2,) for one in drawn]

    result = search(PLANE, half, ["minimize"], start=START, trials=40, seed=1)
    assert all(bool(one.objectives) == (one.drawn["x"] <= 0) for one in result.trials)
    assert result.best.drawn["x"] <= 0


def test_the_time_limit_ends_a_search_after_a_batch() -> None:
    assert len(found(100, timeout_s=0).trials) == 4


def test_entries_of_the_table_are_the_nearest_that_it_can_have() -> None:
    possible = {
        multiplier / 2**shift
        for shift in range(4)
        for multiplier in itertools.chain(range(2000), range(16300, 16384))
    }
    for delay in (0, 0.01, 0.0625, 0.0626, 0.3, 0.95, 1, 7.77, 120.65, 249.96):
        shift, multiplier = cct_entry(delay)
        assert 0 <= shift <= 3
        assert abs(multiplier / 2**shift - delay) == pytest.approx(
            min(abs(one - delay) for one in possible)
        )
    line = [multiplier / 2**shift for shift, multiplier in cct_entries(0.95, 1, 127)]
    assert line == pytest.approx([0.95 * index for index in range(128)], abs=1 / 16)
    bent = [multiplier / 2**shift for shift, multiplier in cct_entries(0.85, 0.8, 127)]
    assert bent[0] == 0
    assert bent[127] == pytest.approx(0.85 * 127, abs=1 / 16)
    assert bent[64] > 0.85 * 64
    assert bent == sorted(bent)


def test_a_straight_table_simulates_as_the_linear_one() -> None:
    one = silvan.Scenario.from_toml(HOTSPOT, overrides={"control.scheme": "ib-cc"})
    space = Space((Parameter(SLOPE, 0.1, 4), Parameter(POWER, 0.5, 2)))
    values = space.overrides({SLOPE: 0.7, POWER: 1.0})
    given = one.override({"control.ib-cc.adapter.cct": values["control.ib-cc.adapter.cct"]})
    linear = one.override({"control.ib-cc.adapter.cct": {"shape": "linear", "slope": 0.7}})
    assert silvan.run(given).hosts.equals(silvan.run(linear).hosts)
    assert OpensmSettings.of(given) == OpensmSettings.of(linear)


def test_lines_for_opensm_are_the_settings() -> None:
    one = silvan.Scenario.from_toml(
        HOTSPOT,
        overrides={
            "control.scheme": "ib-cc",
            "control.ib-cc.switch.threshold": 9,
            "control.ib-cc.switch.marking-rate": 31,
            "control.ib-cc.adapter.ccti-timer": 77,
            "control.ib-cc.adapter.ccti-limit": 3,
            "control.ib-cc.adapter.cct": {"shape": "geometric", "first": 1.0, "ratio": 2.0},
        },
    )
    lines = OpensmSettings.of(one).to_conf().splitlines()
    # Hosts are at the ports 1 to 3 of the leaves.
    assert "cc_sw_cong_setting_victim_mask 0xe" in lines
    assert "cc_sw_cong_setting_threshold 0x09" in lines
    assert "cc_sw_cong_setting_marking_rate 31" in lines
    assert "cc_ca_cong_setting_ccti_timer 15 77" in lines
    assert "cc_cct 0:0,3:8,3:16,3:32" in lines
    # The spine has leaves at its ports 1 and 2: one mask for all switches covers them as well.
    (entries,) = as_opensm_sets(one).values()
    assert entries == [{"switch": "spine-00", "port": port, "victim-mask": True} for port in (1, 2)]
    long = silvan.Scenario.from_toml(HOTSPOT, overrides={"control.ib-cc.adapter.ccti-limit": 128})
    with pytest.raises(ScenarioError, match="OpenSM sets at most 128 entries"):
        OpensmSettings.of(long)


def tuned(out: Path, trials: int = 12, **options: Any) -> Any:
    one = silvan.Scenario.from_toml(HOTSPOT)
    goals = [Objective.parse(OBJECTIVE)]
    return tune(one, goals, out=out, trials=trials, seeds=2, held_out_seeds=2, **options)


def test_what_is_finished_is_not_run_again(tmp_path: Path) -> None:
    first = tuned(tmp_path / "out", 8)
    assert first.runs > 8 * 2
    again = tuned(tmp_path / "out", 8)
    assert again.runs == 0
    assert again.to_dict() == first.to_dict()
    longer = tuned(tmp_path / "out", 12)
    assert longer.found.trials[:8] == first.found.trials
    assert 0 < longer.runs <= 4 * 2 + 2


def test_scores_are_those_of_runs_made_apart(tmp_path: Path) -> None:
    result = tuned(tmp_path / "out", 4)

    one = silvan.Scenario.from_toml(HOTSPOT, overrides={"control.scheme": "none"})
    rates = [silvan.run(one, seed=seed).measures for seed in (3, 4)]
    for name, value in result.held_out["off"].measures.items():
        assert value == pytest.approx(sum(rate[name] for rate in rates) / 2)
    off = result.held_out["off"]
    assert off.objectives[0] == pytest.approx(off.measures["other_receivers_gbps"], rel=0.05)


def test_another_search_is_not_mixed_in(tmp_path: Path) -> None:
    tuned(tmp_path / "out", 4)
    with pytest.raises(OutputError, match="the search there has other values of "):
        tuned(tmp_path / "out", 4, seed=2)
    tuned(tmp_path / "out", 4, seed=2, overwrite=True)


def test_settings_that_do_not_hold_elsewhere_are_not_written(tmp_path: Path) -> None:
    one = silvan.Scenario.from_toml(HOTSPOT)
    # No settings change what the start gets of this.
    result = tune(
        one, [Objective.parse("maximize 1 + 0 * total_gbps")], out=tmp_path / "out", trials=4
    )
    assert not result.is_better
    assert result.files == ()
    assert not (tmp_path / "out" / "opensm.conf").exists()


STEEP = 'control.ib-cc.adapter.cct={shape="linear",slope=3.0}'


def steep(file: Path, out: Path, *goals: str) -> tuple[str | Path, ...]:
    """Return a search in which congestion control starves the hotspot with all settings."""
    file.write_text(HOTSPOT)
    words: list[str | Path] = ["tune", file, "--trials", "8", "--out", out, "--set", STEEP]
    words += ["--set", "control.scheme=ib-cc+table1"]
    words += ["--vary", "control.ib-cc.adapter.ccti-timer=40..600"]
    words += ["--seeds", "2", "--held-out-seeds", "2"]
    for goal in goals:
        words += ["--objective", goal]
    return tuple(words)


def hotspot_gbps(overrides: Mapping[str, Any]) -> float:
    """Give the rate of the hotspot on the seeds held out."""

    one = silvan.Scenario.from_toml(HOTSPOT, overrides=overrides)
    rates = [silvan.run(one, seed=seed).measures["hotspots_gbps"] for seed in (3, 4)]
    assert None not in rates
    return sum(rates) / 2


def test_settings_that_are_worse_than_none_are_not_written(
    tmp_path: Path, command: Command
) -> None:
    """Oracle: runs made apart, with the settings found, those before, and without any."""
    words = steep(tmp_path / "hotspot.toml", tmp_path / "out", "maximize hotspots_gbps")
    done = command(*words, "--json")
    assert done.status == 0, done.stderr
    found = json.loads(done.stdout)
    timer = "control.ib-cc.adapter.ccti-timer"
    start = {
        "control.scheme": "ib-cc+table1",
        "control.ib-cc.adapter.cct": {"shape": "linear", "slope": 3.0},
    }
    off = hotspot_gbps({"control.scheme": "none"})
    tuned, before = hotspot_gbps({**start, timer: found["settings"][timer]}), hotspot_gbps(start)
    assert before < tuned < off
    assert found["verdicts"] == {"start": ["better"], "off": ["worse"]}
    warning = (
        "warning: on the seeds held out the tuned settings are worse than congestion control off: "
        f"{tuned:.4g} and {off:.4g}"
    )
    assert found["comparisons"][1] == warning
    assert json.loads((tmp_path / "out" / "tune.json").read_text())["comparisons"][1] == warning
    assert not found["is_better"]
    for name in ("opensm.conf", "tuned.toml"):
        (tmp_path / "out" / name).write_text("of a shorter search")
    shown = command(*words).stderr.splitlines()
    assert warning in shown
    assert shown[-1] == (
        "nothing written: the settings found are not better than congestion control off"
    )
    assert not (tmp_path / "out" / "opensm.conf").exists()
    assert not (tmp_path / "out" / "tuned.toml").exists()


def test_files_say_where_settings_are_worse_than_none(tmp_path: Path, command: Command) -> None:
    goals = ("maximize hotspots_gbps", "maximize min(3, other_receivers_gbps)")
    done = command(*steep(tmp_path / "hotspot.toml", tmp_path / "out", *goals), "--json")
    assert done.status == 0, done.stderr
    found = json.loads(done.stdout)
    # The table of scores has what the verdicts are about.
    score = {name: one["objectives"] for name, one in found["held_out"].items()}
    assert score["start"][0] < score["tuned"][0] < score["off"][0]
    assert score["off"][1] < score["tuned"][1] == score["start"][1] == 3
    assert found["verdicts"] == {"start": ["better", "equal"], "off": ["worse", "better"]}
    assert found["is_better"]
    warning = (
        "warning: on the seeds held out the tuned settings are worse than congestion control off "
        f"in objective 1, {goals[0]}: {score['tuned'][0]:.4g} and {score['off'][0]:.4g}"
    )
    assert warning in done.stderr.splitlines()
    for name in ("opensm.conf", "tuned.toml"):
        lines = (tmp_path / "out" / name).read_text().splitlines()
        comments = list(itertools.takewhile(lambda line: line.startswith("#"), lines))
        assert f"# {warning}" in comments
        assert len(comments) == 1 + len(found["comparisons"])
    silvan.Scenario.from_file(tmp_path / "out" / "tuned.toml")


def test_any_trial_can_be_picked(tmp_path: Path) -> None:
    goals = [
        Objective.parse("maximize other_receivers_gbps"),
        Objective.parse("maximize hotspots_gbps"),
    ]
    one = silvan.Scenario.from_toml(HOTSPOT)
    result = tune(one, goals, out=tmp_path / "out", trials=8, pick=5)
    assert result.picked.number == 5
    assert {row["number"] for row in result.front} == set(result.found.front)
    with pytest.raises(SilvanError, match="there is no trial 99"):
        tune(one, goals, out=tmp_path / "out", trials=8, pick=99)


@pytest.mark.slow
@pytest.mark.needs("strace")
def test_a_killed_search_ends_as_one_that_was_not(tmp_path: Path) -> None:
    file = tmp_path / "hotspot.toml"
    file.write_text(HOTSPOT)

    def words(out: str) -> list[str]:
        return silvan_command(
            *("tune", file, "--trials", "16", "--seeds", "2", "--workers", "1"),
            *("--out", tmp_path / out),
        )

    whole_run = subprocess.run(words("whole"), capture_output=True, timeout=PATIENCE_S)
    assert whole_run.returncode == 0
    for number, status in (
        (signal.SIGKILL, -signal.SIGKILL),
        (signal.SIGINT, 130),
        (signal.SIGKILL, -signal.SIGKILL),
    ):
        # The search replaces two files at its start, then one for each of more than 32 runs.
        tracer = ["strace", "-qq", "-o", str(tmp_path / "trace"), "-e", "trace=rename"]
        tracer += ["-e", f"inject=rename:signal={number.name}:when=7"]
        ended = subprocess.run([*tracer, *words("killed")], capture_output=True, timeout=PATIENCE_S)
        assert ended.returncode == status, ended.stderr
    done = subprocess.run(words("killed"), capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    for name in ("tune.json", "opensm.conf", "tuned.toml"):
        whole, after = (tmp_path / out / name for out in ("whole", "killed"))
        assert whole.exists() == after.exists()
        if whole.exists():
            assert whole.read_text() == after.read_text()
    keys = ["control.scheme"]
    runs = [set(read_rows(tmp_path / out, keys)) for out in ("whole", "killed")]
    assert runs[0] == runs[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--objective", "other_receivers_gbps"), "begins with neither maximize nor minimize"),
        (("--objective", "maximize __import__('os')"), "cannot be part of a formula"),
        (("--objective", "maximize x.__class__()"), "cannot be part of a formula"),
        (("--objective", "maximize nonsense"), "a run has no measure nonsense"),
        (("--objective", "maximize 1 / 0"), "1 / 0 divides by 0"),
        (("--objective", "maximize on.x / (2 - 2)"), "divides by 0"),
        (("--objective", "maximize 1 +"), "is no formula"),
        (("--vary", "cct-slope"), "is not of the form KEY=RANGE"),
        (("--vary", "cct-slope=5..1"), "is empty"),
        (("--vary", "no.such.key=1..2"), "no.such.key: the scenario has no such key"),
        (("--vary", "control.ib-cc.adapter.ccti-limit=1..10"), "outside of 1 to 10"),
        (("--scheduler", "moon"), "is no scheduler"),
        (
            ("--set", 'control.ib-cc.port=[{switch="leaf-00",threshold=3}]'),
            "OpenSM sets all ports alike",
        ),
        (("--timeout", "soon"), "is not a time"),
        (("--pick", "1"), "Invalid value for --pick: there is no search in "),
    ],
)
def test_a_wrong_search_is_refused(
    tmp_path: Path, command: Command, words: tuple[str, ...], message: str
) -> None:
    file = tmp_path / "hotspot.toml"
    file.write_text(HOTSPOT)
    done = command("tune", file, "--trials", "2", "--out", tmp_path / "out", *words)
    assert done.status == 2, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_measure_leaves_no_search_behind(tmp_path: Path, command: Command) -> None:
    file = tmp_path / "hotspot.toml"
    file.write_text(HOTSPOT)
    words = ("tune", file, "--trials", "1", "--seeds", "1", "--out", tmp_path / "out")
    refused = command(*words, "--objective", "maximize bogus_gbps")
    assert refused.status == 2
    assert "a run has no measure bogus_gbps" in refused.stderr
    assert not (tmp_path / "out").exists(), "nothing was run or written"
    corrected = command(*words, "--objective", "maximize total_gbps")
    assert corrected.status == 0, corrected.stderr
    other = command(*words, "--objective", "maximize hotspots_gbps")
    assert other.status == 2
    assert "the search there has other values of objectives" in other.stderr


def test_commands_print_what_they_found(tmp_path: Path, command: Command) -> None:
    file = tmp_path / "hotspot.toml"
    file.write_text(HOTSPOT)
    goals = (
        "--objective",
        "maximize other_receivers_gbps",
        "--objective",
        "maximize hotspots_gbps",
    )
    words = ("tune", file, "--trials", "8", "--seeds", "1", "--out", tmp_path / "out", *goals)
    shown = command(*words)
    assert shown.status == 0, shown.stderr
    assert "Pareto front" in shown.stdout
    found = json.loads(command(*words, "--json").stdout)
    assert len(found["trials"]) == 8
    assert found["seeds_place"]


def test_formulas_compute_what_python_computes() -> None:
    numbers = {"a": 1.5, "b.c": 4.0, "d": 0.0, "e": None}
    for text, value in (
        ("a + b.c * 2", 9.5),
        ("-(a - b.c) / 5", 0.5),
        ("min(a, b.c, 1) + max(2, a)", 3.0),
        ("a / d", None),
        ("e + 1", None),
    ):
        assert Expression.parse(text, "here").value(numbers) == value
    for text in ("a if a else 1", "a[0]", "f(a)", "'a'", "True", "a ** 2", "min()", "lambda: a"):
        with pytest.raises(ScenarioError, match="here: "):
            Expression.parse(text, "here")
