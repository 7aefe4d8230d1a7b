"""The arena: what it consists of, what is measured and judged, and the command."""

from __future__ import annotations

import csv
import json
import math
import re
import shlex
import statistics
from dataclasses import replace
from pathlib import Path

import pytest

import silvan
from silvan._silvan import schemes
from silvan.comparing.arena import Arena, ArenaResult, arena_runs, read_arena, run_arena
from silvan.comparing.arena.figure import draw_arena, percent
from silvan.comparing.arena.judge import interval
from silvan.comparing.arena.run import Runner, _tune_one, prepared, taking_part
from silvan.comparing.arena.store import Store
from silvan.comparing.baselines import fitting
from silvan.comparing.comparison import compare, with_probes
from silvan.comparing.tuning.settings import search_of
from silvan.comparing.tuning.space import Searched, searches
from silvan.execution.cache import build_id
from silvan.viewer.arena import _shares, losses
from tests.conftest import Command
from tests.test_guide import ROOT

pytestmark = pytest.mark.usefixtures("inline_pool")

SMALL = """\
[fabric]
generator = "single-switch"
hosts = 8
[link]
speed = "EDR"
[switch]
buffer = "64 KiB"
[host]
receive-buffer = "16 KiB"
[packet]
mtu = "2 KiB"
[[traffic.incast]]
to = "host-0000"
from = ["host-0001", "host-0002", "host-0003"]
[[traffic.flow]]
from = "host-0001"
to = "host-0005"
load = 0.5
[run]
warm-up = "100 us"
duration = "200 us"
"""

ARENA = """\
name = "small"
seeds = [1, 2, 3]
[tuning]
trials = 5
seeds = [11]
[[case]]
name = "incast"
file = "small.toml"
group = "100G"
tune = true
objective = "maximize other_receivers_gbps * min(1, hotspot_utilisation / 0.95)"
[[case]]
name = "slower"
file = "small.toml"
group = "100G"
objective = "minimize other_latency_mean_us"
set = { "traffic.flow.0.load" = 0.2 }
quick = { "run.warm-up" = "50 us", "run.duration" = "100 us" }
"""


def results(out: Path) -> Path:
    """Find the folder of what the only command with this output folder has written."""
    (path,) = out.glob("arena-*/**/arena.html")
    return path.parent


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("arena")
    (folder / "small.toml").write_text(SMALL)
    (folder / "arena.toml").write_text(ARENA)
    return folder / "arena.toml"


@pytest.fixture(scope="module")
def arena(file: Path) -> Arena:
    return read_arena(file)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def result(arena: Arena, root: Path) -> ArenaResult:
    return run_arena(arena, root, ["ecn+lipd", "hpcc"], workers=1)


def test_published_settings_measure_what_compare_measures(
    arena: Arena, result: ArenaResult, tmp_path: Path
) -> None:
    one = arena.cases[0]
    ranking = compare(one.scenario, ["ecn+lipd", "hpcc"], seeds=3, out=tmp_path)
    entries = {
        entry.baseline.name: entry
        for entry in result.entries
        if entry.case == "incast" and entry.settings == "published"
    }
    assert [row.baseline.name for row in ranking] == ["none", "ecn+lipd", "hpcc"]
    names = (
        "other_receivers_gbps",
        "hotspot_utilisation",
        "fairness",
        "other_latency_mean_us",
        "control_packets",
    )
    for row in ranking:
        for name in names:
            assert entries[row.baseline.name].numbers[name] == pytest.approx(row.numbers[name])


def test_intervals_and_objectives_follow_from_the_seeds(
    arena: Arena, result: ArenaResult, tmp_path: Path
) -> None:
    hpcc = next(one for one in fitting(arena.cases[0].scenario).every if one.name == "hpcc")
    values = []
    for seed in arena.seeds:
        ranking = compare(
            arena.cases[0].scenario.override({"run.seed": seed}), ["hpcc"], out=tmp_path
        )
        numbers = ranking[1].numbers
        values.append(
            numbers["other_receivers_gbps"] * min(1, numbers["hotspot_utilisation"] / 0.95)
        )
    entry = next(one for one in result.entries if (one.case, one.label) == ("incast", hpcc.name))
    assert entry.objective == pytest.approx(statistics.fmean(values))
    # Student's t with two degrees of freedom.
    assert entry.objective_interval == pytest.approx(4.303 * statistics.stdev(values) / 3**0.5)


def test_intervals_are_those_of_students_t() -> None:
    # 95 % two-sided: 12.706 with one degree of freedom, 2.776 with four.
    assert interval([0.0, 1.0]) == pytest.approx(12.706 * math.sqrt(0.5) / math.sqrt(2))
    assert interval([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(2.776 * math.sqrt(2.5 / 5))
    assert math.isnan(interval([1.0]))
    assert math.isnan(interval([1.0, math.inf]))


def test_shares_are_relative_to_the_best(result: ArenaResult) -> None:
    for case, better in (("incast", max), ("slower", min)):
        entries = [one for one in result.entries if one.case == case]
        best = better(one.objective for one in entries)
        for one in entries:
            ratio = one.objective / best
            assert one.share == pytest.approx(ratio if better is max else 1 / ratio)
        assert max(one.share for one in entries) == 1


def test_finished_runs_are_not_made_again(arena: Arena, root: Path, result: ArenaResult) -> None:
    again = run_arena(arena, root, ["ecn+lipd", "hpcc"], workers=1)
    assert again.made == 0
    assert again.settings == result.settings
    assert [one.to_dict() for one in again.entries] == [one.to_dict() for one in result.entries]
    # Only the unfinished runs of a killed arena are made.
    files = sorted((root / build_id()).glob("*.json"))
    for path in files[::4]:
        path.unlink()
    once_more = run_arena(arena, root, ["ecn+lipd", "hpcc"], workers=1)
    assert once_more.made == len(files[::4])

    def without_speed(one: object) -> object:
        assert isinstance(one, dict)
        return {key: value for key, value in one.items() if key != "packet_hops_per_s"}

    assert [without_speed(one.to_dict()) for one in once_more.entries] == [
        without_speed(one.to_dict()) for one in result.entries
    ]


def test_tuned_settings_are_at_least_as_good_where_they_are_tuned(
    arena: Arena, result: ArenaResult
) -> None:
    case = arena.cases[0]
    found = result.settings.get("100G", {})
    assert found, "five trials find better settings for one of the two schemes"
    for name, settings in found.items():
        one = next(each for each in fitting(case.scenario).every if each.name == name)
        reached = []
        for values in ({}, settings):
            scenario = with_probes(case.scenario.override({**one.overrides, **values}))
            numbers = _numbers(silvan.run(scenario, seed=arena.tuning_seeds[0]))
            reached.append(
                numbers["other_receivers_gbps"] * min(1, numbers["hotspot_utilisation"] / 0.95)
            )
        assert reached[1] > reached[0]


def _numbers(result: silvan.Result) -> dict[str, float]:
    from silvan.comparing.arena.measure import numbers

    return numbers(result)


@pytest.mark.slow
def test_every_parameter_that_is_searched_starts_from_the_published_value() -> None:
    tuned = [case.scenario for case in read_arena().cases if case.is_tuned]
    # Some have keys of Table I of gran2012 in their file, others leave them to defaults.
    assert len(tuned) == 3
    for scenario in tuned:
        declared = {name for name, _ in schemes() if searches(name)}
        # The worked example has no published settings.
        assert _searched(scenario) == declared - {"half"}
        # All others map each flow to a lane, and have nothing to set.
        chosen = {one.name: scenario.override(one.overrides) for one in fitting(scenario).every}
        without = {name for name, one in chosen.items() if search_of(one) is None}
        assert without == {"none", "vftree", "flow2sl", "dbbm", "obqa"}


def test_published_settings_that_cannot_be_tried_are_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Oracle: the slope of a CCT without its shape, which a scenario refuses."""

    def alone(scheme: str) -> list[Searched]:
        return [replace(one, beside=None) for one in searches(scheme)]

    monkeypatch.setattr("silvan.comparing.tuning.settings.searches", alone)
    arena = read_arena().only(["training"])
    none, scheme = taking_part(arena.cases[0], ["ib-cc"]).sides
    runner = Runner(Store(tmp_path), "local", 1, None, lambda _: None)
    with pytest.raises(silvan.ScenarioError, match=r"cct\.shape: missing key"):
        _tune_one(runner, arena, arena.cases[0], scheme, none)
    assert runner.made == 0


def _searched(scenario: silvan.Scenario) -> set[str]:
    """Return the schemes of which something is searched, after a look at where searches start."""
    searched = set()
    of_variant = {one["name"]: one["scheme"] for one in scenario.scheme_variants()}
    for one in fitting(scenario).every:
        search = search_of(scenario.override(one.overrides))
        if search is None:
            continue
        published = scenario.override(one.overrides)
        started = published.override({**search.fixed, **search.space.overrides(search.start)})
        # At the start of a search, all values are equal: a scaled value is only written in other
        # units.
        assert started.hash == published.hash, one.name
        searched.add(of_variant[one.name])
    return searched


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('name = "slower"', 'name = "incast"'), "two cases have the name incast"),
        (("seeds = [11]", "seeds = [3]"), "tuning.seeds: 3 is one of seeds, too"),
        (("seeds = [1, 2, 3]", "seeds = [1, 1]"), "a seed is listed twice"),
        (("seeds = [1, 2, 3]", 'seeds = "1"'), "seeds: 1 is no list of seeds"),
        (("trials = 5", "trials = 0"), "tuning.trials: 0 is no number above 0"),
        (("trials = 5", "trails = 5"), "tuning.trails: unknown key"),
        (('file = "small.toml"', 'file = "other.toml"'), "other.toml"),
        (("maximize", "raise"), "begins with neither maximize nor minimize"),
        (("other_latency_mean_us", "import os"), "is no formula"),
        (('"traffic.flow.0.load" = 0.2', '"traffic.flow.0.lode" = 0.2'), "lode"),
        (('objective = "minimize', 'tune = true\nobjective = "minimize'), "two cases of the group"),
        (("tune = true", "tune = 1"), "tune is neither true nor false"),
        (("[[case]]", "[case]"), "TOML"),
    ],
)
def test_a_wrong_arena_is_refused_with_its_place(
    file: Path, tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    wrong = tmp_path / "arena.toml"
    wrong.write_text(file.read_text().replace(*change))
    with pytest.raises(silvan.ScenarioError) as caught:
        read_arena(wrong)
    assert message in str(caught.value)
    assert "arena.toml" in str(caught.value) or "other.toml" in str(caught.value)


def test_an_objective_of_what_is_not_measured_is_refused(file: Path, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    wrong = tmp_path / "arena.toml"
    wrong.write_text(file.read_text().replace("other_latency_mean_us", "slowdown_p99"))
    with pytest.raises(silvan.ScenarioError, match=r"case slower: .* no slowdown_p99") as caught:
        run_arena(read_arena(wrong, quick=True), tmp_path / "runs", ["ecn+lipd"], workers=1)
    assert "latency_p999_us" in str(caught.value.hint)
    assert "slowdown_p50" not in str(caught.value.hint)
    # One run without control shows it; the valid case has one, too.
    assert len(list((tmp_path / "runs").glob("*/*.json"))) == 2


def test_a_flow_that_is_not_finished_is_not_left_out(file: Path, tmp_path: Path) -> None:
    text = SMALL[: SMALL.index("[[traffic.incast]]")] + (
        '[[traffic.flow]]\nfrom = "host-0001"\nto = "host-0002"\nbytes = "100 kB"\n'
        '[[traffic.flow]]\nfrom = "host-0005"\nto = "host-0006"\nbytes = "100 kB"\n'
        '[[traffic.flow]]\nfrom = "host-0003"\nto = "host-0004"\nbytes = "10 MB"\n'
        '[run]\nduration = "100 us"\n'
    )
    numbers = _numbers(silvan.run(with_probes(silvan.Scenario.from_toml(text))))
    assert numbers["slowdown_p50"] == 1.0
    assert math.isinf(numbers["slowdown_p99"])
    assert math.isinf(numbers["flows_end_ms"])


@pytest.mark.slow
def test_every_link_of_every_case_can_carry_its_rate() -> None:
    """Both kinds of links are one fabric only if no buffer limits one of them."""
    for case in read_arena().cases:
        assert [one for one in case.scenario.warnings if " carry " in one] == [], case.name


# A case of each file.
DIFFERENT = (
    *("silent-forest", "incast-2", "gpcnet", "training", "web-search-30"),
    *("dragonfly-permutation", "slow-receiver", "two-tenants"),
)


@pytest.mark.slow
@pytest.mark.parametrize("chosen", [DIFFERENT, pytest.param((), marks=pytest.mark.nightly)])
def test_the_installed_arena_is_a_scenario_with_every_scheme(chosen: tuple[str, ...]) -> None:
    arena = read_arena()
    for case in arena.only(chosen, ["credits", "pfc"]).cases if chosen else arena.cases:
        for one in fitting(case.scenario).every:
            (run,) = prepared(case, one.overrides, [1])
            assert run.scenario.has_traffic
    # The reduction is independent of schemes.
    for case in read_arena(quick=True).cases:
        assert with_probes(case.scenario).has_traffic


@pytest.mark.slow
@pytest.mark.parametrize(
    "chosen",
    [
        # Cases whose run takes less than a second.
        ["incast-2", "slow-receiver"],
        pytest.param([], id="all", marks=pytest.mark.nightly),
    ],
)
def test_the_reduced_arena_runs(command: Command, tmp_path: Path, chosen: list[str]) -> None:
    words = ["--links", "credits,pfc", "--cases", ",".join(chosen)] if chosen else []
    done = command(
        "compare", "--arena", "--quick", "--schemes", "rccc", "--out", tmp_path, "--json", *words
    )
    assert done.status == 0, done.stderr
    rows = json.loads(done.stdout)
    # Each case is on links of two kinds.
    names = [one.name for one in read_arena().cases]
    cases = [name for name in names if not chosen or name.removesuffix("-pfc") in chosen]
    assert len(cases) == 2 * (len(chosen) or 20)
    assert len(rows) == 2 * len(cases)
    assert {row["case"] for row in rows} == set(cases)
    for row in rows:
        assert row["failure"] is None
        assert 0 < row["share_of_best"] <= 1, row


@pytest.mark.slow
def test_a_scheme_of_ones_own_takes_part_in_all_cases(
    command: Command, file: Path, tmp_path: Path
) -> None:
    own = ROOT / "examples" / "python-scheme" / "half.py"
    done = command(
        "compare", file, "--arena", "--quick", "--schemes", f"hpcc,{own}", "--out", tmp_path
    )
    assert done.status == 0, done.stderr
    folder = results(tmp_path)
    with (folder / "arena.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert {row["scheme"] for row in rows} == {"none", "hpcc", "half.py"}
    assert {row["case"] for row in rows if row["scheme"] == "half.py"} == {"incast", "slower"}
    assert "small: schemes in all cases" in (folder / "arena.html").read_text()
    facts = json.loads((folder / "arena.json").read_text())
    assert facts["seeds"] == [1]
    # The command that the page gives makes the same numbers.
    again = command(*shlex.split(facts["command"])[1:], "--out", tmp_path / "again")
    assert again.status == 0, again.stderr
    same = (results(tmp_path / "again") / "arena.csv").read_text()
    assert same == (folder / "arena.csv").read_text()


def test_an_arena_takes_the_place_of_no_other_one(
    command: Command, file: Path, tmp_path: Path
) -> None:
    """Oracle: the numbers in the folder, after another objective under the same name."""
    other = tmp_path / "other.toml"
    (tmp_path / "small.toml").write_text(SMALL)
    other.write_text(
        ARENA.replace("minimize other_latency_mean_us", "maximize other_receivers_gbps", 1)
    )
    words = ["--arena", "--quick", "--schemes", "hpcc", "--out", tmp_path / "out"]
    assert command("compare", file, *words).status == 0
    rows = results(tmp_path / "out") / "arena.csv"
    before = rows.read_text()
    refused = command("compare", other, *words)
    assert refused.status == 2
    assert "with the name 'small'" in refused.stderr
    assert "--overwrite" in refused.stderr
    assert rows.read_text() == before
    assert command("compare", file, *words).status == 0
    assert command("compare", other, *words, "--overwrite").status == 0
    assert rows.read_text() != before


def test_keys_are_set_in_cases_that_take_part(command: Command, tmp_path: Path) -> None:
    """Oracle: a key that only one of two generators has."""
    tree = SMALL.replace('"single-switch"\nhosts = 8', '"k-ary-n-tree"\nk = 2\nn = 3')
    (tmp_path / "small.toml").write_text(SMALL)
    (tmp_path / "tree.toml").write_text(tree)
    file = tmp_path / "two.toml"
    case = (
        '[[case]]\nname = "{0}"\nfile = "{0}.toml"\nobjective = "maximize other_receivers_gbps"\n'
    )
    file.write_text(case.format("small") + case.format("tree"))
    words = ["compare", file, "--arena", "--quick", "--schemes", "hpcc", "--out", tmp_path]
    words += ["--set", "fabric.hosts=6"]
    own = command(*words, "--cases", "small")
    assert own.status == 0, own.stderr
    wrong = command(*words)
    assert wrong.status == 2
    assert "case tree" in wrong.stderr


def test_the_heat_map_has_the_share_of_each_scheme_in_each_case(
    arena: Arena, result: ArenaResult, tmp_path: Path
) -> None:
    """Oracle: a percentage for each entry, rows by their mean, and no other numbers."""
    rows = [(label, shares) for label, shares, _ in losses(result, "credits")]
    cases = [one.name for one in arena.cases]
    # Tuned settings are the published ones where none were found.
    assert any(label.endswith("(tuned)") for label, _ in rows)
    assert all(list(of) == cases for _, of in rows)
    png, svg = draw_arena(rows, cases, title="small", folder=tmp_path, stem="arena")
    assert png.read_bytes().startswith(b"\x89PNG")
    texts = re.findall(r"<text[^>]*>([^<]+)</text>", svg.read_text())
    labels = [one for one in texts if one in {label for label, _ in rows}]
    means = {label: statistics.fmean(shares.values()) for label, shares in rows}
    assert labels == sorted(labels, key=lambda label: -means[label])
    assert len(labels) == len(rows)
    cells = [one for one in texts if re.fullmatch(r"<?\d+|&lt;1", one)]
    assert cells == [percent(dict(rows)[label][case]) for label in labels for case in cases]
    # In percent, as in the tables.
    shown = [f"{dict(rows)[label][case]:.2f}" for label in labels for case in cases]
    assert [float(one) == 1 for one in shown] == [one == "100" for one in cells]


def test_the_page_has_the_best_mean_first(arena: Arena, result: ArenaResult) -> None:
    """Oracle: the mean of the shares in the same row, as all take part in both cases."""
    rows = _shares(result, "credits").rows
    means = [row[1] for row in rows if isinstance(row[1], float)]
    for row, mean in zip(rows, means, strict=True):
        shares = [one for one in row[2 : 2 + len(arena.cases)] if isinstance(one, float)]
        assert mean == pytest.approx(statistics.fmean(shares))
    assert means == sorted(means, reverse=True)
    assert len(set(means)) > 1


def test_schemes_are_in_the_order_of_the_cases_that_all_take_part_in(tmp_path: Path) -> None:
    rows = [("a", {"one": 0.5}), ("b", {"one": 0.6, "two": 0.0}), ("c", {"one": 0.4, "two": 1.0})]
    _, svg = draw_arena(rows, ["one", "two"], title="small", folder=tmp_path, stem="arena")
    texts = re.findall(r"<text[^>]*>([^<]+)</text>", svg.read_text())
    assert [one for one in texts if one in {"a", "b", "c"}] == ["b", "a", "c"]


def test_the_command_of_a_case_tunes_settings_as_the_whole_arena_does(
    command: Command, file: Path, tmp_path: Path
) -> None:
    """Oracle: the rows of one case, made by its own command, are those of the arena."""
    words = ("--schemes", "hpcc", "--seeds", "1", "--trials", "2", "--set", "packet.mtu=1 KiB")
    done = command("compare", file, "--arena", *words, "--out", tmp_path)
    assert done.status == 0, done.stderr
    folder = results(tmp_path)
    rows = (folder / "arena.csv").read_text().splitlines()
    (slower,) = [
        one["command"]
        for one in json.loads((folder / "arena.json").read_text())["cases"]
        if one["name"] == "slower"
    ]
    again = command(*shlex.split(slower)[1:], "--out", tmp_path / "again")
    assert again.status == 0, again.stderr
    same = (results(tmp_path / "again") / "arena.csv").read_text().splitlines()
    assert [one for one in same if one.startswith("slower")] == [
        one for one in rows if one.startswith("slower")
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name a scenario file, or give --arena"),
        (["small.toml", "--quick"], "needs --arena"),
        (["small.toml", "--trials", "3"], "needs --arena"),
        (["--arena", "--cases", "nothing"], "there is no case 'nothing'"),
        (["--arena", "--schemes", "nothing"], "no scheme 'nothing'"),
        (["--arena", "--seeds", "2000"], "is one that settings are tuned with"),
        (["--arena", "--run-timeout", "soon"], "is not a time"),
        (["missing.toml", "--arena"], "missing.toml"),
    ],
)
def test_wrong_arguments_are_refused(command: Command, words: list[str], message: str) -> None:
    done = command("compare", *words)
    assert done.status == 2
    assert message in " ".join(done.stderr.split())


@pytest.mark.slow
def test_an_arena_that_takes_a_day_starts_with_yes_only(
    command: Command, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["compare", file, "--arena", "--quick", "--schemes", "hpcc", "--out", tmp_path]
    monkeypatch.setattr("silvan.execution.estimate.MOST_S", 1e-9)
    refused = command(*words)
    assert refused.status == 2
    assert "estimated time" in refused.stderr
    assert "--yes" in refused.stderr
    assert not (tmp_path / "arena-small" / "runs").exists()
    monkeypatch.setattr("silvan.cli.options._LONG_S", 0.0)
    started = command(*words, "--yes")
    assert started.status == 0, started.stderr
    assert "packet-hops" in started.stderr.splitlines()[0]


def test_the_runs_of_an_arena_are_counted_before_it_starts(
    arena: Arena, result: ArenaResult
) -> None:
    count = sum(count for _, count in arena_runs(arena, ["ecn+lipd", "hpcc"]))
    # A group's baseline on the tuning seeds, and trials that repeat settings, are not made again.
    assert result.made <= count <= 2 * result.made
