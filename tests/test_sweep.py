"""Sweeps: which points there are, what comes of them, and that none is run twice."""

from __future__ import annotations

import hashlib
import json
from itertools import product
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import polars
import pyarrow.parquet as pq
import pytest
from hypothesis import given

import silvan
from silvan.inputs.toml_text import TomlValue
from silvan.sweeping.plan import parse_grid, plan
from silvan.sweeping.table import SweepRow, from_table, to_table
from silvan.viewer.sweep import sweep_report
from tests.conftest import INCAST, Command

SCENARIO = silvan.Scenario.from_toml(INCAST)
RATES = ["4 Gbit/s", "8 Gbit/s"]
RING = """\
[fabric]
generator = "ring"
switches = 5
hosts-per-switch = 1
routing = "min-hop"
allow-credit-loops = true
[[traffic.permutation]]
pattern = "shift"
shift = 2
[switch]
buffer = "4 KiB"
[packet]
mtu = "2 KiB"
"""
"""A fabric that a credit loop stalls, unless each host sends to itself's neighbour only."""


def test_points_are_every_combination_with_every_seed() -> None:
    grid = {"switch.buffer": ["64 KiB", "48 KiB", "32 KiB"], "host.sink-rate": RATES}
    points = plan(SCENARIO, grid, seeds=2, seed=7).points
    # Keys vary in alphabetical order, the last fastest but for the seed.
    expected = list(product(RATES, grid["switch.buffer"], [7, 8]))
    values = [(p.values["host.sink-rate"], p.values["switch.buffer"], p.seed) for p in points]
    assert values == expected
    for point in points:
        single = SCENARIO.override(point.values | {"run.seed": point.seed})
        assert point.scenario() == single
        assert point.hash == single.hash
    assert len({point.hash for point in points}) == 12


def test_the_hash_of_a_point_does_not_depend_on_the_rest_of_the_sweep() -> None:
    wide = SCENARIO.override({"sweep": {"seeds": 9}, "description": "wide"})
    few = {point.hash for point in plan(SCENARIO, {"host.sink-rate": RATES}).points}
    many = {point.hash for point in plan(wide, {"host.sink-rate": [*RATES, "9 Gbit/s"]}).points}
    assert len(few) == 2
    assert len(many) == 27
    assert few < many


def test_a_grid_adds_to_the_sweep_table_and_replaces_its_keys() -> None:
    vary = {"host.sink-rate": RATES, "switch.latency": ["50 ns", "60 ns"]}
    base = SCENARIO.override({"sweep.seeds": 2}).varying(vary)
    planned = plan(base, {"switch.latency": ["70 ns"], "switch.buffer": ["32 KiB"]})
    assert planned.axes == {
        "host.sink-rate": RATES,
        "switch.buffer": ["32 KiB"],
        "switch.latency": ["70 ns"],
    }
    assert len(planned.points) == 4


def test_a_sweep_gives_what_single_runs_give(tmp_path: Path) -> None:
    result = silvan.sweep(
        SCENARIO, {"host.sink-rate": RATES}, seeds=2, out=tmp_path / "out", tables=True
    )
    assert result.failures == ()
    assert result.folder == tmp_path / "out"
    rows = result.points.to_pylist()
    assert [(row["host.sink-rate"], row["seed"]) for row in rows] == list(product(RATES, [3, 4]))
    for row in rows:
        values = {"host.sink-rate": row["host.sink-rate"], "run.seed": row["seed"]}
        single = silvan.run(SCENARIO.override(values))
        assert row["hash"] == single.scenario.hash
        delivered = single.hosts["delivered_bytes"].to_pylist()
        assert row["delivered_bytes"] == sum(delivered)
        assert row["total_gbps"] == pytest.approx(sum(delivered) * 8 / 200e-6 / 1e9)
        assert row["events"] == single.summary["events"]
        kept = silvan.Result.read(tmp_path / "out" / "tables" / row["hash"][:16])
        assert kept.tables == single.tables
    assert pq.read_table(tmp_path / "out" / "points.parquet") == result.points
    assert result.to_polars().equals(polars.read_parquet(tmp_path / "out" / "points.parquet"))
    assert result.to_pandas()["hash"].tolist() == [row["hash"] for row in rows]


@pytest.mark.slow
def test_finished_points_are_not_run_again_when_a_sweep_grows(tmp_path: Path) -> None:
    counts: list[tuple[int, int, int]] = []

    def note(state: silvan.SweepProgress) -> None:
        counts.append((state.kept, state.done, state.total))

    first = silvan.sweep(SCENARIO, {"host.sink-rate": RATES}, out=tmp_path)
    rates = ["2 Gbit/s", *RATES]
    second = silvan.sweep(SCENARIO, {"host.sink-rate": rates}, out=tmp_path, progress=note)
    assert counts == [(2, 0, 3), (2, 1, 3)]
    # The time that a run took differs from run to run: equal times are those of the first sweep.
    assert second.points.slice(1) == first.points
    # A smaller grid loses nothing of the larger.
    third = silvan.sweep(SCENARIO, {"host.sink-rate": ["8 Gbit/s"]}, out=tmp_path)
    assert sorted(third.points["hash"].to_pylist()) == sorted(second.points["hash"].to_pylist())


@pytest.mark.slow
def test_any_number_of_workers_gives_the_same_points() -> None:
    grid = {"switch.latency": ["50 ns", "60 ns", "70 ns"]}
    one, three = (silvan.sweep(SCENARIO, grid, workers=count).points for count in (1, 3))
    assert one.drop(["wall_s"]) == three.drop(["wall_s"])
    assert one.num_rows == 3


@pytest.mark.slow
def test_a_point_that_fails_stops_no_other_and_can_be_run_again(
    command: Command, tmp_path: Path
) -> None:
    path = tmp_path / "ring.toml"
    path.write_text(RING)
    out = tmp_path / "out"
    words = ("--grid", "traffic.permutation.0.shift=1,2,4", "--out", out, "--json")
    outcome = command("sweep", path, *words)
    assert outcome.status == 1, outcome.stderr
    report = json.loads(outcome.stdout)
    shifts = [point["traffic.permutation.0.shift"] for point in report["points"]]
    assert shifts == [1, 4]
    (failure,) = report["failed"]
    assert failure["values"] == {"traffic.permutation.0.shift": 2}
    assert failure["error"].startswith("deadlock at ")
    assert failure["hash"][:16] in outcome.stderr
    assert json.loads((out / "sweep.json").read_text())["failed"] == report["failed"]
    again = command("run", out / failure["scenario"])
    assert again.status == 1
    assert failure["error"] in again.stderr
    # The next start tries the failed point again, and only this one.
    outcome = command("sweep", path, *words)
    assert outcome.status == 1
    assert json.loads(outcome.stdout) == report


FAILED = {"hash": "a", "seed": 1, "values": {}, "error": "", "attempts": 1, "scenario": "b"}
"""A point that failed, as ``sweep.json`` has it."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("failed", 3),
        ("failed", [3]),
        ("failed", [{"hash": "a"}]),
        ("failed", [FAILED | {"hash": []}]),
        ("failed", [FAILED | {"values": 3}]),
        ("grid", 3),
        ("base", [1]),
        ("points_sha256", "0"),
        ("points_sha256", [0]),
    ],
)
def test_a_damaged_record_of_a_sweep_is_refused(key: str, value: object, tmp_path: Path) -> None:
    out = tmp_path / "out"
    silvan.sweep(SCENARIO, out=out)
    record = json.loads((out / "sweep.json").read_text())
    (out / "sweep.json").write_text(json.dumps({**record, key: value}))
    before = (out / "points.parquet").read_bytes()
    with pytest.raises(silvan.OutputError, match=r"sweep\.json: not readable") as caught:
        silvan.sweep(SCENARIO, out=out)
    assert caught.value.hint == "name another folder with --out"
    assert (out / "points.parquet").read_bytes() == before


def test_points_of_another_digest_are_not_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Oracle: SHA-256 of the file, and that Arrow is not called."""
    out = tmp_path / "out"
    silvan.sweep(SCENARIO, out=out)
    points, manifest = out / "points.parquet", out / "sweep.json"
    whole = points.read_bytes()
    record = json.loads(manifest.read_text())
    assert record["points_sha256"] == [hashlib.sha256(whole).hexdigest()]
    points.write_bytes(whole + b" ")

    def refuse(_file: object) -> None:
        raise AssertionError

    message = r"points\.parquet: not readable: its digest is not the one that sweep\.json tells of"
    with monkeypatch.context() as patched:
        patched.setattr("silvan.sweeping.store.pq.read_table", refuse)
        for read in (lambda: silvan.sweep(SCENARIO, out=out), lambda: sweep_report(out)):
            with pytest.raises(silvan.OutputError, match=message):
                read()
    assert points.read_bytes() == whole + b" "
    points.write_bytes(whole)
    assert silvan.sweep(SCENARIO, out=out).points.num_rows == 1
    # Sweeps of earlier versions have no digest.
    del record["points_sha256"]
    manifest.write_text(json.dumps(record))
    assert sweep_report(out).runs
    assert silvan.sweep(SCENARIO, out=out).points.num_rows == 1
    # While the file is replaced, either is right.
    other = {**record, "points_sha256": ["0", hashlib.sha256(points.read_bytes()).hexdigest()]}
    manifest.write_text(json.dumps(other))
    assert sweep_report(out).runs


@pytest.mark.slow
def test_the_command_agrees_with_the_function(
    command: Command, incast_file: Path, tmp_path: Path
) -> None:
    words = ("--grid", "host.sink-rate=4..8:4 Gbit/s", "--seeds", "2", "--seed", "5")
    outcome = command("sweep", incast_file, *words, "--out", tmp_path / "out", "--json")
    assert outcome.status == 0, outcome.stderr
    expected = silvan.sweep(SCENARIO, {"host.sink-rate": RATES}, seeds=2, seed=5).points
    points = json.loads(outcome.stdout)["points"]
    for point, row in zip(points, expected.to_pylist(), strict=True):
        assert point | {"wall_s": 0} == row | {"wall_s": 0}
    shown = command("sweep", incast_file, *words, "--out", tmp_path / "out")
    assert shown.status == 0
    assert "4 Gbit/s" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 100
    chosen = command(
        "sweep", incast_file, *words, "--measures", "marked_share", "--out", tmp_path / "out"
    )
    assert "hotspots" not in chosen.stdout
    assert "0.00 ± 0.00" in chosen.stdout


@pytest.mark.slow
def test_a_sweep_table_is_enough(command: Command, incast_file: Path, tmp_path: Path) -> None:
    incast_file.write_text(INCAST + '[sweep.vary]\n"host.sink-rate" = ["4 Gbit/s"]\n')
    assert command("sweep", incast_file, cwd=tmp_path).status == 0
    assert pq.read_table(tmp_path / "out" / "sweep-incast" / "points.parquet").num_rows == 1


@pytest.mark.parametrize(
    ("word", "values"),
    [
        ("k=0,10,20", [0, 10, 20]),
        ("k=0..100:25", [0, 25, 50, 75, 100]),
        ("k=1..3", [1, 2, 3]),
        ("k=0..0.3:0.1", [0, 0.1, 0.2, 0.3]),
        ("k=0..5:2", [0, 2, 4]),
        ("k=150 us, 300 us", ["150 us", "300 us"]),
        ("k=50..150:50 ns,1 us", ["50 ns", "100 ns", "150 ns", "1 us"]),
        ("k=[1, 2],[3, 4]", [[1, 2], [3, 4]]),
        ('k="a,b",c', ["a,b", "c"]),
        ("k=true,false", [True, False]),
        ("k=ib-cc", ["ib-cc"]),
        ("k=-2..2:2", [-2, 0, 2]),
    ],
)
def test_grids_are_read(word: str, values: list[object]) -> None:
    assert parse_grid([word]) == {"k": values}


@pytest.mark.parametrize("word", ["k", "=1", "k=", "k=,", "k=5..1", "k=0..1:0", "k=0..9999999"])
def test_grids_that_make_no_sense(word: str) -> None:
    with pytest.raises(silvan.ScenarioError) as caught:
        parse_grid([word])
    assert repr(word) in str(caught.value)


@pytest.mark.slow
@given(st.text())
def test_any_grid_is_read_or_refused(text: str) -> None:
    try:
        grid = parse_grid([text])
    except silvan.ScenarioError:
        return
    ((key, values),) = grid.items()
    assert key == text.partition("=")[0].strip()
    assert values


WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
VALUES: st.SearchStrategy[list[Any]] = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1),
    st.lists(st.booleans(), min_size=1),
    st.lists(st.floats(allow_nan=False), min_size=1),
    st.lists(WORDS, min_size=1),
)


@given(VALUES)
def test_rows_survive_their_table(values: list[TomlValue]) -> None:
    rows = [
        SweepRow(
            f"{index:064x}", index, {"k": value}, {"total_gbps": 0.1 * index, "events": index}, 1.5
        )
        for index, value in enumerate(values)
    ]
    assert from_table(to_table(rows, ["k"]), ["k"]) == rows
