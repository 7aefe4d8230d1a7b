"""Commands of a real subnet in an emulated fabric that runs elsewhere."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from silvan.live.diagnosis import FabricClock


def attached_clock() -> FabricClock | None:
    """Return the clock of the emulated fabric that this process is attached to, if it is."""
    from silvan.live.diagnosis import FabricClock
    from silvan.live.emulation import is_attached

    name = os.environ.get("IBSIM_SOCKNAME") if is_attached() else None
    return None if name is None else FabricClock(name)


def attach(
    command: str,
    sockname: str | None,
    options: Mapping[str, Any],
    flags: Mapping[str, bool],
) -> FabricClock | None:
    """Return the clock of the emulated fabric that this process is attached to, if any.

    Otherwise an attached process of its own runs the command and ends this one.
    """
    from contextlib import closing

    from silvan.child_processes import child
    from silvan.live.diagnosis import FabricClock
    from silvan.live.emulation import is_attached, preload_library

    if sockname is None:
        return attached_clock()
    if is_attached():
        return FabricClock(sockname)
    with closing(FabricClock(sockname)):
        pass
    words = [sys.executable, "-m", "silvan", command]
    for option, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            words += [option, str(one)] if one is not None else []
    words += [flag for flag, given in flags.items() if given]
    preload = {"LD_PRELOAD": str(preload_library()), "IBSIM_SOCKNAME": sockname}
    sys.stdout.flush()
    # In a separate process group, so that Ctrl-C reaches it once, through this process.
    with child(
        words,
        env=os.environ | preload,
        stdin=None,
        process_group=0,
        # SIGTERM, so that the manager restores what it has set.
        signal_of_parent=signal.SIGTERM,
    ) as attached_process:

        def forward(number: int, _frame: object) -> None:
            attached_process.send_signal(number)

        for kind in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(kind, forward)
        status = attached_process.wait()
        raise typer.Exit(status if status >= 0 else 128 - status)
