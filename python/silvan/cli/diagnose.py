"""The command that diagnoses a subnet, live or from files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from silvan.cli.options import AsJson
from silvan.cli.printer import put_json, put_table, warn

if TYPE_CHECKING:
    from rich.table import Table

    from silvan.diagnosis import Report

_SHOWN = 6
_COLOURS = {"error": "bold red", "warning": "yellow", "info": "dim"}


def diagnose(
    topology: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The output of ibnetdiscover: diagnose files.", show_default=False
        ),
    ] = None,
    routes: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="With --topology: the output of dump_lfts.", show_default=False
        ),
    ] = None,
    before: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --topology: counters of perfquery, ibqueryerrors or ibdiagnet's db_csv.",
            show_default=False,
        ),
    ] = None,
    after: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --topology: the same counters, --interval later.",
            show_default=False,
        ),
    ] = None,
    interval: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Time between the two readings of the counters; 1 s on a live subnet.",
            show_default=False,
        ),
    ] = None,
    tick: Annotated[
        str,
        typer.Option(metavar="TIME", help="Length of a tick of PortXmitWait."),
    ] = "4 ns",
    device: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Adapter to use; by default the first with an active port.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=254, help="Its port; 0 is the first active one.")
    ] = 0,
    sockname: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Diagnose the emulated fabric with sockets of this name.",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            help="Jobs by host, in lines host,job: names the jobs behind a tree.",
            show_default=False,
        ),
    ] = None,
    *,
    slurm: Annotated[
        bool, typer.Option("--slurm", help="Ask squeue which jobs run on which hosts.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find who causes congestion in a subnet, and who suffers.

    It reads topology, forwarding tables and, twice, the counters of all ports, and sets nothing.
    Without --topology it reads a live subnet. The status is 1 if there is congestion, and 0 if
    there is none.
    """
    from silvan.diagnosis import add_jobs, diagnose_files, read_jobs, slurm_jobs

    if jobs is not None and slurm:
        raise typer.BadParameter("not with --slurm", param_hint="--jobs")
    on_hosts = read_jobs(jobs) if jobs is not None else slurm_jobs() if slurm else None
    files = {"--routes": routes, "--before": before, "--after": after}
    if topology is None:
        for option, given in files.items():
            if given is not None:
                raise typer.BadParameter("needs --topology", param_hint=option)
        report = _live(sockname, device, port, interval or "1 s", tick)
    else:
        if before is None or after is None:
            missing = "--before" if before is None else "--after"
            raise typer.BadParameter("missing; --topology needs it", param_hint=missing)
        if interval is None:
            raise typer.BadParameter(
                "missing: the time between --before and --after", param_hint="--interval"
            )
        report, odd = diagnose_files(
            topology=topology,
            routes=routes,
            before=before,
            after=after,
            interval=interval,
            tick=tick,
        )
        warn(odd)
    if on_hosts is not None:
        add_jobs(report, on_hosts)
    if as_json:
        put_json(report)
    else:
        for table in _tables(report):
            put_table(table)
    if report["trees"]:
        raise typer.Exit(1)


def _live(sockname: str | None, device: str | None, port: int, interval: str, tick: str) -> Report:
    """Diagnose a real subnet, or an emulated one, in a process that is attached to it."""
    import json

    from silvan.diagnosis import diagnose_subnet, fabric_time_scale
    from silvan.emulation import preload_library
    from silvan.errors import DiagnosisError

    attached = "umad2sim" in os.environ.get("LD_PRELOAD", "")
    name = sockname or (os.environ.get("IBSIM_SOCKNAME") if attached else None)
    scale = 1.0 if name is None else fabric_time_scale(name)
    if sockname is None or attached:
        return diagnose_subnet(
            device=device, port=port, interval=interval, tick=tick, time_scale=scale
        )
    preload = {"LD_PRELOAD": str(preload_library()), "IBSIM_SOCKNAME": sockname}
    words = [sys.executable, "-m", "silvan", "diagnose", "--json"]
    words += ["--interval", interval, "--tick", tick, "--port", str(port)]
    words += ["--device", device] if device is not None else []
    done = subprocess.run(
        words, env=os.environ | preload, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode not in (0, 1) or not done.stdout:
        raise DiagnosisError(f"the fabric {sockname!r} cannot be diagnosed")
    report: Report = json.loads(done.stdout)
    return report


def _percent(part: float | None) -> str:
    return "?" if part is None else f"{part * 100:.0f} %"


def _hosts(hosts: list[dict[str, Any]]) -> str:
    """Join the first hosts, each with what it sends and the jobs on it."""

    def shown(one: dict[str, Any]) -> str:
        jobs = "".join(f" [job {', '.join(one['jobs'])}]" if one.get("jobs") else "")
        return f"{one['host']} {one['gbps']:.3g} Gbit/s{jobs}"

    more = len(hosts) - _SHOWN
    text = ", ".join(shown(one) for one in hosts[:_SHOWN])
    return f"{text} and {more} more" if more > 0 else text or "none"


def _tables(report: Report) -> list[Table]:
    """Lay out a report, the verdict first."""
    from rich.table import Table
    from rich.text import Text

    trees = report["trees"]
    size = f"{report['hosts']} hosts, {report['switches']} switches, {report['ports']} ports"
    known = report["ports"] - report["unknown_ports"]
    if trees:
        verdict = Text(f"Congestion: {len(trees)} tree{'s' if len(trees) > 1 else ''}", "bold red")
    elif report["unexplained"] or known < report["ports"]:
        verdict = Text("No congestion found in what could be read", "bold yellow")
    else:
        verdict = Text("No congestion", "bold green")
    head = Table.grid(padding=(0, 2))
    head.add_row(verdict, Text(f"{size}, {report['interval_s']:.3g} s", "dim"))
    if report["unknown_ports"]:
        head.add_row(Text(f"{report['unknown_ports']} ports not known", "yellow"), "")
    tables = [head]
    for number, tree in enumerate(trees, 1):
        table = Table(
            title=f"{number}. {tree['cause']} at {tree['root']} ({tree['confidence']} confidence)",
            title_justify="left",
            title_style="bold",
            show_header=False,
            box=None,
            padding=(0, 2),
        )
        table.add_row("why", Text(tree["explanation"]))
        table.add_row("causes", Text(_hosts(tree["contributors"]), "red"))
        table.add_row("victims", Text(_hosts(tree["victims"]), "yellow"))
        waits = [f"{one['port']} {_percent(one['wait'])}" for one in tree["branches"]]
        more = len(waits) - _SHOWN
        table.add_row(
            "waiting", Text(", ".join(waits[:_SHOWN]) + (f" and {more} more" if more > 0 else ""))
        )
        table.add_row("not known", Text("; ".join(tree["cannot_know"]), "dim"))
        tables.append(table)
    if report["losses"]:
        losses = Table(
            "port",
            "waits",
            "lost Gbit/s",
            title="Bandwidth lost by waiting",
            title_justify="left",
            title_style="bold",
            box=None,
            padding=(0, 2),
        )
        for one in report["losses"][:_SHOWN]:
            losses.add_row(Text(one["port"]), _percent(one["wait"]), f"{one['lost_gbps']:.3g}")
        tables.append(losses)
    health = Table(
        title="Health" if report["health"] else "Health: nothing found",
        title_justify="left",
        title_style="bold",
        show_header=False,
        box=None,
        padding=(0, 2),
    )
    for one in report["health"]:
        text = Text(f"{one['what']}\n", style="")
        text.append(f"-> {one['advice']}", "dim")
        health.add_row(Text(one["severity"], _COLOURS[one["severity"]]), text)
    tables.append(health)
    return tables
