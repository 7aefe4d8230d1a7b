"""Reports: each number with what the paper states, and each point with the run behind it."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import silvan
from silvan.cli import main
from silvan.comparing.comparison import compared as measures_compared
from silvan.reproduce import find_paper
from silvan.reproduce.plan import ReproductionPlan
from silvan.results.receive_rates import receive_rate_series_gbps, receives
from silvan.sweeping.sweep import sweep
from silvan.viewer.comparison import comparison_report
from silvan.viewer.report import write_report
from silvan.viewer.reproduction import reproduction_report
from silvan.viewer.sweep import sweep_report
from tests.viewer.conftest import SCENARIO, SMALL, Opener, downloaded, table_csv, wait_until_idle
from tests.viewer.test_access import PHONE, findings, missed, reached

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.usefixtures("inline_pool")]

LOADS = (0.1, 0.3)


@pytest.fixture(scope="module")
def rates(reproduction: tuple[ReproductionPlan, Path]) -> dict[tuple[int, str], float]:
    """Receive rate of all hosts in Gbit/s, by moves and control, from the bytes delivered."""
    plan, figures = reproduction
    found = {}
    for one, path in zip(plan.runs, plan.folders(figures.parent / "runs"), strict=True):
        words = re.search(r"(\d+) moves, CC (on|off)", one.label)
        assert words is not None
        delivered = silvan.Result.read(path).hosts["delivered_bytes"].to_numpy()
        found[int(words[1]), words[2]] = float(delivered.mean()) * 8 / 1e6
    return found


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[silvan.SweepResult, Path]:
    """Sweep two loads with two seeds, with all tables."""
    folder = tmp_path_factory.mktemp("sweep") / "loads"
    scenario = silvan.Scenario.from_toml(SCENARIO)
    grid = {"traffic.uniform.0.load": list(LOADS)}
    result = sweep(scenario, grid, seeds=2, out=folder, tables=True)
    return result, write_report(sweep_report(folder), folder / "report.html")


def _is_exactly(cell: str, value: str | float | None) -> bool:
    """True if a cell of CSV holds a value to its last digit."""
    if value is None or isinstance(value, str):
        return cell == (value or "")
    return float(cell) == value


def _click(page: Page, chart: str, x_part: float, y_part: float) -> None:
    """Click a place within a chart, in parts of its width and height."""
    over = page.locator("figure.chart", has_text=chart).first.locator(".u-over")
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + x_part * box["width"], box["y"] + y_part * box["height"])


def test_targets_stand_next_to_what_was_measured(
    open_page: Opener, report: Path, rates: dict[tuple[int, str], float]
) -> None:
    page = open_page(report)
    rows = {row["target"]: row for row in table_csv(page, "Paper and measurement, fig9a")}
    known = find_paper("gran2012").targets
    assert list(rows) == [name for name in known if name.startswith("fig9a")]
    # Both rates are equal at all lifetimes here, so the shape's lines neither rise nor fall.
    shape = rows.pop("fig9a.lifetime")
    assert (shape["paper"], shape["measured"], shape["within"]) == ("", "", "no")
    for name, row in rows.items():
        target = known[name]
        moves = 100 // int(name.split(".")[1].removesuffix("ms"))
        off, on = rates[moves, "off"], rates[moves, "on"]
        measured = on / off if "over" in name else on if name.endswith("on") else off
        assert target.value is not None
        assert target.tol is not None
        assert float(row["paper"]) == target.value
        assert float(row["measured"]) == pytest.approx(measured, rel=1e-12)
        difference = measured / target.value - 1
        assert float(row["difference, share"]) == pytest.approx(difference, abs=1e-12)
        assert float(row["tolerance, share"]) == target.tol
        assert row["within"] == ("yes" if abs(difference) <= target.tol else "no")
        assert row["calibration"] == ("used" if target.calibrate else "not used")
    expect(page.locator(".warning").first).to_contain_text("A quick look")
    read = json.loads((report.parent / "reproduction.json").read_text())
    points = read["experiments"][0]["points"]["rows"]
    for cells, values in zip(table_csv(page, "Points"), points, strict=True):
        assert all(_is_exactly(*pair) for pair in zip(cells.values(), values, strict=True))
    cases = table_csv(page, "Runs by case")
    assert [(one["seeds"], one["with map"]) for one in cases] == [("1", "1")] * len(rates)
    command = shlex.join(["silvan", "reproduce", "gran2012", "--quick", *_changes()])
    expect(page.get_by_text(f"{command} --only fig9a")).to_be_visible()
    headings = page.get_by_role("region", name="Points", exact=True).get_by_role("columnheader")
    assert "all off, Gbit/s" in headings.all_inner_texts()
    assert page.locator("article img").count() == 1


def _changes() -> list[str]:
    return [word for key, value in SMALL.items() for word in ("--set", f"{key}={value}")]


def test_the_papers_points_are_next_to_the_curves(
    open_page: Opener, report: Path, rates: dict[tuple[int, str], float]
) -> None:
    rows = table_csv(open_page(report), "Receive rate of all hosts")
    axis = "moves of the hotspots in 100 ms"
    assert [float(row[axis]) for row in rows] == [10, 50, 100]
    known = find_paper("gran2012").targets
    for control in ("off", "on"):
        curve = f"20 % V, 80 % C, CC {control}"
        shown = [float(row[f"{curve} (Gbit/s)"]) for row in rows]
        expected = [rates[moves, control] for moves in (10, 50, 100)]
        assert shown == pytest.approx(expected, rel=1e-12)
        paper = [row[f"paper: {curve} (Gbit/s)"] for row in rows]
        assert paper == [str(known[f"fig9a.10ms.{control}"].value), "", ""]


def test_a_point_leads_to_its_run_and_its_map(
    open_page: Opener,
    report: Path,
    reproduction: tuple[ReproductionPlan, Path],
    rates: dict[tuple[int, str], float],
) -> None:
    plan, _ = reproduction
    page = open_page(report)
    # The axis of y ends 6 % above the largest value.
    largest = 1.06 * max(rates.values())
    _click(page, "Receive rate of all hosts", 0.998, 1 - rates[100, "on"] / largest)
    panel = page.get_by_role("complementary", name="Run behind a point")
    label = "fig9a: 20 % V, 100 moves, CC on, seed 1"
    expect(panel).to_contain_text(label)
    (run,) = [one for one in plan.runs if one.label == label]
    command = panel.locator(".command").inner_text()
    file = f"gran2012-moving-{run.scenario.hash[:8]}.toml"
    assert command == f"silvan run {file} --seed 1 --record view --out results"
    button = panel.get_by_role("button", name=f"Download {file}")
    scenario = silvan.Scenario.from_toml(downloaded(page, button).decode())
    assert scenario.hash == run.scenario.hash
    panel.get_by_role("button", name="Show its map").click()
    expect(page.locator("header strong")).to_have_text(label)
    # Hotspots move: no host is one throughout the run.
    (first, *_) = rows = table_csv(page, "Mean receive rate")
    assert not any("hotspots" in heading for heading in first)
    shown = [float(row["other receivers (Gbit/s)"]) for row in rows]
    result = silvan.run(run.scenario, seed=1)
    assert shown == pytest.approx(receive_rate_series_gbps(result, receives(result))[1])

    wait_until_idle(page)
    again = open_page(report, page.url.partition("#")[2])
    expect(again.locator("header strong")).to_have_text(label)
    again.get_by_role("button", name="Report", exact=True).click()
    expect(again.get_by_role("complementary", name="Run behind")).to_contain_text(label)

    # The browser's Back and Forward lead from a map to its report and to the map again.
    wait_until_idle(page)
    page.go_back()
    expect(page.get_by_role("complementary", name="Run behind")).to_contain_text(label)
    page.go_forward()
    expect(page.locator("header strong")).to_have_text(label)


def test_runs_that_are_gone_have_no_map(
    open_page: Opener, reproduction: tuple[ReproductionPlan, Path], tmp_path: Path
) -> None:
    _, figures = reproduction
    read: dict[str, Any] = json.loads((figures / "reproduction.json").read_text())
    for one in read["runs"]:
        one["folder"] = "gone"
    (figures / "reproduction-gone.json").write_text(json.dumps(read))
    made = reproduction_report(figures / "reproduction-gone.json")
    page = open_page(write_report(made, tmp_path / "gone.html"), "of=0")
    panel = page.get_by_role("complementary", name="Run behind a point")
    expect(panel).to_contain_text("Its tables are not in this page")
    assert panel.get_by_role("button", name="Show its map").count() == 0
    expect(page.get_by_role("button", name="Map of a run")).to_be_disabled()


def test_curves_of_a_sweep_lead_to_its_points(
    open_page: Opener, swept: tuple[silvan.SweepResult, Path]
) -> None:
    result, path = swept
    points = result.points.to_pylist()
    page = open_page(path)
    title = "total delivered, Gbit/s by traffic.uniform.0.load"
    page.get_by_role("combobox", name="of", exact=True).select_option("total_gbps")
    rows = table_csv(page, title)
    means = [
        np.mean([one["total_gbps"] for one in points if one["traffic.uniform.0.load"] == load])
        for load in LOADS
    ]
    assert [float(row["traffic.uniform.0.load"]) for row in rows] == list(LOADS)
    shown = [float(row["total delivered (Gbit/s)"]) for row in rows]
    assert shown == pytest.approx(means, rel=1e-12)
    measures = page.get_by_role("combobox", name="of", exact=True).locator("option")
    names = measures.all_inner_texts()
    assert not {"wall s", "events", "simulated ps"} & set(names)
    assert not [name for name in names if name.endswith((" ns", " ps"))]
    listed = table_csv(page, "Points of the sweep")
    for name, column, divisor in (
        ("latency p50, µs", "latency_p50_us", 1),
        ("delivered, MB", "delivered_bytes", 1e6),
        ("total delivered, Gbit/s", "total_gbps", 1),
        ("traffic.uniform.0.load", "traffic.uniform.0.load", 1),
        ("seed", "seed", 1),
    ):
        assert [float(row[name]) for row in listed] == [one[column] / divisor for one in points]
    axes = page.get_by_role("combobox", name="Curves over").locator("option").all_inner_texts()
    assert axes == ["traffic.uniform.0.load"], "seeds are no quantity"
    # The choice of curves is in the address, too.
    wait_until_idle(page)
    again = open_page(path, page.url.partition("#")[2])
    expect(again.get_by_role("combobox", name="of", exact=True)).to_have_value("total_gbps")
    _click(page, title, 0.998, 0.06 / 1.06)
    panel = page.get_by_role("complementary", name="Run behind a point")
    expect(panel).to_contain_text("traffic.uniform.0.load=0.3 seed 2")
    assert panel.get_by_role("combobox", name="Run").locator("option").count() == 2
    panel.get_by_role("combobox", name="Run").select_option("1")
    (last,) = [one for one in points if (one["traffic.uniform.0.load"], one["seed"]) == (0.3, 3)]
    expect(panel).to_contain_text(last["hash"][:16])
    assert "--set traffic.uniform.0.load=0.3 --seed 3" in panel.locator(".command").inner_text()
    panel.get_by_role("button", name="Show its map").click()
    expect(page.locator(".now")).to_contain_text("ms")
    page.get_by_role("tab", name="Trees").click()
    lives = silvan.Result.read(path.parent / "tables" / last["hash"][:16]).tree_lifetimes
    assert len(table_csv(page, "Trees, 0 ms to 0.4 ms")) == lives.num_rows


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> tuple[silvan.SweepResult, Path]:
    """Sweep schemes and loads without congestion, where both schemes are the same."""
    folder = tmp_path_factory.mktemp("sweep") / "words"
    incast = SCENARIO[SCENARIO.index("[[traffic.incast]]") : SCENARIO.index("[[traffic.uniform]]")]
    scenario = silvan.Scenario.from_toml(SCENARIO.replace(incast, ""))
    grid: dict[str, list[Any]] = {
        "control.scheme": ["none", "ib-cc"],
        "traffic.uniform.0.load": [0.02, 0.04],
    }
    result = sweep(scenario, grid, seeds=1, out=folder)
    return result, write_report(sweep_report(folder), folder / "report.html")


def test_a_key_of_words_can_be_the_axis(
    open_page: Opener, words: tuple[silvan.SweepResult, Path]
) -> None:
    result, path = words
    page = open_page(path)
    axes = page.get_by_role("combobox", name="Curves over")
    names = axes.locator("option").all_inner_texts()
    assert names == ["traffic.uniform.0.load", "control.scheme"]
    axes.select_option("control.scheme")
    page.get_by_role("combobox", name="of", exact=True).select_option("total_gbps")
    rows = table_csv(page, "total delivered, Gbit/s by control.scheme")
    columns = {load: f"traffic.uniform.0.load = {load} (Gbit/s)" for load in (0.02, 0.04)}
    for point in result.points.to_pylist():
        column = columns[point["traffic.uniform.0.load"]]
        (shown,) = [
            row[column] for row in rows if row["name"] == point["control.scheme"] and row[column]
        ]
        assert float(shown) == pytest.approx(point["total_gbps"], rel=1e-12)


def test_a_point_of_several_curves_has_all_of_their_colours_and_runs(
    open_page: Opener, words: tuple[silvan.SweepResult, Path]
) -> None:
    """Oracle: runs of one load are the same under both schemes, as nothing is marked."""
    result, path = words
    rates: dict[float, set[float]] = {}
    for point in result.points.to_pylist():
        rates.setdefault(point["traffic.uniform.0.load"], set()).add(point["total_gbps"])
    assert [len(of_load) for of_load in rates.values()] == [1, 1]
    page = open_page(path, **PHONE)
    page.get_by_role("combobox", name="of", exact=True).select_option("total_gbps")
    chart = page.locator("figure.chart").first
    over = chart.locator(".u-over")
    colours = chart.locator(".legend line").evaluate_all(
        "lines => lines.map((line) => line.getAttribute('stroke').toLowerCase())"
    )
    drawn = chart.locator("canvas").evaluate(
        """canvas => {
          const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
          const found = {};
          for (let at = 0; at < data.length; at += 4) {
            const hex = [0, 1, 2].map((part) => data[at + part].toString(16).padStart(2, '0'));
            const colour = `#${hex.join('')}`;
            found[colour] = (found[colour] ?? 0) + 1;
          }
          return found;
        }"""
    )
    areas = [drawn.get(colour, 0) for colour in colours]
    assert len(areas) == 2
    assert min(areas) > 0.25 * max(areas), "without it, the second curve hides the first one"
    # Left of the area of the lines there is half of the first point.
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box is not None
    least, most = (next(iter(of_load)) for of_load in rates.values())
    page.touchscreen.tap(box["x"] - 2, box["y"] + box["height"] * (1 - least / most / 1.06))
    panel = page.get_by_role("complementary", name="Run behind a point")
    options = panel.get_by_role("combobox", name="Run").locator("option").all_inner_texts()
    assert options == [
        f"control.scheme={scheme} traffic.uniform.0.load=0.02 seed 2"
        for scheme in ("none", "ib-cc")
    ]
    expect(panel.get_by_role("heading").first).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    field = panel.get_by_role("combobox").bounding_box()
    card = panel.locator("section").bounding_box()
    assert field is not None
    assert card is not None
    assert field["x"] + field["width"] <= card["x"] + card["width"]


def test_points_over_names_stand_next_to_the_papers(
    open_page: Opener, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["reproduce", "gran2010", "--quick", "--out", str(out)]) == 0
    capsys.readouterr()
    page = open_page(out / "gran2010-quick" / "report.html")
    known = find_paper("gran2010").targets
    read = json.loads((out / "gran2010-quick" / "reproduction.json").read_text())
    points = next(one for one in read["experiments"] if one["id"] == "hpcc")["points"]
    measured = {row[0]: dict(zip(points["header"], row, strict=True)) for row in points["rows"]}
    shown = table_csv(page, "With congestion, relative to without")
    assert [row["name"] for row in shown][::2] == [
        name.replace("_", " ").replace("bw", "bandwidth") for name in measured
    ]
    for row, name in zip(shown[::2], measured, strict=True):
        assert float(row["CC off (times)"]) == pytest.approx(measured[name]["b/a"])
        stated = known[f"hpcc.{name}.cc_off"].value
        assert stated is not None
        assert float(row["paper: CC off (times)"]) == pytest.approx(stated)
    # The parking lot's flows over time add up to what they have received.
    flows = table_csv(page, "Receive rate of each flow, CC off")
    lot = next(one for one in read["experiments"] if one["id"] == "parking_lot")["points"]
    (whole,) = [row for row in lot["rows"] if row[0] == "CC off" and row[-1] == "whole run"]
    mean = np.mean([float(row["C3-H (Gbit/s)"]) for row in flows])
    assert mean == pytest.approx(whole[lot["header"].index("C3-H (Gbit/s)")])


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compare two schemes with two seeds."""
    folder = tmp_path_factory.mktemp("comparison")
    (folder / "sixteen.toml").write_text(SCENARIO)
    words = ["compare", str(folder / "sixteen.toml"), "--schemes", "ib-cc", "--seeds", "2"]
    assert main([*words, "--out", str(folder / "out")]) == 0
    return folder / "out" / "compare-sixteen"


def test_a_folder_of_a_comparison_shows_schemes_curves_and_runs(
    open_page: Opener, compared: Path, tmp_path: Path
) -> None:
    out = tmp_path / "again.html"
    assert main(["view", str(compared), "--out", str(out)]) == 0
    assert out.read_bytes() == (compared / "compare.html").read_bytes()
    # The folder that silvan compare was given holds that of the report, and the runs.
    above = tmp_path / "above.html"
    assert main(["view", str(compared.parent), "--out", str(above)]) == 0
    assert above.read_bytes() == out.read_bytes()
    page = open_page(out)
    read = json.loads((compared / "compare.json").read_text())
    rows = {row["scheme"]: row for row in table_csv(page, "Schemes")}
    for one in read["schemes"]:
        for measure in measures_compared(read["schemes"]):
            cell = rows[one["scheme"]][measure.title]
            assert _is_exactly(cell, one[measure.name])
        state = rows[one["scheme"]]["state switch, B"]
        stated = one["switch_bytes_per_port_vl"]
        assert state == ("" if stated is None else str(stated))
    results = {
        one["scheme"]: [silvan.Result.read(compared / path) for path in one["folders"]]
        for one in read["schemes"]
    }
    trees = table_csv(page, "Congestion trees")
    ports = {
        scheme: np.mean([one.forest["ports"].to_numpy() for one in found], axis=0)
        for scheme, found in results.items()
    }
    for scheme, expected in ports.items():
        assert expected.max() > 0
        shown = [float(row[f"{scheme} (Port VLs)"]) for row in trees]
        # Neighbouring samples are averaged.
        step = -(-len(expected) // 100)
        means = [expected[at : at + step].mean() for at in range(0, len(expected), step)]
        assert shown == pytest.approx(means, rel=1e-12)

    page.get_by_role("region", name="Schemes", exact=True).get_by_role(
        "button", name="ib-cc"
    ).click()
    panel = page.get_by_role("complementary", name="Run behind a point")
    panel.get_by_role("combobox", name="Run").select_option("1")
    expect(panel).to_contain_text("ib-cc, seed 3")
    panel.get_by_role("button", name="Show its map").click()
    bar = table_csv(page, "Congestion over time")
    forest = results["ib-cc"][1].forest
    assert [float(row["trees (trees)"]) for row in bar] == forest["trees"].to_pylist()


def test_a_comparison_that_cannot_be_read_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "compare.json").write_text("[]")
    assert main(["view", str(tmp_path), "--out", str(tmp_path / "a.html")]) == 2
    assert "compare.json: no readable comparison" in capsys.readouterr().err


@pytest.mark.parametrize("is_own", [True, False])
def test_the_command_of_a_sweep_makes_it_again(
    is_own: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Oracle: the hashes of the points, which depend on scenario and seed."""
    monkeypatch.chdir(tmp_path)
    Path("own.toml").write_text(SCENARIO)
    settings = ["--set", "run.duration=240 us", "--set", "name=again", "--seed", "5"]
    words = ["sweep", "own.toml", "--grid", "traffic.uniform.0.load=0.1,0.2", *settings]
    assert main([*words, "--out", "first"]) == 0
    (section,) = sweep_report(Path("first")).sections
    (note,) = section.notes
    assert note == "again.toml: the scenario file, or the scenario in sweep.json."
    kept = json.loads(Path("first/sweep.json").read_text())["scenario"]
    Path("again.toml").write_text(SCENARIO if is_own else kept)
    assert main([*shlex.split(section.command)[1:], "--out", "second"]) == 0
    first, second = (
        sorted(run.hash for run in sweep_report(Path(name)).runs) for name in ("first", "second")
    )
    assert first == second
    assert len(first) == 2


def test_the_command_of_a_comparison_makes_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Oracle: the hash of the scenario, and what the runs brought."""
    monkeypatch.chdir(tmp_path)
    Path("own.toml").write_text(SCENARIO)
    settings = ["--set", "name=own", "--set", "run.duration=240 us", "--set", "run.seed=5"]
    words = ["compare", "own.toml", "--schemes", "ib-cc", *settings]
    assert main([*words, "--out", "first"]) == 0
    (section,) = comparison_report(Path("first/compare-own/compare.json")).sections
    assert main([*shlex.split(section.command)[1:], "--out", "second"]) == 0
    first, second = (
        json.loads(Path(name, "compare-own", "compare.json").read_text())
        for name in ("first", "second")
    )
    assert first == second
    assert first["hash"] == silvan.Scenario.from_toml(SCENARIO, overrides=SETTINGS).hash


SETTINGS = {"name": "own", "run.duration": "240 us", "run.seed": 5}


def test_the_command_of_a_point_makes_it_again(
    swept: tuple[silvan.SweepResult, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result, path = swept
    made = sweep_report(path.parent)
    run = made.runs[-1]
    monkeypatch.chdir(tmp_path)
    Path(run.file).write_text(run.scenario)
    words = run.command.replace("--record view ", "").split()
    assert main(words[1:]) == 0
    again = silvan.Result.read(tmp_path / "results" / f"seed-{run.seed}")
    (row,) = [one for one in result.points.to_pylist() if one["hash"] == run.hash]
    assert int(again.hosts["delivered_bytes"].to_numpy().sum()) == row["delivered_bytes"]


def test_the_command_shows_sweeps_and_reproductions(
    swept: tuple[silvan.SweepResult, Path],
    reproduction: tuple[ReproductionPlan, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    result, path = swept
    plan, figures = reproduction
    shown = {path.parent: result.points.num_rows, figures: len(plan.runs)}
    for place, (folder, runs) in enumerate(shown.items()):
        out = tmp_path / f"{place}.html"
        assert main(["view", str(folder), "--out", str(out), "--json"]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert printed == {"file": str(out), "bytes": out.stat().st_size, "runs": runs}
    # The folder that silvan reproduce was given holds that of the report.
    above = tmp_path / "out"
    above.mkdir()
    (above / "gran2012").symlink_to(figures)
    assert main(["view", str(above), "--out", str(tmp_path / "above.html"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == len(plan.runs)
    (above / "gran2010").symlink_to(figures)
    assert main(["view", str(above), "--out", str(tmp_path / "above.html")]) == 2
    assert "several reproductions: gran2010, gran2012" in capsys.readouterr().err
    (tmp_path / "reproduction.json").write_text("{}")
    assert main(["view", str(tmp_path), "--out", str(tmp_path / "a.html")]) == 2
    assert "reproduction.json: no readable reproduction" in capsys.readouterr().err


def test_a_report_is_for_everybody(open_page: Opener, report: Path) -> None:
    page = open_page(report, "of=1", color_scheme="dark", **PHONE)
    assert findings(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    names = reached(page)
    assert {"Report", "Show its map", "Download Points as CSV"} <= set(names)
    assert missed(page) == []


def test_a_report_prints_all_of_it(open_page: Opener, report: Path) -> None:
    page = open_page(report, "theme=dark")
    page.emulate_media(media="print")
    expect(page.get_by_role("complementary", name="Run behind a point")).to_be_hidden()
    expect(page.get_by_role("cell", name="fig9a.10ms.on", exact=True)).to_be_visible()
    article = page.locator("article")
    assert article.evaluate("(one) => one.scrollHeight <= one.clientHeight + 1")
    assert page.pdf().startswith(b"%PDF")


def test_sentences_of_targets_are_whole_on_any_screen(
    open_page: Opener, reproduction: tuple[ReproductionPlan, Path], tmp_path: Path
) -> None:
    """Oracle: each word of a sentence is in one line, as its first and last letter are as high."""
    _, figures = reproduction
    read: dict[str, Any] = json.loads((figures / "reproduction.json").read_text())
    sentence = " ".join(f"measurement{number}" for number in range(60))
    read["experiments"][0]["targets"][0]["note"] = sentence
    path = figures / "reproduction-long.json"
    path.write_text(json.dumps(read))
    page = open_page(write_report(reproduction_report(path), tmp_path / "long.html"), "", **PHONE)
    cell = page.get_by_role("cell").locator("p", has_text="measurement0")
    expect(cell).to_contain_text(sentence)
    heights = cell.evaluate(
        """cell => {
          const range = document.createRange();
          const node = [...cell.childNodes].find((one) => one.data.includes('measurement0'));
          return [...node.data.matchAll(/measurement\\d+/g)].map(({ index, 0: word }) => {
            range.setStart(node, index);
            range.setEnd(node, index + word.length);
            return range.getClientRects().length;
          });
        }"""
    )
    assert heights == [1] * 60
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
