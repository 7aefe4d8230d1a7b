"""The command that manages the congestion of a real subnet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from silvan.cli.dcms_service import LiveView, LogFormat, Service, configuration
from silvan.cli.options import AsJson, Bind, address_of
from silvan.cli.printer import fail, note, put, put_json, put_table

if TYPE_CHECKING:
    from silvan._silvan import Manager


def dcms(
    config: Annotated[
        Path | None,
        typer.Argument(metavar="CONFIG.toml", help="Configuration file.", show_default=False),
    ] = None,
    log: Annotated[
        LogFormat, typer.Option(help="Format of log events: lines of text, or JSON objects.")
    ] = LogFormat.TEXT,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="LOG",
            help="Sum up what was decided and what victims lost, from what --log json has written, "
            "and exit.",
            show_default=False,
        ),
    ] = None,
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
    status: Annotated[
        bool, typer.Option("--status", help="Show what the running manager does, and exit.")
    ] = False,
    as_json: AsJson = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log every sweep.")] = False,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Serve a page that shows the subnet, its sweeps and what the manager does, and "
            "print its address.",
        ),
    ] = False,
    bind: Bind = "127.0.0.1:0",
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
    is restored at the end, on SIGTERM and on Ctrl-C, and at the next start after a crash. SIGHUP
    reloads the configuration. Logs go to standard error. The status is 1 if changes of this or an
    earlier run are still to be restored.
    """
    from silvan import _silvan
    from silvan.errors import ManagerError
    from silvan.systems import require_linux

    require_linux("silvan dcms")
    if emulated and not example:
        raise typer.BadParameter("needs --example", param_hint="--emulated")
    if example:
        put(_silvan.Manager.example(time_scale if emulated else None))
        return
    if as_json and not status and report is None:
        raise typer.BadParameter("needs --status or --report", param_hint="--json")
    if report is not None:
        _show_report(report, as_json=as_json)
        return
    if once and restore:
        raise typer.BadParameter("not with --restore", param_hint="--once")
    if restore and act is False:
        raise typer.BadParameter("changes switches: not with --dry-run", param_hint="--restore")
    if config is None:
        raise typer.BadParameter("missing; --example prints one", param_hint="CONFIG.toml")
    if status:
        _show_status(config, as_json=as_json)
        return

    if live and (once or restore):
        reason = f"not with {'--once' if once else '--restore'}"
        raise typer.BadParameter(reason, param_hint="--live")
    page = LiveView(address_of(bind, "--bind")) if live else None

    def opened(text: str) -> Manager:
        return _silvan.Manager(
            text,
            str(config),
            act=bool(act) or restore,
            once=once,
            restore=restore,
            json=log is LogFormat.JSON,
            verbose=verbose,
            live=live,
        )

    service = Service(config, opened, log, page, can_reload=not once and not restore)
    try:
        is_clean = service.run()
    except ManagerError as error:
        if not service.has_started:
            raise
        # What it has changed is in its journal.
        fail(str(error), error.hint)
        raise typer.Exit(1) from error
    if not is_clean:
        raise typer.Exit(1)


def _show_status(config: Path, *, as_json: bool) -> None:
    """Print what the manager with this configuration does; the status is 1 if it does not run."""
    from silvan import _silvan
    from silvan.cli.dcms_tables import status_table
    from silvan.live.dcms_state import NO_RECORD, damaged_status, read_status

    folder = _silvan.Manager.check(configuration(config), str(config))
    status = read_status(folder)
    if as_json:
        put_json(status)
    else:
        try:
            table = status_table(status)
        except (*NO_RECORD, OSError):
            # A number may be no time.
            raise damaged_status(folder) from None
        put_table(table)
    if not status["running"]:
        raise typer.Exit(1)


def _show_report(log: Path, *, as_json: bool) -> None:
    from dataclasses import asdict

    from silvan.cli.dcms_tables import report_table
    from silvan.live.dcms_state import read_report

    report = read_report(log)
    if report.skipped:
        lines = (
            "1 line is no event" if report.skipped == 1 else f"{report.skipped} lines are no events"
        )
        note(f"warning: {log}: {lines}")
    if as_json:
        value = asdict(report)
        for port in value["ports"]:
            port["victims"] = sorted(port["victims"])
            del port["since"]
        put_json(value)
        return
    put_table(report_table(report))
    reasons = ", ".join(f"{reason} {count}" for reason, count in report.reasons.items())
    put(f"Decisions: {reasons or 'none'}")
    put(
        "Victims lost what their links could have carried while they waited. A lower Marking_Rate "
        "gains the part of it that hosts can send."
    )
