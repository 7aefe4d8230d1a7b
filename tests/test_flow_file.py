"""Flows of files: CSV and ns-3's flow.txt in, ns-3's fct.txt out."""

from __future__ import annotations

import csv
import re
import textwrap
from pathlib import Path

import pytest

import silvan
from silvan.errors import ScenarioError
from silvan.results.fct import fct_text
from tests.conftest import Command
from tests.test_guide import ROOT, blocks

SCENARIO = """\
name = "listed"

[fabric]
generator = "single-switch"
hosts = 4

[link]
rate = "8 Gbit/s"
latency = "10 ns"

[packet]
mtu = "1 kB"
header = "0 B"

[switch]
latency = "100 ns"

[[traffic.flow-file]]
file = "flow.txt"
format = "ns-3"
origin = "2 s"

[run]
duration = "1 ms"
"""

FLOWS = "3\n1 0 3 100 10000 2\n2 3 3 100 500 2.00005\n1 0 3 100 1000 2.0006\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "listed.toml").write_text(SCENARIO)
    (tmp_path / "flow.txt").write_text(FLOWS)
    return tmp_path


def test_ns_3_reads_its_times_back(command: Command, folder: Path) -> None:
    """Oracle: computed by hand.

    A packet of 1,000 B takes 1 us on a link of 8 Gbit/s, and arrives 120 ns later by cables and
    switch. So 10 packets take 10.12 us, and one of 500 B takes 0.62 us.
    """
    done = command("run", "listed.toml", "--fct", "fct.txt", cwd=folder)
    assert done.status == 0, done.stderr
    lines = [line.split() for line in (folder / "fct.txt").read_text().splitlines()]
    # Addresses are 11.0.node.1, source ports begin at 10000 for each host.
    assert lines == [
        ["0b000101", "0b000001", "10000", "100", "10000", "2000000000", "10120", "10120"],
        ["0b000201", "0b000301", "10000", "100", "500", "2000050000", "620", "620"],
        ["0b000101", "0b000001", "10001", "100", "1000", "2000600000", "1120", "1120"],
    ]


def test_flows_of_a_result_are_run_again(folder: Path) -> None:
    """Oracle: the run that the list was written from."""
    first = silvan.run(silvan.Scenario.from_file(folder / "listed.toml"))
    with (folder / "again.csv").open("w", newline="") as file:
        rows = first.flows.to_pylist()
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    again = silvan.Scenario.from_file(folder / "listed.toml").override(
        {"traffic.flow-file": [{"file": str(folder / "again.csv")}]}
    )
    columns = ["from", "to", "bytes", "start_ps", "end_ps", "slowdown"]
    assert silvan.run(again).flows.select(columns).equals(first.flows.select(columns))


def test_scenario_needs_the_file_no_more(folder: Path) -> None:
    scenario = silvan.Scenario.from_file(folder / "listed.toml")
    (folder / "flow.txt").unlink()
    assert silvan.Scenario.from_toml(scenario.to_toml()).hash == scenario.hash
    assert fct_text(silvan.run(scenario)).count("\n") == 3


def test_mistakes_name_file_and_line(folder: Path) -> None:
    (folder / "flow.txt").write_text("1\n1 0 3 100 ten 2\n")
    with pytest.raises(ScenarioError, match=r"flow.txt:2: .ten. is no size of a flow"):
        silvan.Scenario.from_file(folder / "listed.toml")
    for flow, message in [
        ("1 7 3 100 10 2", r"flow\.txt, line 2: there is no host 7; hosts are 0 to 3"),
        ("1 1 3 100 10 2", r"flow\.txt, line 2: the flow ends at its sender"),
        ("1 0 3 100 10 1.5", r"flow\.txt, line 2: the flow starts at 1.5 s, before the origin"),
    ]:
        (folder / "flow.txt").write_text(f"1\n{flow}\n")
        with pytest.raises(ScenarioError, match=message):
            silvan.Scenario.from_file(folder / "listed.toml")


def test_one_run_has_one_file_of_completion_times(command: Command, folder: Path) -> None:
    done = command("run", "listed.toml", "--fct", "fct.txt", "--seeds", "2", cwd=folder)
    assert done.status == 2
    assert "--fct: 2 runs" in done.stderr


def test_guide_to_ns_3_runs_as_it_is_written(command: Command, tmp_path: Path) -> None:
    """Oracle: by hand. The flows of 1 MB share the receiver's link, 100 Gbit/s less headers."""
    page = ROOT / "docs" / "guide" / "from-other-simulators.md"
    flows, *_ = blocks(page, "")
    (scenario,) = re.findall(r"```toml\n(.*?)```", page.read_text(), re.DOTALL)
    (tmp_path / "flow.txt").write_text(flows)
    (tmp_path / "fct.toml").write_text(textwrap.dedent(scenario))
    done = command("run", "fct.toml", "--fct", "fct.txt", "--out", "out", cwd=tmp_path)
    assert done.status == 0, done.stderr
    lines = [line.split() for line in (tmp_path / "fct.txt").read_text().splitlines()]
    assert sorted(line[4] for line in lines) == ["1000000", "1000000", "20000"]
    last = max(int(line[5]) + int(line[6]) for line in lines) - 2_000_000_000
    assert 2_020_000 * 8 / 100 <= last < 2 * 2_020_000 * 8 / 100
    assert all(int(line[6]) >= int(line[7]) for line in lines)


def test_guide_to_flow_files_runs_as_it_is_written(tmp_path: Path) -> None:
    page = ROOT / "docs" / "guide" / "traffic.md"
    (flows,) = (text for text in blocks(page, "") if text.startswith("from,to,bytes"))
    (entry,) = (text for text in blocks(page, "toml") if text.startswith("[[traffic.flow-file]]"))
    (tmp_path / "flows.csv").write_text(flows)
    (tmp_path / "own.toml").write_text(entry)
    rows = silvan.run(silvan.Scenario.from_file(tmp_path / "own.toml")).flows.to_pylist()
    found = sorted((row["from"], row["to"], row["bytes"], row["start_ps"]) for row in rows)
    assert found == [
        ("host-0000", "host-0003", 4096, 0),
        ("host-0001", "host-0003", 1 << 20, 2_500_000),
        ("host-0002", "host-0003", 65536, 10_000_000),
    ]
    assert all(row["finished"] for row in rows)
