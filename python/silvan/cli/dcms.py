"""The command that manages the congestion of a real subnet."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from silvan.cli.diagnosis_tables import stamp
from silvan.cli.options import AsJson, Bind, address_of
from silvan.cli.printer import fail, note, put, put_json, put_table
from silvan.errors import ManagerError, ScenarioError, SilvanError
from silvan.inputs.input_files import CONFIGURATION_BYTES, read_text
from silvan.live.dcms_state import port_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.table import Table

    from silvan._silvan import Manager
    from silvan.cli.live_page import LivePage
    from silvan.live.dcms_state import DcmsReport, LowPort
    from silvan.viewer.managed import ManagedMoments


class LogFormat(StrEnum):
    """Format of events."""

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
            help="Summarise decisions, and what victims lost, from a log of --log json, and exit.",
            show_default=False,
        ),
    ] = None,
    *,
    act: Annotated[
        bool | None,
        typer.Option(
            "--act/--dry-run",
            help="Change Marking_Rates, or only report changes (the default).",
            show_default=False,
        ),
    ] = None,
    once: Annotated[
        bool,
        typer.Option("--once", help="Sweep twice, decide once, restore all changes, and exit."),
    ] = False,
    restore: Annotated[
        bool,
        typer.Option("--restore", help="Restore changes that an earlier run left, and exit."),
    ] = False,
    status: Annotated[
        bool, typer.Option("--status", help="Show the state of the running manager, and exit.")
    ] = False,
    as_json: AsJson = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log every sweep.")] = False,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Serve a page with the subnet, its sweeps and the manager's actions, and print "
            "its address.",
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
    and lowers the Marking_Rate of ports whose congestion slows others down. All changes are
    restored at the end, on SIGTERM and Ctrl-C, and at the next start after a crash. SIGHUP reloads
    the configuration. Logs go to standard error. The status is 1 if changes of this or an earlier
    run are still to be restored.
    """
    from silvan import _silvan
    from silvan.errors import ManagerError
    from silvan.live.systems import require_linux

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
        fail(str(error), error.hint)
        raise typer.Exit(1) from error
    if not is_clean:
        raise typer.Exit(1)


def _show_status(config: Path, *, as_json: bool) -> None:
    from silvan import _silvan
    from silvan.live.dcms_state import NO_RECORD, damaged_status, read_status

    folder = _silvan.Manager.check(configuration(config), str(config))
    status = read_status(folder)
    if as_json:
        put_json(status)
    else:
        try:
            table = status_table(status)
        except (*NO_RECORD, OSError):
            raise damaged_status(folder) from None
        put_table(table)
    if not status["running"]:
        raise typer.Exit(1)


def _show_report(log: Path, *, as_json: bool) -> None:
    from dataclasses import asdict

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


_MANAGERS = {
    "not-required": "not required",
    "awaited": "has not answered yet",
    "found": "answers",
    "lost": "does not answer any more",
}


def _spell(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def _names(ports: list[dict[str, Any]]) -> str:
    return ", ".join(port_name(port) for port in ports) or "none"


def status_table(status: dict[str, Any]) -> Table:
    """Lay out what a manager does."""
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, padding=(0, 2))
    if not status["running"]:
        state = Text("not running", "bold red")
    elif "pid" not in status:
        state = Text("starts", "yellow")
    else:
        state = Text(f"runs as process {status['pid']}", "bold green")
    table.add_row("manager", state)
    if "pid" not in status:
        return table
    age_s = max(0.0, time.time() - status["time"])
    table.add_row("mode", "acts" if status["act"] else "dry run: nothing is changed")
    unknown = f", {status['unanswered']} without an answer" if status["unanswered"] else ""
    table.add_row(
        "last sweep",
        f"{_spell(age_s)} ago, {status['ports']} ports of {status['switches']} switches{unknown}, "
        f"in {status['sweep-s']:.3g} s; {status['sweeps']} sweeps",
    )
    table.add_row("subnet manager", _MANAGERS[status["subnet-manager"]])
    if status["silent"]:
        table.add_row("silent", Text(", ".join(status["silent"]), "yellow"))
    for low in status["low"]:
        verb = "low" if status["act"] else "would be low"
        table.add_row(
            verb,
            f"{port_name(low['port'])} for {_spell(low['low-for-s'])}, "
            f"victims {_names(low['victims'])}, "
            f"which have lost {low['victims-lost-bytes'] / 1e9:.3g} GB",
        )
    for change in status["pending"]:
        since = stamp(change["since"] * 1_000_000_000)
        table.add_row(
            "in the journal",
            f"{port_name(change)}: {change['now']}, {change['before']} is to be restored, "
            f"since {since}",
        )
    decisions = ", ".join(f"{reason} {count}" for reason, count in status["decisions"].items())
    table.add_row("decisions", decisions or "none")
    if error := status.get("journal-error"):
        table.add_row("journal", Text(f"cannot be written: {error}", "bold red"))
    return table


def report_table(report: DcmsReport) -> Table:
    """Lay out what a log shows."""
    from rich.table import Table

    table = Table(
        "port",
        "to",
        "would be lowered" if report.dry_run else "lowered",
        "low for",
        "victims",
        "victims lost",
        "lost per second",
        title_justify="left",
        title_style="bold",
        title=f"{'Dry run' if report.dry_run else 'Log'} of {stamp(round(report.first_s * 1e9))} "
        f"to {stamp(round(report.last_s * 1e9))}",
        box=None,
        padding=(0, 2),
    )
    for one in report.ports:
        table.add_row(
            one.port,
            one.far_end,
            f"{one.lowered} time{'' if one.lowered == 1 else 's'}",
            _spell(one.low_s),
            ", ".join(sorted(one.victims)),
            _losses(one),
            f"{one.lost_bytes * 8e-9 / one.known_s:.3g} Gbit" if one.known_s > 0 else "",
        )
    return table


def _losses(one: LowPort) -> str:
    unknown = "not known yet" if one.is_low else "not known"
    if one.unknown == one.lowered:
        return unknown
    known = f"{one.lost_bytes / 1e9:.3g} GB"
    if one.unknown == 0:
        return known
    return f"{known}; {one.unknown} time{'' if one.unknown == 1 else 's'} {unknown}"


_NAP_S = 0.1
_RETRY_S = 2.0


def configuration(config: Path) -> str:
    """Read the configuration file of a manager."""
    hint = "silvan dcms --example prints a configuration"
    return read_text(config, CONFIGURATION_BYTES, "configuration", hint)


class LiveView:
    """The live page of a manager."""

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


class Service:
    """A manager that signals end; with ``can_reload``, SIGHUP restarts it."""

    def __init__(
        self,
        config: Path,
        opened: Callable[[str], Manager],
        log: LogFormat,
        page: LiveView | None,
        *,
        can_reload: bool,
    ) -> None:
        self._config = config
        self._opened = opened
        self._log = log
        self._page = page
        self._can_reload = can_reload
        self._is_ending = self._is_reloading = False
        self._text = ""
        self._is_clean = True
        self.has_started = False

    def run(self) -> bool:
        """Run until the end, and return whether no change is left to be restored."""
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

    def _run(self) -> bool:
        self._text = configuration(self._config)
        manager = self._opened(self._text)
        self.has_started = True
        while manager.is_running():
            if self._is_ending:
                manager.stop()
            elif self._is_reloading:
                replaced = self._reloaded(manager)
                if replaced is None:
                    return self._is_clean
                manager = replaced
            self._show(manager)
            time.sleep(_NAP_S)
        return manager.join() == 0

    def _show(self, manager: Manager) -> None:
        """Show news; a manager continues without a page that cannot be served."""
        if self._page is None:
            return
        try:
            self._page.follow(manager)
        except (OSError, SilvanError) as error:
            self._page = None
            self._log_event(
                "page-failed", "error", f"the page is not served any more: {error}", why=str(error)
            )

    def _reloaded(self, manager: Manager) -> Manager | None:
        self._is_reloading = False
        new = self._checked()
        if new is None:
            return manager
        manager.stop()
        while manager.is_running():
            time.sleep(_NAP_S)
        # The next manager restores the remaining changes of the journal.
        try:
            self._is_clean = manager.join() == 0
        except ManagerError as error:
            self._is_clean = False
            self._log_error("failed", "the manager has failed", error)
        return self._restarted(new)

    def _checked(self) -> str | None:
        from silvan import _silvan

        try:
            text = configuration(self._config)
            _silvan.Manager.check(text, str(self._config))
        except SilvanError as error:
            self._refuse(error)
            return None
        return text

    def _restarted(self, new: str | None) -> Manager | None:
        """Start a manager with the new configuration, or with the old one, until a manager runs."""
        logged = ""
        while not self._is_ending:
            if self._is_reloading:
                self._is_reloading = False
                new = self._checked()
            if new is not None:
                try:
                    self._require_folder(new)
                    manager = self._opened(new)
                except (SilvanError, OSError) as error:
                    self._refuse(error)
                    new = None
                else:
                    self._text = new
                    self._log_event("reloaded", "info", f"{self._config} is reloaded")
                    return manager
            try:
                return self._opened(self._text)
            except (SilvanError, OSError) as error:
                if str(error) != logged:
                    logged = str(error)
                    self._log_error("not-started", "no manager runs, further tries follow", error)
            self._wait(_RETRY_S)
        return None

    def _require_folder(self, new: str) -> None:
        from silvan import _silvan

        if self._is_clean:
            return
        old_folder, new_folder = (
            os.path.realpath(_silvan.Manager.check(text, str(self._config)))
            for text in (self._text, new)
        )
        if old_folder != new_folder:
            raise ScenarioError(
                f"state.folder: the journal in {old_folder} lists changes that are not restored",
                str(self._config),
                hint="reload again when silvan dcms --status shows none, or keep the folder",
                key="state.folder",
            )

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._is_ending and not self._is_reloading and time.monotonic() < until:
            time.sleep(_NAP_S)

    def _refuse(self, error: Exception) -> None:
        what = "the configuration is kept, because the new one cannot be used"
        self._log_error("not-reloaded", what, error)

    def _log_error(self, event: str, what: str, error: Exception) -> None:
        hint = error.hint if isinstance(error, SilvanError) else None
        if hint is None:
            self._log_event(event, "error", f"{what}: {error}", why=str(error))
        else:
            text = f"{what}: {error} (hint: {hint})"
            self._log_event(event, "error", text, why=str(error), hint=hint)

    def _log_event(self, event: str, level: str, text: str, **values: str) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if self._log is LogFormat.JSON:
            line = {"time": now, "level": level, "event": event, "file": str(self._config)}
            note(json.dumps({**line, **values}))
        else:
            note(f"{now} {level}: {text}")
