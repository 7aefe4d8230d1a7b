"""The diagnosis of a live fabric through the common tools' library."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

import silvan
from silvan.live.emulation import Emulation
from tests.conftest import Command
from tests.emulator.conftest import LINE, REAL_TOOLS, Fabric, Serve
from tests.gate import PATIENCE_S

pytestmark = [REAL_TOOLS, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]

TRAFFIC = """\
[link]
width = "1x"
speed = "SDR"
[packet]
mtu = "4 KiB"
[traffic]
message = "4 KiB"
[[traffic.flow]]
from = "a"
to = "c"
[[traffic.flow]]
from = "d"
to = "c"
"""
"""A and d send to c, whose link of 2 Gbit/s they share."""


def test_the_command_diagnoses_a_fabric_by_its_sockets(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sockname = f"diagnose-{os.getpid()}"
    scenario = silvan.Scenario.from_toml(LINE + TRAFFIC)
    with Emulation(scenario, sockname=sockname, time_scale=0.2) as emulation:
        outcome = command("diagnose", "--sockname", sockname, "--json")
        assert outcome.status == 1, outcome.stderr
        report = json.loads(outcome.stdout)
        (tree,) = report["trees"]
        assert (tree["root"], tree["peer"], tree["cause"]) == ("right:1", "c:1", "incast")
        assert {one["host"] for one in tree["contributors"]} == {"a", "d"}
        # The fabric is slower than the clock, which the diagnosis takes into account.
        assert tree["load"] == pytest.approx(1.0, abs=0.15)
        # The tools' own counters, read at another time, show the same direction.
        fabric = Fabric(emulation, tmp_path)
        words = [sys.executable, "-m", "silvan", "diagnose", "--interval", "500 ms"]
        page = fabric.tool(*words, status=1)
        assert "incast at right:1" in page


@pytest.mark.needs("root")
def test_a_user_without_rights_is_refused_in_one_line(serve: Serve) -> None:
    """Oracle: the whole output of a process of another user, that of libraries included."""
    fabric = serve()
    # Another user, who may read this user's installation of Python.
    words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    words += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    for command in ("diagnose", "exporter"):
        done = fabric.run(*words, sys.executable, "-m", "silvan", command, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        error, hint = done.stderr.splitlines()
        assert error == "error: this user may not open /dev/infiniband/umad0"
        assert hint.startswith("hint: run the command as root, or let a udev rule")
    assert "user 65534 was refused: may not attach" in fabric.emulation.take_notices()


def test_requests_take_their_part_of_the_link_and_no_more(serve: Serve) -> None:
    """Oracle: what the fabric has received, the time that has passed, and 290 bytes for each.

    The paths to hosts are of 2 Gbit/s.
    """
    fabric = serve(LINE + TRAFFIC)
    percent, sweeps = 0.005, 6
    program = (
        "import sys, time; from silvan.live.diagnosis import SubnetWatcher\n"
        "began = time.monotonic()\n"
        f"watcher = SubnetWatcher(link_percent={percent})\n"
        f"for _ in range({sweeps}): watcher.sweep()\n"
        "print(time.monotonic() - began)"
    )
    seconds = float(fabric.run(sys.executable, "-c", program).stdout)
    received = sum(fabric.emulation.control("status")["datagrams"].values())
    assert received > 150
    # As many packets as may be in flight follow each other at once, at the start, and when the
    # slowest link is known.
    assert (received - 2 * 64) * 290 * 8 <= percent / 100 * 2e9 * seconds


def test_a_watched_fabric_is_kept_in_a_ring_file_and_shown_in_a_browser(
    tmp_path: Path, command: Command
) -> None:
    sockname = f"watch-{os.getpid()}"
    ring = tmp_path / "watch.ring"
    scenario = silvan.Scenario.from_toml(LINE + TRAFFIC)
    words = [sys.executable, "-m", "silvan", "diagnose", "--sockname", sockname, "--watch"]
    words += ["--interval", "500 ms", "--ring", str(ring), "--live"]
    with (
        Emulation(scenario, sockname=sockname, time_scale=0.2) as emulation,
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watch,
    ):
        assert watch.stdout is not None
        assert watch.stderr is not None
        lines = [watch.stdout.readline() for _ in range(3)]
        assert all("incast at right:1 (2 contributors" in line for line in lines), lines
        while not (address := watch.stderr.readline()).startswith("http://127.0.0.1:"):
            pass
        with urllib.request.urlopen(address, timeout=PATIENCE_S) as page:
            assert "Watched subnet" in page.read().decode()
        # The subnet is another one without this cable: sweeps before and after are not compared.
        emulation.control("cut", port="b:1")
        for _ in range(4):
            watch.stdout.readline()
        watch.send_signal(signal.SIGINT)
        _, said = watch.communicate(timeout=PATIENCE_S)
    assert watch.returncode == 0, said
    assert f"silvan diagnose --from {ring}" in said
    outcome = command("diagnose", "--from", ring, "--json")
    report = json.loads(outcome.stdout)
    assert report["subnets"] >= 2
    assert report["roots"][0]["root"] == "right:1"
    assert report["congested_moments"] >= 3


def leaves(left: str, right: str) -> str:
    """Write the fabric with links of these speeds, of one lane."""
    text = LINE
    for port, speed in (("left:1", left), ("left:2", left), ("right:1", right), ("right:2", right)):
        text = text.replace(f'to = "{port}" }}', f'to = "{port}", speed = "{speed}" }}')
    slower = min((left, right), key=["SDR", "EDR", "HDR", "NDR"].index)
    text = re.sub(r'to = "(right:[68])" }', rf'to = "\1", speed = "{slower}" }}', text)
    return text + TRAFFIC.replace('speed = "SDR"\n', "")


@pytest.mark.parametrize(
    ("left", "right", "devices", "ticks"),
    [
        ("SDR", "SDR", "emulated", {4.0}),
        ("HDR", "HDR", "emulated", {4.0}),
        ("HDR", "HDR", "by-speed", {1.28}),
        ("NDR", "NDR", "by-speed", {0.64}),
        ("HDR", "NDR", "by-speed", {1.28, 0.64}),
        ("EDR", "HDR", "by-speed", {10.24, 2.56, 1.28}),
    ],
)
def test_the_guides_commands_and_a_live_diagnosis_agree(
    serve: Serve, tmp_path: Path, left: str, right: str, devices: str, ticks: set[float]
) -> None:
    """Oracle: the traffic, and the ticks of one lane by hand.

    The fabric's clock stands while counters are read for files.
    """
    guide = (ROOT / "docs/guide/diagnose.md").read_text("utf-8")
    pattern = r"```sh\n(counters\(\) \{.*?)sleep 60\n(.*?)(silvan .*?)```"
    block = re.search(pattern, guide, re.DOTALL)
    assert block
    first, second, diagnosis = block.groups()
    scale = 1.0 if left == "SDR" else 0.02
    fabric = serve(leaves(left, right), devices=devices, time_scale=scale)

    def read(commands: str) -> float:
        fabric.emulation.control("pause")
        fabric.tool("sh", "-ec", f"cd {tmp_path}\n{commands}")
        seconds: float = fabric.emulation.control("status")["simulated_s"]
        fabric.emulation.control("resume")
        return seconds

    fabric.pass_time(0.01)
    start = read(first)
    fabric.pass_time(0.05)
    end = read(f"{first.split('ibnetdiscover')[0]}{second}")
    words = shlex.split(diagnosis.replace("60 s", f"{round((end - start) * 1e9)} ns"))
    done = subprocess.run(
        [sys.executable, "-m", *words, "--json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    assert report["unknown_ports"] == 0
    (tree,) = report["trees"]
    assert (tree["root"], tree["cause"]) == ("right:1", "incast")
    assert tree["load"] == pytest.approx(1.0, abs=0.02)
    assert {one["host"] for one in tree["contributors"]} == {"a", "d"}
    assert {one["ns"] for one in report["ticks"]} == ticks
    live = json.loads(fabric.tool(sys.executable, "-m", "silvan", "diagnose", "--json", status=1))
    assert live["ticks"] == report["ticks"]
    # A given tick means the same live and from files.
    given = ["--json", "--tick", "quantum=2 ns", "--tick", "3 ns"]
    done = subprocess.run(
        [sys.executable, "-m", *words, *given],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    command = [sys.executable, "-m", "silvan", "diagnose", *given]
    stated = json.loads(fabric.run(*command, check=False).stdout)["ticks"]
    assert stated == json.loads(done.stdout)["ticks"]
    has_quantum = devices == "by-speed" and "HDR" in {left, right}
    assert {one["ns"] for one in stated} >= ({2.0} if has_quantum else {3.0})
    (seen,) = live["trees"]
    assert (seen["root"], seen["cause"]) == (tree["root"], tree["cause"])
    assert {one["host"] for one in seen["contributors"]} == {"a", "d"}
    waits = {one["port"]: one["wait"] for one in seen["branches"]}
    assert waits == pytest.approx({one["port"]: one["wait"] for one in tree["branches"]}, abs=0.1)
