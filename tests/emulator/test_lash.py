"""OpenSM's lash, whose paths need the service levels that it gives them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import silvan
from silvan.live.opensm_routing import route
from tests.emulator.conftest import REAL_TOOLS, Fabric, Serve
from tests.gate import PATIENCE_S

pytestmark = REAL_TOOLS

OWN = 'routing = "min-hop"\nallow-credit-loops = true\n'
RING = f"""\
[fabric]
generator = "ring"
switches = 5
hosts-per-switch = 2
{OWN}\
[vl]
data-vls = 4
[switch]
buffer = "4 KiB"
[packet]
mtu = "2 KiB"
[[traffic.uniform]]
load = "saturating"
"""
TORUS = f"""\
[fabric]
generator = "torus"
sizes = [4, 4]
hosts-per-switch = 1
{OWN}\
[vl]
data-vls = 4
[switch]
buffer = "4 KiB"
[packet]
mtu = "2 KiB"
[[traffic.uniform]]
load = "saturating"
"""
"""Small buffers, so that cycles close soon."""
RUN = '[run]\nduration = "1 ms"\n'
# On the lane of level 0, independent of the requested level.
INSISTING = "sl = 4\n"


@contextmanager
def lash(fabric: Fabric) -> Iterator[Path]:
    """Let OpenSM route by lash until the block ends; it starts when the subnet is up."""
    log = fabric.folder / "opensm.log"
    options = ("--debug", "2", "--routing_engine", "lash", "--log_file", log)
    with fabric.popen("opensm", *options) as process:
        try:
            fabric.wait(lambda: log.exists() and "SUBNET UP" in log.read_text())
            assert "lash tables configured on all switches" in log.read_text()
            yield log
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE_S)


def answers(fabric: Fabric, least: int) -> int:
    """
    Paths that OpenSM has given hosts, when there are at least so many and none waits for one.

    A host asks for a path when it first has a packet for it: until then nothing waits for it.
    """

    def done() -> int:
        paths = fabric.emulation.control("status")["paths"]
        answered = int(paths["answered"])
        return answered if paths["unanswered"] == 0 and answered >= least else 0

    return int(fabric.wait(done))


def levels_of_first_host(fabric: Fabric) -> dict[str, int]:
    """The service levels that its packets have, by host that they are for."""
    tables = fabric.emulation.control("tables", levels="hosts")["tables"]
    first, *_ = re.split(r"^Unicast.*$", tables, flags=re.M)[1:]
    found = re.findall(r"Channel Adapter .*'(.+)'\)(?: sl (\d+))?$", first, re.M)
    return {name: int(level or 0) for name, level in found[1:]}


def levels_by_saquery(fabric: Fabric) -> dict[str, int]:
    """Service levels, as OpenSM states them to its own tools."""
    lids = {name: lid for name, lid in fabric.lids().items() if name.startswith("host")}
    first, *others = sorted(lids)
    levels = {}
    for other in others:
        pair = f"{lids[first]}:{lids[other]}"
        path = fabric.tool("saquery", "-p", "--src-to-dst", pair)
        (level,) = re.findall(r"^\s*sl\.+(\w+)$", path, re.M)
        levels[other] = int(level, 0)
    return levels


@pytest.mark.parametrize(("text", "hosts"), [(RING, 10), (TORUS, 16)])
def test_a_loaded_fabric_moves_on_the_levels_that_opensm_gives(
    serve: Serve, text: str, hosts: int
) -> None:
    """Oracle: LASH promises that paths of one level cannot block each other in a cycle."""
    fabric = serve(text, blank=True)
    with lash(fabric) as log:
        answers(fabric, hosts * (hosts - 1))
        assert levels_of_first_host(fabric) == levels_by_saquery(fabric)
        start = fabric.emulation.control("status")["delivered_bytes"]
        fabric.pass_time(0.02)
        assert " ERR " not in log.read_text()
    status = fabric.emulation.control("status")
    assert status["delivered_bytes"] > start + (hosts << 20)
    assert (status["deadlocks_broken"], status["discarded_bytes"]) == (0, 0)


@pytest.mark.parametrize("text", [RING, TORUS])
def test_traffic_that_insists_on_its_own_level_stands(serve: Serve, text: str) -> None:
    fabric = serve(text + INSISTING, blank=True)
    with lash(fabric):
        fabric.wait(lambda: fabric.emulation.control("status")["deadlocks_broken"] > 0)


def test_hosts_query_paths_again_when_opensm_has_routed_around_a_cut(serve: Serve) -> None:
    fabric = serve(TORUS, blank=True)
    with lash(fabric) as log:
        before = answers(fabric, 16 * 15)
        ups = log.read_text().count("SUBNET UP")
        fabric.emulation.control("cut", port="switch-0-0:2")
        fabric.wait(lambda: log.read_text().count("SUBNET UP") > ups)
        answers(fabric, before + 16 * 15)
        # Packets in progress on the old levels may have closed a cycle.
        fabric.pass_time(0.005)
        start = fabric.emulation.control("status")
        fabric.pass_time(0.02)
        end = fabric.emulation.control("status")
    assert end["delivered_bytes"] > start["delivered_bytes"] + (16 << 20)
    assert end["deadlocks_broken"] == start["deadlocks_broken"]
    assert end["discarded_bytes"] == start["discarded_bytes"]


@pytest.mark.parametrize("text", [RING, TORUS])
def test_route_stores_levels_that_keep_a_fabric_moving(tmp_path: Path, text: str) -> None:
    tables = route(silvan.Scenario.from_toml(text), "lash")
    levels = {int(level) for level in re.findall(r"\) sl (\d+)$", tables, re.M)}
    assert levels
    assert 0 not in levels
    file = tmp_path / "tables.lfts"
    file.write_text(tables)
    stored = text.replace(OWN, f'routing = "lfts"\nrouting-file = "{file}"\n') + RUN
    # The check before the run proves it, and so does the run.
    scenario = silvan.Scenario.from_toml(stored)
    assert scenario.describe()["has_credit_loop"] is False
    result = silvan.run(scenario)
    assert all(host["delivered_bytes"] > 1 << 18 for host in result.hosts.to_pylist())
    # The scenario stands alone, with the levels.
    again = silvan.run(silvan.Scenario.from_toml(scenario.to_toml()))
    assert again.hosts == result.hosts
    # Equal tables without the levels can deadlock, and do.
    file.write_text(re.sub(r" sl \d+$", "", tables, flags=re.M))
    with pytest.raises(silvan.ScenarioError, match="deadlock"):
        silvan.Scenario.from_toml(stored)
    risked = stored.replace("[vl]", "allow-credit-loops = true\n[vl]")
    with pytest.raises(silvan.SilvanError, match="credit loop"):
        silvan.run(silvan.Scenario.from_toml(risked))


def test_levels_need_lanes(tmp_path: Path) -> None:
    file = tmp_path / "tables.lfts"
    file.write_text(route(silvan.Scenario.from_toml(RING), "lash"))
    stored = RING.replace(OWN, f'routing = "lfts"\nrouting-file = "{file}"\n')
    with pytest.raises(silvan.ScenarioError, match="need 2 VLs") as refused:
        silvan.Scenario.from_toml(stored.replace("data-vls = 4", "data-vls = 1"))
    assert "set vl.data-vls to 2" in (refused.value.hint or "")
    file.write_text(re.sub(r" sl \d+$", " sl 16", file.read_text(), count=1, flags=re.M))
    with pytest.raises(
        silvan.ScenarioError, match=r'tables\.lfts:\d+: "16" is not a service level'
    ):
        silvan.Scenario.from_toml(stored)


def test_only_lash_stores_levels() -> None:
    tables = route(silvan.Scenario.from_toml(RING), "minhop")
    assert " sl " not in tables
