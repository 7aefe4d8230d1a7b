"""Choices of an arena: the runs, the output folder, and refused choices."""

from __future__ import annotations

import csv
import json
import math
import re
from pathlib import Path

import pytest

import silvan
from silvan.cli import main
from silvan.cli.arena import _selection
from silvan.comparing.arena import ArenaProgress, read_arena, run_arena
from silvan.comparing.arena.figure import draw_arena
from silvan.comparing.arena.objective import reached
from silvan.comparing.arena.store import Measured
from silvan.comparing.tuning.tune import Objective
from tests.conftest import Command
from tests.test_arena import ARENA, SMALL
from tests.test_guide import ROOT

pytestmark = pytest.mark.usefixtures("inline_pool")

TREE = SMALL.replace(
    'generator = "single-switch"\nhosts = 8\n',
    'generator = "xgft"\nchildren = [4, 2]\nparents = [1, 2]\nrouting = "d-mod-k"\n',
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "small.toml").write_text(SMALL)
    (tmp_path / "tree.toml").write_text(TREE)
    (tmp_path / "arena.toml").write_text(
        ARENA.replace("seeds = [1, 2, 3]", 'seeds = [1, 2]\nlinks = ["credits", "pfc"]')
    )
    return tmp_path


def test_a_scheme_that_no_fabric_suits_is_left_out(command: Command, folder: Path) -> None:
    """Oracle: a tree has room for lanes, and a single switch has no choice of paths."""
    (folder / "arena.toml").write_text(
        ARENA.replace('name = "slower"\nfile = "small.toml"', 'name = "slower"\nfile = "tree.toml"')
    )
    words = ("--arena", "--quick", "--schemes", "vftree,reps")
    done = command("compare", "arena.toml", *words, cwd=folder)
    assert done.status == 0, done.stderr
    assert "reps takes no part in 1 case: incast" in done.stderr
    path = folder / "out" / "arena-small" / "quick-schemes-vftree,reps"
    with (path / "arena.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    of = {(row["case"], row["scheme"]) for row in rows}
    assert ("slower", "vftree") in of
    assert ("incast", "reps") not in of
    facts = json.loads((path / "arena.json").read_text())
    assert "single switch" in facts["cases"][0]["left_out"]["reps"]
    assert "Takes no part, as the fabric has a single switch" in (path / "arena.html").read_text()
    # In a comparison it is an error, which says the same.
    done = command("compare", "small.toml", "--schemes", "ib-cc+adaptive", cwd=folder)
    assert done.status == 2
    assert "takes no part: the fabric has a single switch" in " ".join(done.stderr.split())


def test_links_and_cases_choose_together(folder: Path) -> None:
    arena = read_arena(folder / "arena.toml", quick=True)

    def chosen(names: list[str], kinds: list[str]) -> list[str]:
        return [one.name for one in arena.only(names, kinds).cases]

    assert chosen(["slower"], []) == ["slower"]
    assert chosen(["slower"], ["pfc"]) == ["slower-pfc"]
    assert chosen(["slower-pfc"], ["pfc"]) == ["slower-pfc"]
    assert chosen(["slower"], ["credits", "pfc"]) == ["slower", "slower-pfc"]
    with pytest.raises(silvan.SilvanError, match="case 'slower-pfc' has no links with credits"):
        arena.only(["slower-pfc"], ["credits"])
    with pytest.raises(silvan.SilvanError, match="there is no case 'faster'"):
        arena.only(["faster"], ["pfc"])
    # A reduced case says so in its title; the other case has no reduced form.
    assert [one.title for one in arena.cases] == [
        *("incast", "incast, PFC"),
        *("slower, reduced", "slower, PFC, reduced"),
    ]


def test_each_selection_has_its_folder() -> None:
    assert _selection([]) == ""
    assert _selection(["--quick", "--schemes", "nscc,rccc"]) == "quick-schemes-nscc,rccc"
    names = [_selection(["--set", f"a/{number}"]) for number in range(2)]
    names += [_selection(["--set", "a_0"]), _selection(["--cases", "x" * 500])]
    assert len(set(names)) == len(names)
    assert all("/" not in name and len(name) < 255 for name in names)


def test_what_did_not_come_about_is_infinite() -> None:
    """Oracle: two ports in a tree without control; a tenth of that is none."""

    def run(tree_ports: list[float], value: float | None) -> Measured:
        series = {"times_ms": [0, 1, 2], "tree_ports": tree_ports}
        return Measured(
            {"series": series, "programs_end_ms": value, "other_receivers_gbps": 1.0}, 1.0
        )

    off = run([0, 2, 2], 4.0)
    objective = Objective.parse("minimize cleared_ms")
    assert reached(objective, off, off) == math.inf
    assert reached(objective, run([0, 0, 0], None), off) == 0.0
    assert reached(objective, Measured(None, 0.0, "it failed"), off) is None
    slower = Objective.parse("minimize programs_end_ms / off.programs_end_ms")
    assert reached(slower, run([0, 0, 0], 6.0), off) == 1.5
    assert reached(slower, run([0, 0, 0], math.inf), off) == math.inf
    assert reached(slower, run([0, 0, 0], None), off) is None


def test_never_is_the_worst_that_can_be_reached(folder: Path) -> None:
    """Oracle: an incast that lasts to the end of the run never clears without control."""
    text = ARENA.replace("minimize other_latency_mean_us", "minimize cleared_ms")
    (folder / "arena.toml").write_text(text.replace("[1, 2, 3]", "[1, 2]"))
    arena = read_arena(folder / "arena.toml", quick=True).only(["slower"])
    (none, *_) = run_arena(arena, folder / "runs", ["none"], workers=1).entries
    assert none.numbers["cleared_ms"] == math.inf
    assert (none.to_dict()["objective"], none.share) == ("never", 0.0)


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        ("minimize latency", "a run has no measure latency"),
        ("minimize off.latency", "a run has no measure off.latency"),
        ("raise other_receivers_gbps", "maximize other_receivers_gbps"),
        ("maximize import os", "maximize other_receivers_gbps"),
    ],
)
def test_a_wrong_objective_is_refused_with_what_there_is(
    folder: Path, objective: str, message: str
) -> None:
    path = folder / "arena.toml"
    path.write_text(path.read_text().replace("minimize other_latency_mean_us", objective))
    with pytest.raises(silvan.ScenarioError) as caught:
        read_arena(path)
    assert message in f"{caught.value} {caught.value.hint}"
    assert "case slower" in str(caught.value)


def test_the_interval_of_the_objective_is_in_the_rows(command: Command, folder: Path) -> None:
    """Oracle: the same number in JSON."""
    words = ("--arena", "--cases", "slower", "--schemes", "none", "--trials", "1")
    done = command("compare", "arena.toml", *words, cwd=folder)
    assert done.status == 0, done.stderr
    assert "1 case on links" in " ".join(done.stdout.split())
    assert "2 runs made" in done.stderr
    (path,) = (folder / "out" / "arena-small").glob("*/arena.csv")
    with path.open(newline="") as lines:
        (row,) = [one for one in csv.DictReader(lines) if one["quantity"] == "objective"]
    (entry,) = json.loads((path.parent / "arena.json").read_text())["entries"]
    assert float(row["ci95"]) == entry["objective_interval"]


def test_a_case_without_the_one_that_tunes_says_so(command: Command, folder: Path) -> None:
    words = ("compare", "arena.toml", "--arena", "--schemes", "hpcc", "--cases")
    done = command(*words, "slower", cwd=folder)
    assert done.status == 0, done.stderr
    message = "Settings for slower are published ones only: they would be tuned on incast"
    assert f"{message}, which is left out. Name it in --cases" in " ".join(done.stderr.split())
    (page,) = (folder / "out" / "arena-small").glob("*/arena.html")
    assert message in page.read_text()
    assert "Tuned settings are the best" not in page.read_text()
    # With both cases, or without trials, there is nothing to say.
    for more in (["slower,incast", "--trials", "2"], ["slower", "--trials", "1"]):
        done = command(*words, *more, "--seeds", "1", cwd=folder)
        assert done.status == 0, done.stderr
        assert "published ones only" not in done.stderr


def test_spaces_between_names_choose_no_other_folder(command: Command, folder: Path) -> None:
    for cases in ("incast,slower", "incast, slower"):
        words = ("--schemes", "none", "--cases", cases, "--quick")
        done = command("compare", "arena.toml", "--arena", *words, cwd=folder)
        assert done.status == 0, done.stderr
    assert len(list((folder / "out" / "arena-small").glob("*/arena.json"))) == 1


def test_an_arena_that_is_stopped_says_how_far_it_came(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: object, report: object, **__: object) -> None:
        assert callable(report)
        report(ArenaProgress("published settings", 3, 8))
        raise KeyboardInterrupt

    monkeypatch.setattr("silvan.comparing.arena.run_arena", stopped)
    words = ["compare", str(folder / "arena.toml"), "--arena", "--out", str(folder / "out")]
    assert main(words) == 130
    assert "published settings: 3 of 8 runs done" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--quick", "--trials", "2"), "published settings alone"),
        (("--cases", "slower-pfc", "--links", "credits"), "has no links with credits"),
    ],
)
def test_wrong_choices_are_refused(
    command: Command, folder: Path, words: tuple[str, ...], message: str
) -> None:
    done = command("compare", "arena.toml", "--arena", *words, cwd=folder)
    assert done.status == 2
    assert message in " ".join(done.stderr.split())


def test_a_scenario_is_no_arena(folder: Path) -> None:
    with pytest.raises(silvan.ScenarioError, match="a scenario, and not the cases of an arena"):
        read_arena(folder / "small.toml")


def test_the_caption_fits_a_heat_map_of_one_case(tmp_path: Path) -> None:
    """Oracle: the width of the picture, and what a letter takes at least."""
    _, svg = draw_arena([("a", {"b": 1.0})], ["b"], title="t", folder=tmp_path, stem="a")
    text = svg.read_text()
    width_pt = float(text.split('width="', 1)[1].split("pt", 1)[0])
    lines = [one.split("</text>")[0].rsplit(">", 1)[1] for one in text.split("<text")[1:]]
    caption = [one for one in lines if len(one) > 20]
    assert " ".join(caption).startswith("Percent of what")
    # Letters of eight points are half as wide as high in the mean.
    assert all(4 * len(line) <= width_pt for line in caption)


def test_the_arena_of_the_guide_can_be_run(command: Command, tmp_path: Path) -> None:
    """Oracle: each scheme reaches something in each case on both kinds of links."""
    page = (ROOT / "docs" / "guide" / "comparing.md").read_text()
    (text,) = re.findall(r'```\n(name = "my-arena"\n.*?)```', page, re.DOTALL)
    (tmp_path / "my-arena.toml").write_text(text)
    assert command("example", "victim", cwd=tmp_path).status == 0
    words = ("--arena", "--quick", "--schemes", "dcqcn", "--json")
    done = command("compare", "my-arena.toml", *words, cwd=tmp_path)
    assert done.status == 0, done.stderr
    rows = json.loads(done.stdout)
    assert len(rows) == 8
    assert all(0 < row["share_of_best"] <= 1 for row in rows)
