"""Results: what they hold, that no column is copied, and that they keep."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console
from rich.table import Table

import silvan
from silvan import _silvan
from silvan.cli.measure_columns import add_measures, cell, measure_table
from silvan.errors import OutputError
from silvan.results.arrow import table_from_columns
from silvan.results.measures import MEASURES, Measure
from silvan.results.receive_rates import (
    Window,
    class_delivered,
    is_hotspot,
    jain_index,
    jain_index_series,
    mean_receive_rate_gbps,
    sliding_rates_gbps,
)
from tests.conftest import INCAST, ddr_scenario


def native_run() -> _silvan.RunOutput:
    scenario = _silvan.Scenario.from_toml(INCAST, None, [])
    return _silvan.run(scenario, 3, None)


def test_arrow_reads_the_memory_that_the_simulator_filled() -> None:
    tables = native_run().tables
    for name, columns in tables.items():
        table = table_from_columns(columns)
        for column, (_, *buffers) in columns.items():
            chunk = table[column].chunk(0)
            arrow = [buffer for buffer in chunk.buffers() if buffer is not None]
            assert [buffer.address for buffer in arrow] == [buffer.address for buffer in buffers], (
                f"{name}.{column} was copied"
            )


def test_polars_and_pandas_read_the_same_memory(incast: silvan.Result) -> None:
    delivered = incast.host_series["delivered_bytes"].chunk(0)
    address = delivered.buffers()[1].address
    frame = incast.to_polars()["host_series"]
    # polars tells the address of a series through its Arrow export.
    assert frame["delivered_bytes"].to_arrow().buffers()[1].address == address
    values: Any = incast.to_pandas()["host_series"]["delivered_bytes"].to_numpy()
    assert values.__array_interface__["data"][0] == address


def test_a_column_outlives_the_run_it_came_from() -> None:
    column = table_from_columns(native_run().tables["hosts"])["delivered_bytes"]
    assert column.to_pylist()[1:] == [0, 0, 0]
    assert column[0].as_py() > 0


def test_a_column_cannot_be_written_to() -> None:
    _, buffer = native_run().tables["hosts"]["delivered_bytes"][:2]
    assert isinstance(buffer, _silvan.Column)
    view = memoryview(buffer)
    assert view.readonly
    assert view.nbytes == buffer.nbytes == 4 * 8
    with pytest.raises(TypeError, match="read-only"):
        view[0] = 1


def test_a_saturated_link_delivers_its_payload_rate(incast: silvan.Result) -> None:
    # 4x DDR carries 16 Gbit/s after 8b/10b coding; 2048 of every 2074 bytes are payload. The
    # first packet needs under 3 us to arrive, so the last three quarters of the run are steady,
    # up to one packet at each end of the window.
    window = Window(50_000_000, 200_000_000)
    expected = 16 * 2048 / 2074
    packet = 2048 * 8e3 / (window.end_ps - window.start_ps)
    only_receiver = incast.hosts["delivered_bytes"].to_numpy() > 0
    measured = mean_receive_rate_gbps(incast, only_receiver, window)
    assert measured == pytest.approx(expected, abs=packet)


def test_the_series_adds_up_to_the_totals(incast: silvan.Result) -> None:
    series = incast.host_series.group_by("host").aggregate([("delivered_bytes", "sum")])
    totals = dict(zip(*(series[name].to_pylist() for name in series.column_names), strict=True))
    if series.column_names[0] != "host":
        totals = {host: total for total, host in totals.items()}
    hosts = incast.hosts
    assert totals == dict(
        zip(hosts["host"].to_pylist(), hosts["delivered_bytes"].to_pylist(), strict=True)
    )


def test_what_was_delivered_was_injected(incast: silvan.Result) -> None:
    delivered = sum(incast.hosts["delivered_bytes"].to_pylist())
    injected = sum(incast.hosts["injected_bytes"].to_pylist())
    by_class = sum(incast.classes["delivered_bytes"].to_pylist())
    assert 0 < delivered == by_class <= injected


def test_a_window_between_probe_instants_is_refused(incast: silvan.Result) -> None:
    everyone = ~is_hotspot(incast)
    with pytest.raises(ValueError, match="does not divide"):
        mean_receive_rate_gbps(incast, everyone, Window(0, 75_000_000))


def test_a_result_reads_back_as_it_was_written(incast: silvan.Result, tmp_path: Path) -> None:
    folder = incast.write(tmp_path / "deep" / "run")
    again = silvan.Result.read(folder)
    assert again.tables == incast.tables
    assert again.manifest() == incast.manifest()
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["run"]


def test_writing_again_replaces_the_result(incast: silvan.Result, tmp_path: Path) -> None:
    folder = incast.write(tmp_path / "run")
    (folder / "stale").touch()
    incast.write(folder)
    assert not (folder / "stale").exists()
    assert silvan.Result.read(folder).tables == incast.tables


def test_a_folder_that_holds_something_else_is_left_alone(
    incast: silvan.Result, tmp_path: Path
) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(silvan.OutputError, match="holds no result"):
        incast.write(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_in_the_place_of_a_folder_is_named(incast: silvan.Result, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("years of work")
    for path in (file, Path("/dev/null")):
        with pytest.raises(silvan.OutputError, match=f"{path}: it is no folder"):
            incast.write(path)
    assert file.read_text() == "years of work"


@pytest.mark.parametrize("directory", [None, 1, b"x", [], {}])
def test_what_is_no_path_is_an_error_of_silvan(incast: silvan.Result, directory: Any) -> None:
    for call in (silvan.Result.read, incast.write):
        with pytest.raises(silvan.SilvanError, match=r"^directory: .* is of type ") as error:
            call(directory)
        assert error.value.hint == "give the path of a folder"


def test_a_failed_write_leaves_nothing(
    incast: silvan.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def disk_full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.write_table", disk_full)
    with pytest.raises(silvan.OutputError, match="no space left"):
        incast.write(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["manifest.json", "hosts.parquet"])
def test_a_damaged_result_is_an_error_with_a_hint(
    incast: silvan.Result, tmp_path: Path, damage: str
) -> None:
    folder = incast.write(tmp_path / "run")
    (folder / damage).write_bytes(b"{")
    with pytest.raises(silvan.OutputError, match="no readable result") as caught:
        silvan.Result.read(folder)
    assert caught.value.hint is not None


def test_the_table_of_another_run_is_no_part_of_a_result(
    incast: silvan.Result, tmp_path: Path
) -> None:
    folder = incast.write(tmp_path / "run")
    (folder / "ports.parquet").write_bytes((folder / "hosts.parquet").read_bytes())
    with pytest.raises(silvan.OutputError, match=r"its ports\.parquet is not the one"):
        silvan.Result.read(folder)


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [("[]", "another type"), ("{}", "lacks a key"), ('{"tables": 3}', "another type")],
)
def test_a_manifest_of_another_form_is_no_result(
    incast: silvan.Result, tmp_path: Path, manifest: str, reason: str
) -> None:
    folder = incast.write(tmp_path / "run")
    (folder / "manifest.json").write_text(manifest)
    with pytest.raises(silvan.OutputError, match=reason):
        silvan.Result.read(folder)


def test_a_folder_of_several_seeds_names_a_result_in_it(
    incast: silvan.Result, tmp_path: Path
) -> None:
    inner = incast.write(tmp_path / "out" / "seed-1")
    with pytest.raises(silvan.OutputError, match=r"it has no manifest\.json") as caught:
        silvan.Result.read(tmp_path / "out")
    assert str(inner) in str(caught.value.hint)
    assert silvan.Result.read(inner).seed == incast.seed


def headings(rows: list[dict[str, float | None]]) -> list[str]:
    def make(measures: Sequence[Measure]) -> Table:
        table = Table()
        add_measures(table, measures)
        for row in rows:
            table.add_row(*(cell([row], one) for one in measures))
        return table

    table = measure_table(rows, [], make)
    assert Console(width=1000).measure(table).maximum <= 100
    return [str(column.header).replace("\n", " ") for column in table.columns]


def test_tables_have_columns_of_the_measures_that_suit_the_traffic() -> None:
    rates: dict[str, float | None] = {"other_receivers_gbps": 1.0, "total_gbps": 2.0}
    assert headings([rates, {"hotspots_gbps": None}]) == [
        "other receivers, Gbit/s",
        "total delivered, Gbit/s",
    ]
    # A flow has not finished in one of the runs.
    flows = {"flows_finished": 0.5, "fct_mean_us": 3.0, "fct_p99_us": None}
    assert headings([rates | flows])[:3] == ["flows finished", "FCT mean, µs", "FCT p99, µs"]
    assert headings([rates | flows | {"programs_end_ms": 1.0}])[0] == "programs end, ms"
    assert len(headings([dict.fromkeys(MEASURES, 1.0)])) < len(MEASURES)


def test_the_mean_of_an_infinite_measure_is_never() -> None:
    one: dict[str, float | None] = {"fct_mean_us": 3.0, "fct_p99_us": 4.0}
    other = one | {"fct_p99_us": None}
    assert cell([one, one], MEASURES["fct_p99_us"]) == "4.00 ± 0.00"
    assert cell([one, other], MEASURES["fct_p99_us"]) == "never"
    assert cell([one], MEASURES["latency_p99_us"]) == "-"


def test_a_missing_table_is_named(incast: silvan.Result, tmp_path: Path) -> None:
    folder = incast.write(tmp_path / "run")
    (folder / "ports.parquet").unlink()
    with pytest.raises(silvan.OutputError, match=r"it has no ports\.parquet"):
        silvan.Result.read(folder)


def test_all_tables_are_arrow_tables(incast: silvan.Result) -> None:
    assert all(isinstance(table, pa.Table) for table in incast.tables.values())
    assert {"hosts", "host_series", "classes", "ports"} <= set(incast.tables)


def test_jains_index_of_known_shares() -> None:
    assert jain_index([1, 1, 1, 1]) == 1.0
    assert jain_index([1, 0, 0, 0]) == 0.25
    # (1 + 2 + 3)² / (3 · 14)
    assert jain_index([1, 2, 3]) == pytest.approx(36 / 42)
    assert np.isnan(jain_index([0, 0]))


def test_jains_index_over_time_sees_a_flow_come() -> None:
    scenario = ddr_scenario(
        fabric={"generator": "single-switch", "hosts": 3},
        traffic={
            "flow": [
                {"from": "host-0001", "to": "host-0000"},
                {"from": "host-0002", "to": "host-0000", "start": "500 us"},
            ]
        },
        probe={"interval": "50 us", "classes": True},
        run={"duration": "1 ms"},
    )
    result = silvan.run(scenario, seed=1)
    times_ms, index = jain_index_series(result, of="classes", window_ps=100_000_000)
    # At first one of two flows has the whole rate, then both have half.
    assert index[times_ms < 0.45] == pytest.approx(0.5)
    assert index[times_ms > 0.6] == pytest.approx(1.0, abs=0.01)
    assert times_ms[0] == pytest.approx(0.05)
    # Only one host receives anything.
    _, by_host = jain_index_series(result)
    assert by_host == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="window"):
        jain_index_series(result, window_ps=70_000_000)
    _, rates = sliding_rates_gbps(*class_delivered(result))
    delivered_bytes = sum(result.classes["delivered_bytes"].to_pylist())
    assert rates.sum() * 50e-6 / 8e-9 == pytest.approx(delivered_bytes)


def test_a_result_can_be_sent_to_another_process() -> None:
    result = silvan.run(silvan.Scenario.from_toml(INCAST), seed=1)
    copy = pickle.loads(pickle.dumps(result))
    assert copy.tables == result.tables
    assert copy.summary == result.summary
    assert (copy.scenario, copy.seed, copy.version) == (result.scenario, 1, result.version)


def test_a_result_does_not_replace_that_of_another_scenario(
    incast: silvan.Result, tmp_path: Path
) -> None:
    folder = incast.write(tmp_path / "run")
    other = silvan.run(silvan.Scenario.from_toml(INCAST.replace("hosts = 4", "hosts = 5")))
    with pytest.raises(OutputError, match="another scenario"):
        other.write(folder)
    assert silvan.Result.read(folder).hosts.num_rows == 4
    other.write(folder, overwrite=True)
    assert silvan.Result.read(folder).hosts.num_rows == 5


def test_samples_add_events_and_change_no_other_count() -> None:
    """The reference says so of the measure `events`."""
    scenario = silvan.Scenario.from_toml(INCAST)
    few, many = (
        silvan.run(scenario.override({"probe.interval": interval})).summary
        for interval in ("100 us", "1 us")
    )
    assert many["events"] > few["events"]
    assert many["packet_hops"] == few["packet_hops"]
    definition = MEASURES["events"].definition
    assert "depends on `probe.interval`" in definition
