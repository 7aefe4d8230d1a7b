"""Fabrics with more nodes than LIDs, and routes that are computed."""

from __future__ import annotations

from pathlib import Path

import pytest

import silvan
from tests.conftest import Command

LARGE = """
[fabric]
generator = "xgft"
children = [200, 250]
parents = [1, 1]

[[traffic.flow]]
from = "host-00000"
to = "host-49999"
bytes = "1 KiB"

[run]
duration = "20 us"
"""
NO_LIDS = "50251 nodes need more LIDs than the 49151 unicast ones"


@pytest.fixture(scope="module")
def large() -> silvan.Scenario:
    return silvan.Scenario.from_toml(LARGE)


@pytest.mark.slow
def test_hosts_without_lids_are_reached(large: silvan.Scenario) -> None:
    """Oracle: the bytes of the one flow, across the fabric."""
    result = silvan.run(large)
    rows = result.hosts.to_pylist()
    assert {row["lid"] for row in rows} == {0}
    assert [row["host"] for row in rows if row["delivered_bytes"]] == [49_999]
    assert rows[-1]["delivered_bytes"] == 1024
    assert result.summary["packet_hops"] == 4


@pytest.mark.slow
def test_what_needs_lids_refuses_a_fabric_without_them(
    large: silvan.Scenario, tmp_path: Path, command: Command
) -> None:
    with pytest.raises(silvan.ScenarioError, match=NO_LIDS):
        large.export("ibsim")
    path = tmp_path / "large.toml"
    path.write_text(LARGE)
    done = command("emulate", path)
    assert done.status == 2, done
    assert NO_LIDS in done.stderr
    assert "simulated, but not managed" in done.stderr


@pytest.mark.slow
def test_computed_routes_give_the_same_result_on_two_threads() -> None:
    """5,832 hosts: tables of 5.7 million entries are not made."""
    scenario = silvan.Scenario.from_toml(
        '[fabric]\ngenerator = "k-ary-n-tree"\nk = 18\nn = 3\n'
        '[[traffic.uniform]]\nload = 0.5\n[run]\nduration = "20 us"\n'
    )
    one, two = (silvan.run(scenario, threads=count) for count in (1, 2))
    assert one.summary["packet_hops"] > 100_000
    assert one.hosts.equals(two.hosts)
    assert one.ports.equals(two.ports)
