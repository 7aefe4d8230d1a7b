"""A diagnosis on a terminal: what it says at a moment, and over the span of a ring file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from silvan.live.moments import Moment, Report

_SHOWN = 6
_MOST_CHANGES = 20
_COLOURS = {"error": "bold red", "warning": "yellow", "info": "dim"}


def _percent(part: float | None) -> str:
    return "?" if part is None else f"{part * 100:.0f} %"


def _hosts(hosts: list[dict[str, Any]]) -> str:
    def shown(one: dict[str, Any]) -> str:
        jobs = "".join(f" [job {', '.join(one['jobs'])}]" if one.get("jobs") else "")
        return f"{one['host']} {one['gbps']:.3g} Gbit/s{jobs}"

    more = len(hosts) - _SHOWN
    text = ", ".join(shown(one) for one in hosts[:_SHOWN])
    return f"{text} and {more} more" if more > 0 else text or "none"


def report_tables(report: Report) -> list[Table]:
    """Lay out a report, the verdict first."""
    from rich.table import Table
    from rich.text import Text

    from silvan.live.diagnosis import is_undecided

    trees = report["trees"]
    size = f"{report['hosts']} hosts, {report['switches']} switches, {report['ports']} ports"
    known = report["ports"] - report["unknown_ports"]
    if is_undecided(report):
        verdict = Text("No diagnosis: too little could be read", "bold yellow")
    elif trees:
        verdict = Text(f"Congestion: {len(trees)} tree{'s' if len(trees) > 1 else ''}", "bold red")
    elif report["unexplained"] or known < report["ports"]:
        verdict = Text("No congestion found in what could be read", "bold yellow")
    else:
        verdict = Text("No congestion", "bold green")
    head = Table.grid(padding=(0, 2))
    head.add_row(verdict, Text(f"{size}, {report['interval_s']:.3g} s", "dim"))
    if report["unknown_ports"]:
        head.add_row(Text(_unknown(report), "yellow"), "")
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


def comparison_tables(comparison: dict[str, Any]) -> list[Table]:
    """Lay out what has changed between two moments."""
    from rich.table import Table
    from rich.text import Text

    changes = comparison["changes"]
    since = stamp(comparison["old_ns"])
    found = Table(
        "explains Gbit/s",
        "change",
        "",
        "trees",
        title=f"Changes since {since}" if changes else f"No changes since {since}",
        title_justify="left",
        title_style="bold",
        box=None,
        padding=(0, 2),
        show_header=bool(changes),
    )
    for one in changes[:_MOST_CHANGES]:
        explains = f"{one['explains_gbps']:.3g}" if one["explains_gbps"] else "-"
        found.add_row(explains, one["kind"], Text(one["what"]), Text(", ".join(one["roots"])))
    more = len(changes) - _MOST_CHANGES
    if more > 0:
        found.add_row("", Text(f"and {more} more; --json lists all", "dim"), "", "")
    tables = [found]
    if comparison["trees"]:
        trees = Table(
            "root",
            "",
            "lost Gbit/s",
            "victims",
            title="Trees before and now",
            title_justify="left",
            title_style="bold",
            box=None,
            padding=(0, 2),
        )
        for one in comparison["trees"]:
            trees.add_row(
                Text(one["root"]),
                one["state"],
                f"{one['lost_gbps_before']:.3g} -> {one['lost_gbps']:.3g}",
                f"{one['victims_before']} -> {one['victims']}",
            )
        tables.append(trees)
    notes = [f"not compared: {one}" for one in comparison["not_compared"]]
    if comparison["unexplained_gbps"]:
        notes.append(f"growth that no change explains: {comparison['unexplained_gbps']:.3g} Gbit/s")
    if notes:
        rest = Table.grid()
        for text in notes:
            rest.add_row(Text(text, "dim"))
        tables.append(rest)
    return tables


def twin_table(twin: dict[str, Any]) -> Table:
    """Lay out what a twin explains, and what it does not have."""
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=f"Twin: {twin['scenario']}",
        title_justify="left",
        title_style="bold",
        show_header=False,
        box=None,
        padding=(0, 2),
    )
    rank = "not computed" if twin["rank"] is None else f"{twin['rank']:,}"
    kind = "as few as possible" if twin["is_sparse"] else "of largest entropy"
    table.add_row(
        "flows",
        f"{twin['flows']:,} {kind}; the counters decide {twin['decided_flows']:,} of them",
    )
    table.add_row(
        "counters",
        f"rank {rank} of {twin['equations']:,} loaded ports for {twin['pairs']:,} pairs of hosts; "
        f"{twin['unexplained']:.1%} of the load is not explained",
    )
    if fit := twin["agreement"]:
        table.add_row(
            "agreement",
            f"simulated loads differ by {fit['median']:.1%} (median), {fit['p95']:.1%} "
            f"(95th percentile); waiting times by {fit['wait']:.1%} of the time",
        )
    for place, text in enumerate(twin["missing"]):
        table.add_row("missing" if place == 0 else "", Text(text, "dim"))
    return table


@dataclass
class RootSummary:
    """A root over the span of a ring file: times in nanoseconds since 1970, sums in Gbit/s."""

    root: str
    first_ns: int
    last_ns: int = 0
    moments: int = 0
    causes: dict[str, int] = field(default_factory=dict)
    contributors: dict[str, float] = field(default_factory=dict)
    victims: dict[str, float] = field(default_factory=dict)

    def add(self, tree: dict[str, Any], at_ns: int) -> None:
        """Add the tree of a moment."""
        self.last_ns = at_ns
        self.moments += 1
        self.causes[tree["cause"]] = self.causes.get(tree["cause"], 0) + 1
        for hosts, kind in ((self.contributors, "contributors"), (self.victims, "victims")):
            for one in tree[kind]:
                hosts[one["host"]] = hosts.get(one["host"], 0.0) + one["gbps"]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: hosts with their means, the largest first."""

        def ranked(hosts: dict[str, float]) -> list[dict[str, Any]]:
            order = sorted(hosts, key=lambda host: (-hosts[host], host))
            return [{"host": host, "gbps": hosts[host] / self.moments} for host in order]

        return {
            "root": self.root,
            "cause": max(self.causes, key=lambda cause: (self.causes[cause], cause)),
            "first": stamp(self.first_ns),
            "last": stamp(self.last_ns),
            "moments": self.moments,
            "contributors": ranked(self.contributors),
            "victims": ranked(self.victims),
        }


def span_report(moments: Sequence[Moment]) -> dict[str, Any]:
    """Summarize the moments of a ring file: the roots, those that were seen most often first."""
    roots: dict[str, RootSummary] = {}
    for moment in moments:
        for tree in moment.report["trees"]:
            root = roots.setdefault(tree["root"], RootSummary(tree["root"], moment.at_ns))
            root.add(tree, moment.at_ns)
    order = sorted(roots.values(), key=lambda root: (-root.moments, root.root))
    return {
        "first": stamp(moments[0].at_ns),
        "last": stamp(moments[-1].at_ns),
        "moments": len(moments),
        "congested_moments": sum(bool(moment.report["trees"]) for moment in moments),
        "subnets": len({moment.subnet.digest for moment in moments}),
        "roots": [root.to_dict() for root in order],
    }


def span_tables(report: dict[str, Any]) -> list[Table]:
    """Lay out what :func:`span_report` returns."""
    from rich.table import Table
    from rich.text import Text

    head = Table.grid(padding=(0, 2))
    share = report["congested_moments"] / report["moments"]
    text = f"Congestion in {report['congested_moments']} of {report['moments']} sweeps"
    head.add_row(Text(text, "bold red" if share else "bold green"))
    head.add_row(Text(f"{report['first']} to {report['last']}", "dim"))
    if report["subnets"] > 1:
        head.add_row(Text(f"the subnet changed: {report['subnets']} states", "yellow"))
    roots = Table(
        "root", "cause", "of the time", "first", "last", "contributors", "victims", box=None
    )
    for one in report["roots"]:
        part = one["moments"] / report["moments"]
        names = [
            ", ".join(host["host"] for host in one[kind][:3])
            + (f" and {len(one[kind]) - 3} more" if len(one[kind]) > 3 else "")
            for kind in ("contributors", "victims")
        ]
        times = [one[when].rpartition(" ")[2] for when in ("first", "last")]
        cells = [one["root"], one["cause"], _percent(part), *times, *names]
        roots.add_row(*(Text(cell) for cell in cells))
    return [head, roots] if report["roots"] else [head]


def stamp(at_ns: int) -> str:
    """Write a time as local date and time."""
    return datetime.fromtimestamp(at_ns / 1e9).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _unknown(report: Report) -> str:
    number = report["unknown_ports"]
    return f"{number} port{'' if number == 1 else 's'} not known"


def one_line(moment: Moment) -> str:
    """Say in a line what a sweep has shown."""
    report = moment.report
    start = stamp(moment.at_ns)
    unknown = f"; {_unknown(report)}" if report["unknown_ports"] else ""
    grave = sum(one["severity"] == "error" for one in report["health"])
    grave_text = f"; {grave} errors of health" if grave else ""
    trees = "; ".join(
        f"{tree['cause']} at {tree['root']} ({len(tree['contributors'])} contributors, "
        f"{len(tree['victims'])} victims)"
        for tree in report["trees"][:3]
    )
    more = len(report["trees"]) - 3
    found = trees + (f"; {more} more trees" if more > 0 else "") or "no congestion found"
    return f"{start}  {found}{unknown}{grave_text}"
