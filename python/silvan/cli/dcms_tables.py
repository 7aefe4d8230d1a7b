"""The state of a DCMS and the report of its log, on a terminal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from silvan.cli.diagnosis_tables import stamp
from silvan.live.dcms_state import port_name

if TYPE_CHECKING:
    from rich.table import Table

    from silvan.live.dcms_state import DcmsReport, LowPort

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
    """Spell what victims have lost, and how often that is not in the log."""
    unknown = "not known yet" if one.is_low else "not known"
    if one.unknown == one.lowered:
        return unknown
    known = f"{one.lost_bytes / 1e9:.3g} GB"
    if one.unknown == 0:
        return known
    return f"{known}; {one.unknown} time{'' if one.unknown == 1 else 's'} {unknown}"
