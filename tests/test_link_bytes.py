"""Bytes of each program on each link."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

import silvan
from silvan.errors import SilvanError
from silvan.results.delays import delays
from silvan.results.link_bytes import link_bytes
from tests.conftest import DDR_TOML, ddr_scenario

TWO_JOBS = f"""\
[fabric]
generator = "k-ary-n-tree"
k = 3
n = 2
{DDR_TOML}
[traffic.messaging]
eager-limit = "1 MiB"
[[traffic.program]]
name = "train"
kind = "allreduce"
algorithm = "ring"
bytes = "100003 B"
hosts = 4
[[traffic.program]]
name = "shuffle"
kind = "alltoall"
bytes = "9 KiB"
hosts = 5
placement = "random"
[probe]
messages = true
"""


@pytest.fixture(scope="module")
def result() -> silvan.Result:
    return silvan.run(silvan.Scenario.from_toml(TWO_JOBS))


def test_programs_add_up_to_the_counters_of_each_port(result: silvan.Result) -> None:
    """The engine counts what is on the wire: with the header of each packet it is the same."""
    by_port: dict[tuple[str, int], int] = defaultdict(int)
    for row in link_bytes(result).to_pylist():
        by_port[row["node"], row["port"]] += row["payload_bytes"]
    ports = result.tables["ports"].to_pylist()
    assert sum(port["xmit_pkts"] for port in ports) > 0
    for port in ports:
        on_wire = by_port[port["node"], port["port"]] + 26 * port["xmit_pkts"]
        assert on_wire == port["xmit_bytes"], port


def test_a_host_s_link_has_the_closed_form(result: silvan.Result) -> None:
    """2 (n - 1) parts of S / n for a ring, n - 1 messages for an all-to-all, on the rank's link."""
    names = result.hosts["name"].to_pylist()
    sent: dict[str, list[int]] = defaultdict(list)
    for row in link_bytes(result).to_pylist():
        if row["node"] in names:
            sent[row["program"]].append(row["payload_bytes"])
    assert sent["shuffle"] == [4 * 9 * 1024] * 5
    assert sum(sent["train"]) == 2 * 3 * 100003
    assert all(abs(size - 2 * 3 * 100003 / 4) <= 6 for size in sent["train"])


def test_messages_without_bytes_count_none_anywhere() -> None:
    """A barrier has no data: what is on the wire are the headers of its packets."""
    quiet = silvan.run(
        ddr_scenario(
            fabric={"generator": "single-switch", "hosts": 4},
            traffic={"program": [{"name": "wait", "kind": "barrier"}]},
            probe={"messages": True},
        )
    )
    assert set(quiet.hosts["delivered_bytes"].to_pylist()) == {0}
    assert set(quiet.ranks["sent_bytes"].to_pylist()) == {0}
    assert set(link_bytes(quiet)["payload_bytes"].to_pylist()) == {0}
    ports = quiet.tables["ports"].to_pylist()
    # Two rounds, each way, at both ends of each host's cable.
    assert [port["xmit_pkts"] for port in ports] == [2] * 8
    assert [port["xmit_bytes"] for port in ports] == [2 * 26] * 8


def test_what_is_no_result_is_refused() -> None:
    nothing: Any = None
    for table in (link_bytes, delays):
        with pytest.raises(SilvanError, match=r"^result: None is of type NoneType") as caught:
            table(nothing)
        assert caught.value.hint == "give a result, e.g. silvan.run(scenario)"


def test_what_has_no_paths_is_refused() -> None:
    quiet = silvan.run(silvan.Scenario.from_toml(TWO_JOBS.replace("messages = true", "")))
    with pytest.raises(SilvanError, match="no messages of programs"):
        link_bytes(quiet)
    adaptive = {"fabric.path-choice": "adaptive"}
    chosen = silvan.run(silvan.Scenario.from_toml(TWO_JOBS, overrides=adaptive))
    with pytest.raises(SilvanError, match="messages have no fixed path"):
        link_bytes(chosen)
