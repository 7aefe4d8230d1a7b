"""Two managers with one state folder: exactly one is in charge, also after failures."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.emulator.conftest import REAL_TOOLS, Fabric, Serve
from tests.emulator.test_dcms import (
    SCALE,
    TESTBED,
    configure,
    managed,
    marking,
    start_flows,
    stay_low,
    stop,
    until,
)
from tests.emulator.test_dcms_metrics import address, metrics

pytestmark = [REAL_TOOLS, pytest.mark.slow]

ALONE = "[subnet]\nrequire-sm = false\n"


def shared(fabric: Fabric, lease: str) -> Path:
    """Write a configuration for instances that share a folder."""
    config = configure(fabric, ALONE)
    stay_low(config)
    with_lease = f'folder = "state"\nlease = "{lease}"'
    config.write_text(config.read_text().replace('folder = "state"', with_lease))
    return config


def test_the_other_takes_over_from_one_that_was_killed(serve: Serve) -> None:
    fabric = serve(TESTBED, time_scale=SCALE)
    config = shared(fabric, "8 s")
    start_flows(fabric)
    with managed(fabric, config, "--act") as first:
        until(fabric, lambda: first.seen("lowered"))
        with managed(fabric, config, "--act") as second:
            until(fabric, lambda: second.seen("standby"))
            assert metrics(address(fabric, second))["silvan_dcms_standby"] == 1
            assert not second.seen("started")
            assert marking(fabric) == "0"
            first.kill()
            until(fabric, lambda: second.seen("elected"))
            # Changes in the journal of the first manager are restored before any port is lowered.
            until(fabric, lambda: second.seen("lowered"))
            kinds = [one["event"] for one in second.events]
            assert kinds.index("elected") < kinds.index("restored") < kinds.index("lowered")
            assert metrics(address(fabric, second))["silvan_dcms_standby"] == 0
            assert stop(second) == 0
    assert marking(fabric) == ""


def test_one_that_was_stopped_changes_nothing_when_it_goes_on(serve: Serve) -> None:
    fabric = serve(TESTBED, time_scale=SCALE)
    config = shared(fabric, "8 s")
    start_flows(fabric)
    with managed(fabric, config, "--act") as first, managed(fabric, config, "--act") as second:
        managers = [first, second]
        until(fabric, lambda: any(one.seen("lowered") for one in managers))
        managers.sort(key=lambda one: not one.seen("elected"))
        stopped, other = managers
        stopped.process.send_signal(signal.SIGSTOP)
        until(fabric, lambda: other.seen("lowered"))
        events = len(stopped.events)
        stopped.process.send_signal(signal.SIGCONT)
        until(fabric, lambda: stopped.seen("lease-lost"))
        until(fabric, lambda: stopped.seen("standby"))
        assert not [
            one for one in stopped.events[events:] if one["event"] in {"lowered", "restored"}
        ]
        assert marking(fabric) == "0"
        # The stopped manager is elected next, at once.
        assert stop(other) == 0
        until(fabric, lambda: len(stopped.seen("elected")) >= 2)
        until(fabric, lambda: len(stopped.seen("lowered")) >= 2)
        assert stop(stopped) == 0
    assert marking(fabric) == ""


def test_one_that_ends_is_followed_before_its_lease_is_over(serve: Serve) -> None:
    """Oracle: a lease that is longer than any test."""
    fabric = serve(TESTBED, time_scale=SCALE)
    config = shared(fabric, "10000 s")
    with managed(fabric, config) as first:
        until(fabric, lambda: first.seen("elected"))
        with managed(fabric, config) as second:
            until(fabric, lambda: second.seen("standby"))
            assert stop(first) == 0
            until(fabric, lambda: second.seen("elected"))
            assert [one["term"] for one in second.seen("elected")] == [2]
            assert stop(second) == 0
        # A waiting manager can be stopped, too.
        with managed(fabric, config) as third, managed(fabric, config) as fourth:
            # Both handle signals by then.
            until(
                fabric,
                lambda: all(one.seen("elected") or one.seen("standby") for one in (third, fourth)),
            )
            assert stop(third) == 0
            assert stop(fourth) == 0


def test_restoring_is_left_to_an_instance_that_is_in_charge(serve: Serve) -> None:
    """Oracle: what the switch has."""
    fabric = serve(TESTBED, time_scale=SCALE)
    # The lease is renewed every second.
    config = shared(fabric, "8 s")
    # On a busy machine flows seem to end: no victim counts as gone here.
    less = "utilization-change-threshold = "
    config.write_text(config.read_text().replace(f"{less}4000000", f"{less}1000000000"))
    with managed(fabric, config, "--act") as first:
        until(fabric, lambda: first.seen("started"))
        with managed(fabric, config, "--restore") as other:
            assert other.ended() == 0
        (left,) = other.seen("other-in-charge")
        assert (left["level"], left["pending"]) == ("info", 0)
        assert str(first.process.pid) in left["holder"]
        start_flows(fabric)
        until(fabric, lambda: first.seen("lowered"))
        with managed(fabric, config, "--restore") as other:
            assert other.ended() == 1
        (left,) = other.seen("other-in-charge")
        assert (left["level"], left["pending"]) == ("warning", 1)
        assert not other.seen("elected")
        assert marking(fabric) == "0"
        with managed(fabric, config, "--once", "--act") as other:
            assert other.ended() == 1
        assert "is in charge of the state folder" in other.other
        assert not other.seen("elected")
        assert not first.seen("lease-lost")
        # A killed manager renews nothing.
        first.kill()
    with managed(fabric, config, "--restore") as other:
        assert other.ended() == 0
    assert other.seen("restored")
    assert not other.seen("other-in-charge")
    assert marking(fabric) == ""
