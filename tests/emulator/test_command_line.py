"""The commands that watch and disturb a running fabric."""

from __future__ import annotations

import json

import pytest

from silvan.cli.emulate import _SpeedRemarks
from tests.conftest import Command
from tests.emulator.conftest import Fabric


@pytest.mark.slow
def test_faults_are_brought_from_the_command_line(line: Fabric, command: Command) -> None:
    at = ("--sockname", line.emulation.sockname)
    assert "lost: 10 %" in command("ctl", "lose", "10%", "--seed", "3", *at).stdout
    status = json.loads(command("ctl", "status", "--json", *at).stdout)
    assert status["lost_percent"] == 10
    for nonsense in ("ten", "10%%", "0x10"):
        refused = command("ctl", "lose", nonsense, *at)
        assert refused.status == 2
        assert "10%" in refused.stderr
    for percent in ("101%", "nan"):
        assert command("ctl", "lose", percent, *at).status == 2
    assert command("ctl", "lose", "0", *at).status == 0
    slowed = command("ctl", "slow", "a", "1 Gbit/s", *at).stdout
    assert "rate: 1 Gbit/s" in slowed
    assert "rate: that of the scenario" in command("ctl", "slow", "a", *at).stdout

    command("ctl", "reboot", "left", "--seconds", "1000", *at)
    status = json.loads(command("ctl", "status", "--json", *at).stdout)
    assert status["switches_off"] == ["left"]
    # Both of its hosts and both trunks.
    assert len(status["links_down"]) == 4
    for switch, said in (("left", "off already"), ("a", "no switch"), ("lefd", "mean 'left'")):
        refused = command("ctl", "reboot", switch, *at)
        assert refused.status == 2
        assert said in refused.stderr.replace('"', "'")
    for refused_command, advice in (
        (("reboot", "left"), "ibswitches lists"),
        (("cut", "nowhere:1"), "iblinkinfo lists"),
        (("stop", "nothing"), "ctl flows lists"),
        (("start", "a", "a"), "ibhosts lists"),
        (("slow", "nowhere"), "ibhosts lists"),
    ):
        refused = command("ctl", *refused_command, *at)
        assert refused.status == 2
        assert advice in refused.stderr, refused.stderr


def test_time_that_is_lost_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    remarks = _SpeedRemarks()
    # Seconds up and given up, and what is to be said: less than a twentieth is nothing.
    story = [
        (1, 0.0, ""),
        (2, 0.04, ""),
        (3, 0.54, "simulated time runs at 0.5 of 1: the processor cannot keep up"),
        (4, 1.04, ""),
        (5, 1.06, "simulated time keeps up again"),
        (6, 1.06, ""),
    ]
    for uptime, given_up, said in story:
        remarks.look({"uptime_s": uptime, "given_up_s": given_up, "time_scale": 1.0, "speed": 0.5})
        assert capsys.readouterr().err.strip() == said
    # A new time scale gives up what is left to catch up with.
    remarks.look({"uptime_s": 7, "given_up_s": 1.9, "time_scale": 0.1, "speed": 0.0999})
    assert not capsys.readouterr().err
