"""The command that simulates a scenario."""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from silvan.cli.measure_columns import (
    Measures,
    add_measures,
    cell,
    chosen_measures,
    measure_table,
)
from silvan.cli.options import (
    AsJson,
    Assignments,
    Overwrite,
    ScenarioPath,
    Scheme,
    Yes,
    load,
    require_size,
    tree_keys,
    view_keys,
)
from silvan.cli.packets import (
    Pcap,
    Trace,
    check_one_run,
    packet_keys,
    put_trace,
    recording,
    trace_report,
    write_capture,
)
from silvan.cli.printer import note, progress_bars, put, put_json, put_table
from silvan.cli.without_effect import never_acted, without_effect
from silvan.inputs.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rich.table import Table

    from silvan.execution.workers import Job
    from silvan.inputs.scenario import Scenario
    from silvan.results.measures import Measure
    from silvan.results.result import Result


_TREND = 2.878
"""Largest t of a stationary run: the 99.5 % quantile with 18 degrees of freedom."""

_MOST_LINES = 20

_LATENCIES = {
    "latency_mean_ns": "mean",
    "latency_min_ns": "min",
    "latency_p50_ns": "median",
    "latency_p99_ns": "99 %",
    "latency_p999_ns": "99.9 %",
    "latency_max_ns": "max",
}


class Records(StrEnum):
    """Additional records of a run."""

    VIEW = "view"


def run(
    scenario: ScenarioPath,
    set_: Assignments = None,
    scheme: Scheme = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of runs, with consecutive seeds; by default that of the table [sweep], or "
            "one.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="The first seed; by default the scenario's.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write Parquet tables and a manifest to DIR/seed-N.",
            show_default=False,
        ),
    ] = None,
    threads: Annotated[
        str | None,
        typer.Option(
            metavar="N|auto",
            help="Threads of a single run, or auto to choose by fabric and idle processors; by "
            "default the scenario's. Results do not depend on it.",
            show_default=False,
        ),
    ] = None,
    *,
    trees: Annotated[
        bool,
        typer.Option(
            "--trees",
            help="Sample congestion trees, by default a hundred times in the run.",
        ),
    ] = False,
    record: Annotated[
        Records | None,
        typer.Option(
            "--record",
            metavar="view",
            help="Additional records: view records all data of silvan view "
            "(samples of ports, congestion trees, latencies by host).",
            show_default=False,
        ),
    ] = None,
    trace: Trace = None,
    pcap: Pcap = None,
    fct: Annotated[
        Path | None,
        typer.Option(
            "--fct",
            metavar="FILE",
            help="Write the completion times of flows to a file in the format of ns-3's fct.txt.",
            show_default=False,
        ),
    ] = None,
    measures: Measures = None,
    yes: Yes = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Simulate a scenario, several seeds in parallel.

    Prints the delivered traffic. --out keeps every finished run, also if Ctrl-C stops the others.
    For a scenario that varies keys, use silvan sweep.
    """
    from silvan._silvan import latency_percentile_resolution
    from silvan.execution.processes import cores
    from silvan.execution.run_threads import checked_threads, fewer_threads, requested_threads
    from silvan.execution.workers import run_jobs
    from silvan.folders import claimed_results, require_writable_file
    from silvan.inputs.scenario import warn_without_traffic
    from silvan.results.packet_trace import Traced

    chosen = chosen_measures(measures)
    loaded = load(scenario, set_, scheme)
    traced = None if trace is None else Traced.parse(trace)
    keys = {
        **({} if record is None else view_keys(loaded)),
        **(tree_keys(loaded) if trees else {}),
        **packet_keys(loaded, traced, pcap),
    }
    loaded = recording(loaded, keys)
    count = None if threads is None else checked_threads(_number(threads))
    wanted = requested_threads(loaded, count)
    jobs = [replace(job, threads=count) for job in _plan(loaded, seeds, seed, out)]
    if wanted > cores() and len(jobs) == 1:
        share = f"of {wanted} threads {cores()} run at a time, one for each processor here"
        note(f"warning: {share}; that takes longer than with {cores()}")
    check_one_run(len(jobs), {"--trace": traced, "--pcap": pcap, "--fct": fct})
    if fct is not None:
        require_writable_file(fct)
        _require_flows(loaded)
    for line in without_effect(loaded, set_ or ()):
        note(f"note: {line}")
    if not loaded.has_traffic:
        warn_without_traffic(loaded.name)
    size = require_size([(loaded, len(jobs))], is_wanted=yes)
    planned = {job.folder: job.origin for job in jobs if job.folder is not None}
    reports: dict[int, dict[str, Any]] = {}
    with (
        claimed_results(out, planned, overwrite=overwrite),
        progress_bars([f"seed {job.seed}" for job in jobs]) as on_progress,
        closing(run_jobs(jobs, on_progress=on_progress)) as finished,
    ):
        if size is not None:
            note(size)
        for index, result in finished:
            # Texts are small; a thousand results may exceed memory.
            reports[index] = _report(jobs[index], result, whole=as_json)
            shown = result
    ordered = [reports[index] for index in range(len(jobs))]
    unroutable = sum(report["summary"]["unroutable_packets"] for report in ordered)
    if unroutable:
        missing = "that they had no forwarding entry for"
        note(f"warning: switches discarded {unroutable} packets {missing}")
    if lost := sum(report["lost_packets"] for report in ordered):
        found = f"note: faults lost {counted(lost, 'packet')} after the warm-up"
        again = [report["retries"] for report in ordered if report["retries"] is not None]
        answer = f"hosts went back {counted(sum(again), 'time')}" if again else "none is sent again"
        note(f"{found}; {answer}")
    idle = (report["summary"]["idle_scheme"] for report in ordered)
    if remark := never_acted(loaded.control.scheme, idle):
        note(remark)
    if remark := _leaps(loaded, [report["summary"] for report in ordered]):
        note(remark)
    used = min(report["summary"]["threads"] for report in ordered)
    why = None if len(jobs) == 1 else "several seeds run at once, all but the last few on one"
    if remark := fewer_threads(wanted, used, why):
        note(remark)
    resolution = latency_percentile_resolution()
    try:
        if as_json:
            put_json(
                {
                    "name": loaded.name,
                    "hash": loaded.hash,
                    "latency_percentile_resolution": resolution,
                    "runs": ordered,
                    **({} if traced is None else {"trace": trace_report(shown, traced)}),
                }
            )
            return
        put(_setting(loaded, used))
        put_table(_table(loaded.name, ordered, chosen))
        if len(ordered) == 1:
            _put_details(ordered[0], resolution)
        put_trace(shown, traced)
        if out is not None:
            note(f"written to {out}")
    finally:
        # Nothing is lost if the rest cannot be written.
        write_capture(shown, pcap)
        if fct is not None:
            note(f"{shown.write_fct(fct):,} flows written to {fct}")


def _leaps(scenario: Scenario, summaries: Sequence[Mapping[str, Any]]) -> str | None:
    reasons = {summary["no_leaps"] for summary in summaries} - {None}
    if reasons and scenario.to_dict()["run"].get("fast-forward") == "on":
        return f"note: run.fast-forward has no effect: {'; '.join(sorted(reasons))}"
    leapt = sum(summary["leapt_packet_hops"] for summary in summaries)
    if not leapt:
        return None
    share = leapt / sum(summary["packet_hops"] for summary in summaries)
    return f"fast-forward: {share:.1%} of the packet-hops repeat others and were leapt over"


def _setting(scenario: Scenario, threads: int) -> str:
    facts, tables = scenario.describe(), scenario.to_dict()
    link, fabric = tables["link"], tables["fabric"]
    rates = [bits / 1e9 for bits in facts["cable_rates_bits_per_s"]]
    named = "rate" not in link and rates == [scenario.link_gbps]
    links = f"{link['width']} {link['speed']}, " if named else ""
    links += f"{' and '.join(f'{rate:,g}' for rate in rates)} Gbit/s"
    if link.get("flow-control") == "pfc":
        links += ", PFC"
    choice = fabric["path-choice"]
    adaptive = "" if choice == "table" else f" ({choice})"
    parts = (
        counted(facts["hosts"], "host"),
        counted(facts["switches"], "switch", "switches"),
        f"links {links}",
        f"MTU {tables['packet']['mtu']}",
        f"routing {fabric['routing']}{adaptive}",
        f"scheme {tables['control']['scheme']}",
        counted(threads, "thread"),
    )
    return "; ".join(parts)


def _put_details(report: Mapping[str, Any], resolution: float) -> None:
    tables = (
        _latency_table(report, resolution),
        flow_table(report),
        _size_table(report),
        _program_table(report),
        _tree_table(report),
    )
    for table in tables:
        if table is not None:
            put_table(table)
    for line in _summary(report):
        put(line)


def _number(text: str) -> int | str:
    from silvan.inputs.quantities import whole_number

    number = whole_number(text)
    return text if number is None else number


def _plan(loaded: Scenario, seeds: int | None, seed: int | None, out: Path | None) -> list[Job]:
    from silvan.errors import SilvanError
    from silvan.execution.workers import Job
    from silvan.sweeping.plan import seed_count, seeds_of

    if varied := loaded.axes():
        raise SilvanError(
            f"{loaded.name}: the scenario varies {', '.join(varied)}; a run has one value of each",
            hint="silvan sweep runs every combination; --set sweep.vary={} varies nothing",
        )
    count = seed_count(loaded, seeds, seed)
    return [
        Job(loaded, one, out / f"seed-{one}" if out else None)
        for one in seeds_of(loaded, count, seed)
    ]


def _report(job: Job, result: Result, *, whole: bool) -> dict[str, Any]:
    from silvan.results.measures import finite

    return {
        "seed": result.seed,
        "hash": result.scenario.hash,
        "measures": finite(result.measures),
        "summary": dict(result.summary),
        "classes": result.classes.to_pylist(),
        **_ends(result, whole=whole),
        **_trees(result),
        "lost_packets": _lost(result),
        "retries": _retries(result),
        "folder": str(job.folder) if job.folder else None,
    }


_WITHOUT_FLOWS = ("uniform", "permutation", "sequence", "program", "collective")


def _require_flows(scenario: Scenario) -> None:
    from silvan.errors import SilvanError

    entries = [
        entry
        for kind, listed in scenario.to_dict()["traffic"].items()
        if isinstance(listed, list) and kind not in _WITHOUT_FLOWS
        for entry in listed
    ]
    if all(entry.get("bytes") == "unlimited" for entry in entries):
        raise SilvanError(
            f"--fct: {scenario.name}: no traffic entry has a number of bytes",
            hint="give one a key bytes",
        )


def _retries(result: Result) -> int | None:
    """Count how often hosts went back to a lost packet; None without ``host.retry``."""
    hosts = result.hosts
    return sum(hosts["retries"].to_pylist()) if "retries" in hosts.column_names else None


def _lost(result: Result) -> int:
    if "fault" not in result.scenario.to_dict():
        return 0
    counters = [
        name for name in ("xmit_discards", "rcv_errors") if name in result.ports.schema.names
    ]
    ports = result.ports.select(counters).to_pylist()
    return sum(port[name] or 0 for port in ports for name in counters)


def _ends(result: Result, *, whole: bool) -> dict[str, Any]:
    ends: dict[str, Any] = {}
    if "flows" in result.tables:
        ends |= {"flows": result.flows.to_pylist()} if whole else some_flows(result, _MOST_LINES)
    if "flow_sizes" in result.tables:
        ends["flow_sizes"] = result.flow_sizes.to_pylist()
    if "sequences" in result.tables:
        ends["sequences"] = result.sequences.to_pylist()
    if "programs" in result.tables:
        ranks = result.ranks.to_pylist()
        ends["programs"] = [
            program
            | {
                "rank_end_ps": [
                    rank["end_ps"] for rank in ranks if rank["program"] == program["program"]
                ]
            }
            for program in result.programs.to_pylist()
        ]
    return ends


def _trees(result: Result) -> dict[str, Any]:
    if "tree_lifetimes" not in result.tables:
        return {}
    from silvan.results.forest import tree_lives

    return {"trees": tree_lives(result)}


def _finished_programs(report: Mapping[str, Any]) -> str:
    programs = report.get("programs", ())
    finished = sum(program["finished"] for program in programs)
    return f"{finished} of {len(programs)}" if programs else ""


def _summary(report: Mapping[str, Any]) -> list[str]:
    lines = []
    if line := flow_line(report):
        lines.append(line)
    for row in report.get("flow_sizes", ()):
        if row["from_bytes"] is None:
            lines.append(_stationarity(row))
    for one in report.get("sequences", ()):
        line = f"{one['name']}: {one['messages']:,} messages of a sequence delivered"
        if one["finished"]:
            line += f"; finished after {one['end_ps'] / 1e6:.3f} µs"
        lines.append(line)
    if programs := report.get("programs"):
        line = f"{_finished_programs(report)} programs finished"
        ends = [program["end_ps"] / 1e6 for program in programs if program["finished"]]
        if ends:
            line += f"; the last one after {max(ends):.3f} µs"
        if slowdowns := [one["slowdown"] for one in programs if one["slowdown"] is not None]:
            line += f"; slowdown max {max(slowdowns):.2f}"
        lines.append(line)
    return lines


def _size_table(report: Mapping[str, Any]) -> Table | None:
    from rich.table import Table

    rows = report.get("flow_sizes", ())
    if not rows:
        return None
    table = Table(title="flows that began after the warm-up, by size")
    table.add_column("traffic class")
    for heading in ("bytes", "flows", "finished", "completion, µs", "slowdown, mean"):
        table.add_column(heading, justify="right")
    for heading in ("median", "95 %", "99 %"):
        table.add_column(heading, justify="right")
    for row in rows[:_MOST_LINES]:
        completion, mean, interval = (
            row[name] for name in ("completion_mean_ps", "slowdown_mean", "slowdown_ci")
        )
        quantiles = (row[f"slowdown_{name}"] for name in ("p50", "p95", "p99"))
        table.add_row(
            row["name"],
            _sizes(row),
            str(row["flows"]),
            str(row["finished_flows"]),
            "" if completion is None else f"{completion / 1e6:.3f}",
            ("" if mean is None else f"{mean:.3f}")
            + ("" if interval is None else f" \N{PLUS-MINUS SIGN} {interval:.3f}"),
            *("" if value is None else f"{value:.3f}" for value in quantiles),
        )
    return table


def _sizes(row: Mapping[str, Any]) -> str:
    """Name a range of sizes.

    >>> _sizes({"from_bytes": None, "to_bytes": None}), _sizes({"from_bytes": 10, "to_bytes": 99})
    ('all', '10 to 98')
    """
    if row["from_bytes"] is None:
        return "all"
    if row["to_bytes"] is None:
        return f"from {row['from_bytes']:,}"
    return f"{row['from_bytes']:,} to {row['to_bytes'] - 1:,}"


def _stationarity(row: Mapping[str, Any]) -> str:
    trend = row["trend_t"]
    if trend is None:
        verdict = "too few flows to tell whether the run is stationary"
    elif abs(trend) <= _TREND:
        verdict = f"the run is stationary: no trend of slowdowns (t = {trend:.2f})"
    else:
        way = "rise" if trend > 0 else "fall"
        verdict = f"the run is not stationary: slowdowns {way} with time (t = {trend:.2f})"
    return f"{row['name']}: {verdict}"


def _program_table(report: Mapping[str, Any]) -> Table | None:
    from rich.table import Table

    programs = report.get("programs", ())
    if not programs:
        return None
    table = Table(title="programs")
    table.add_column("program")
    for heading in ("ranks", "ranks finished", "start, µs", "first rank's end, µs", "end, µs"):
        table.add_column(heading, justify="right")
    for heading in ("completion, µs", "slowdown", "iteration, µs", "exposed"):
        table.add_column(heading, justify="right")
    collective = any(program["busbw_gb_per_s"] is not None for program in programs)
    for heading in ("algbw, GB/s", "busbw, GB/s") if collective else ():
        table.add_column(heading, justify="right")
    for program in programs[:_MOST_LINES]:
        ends = [end for end in program["rank_end_ps"] if end is not None]
        # A rank without operations ends at the start: others may still write into its memory.
        first = min((end for end in ends if end > program["start_ps"]), default=None)
        bandwidths = (program["algbw_gb_per_s"], program["busbw_gb_per_s"])
        table.add_row(
            program["name"],
            str(program["ranks"]),
            str(len(ends)),
            f"{program['start_ps'] / 1e6:.3f}",
            _or_blank(first, lambda ps: f"{ps / 1e6:.3f}"),
            f"{program['end_ps'] / 1e6:.3f}" if program["finished"] else "unfinished",
            f"{program['completion_ps'] / 1e6:.3f}" if program["finished"] else "",
            "" if program["slowdown"] is None else f"{program['slowdown']:.3f}",
            _or_blank(program["iteration_mean_ps"], lambda ps: f"{ps / 1e6:.3f}"),
            _or_blank(program["exposed_share"], lambda share: f"{share:.3%}"),
            *(_or_blank(one, lambda rate: f"{rate:.2f}") for one in bandwidths if collective),
        )
    return table


def _or_blank(value: float | None, write: Callable[[float], str]) -> str:
    return "" if value is None else write(value)


def _table(name: str, reports: Sequence[Mapping[str, Any]], chosen: Sequence[Measure]) -> Table:
    from rich.table import Table

    kinds = {"flows": finished_flows, "programs": _finished_programs}
    ends = {name: finished for name, finished in kinds.items() if finished(reports[0])}

    def make(measures: Sequence[Measure]) -> Table:
        table = Table(title=name)
        table.add_column("seed", justify="right")
        add_measures(table, measures)
        for heading in (*(f"{name}\nfinished" for name in ends), "M packet-\nhops/s"):
            table.add_column(heading, justify="right")
        for report in reports:
            summary = report["summary"]
            table.add_row(
                str(report["seed"]),
                *(cell([report["measures"]], one) for one in measures),
                *(finished(report) for finished in ends.values()),
                _speed(summary["packet_hops"] / max(summary["wall_s"], 1e-9) / 1e6),
            )
        return table

    rows = [report["measures"] for report in reports]
    return measure_table(rows, chosen, make, omitted=["flows_finished"])


def _speed(millions: float) -> str:
    """Write a simulation speed with one decimal place, a low one with one digit.

    >>> _speed(12.34), _speed(0.024), _speed(0)
    ('12.3', '0.02', '0')
    """
    return f"{millions:.1f}" if millions >= 1 else f"{millions:.1g}"


def _latency_table(report: Mapping[str, Any], resolution: float) -> Table | None:
    from rich.table import Table

    rows = [row for row in report["classes"] if row["latency_mean_ns"] is not None]
    if not rows:
        return None
    shown = rows[:_MOST_LINES]
    more = f"; the first {len(shown)} of {len(rows)} classes" if len(shown) < len(rows) else ""
    table = Table(
        title=f"packet latency in µs (percentiles: \N{PLUS-MINUS SIGN}{resolution:.1%}){more}"
    )
    table.add_column("traffic class")
    for heading in _LATENCIES.values():
        table.add_column(heading, justify="right")
    for row in shown:
        # A percentile is rounded down, perhaps below the minimum.
        values = (max(row[name], row["latency_min_ns"]) for name in _LATENCIES)
        table.add_row(row["name"], *(f"{value / 1e3:.3f}" for value in values))
    return table


def _tree_table(report: Mapping[str, Any]) -> Table | None:
    from rich.table import Table

    trees = report.get("trees", ())
    if not trees:
        return None
    shown = trees[:_MOST_LINES]
    more = f"; the largest {len(shown)} of {len(trees)}" if len(shown) < len(trees) else ""
    table = Table(title=f"congestion trees{more}")
    for heading in ("tree", "root", "hotspot", "from, ms", "to, ms"):
        table.add_column(heading, justify="right")
    for heading in ("Port VLs", "depth", "contributors", "victims", "moved from"):
        table.add_column(heading, justify="right")
    for life in shown:
        moved = life["moved_from"]
        table.add_row(
            str(life["tree"]),
            life["root"],
            life["destination"] or "-",
            f"{life['birth_ps'] / 1e9:g}",
            f"{life['death_ps'] / 1e9:g}" if life["died"] else "end of run",
            *(str(life[f"peak_{key}"]) for key in ("ports", "depth", "contributors", "victims")),
            "-" if moved is None else str(moved),
        )
    return table


def some_flows(result: Result, most: int) -> dict[str, Any]:
    """Sum up the flows of a run, and list up to ``most``: unfinished flows, then the slowest."""
    import pyarrow.compute as pc

    flows = result.flows
    others = flows
    if "flow_sizes" in result.tables:
        sized = pc.unique(result.flow_sizes["class"])
        others = flows.filter(pc.invert(pc.is_in(flows["class"], value_set=sized)))
    slowness = others["slowdown"].fill_null(math.inf).combine_chunks()
    order = pc.array_sort_indices(slowness, order="descending")
    return {
        "flow_totals": {
            "flows": flows.num_rows,
            "finished": pc.sum(flows["finished"]).as_py() or 0,
        },
        "slowest_flows": others.take(order[:most]).to_pylist(),
        "listable": others.num_rows,
    }


_PARTS = {"mean": "mean", "p99": "99 %", "max": "max"}


def finished_flows(report: Mapping[str, Any]) -> str:
    """Tell how many flows of a run have finished; empty if it has none."""
    totals = report.get("flow_totals", {"flows": 0})
    return f"{totals['finished']} of {totals['flows']}" if totals["flows"] else ""


def flow_line(report: Mapping[str, Any]) -> str | None:
    """Sum the flows of a run up in a line, if there are any; times of those after the warm-up."""
    finished = finished_flows(report)
    if not finished:
        return None
    line = f"{finished} flows finished"
    measures = report["measures"]
    for name, words, unit in (("fct", "completion time", " µs"), ("slowdown", "slowdown", "")):
        end = "_us" if unit else ""
        if measures.get(f"{name}_mean{end}") is None:
            continue
        parts = ((part, measures[f"{name}_{part}{end}"]) for part in ("mean", "p99", "max"))
        values = (
            f"{_PARTS[part]} {'unfinished' if value is None else f'{value:.2f}{unit}'}"
            for part, value in parts
        )
        line += f"; {words} {', '.join(values)}"
    return line


def flow_table(report: Mapping[str, Any]) -> Table | None:
    """Put the listed flows of a run in a table."""
    from rich.table import Table

    shown = report.get("slowest_flows")
    if not shown:
        return None
    count = report["listable"]
    more = f"; the slowest {len(shown)} of {count}" if len(shown) < count else ""
    table = Table(title=f"flows with a number of bytes{more}")
    for heading in ("flow", "from", "to"):
        table.add_column(heading)
    for heading in ("bytes", "delivered", "start, µs", "end, µs", "completion, µs", "slowdown"):
        table.add_column(heading, justify="right")
    for flow in shown:
        times = (flow["start_ps"], flow["end_ps"], flow["completion_ps"])
        start, end, completion = (f"{ps / 1e6:.3f}" if ps is not None else "" for ps in times)
        table.add_row(
            *(flow[name] for name in ("name", "from", "to")),
            f"{flow['bytes']:,}",
            f"{flow['delivered_bytes']:,}",
            start,
            end if flow["finished"] else "unfinished",
            completion,
            "" if flow["slowdown"] is None else f"{flow['slowdown']:.3f}",
        )
    return table
