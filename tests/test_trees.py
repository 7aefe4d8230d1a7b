"""Congestion trees: the tables in Python, the pictures, and the command that draws them."""

from __future__ import annotations

import csv
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import silvan
from silvan.figures.forest import (
    CHANGE_COLOURS,
    TREE_COLOURS,
    Drawing,
    Panel,
    _apart,
    draw_forests,
)
from silvan.figures.forest_movie import animate
from silvan.figures.forest_time import draw_over_time
from silvan.figures.layout import lay_out
from silvan.figures.strokes import dots, symbol
from silvan.results.forest import Forests
from tests.conftest import DDR_TOML, Command, ddr_scenario

FAT_TREE = f"""\
name = "two-levels"

[fabric]
generator = "xgft"
children = [4, 4]
parents = [1, 4]
{DDR_TOML}
[[traffic.incast]]
to = "host-0000"
end = "300 us"

[[traffic.flow]]
from = "host-0004"
to = "host-0008"
load = 0.1
end = "300 us"

[probe.trees]
interval = "100 us"

[run]
duration = "1.2 ms"
"""
"""Fifteen hosts send to the sixteenth, for a while; one of them to another host, too."""


@pytest.fixture(scope="module")
def forests() -> Forests:
    return Forests(silvan.run(silvan.Scenario.from_toml(FAT_TREE)))


def test_looks_are_at_equal_distances(forests: Forests) -> None:
    assert len(forests) == 12
    assert forests.times_ps.tolist() == [100_000_000 * look for look in range(1, 13)]
    assert forests.nearest(0) == 0
    assert forests.nearest(149_000_000) == 0
    assert forests.nearest(151_000_000) == 1
    assert forests.nearest(10**12) == 11


def test_a_snapshot_holds_the_rows_of_its_instant(forests: Forests) -> None:
    result = forests.result
    for look in range(len(forests)):
        snapshot = forests.at(look)
        for name, columns in (
            ("trees", snapshot.trees),
            ("tree_ports", snapshot.ports),
            ("tree_hosts", snapshot.hosts),
        ):
            rows = [
                row for row in result.tables[name].to_pylist() if row["time_ps"] == snapshot.time_ps
            ]
            assert {key: values.tolist() for key, values in columns.items()} == {
                key: [row[key] for row in rows] for key in columns
            }


def test_the_tree_is_the_known_one(forests: Forests) -> None:
    snapshot = forests.at(2)
    assert snapshot.trees["destination"].tolist() == ["host-0000"]
    # The root, the spine's port to it, the three other leaves' ports to that spine; 15 senders.
    assert sorted(snapshot.depths().tolist()) == [0, 1] + [1] * 3 + [2] * 3 + [3] * 12
    assert sorted(snapshot.main_trees()) == list(range(1, 16))
    # Host 8 is reached by the same spine as host 0, so the second flow waits in a branch.
    assert snapshot.victims().tolist() == [4]
    assert len(forests.at(-1).trees["tree"]) == 0


def test_a_result_without_trees_says_so(incast: silvan.Result) -> None:
    with pytest.raises(silvan.SilvanError, match="did not look for congestion trees") as caught:
        _ = incast.trees
    assert caught.value.hint is not None
    assert "--trees" in caught.value.hint


def test_trees_survive_a_folder(forests: Forests, tmp_path: Path) -> None:
    again = silvan.Result.read(forests.result.write(tmp_path / "run"))
    for name in ("forest", "trees", "tree_ports", "tree_hosts", "tree_lifetimes"):
        assert again.tables[name].equals(forests.result.tables[name])


def test_the_layout_puts_ways_up_above_ways_down(forests: Forests) -> None:
    layout = lay_out(forests.result)
    # Every cable leads downwards, and every place of a switch is the end of some cable.
    assert all(start[1] > end[1] for start, end in layout.lines)
    ends = {tuple(end) for line in layout.lines for end in line}
    assert set(layout.switches) <= ends
    # 4 leaves, each twice, and 4 spines.
    assert len(layout.switches) == 12
    assert len({tuple(place) for place in layout.senders}) == 16
    assert layout.is_uplink.sum() == layout.is_last.sum() == 16
    assert np.abs(layout.senders[:, 1]).max() < layout.height / 2


def test_neighbours_of_one_level_are_joined_by_arcs() -> None:
    chain: dict[str, str | int] = {
        "generator": "chain",
        "switches": 3,
        "hosts-per-switch": 2,
        "routing": "min-hop",
    }
    traffic = {"incast": [{"to": "host-0000"}]}
    result = silvan.run(ddr_scenario(fabric=chain, traffic=traffic, run={"duration": "1 us"}))
    layout = lay_out(result)
    assert len(layout.switches) == 3
    level = [start[1] == end[1] for start, end in layout.lines]
    assert sum(level) == 4


def strokes(path: Path, colour: str) -> int:
    """Count the curves and dots of one colour in an SVG, those of its legend too."""
    shapes = ET.parse(path).iter("{http://www.w3.org/2000/svg}path")
    look = f"stroke: {colour.lower()}"
    return sum(one.get("d", "").count("M ") for one in shapes if look in one.get("style", ""))


@pytest.mark.slow
def test_pictures_show_the_tree_where_it_stands(forests: Forests, tmp_path: Path) -> None:
    drawing = Drawing(forests)
    during = draw_forests([[Panel("", drawing, 2)]], title="a", folder=tmp_path, stem="during")
    after = draw_forests([[Panel("", drawing, 11)]], title="a", folder=tmp_path, stem="after")
    both = draw_forests(
        [[Panel("", drawing, 2), Panel("", drawing, 11, since=2)]],
        title="a",
        folder=tmp_path,
        stem="both",
    )
    for paths in (during, after, both):
        assert [path.suffix for path in paths] == [".png", ".svg"]
        with Image.open(paths[0]) as image:
            assert image.width == 2700
    red = TREE_COLOURS[0]
    # 20 Port VLs and 15 senders more than the legends alone, of which both have one.
    assert strokes(during[1], red) - strokes(after[1], red) == 35
    assert strokes(both[1], CHANGE_COLOURS["before"]) == 36
    # Nothing stands afterwards: the colours of what does are in the legend only.
    assert strokes(both[1], CHANGE_COLOURS["after"]) == 1
    assert strokes(both[1], CHANGE_COLOURS["both"]) == 1
    # Both panels show the same fabric, which the file holds once.
    assert strokes(both[1], "#B8B8B8") == strokes(during[1], "#B8B8B8") == 16 + 16 + 2 * 16
    again = draw_forests([[Panel("", drawing, 2)]], title="a", folder=tmp_path, stem="again")
    assert again[1].read_bytes() == during[1].read_bytes()


def test_an_svg_names_what_the_pointer_is_on(forests: Forests, tmp_path: Path) -> None:
    drawing, snapshot = Drawing(forests), forests.at(2)
    paths = draw_forests([[Panel("", drawing, 2)]], title="a", folder=tmp_path, stem="named")
    space = "{http://www.w3.org/2000/svg}"
    root = ET.parse(paths[1]).getroot()
    names: dict[str, list[str]] = {"use": [], "path": []}
    for kind, found in names.items():
        found += [part.findtext(f"{space}title", "") for part in root.iter(f"{space}{kind}")]
        found[:] = [name for name in found if name]
    ports = forests.result.ports.to_pylist()
    switches = {port["node"] for port in ports} - set(forests.result.hosts["name"].to_pylist())
    roots = [ports[row] for row in snapshot.trees["root_row"].tolist()]
    expected = [f"root of tree 0: {port['node']}:{port['port']}" for port in roots]
    assert set(names["use"]) == switches | set(expected)
    # The leaves have two places, one for each way.
    assert len(names["use"]) == 2 * 4 + 4 + len(expected)
    counts = [re.match(r"tree 0: (\d+) Port VL", name) for name in names["path"]]
    assert sum(int(one[1]) for one in counts if one) == len(snapshot.ports["tree"])


def test_names_of_rows_do_not_touch() -> None:
    placed = _apart({9.0: 3.0, 8.0: 4.0, 0.0: 2.0, -0.5: 2.0, -7.0: 1.0})
    assert placed == {9.0: 11.5, 8.0: 8.0, 0.0: 0.0, -0.5: -2.0, -7.0: -7.0}


@pytest.mark.parametrize("columns", [4, 16, 37])
def test_every_idle_host_has_a_dot(columns: int, tmp_path: Path) -> None:
    """Oracle: the pixel at the place of each host is not white."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.1, 2.3), dpi=100)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(-1, columns)
    axes.set_ylim(-1, 1)
    places = np.array([(x + 0.37 * y, y / 3) for x in range(columns) for y in (-1, 1)])
    symbol(axes, dots(places), "#D9D9D9", 3.6, zorder=2)
    figure.savefig(tmp_path / "dots.png", dpi=100)
    with Image.open(tmp_path / "dots.png") as image:
        pixels = np.asarray(image.convert("RGB"))[::-1]
    for x, y in axes.transData.transform(places):
        assert pixels[int(y), int(x)].min() < 250, (x, y)


def test_an_animation_has_a_frame_for_each_look(forests: Forests, tmp_path: Path) -> None:
    path = animate(Drawing(forests), range(2, 7), title="a", path=tmp_path / "a.gif")
    with Image.open(path) as movie:
        assert getattr(movie, "n_frames", 1) == 5
        frames = []
        for frame in range(5):
            movie.seek(frame)
            frames.append(np.asarray(movie.convert("RGB")))
    assert (frames[0] != frames[-1]).any()
    assert (frames[0][0, 0] == 255).all()


def test_numbers_next_to_the_plot_are_those_of_the_table(forests: Forests, tmp_path: Path) -> None:
    *_, path = draw_over_time({"off": forests}, title="a", folder=tmp_path, stem="time")
    with path.open() as file:
        rows = list(csv.DictReader(file))
    table = forests.result.forest.to_pylist()
    assert len(rows) == len(table) == 12
    for row, known in zip(rows, table, strict=True):
        assert float(row["time_ms"]) == pytest.approx(known["time_ps"] / 1e9)
        assert float(row["trees"]) == known["trees"]
        assert float(row["ports"]) == known["ports"]
        assert float(row["victims_percent"]) == pytest.approx(100 * known["victims"] / 16)
        assert float(row["waiting_mib"]) == pytest.approx(known["queued_bytes"] / 2**20, rel=1e-5)


@pytest.mark.slow
def test_the_commands_list_and_draw_the_trees_of_a_run(command: Command, tmp_path: Path) -> None:
    scenario = tmp_path / "fat-tree.toml"
    scenario.write_text(FAT_TREE)
    outcome = command("run", scenario, "--out", tmp_path / "out", "--json")
    assert outcome.status == 0, outcome.stderr
    (run,) = json.loads(outcome.stdout)["runs"]
    (tree,) = run["trees"]
    assert tree["destination"] == "host-0000"
    assert (tree["peak_ports"], tree["peak_depth"], tree["died"]) == (5, 3, True)
    assert tree["moved_from"] is None
    listed = command("run", scenario)
    assert "congestion trees" in listed.stdout
    assert "host-0000" in listed.stdout
    out = tmp_path / "plots"
    drawn = command("plot", run["folder"], "trees", "--out", out)
    assert drawn.status == 0, drawn.stderr
    names = {f"plot-trees.{suffix}" for suffix in ("png", "svg", "pdf")}
    names |= {f"plot-trees-over-time.{suffix}" for suffix in ("png", "svg", "pdf", "csv")}
    assert {path.name for path in out.iterdir()} == {*names, "origin.json"}
    assert set(drawn.stdout.splitlines()) == {str(out / name) for name in names}
    picture = (out / "plot-trees.svg").read_bytes()
    assert command("plot", run["folder"], "trees", "--out", out, "--animate").status == 0
    assert (out / "plot-trees.svg").read_bytes() == picture
    assert (out / "plot-trees.gif").is_file()
    at = command("plot", run["folder"], "--out", out, "--at", "100 us", "--at", "0.6 ms")
    assert at.status == 0, at.stderr
    assert (out / "plot-trees.svg").read_bytes() != picture
    # All that the run has samples for: it kept no latencies by host.
    stems = {path.stem for path in out.glob("*.png")}
    assert stems == {
        *("plot-receive-rates", "plot-queues", "plot-utilisation"),
        *("plot-trees", "plot-trees-over-time"),
    }


@pytest.mark.slow
def test_run_writes_trees_if_asked(command: Command, incast_file: Path, tmp_path: Path) -> None:
    assert command("run", incast_file, "--out", tmp_path / "plain").status == 0
    assert not (tmp_path / "plain" / "seed-3" / "trees.parquet").exists()
    assert command("run", incast_file, "--trees", "--out", tmp_path / "trees").status == 0
    result = silvan.Result.read(tmp_path / "trees" / "seed-3")
    # A hundred looks, by default.
    assert result.forest.num_rows == 100
    assert set(result.trees["destination"].to_pylist()) == {"host-0000"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--at", "12"], "--at: '12' is not a time"),
        (["--at", "-1 ms"], "--at: '-1 ms' is not a time"),
        (["--at", "1 ms"] * 9, "--at: 9 instants, and 8 fit into a picture"),
        (["latency-cdf"], "did not keep latencies by host"),
        (["treees"], "treees: no figure and no folder"),
    ],
)
def test_bad_words_are_one_line(
    command: Command, forests: Forests, tmp_path: Path, words: list[str], message: str
) -> None:
    result = forests.result.write(tmp_path / "run")
    outcome = command("plot", result, "--out", tmp_path / "out", *words)
    assert outcome.status == 2
    assert message in outcome.stderr.splitlines()[0]
    assert not list(tmp_path.glob("out/plot-*"))


@pytest.mark.slow
def test_runs_that_cannot_be_drawn(command: Command, incast: silvan.Result, tmp_path: Path) -> None:
    plain = incast.write(tmp_path / "plain")
    outcome = command("plot", plain, "trees", "--out", tmp_path / "out")
    assert (outcome.status, outcome.stdout) == (2, "")
    assert "did not look for congestion trees" in outcome.stderr
    outcome = command("plot", tmp_path / "nowhere", "--out", tmp_path / "out")
    assert outcome.status == 2
    assert "silvan run" in outcome.stderr
    assert not (tmp_path / "out").exists()
