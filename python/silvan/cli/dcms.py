"""The command that manages the congestion of a real subnet."""

from __future__ import annotations

import json
import signal
import sys
import time
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from silvan.cli.options import AsJson, Bind, address_of
from silvan.cli.printer import fail, note, put, put_json, put_table
from silvan.errors import SilvanError
from silvan.input_files import CONFIGURATION_BYTES, read_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from silvan._silvan import Manager
    from silvan.cli.live_page import LivePage
    from silvan.viewer.managed import ManagedMoments

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
    page = _LiveView(address_of(bind, "--bind")) if live else None

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

    service = _Service(config, opened, log, page, can_reload=not once and not restore)
    try:
        pending = service.run()
    except ManagerError as error:
        if not service.has_started:
            raise
        # What it has changed is in its journal.
        fail(str(error), error.hint)
        raise typer.Exit(1) from error
    if pending:
        raise typer.Exit(1)


def _configuration(config: Path) -> str:
    hint = "silvan dcms --example prints a configuration"
    return read_text(config, CONFIGURATION_BYTES, "configuration", hint)


def _show_status(config: Path, *, as_json: bool) -> None:
    """Print what the manager with this configuration does; the status is 1 if it does not run."""
    from silvan import _silvan
    from silvan.cli.dcms_tables import status_table
    from silvan.dcms_state import read_status

    status = read_status(_silvan.Manager.check(_configuration(config), str(config)))
    if as_json:
        put_json(status)
    else:
        put_table(status_table(status))
    if not status["running"]:
        raise typer.Exit(1)


def _show_report(log: Path, *, as_json: bool) -> None:
    from dataclasses import asdict

    from silvan.cli.dcms_tables import report_table
    from silvan.dcms_state import read_report

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


class _LiveView:
    """The live page of a manager.

    Parameters
    ----------
    address : tuple of str and int
        Where it is served.
    """

    def __init__(self, address: tuple[str, int]) -> None:
        from silvan.cli.attached import attached_clock
        from silvan.cli.live_page import LivePage, require_address
        from silvan.extras import require_extra

        require_extra("live", "live pages")
        from silvan.viewer.managed import ManagedMoments

        require_address(address)
        self._moments: ManagedMoments = ManagedMoments(attached_clock())
        self._page: LivePage = LivePage(
            address, "Managed subnet", _put_address, self._moments.events
        )

    def follow(self, manager: Manager) -> None:
        """Show what is new."""
        for moment in self._moments.take(manager):
            self._page.add(moment)

    def end(self) -> None:
        """Tell the pages that are open that the manager ends."""
        self._page.end()


def _put_address(address: str) -> None:
    put(address)
    sys.stdout.flush()


class _Service:
    """A manager that signals end, or start again with the current configuration file.

    Parameters
    ----------
    config : Path
        The file.
    opened : callable
        Starts a manager with the text of a configuration.
    log : LogFormat
        How what is reloaded is logged.
    page : _LiveView, optional
        The page that shows what the manager does.
    can_reload : bool
        Whether SIGHUP has the configuration reloaded; otherwise it ends the manager.
    """

    def __init__(
        self,
        config: Path,
        opened: Callable[[str], Manager],
        log: LogFormat,
        page: _LiveView | None,
        *,
        can_reload: bool,
    ) -> None:
        self._config = config
        self._opened = opened
        self._log = log
        self._page = page
        self._can_reload = can_reload
        self._is_ending = self._is_reloading = False
        self.has_started = False

    def run(self) -> int:
        """Run until the end, and return the number of changes that are still to be restored."""
        kinds = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        before = [signal.signal(kind, self._take) for kind in kinds]
        try:
            return self._run()
        finally:
            if self._page is not None:
                self._page.end()
            for kind, handler in zip(kinds, before, strict=True):
                signal.signal(kind, handler)

    def _take(self, kind: int, _frame: object) -> None:
        if kind == signal.SIGHUP and self._can_reload:
            self._is_reloading = True
        else:
            self._is_ending = True

    def _run(self) -> int:
        text = _configuration(self._config)
        manager = self._opened(text)
        self.has_started = True
        while manager.is_running():
            if self._is_ending:
                manager.stop()
            elif self._is_reloading:
                self._is_reloading = False
                new = self._checked()
                if new is not None:
                    manager.stop()
                    self._wait(manager)
                    text, manager = self._replaced(text, new)
            self._show(manager)
            time.sleep(_NAP_S)
        return manager.join()

    def _show(self, manager: Manager) -> None:
        """Show what is new; a manager goes on without a page that cannot be served any more."""
        if self._page is None:
            return
        try:
            self._page.follow(manager)
        except (OSError, SilvanError) as error:
            self._page = None
            self._say("page-failed", f"the page is not served any more: {error}")

    def _checked(self) -> str | None:
        """Read the file again; ``None`` if it cannot be used."""
        from silvan import _silvan

        try:
            text = _configuration(self._config)
            _silvan.Manager.check(text, str(self._config))
        except SilvanError as error:
            self._say("not-reloaded", str(error))
            return None
        return text

    def _replaced(self, old: str, new: str) -> tuple[str, Manager]:
        """Start a manager with a new configuration, or with the old one if that fails."""
        try:
            manager = self._opened(new)
        except SilvanError as error:
            self._say("not-reloaded", str(error))
            return old, self._opened(old)
        self._say("reloaded", None)
        return new, manager

    def _wait(self, manager: Manager) -> None:
        while manager.is_running():
            time.sleep(_NAP_S)
        # What it could not restore is in its journal, which the next one reads.
        manager.join()

    def _say(self, event: str, why: str | None) -> None:
        """Log in the format of the manager."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        level = "info" if why is None else "error"
        if self._log is LogFormat.JSON:
            line = {"time": now, "level": level, "event": event, "file": str(self._config)}
            note(json.dumps(line if why is None else {**line, "why": why}))
        elif why is None:
            note(f"{now} {level}: {self._config} is reloaded")
        else:
            note(f"{now} {level}: the configuration is kept, because the new one is wrong: {why}")
