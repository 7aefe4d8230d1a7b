"""Two moments of a subnet compared."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import silvan
from silvan.execution.simulation import simulate
from silvan.live.comparison import KINDS, compare_moments
from silvan.live.moments import Moment, Subnet
from silvan.live.ring import RingFile
from tests.conftest import Command
from tests.simulated_subnet import moment_of, write_subnet
from tests.subnet_dumps import dumped_moment, write_dumps

FABRIC = """\
[fabric]
generator = "leaf-spine"
leaf-hosts = [3, 3, 3]
spine-cables = [1, 1]
[link]
width = "2x"
speed = "SDR"
[traffic]
message = "4 KiB"
[[traffic.flow]]
from = "host-0000"
to = "host-0006"
load = "2 Gbit/s"
[[traffic.flow]]
from = "host-0001"
to = "host-0007"
load = "2 Gbit/s"
[run]
duration = "100 ms"
warm-up = "40 ms"
"""
CUT = """
[[fault]]
do = "cut"
port = "leaf-00:5"
"""
DEGRADED = """
[[fault]]
do = "degrade"
port = "leaf-02:2"
width = "1x"
"""
JOB = """
[[traffic.flow]]
from = "host-0003"
to = "host-0007"
[[traffic.flow]]
from = "host-0004"
to = "host-0007"
"""


def at(folder: Path, text: str, seconds: int) -> Moment:
    place = folder / str(seconds)
    place.mkdir()
    first, _, last = text.partition("[run]\n")
    duration, *rest = last.split("\n\n", 1)
    tables = "".join(rest)
    scenario = silvan.Scenario.from_toml(f"{first}{tables}\n[run]\n{duration}")
    moment = moment_of(place, scenario, simulate(scenario, scenario.seed))
    return replace(moment, at_ns=seconds * 10**9)


def test_nothing_has_changed(tmp_path: Path) -> None:
    old, new = at(tmp_path, FABRIC, 1), at(tmp_path, FABRIC, 2)
    compared = compare_moments(old, new)
    assert (compared["changes"], compared["trees"]) == ([], [])
    assert compared["not_compared"] == []


def test_a_job_that_starts_explains_the_tree(tmp_path: Path) -> None:
    """Oracle: the traffic that was added."""
    old, new = at(tmp_path, FABRIC, 1), at(tmp_path, FABRIC + JOB, 2)
    jobs = {"host-0003": ["4711"], "host-0004": ["4711"]}
    compared = compare_moments(old, new, jobs)
    first = compared["changes"][0]
    assert (first["kind"], first["what"]) == ("job started", "job 4711 on host-0003, host-0004")
    (tree,) = compared["trees"]
    assert tree["state"] == "new"
    assert first["roots"] == [tree["root"]]
    assert first["explains_gbps"] == pytest.approx(tree["lost_gbps"])
    # Without a list of jobs the hosts are named.
    kinds = {
        (one["kind"], one["what"].split(":")[0]) for one in compare_moments(old, new)["changes"]
    }
    assert {("host sends more", "host-0003"), ("host sends more", "host-0004")} <= kinds
    # The other way round, the tree is gone.
    (gone,) = compare_moments(new, old)["trees"]
    assert (gone["state"], gone["lost_gbps"]) == ("gone", 0.0)


def test_a_cable_that_is_slower_explains_the_tree(tmp_path: Path) -> None:
    """Oracle: the fault. Port 2 of leaf 2 is that of host 7, to which 2 of its 4 Gbit/s go."""
    busy = FABRIC.replace('load = "2 Gbit/s"', 'load = "3 Gbit/s"')
    old, new = at(tmp_path, busy, 1), at(tmp_path, busy + DEGRADED, 2)
    first = compare_moments(old, new)["changes"][0]
    assert first["kind"] == "cable slower"
    assert first["what"] == "host-0007:1 to leaf-02:2: from 4 to 2 Gbit/s"
    assert first["roots"] == ["leaf-02:2"]


def test_a_cable_that_is_gone_explains_routes_and_the_tree(tmp_path: Path) -> None:
    """Oracle: the fault. Both flows share the cable that is left, and need more than it has."""
    busy = FABRIC.replace('load = "2 Gbit/s"', 'load = "3 Gbit/s"')
    old, new = at(tmp_path, busy, 1), at(tmp_path, busy + CUT, 2)
    compared = compare_moments(old, new)
    first = compared["changes"][0]
    assert (first["kind"], first["what"]) == ("cable gone", "leaf-00:5 to spine-01:1")
    assert first["explains_gbps"] > 0
    assert "routes moved" in {one["kind"] for one in compared["changes"]}
    assert [one["state"] for one in compared["trees"]] == ["new"]


def test_missing_tables_and_loads_are_named(tmp_path: Path) -> None:
    moment = dumped_moment(tmp_path)
    values = moment.loads.copy()
    values[:, 0] = np.nan
    new = replace(
        moment,
        subnet=Subnet(moment.subnet.text, b""),
        values=values.astype("<f4").tobytes(),
    )
    compared = compare_moments(moment, new)
    assert compared["not_compared"] == [
        "forwarding tables: one moment has none",
        "loads of 1 ports of the new moment",
    ]


def test_nodes_and_lids_are_compared(tmp_path: Path) -> None:
    moment = dumped_moment(tmp_path)
    other = json.loads(moment.subnet.text)
    other["nodes"][0] |= {"name": "d HCA-1"}
    other["nodes"][1] |= {"lid": 77}
    new = replace(moment, subnet=Subnet(json.dumps(other), moment.subnet.routes))
    changes = compare_moments(moment, new)["changes"]
    found = {(one["kind"], one["what"]) for one in changes}
    assert ("host gone", "a HCA-1") in found
    assert ("host new", "d HCA-1") in found
    assert ("LID moved", "b HCA-1: from 12 to 77") in found
    assert {one["kind"] for one in changes} <= set(KINDS)


def test_the_command_compares_with_a_ring_file(tmp_path: Path, command: Command) -> None:
    """Oracle: the traffic that was added between the captures."""
    captures = []
    for number, text in enumerate((FABRIC, FABRIC.replace("[run]", JOB + "[run]"))):
        folder = tmp_path / str(number)
        folder.mkdir()
        scenario = silvan.Scenario.from_toml(text)
        files = write_subnet(folder, scenario, simulate(scenario, 1))
        words: list[str | Path] = ["diagnose", "--interval", "60 ms", "--tick", "4 ns"]
        for name, path in files.items():
            words += [f"--{name}", path]
        captures.append(words)
    ring = tmp_path / "monday.ring"
    assert command(*captures[0], "--ring", ring).status == 0
    with RingFile(ring) as file:
        assert len(file.times_ns()) == 1
    outcome = command(*captures[1], "--against", ring)
    assert outcome.status == 1, outcome.stderr
    assert "Changes since" in outcome.stdout
    assert "host sends more" in outcome.stdout
    assert "Trees before and now" in outcome.stdout
    report = json.loads(command(*captures[1], "--against", ring, "--json").stdout)
    assert report["against"]["changes"][0]["kind"] == "host sends more"


def test_comparisons_that_cannot_be_are_refused(tmp_path: Path, command: Command) -> None:
    words = [word for name, path in write_dumps(tmp_path).items() for word in (f"--{name}", path)]
    words += ["--interval", "2 s", "--tick", "4 ns"]
    ring = tmp_path / "one.ring"
    with RingFile(ring, writable=True) as file:
        file.add(dumped_moment(tmp_path, time.time()), 10**18)
    for against, expected in (
        ("none.ring", "there is no such ring file"),
        (f"{ring}@yesterday", "is no date and time"),
        (f"{ring}@2020-01-31", "no sweep at or before"),
    ):
        outcome = command("diagnose", *words, "--against", against)
        assert outcome.status == 2
        assert expected in outcome.stderr
    outcome = command("diagnose", "--from", ring, "--against", ring)
    assert outcome.status == 2
    assert "add @TIME" in outcome.stderr
    for wrong in (["--watch", "--against", ring], ["--from", ring, "--ring", "other"]):
        assert command("diagnose", *wrong).status == 2


@pytest.mark.parametrize("keep", ["1 h", "2 d"])
def test_a_ring_file_keeps_single_diagnoses(tmp_path: Path, command: Command, keep: str) -> None:
    words = [word for name, path in write_dumps(tmp_path).items() for word in (f"--{name}", path)]
    ring = tmp_path / "kept.ring"
    for _ in range(2):
        done = command(
            *("diagnose", *words, "--interval", "2 s", "--tick", "4 ns"),
            *("--ring", ring, "--keep", keep),
        )
        assert done.status == 1, done.stderr
    with RingFile(ring) as file:
        assert len(file.times_ns()) == 2
