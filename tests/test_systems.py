"""On systems other than Linux, what needs Linux says so, and simulations run."""

from __future__ import annotations

import os
import sys

import pytest

import silvan
from silvan.cli import main
from silvan.execution import processes
from silvan.live.emulation import Emulation, control
from tests.conftest import INCAST


@pytest.fixture
def macos(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that this is macOS, whose Python cannot bind processes to cores."""
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.delattr(os, "sched_getaffinity")


@pytest.mark.usefixtures("macos")
def test_the_live_fabric_names_linux() -> None:
    scenario = silvan.Scenario.from_toml(INCAST)
    for call in (lambda: Emulation(scenario, sockname="a"), lambda: control("a", "status")):
        with pytest.raises(silvan.UnsupportedSystemError) as caught:
            call()
        assert str(caught.value) == "the live fabric needs Linux, and this is darwin"
        assert caught.value.hint == "simulations, sweeps and figures work on this system"


@pytest.mark.usefixtures("macos")
def test_the_manager_names_linux(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["dcms", "dcms.toml"]) == 2
    assert "error: silvan dcms needs Linux, and this is darwin" in capfd.readouterr().err


@pytest.mark.usefixtures("macos")
def test_a_simulation_runs_and_sweeps_use_all_cores() -> None:
    result = silvan.run(silvan.Scenario.from_toml(INCAST))
    assert result.summary["delivered_packets"] > 0
    assert processes.cores() == os.cpu_count()
