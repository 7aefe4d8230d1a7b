"""Reproducing papers: the targets, the runs that are kept, and what is printed."""

from __future__ import annotations

import json
import statistics
import subprocess
import tarfile
from pathlib import Path

import pytest

import silvan
from silvan.errors import OutputError
from silvan.execution.cache import cached_runs, run_folder
from silvan.inputs.toml_text import TomlValue
from silvan.reproduce import (
    ClauseResult,
    Measurement,
    Target,
    TargetRow,
    Verdict,
    compare,
    experiments,
    find_paper,
    papers,
)
from silvan.reproduce.plan import make_plan
from silvan.reproduce.registry import study
from silvan.reproduce.reproduction import claim_folder, write_manifest
from tests.conftest import INCAST, Command

pytestmark = pytest.mark.usefixtures("inline_pool")

SCENARIO = silvan.Scenario.from_toml(INCAST)


@pytest.mark.parametrize("paper", papers())
def test_every_target_is_a_number_with_a_tolerance_or_a_shape(paper: str) -> None:
    for target in find_paper(paper).targets.values():
        is_number = target.value is not None and target.tol is not None
        assert is_number != (target.shape is not None), target.id


@pytest.mark.slow
@pytest.mark.parametrize("paper", papers())
def test_every_study_is_a_valid_scenario(paper: str) -> None:
    for experiment in experiments(paper):
        # A sample of very many cases.
        for case in experiment.cases[:: max(1, len(experiment.cases) // 100)]:
            scenario = study(paper, case.study).override(case.overrides)
            assert scenario.override(experiment.quick).duration_ps < scenario.duration_ps
        assert any(case.quick for case in experiment.cases)


def test_table2_is_the_network_of_the_paper() -> None:
    # Section IV and Table I of gran2012.
    scenario = study("gran2012", "table2")
    assert scenario.describe()["hosts"] == 648
    assert scenario.describe()["switches"] == 54
    tables = scenario.to_dict()
    nodes = tables["traffic"]["nodes"]
    assert (nodes["v"], nodes["c"], nodes["hotspots"]) == (0.2, 0.8, 8)
    assert tables["packet"]["mtu"] in ("2 KiB", "2048 B")
    assert tables["host"]["injection-rate"] == "13.5 Gbit/s"
    assert tables["host"]["sink-rate"] == "13.6 Gbit/s"
    parameters = tables["control"]["ib-cc"]
    switch, adapter = parameters["switch"], parameters["adapter"]
    assert (switch["threshold"], switch["marking-rate"], switch["packet-size"]) == (15, 0, 0)
    assert (adapter["ccti-increase"], adapter["ccti-limit"], adapter["ccti-min"]) == (1, 127, 0)
    assert adapter["ccti-timer"] == 150


def test_a_row_compares_the_mean_over_the_seeds() -> None:
    targets = {"b": Target("b", "last", 1.0, 0.1), "a": Target("a", "first", 2.0, 0.1)}
    rows = compare(
        targets, [Measurement("a", (2.1, 2.3), (3.0, 3.0)), Measurement("b", (1.2,), (1.0,))]
    )
    first, second = rows
    assert isinstance(first, TargetRow)
    assert isinstance(second, TargetRow)
    assert (first.target.id, second.target.id) == ("b", "a")
    assert second.measured == pytest.approx(2.2)
    assert second.spread == pytest.approx(statistics.stdev([2.1, 2.3]))
    assert second.rel_diff == pytest.approx(0.1)
    assert second.steady == 3.0
    assert first.spread is None
    assert not first.within_tolerance
    assert first.within_tolerance_steady


def test_a_shape_is_a_row_too() -> None:
    found = Verdict("a", "it rises", ClauseResult(True, "1, 2"), ClauseResult(False, "2, 1"))
    (row,) = compare({"a": Target("a", shape="a slope")}, [found])
    plain = row.to_dict()
    assert (plain["id"], plain["what"], plain["rule"]) == ("a", "a slope", "it rises")
    assert (plain["within_tolerance"], plain["within_tolerance_steady"]) == (True, False)
    assert (plain["found"], plain["found_steady"]) == ("1, 2", "2, 1")
    assert all(plain[key] is None for key in ("paper", "measured", "spread", "rel_diff"))


@pytest.mark.parametrize(
    ("measured", "expected"), [(0.91, True), (1.1, True), (1.11, False), (0.89, False)]
)
def test_within_means_no_further_than_the_tolerance(measured: float, *, expected: bool) -> None:
    row = TargetRow(Target("a", value=1.0, tol=0.1000001), measured, None, measured, (measured,))
    assert row.within_tolerance is expected


def test_a_measurement_without_a_target_is_an_error() -> None:
    with pytest.raises(KeyError):
        compare({}, [Measurement("a", (1.0,), (1.0,))])


@pytest.mark.parametrize("prefix", ["", "table", "table2", "table2.hot.cc_on"])
def test_a_prefix_finds_the_experiment(prefix: str) -> None:
    assert "table2" in [one.id for one in experiments("gran2012", prefix)]


@pytest.mark.parametrize(
    ("prefix", "ids"),
    [
        ("fig6", ["fig6"]),
        ("fig6_7", ["fig6_7"]),
        ("fig9", ["fig9a", "fig9b"]),
        ("fig9a.10ms.on", ["fig9a"]),
        ("fig8", ["fig8"]),
    ],
)
def test_an_id_in_full_means_that_experiment_alone(prefix: str, ids: list[str]) -> None:
    assert [one.id for one in experiments("gran2012", prefix)] == ids


def test_finished_runs_are_not_run_again(tmp_path: Path) -> None:
    runs = [(SCENARIO, 1), (SCENARIO, 2)]
    first = dict(cached_runs(tmp_path, runs))
    second = dict(cached_runs(tmp_path, [*runs, (SCENARIO, 3)]))
    for index in (0, 1):
        # The wall time of a run differs from that of another: equal ones are one run.
        assert second[index].manifest() == first[index].manifest()
        assert second[index].tables == first[index].tables
    assert second[2].seed == 3


def test_a_damaged_run_is_run_again(tmp_path: Path) -> None:
    ((_, first),) = cached_runs(tmp_path, [(SCENARIO, 1)])
    folder = run_folder(tmp_path, SCENARIO, 1)
    (folder / "hosts.parquet").write_bytes(b"")
    ((_, again),) = cached_runs(tmp_path, [(SCENARIO, 1)])
    assert again.tables == first.tables
    assert silvan.Result.read(folder).tables == first.tables


def test_other_scenarios_seeds_and_simulators_have_other_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = {
        run_folder(tmp_path, SCENARIO, 1),
        run_folder(tmp_path, SCENARIO, 2),
        run_folder(tmp_path, SCENARIO.override({"switch.latency": "1 ns"}), 1),
    }
    monkeypatch.setattr("silvan.execution.cache.build_id", lambda: "another")
    folders.add(run_folder(tmp_path, SCENARIO, 1))
    assert len(folders) == 4


def check_the_bundle(command: Command, folder: Path, words: tuple[str | Path, ...]) -> None:
    """Oracles: sha256sum, the command inside, and the finished runs that it finds."""
    outcome = command(*words, "--bundle")
    assert outcome.status == 0, outcome.stderr
    archive = folder / "gran2012-quick-table2.tar.gz"
    first = archive.read_bytes()
    assert command(*words, "--bundle").status == 0
    assert archive.read_bytes() == first
    with tarfile.open(archive) as tar:
        tar.extractall(folder / "unpacked", filter="data")
    (root,) = (folder / "unpacked").iterdir()
    subprocess.run(
        ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=root, check=True
    )
    listed = {line.split("  ")[1] for line in (root / "SHA256SUMS").read_text().splitlines()}
    files = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    assert files == {*listed, "SHA256SUMS"}
    assert len(list((root / "scenarios").iterdir())) == 4
    versions = json.loads((root / "versions.json").read_text())
    assert versions["command"] == "silvan reproduce gran2012 --only table2 --quick"
    readme = (root / "README.md").read_text()
    assert versions["command"] in readme
    assert ("as CSV" in readme) == any(name.endswith(".csv") for name in files)
    again = command(*versions["command"].split()[1:], "--out", root, "--dry-run", "--json")
    plan = json.loads(again.stdout)
    assert plan["finished"] == plan["runs"] == 4


@pytest.mark.slow
def test_quick_table2(command: Command, tmp_path: Path) -> None:
    words = ("reproduce", "gran2012", "--only", "table2", "--quick", "--json", "--out", tmp_path)
    outcome = command(*words)
    assert outcome.status == 0, outcome.stderr
    assert "quick: table2: 10 ms instead of 100 ms" in outcome.stderr
    rows = json.loads(outcome.stdout)
    targets = {
        name: target
        for name, target in find_paper("gran2012").targets.items()
        if name.startswith("table2")
    }
    assert [row["id"] for row in rows] == list(targets)
    for row in rows:
        target = targets[row["id"]]
        assert (row["paper"], row["what"]) == (target.value, target.what)
        assert row["measured"] == statistics.fmean(row["values"])
        assert row["spread"] is None
        assert row["rel_diff"] == row["measured"] / row["paper"] - 1
        assert row["within_tolerance"] == (abs(row["rel_diff"]) <= row["tol"])
    by_id = {row["id"]: row["measured"] for row in rows}
    for cc in ("cc_off", "cc_on"):
        parts = 8 * by_id[f"table2.hot.{cc}.hotspots"] + 640 * by_id[f"table2.hot.{cc}.nonhotspots"]
        assert by_id[f"table2.total.{cc}"] == pytest.approx(parts)
    files = sorted(path.name for path in (tmp_path / "gran2012-quick").iterdir())
    figures = ["table2.csv", "table2.png", "table2.svg"]
    assert files == ["report-table2.html", "reproduction-table2.json", *figures]
    manifest = json.loads((tmp_path / "gran2012-quick" / "reproduction-table2.json").read_text())
    assert manifest["quick"] is True
    assert manifest["experiments"][0]["targets"] == rows
    assert sorted(manifest["experiments"][0]["files"]) == figures
    assert len(manifest["runs"]) == 4

    again = command(*words)
    assert again.stdout == outcome.stdout

    check_the_bundle(command, tmp_path, words)

    # Ten milliseconds are too few for congestion control to do its work: a difference is no error.
    shown = command(*(word for word in words if word != "--json"))
    assert shown.status == 0
    assert "quick: not comparable" in shown.stdout
    assert " no " in shown.stdout
    assert "table2.hot.cc_on.nonhotspots" in shown.stdout


@pytest.mark.slow
@pytest.mark.parametrize("only", ["fig9a", pytest.param("", id="all", marks=pytest.mark.nightly)])
def test_a_paper_with_its_own_numbers_of_seeds(command: Command, tmp_path: Path, only: str) -> None:
    """Tables and figures of the default command, on 16 hosts for a millisecond."""
    changes = {
        "fabric.generator": "single-switch",
        "fabric.hosts": "16",
        "traffic.nodes.hotspots": "2",
        "run.duration": "1 ms",
    }
    words = ["reproduce", "gran2012", "--out", tmp_path]
    words += [word for item in changes.items() for word in ("--set", "=".join(item))]
    planned = command(*words, "--dry-run", "--json")
    plan = json.loads(planned.stdout)
    assert (plan["finished"], not (tmp_path / "runs").exists()) == (0, True)
    by_id = {one["id"]: one for one in plan["experiments"]}
    # Eleven values of p: five seeds with CC off; with CC on five at four of them, else one.
    assert by_id["fig5"]["runs"] == 11 * 5 + 4 * 5 + 7

    chosen = experiments("gran2012", only) if only else experiments("gran2012")
    words += ["--only", only] if only else []
    outcome = command(*words)
    assert outcome.status == 0, outcome.stderr
    assert "changed: not comparable" in outcome.stdout
    assert "last 30 ms" not in outcome.stdout
    folder = tmp_path / "gran2012-changed"
    (written,) = folder.glob("reproduction*.json")
    manifest = json.loads(written.read_text())
    assert manifest["overrides"] == {**changes, "fabric.hosts": 16, "traffic.nodes.hotspots": 2}
    assert [one["id"] for one in manifest["experiments"]] == [one.id for one in chosen]
    targets = [row for one in manifest["experiments"] for row in one["targets"]]
    stated = find_paper("gran2012").targets
    assert sorted(row["id"] for row in targets) == sorted(
        name for name in stated if name.startswith(only)
    )
    seeds = {len(row["values"]) for row in targets if row["paper"] is not None}
    assert seeds <= {1, 3, 5} if only else seeds == {1, 3, 5}
    for one in manifest["experiments"]:
        for name in one["files"]:
            assert (folder / name).stat().st_size > 0
    again = json.loads(command(*words, "--dry-run", "--json").stdout)
    assert again["finished"] == again["runs"] == len(manifest["runs"])
    assert only or again["runs"] == plan["runs"]


def test_reproductions_of_different_versions_are_never_mixed(tmp_path: Path) -> None:
    chosen = experiments("gran2012", "table2")
    changes: list[dict[str, TomlValue]] = [{}, {"run.duration": "20 ms"}]
    planned, other = (
        make_plan("gran2012", chosen, seeds=1, quick=True, overrides=one) for one in changes
    )
    drawn, report = tmp_path / "table2.png", tmp_path / "report.html"
    drawn.touch()
    report.touch()
    written = write_manifest(planned, [], tmp_path / "reproduction.json")
    claim_folder(planned, tmp_path, overwrite=False)
    values = json.loads(written.read_text())
    values["experiments"] = [{"files": [drawn.name]}]
    old = values | {"version": "0.0.1"}
    for text in (json.dumps(values | {"overrides": {"run.duration": "1 ms"}}), json.dumps(old)):
        written.write_text(text)
        with pytest.raises(OutputError, match="reproduction there has another") as refused:
            claim_folder(planned, tmp_path, overwrite=False)
        assert "--overwrite" in str(refused.value.hint)
        assert drawn.exists()
    claim_folder(other, tmp_path, overwrite=True)
    assert list(tmp_path.iterdir()) == []
