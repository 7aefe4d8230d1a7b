"""The data of a page: exact where it says so, and smaller where it must be."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

import silvan
from silvan.cli import main
from silvan.cli.options import view_keys
from silvan.results.run_labels import run_labels
from silvan.viewer.page import page_html
from silvan.viewer.tables import page_tables
from tests.conftest import ddr_scenario


def _matrix(result: silvan.Result, name: str) -> npt.NDArray[np.uint64]:
    """Lay a column of the port series out by sample and port."""
    column: npt.NDArray[np.uint64] = result.tables["port_series"][name].to_numpy()
    return column.reshape(-1, result.ports.num_rows)


def test_port_series_are_exact_port_by_port(run: silvan.Result) -> None:
    tables = page_tables(run).tables
    series = tables["port_series"]
    for name in ("xmit_bytes", "fecn_marked", "queued_bytes"):
        expected = _matrix(run, name).T.ravel()
        assert np.array_equal(series[name].to_numpy(), expected)
    shown = series["xmit_wait_ns"].to_numpy().reshape(run.ports.num_rows, -1).T
    expected = _matrix(run, "xmit_wait_ps")
    # In nanoseconds, whose sums over any window are off by less than one.
    assert np.array_equal(shown.cumsum(axis=0), expected.cumsum(axis=0) // 1000)
    assert tables["samples"]["time_ps"].to_pylist() == [20e6 * step for step in range(1, 21)]


def test_merged_samples_keep_sums_and_last_queues(run: silvan.Result) -> None:
    ports = run.ports.num_rows
    page = page_tables(run, most_cells=8 * ports)
    assert page.merged_samples == 3  # 20 samples become 7: the last covers 2.
    sent = page.tables["port_series"]["xmit_bytes"].to_numpy().reshape(ports, 7)
    whole = _matrix(run, "xmit_bytes")
    assert np.array_equal(sent.sum(axis=1), whole.sum(axis=0))
    assert np.array_equal(sent[:, 1], whole[3:6].sum(axis=0))
    queued = page.tables["port_series"]["queued_bytes"].to_numpy().reshape(ports, 7)
    assert np.array_equal(queued[:, -1], _matrix(run, "queued_bytes")[-1])
    assert page.tables["samples"]["time_ps"].to_pylist()[-1] == 400e6


def test_tree_rows_survive_by_sample(run: silvan.Result) -> None:
    page = page_tables(run)
    times = run.forest["time_ps"].to_pylist()
    rows = page.tables["tree_ports"].to_pylist()
    found = {
        (
            times[row["sample"]],
            row["tree"],
            row["ports_row"],
            row["parent_row"],
            row["queued_bytes"],
        )
        for row in rows
    }
    keys = ("time_ps", "tree", "ports_row", "parent_row", "queued_bytes")
    expected = {tuple(row[key] for key in keys) for row in run.tree_ports.to_pylist()}
    assert len(rows) == run.tree_ports.num_rows
    assert found == expected


def test_skipped_samples_leave_whole_samples(run: silvan.Result) -> None:
    members = run.tree_ports.num_rows
    page = page_tables(run, most_members=members // 2)
    assert page.skipped_trees == 3 or page.skipped_trees == 2
    kept = run.forest["time_ps"].to_pylist()[:: page.skipped_trees]
    assert page.tables["forest"]["time_ps"].to_pylist() == kept
    expected = sum(row["time_ps"] in set(kept) for row in run.tree_ports.to_pylist())
    assert page.tables["tree_ports"].num_rows == expected


def test_ports_name_each_other(run: silvan.Result) -> None:
    tables = page_tables(run).tables
    names = tables["nodes"]["name"].to_pylist()
    ports = tables["ports"].to_pylist()
    for row, original in zip(ports, run.ports.to_pylist(), strict=True):
        assert names[row["node"]] == original["node"]
        peer = ports[row["peer"]]
        assert f"{names[peer['node']]}:{peer['number']}" == original["peer"]
        assert row["rate_gbps"] == 16


def test_links_have_their_own_rates() -> None:
    """Oracle: FDR has four lanes of 14.0625 Gbit/s, of which 64 bits of 66 are data."""
    cables = [("a", "s:1", "SDR"), ("b", "s:2", "QDR"), ("c", "s:3", "FDR")]
    result = silvan.run(
        ddr_scenario(
            fabric={
                "switch": [{"name": "s", "ports": 3}],
                "host": [{"name": name} for name, _, _ in cables],
                "cable": [{"from": one, "to": to, "speed": how} for one, to, how in cables],
            },
            traffic={"flow": [{"from": "a", "to": "b"}]},
            run={"duration": "10 us"},
        )
    )
    ports = page_tables(result).tables["ports"]
    rates = dict(zip(result.ports["node"].to_pylist(), ports["rate_gbps"].to_pylist(), strict=True))
    # In whole bit/s.
    fdr_gbps = 4 * 14_062_500_000 * 64 // 66 / 1e9
    assert [rates[name] for name in ("a", "b", "c")] == [8, 32, fdr_gbps]


def test_largest_latencies_by_host_are_exact(run: silvan.Result) -> None:
    rows = page_tables(run).tables["latencies"].to_pylist()
    largest = run.hosts["latency_max_ns"].to_pylist()
    assert any(value % 1 for value in largest if value is not None)
    for host in {row["host"] for row in rows}:
        assert max(row["to_ns"] for row in rows if row["host"] == host) == largest[host]


def test_a_run_that_recorded_nothing_has_a_page(incast: silvan.Result) -> None:
    tables = page_tables(incast).tables
    assert "port_series" not in tables
    assert "forest" not in tables
    assert {"nodes", "ports", "samples", "group_series"} <= set(tables)


def test_events_are_those_of_the_scenario(run: silvan.Result, changed: silvan.Result) -> None:
    events = page_tables(changed).tables["events"].to_pylist()
    assert [(event["time_ps"], event["kind"]) for event in events] == [
        (100e6, "traffic"),
        (200e6, "setting"),
    ]
    assert events[1]["text"] == "leaf-00: marking-rate = 3"
    # Settings of a scheme that is not in effect change nothing.
    events = page_tables(run).tables["events"].to_pylist()
    assert [event["kind"] for event in events] == ["traffic"]


def _blocks(html: str) -> dict[str, str]:
    return dict(re.findall(r'<script type="[^"]+" id="([^"]+)">([^<]*)</script>', html))


def test_tables_are_arrow_files_in_base64(run: silvan.Result) -> None:
    blocks = _blocks(page_html([run]))
    facts = json.loads(blocks["page"])
    for name in facts["runs"][0]["tables"]:
        table = pa.ipc.open_file(base64.b64decode(blocks[f"run0-{name}"])).read_all()
        assert table.equals(page_tables(run).tables[name].replace_schema_metadata(None))


def test_no_text_of_a_scenario_ends_the_data() -> None:
    name = "</script><script>alert(1)</script>"
    result = silvan.run(
        ddr_scenario(
            description=name,
            fabric={"generator": "single-switch", "hosts": 2},
            traffic={"flow": [{"from": "host-0000", "to": "host-0001"}]},
            run={"duration": "10 us"},
        )
    )
    html = page_html([result])
    assert "alert(1)</script>" not in html
    assert json.loads(_blocks(html)["page"])["runs"][0]["description"] == name


def test_runs_are_named_by_what_differs(run: silvan.Result, controlled: silvan.Result) -> None:
    assert run_labels([run]) == ["sixteen"]
    assert run_labels([run, controlled]) == ["no congestion control", "hpcc"]
    slow = silvan.run(run.scenario.override({"host.sink-rate": "4 Gbit/s"}))
    assert run_labels([run, slow])[1] == "host.sink-rate 4 Gbit/s"
    assert run_labels([run, run]) == ["sixteen (1)", "sixteen (2)"]


def test_view_writes_a_file(
    run: silvan.Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from silvan.cli.app import run_command

    run.write(tmp_path / "results" / "seed-2")
    page = tmp_path / "page.html"
    assert run_command(["view", str(tmp_path / "results"), "--out", str(page)]) == 0
    assert capsys.readouterr().out.strip() == str(page)
    assert page.read_text("utf-8") == page_html([run])
    # A page is replaced by a later one, but no other file by a page.
    assert run_command(["view", str(tmp_path / "results"), "--out", str(page)]) == 0
    trace = tmp_path / "trace.json"
    for _ in range(2):
        assert run_command(["view", str(tmp_path / "results"), "--perfetto", str(trace)]) == 0
    assert json.loads(trace.read_text("utf-8"))["traceEvents"]
    capsys.readouterr()
    others = {
        tmp_path / "scenario.toml": b'name = "a"\n',
        tmp_path / "package.json": b'{"name": "a"}\n',
        tmp_path / "events.json": b'{"traceEvents": []}\n',
        tmp_path / "thesis.html": b'<!doctype html>\n<html lang="en">\n<head>\n<title>a</title>\n',
    }
    for other, content in others.items():
        other.write_bytes(content)
    manifest = tmp_path / "results" / "seed-2" / "manifest.json"
    others[manifest] = manifest.read_bytes()
    for other, content in others.items():
        for option in ("--out", "--perfetto"):
            assert run_command(["view", str(tmp_path / "results"), option, str(other)]) == 2
            assert "exists, and is no " in capsys.readouterr().err
        assert other.read_bytes() == content


def test_view_refuses_what_is_no_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from silvan.cli.app import run_command

    assert run_command(["view", str(tmp_path), "--out", str(tmp_path / "a.html")]) == 2
    assert "no readable result: it has no manifest.json" in capsys.readouterr().err
    assert run_command(["view", str(tmp_path / "absent"), "--out", str(tmp_path / "a.html")]) == 2
    assert "no readable result: there is no such folder" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--bind", "127.0.0.1:8000"], ["--sockname", "other"]])
def test_options_of_live_pages_need_live(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["view", str(tmp_path), *words, "--out", str(tmp_path / "a.html")]) == 2
    error = capsys.readouterr().err
    assert " ".join(words) in error
    assert "add --live" in error


@pytest.mark.parametrize("duration", ["100 us", "500 us"])
@pytest.mark.parametrize("interval", ["10 us", "50 us"])
def test_a_page_has_all_trees_of_a_small_fabric(duration: str, interval: str) -> None:
    """Oracle: the tables of a run with `[probe.trees]`, which takes every sample."""
    scenario = ddr_scenario(
        fabric={"generator": "leaf-spine", "leaf-hosts": [4, 4, 4, 4], "spine-cables": [1, 1]},
        traffic={"incast": [{"to": "host-0000", "from": ["host-0004", "host-0008", "host-0012"]}]},
        probe={"interval": interval},
        run={"duration": duration},
    )
    recorded = scenario.override(view_keys(scenario))
    tables = page_tables(silvan.run(recorded)).tables
    every = page_tables(silvan.run(recorded.override({"probe.trees": {}}))).tables
    assert every["forest"].num_rows == 100
    for name in ("forest", "trees", "tree_ports", "tree_hosts", "tree_lifetimes"):
        assert tables[name] == every[name]


@pytest.mark.parametrize(("buffer", "is_thinned"), [("64 KiB", False), ("1 MiB", True)])
def test_samples_are_left_out_where_they_read_many_packets(
    buffer: str, *, is_thinned: bool
) -> None:
    """Oracle: packets of 282 bytes in the samples, more or fewer than 4,096."""
    scenario = ddr_scenario(
        fabric={"generator": "leaf-spine", "leaf-hosts": [4, 4], "spine-cables": [1, 1]},
        traffic={"incast": [{"to": "host-0000", "from": ["host-0004", "host-0005"]}]},
        packet={"mtu": "256 B"},
        switch={"buffer": buffer},
        probe={"trees": {"interval": "10 us", "reads-per-hop": 0.1}},
        run={"duration": "1 ms"},
    )
    forest = silvan.run(scenario).forest
    read = max(forest["queued_bytes"].to_pylist()) // 282
    assert (read > 4096, forest.num_rows < 100) == (is_thinned, is_thinned)
    # The first and the last sample are always taken.
    times = forest["time_ps"].to_pylist()
    assert (times[0], times[-1]) == (10_000_000, 1_000_000_000)


def test_recording_for_the_view_adds_tables(incast_file: Path, tmp_path: Path) -> None:
    from silvan.cli.app import run_command

    out = tmp_path / "out"
    words = ["run", str(incast_file), "--record", "view", "--out", str(out)]
    assert run_command(words) == 0
    tables = silvan.Result.read(out / "seed-3").tables
    assert {"port_series", "class_series", "host_latencies", "forest"} <= set(tables)
