"""Warnings on settings without effect on a run, and on lost data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import silvan
from silvan.cli.without_effect import without_effect
from silvan.results.run_labels import run_labels
from tests.conftest import Command

CHAIN = """\
name = "chain"

[fabric]
generator = "chain"
switches = 2
hosts-per-switch = 1

[[traffic.flow]]
from = "host-0000"
to = "host-0001"

[run]
duration = "20 us"
"""

FLOWS = """\
name = "flows"

[fabric]
generator = "single-switch"
hosts = 3

[[traffic.flow-file]]
{list}

[run]
duration = "1 ms"
"""

LINES = ("3", "0 1 3 100 4096 2", "1 2 3 100 4096 2.0005", "2 1 3 100 4096 2.002")
NS3 = 'format = "ns-3"\nlist = "' + "\\n".join(LINES) + '"'
CSV = 'list = "from,to,bytes,{start}\\n0,1,4096,{first}\\n1,2,4096,{second}\\n"'


def said(text: str, *assignments: str) -> list[str]:
    return without_effect(silvan.Scenario.from_toml(text), assignments)


def test_flows_that_start_after_the_end_are_counted() -> None:
    (line,) = said(FLOWS.format(list=NS3))
    assert line == (
        "flow-file-1: 3 of 3 flows start after the end of the run, 1 ms; the first flow of the "
        "file starts at 2 s: set origin, or a longer run.duration"
    )
    (line,) = said(FLOWS.format(list=NS3 + '\norigin = "2 s"'))
    assert line.startswith("flow-file-1: 1 of 3 flows start after the end")
    long = FLOWS.replace("1 ms", "3 ms").format(list=NS3 + '\norigin = "2 s"')
    assert said(long) == []


@pytest.mark.parametrize(
    ("start", "first", "second"),
    [
        ("start", "0 us", "1 ms"),
        ("start_s", "0", "0.001"),
        ("start_ms", "0.5", "1"),
        ("start_us", "0", "1000"),
        ("start_ns", "1e3", "1e6"),
        ("start_ps", "0", "1000000000"),
    ],
)
def test_the_end_counts_as_after_in_every_unit(start: str, first: str, second: str) -> None:
    """Oracle: the second flow starts at the end, which is 1 ms in all units."""
    (line,) = said(FLOWS.format(list=CSV.format(start=start, first=first, second=second)))
    assert "1 of 2 flows start after the end of the run, 1 ms" in line


def test_faults_that_do_nothing_are_named() -> None:
    late = CHAIN + '[[fault]]\ndo = "cut"\nport = "host-0001"\nat = "20 us"\n'
    assert said(late) == ["fault.0 has no effect: the run ends at 0.02 ms, before 20 us"]
    lose = CHAIN + '[[fault]]\ndo = "lose"\npercent = 3\n'
    assert said(lose) == ["fault.0 has no effect: lose is for silvan emulate"]
    assert said(late.replace("20 us", "19 us", 2).replace('"19 us"', '"20 us"', 1)) == []


def test_assigned_settings_of_another_scheme_are_named() -> None:
    swift = CHAIN + '[control]\nscheme = "swift"\n'
    words = ("control.hpcc.eta=0.9", "control.swift.beta=0.7", "control.feedback.delay=1 us")
    assert said(swift, *words) == ["control.hpcc.eta has no effect: control.scheme is swift"]
    both = CHAIN + '[control]\nscheme = "swift+reps"\n'
    assert said(both, "control.swift.beta=0.7") == []


def test_a_run_says_what_faults_lost(command: Command, tmp_path: Path) -> None:
    """Oracle: the counters of the ports, and no note without a fault."""
    (tmp_path / "whole.toml").write_text(CHAIN)
    cut = CHAIN + '[[fault]]\ndo = "cut"\nport = "host-0001"\nat = "10 us"\n'
    (tmp_path / "cut.toml").write_text(cut)
    ports = silvan.run(silvan.Scenario.from_toml(cut)).ports.to_pylist()
    lost = sum(port["xmit_discards"] + port["rcv_errors"] for port in ports)
    assert lost > 10
    done = command("run", "cut.toml", "--json", cwd=tmp_path)
    assert (
        f"note: faults lost {lost:,} packets after the warm-up; none is sent again" in done.stderr
    )
    assert json.loads(done.stdout)["runs"][0]["lost_packets"] == lost
    assert "lost" not in command("run", "whole.toml", cwd=tmp_path).stderr


def test_a_run_says_how_often_hosts_went_back(command: Command, tmp_path: Path) -> None:
    """Oracle: after a short cut the first packet shows the gap, so the sender goes back once."""
    text = (
        CHAIN.replace('"20 us"', '"400 us"')
        + "[host]\nretry = { timeout = 4 }\n"
        + '[[fault]]\ndo = "cut"\nport = "host-0001"\nat = "10 us"\nfor = "5 us"\n'
    )
    (tmp_path / "retry.toml").write_text(text)
    done = command("run", "retry.toml", "--json", cwd=tmp_path)
    (run,) = json.loads(done.stdout)["runs"]
    assert run["retries"] == 1
    assert done.stderr.rstrip().endswith("after the warm-up; hosts went back 1 time")
    hosts = silvan.run(silvan.Scenario.from_toml(text)).hosts.to_pylist()
    assert [host["retries"] for host in hosts] == [1, 0]
    # Of 400 us the cut is lost, and 2.4 us: the delay of `control.feedback`, and the path.
    whole = silvan.run(silvan.Scenario.from_toml(CHAIN.replace('"20 us"', '"400 us"')))
    part = hosts[1]["delivered_bytes"] / whole.hosts.to_pylist()[1]["delivered_bytes"]
    assert part == pytest.approx(1 - 7.4 / 400, abs=0.1 / 400)


def test_completion_times_of_no_flows_are_refused_before_the_run(
    command: Command, tmp_path: Path
) -> None:
    """Oracle: the run would take hours."""
    (tmp_path / "chain.toml").write_text(CHAIN)
    words = ("--set", "run.duration=100 s", "--set", "probe.interval=1 s", "--fct", "fct.txt")
    done = command("run", "chain.toml", *words, cwd=tmp_path)
    assert done.status == 2
    assert done.stderr == (
        "error: --fct: chain: no traffic entry has a number of bytes\nhint: give one a key bytes\n"
    )


def test_a_run_without_the_keys_of_others_has_a_label() -> None:
    cut = CHAIN + '[[fault]]\ndo = "cut"\nport = "host-0001"\nat = "10 us"\n'
    results = [silvan.run(silvan.Scenario.from_toml(text)) for text in (CHAIN, cut)]
    assert run_labels(results) == ["chain", "fault.0.do cut, fault.0.at 10 us"]


def test_no_percentile_of_a_table_is_below_the_minimum(command: Command, tmp_path: Path) -> None:
    """Oracle: a chain of two hosts delivers all packets after one latency."""
    (tmp_path / "chain.toml").write_text(CHAIN.replace("20 us", "200 us"))
    done = command("run", "chain.toml", "--set", "run.warm-up=100 us", cwd=tmp_path)
    row = next(line for line in done.stdout.splitlines() if line.startswith("│ flow-1"))
    values = [float(cell) for cell in row.split("│")[3:-1]]
    assert values == sorted(values)


def test_show_takes_a_scheme_by_name(command: Command, tmp_path: Path) -> None:
    (tmp_path / "chain.toml").write_text(CHAIN)
    by_name = command("show", "chain.toml", "--scheme", "swift", cwd=tmp_path).stdout
    by_key = command("show", "chain.toml", "--set", "control.scheme=swift", cwd=tmp_path).stdout
    assert by_name == by_key
    assert "# base-target = " in by_name
    valid = command("validate", "chain.toml", "--scheme", "no-such", cwd=tmp_path)
    assert valid.status == 2


def test_a_comparison_of_ended_flows_asks_for_no_longer_run(
    command: Command, tmp_path: Path
) -> None:
    for name, extra in [("ends", 'bytes = "64 KiB"\n'), ("lasts", "")]:
        text = CHAIN.replace('"chain"', f'"{name}"', 1).replace(
            'to = "host-0001"\n', f'to = "host-0001"\n{extra}'
        )
        (tmp_path / f"{name}.toml").write_text(text)
        done = command("compare", f"{name}.toml", "--schemes", "hpcc", cwd=tmp_path)
        assert done.status == 0
        assert ("shows how schemes begin" in done.stderr) == (name == "lasts")
        # A pipe has room for all columns.
        assert "…" not in done.stdout
