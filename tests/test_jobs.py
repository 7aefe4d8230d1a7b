"""Several programs at once: hosts, iterations, exposed communication, and who delayed whom."""

from __future__ import annotations

import pytest

import silvan
from silvan.errors import SilvanError
from silvan.results.delays import delays
from silvan.results.result import Result
from tests.conftest import ddr_scenario
from tests.test_guide import ROOT

JOBS = ROOT / "examples" / "programs" / "jobs.toml"


@pytest.fixture(scope="module")
def result() -> Result:
    """Run the example on links and buffers that its jobs fill."""
    links = {"link.speed": "EDR", "switch.buffer": "64 KiB"}
    return silvan.run(silvan.Scenario.from_file(JOBS).override(links))


def test_numbers_of_hosts_are_hosts_of_their_own(result: Result) -> None:
    ranks = result.ranks.to_pylist()
    first = [rank["host"] for rank in ranks if rank["program"] == 0]
    second = [rank["host"] for rank in ranks if rank["program"] == 1]
    assert first == list(range(12))
    assert len(set(second)) == 12
    assert not set(second) & set(first)
    assert second != sorted(second)


def test_seed_chooses_random_places() -> None:
    key = "traffic.program.1.placement-seed"
    text = JOBS.read_text()

    def places(seed: int) -> list[int]:
        scenario = silvan.Scenario.from_toml(text, overrides={key: seed})
        ranks = silvan.run(scenario).ranks.to_pylist()
        return [rank["host"] for rank in ranks if rank["program"] == 1]

    assert places(1) == places(1)
    assert places(1) != places(2)


def test_rails_come_one_after_the_other() -> None:
    program = {
        "kind": "barrier",
        "hosts": 6,
        "placement": "rail",
        "server-ranks": 4,
    }
    scenario = silvan.Scenario.from_toml(JOBS.read_text().split("[[traffic")[0])
    sections = scenario.to_dict()["fabric"]
    fabric = {key: value for key, value in sections.items() if value is not None}
    result = silvan.run(ddr_scenario(fabric=fabric, traffic={"program": [program]}))
    assert [rank["host"] for rank in result.ranks.to_pylist()] == [0, 4, 8, 12, 16, 20]


def test_iterations_and_exposed_shares_follow_from_ranks(result: Result) -> None:
    marks = result.tables["program_marks"].to_pylist()
    ranks = result.ranks.to_pylist()
    for job, program in enumerate(result.programs.to_pylist()):
        spans = []
        for index in range(3):
            own = [mark for mark in marks if (mark["program"], mark["index"]) == (job, index)]
            assert len(own) == 12
            spans.append(max(m["end_ps"] for m in own) - min(m["begin_ps"] for m in own))
        assert program["iterations"] == 3
        assert program["iteration_mean_ps"] == pytest.approx(sum(spans) / 3)
        assert program["iteration_max_ps"] == max(spans)
        times = [rank for rank in ranks if rank["program"] == job]
        compute = sum(rank["compute_ps"] for rank in times)
        total = sum(rank["end_ps"] - program["start_ps"] for rank in times)
        assert program["exposed_share"] == pytest.approx(1 - compute / total)
        # 24 b s h^2 + 4 b s^2 h operations for each layer, and the words, forwards and twice back.
        layer = 24 * 256 * 512**2 + 4 * 256**2 * 512
        operations = 3 * (2 * layer + 2 * 256 * 512 * 1024) / 4
        assert compute / 12 == pytest.approx(3 * operations / 3e14 * 1e12, rel=1e-6)
    assert result.programs["start_ps"].to_pylist() == [0, 100_000_000]


def test_jobs_delay_each_other_less_than_alone_is_fast(result: Result) -> None:
    assert all(slowdown >= 0.999 for slowdown in result.programs["slowdown"].to_pylist())


def test_delays_are_those_of_the_trees(result: Result) -> None:
    rows = delays(result).to_pylist()
    names = {"first", "second", "other traffic"}
    assert rows
    assert all({row["victim"], row["contributor"]} <= names for row in rows)
    owner = {rank["host"]: rank["program"] for rank in result.ranks.to_pylist()}
    trees = result.tables["tree_hosts"].to_pylist()
    seen = set()
    for row in trees:
        if row["victim_bytes"] and owner.get(row["host"]) == 0:
            others = [
                other
                for other in trees
                if (other["time_ps"], other["tree"]) == (row["time_ps"], row["tree"])
                and other["contributing_bytes"]
                and owner.get(other["host"]) == 1
            ]
            if others:
                seen.add((row["time_ps"], row["tree"]))
    found = [row for row in rows if (row["victim"], row["contributor"]) == ("first", "second")]
    assert sum(row["samples"] for row in found) == len(seen)


def test_delays_need_trees() -> None:
    text = JOBS.read_text().split("[probe.trees]")[0]
    quick = silvan.Scenario.from_toml(text + '[run]\nduration = "100 ms"\n')
    with pytest.raises(SilvanError, match="no congestion trees"):
        delays(silvan.run(quick))
