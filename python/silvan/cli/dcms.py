"""The command that manages the congestion of a real subnet."""

from __future__ import annotations

import signal
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from silvan.cli.printer import fail, put

if TYPE_CHECKING:
    from silvan._silvan import Manager

_NAP_S = 0.1


class LogFormat(StrEnum):
    """How events are written."""

    TEXT = "text"
    JSON = "json"


def dcms(
    config: Annotated[
        Path | None,
        typer.Argument(metavar="CONFIG.toml", help="Configuration file.", show_default=False),
    ] = None,
    log: Annotated[
        LogFormat, typer.Option(help="Format of log events: lines of text, or JSON objects.")
    ] = LogFormat.TEXT,
    *,
    act: Annotated[
        bool | None,
        typer.Option(
            "--act/--dry-run",
            help="Change Marking_Rates, or only report what would be changed (the default).",
            show_default=False,
        ),
    ] = None,
    once: Annotated[
        bool,
        typer.Option("--once", help="Sweep twice, decide once, restore all changes, and exit."),
    ] = False,
    restore: Annotated[
        bool,
        typer.Option("--restore", help="Restore what an earlier run left changed, and exit."),
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log every sweep.")] = False,
    example: Annotated[
        bool, typer.Option("--example", help="Print a commented configuration, and exit.")
    ] = False,
    emulated: Annotated[
        bool,
        typer.Option("--emulated", help="With --example: a configuration for silvan emulate."),
    ] = False,
    time_scale: Annotated[
        float,
        typer.Option(
            min=1e-6, max=1e3, help="With --emulated: simulated seconds per second of the fabric."
        ),
    ] = 1.0,
) -> None:
    """Manage the congestion of an InfiniBand subnet.

    This is the Dynamic Congestion Management System of mizero2017. It sweeps the switches' counters
    and lowers the Marking_Rate of ports whose congestion slows others down. Whatever it has changed
    is restored at the end, on SIGTERM and on Ctrl-C, and at the next start after a crash. Logs go
    to standard error. The status is 1 if changes of this or an earlier run are still to be
    restored.
    """
    from silvan import _silvan
    from silvan.errors import ManagerError
    from silvan.input_files import CONFIGURATION_BYTES, read_text
    from silvan.systems import require_linux

    require_linux("silvan dcms")
    if emulated and not example:
        raise typer.BadParameter("needs --example", param_hint="--emulated")
    if example:
        put(_silvan.Manager.example(time_scale if emulated else None))
        return
    if restore and act is False:
        raise typer.BadParameter("changes switches: not with --dry-run", param_hint="--restore")
    if config is None:
        raise typer.BadParameter("missing; --example prints one", param_hint="CONFIG.toml")
    hint = "silvan dcms --example prints a configuration"
    manager = _silvan.Manager(
        read_text(config, CONFIGURATION_BYTES, "configuration", hint),
        str(config),
        act=bool(act) or restore,
        once=once,
        restore=restore,
        json=log is LogFormat.JSON,
        verbose=verbose,
    )
    try:
        pending = _wait(manager)
    except ManagerError as error:
        # It had started: what it has changed is in its journal.
        fail(str(error), error.hint)
        raise typer.Exit(1) from error
    if pending:
        raise typer.Exit(1)


def _wait(manager: Manager) -> int:
    """Wait for the manager's end, and let signals bring it about."""

    def stop(_signal: int, _frame: object) -> None:
        manager.stop()

    kinds = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [signal.signal(kind, stop) for kind in kinds]
    try:
        while manager.is_running():
            time.sleep(_NAP_S)
        return manager.join()
    finally:
        for kind, handler in zip(kinds, before, strict=True):
            signal.signal(kind, handler)
