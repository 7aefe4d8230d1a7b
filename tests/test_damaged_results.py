"""Damaged results: each is an error of one line that names the damage."""

from __future__ import annotations

import json
import os
import resource
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import silvan
from silvan.cli import main
from silvan.cli.options import view_keys
from silvan.folders import MANIFEST

OTHERS: dict[str, dict[str, Any]] = {
    "two tiers": {"generator": "leaf-spine", "leaf-hosts": [2, 2], "spine-cables": [1]},
    "more hosts": {"generator": "single-switch", "hosts": 5},
}


def _scenario(fabric: dict[str, Any]) -> silvan.Scenario:
    scenario = silvan.Scenario(
        fabric=fabric, traffic={"incast": [{"to": "host-0000"}]}, run={"duration": "100 us"}
    )
    return scenario.override(view_keys(scenario))


@pytest.fixture(scope="module")
def whole() -> silvan.Result:
    """Record all that a page shows of a small fabric."""
    return silvan.run(_scenario({"generator": "single-switch", "hosts": 4}))


@pytest.fixture
def folder(whole: silvan.Result, tmp_path: Path) -> Path:
    """Write it."""
    return whole.write(tmp_path / "run")


def _change(folder: Path, **keys: Any) -> None:
    file = folder / MANIFEST
    file.write_text(json.dumps(json.loads(file.read_text()) | keys))


def _set_table(folder: Path, name: str, column: str, values: pa.Array, *, noted: bool) -> None:
    """Replace a column, and note it in the manifest if requested."""
    file = folder / f"{name}.parquet"
    table = pq.read_table(file)
    pq.write_table(table.set_column(table.column_names.index(column), column, values), file)
    if noted:
        tables = json.loads((folder / MANIFEST).read_text())["tables"]
        del tables[name]["sha256"]
        _change(folder, tables=tables)


def _is_refused(folder: Path, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Refuse it for the page and the trace alike."""
    for option in ("--out", "--perfetto"):
        target = folder.parent / "target"
        assert main(["view", str(folder), option, str(target)]) == 2
        error = capsys.readouterr().err
        assert words in error, error
        assert error.startswith("error: ")
        assert not target.exists()


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"tables": {}}, "it has no table hosts"),
        ({"summary": {}}, "its summary has no simulated_ps"),
        ({"summary": []}, "its summary is no table"),
        ({"seed": "a"}, "its seed is a"),
        *(
            ({"summary": {"simulated_ps": value}}, f"its simulated_ps is {value}")
            for value in ("a", 0, -5, 10**30, 0.5, True, None)
        ),
    ],
)
def test_numbers_of_a_run_are_numbers(
    folder: Path, keys: dict[str, Any], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _change(folder, **keys)
    _is_refused(folder, words, capsys)


def test_deep_nesting_is_an_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / MANIFEST).write_text("[" * 100_000)
    _is_refused(folder, "its manifest.json is ", capsys)


@pytest.mark.parametrize("report", ["sweep.json", "comparison.json", "reproduction.json"])
def test_deep_nesting_of_a_report_is_an_error(
    tmp_path: Path, report: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / report).write_text("[" * 100_000)
    assert main(["view", str(tmp_path), "--out", str(tmp_path / "page.html")]) == 2
    assert capsys.readouterr().err.startswith("error: ")


@pytest.mark.parametrize("noted", [False, True])
@pytest.mark.parametrize(
    ("table", "column", "value", "words"),
    [
        ("port_series", "ports_row", 9999, "the column ports_row names row 9999 of 8"),
        ("host_latencies", "host", 4, "the column host names row 4 of 4"),
        ("trees", "root_row", 8, "the column root_row names row 8 of 8"),
        ("port_series", "ports_row", None, "the column ports_row has 800 values missing"),
        ("ports", "xmit_bytes", None, "the column xmit_bytes is empty"),
        ("ports", "xmit_bytes", "many", "the column xmit_bytes holds no numbers"),
        ("port_series", "queued_bytes", "many", "the column queued_bytes holds no numbers"),
        ("ports", "link_gbps", 0, "the column link_gbps holds 0.0, and no rate"),
        ("ports", "port", 1, "the column port has switch-00:1 twice"),
        ("tree_ports", "parent_row", 8, "the column parent_row names row 8 of 8"),
        ("tree_ports", "tree", 999, "the column tree names row 999 of 1"),
        ("class_series", "class", 7, "the column class names row 7 of 1"),
        ("hosts", "host", 0, "row 1 is of host 0"),
        ("hosts", "name", "host-0000", "the column name has host-0000 twice"),
        ("hosts", "receives", "yes", "the column receives is of type string"),
        ("hosts", "lid", "1", "the column lid is of type string"),
    ],
)
def test_a_changed_table_is_no_part_of_a_result(
    folder: Path,
    table: str,
    column: str,
    value: int | str | None,
    words: str,
    *,
    noted: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A table that the manifest does not tell of, and one that it tells of, with the same shape."""
    before = pq.read_table(folder / f"{table}.parquet")
    kind = pa.string() if isinstance(value, str) else before.schema.field(column).type
    values = pa.array([value] * before.num_rows, kind)
    _set_table(folder, table, column, values, noted=noted)
    _is_refused(folder, words if noted else f"its {table}.parquet is not the one", capsys)


PEERS = {
    "no port": (
        {"switch-00:1": "leaf-99:1"},
        "row 0: the column peer names leaf-99:1, and there is no such port",
    ),
    "one way": (
        {"switch-00:1": "host-0001:1"},
        "row 0: switch-00:1 has the peer host-0001:1, whose peer is switch-00:2",
    ),
    "exchanged": (
        {
            "switch-00:1": "host-0001:1",
            "host-0001:1": "switch-00:1",
            "switch-00:2": "host-0000:1",
            "host-0000:1": "switch-00:2",
        },
        "row 0: the peer of switch-00:1 is host-0001:1; in the scenario it is host-0000:1",
    ),
}


@pytest.mark.parametrize("kind", PEERS)
def test_peers_are_those_of_the_cables(
    folder: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    changes, words = PEERS[kind]
    ports = pq.read_table(folder / "ports.parquet")
    names = [f"{row['node']}:{row['port']}" for row in ports.to_pylist()]
    before = ports["peer"].to_pylist()
    peers = [changes.get(name, peer) for name, peer in zip(names, before, strict=True)]
    _set_table(folder, "ports", "peer", pa.array(peers), noted=True)
    assert main(["view", str(folder), "--out", str(folder.parent / "page.html")]) == 2
    error = capsys.readouterr().err
    assert words in error, error
    assert "\nhint: " in error
    assert not (folder.parent / "page.html").exists()


@pytest.mark.parametrize("column", ["xmit_bytes", "xmit_wait_ps", "link_gbps"])
@pytest.mark.parametrize("value", [None, -1.0, float("inf"), float("nan")])
def test_amounts_of_ports_are_amounts(
    folder: Path, column: str, value: float | None, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = pq.read_table(folder / "ports.parquet").num_rows
    _set_table(
        folder, "ports", column, pa.array([value, *[1.0] * (rows - 1)], pa.float64()), noted=True
    )
    _is_refused(folder, f"its ports.parquet: the column {column} h", capsys)


def test_lids_are_those_of_the_scenario(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _set_table(folder, "hosts", "lid", pa.array([2, 3, 4, 99], pa.uint32()), noted=True)
    assert main(["view", str(folder), "--out", str(folder.parent / "page.html")]) == 2
    assert "host-0003 has LID 99; in the scenario it is 5" in capsys.readouterr().err


@pytest.mark.parametrize("other", OTHERS)
def test_a_scenario_of_another_fabric_is_refused(
    folder: Path, other: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _change(folder, scenario=_scenario(OTHERS[other]).to_toml())
    assert main(["view", str(folder), "--out", str(folder.parent / "page.html")]) == 2
    assert "are not of the fabric of its scenario" in capsys.readouterr().err


def test_every_whole_result_is_read(whole: silvan.Result, folder: Path) -> None:
    """The checks accept a run with all tables; oracle: the run itself."""
    assert silvan.Result.read(folder).tables == whole.tables


@pytest.mark.parametrize("name", [MANIFEST, "ports.parquet"])
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_is_no_file_is_not_read(
    folder: Path, name: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pipe waits for its writer, and a device may have no end."""
    file = folder / name
    file.unlink()
    if kind == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to("/dev/zero")
    _is_refused(folder, f"its {name} is no regular file", capsys)


@pytest.mark.parametrize("report", ["compare.json", "reproduction.json"])
def test_a_report_that_is_no_file_is_not_read(
    tmp_path: Path, report: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "report").mkdir()
    os.mkfifo(tmp_path / "report" / report)
    assert main(["view", str(tmp_path), "--out", str(tmp_path / "page.html")]) == 2
    assert f"its {report} is no regular file" in capsys.readouterr().err


@pytest.mark.parametrize("left", [".run-old-x/run", ".run-x"])
def test_what_a_killed_command_has_left_is_no_result(
    folder: Path, left: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A result that is replaced has another name until the new one is there, and then until it is
    removed."""
    shutil.copytree(folder, folder.parent / left)
    target = folder.parent / "target"
    for option in ("--out", "--perfetto"):
        assert main(["view", str(folder.parent), option, str(target), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["runs"] == 1
        target.unlink()
    with pytest.raises(silvan.OutputError) as caught:
        silvan.Result.read(folder.parent)
    assert str(caught.value.hint).endswith(f"name one: {folder}")


@pytest.mark.parametrize("has_digest", [True, False])
def test_a_table_that_would_take_much_memory_is_refused_before_it_is_read(
    folder: Path, capsys: pytest.CaptureFixture[str], *, has_digest: bool
) -> None:
    """Oracle: the largest memory of this process; the table has 512 MB, its file less than 1 MB."""
    part = pa.table({"node": pa.array(bytes(1 << 23), pa.uint8()).cast(pa.uint64())})
    file = folder / "ports.parquet"
    with file.open("wb") as opened, pq.ParquetWriter(opened, part.schema) as writer:
        for _ in range(8):
            writer.write_table(part)
    assert file.stat().st_size < 1 << 20
    if not has_digest:
        tables = json.loads((folder / MANIFEST).read_text())["tables"]
        del tables["ports"]["sha256"]
        _change(folder, tables=tables)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _is_refused(folder, "its ports.parquet is not the one", capsys)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10
