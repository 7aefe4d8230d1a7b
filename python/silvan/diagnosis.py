"""The diagnosis of a subnet: who causes its congestion, and who suffers from it.

A report is a dictionary of plain values, as ``silvan diagnose --json`` prints
it. Nothing is set in the subnet.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from silvan.errors import DiagnosisError, EmulationError
from silvan.input_files import read_text
from silvan.quantities import Quantity

DUMP_BYTES = 1 << 30
"""Largest file of a dump."""

Report = dict[str, Any]
"""A diagnosis."""

_JOBS_BYTES = 64 << 20
_SQUEUE = ("squeue", "--noheader", "--states=RUNNING", "--format=%i|%N")
_PATIENCE_S = 60
_NAP_S = 0.05
# How long an emulated fabric is observed for the speed of its clock.
_CLOCK_S = 0.3
_MOST_HOSTS = 1_000_000


def diagnose_subnet(
    *,
    device: str | None = None,
    port: int = 0,
    interval: str = "1 s",
    tick: str = "4 ns",
    time_scale: float = 1.0,
) -> Report:
    """Diagnose the subnet behind a port of an adapter.

    Parameters
    ----------
    device : str, optional
        The adapter; by default the first with an active port.
    port : int
        Its port; 0 is the first active one.
    interval : str
        Time between the two sweeps of the counters.
    tick : str
        What PortXmitWait counts.
    time_scale : float
        Simulated seconds per second of an emulated fabric.

    Returns
    -------
    dict
        The report.

    Raises
    ------
    UnsupportedSystemError
        This is not Linux.
    DiagnosisError
        There is no such port, this user may not use it, or nothing answers.
    """
    from silvan import _silvan
    from silvan.systems import require_linux

    require_linux("the diagnosis of a live subnet")
    interval_ps, tick_ps = _span("interval", interval), _span("tick", tick)
    done: list[str] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            report = _silvan.diagnose_subnet(
                device=device,
                port=port,
                interval_ps=interval_ps,
                tick_ps=tick_ps,
                time_scale=time_scale,
            )
            done.append(report)
        except BaseException as error:
            failed.append(error)

    # Ctrl-C ends the wait at once, however long the interval is.
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_NAP_S)
    if failed:
        raise failed[0]
    return _loaded(done[0])


def diagnose_files(
    *,
    topology: Path,
    before: Path,
    after: Path,
    routes: Path | None = None,
    interval: str = "1 s",
    tick: str = "4 ns",
) -> tuple[Report, list[str]]:
    """Diagnose a subnet from files of the common tools.

    Parameters
    ----------
    topology : Path
        The output of ``ibnetdiscover``, with or without ``-p``.
    before, after : Path
        Counters: the output of ``perfquery`` or ``ibqueryerrors``, or ibdiagnet's ``.db_csv``.
    routes : Path, optional
        The output of ``dump_lfts``.
    interval : str
        Time between the readings of ``before`` and ``after``.
    tick : str
        What PortXmitWait counts.

    Returns
    -------
    tuple of dict and list of str
        The report, and what is odd about the files.

    Raises
    ------
    ScenarioError
        A file cannot be read.
    DiagnosisError
        A file cannot be used; the message names file and line.
    """
    from silvan import _silvan

    paths = {"topology": topology, "routes": routes, "before": before, "after": after}
    hint = "name the output of a tool, saved as text"
    texts = {
        role: None if path is None else read_text(path, DUMP_BYTES, "dump", hint)
        for role, path in paths.items()
    }
    try:
        report, odd = _silvan.diagnose_dumps(
            topology=texts["topology"] or "",
            routes=texts["routes"],
            before=texts["before"] or "",
            after=texts["after"] or "",
            interval_ps=_span("interval", interval),
            tick_ps=_span("tick", tick),
        )
    except DiagnosisError as error:
        role, _, text = error.message.partition(":")
        raise DiagnosisError(_placed(paths.get(role), text), error.hint) from None
    return _loaded(report), [_placed(paths[role], text) for role, text in odd]


def fabric_time_scale(sockname: str) -> float:
    """Measure how many simulated seconds per second an emulated fabric runs at.

    Parameters
    ----------
    sockname : str
        Name of its sockets.

    Returns
    -------
    float
        The scale.

    Raises
    ------
    EmulationError
        There is no such fabric, or its time does not pass.
    """
    from silvan.emulation import ControlChannel

    with ControlChannel(sockname) as channel:
        before, began = channel.answer("status"), time.monotonic()
        time.sleep(_CLOCK_S)
        after, ended = channel.answer("status"), time.monotonic()
    passed = after["simulated_s"] - before["simulated_s"]
    if passed <= 0:
        raise EmulationError(
            f"the fabric {sockname!r} is paused", "silvan ctl resume lets its time pass"
        )
    return float(passed / (ended - began))


def read_jobs(path: Path) -> dict[str, list[str]]:
    """Read which jobs run on which hosts from a CSV file with lines ``host,job``.

    Parameters
    ----------
    path : Path
        The file. A first line ``host,job`` is passed over.

    Returns
    -------
    dict
        Jobs by host.

    Raises
    ------
    ScenarioError
        The file cannot be read.
    DiagnosisError
        A line is not of this form.
    """
    text = read_text(path, _JOBS_BYTES, "list of jobs", 'give lines such as "node-1,4711"')
    jobs: dict[str, list[str]] = {}
    rows = csv.reader(io.StringIO(text))
    for number, row in enumerate(rows, 1):
        cells = [cell.strip() for cell in row]
        if not any(cells) or (number == 1 and [cell.lower() for cell in cells] == ["host", "job"]):
            continue
        if len(cells) != 2 or not all(cells):
            raise DiagnosisError(
                f"{path}:{rows.line_num}: {len(cells)} cells instead of host and job",
                'give lines such as "node-1,4711"',
            )
        jobs.setdefault(cells[0], []).append(cells[1])
    return jobs


def slurm_jobs() -> dict[str, list[str]]:
    """Ask Slurm which jobs run on which hosts, with ``squeue``.

    Returns
    -------
    dict
        Jobs by host.

    Raises
    ------
    DiagnosisError
        ``squeue`` is not installed or fails.
    """
    hint = "run this where squeue works, or give --jobs a file"
    if shutil.which(_SQUEUE[0]) is None:
        raise DiagnosisError("squeue is not installed", hint)
    try:
        done = subprocess.run(
            _SQUEUE, check=False, capture_output=True, text=True, timeout=_PATIENCE_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DiagnosisError(f"squeue fails: {error}", hint) from error
    if done.returncode != 0:
        raise DiagnosisError(f"squeue fails: {done.stderr.strip() or done.returncode}", hint)
    jobs: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        job, _, nodes = line.strip().partition("|")
        for host in expand_hosts(nodes):
            jobs.setdefault(host, []).append(job)
    return jobs


def expand_hosts(text: str) -> list[str]:
    """Expand a list of hosts as Slurm writes it.

    Parameters
    ----------
    text : str
        The list.

    Returns
    -------
    list of str
        The hosts.

    Raises
    ------
    DiagnosisError
        The text is no such list.

    Examples
    --------
    >>> from silvan.diagnosis import expand_hosts
    >>> expand_hosts("gpu[08-10,12],login")
    ['gpu08', 'gpu09', 'gpu10', 'gpu12', 'login']
    """
    hosts: list[str] = []
    for part in re.findall(r"(?:[^,\[\]]|\[[^\]]*\])+", text):
        found = [""]
        for piece in re.split(r"(\[[^\]]*\])", part):
            ends = _numbers(piece[1:-1], text) if piece.startswith("[") else [piece]
            if len(found) * len(ends) > _MOST_HOSTS:
                raise DiagnosisError(f"{text[:60]!r} lists more than {_MOST_HOSTS} hosts")
            found = [start + end for start in found for end in ends]
        hosts += found
    return hosts


def _numbers(ranges: str, text: str) -> list[str]:
    numbers: list[str] = []
    for one in ranges.split(","):
        found = re.fullmatch(r"(\d+)(?:-(\d+))?", one)
        if found is None or len(found[2] or "") > 9:
            raise DiagnosisError(
                f"{text[:60]!r} is no list of hosts", 'lists look like "gpu[08-10,12],login"'
            )
        first, last = found[1], found[2] or found[1]
        count = int(last) - int(first) + 1
        if not 0 < count <= _MOST_HOSTS:
            raise DiagnosisError(
                f"{text[:60]!r}: the range {one} is empty or too long",
                'lists look like "gpu[08-10,12],login"',
            )
        numbers += [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
    return numbers


def add_jobs(report: Report, jobs: Mapping[str, list[str]]) -> None:
    """Put the jobs of each contributor and victim into a report.

    A host is found by its name, or by the first word of it: adapters are often called
    ``node-1 HCA-1``.

    Parameters
    ----------
    report : dict
        The report.
    jobs : mapping
        Jobs by host.
    """
    for tree in report["trees"]:
        for one in [*tree["contributors"], *tree["victims"]]:
            name = one["host"]
            first = name.split()[0] if name.split() else name
            short = first.split(".")[0].split("/")[0]
            named = (jobs[key] for key in (name, first, short) if key in jobs)
            one["jobs"] = next(named, [])


def _span(name: str, text: str) -> int:
    ps = Quantity(text).ps
    if ps <= 0:
        raise DiagnosisError(f"{name} is {text}", "give a time above 0")
    return ps


def _placed(path: Path | None, text: str) -> str:
    """Put a file before what is wrong in a line of it."""
    found = re.match(r"line (\d+): ", text)
    if found:
        return f"{path}:{found[1]}: {text[found.end() :]}"
    return f"{path}: {text}"


def _loaded(report: str) -> Report:
    loaded: Report = json.loads(report)
    return loaded
