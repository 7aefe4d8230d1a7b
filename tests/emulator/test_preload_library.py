"""The preload library: umad, issm and sysfs as the kernel's documentation describes them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from silvan.errors import EmulationError
from silvan.live.emulation import preload_library
from tests.emulator.conftest import REAL_TOOLS, Fabric, Serve, values
from tests.gate import PATIENCE_S

PROGRAM = Path(__file__).with_name("umad_program.py")

SAME = {
    "symbol_error": "SymbolErrorCounter",
    "link_downed": "LinkDownedCounter",
    "port_rcv_errors": "PortRcvErrors",
    "port_xmit_discards": "PortXmitDiscards",
    "port_xmit_wait": "PortXmitWait",
    "port_xmit_data": "PortXmitData",
    "port_rcv_data": "PortRcvData",
    "port_xmit_packets": "PortXmitPkts",
    "port_rcv_packets": "PortRcvPkts",
    "unicast_xmit_packets": "PortUnicastXmitPkts",
    "unicast_rcv_packets": "PortUnicastRcvPkts",
}
"""Files of sysfs, and the counters of the performance agent that they show."""

WIDE = re.compile("PortXmitData|PortRcvData|PortXmitPkts|PortRcvPkts|Unicast")
"""Counters that sysfs shows with 64 bits."""

COUNTERS = "/sys/class/infiniband/silvan0/ports/1/counters"


def test_umad_is_as_the_kernel_documents_it(serve: Serve) -> None:
    fabric = serve()
    found: dict[str, Any] = json.loads(fabric.run(sys.executable, PROGRAM).stdout)
    segments = -(-100_000 // 216)
    padding = segments * 216 - 100_000
    assert found == {
        "empty": "EAGAIN",
        "agents": [0, 1, 2],
        "too late": "EINVAL",
        "unknown flags": "EINVAL",
        "wrong queue pair": "EINVAL",
        "no OUI": "EINVAL",
        "unknown agent": "EINVAL",
        "short": "EINVAL",
        "unknown ioctl": "ENOTTY",
        "small buffer": "ENOSPC",
        "answer": [0, 0, 320, 320],
        "source": [1, 3],
        "grh": [1, bytes(range(16)).hex()],
        "method": 0x81,
        "transaction": 77,
        "timeout": [0, 110, 24, 1],
        "timed out too early": False,
        "only the second": 80,
        "methods are taken": "EINVAL",
        "request": [True, 56 + 256],
        "does not fit": "ENOSPC",
        # DATA, active and first, segment 1, all payload: 220 bytes for each packet.
        "several packets": [100_040, 1, 3, 1, segments * 220 - padding],
        "data": True,
        "high descriptor": [True, 56 + 256],
        "issm": [0, 2],
        "no such port": "ENXIO",
    }


def sysfs_counters(fabric: Fabric, host: str) -> dict[str, int]:
    """Read all counters of a host by an unmodified program."""
    text = fabric.run("grep", "-r", "", COUNTERS, host=host).stdout
    return {name: int(value) for name, value in re.findall(r"/(\w+):(\d+)$", text, re.MULTILINE)}


@REAL_TOOLS
def test_sysfs_and_perfquery_agree_under_load(serve: Serve) -> None:
    """Oracle: the performance agent, which real tools query over the fabric."""
    fabric = serve()
    fabric.emulation.control("start", **{"from": "a"}, to="c", rate="9 Gbit/s")
    fabric.emulation.control("start", **{"from": "b"}, to="c", rate="9 Gbit/s")
    fabric.emulation.control("symbol-errors", port="c", per_second=40000)
    lids = fabric.lids()
    last = 0
    for _ in range(3):
        fabric.pass_time(0.004)
        # At one instant: simulated time is paused.
        fabric.emulation.control("pause")
        for host in ("a", "b", "c", "d"):
            counters = sysfs_counters(fabric, host)
            narrow = values(fabric.tool("perfquery", str(lids[host]), "1", host="d"))
            wide = values(fabric.tool("perfquery", "-x", str(lids[host]), "1", host="d"))
            for name, field in SAME.items():
                shown = wide if WIDE.search(field) else narrow
                assert counters[name] == int(shown[field]), (host, name)
        received = sysfs_counters(fabric, "c")["port_rcv_packets"]
        assert received > last
        last = received
        fabric.emulation.control("resume")


@REAL_TOOLS
def test_text_is_that_of_the_instant_of_reading(serve: Serve) -> None:
    fabric = serve()
    code = (
        "import os, sys\n"
        f"fd = os.open('{COUNTERS}/port_xmit_packets', os.O_RDONLY)\n"
        "first = os.read(fd, 100)\n"
        "sys.stdout.write('read\\n'); sys.stdout.flush(); sys.stdin.readline()\n"
        "assert os.read(fd, 100) == b''\n"
        "os.lseek(fd, 0, os.SEEK_SET)\n"
        "print(int(first), int(os.read(fd, 100)), int(os.pread(fd, 100, 0)))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env=fabric.environment("a"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        assert reader.stdout.readline() == "read\n"
        fabric.emulation.control("start", **{"from": "a"}, to="c", bytes="20480 B")
        fabric.wait(lambda: fabric.emulation.control("status")["delivered_bytes"] >= 20480)
        reader.stdin.write("\n")
        reader.stdin.flush()
        assert reader.stdout.read().split() == ["0", "10", "10"]


def test_folders_are_listed_and_others_stay(serve: Serve, tmp_path: Path) -> None:
    fabric = serve()
    own = tmp_path / "own"
    own.write_text("unchanged")
    code = f"""
import os
from pathlib import Path
base = Path("/sys/class/infiniband")
assert os.listdir(base) == ["silvan0"]
port = base / "silvan0/ports/1"
assert sorted(os.listdir(port)) == sorted([
    "cap_mask", "counters", "gid_attrs", "gids", "hw_counters", "lid", "lid_mask_count",
    "link_layer", "phys_state", "pkeys", "rate", "sm_lid", "sm_sl", "state"]), os.listdir(port)
assert len(list((port / "pkeys").iterdir())) == 128
assert (port / "state").read_text() == "4: ACTIVE\\n"
assert (port / "gids" / "0").read_text().startswith("fe80:0000:0000:0000:")
assert not (port / "gone").exists()
folder = os.open(port, os.O_RDONLY | os.O_DIRECTORY)
lid = os.open("lid", os.O_RDONLY, dir_fd=folder)
assert int(os.read(lid, 10), 16) > 0
try:
    (port / "lid").open("w")
except PermissionError:
    pass
else:
    raise AssertionError("sysfs can be written")
assert Path({str(own)!r}).read_text() == "unchanged"
assert not Path("/dev/infiniband/umad9").exists()
assert os.path.exists("/dev/infiniband/umad0")
"""
    fabric.run(sys.executable, "-c", code)


@REAL_TOOLS
def test_a_shell_changes_into_the_folders(serve: Serve) -> None:
    """Oracle: the files by their whole paths."""
    fabric = serve()
    lid = fabric.lids()["a"]
    lines = """
        cd /sys/class/infiniband/silvan0/ports || exit 1
        pwd -P
        for port in *; do read lid < $port/lid; echo $port $lid; done
        cat ./1/lid
        cd ../..
        pwd -P
        echo *
        cd /
        pwd -P
        """
    for shell in ("sh", "bash"):
        done = fabric.run(shell, "-c", lines, host="a")
        assert done.stdout.splitlines() == [
            "/sys/class/infiniband/silvan0/ports",
            f"1 0x{lid:x}",
            f"0x{lid:x}",
            "/sys/class/infiniband",
            "silvan0",
            "/",
        ], shell


@REAL_TOOLS
def test_ibstatus_shows_what_the_subnet_manager_sets(serve: Serve) -> None:
    """Oracle: PortInfo, by smpquery; the second time the cable is cut."""
    fabric = serve()
    lid = fabric.lids()["a"]
    for state, physical in (("4: ACTIVE", "5: LinkUp"), ("1: DOWN", "2: Polling")):
        info = fabric.run("smpquery", "-D", "portinfo", "0", "1", host="a").stdout
        assert re.search(rf"^LinkState:\.+{state[3:]}$", info, re.MULTILINE | re.IGNORECASE), info
        shown = fabric.run("ibstatus", host="a").stdout
        found = dict(re.findall(r"^\t([\w ]+):\s+(.+)$", shown, re.MULTILINE))
        assert shown.startswith("Infiniband device 'silvan0' port 1 status:\n")
        assert (found["base lid"], found["link_layer"]) == (f"0x{lid:x}", "InfiniBand")
        assert (found["state"], found["phys state"]) == (state, physical)
        assert fabric.run("ibstatus", "silvan0:1", host="a").stdout == shown
        fabric.emulation.control("cut", port="a")


@REAL_TOOLS
def test_tools_end_where_there_is_no_fabric(serve: Serve, tmp_path: Path) -> None:
    fabric = serve()
    environment = fabric.environment() | {"IBSIM_SOCKNAME": "no-such-fabric"}
    for tool in ("ibstat", "ibnetdiscover", "perfquery"):
        done = subprocess.run(
            [tool],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            check=False,
            timeout=PATIENCE_S,
        )
        # ibstat lists no adapters then.
        assert done.returncode != 0 or not done.stdout, tool


@REAL_TOOLS
def test_umad2sim_attaches_tools_too(serve: Serve, tmp_path: Path) -> None:
    fabric = serve()
    environment = fabric.environment() | fabric.emulation.attach("b", umad2sim=True)
    done = subprocess.run(
        ["smpquery", "-D", "nodedesc", "0"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert done.stdout.split(".")[-1].strip() == "b"


@REAL_TOOLS
def test_a_program_answers_ibping(line: Fabric) -> None:
    lids = line.lids()
    words = ("ibping", "-c", "1", str(lids["c"]))
    assert "0 received" in line.run(*words, check=False).stdout
    with line.popen("ibping", "-S", host="c") as server:
        try:
            line.wait(lambda: "1 received" in line.run(*words, check=False).stdout)
        finally:
            server.kill()


def test_the_library_is_not_taken_from_a_folder_that_others_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = tmp_path / f"silvan-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(EmulationError, match="can be written by other users"):
        preload_library()
    folder.chmod(0o755)
    first = preload_library()
    assert preload_library() == first
    assert first.read_bytes()[:4] == b"\x7fELF"
