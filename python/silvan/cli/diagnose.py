"""The command that diagnoses a subnet: live, from files, or from a ring file."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from silvan.cli.attached import attach
from silvan.cli.options import (
    AdapterName,
    AdapterPort,
    AsJson,
    Bind,
    EmulatedFabric,
    LinkPercent,
    WaitTick,
    address_of,
)
from silvan.cli.printer import put, put_json, put_table, warn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from silvan.live.moments import Moment

_INTERVAL = "1 s"
_INTERVAL_OF_WATCH = "10 s"
_RING = Path("silvan-diagnose.ring")
_KEEP = "4 h"
_DATABASE = ".db_csv"


def diagnose(
    topology: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The output of ibnetdiscover, or ibdiagnet's db_csv: diagnose files.",
            show_default=False,
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
    tick: WaitTick = None,
    device: AdapterName = None,
    port: AdapterPort = 0,
    sockname: EmulatedFabric = None,
    jobs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File of jobs by host: lines host,job, or the output of squeue or scontrol show "
            "job.",
            show_default=False,
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html",
            help="Write a page with map, trees and health, which needs no other file.",
            show_default=False,
        ),
    ] = None,
    scenario: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml",
            help="Write a scenario that behaves as the subnet does, and a record next to it, for "
            "silvan whatif.",
            show_default=False,
        ),
    ] = None,
    ring: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="With --watch: the ring file that keeps the last sweeps, at most 256 MiB. "
            "Else: add this diagnosis to the ring file.",
        ),
    ] = _RING,
    keep: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="With --watch or --ring: time that the ring file keeps, such as 30 min.",
        ),
    ] = _KEEP,
    from_ring: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="RING",
            help="Report on the sweeps of a ring file, instead of reading a subnet.",
            show_default=False,
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="With --from: only the last sweep at or before this time, such as "
            '"2026-01-31 14:05:00".',
            show_default=False,
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="RING[@TIME]",
            help="Compare with the last sweep of a ring file, or with the last one at or before a "
            "time. Changes that explain most lost bandwidth come first.",
            show_default=False,
        ),
    ] = None,
    dcms_log: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --live: show decisions and changes of silvan dcms as events, from the log "
            "that --log json writes.",
            show_default=False,
        ),
    ] = None,
    bind: Bind = "127.0.0.1:0",
    link_percent: LinkPercent = 1.0,
    *,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Sweep until Ctrl-C, and keep the last hours in a ring file."),
    ] = False,
    live: Annotated[
        bool,
        typer.Option(
            "--live", help="With --watch: serve the page in a browser while the subnet is watched."
        ),
    ] = False,
    slurm: Annotated[
        bool, typer.Option("--slurm", help="Read from squeue which jobs run on which hosts.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find who causes congestion in a subnet, and who suffers.

    It reads topology, forwarding tables and, twice, the counters of all ports, and sets nothing.
    Without --topology and --from it reads a live subnet; ibdiagnet's db_csv as --before needs no
    --topology. Exit status: 0 without congestion, 1 with congestion, 2 if too little is known of
    the ports to exclude it.
    """
    from silvan.live.diagnosis import diagnose_files, diagnose_subnet, is_undecided
    from silvan.live.host_jobs import HostJobs

    if topology is None and before is not None and before.suffix == _DATABASE:
        topology = before
    files = {"--routes": routes, "--before": before, "--after": after}
    _check(
        {
            "needs --topology": ([] if topology else [n for n, given in files.items() if given]),
            "needs --watch": [] if watch else ["--live"] * live,
            "needs --watch or --ring": []
            if watch or ring != _RING
            else ["--keep"] * (keep != _KEEP),
            "not with --from": ["--ring"] * (ring != _RING) if from_ring else [],
            "needs --live": [] if live else ["--dcms-log"] * (dcms_log is not None),
            "needs --from": [] if from_ring else ["--at"] * (at is not None),
            "not with --slurm": ["--jobs"] * (jobs is not None and slurm),
            "not with --topology": (["--watch"] * watch + ["--from"] * (from_ring is not None))
            if topology
            else [],
            "not with --watch": (
                ["--from"] * (from_ring is not None)
                + ["--html"] * bool(html)
                + ["--scenario"] * bool(scenario)
                + ["--against"] * bool(against)
            )
            if watch
            else [],
        }
    )
    on_hosts = HostJobs(jobs, slurm=slurm)
    old = _old(against) if against is not None else None
    if from_ring is not None:
        moments = _stored(from_ring, at)
    elif topology is not None:
        if before is None or after is None:
            missing = "--before" if before is None else "--after"
            raise typer.BadParameter("missing; --topology needs it", param_hint=missing)
        if interval is None:
            raise typer.BadParameter(
                "missing: the time between --before and --after", param_hint="--interval"
            )
        moment, odd = diagnose_files(
            topology=topology,
            routes=routes,
            before=before,
            after=after,
            interval=interval,
            tick=tick,
        )
        warn(odd)
        moments = [moment]
    else:
        options: dict[str, Any] = {
            "--interval": interval,
            "--tick": tick,
            "--device": device,
            "--port": port or None,
            "--jobs": jobs,
            "--html": html,
            "--scenario": scenario,
            "--against": against,
            "--ring": ring,
            "--keep": keep,
            "--dcms-log": dcms_log,
            "--bind": bind,
            "--link-percent": link_percent,
        }
        flags = {"--watch": watch, "--live": live, "--slurm": slurm, "--json": as_json}
        clock = attach("diagnose", sockname, options, flags)
        if watch:
            from silvan.cli.watch import WatchOptions, watch_subnet

            watch_subnet(
                WatchOptions(
                    ring=ring,
                    keep=keep,
                    interval=interval or _INTERVAL_OF_WATCH,
                    address=address_of(bind, "--bind") if live else None,
                    dcms_log=dcms_log,
                    as_json=as_json,
                ),
                on_hosts,
                device=device,
                port=port,
                tick=tick,
                link_percent=link_percent,
                clock=clock,
            )
            return
        moments = [
            diagnose_subnet(
                device=device,
                port=port,
                interval=interval or _INTERVAL,
                tick=tick,
                link_percent=link_percent,
                clock=clock,
            )
        ]
    with _of_silvan(from_ring, against):
        strangers = on_hosts.unknown(
            node["name"] for node in moments[-1].subnet.nodes if node["is_host"]
        )
        if strangers:
            number = (
                "1 host with jobs is"
                if len(strangers) == 1
                else f"{len(strangers)} hosts with jobs are"
            )
            warn([f"{number} not in the subnet, such as {strangers[0]}"])
        for one in moments:
            on_hosts.add_to(one.report)
        last = moments[-1]
        hosts = [node["name"] for node in last.subnet.nodes if node["is_host"]]
        if ring != _RING and from_ring is None:
            _keep_moment(ring, last, keep)
        if scenario is not None:
            from silvan.live.twin.scenario import make_twin

            jobs_of = on_hosts.of(hosts)
            twin = make_twin(last, jobs_of, history=moments[:-1], name=scenario.stem)
            twin.write(scenario)
            last.report["twin"] = {"scenario": str(scenario), **twin.summary}
        if old is not None:
            from silvan.live.comparison import compare_moments

            if old.at_ns == last.at_ns:
                raise typer.BadParameter(
                    "names the sweep that it is compared with; add @TIME", param_hint="--against"
                )
            last.report["against"] = compare_moments(old, last, on_hosts.of(hosts))
        is_stored = from_ring is not None
        _print(moments, html, is_stored=is_stored, whole=is_stored and at is None, as_json=as_json)
        if any(one.report["trees"] for one in moments):
            raise typer.Exit(1)
        if all(is_undecided(one.report) for one in moments):
            raise typer.Exit(2)


def _check(unfit: Mapping[str, Sequence[str]]) -> None:
    for reason, options in unfit.items():
        for option in options:
            raise typer.BadParameter(reason, param_hint=option)


def _stored(ring: Path, at: str | None) -> list[Moment]:
    from datetime import datetime

    from silvan.errors import DiagnosisError
    from silvan.live.ring import RingFile

    with RingFile(ring) as file:
        times = file.times_ns()
        if not times:
            raise DiagnosisError(f"{ring}: no sweeps are kept", "silvan diagnose --watch adds some")
        if at is None:
            return _some(ring, file.moments())
        try:
            wanted = datetime.fromisoformat(at).timestamp()
        except ValueError:
            raise typer.BadParameter(
                f"{at!r} is no date and time, such as 2026-01-31 14:05:00", param_hint="--at"
            ) from None
        # A time without a fraction names the whole second.
        limit = round(wanted * 1e9) + (0 if "." in at else 999_999_999)
        found = [time for time in times if time <= limit]
        if not found:
            from silvan.cli.diagnosis_tables import stamp

            raise DiagnosisError(
                f"{ring}: no sweep at or before {at}", f"the first one is of {stamp(times[0])}"
            )
        return _some(ring, file.moments(found[-1], found[-1]))


@contextmanager
def _of_silvan(*rings: Path | str | None) -> Iterator[None]:
    from silvan.errors import DiagnosisError, SilvanError, describe
    from silvan.live.dcms_state import NO_RECORD

    named = [str(ring) for ring in rings if ring is not None]
    try:
        yield
    except SilvanError:
        raise
    except (*NO_RECORD, IndexError) as error:
        if not named:
            raise
        raise DiagnosisError(
            f"{' or '.join(named)}: holds a sweep that silvan has not written: {describe(error)}",
            "name a file that silvan diagnose --watch has written",
        ) from error


def _old(against: str) -> Moment:
    from silvan.errors import DiagnosisError
    from silvan.live.ring import RingFile

    ring, found, at = against.rpartition("@")
    if not found or Path(against).exists():
        ring, at = against, ""
    path = Path(ring)
    if at:
        return _stored(path, at)[0]
    with RingFile(path) as file:
        times = file.times_ns()
        if not times:
            raise DiagnosisError(f"{path}: no sweeps are kept", "name another ring file")
        return _some(path, file.moments(times[-1], times[-1]))[0]


def _keep_moment(ring: Path, moment: Moment, keep: str) -> None:
    from silvan.cli.watch import keep_span_ns
    from silvan.live.ring import RingFile

    kept_ns = keep_span_ns(keep)
    with RingFile(ring, writable=True) as file:
        file.add(moment, kept_ns)


def _some(ring: Path, moments: Iterable[Moment]) -> list[Moment]:
    """Refuse an empty list: a writer may have removed moments."""
    from silvan.errors import DiagnosisError

    if found := list(moments):
        return found
    raise DiagnosisError(f"{ring}: its sweeps were removed while it was read", "repeat the command")


def _print(
    moments: Sequence[Moment], html: Path | None, *, is_stored: bool, whole: bool, as_json: bool
) -> None:
    from silvan.cli.diagnosis_tables import (
        comparison_tables,
        report_tables,
        span_report,
        span_tables,
        stamp,
        twin_table,
    )

    last = moments[-1]
    if html is not None:
        from silvan.viewer.diagnosis import write_diagnosis

        write_diagnosis(moments, html, f"Diagnosis of {stamp(last.at_ns)}")
    summary = span_report(moments) if whole else None
    if as_json:
        put_json(last.report if summary is None else {**summary, "last_report": last.report})
        return
    if summary is not None:
        for table in span_tables(summary):
            put_table(table)
    if is_stored:
        put(f"The {'' if summary is None else 'last '}sweep of {stamp(last.at_ns)}:")
    for table in report_tables(last.report):
        put_table(table)
    if "against" in last.report:
        for table in comparison_tables(last.report["against"]):
            put_table(table)
    if "twin" in last.report:
        put_table(twin_table(last.report["twin"]))
    if html is not None:
        put(str(html))
