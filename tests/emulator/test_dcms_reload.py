"""The manager reloads its configuration on SIGHUP: it neither ends nor leaves a change behind."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

from tests.emulator.conftest import REAL_TOOLS, Fabric, Serve
from tests.emulator.test_dcms import (
    SCALE,
    TESTBED,
    Manager,
    configure,
    managed,
    marking,
    restore,
    start_flows,
    stay_low,
    stop,
    until,
)

pytestmark = REAL_TOOLS


def acting(serve: Serve) -> tuple[Fabric, Path]:
    """Serve the testbed, and give the configuration of a manager that lowers a rate for long."""
    fabric = serve(TESTBED, time_scale=SCALE)
    config = configure(fabric, "[subnet]\nrequire-sm = false\n")
    stay_low(config)
    with_patience = config.read_text().replace("[state]\n", '[state]\npatience = "2 s"\n')
    config.write_text(with_patience)
    start_flows(fabric)
    return fabric, config


def reload(manager: Manager) -> None:
    manager.process.send_signal(signal.SIGHUP)


def nth_refused(fabric: Fabric, manager: Manager, count: int) -> dict[str, Any]:
    """Wait for a refused reload by its number, and give its event."""
    until(fabric, lambda: len(manager.seen("not-reloaded")) >= count)
    return manager.seen("not-reloaded")[count - 1]


def test_the_configuration_is_reloaded_on_sighup_and_a_bad_one_is_not(serve: Serve) -> None:
    fabric = serve(TESTBED, time_scale=SCALE)
    config = configure(fabric, "[subnet]\nrequire-sm = false\n")
    stay_low(config)
    start_flows(fabric)
    with managed(fabric, config, "--act") as manager:
        until(fabric, lambda: manager.seen("lowered"))
        good = config.read_text()
        config.write_text(good + "[marking]\nallow = 7\n")
        manager.process.send_signal(signal.SIGHUP)
        (refused,) = until(fabric, lambda: manager.seen("not-reloaded"))
        assert "allow" in refused["why"]
        # The old one is in charge, and what it has changed stays.
        assert not manager.seen("restored")
        assert marking(fabric) != ""
        # The new one forbids all changes: those of the old one are restored.
        config.write_text(good + '[marking]\ndeny = ["*"]\n')
        manager.process.send_signal(signal.SIGHUP)
        until(fabric, lambda: manager.seen("reloaded"))
        assert len(manager.seen("restored")) == len(manager.seen("lowered"))
        seen = len(manager.events)
        decided = ("decision",)
        until(fabric, lambda: [one for one in manager.events[seen:] if one["event"] in decided])
        assert marking(fabric) == ""
        assert stop(manager) == 0


def test_each_wrong_file_is_named_with_its_place_and_advice(serve: Serve) -> None:
    fabric, config = acting(serve)
    good = config.read_text()
    last = good.count("\n")
    interval = good.splitlines().index('interval = "500 ms"') + 1
    listen = good.splitlines().index('listen = "127.0.0.1:0"') + 1
    wrong = [
        (good + "[marking\n", f"{config}:{last + 1}: "),
        (good + "[marking]\nalow = []\n", f"{config}:{last + 2}: marking.alow: unknown key"),
        (good.replace('"500 ms"', '"0 ms"'), f"{config}:{interval}: dcms.interval: is zero"),
        (good.replace('"500 ms"', "7"), f"{config}:{interval}: dcms.interval: expected a time"),
        (good.replace(":0", ":99999"), f"{config}:{listen}: metrics.listen: "),
        ("", f"{config}:1: dcms: the configuration is empty"),
        (None, f"{config}: cannot read the configuration: no such file"),
    ]
    with managed(fabric, config, "--act") as manager:
        until(fabric, lambda: manager.seen("lowered"))
        for count, (text, why) in enumerate(wrong, start=1):
            if text is None:
                config.unlink()
            else:
                config.write_text(text)
            reload(manager)
            refused = nth_refused(fabric, manager, count)
            assert refused["why"].startswith(why)
            assert refused["hint"]
        # The change of the old one stays all the time.
        assert not manager.seen("restored")
        assert marking(fabric) == "0"
        assert stop(manager) == 0
    assert marking(fabric) == ""


def test_many_signals_at_once_leave_nothing_behind(serve: Serve) -> None:
    fabric, config = acting(serve)
    with managed(fabric, config, "--act") as manager:
        until(fabric, lambda: manager.seen("lowered"))
        for _ in range(100):
            reload(manager)
        until(fabric, lambda: manager.seen("reloaded"))
        seen = len(manager.seen("lowered"))
        until(fabric, lambda: len(manager.seen("lowered")) > seen)
        reload(manager)
        assert stop(manager) == 0
        assert len(manager.seen("lowered")) == len(manager.seen("restored"))
    assert marking(fabric) == ""


def test_the_state_folder_is_kept_while_its_journal_lists_a_change(serve: Serve) -> None:
    fabric, config = acting(serve)
    other = fabric.folder / "other" / "lock"
    with managed(fabric, config, "--act") as manager:
        until(fabric, lambda: manager.seen("lowered"))
        fabric.emulation.control("lose", percent=100)
        config.write_text(
            config.read_text().replace('"state"', '"other"') + '[marking]\ndeny = ["*"]\n'
        )
        reload(manager)
        (refused,) = until(fabric, lambda: manager.seen("not-reloaded"))
        assert "state.folder: the journal in " in refused["why"]
        assert "--status" in refused["hint"]
        assert not other.exists()
        fabric.emulation.control("lose", percent=0)
        # The manager with the old configuration restores it, and then the folder may change.
        until(fabric, lambda: manager.seen("restored"))
        reload(manager)
        until(fabric, lambda: manager.seen("reloaded"))
        assert other.exists()
        assert stop(manager) == 0
    assert marking(fabric) == ""


def test_a_manager_that_cannot_start_again_is_tried_again(serve: Serve) -> None:
    fabric, config = acting(serve)
    state = fabric.folder / "state"
    with managed(fabric, config, "--act") as manager:
        until(fabric, lambda: manager.seen("lowered"))
        state.chmod(0o755)
        reload(manager)
        (failed,) = until(fabric, lambda: manager.seen("not-started"))
        assert failed["why"] == f"the state folder {state} can be entered by others"
        assert "0700" in failed["hint"]
        assert marking(fabric) == ""
        # A file that is wrong changes nothing about that.
        good = config.read_text()
        config.write_text(good + "[x]\n")
        reload(manager)
        nth_refused(fabric, manager, 2)
        state.chmod(0o700)
        seen = len(manager.seen("lowered"))
        until(fabric, lambda: len(manager.seen("lowered")) > seen)
        assert not manager.seen("reloaded")
        assert stop(manager) == 0
    assert marking(fabric) == ""


def test_sigterm_while_it_reloads_starts_no_other_manager(serve: Serve) -> None:
    fabric, config = acting(serve)
    with managed(fabric, config, "--act") as manager:
        until(fabric, lambda: manager.seen("lowered"))
        fabric.emulation.control("lose", percent=100)
        reload(manager)
        until(fabric, lambda: manager.seen("stopping"))
        assert stop(manager) == 1
        assert len(manager.seen("started")) == 1
    fabric.emulation.control("lose", percent=0)
    assert marking(fabric) == "0"
    assert restore(fabric, config) == [128]
