"""`silvan route` as a user calls it: it judges what OpenSM gave, and only that."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import silvan
from silvan.example_files import example
from tests.conftest import Command
from tests.emulator.conftest import REAL_TOOLS

pytestmark = REAL_TOOLS

RING = """\
[fabric]
generator = "ring"
switches = 4
hosts-per-switch = 2
routing = "min-hop"
[vl]
data-vls = 4
[run]
duration = "10 us"
"""
UPDN = ("--engine", "updn", "--", "-a", "roots")
"""A ring has no obvious root; the fixture names one."""


Route = Callable[..., tuple[int, str, Path]]


@pytest.fixture
def run(command: Command) -> Route:
    """Route a scenario, and give status, remarks and the file of tables."""

    def route(scenario: Path, *words: str | Path) -> tuple[int, str, Path]:
        out = scenario.with_name("tables.lfts")
        done = command("route", scenario, "--out", out, *words, cwd=scenario.parent)
        return done.status, done.stderr, out

    return route


@pytest.fixture
def ring(tmp_path: Path) -> Path:
    """Write a scenario whose own routes can deadlock."""
    file = tmp_path / "ring.toml"
    file.write_text(RING)
    tmp_path.joinpath("roots").write_text("0x0253560000000100\n")
    with pytest.raises(silvan.ScenarioError, match="can deadlock"):
        silvan.Scenario.from_file(file)
    return file


@pytest.mark.parametrize("engine", ["updn", "lash", "dfsssp"])
def test_a_fabric_is_routed_whose_own_routes_can_deadlock(
    run: Route, ring: Path, engine: str
) -> None:
    words = UPDN if engine == "updn" else ("--engine", engine)
    status, remarks, out = run(ring, *words)
    assert status == 0, remarks
    routed = silvan.Scenario.from_file(
        ring, overrides={"fabric.routing": "lfts", "fabric.routing-file": str(out)}
    )
    assert not routed.describe()["has_credit_loop"]


def test_a_scenario_need_not_have_the_file_that_it_names(run: Route, ring: Path) -> None:
    ring.write_text(RING.replace('"min-hop"', '"lfts"\nrouting-file = "tables.lfts"'))
    status, remarks, _ = run(ring, *UPDN)
    assert status == 0, remarks
    silvan.Scenario.from_file(ring)


def test_routes_that_can_deadlock_are_refused_unless_they_are_allowed(
    run: Route, ring: Path
) -> None:
    status, remarks, out = run(ring, "--engine", "minhop")
    assert status == 2
    assert "OpenSM's routes by minhop: the routes can deadlock" in remarks
    assert "hint: " in remarks
    assert not out.exists()
    allow = "fabric.allow-credit-loops=true"
    status, remarks, out = run(ring, "--engine", "minhop", "--set", allow)
    assert status == 0, remarks
    overrides = {"fabric.routing": "lfts", "fabric.routing-file": str(out)}
    with pytest.raises(silvan.ScenarioError, match="can deadlock"):
        silvan.Scenario.from_file(ring, overrides=overrides)


def test_an_empty_engine_is_refused(run: Route, ring: Path) -> None:
    status, remarks, out = run(ring, "--engine", "")
    assert status == 2
    assert "the routing engine is empty" in remarks
    assert not out.exists()


def test_the_engine_file_needs_a_file(run: Route, ring: Path) -> None:
    status, remarks, out = run(ring, "--engine", "file")
    assert status == 2
    assert "no file of forwarding tables for its engine file" in remarks
    assert "hint: add -- --lfts_file FILE" in remarks
    assert not out.exists()

    status, remarks, out = run(ring, "--engine", "file", "--", "-U", "nowhere")
    assert status == 2
    assert "not routed this fabric by file, but by minhop: Can't open" in remarks
    assert not out.exists()

    # The tables just written, named relative to the caller's folder.
    assert run(ring, *UPDN)[0] == 0
    given = out.with_name("given.lfts")
    given.write_text(out.read_text())
    for option in (["-U", "given.lfts"], ["--lfts_file=given.lfts"]):
        out.unlink()
        status, remarks, out = run(ring, "--engine", "file", "--", *option)
        assert status == 0, remarks
        assert out.read_text() == given.read_text()


def test_missing_routes_of_a_file_are_named(run: Route, ring: Path) -> None:
    assert run(ring, *UPDN)[0] == 0
    given = ring.with_name("given.lfts")
    tables = ring.with_name("tables.lfts")
    lines = tables.read_text().splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if "'host-0007'" in line)
    given.write_text("".join(lines[:first] + lines[first + 1 :]))
    tables.unlink()
    status, remarks, out = run(ring, "--engine", "file", "--", "-U", given)
    assert status == 2
    assert "no route from" in remarks
    assert "has no entry for it" in remarks
    assert not out.exists()
    drop = "fabric.unreachable=drop"
    status, remarks, out = run(ring, "--engine", "file", "--set", drop, "--", "-U", given)
    assert status == 0, remarks


def test_fabric_with_tables_by_name_is_routed(run: Route, tmp_path: Path) -> None:
    """Oracle: the tables of OpenSM take the place of those that the file gives."""
    file = tmp_path / "explicit.toml"
    file.write_text(example("explicit-fabric").path.read_text())
    status, remarks, tables = run(file, "--engine", "minhop")
    assert status == 0, remarks
    assert "left" in tables.read_text()
