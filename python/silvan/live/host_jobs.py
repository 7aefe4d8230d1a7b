"""Jobs of hosts: from a file or from Slurm."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from silvan.child_processes import run_child
from silvan.errors import DiagnosisError
from silvan.inputs.input_files import read_text
from silvan.live.moments import Report

_JOBS_BYTES = 64 << 20
_SQUEUE = ("squeue", "--noheader", "--states=RUNNING", "--format=%i|%N")
_PATIENCE_S = 60
_FRESH_S = 60
_MOST_HOSTS = 1_000_000


def read_jobs(path: Path) -> dict[str, list[str]]:
    """Read jobs by host: ``host,job`` lines, or ``scontrol show job`` or ``squeue`` output."""
    text = read_text(path, _JOBS_BYTES, "list of jobs", 'give lines such as "node-1,4711"')
    jobs: dict[str, list[str]] = {}
    printed = _of_scontrol(text) if text.lstrip().startswith("JobId=") else _of_squeue(text)
    if printed is not None:
        for job, nodes in printed:
            for host in expand_hosts(nodes):
                jobs.setdefault(host, []).append(job)
        return jobs
    rows = csv.reader(io.StringIO(text))
    for number, row in enumerate(rows, 1):
        cells = [cell.strip() for cell in row]
        if not any(cells) or (number == 1 and [cell.lower() for cell in cells] == ["host", "job"]):
            continue
        if len(cells) != 2 or not all(cells):
            raise DiagnosisError(
                f"{path}:{rows.line_num}: a line has a host and a job, this one has "
                f"{len(cells)} column{'s' if len(cells) > 1 else ''}",
                'give lines such as "node-1,4711"',
            )
        jobs.setdefault(cells[0], []).append(cells[1])
    return jobs


def _of_scontrol(text: str) -> list[tuple[str, str]]:
    found = []
    for record in re.split(r"^(?=JobId=)", text, flags=re.MULTILINE):
        # Names and paths may hold anything: only the first of each key counts.
        values: dict[str, str] = {}
        for key, value in re.findall(r"(?:^|\s)(JobId|JobState|NodeList)=(\S*)", record):
            values.setdefault(key, value)
        if values.get("JobState") == "RUNNING" and values.get("NodeList", "(null)") != "(null)":
            found.append((values["JobId"], values["NodeList"]))
    return found


def _of_squeue(text: str) -> list[tuple[str, str]] | None:
    heading, *lines = text.splitlines() or [""]
    columns = heading.split()
    if columns[:1] != ["JOBID"] or columns[-4:] != ["ST", "TIME", "NODES", "NODELIST(REASON)"]:
        return None
    # A name may hold blanks; other columns do not.
    rows = [words for line in lines if len(words := line.split()) >= len(columns)]
    return [(words[0], words[-1]) for words in rows if words[-4] == "R"]


def slurm_jobs() -> dict[str, list[str]]:
    """Query jobs by host with ``squeue``."""
    hint = "run this where squeue works, or give --jobs a file"
    if shutil.which(_SQUEUE[0]) is None:
        raise DiagnosisError("squeue is not installed", hint)
    try:
        done = run_child(_SQUEUE, timeout_s=_PATIENCE_S)
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

    >>> from silvan.live.host_jobs import expand_hosts
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
    """Add the jobs of contributors and victims to a report, by host name or its first word."""
    for tree in report["trees"]:
        for one in [*tree["contributors"], *tree["victims"]]:
            named = (jobs[key] for key in _names(one["host"]) if key in jobs)
            one["jobs"] = next(named, [])


def _names(host: str) -> tuple[str, str, str]:
    """Full name, first word, and that without domain."""
    first = host.split()[0] if host.split() else host
    return host, first, first.split(".")[0].split("/")[0]


class HostJobs:
    """Jobs of a file, or of Slurm, queried again after a minute."""

    def __init__(self, path: Path | None, *, slurm: bool) -> None:
        self._slurm = slurm
        self._jobs = read_jobs(path) if path is not None else slurm_jobs() if slurm else None
        self._read_s = time.monotonic()

    def unknown(self, hosts: Iterable[str]) -> list[str]:
        """Return hosts with jobs that the subnet does not have."""
        known = {name for host in hosts for name in _names(host)}
        return [host for host in self._jobs or () if host not in known]

    def add_to(self, report: Report) -> None:
        """Put the jobs of each contributor and victim into a report, if jobs are known."""
        if self._slurm and time.monotonic() - self._read_s > _FRESH_S:
            self._jobs, self._read_s = slurm_jobs(), time.monotonic()
        if self._jobs is not None:
            add_jobs(report, self._jobs)

    def of(self, hosts: Iterable[str]) -> dict[str, list[str]]:
        """Return the jobs of these hosts; hosts without a job are omitted."""
        jobs = self._jobs or {}
        found = {}
        for host in hosts:
            named = next((jobs[key] for key in _names(host) if key in jobs), None)
            if named:
                found[host] = named
        return found
