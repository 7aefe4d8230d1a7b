"""The diagnosis from files, jobs on hosts, and what the command refuses."""

from __future__ import annotations

import json
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from silvan.errors import DiagnosisError
from silvan.live.host_jobs import add_jobs, expand_hosts, read_jobs
from silvan.live.moments import Report
from silvan.live.ring import RingFile
from tests.conftest import Command
from tests.subnet_dumps import ROUTES, TOPOLOGY, counters, dumped_moment, write_dumps


@pytest.fixture
def files(tmp_path: Path) -> list[str | Path]:
    """Write the files, and give the options that name them."""
    words: list[str | Path] = ["--interval", "2 s", "--tick", "4 ns"]
    for name, path in write_dumps(tmp_path).items():
        words += [f"--{name}", path]
    return words


def test_an_incast_is_found_in_files(files: list[str | Path], command: Command) -> None:
    outcome = command("diagnose", *files, "--json")
    assert outcome.status == 1, outcome.stderr
    (tree,) = json.loads(outcome.stdout)["trees"]
    assert (tree["root"], tree["cause"]) == ("left:3", "incast")
    # Words of 4 bytes: 150 million a second are 4.8 Gbit/s.
    found = [(one["host"], round(one["gbps"], 2)) for one in tree["contributors"]]
    assert found == [("a HCA-1", 4.8), ("b HCA-1", 3.2)]
    page = command("diagnose", *files)
    assert "Congestion: 1 tree" in page.stdout
    assert "2 hosts send to c HCA-1, whose link of 8 Gbit/s is 100 % full" in page.stdout


def test_captures_of_powershell_are_read(files: list[str | Path], command: Command) -> None:
    """Oracle: the same files in UTF-8."""
    before = command("diagnose", *files, "--json")
    for path in (word for word in files if isinstance(word, Path)):
        path.write_bytes(path.read_text().replace("\n", "\r\n").encode("utf-16"))
    after = command("diagnose", *files, "--json")
    assert (after.status, after.stdout) == (1, before.stdout)


def test_jobs_are_named(files: list[str | Path], command: Command, tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("host,job\na,4711\nb,4712\nb,4713\n")
    outcome = command("diagnose", *files, "--jobs", tmp_path / "jobs.csv")
    assert "a HCA-1 4.8 Gbit/s [job 4711]" in outcome.stdout
    assert "[job 4712, 4713]" in outcome.stdout


SQUEUE = """\
             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)
              4713       gpu my train    alice PD       0:00      2 (Resources)
         4711_[3]       gpu    train    alice  R    1:02:03      2 a,c
              4712       gpu  my sim      bob  R       0:03      1 b
"""

SCONTROL = """\
JobId=4711 ArrayJobId=4711 JobName=train
   UserId=alice(1000) GroupId=users(100) MCS_label=N/A
   JobState=RUNNING Reason=None Dependency=(null)
   ReqNodeList=(null) ExcNodeList=(null)
   NodeList=a,c
   Command=/home/alice/run NodeList=b
   BatchHost=a

JobId=4712 JobName=sim
   JobState=RUNNING Reason=None
   NodeList=b

JobId=4713 JobName=old
   JobState=COMPLETED Reason=None
   NodeList=b

JobId=4714 JobName=new
   JobState=PENDING Reason=Resources
   NodeList=(null)
"""


@pytest.mark.parametrize(
    ("text", "first"), [(SQUEUE, "4711_[3]"), (SCONTROL, "4711")], ids=["squeue", "scontrol"]
)
def test_jobs_are_read_from_what_slurm_has_printed(tmp_path: Path, text: str, first: str) -> None:
    """Oracle: the jobs that run, read by eye."""
    path = tmp_path / "jobs.txt"
    path.write_text(text)
    assert read_jobs(path) == {"a": [first], "b": ["4712"], "c": [first]}


def test_slurm_is_asked(
    files: list[str | Path], command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "bin" / "squeue"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho '81|a,b'\necho '82|a,c'\n")
    fake.chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{fake.parent}:/usr/bin:/bin")
    outcome = command("diagnose", *files, "--slurm", "--json")
    (tree,) = json.loads(outcome.stdout)["trees"]
    assert [one["jobs"] for one in tree["contributors"]] == [["81", "82"], ["81"]]
    monkeypatch.setenv("PATH", "/nowhere")
    refused = command("diagnose", *files, "--slurm")
    assert refused.status == 2
    assert "squeue is not installed" in refused.stderr


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("", []),
        ("login", ["login"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[08-10,12],m", ["n08", "n09", "n10", "n12", "m"]),
        ("r[1-2]n[3,4]", ["r1n3", "r1n4", "r2n3", "r2n4"]),
    ],
)
def test_lists_of_hosts_are_expanded(text: str, hosts: list[str]) -> None:
    assert expand_hosts(text) == hosts


@pytest.mark.parametrize("text", ["n[3-1]", "n[x]", "n[1-99999999999]", "n[1-9][1-999999]"])
def test_lists_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(DiagnosisError):
        expand_hosts(text)


def test_a_host_is_found_by_its_first_word(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("node-1,7\n\n")
    report: Report = {
        "trees": [{"contributors": [{"host": "node-1 mlx5_0"}], "victims": [{"host": "x"}]}]
    }
    add_jobs(report, read_jobs(tmp_path / "jobs.csv"))
    (tree,) = report["trees"]
    assert (tree["contributors"][0]["jobs"], tree["victims"][0]["jobs"]) == (["7"], [])


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"after": ""}, r"after: there are no counters in the file"),
        ({"after": counters(3)[:-20]}, r"after:6: .* is no line of counters"),
        ({"before": counters(1).replace("0x", "0xabc")}, r"before: 6 of 6 ports .* not in the"),
        ({"topology": TOPOLOGY[:200]}, r"topology:\d+: .* is cabled to"),
        ({"topology": "hello\n"}, r"topology:1: "),
        ({"routes": ROUTES.replace("0001 (left)", "0009 (other)")}, r"routes:1: "),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_its_line(
    files: list[str | Path],
    command: Command,
    tmp_path: Path,
    change: dict[str, str],
    expected: str,
) -> None:
    for name, text in change.items():
        (tmp_path / name).write_text(text)
    outcome = command("diagnose", *files)
    assert outcome.status == 2
    assert re.search(expected, outcome.stderr), outcome.stderr
    assert "hint: " in outcome.stderr


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (counters(3), counters(1), "the files may be swapped or cut off"),
        (counters(1), "\n".join(counters(3).splitlines()[:3]) + "\n", "3 of 6 ports are not"),
    ],
    ids=["swapped", "half"],
)
def test_counters_that_do_not_tell_are_doubted(
    files: list[str | Path],
    command: Command,
    tmp_path: Path,
    before: str,
    after: str,
    expected: str,
) -> None:
    """Oracle: no port is known, half of the ports are known."""
    (tmp_path / "before").write_text(before)
    (tmp_path / "after").write_text(after)
    outcome = command("diagnose", *files)
    assert outcome.status == 2, outcome
    assert expected in outcome.stderr
    assert "No diagnosis: too little could be read" in outcome.stdout


def test_the_same_counters_twice_are_no_diagnosis(
    files: list[str | Path], command: Command, tmp_path: Path
) -> None:
    (tmp_path / "after").write_text(counters(1))
    outcome = command("diagnose", *files)
    assert (outcome.status, outcome.stdout) == (2, "")
    assert "after are the same: no counter has changed in between\nhint: " in outcome.stderr


def test_tick_of_an_unknown_device_is_asked_for(files: list[str | Path], command: Command) -> None:
    at = files.index("--tick")
    outcome = command("diagnose", *files[:at], *files[at + 2 :])
    assert (outcome.status, outcome.stdout) == (2, "")
    assert "the tick of its PortXmitWait is not known\nhint: give --tick" in outcome.stderr


def test_tick_may_be_given_by_device(files: list[str | Path], command: Command) -> None:
    """Oracle: what was given; an incast of an emulated fabric with ticks of 4 ns."""
    at = files.index("--tick")
    words = [*files[:at], *files[at + 2 :]]
    topology = Path(words[words.index("--topology") + 1])
    text = re.sub("^Switch", "vendid=0x2c9\ndevid=0xd2f0\nSwitch", topology.read_text(), flags=re.M)
    topology.write_text(text)
    expected = json.loads(command("diagnose", *files, "--json").stdout)
    for device in ("Quantum", "0xd2f0", "54000"):
        outcome = command("diagnose", *words, "--tick", f"{device}=4 ns", "--json")
        assert (outcome.status, outcome.stderr) == (1, "")
        assert json.loads(outcome.stdout) == expected
    outcome = command("diagnose", *words, "--tick", "1 ns", "--tick", "quantum=4 ns", "--json")
    assert json.loads(outcome.stdout)["ticks"] == expected["ticks"]
    outcome = command("diagnose", *files, "--tick", "quantum-3=4 ns", "--json")
    assert "54004 (0xd2f4): no node has this DeviceID, whose tick is given" in outcome.stderr


@pytest.mark.parametrize(
    ("tick", "error"),
    [
        ("quantm=4 ns", 'there is no device "quantm": .*\nhint: did you mean "quantum"'),
        ("spectrum=4 ns", "switch-x, .*quantum-3 and DeviceIDs .*\nhint: write a DeviceID"),
        ("quantum=0 ns", '"0 ns" is no time above 0\nhint: write'),
        ("quantum=4", 'invalid time span "4": the unit is missing\nhint: write'),
        ("5 ns", "the tick of all ports is given twice\nhint: write DEVICE=TIME"),
    ],
)
def test_ticks_that_cannot_be_used_are_refused(
    files: list[str | Path], command: Command, tick: str, error: str
) -> None:
    outcome = command("diagnose", *files, "--tick", tick)
    assert (outcome.status, outcome.stdout) == (2, "")
    assert re.search(f"tick: .*{error}", outcome.stderr), outcome.stderr


def test_an_interval_that_is_too_short_is_doubted(
    files: list[str | Path], command: Command
) -> None:
    """Oracle: ports wait 0.6 of 2 s, which is more than all of 1.1 s."""
    assert command("diagnose", *files).stderr == ""
    outcome = command("diagnose", *files, "--interval", "1.1 s")
    assert "% of the interval of 1.1 s: more time has passed" in outcome.stderr


def test_hosts_with_jobs_that_are_not_in_the_subnet_are_named(
    files: list[str | Path], command: Command, tmp_path: Path
) -> None:
    (tmp_path / "jobs.csv").write_text("a,1\nnode-9,2\nnode-8,2\n")
    outcome = command("diagnose", *files, "--jobs", tmp_path / "jobs.csv")
    assert "2 hosts with jobs are not in the subnet, such as node-9" in outcome.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--before", "x"], "needs --topology"),
        (["--topology", "x"], "--before"),
        (["--topology", "x", "--before", "x", "--after", "x"], "--interval"),
        (["--jobs", "x", "--slurm"], "not with --slurm"),
        (["--jobs", "x"], "cannot read the list of jobs"),
        (["--interval", "0 s"], "interval: 0 s is no time above 0"),
        (["--live"], "needs --watch"),
        (["--dcms-log", "x"], "needs --live"),
        (["--at", "2026-01-31"], "needs --from"),
        (["--watch", "--from", "x"], "not with --watch"),
        (["--watch", "--html", "x"], "not with --watch"),
        (["--topology", "x", "--watch"], "not with --topology"),
        (["--watch", "--keep", "4 weeks"], "is no time above 0"),
        (["--watch", "--live", "--bind", "x"], "is not ADDRESS:PORT"),
        (["--from", "no-such-ring"], "there is no such ring file"),
        (["--sockname", "no-such-fabric"], "no emulated fabric answers"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    words: list[str], expected: str, command: Command
) -> None:
    outcome = command("diagnose", *words)
    assert outcome.status == 2
    assert expected in outcome.stderr


def test_a_machine_without_infiniband_is_one_clear_error(process: Command) -> None:
    """Oracle: the whole output, of libraries, too."""
    done = process("diagnose")
    assert (done.status, done.stdout) == (2, "")
    error, hint = done.stderr.splitlines()
    assert error == (
        "error: this machine has no InfiniBand port: "
        "/sys/class/infiniband_mad/abi_version cannot be opened"
    )
    assert hint.startswith("hint: load the kernel's module with modprobe ib_umad, or ")


def test_a_job_line_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("node-1,7\nnode-2\n")
    with pytest.raises(
        DiagnosisError, match=r"jobs.csv:2: a line has a host and a job, this one has 1 column"
    ):
        read_jobs(tmp_path / "jobs.csv")


@pytest.fixture
def utc() -> Iterator[None]:
    """Have the time of day in UTC."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("utc")
def test_a_ring_file_is_reported_as_a_whole_and_at_a_time(command: Command, tmp_path: Path) -> None:
    # A tick on one port.
    idle = counters(1).replace("== 0]", "== 1]", 1)
    ring = tmp_path / "r.ring"
    with RingFile(ring, writable=True) as file:
        for at_s in (100, 110, 120):
            file.add(dumped_moment(tmp_path, at_s), 10**15)
        file.add(dumped_moment(tmp_path, 130, after=idle), 10**15)
    whole = command("diagnose", "--from", ring, "--json")
    assert whole.status == 1, whole.stderr
    report = json.loads(whole.stdout)
    assert (report["moments"], report["congested_moments"]) == (4, 3)
    assert (report["first"], report["last"]) == ("1970-01-01 00:01:40", "1970-01-01 00:02:10")
    (root,) = report["roots"]
    assert (root["root"], root["cause"], root["moments"]) == ("left:3", "incast", 3)
    assert root["last"] == "1970-01-01 00:02:00"
    sent = [(one["host"], round(one["gbps"], 2)) for one in root["contributors"]]
    assert sent == [("a HCA-1", 4.8), ("b HCA-1", 3.2)]
    assert "Congestion in 3 of 4 sweeps" in command("diagnose", "--from", ring).stdout
    # The last one, and one in between, which has an incast.
    last = command("diagnose", "--from", ring, "--at", "1970-01-01 09:00", "--json")
    assert (last.status, json.loads(last.stdout)["trees"]) == (0, [])
    page = tmp_path / "page.html"
    then = command(
        "diagnose", "--from", ring, "--at", "1970-01-01 00:01:55", "--json", "--html", page
    )
    assert (then.status, len(json.loads(then.stdout)["trees"])) == (1, 1)
    assert "Diagnosis of 1970-01-01 00:01:50" in page.read_text()
    early = command("diagnose", "--from", ring, "--at", "1970-01-01 00:00:30")
    assert early.status == 2
    assert "no sweep at or before" in early.stderr
    assert "1970-01-01 00:01:40" in early.stderr
    assert command("diagnose", "--from", ring, "--at", "noon").status == 2
