"""Packets that are recorded hop by hop: in a table, in words, and in a file for tshark."""

from __future__ import annotations

import json
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import silvan
from silvan.cli import main
from silvan.results.capture import packets_of, write_pcap
from silvan.results.packet_trace import Traced, packets_of_flow, waits
from silvan.results.receive_rates import PS_PER_MS
from tests.conftest import ddr_scenario

# A switch, whose seven senders share the last link; the link takes 1,037 ns for a packet.
INCAST: dict[str, Any] = {
    "fabric": {"generator": "single-switch", "hosts": 8},
    "traffic": {"incast": [{"to": "host-0000"}]},
    "run": {"duration": "1 ms"},
    "probe": {"ports": True, "packets": {"ports": ["switch-00:1", "host-0003"]}},
}
PACKET_PS = 1_037_000
# A fat tree whose trees reach back into several switches.
TREE: dict[str, Any] = {
    "fabric": {"generator": "k-ary-n-tree", "k": 4, "n": 2},
    "traffic": {
        "incast": [{"to": "host-0000", "from": ["host-0004", "host-0005", "host-0008"]}],
        "uniform": [{"load": 0.5}],
    },
    "run": {"duration": "300 us"},
}
FLOW = {"from": "host-0004", "to": "host-0000"}


@pytest.fixture(scope="module")
def incast() -> silvan.Result:
    """Record the packets of the last link, and those of a sender."""
    return silvan.run(ddr_scenario(**INCAST))


@pytest.fixture(scope="module")
def controlled() -> silvan.Result:
    """Do the same with congestion control."""
    return silvan.run(ddr_scenario(**INCAST, control={"scheme": "ib-cc"}))


@pytest.mark.parametrize("scheme", ["none", "ib-cc", "dcqcn", "half"])
def test_recording_changes_no_result(scheme: str) -> None:
    plain = ddr_scenario(**TREE, control={"scheme": scheme})
    recorded = plain.override({"probe.packets": {"flows": [FLOW], "ports": ["leaf-00:1"]}})
    before, after = silvan.run(plain), silvan.run(recorded)
    assert after.packet_hops.num_rows > 100
    for name, table in before.tables.items():
        assert after.tables[name].equals(table), name


def test_rows_of_a_port_are_what_its_counters_count(
    incast: silvan.Result, controlled: silvan.Result
) -> None:
    for result in (incast, controlled):
        for name in ("switch-00:1", "host-0003:1"):
            (port,) = (
                row for row in result.ports.to_pylist() if f"{row['node']}:{row['port']}" == name
            )
            hops = packets_of(result, name)
            assert hops.num_rows == port["xmit_pkts"] > 0
            assert sum(hops["wire_bytes"].to_pylist()) == port["xmit_bytes"]
            assert sum(hops["fecn"].to_pylist()) == port["fecn_marked"]
    assert sum(packets_of(controlled, "switch-00:1")["fecn"].to_pylist()) > 0


def test_latency_of_the_packets_is_that_of_their_class(incast: silvan.Result) -> None:
    hops = packets_of(incast, "switch-00:1").to_pandas()
    hops = hops[hops.delivered_ps < PS_PER_MS]
    (of_class,) = incast.classes.to_pylist()
    assert len(hops) == of_class["delivered_packets"]
    mean_ns = (hops.delivered_ps - hops.born_ps).mean() / 1e3
    assert mean_ns == pytest.approx(of_class["latency_mean_ns"], rel=1e-9)


def test_waits_in_the_switch_are_the_times_of_the_packets_before(incast: silvan.Result) -> None:
    hops = packets_of(incast, "switch-00:1").to_pandas()
    # The host takes packets as fast as the link brings them, so the port never lacks credits.
    assert (hops.credit_wait_ps == 0).all()
    busy = hops[hops.sent_before > 0]
    wait = busy.time_ps - busy.arrived_ps
    # The first of the packets before had started, or a packet was being sent.
    assert ((wait - busy.sent_before * PACKET_PS).abs() <= PACKET_PS).all()
    later = hops[hops.time_ps > PS_PER_MS // 2]
    assert np.diff(np.sort(later.time_ps)).max() == PACKET_PS


def test_waits_of_a_host_add_up_to_its_counter(incast: silvan.Result) -> None:
    hops = packets_of(incast, "host-0003").to_pandas()
    (port,) = (row for row in incast.ports.to_pylist() if row["node"] == "host-0003")
    missing = port["xmit_wait_ps"] - hops.credit_wait_ps.sum()
    # The waiting time at the end belongs to a packet that has not left.
    assert 0 <= missing <= PS_PER_MS - hops.time_ps.max()
    assert hops.credit_wait_ps.sum() > PS_PER_MS // 2


def test_congestion_control_holds_packets_back(
    incast: silvan.Result, controlled: silvan.Result
) -> None:
    assert sum(incast.packet_hops["throttling_ps"].to_pylist()) == 0
    throttled = packets_of(controlled, "host-0003").to_pandas()
    assert throttled.throttling_ps.sum() > PS_PER_MS // 10
    for hop in controlled.packet_hops.to_pylist():
        assert sum(waits(hop).values()) == hop["time_ps"] - hop["arrived_ps"]


def test_notifications_are_recorded_with_becn(controlled: silvan.Result) -> None:
    scenario = controlled.scenario.override(
        {
            "control.feedback.path": "in-band",
            "probe.packets": {"ports": ["host-0000", "switch-00:1"]},
        }
    )
    result = silvan.run(scenario)
    notifications = packets_of(result, "host-0000").to_pandas()
    assert set(notifications.kind) == {"cnp"}
    assert notifications.becn.all()
    # Each marked packet that has arrived is answered, unless one to its sender waits already.
    marked = packets_of(result, "switch-00:1").to_pandas().query("fecn")
    assert 0 < len(notifications) <= len(marked)
    assert set(notifications.destination) <= set(marked.source)


def test_way_of_a_packet_is_the_path_of_the_tables() -> None:
    scenario = ddr_scenario(**TREE).override({"probe.packets": {"flows": [FLOW]}})
    result = silvan.run(scenario)
    packets = packets_of_flow(result, Traced.parse("host-0004,host-0000"))
    ports = result.ports.to_pylist()
    names = {f"{port['node']}:{port['port']}": row for row, port in enumerate(ports)}
    whole = [hops for hops in packets if hops[-1]["delivered_ps"] is not None]
    assert len(whole) > 20
    for hops in whole:
        assert [ports[hop["ports_row"]]["node"].partition("-")[0] for hop in hops] == [
            "host",
            "leaf",
            "spine",
            "leaf",
        ]
        for before, after in pairwise(hops):
            # The packet enters by the far end of the cable that it has left by.
            assert after["input_row"] == names[ports[before["ports_row"]]["peer"]]
            assert before["time_ps"] < after["arrived_ps"] <= after["time_ps"]
        assert hops[0]["born_ps"] == hops[0]["time_ps"]


def test_command_prints_the_way_of_a_packet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "incast.toml"
    file.write_text(ddr_scenario(**INCAST).to_toml())
    assert main(["run", str(file), "--trace", "host-0005,host-0000,3"]) == 0
    out = capsys.readouterr().out
    assert "packet 3 from host-0005 to host-0000: 2074 bytes, SL 0, VL 0" in out
    assert "arbitration" in out
    assert main(["run", str(file), "--trace", "host-0005,host-0000"]) == 0
    assert "the slowest" in capsys.readouterr().out
    assert main(["run", str(file), "--trace", "host-0005,host-0000,3", "--json"]) == 0
    (third,) = json.loads(capsys.readouterr().out)["trace"]["packets"]
    assert main(["run", str(file), "--trace", "host-0005,host-0000", "--json"]) == 0
    trace = json.loads(capsys.readouterr().out)["trace"]
    assert (trace["from"], trace["to"]) == ("host-0005", "host-0000")
    assert trace["packets"][2] == third
    for packet in trace["packets"]:
        way = ["host-0005:1", "switch-00:1"][: 1 if packet["delivered_ps"] is None else 2]
        assert [hop["port"] for hop in packet["hops"]] == way
        assert all(sum(hop["reasons_ps"].values()) == hop["waited_ps"] for hop in packet["hops"])
    for wrong in ("host-0005", "host-0005,host-0000,0", "host-0005,host-0000,99999"):
        assert main(["run", str(file), "--trace", wrong]) == 2
    assert main(["run", str(file), "--pcap", "switch-00:9", str(tmp_path / "no.pcap")]) == 2
    assert "there is no port" in capsys.readouterr().err
    assert main(["run", str(file), "--seeds", "2", "--trace", "host-0005,host-0000"]) == 2
    long = ["--set", "packet.mtu=8 KiB", "--pcap", "switch-00:1", str(tmp_path / "no.pcap")]
    assert main(["run", str(file), *long]) == 2
    assert "8218 B, and the length field" in capsys.readouterr().err
    assert not (tmp_path / "no.pcap").exists()


@pytest.mark.parametrize("name", ["switch-00:1", "switch-00:01", "switch-00:+1"])
def test_a_port_is_found_by_the_value_of_its_number(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The scenario takes all of these for the same port."""
    file = tmp_path / "incast.toml"
    file.write_text(ddr_scenario(**INCAST).to_toml())
    assert main(["run", str(file), "--json", "--pcap", name, str(tmp_path / "port.pcap")]) == 0
    counted = packets_of(silvan.run(ddr_scenario(**INCAST)), "switch-00:1").num_rows
    assert f"{counted:,} packets of {name} written" in capsys.readouterr().err
    assert counted > 0


def test_a_host_comes_before_a_port_of_its_name() -> None:
    """A host may be called what a port of a switch is called."""
    result = silvan.run(
        ddr_scenario(
            fabric={
                "switch": [{"name": "a", "ports": 4}],
                "host": [{"name": "b"}, {"name": "a:1"}],
                "cable": [{"from": "b", "to": "a:1"}, {"from": "a:1:1", "to": "a:2"}],
            },
            traffic={"flow": [{"from": "a:1", "to": "b"}]},
            probe={"packets": {"flows": [{"from": "a:1", "to": "b"}]}},
            run={"duration": "20 us"},
        )
    )
    # Most of the host's packets leave the switch by the port of the same name.
    sent = packets_of(result, "a:1")
    assert set(sent["input_row"].to_pylist()) == {None}
    assert sent.num_rows < result.packet_hops.num_rows


@pytest.mark.parametrize("name", ["switch-00:9", "switch-00:0", "switch-01", ""])
def test_a_capture_of_no_port_is_an_error(incast: silvan.Result, name: str, tmp_path: Path) -> None:
    with pytest.raises(silvan.SilvanError, match="there is no port"):
        write_pcap(incast, name, tmp_path / "port.pcap")
    assert not (tmp_path / "port.pcap").exists()


def test_a_capture_that_has_no_place_is_refused_before_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "incast.toml"
    file.write_text(ddr_scenario(**INCAST).to_toml())
    # Starting a run would fail otherwise.
    monkeypatch.setattr("silvan.execution.workers.run_jobs", None)
    target = tmp_path / "missing" / "port.pcap"
    assert main(["run", str(file), "--pcap", "switch-00:1", str(target)]) == 2
    error = capsys.readouterr().err
    assert f"{target}: cannot write: no such file or directory" in error
    assert "hint: " in error


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_what_was_measured_is_printed_although_the_capture_cannot_be_written(
    tmp_path: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "incast.toml"
    file.write_text(ddr_scenario(**INCAST).to_toml())
    assert main(["run", str(file), "--pcap", "switch-00:1", "/dev/full", *words]) == 2
    printed = capsys.readouterr()
    assert "/dev/full: cannot write: no space left on device" in printed.err
    assert "hotspot" in printed.out


def test_no_packet_is_called_the_slowest_before_one_has_arrived(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "incast.toml"
    file.write_text(ddr_scenario(**INCAST).to_toml())
    # A packet takes longer on its first link than the shorter run.
    for duration, word in (("1 us", "none has arrived"), ("100 us", "the slowest")):
        words = ["--set", f"run.duration={duration}", "--trace", "host-0003,host-0000"]
        assert main(["run", str(file), *words]) == 0
        out = " ".join(capsys.readouterr().out.split())
        assert [one for one in ("none has arrived", "the slowest") if one in out] == [word]


def test_a_number_of_a_packet_may_have_any_length(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "incast.toml"
    file.write_text(ddr_scenario(**INCAST).to_toml())
    assert main(["run", str(file), "--trace", f"host-0005,host-0000,{'1' * 5000}"]) == 2
    assert "names neither a flow nor a packet" in capsys.readouterr().err


def test_a_capture_without_notifications_says_how_to_send_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "incast.toml"
    file.write_text(ddr_scenario(**INCAST).to_toml())
    words = ["run", str(file), "--pcap", "host-0000", str(tmp_path / "port.pcap")]
    for scheme, path, expected in (
        ("none", "out-of-band", False),
        ("ib-cc", "out-of-band", True),
        ("ib-cc", "in-band", False),
    ):
        settings = (f"control.scheme={scheme}", f"control.feedback.path={path}")
        assert main([*words, *(word for one in settings for word in ("--set", one))]) == 0
        printed = capsys.readouterr().err
        assert ("--set control.feedback.path=in-band" in printed) == expected
        # Without the hint there are either no notifications at all, or they are packets.
        assert ("\n0 packets of" in f"\n{printed}") == (path == "out-of-band")


@pytest.mark.slow
@pytest.mark.needs("tshark")
def test_tshark_reads_what_was_recorded(controlled: silvan.Result, tmp_path: Path) -> None:
    path = tmp_path / "port.pcap"
    hops = packets_of(controlled, "switch-00:1").to_pylist()
    assert write_pcap(controlled, "switch-00:1", path) == len(hops)
    fields = ("frame.time_epoch", "frame.len", "infiniband.lrh.slid", "infiniband.lrh.dlid")
    words = [word for field in fields for word in ("-e", field)]
    out = tshark(path, "-T", "fields", *words)
    lids = controlled.hosts["lid"].to_pylist()
    read = [line.split("\t") for line in out.splitlines()]
    assert [round(float(line[0]) * 1e9) for line in read] == [
        hop["time_ps"] // 1000 for hop in hops
    ]
    assert [int(line[1]) for line in read] == [hop["wire_bytes"] for hop in hops]
    ends = [(int(line[2], 0), int(line[3], 0)) for line in read]
    assert ends == [(lids[hop["source"]], lids[hop["destination"]]) for hop in hops]
    assert tshark(path, "-Y", "_ws.malformed or _ws.expert.severity >= error") == ""
    # FECN and BECN are the bits before the queue pair, whose place tshark states.
    packets = json.loads(tshark(path, "-T", "jsonraw", "-c", "300"))
    for packet, hop in zip(packets, hops, strict=False):
        layers = packet["_source"]["layers"]
        queue_pair = layers["infiniband"]["infiniband.bth_tree"]["infiniband.bth.destqp_raw"]
        _, place, length, *_ = queue_pair
        assert length == 3
        byte = bytes.fromhex(layers["frame_raw"][0])[place - 1]
        assert byte == hop["fecn"] << 7 | hop["becn"] << 6


def tshark(path: Path, *words: str) -> str:
    """Let tshark read a capture file."""
    done = subprocess.run(
        ["tshark", "-r", str(path), *words], capture_output=True, text=True, check=True
    )
    return done.stdout
