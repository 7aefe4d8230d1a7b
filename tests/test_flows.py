"""Finite flows and programs on the command line: ends, slowdowns, and what has not finished."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import silvan
from silvan.cli.run import some_flows
from silvan.errors import SilvanError
from tests.conftest import DDR_TOML, Command

FLOWS = """\
name = "flows"

[fabric]
generator = "single-switch"
hosts = 5

[link]
width = "4x"
speed = "DDR"
length = "20 m"

[switch]
latency = "150 ns"

[packet]
mtu = "2 KiB"

[[traffic.incast]]
name = "shared"
to = "host-0000"
from = ["host-0001", "host-0002", "host-0003"]
bytes = "256 KiB"

[[traffic.flow]]
name = "large"
from = "host-0000"
to = "host-0004"
bytes = "1 GiB"

[run]
duration = "1 ms"
"""

PROGRAMS = f"""\
[fabric]
generator = "single-switch"
hosts = 4
{DDR_TOML}
[[traffic.program]]
name = "sum"
kind = "allreduce"
bytes = "64 KiB"

[[traffic.program]]
name = "noise"
kind = "alltoall"
bytes = "64 KiB"
iterations = "unlimited"
background = true

[run]
duration = "1 ms"
"""


SEQUENCES = """\
[fabric]
generator = "single-switch"
hosts = 4

[link]
width = "4x"
speed = "DDR"
length = "20 m"

[switch]
latency = "150 ns"

[packet]
mtu = "2 KiB"

[[traffic.sequence]]
name = "round"
from = "host-0000"
to = ["host-0001", "host-0002", "host-0003"]
message = "2 KiB"
iterations = 2
pause = "1 us"

[[traffic.sequence]]
name = "endless"
from = "host-0001"
to = ["host-0000"]
message = "2 KiB"
iterations = "unlimited"

[run]
duration = "1 ms"
"""


@pytest.fixture
def flows_file(tmp_path: Path) -> Path:
    path = tmp_path / "flows.toml"
    path.write_text(FLOWS)
    return path


def test_finished_flows_have_an_end_and_a_slowdown(
    command: Command, flows_file: Path, tmp_path: Path
) -> None:
    outcome = command("run", flows_file, "--json", "--out", tmp_path / "out")
    (run,) = json.loads(outcome.stdout)["runs"]
    shared, large = run["flows"][:3], run["flows"][3]
    # The first packet over two cables and the switch, then a packet of 2074 bytes after the other.
    packet_ps = 1_037_000
    alone_ps = (100 + 150 + 100) * 1000 + 128 * packet_ps
    for flow in shared:
        assert flow["finished"] is True
        assert (flow["bytes"], flow["delivered_bytes"]) == (256 * 1024, 256 * 1024)
        assert flow["ideal_ps"] == alone_ps
        assert flow["end_ps"] - flow["start_ps"] == flow["completion_ps"]
        assert flow["slowdown"] == flow["completion_ps"] / alone_ps
    # The shared link is never idle until the last of the three is finished.
    assert max(flow["end_ps"] for flow in shared) == alone_ps + 2 * 128 * packet_ps
    assert large["finished"] is False
    assert 0 < large["delivered_bytes"] < large["bytes"]
    for name in ("end_ps", "completion_ps", "ideal_ps", "slowdown"):
        assert large[name] is None, name
    kept = silvan.Result.read(run["folder"])
    assert kept.flows.to_pylist() == run["flows"]


@pytest.mark.slow
def test_the_summary_tells_what_has_not_finished(command: Command, flows_file: Path) -> None:
    shown = command("run", flows_file).stdout
    # The unfinished one is the slowest.
    assert "3 of 4 flows finished; completion time mean" in shown
    assert "99 % unfinished, max unfinished; slowdown mean" in shown
    assert "unfinished" in shown
    assert "3 of 4" in command("run", flows_file, "--seeds", "2").stdout


def test_some_flows_are_those_that_python_sorts_first() -> None:
    """A second implementation, over rows as Python objects."""
    sources = [f"host-{number:04}" for number in range(1, 30)]
    changes = {
        "fabric.hosts": 30,
        "traffic.incast": [],
        "traffic.flow": [],
        "run.duration": "300 us",
    }
    flows = [
        {"name": f"flow {number}", "from": source, "to": "host-0000", "bytes": f"{3000 * number} B"}
        for number, source in enumerate(sources, 1)
    ]
    result = silvan.run(
        silvan.Scenario.from_toml(FLOWS, overrides=changes | {"traffic.flow": flows})
    )
    rows = result.flows.to_pylist()
    slowdowns = [row["slowdown"] for row in rows if row["finished"]]
    assert 0 < len(slowdowns) < len(rows) == len(sources)
    some = some_flows(result, 20)
    totals = some["flow_totals"]
    assert (totals["flows"], totals["finished"]) == (len(rows), len(slowdowns))
    rows.sort(key=lambda row: -(row["slowdown"] or math.inf))
    assert some["slowest_flows"] == rows[:20]
    assert some["listable"] == len(rows)


@pytest.mark.slow
def test_programs_have_ends(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "programs.toml"
    path.write_text(PROGRAMS)
    (run,) = json.loads(command("run", path, "--json").stdout)["runs"]
    done, endless = run["programs"]
    assert (done["name"], done["finished"]) == ("sum", True)
    assert done["end_ps"] == max(done["rank_end_ps"]) <= run["summary"]["simulated_ps"]
    assert len(done["rank_end_ps"]) == 4
    assert (endless["finished"], endless["end_ps"]) == (False, None)
    assert endless["rank_end_ps"] == [None] * 4
    shown = command("run", path).stdout
    assert f"1 of 2 programs finished; the last one after {done['end_ps'] / 1e6:.3f} µs" in shown
    assert "unfinished" in shown


@pytest.mark.slow
def test_sequences_are_closed_loops(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "sequences.toml"
    path.write_text(SEQUENCES)
    outcome = command("run", path, "--json", "--out", tmp_path / "out")
    (run,) = json.loads(outcome.stdout)["runs"]
    done, endless = run["sequences"]
    # A packet over two cables and the switch; a microsecond between two messages.
    message_ps = (100 + 150 + 100 + 1037) * 1000
    assert (done["name"], done["finished"], done["messages"]) == ("round", True, 6)
    assert done["end_ps"] == done["last_delivery_ps"] == 6 * message_ps + 5 * 1_000_000
    assert (endless["finished"], endless["end_ps"]) == (False, None)
    # A delivery at the end of the run is not part of it.
    assert endless["messages"] == (10**9 - 1) // message_ps
    kept = silvan.Result.read(run["folder"])
    assert kept.sequences.to_pylist() == run["sequences"]
    shown = command("run", path).stdout
    assert (
        f"round: 6 messages of a sequence delivered; finished after {done['end_ps'] / 1e6}" in shown
    )
    assert f"endless: {endless['messages']} messages of a sequence delivered" in shown


def test_sequences_that_make_no_sense_are_refused(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "sequences.toml"
    path.write_text(SEQUENCES.replace('["host-0000"]', "[]"))
    refused = command("run", path)
    assert refused.status == 2
    place = f"{path}:27: traffic.sequence.1.to: at least one host is needed"
    assert place in refused.stderr


def test_a_run_without_finite_flows_says_so(incast: silvan.Result) -> None:
    with pytest.raises(SilvanError, match="no traffic entry has a number of bytes"):
        _ = incast.flows
