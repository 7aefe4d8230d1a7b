"""Unmodified RDMA programs of Debian exchange data over a live fabric."""

from __future__ import annotations

import ipaddress
import re
import socket
import struct
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.emulator.conftest import Fabric, Serve, values
from tests.gate import PATIENCE_S

pytestmark = [
    pytest.mark.slow,
    pytest.mark.needs("ibverbs-utils", "perftest", "infiniband-diags"),
]


Done = subprocess.CompletedProcess[str]


def free_port() -> str:
    with socket.socket() as unused:
        unused.bind(("", 0))
        return str(unused.getsockname()[1])


def listens(port: str) -> bool:
    """Say whether a socket of the machine listens at a TCP port."""
    tables = (Path(f"/proc/net/{name}") for name in ("tcp", "tcp6"))
    lines = [line.split() for table in tables for line in table.read_text().splitlines()[1:]]
    place = f":{int(port):04X}"
    return any(line[1].endswith(place) and line[3] == "0A" for line in lines)


def start(fabric: Fabric, *words: str, hosts: tuple[str, str]) -> list[subprocess.Popen[str]]:
    """Start a program on two hosts: as server, and as client that connects to it."""
    port = free_port()
    server = fabric.popen(*words, "-p", port, host=hosts[0])
    fabric.wait(lambda: listens(port) or server.poll() is not None)
    return [server, fabric.popen(*words, "-p", port, "localhost", host=hosts[1])]


def pair(fabric: Fabric, *words: str, hosts: tuple[str, str] = ("a", "c")) -> list[Done]:
    """Run a program on two hosts to its end."""
    both = start(fabric, *words, hosts=hosts)
    printed = [process.communicate(timeout=PATIENCE_S) for process in both]
    ends = zip(both, printed, strict=True)
    return [Done(words, process.returncode, *texts) for process, texts in ends]


def test_the_device_shows_what_management_shows(serve: Serve) -> None:
    """Oracle: sysfs and smpquery."""
    fabric = serve()
    shown = fabric.run("ibv_devinfo", "-v", host="b").stdout
    about = dict(re.findall(r"^\s*([a-z_]+):\s+(.+?)\s*$", shown, re.MULTILINE))
    port = "/sys/class/infiniband/silvan0/ports/1"
    lid = int(fabric.run("cat", f"{port}/lid", host="b").stdout, 16)
    assert about["hca_id"] == "silvan0"
    assert about["state"] == "PORT_ACTIVE (4)"
    assert int(about["port_lid"]) == lid
    assert (
        about["node_guid"]
        == fabric.run("cat", "/sys/class/infiniband/silvan0/node_guid", host="b").stdout.strip()
    )
    assert about["active_mtu"] == "2048 (4)"
    gid = fabric.run("cat", f"{port}/gids/0", host="b").stdout.strip()
    shown_gid = re.search(r"GID\[ *0\]:\s+(\S+)", shown)
    assert shown_gid
    assert ipaddress.ip_address(shown_gid[1]) == ipaddress.ip_address(gid)


@pytest.mark.parametrize(
    "words",
    [
        ("ibv_rc_pingpong", "-c"),
        ("ibv_rc_pingpong", "-c", "-e"),
        ("ibv_uc_pingpong", "-c"),
        ("ibv_ud_pingpong", "-s", "1024"),
        ("ibv_ud_pingpong", "-s", "1024", "-e"),
        ("ibv_srq_pingpong", "-c"),
        ("ibv_srq_pingpong", "-c", "-e"),
    ],
    ids=" ".join,
)
def test_pingpongs_exchange_valid_data(serve: Serve, words: tuple[str, ...]) -> None:
    """Oracle: the programs compare each byte with `-c`."""
    fabric = serve()
    for done in pair(fabric, *words, "-n", "40"):
        assert done.returncode == 0, done
        assert "bytes in" in done.stdout
        assert "invalid data" not in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("name", "vendor"), [("ipathverbs", "00001077"), ("hfi1verbs", "00008086")]
)
def test_adapters_are_of_the_provider_that_is_named(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, name: str, vendor: str
) -> None:
    """Oracle: libibverbs finds no provider for a PCI vendor that is not its own."""
    monkeypatch.setenv("RDMAV_DRIVERS", name)
    fabric = serve()
    device = "/sys/class/infiniband_verbs/uverbs0/device/modalias"
    assert fabric.run("cat", device, host="a").stdout.startswith(f"pci:v{vendor}d")
    for done in pair(fabric, "ibv_rc_pingpong", "-c", "-n", "40"):
        assert done.returncode == 0, done
        assert "bytes in" in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ("ib_send_bw", "-n", "40"),
        ("ib_write_bw", "-n", "40"),
        ("ib_read_bw", "-n", "40"),
        ("ib_atomic_bw", "-n", "40"),
        ("ib_send_bw", "-c", "UD", "-n", "40"),
        ("ib_write_bw", "-c", "UC", "-n", "40"),
        ("ib_send_lat", "-n", "40"),
        ("ib_write_lat", "-n", "40"),
        ("ib_read_lat", "-n", "40"),
        ("ib_atomic_lat", "-n", "40"),
    ],
    ids=" ".join,
)
def test_perftest_runs(serve: Serve, words: tuple[str, ...]) -> None:
    fabric = serve()
    for done in pair(fabric, *words):
        assert done.returncode == 0, done


@pytest.mark.needs("ucx-utils")
def test_ucx_exchanges_messages(serve: Serve) -> None:
    fabric = serve()
    words = ("env", "UCX_TLS=rc_v,self", "ucx_perftest", "-t", "tag_lat", "-n", "20", "-w", "2")
    for done in pair(fabric, *words):
        assert done.returncode == 0, done


def mpirun(fabric: Fabric, *words: str) -> Done:
    """Run ``silvan mpirun`` in a fabric."""
    own = (sys.executable, "-m", "silvan", "mpirun", *words)
    return fabric.run(*own, check=False, timeout_s=PATIENCE_S)


@pytest.mark.needs("python3-mpi4py")
def test_ranks_see_the_names_of_their_hosts(serve: Serve) -> None:
    fabric = serve()
    show = (
        "from mpi4py import MPI; import os\n"
        "line = f'{MPI.COMM_WORLD.rank} {MPI.Get_processor_name()}\\n'\n"
        "os.write(1, line.encode())"
    )
    words = ("--per-host", "2", "--hosts", "d,b", "/usr/bin/python3", "-c", show)
    done = mpirun(fabric, *words)
    assert done.returncode == 0, done
    assert sorted(done.stdout.splitlines()) == ["0 d", "1 d", "2 b", "3 b"]
    done = mpirun(fabric, "--hosts", "a,x", "true")
    assert done.returncode == 2
    assert "ibhosts lists the hosts" in done.stderr


@pytest.mark.needs("python3-mpi4py")
def test_ranks_of_mpi_are_on_hosts_in_turn(serve: Serve) -> None:
    """Oracle: each host of the four has sent at least five messages of 100 kB."""
    fabric = serve()
    ring = ("/usr/bin/python3", "-m", "mpi4py.bench", "ringtest", "-l", "5", "-n", "100000")
    done = mpirun(fabric, "-n", "4", *ring)
    assert done.returncode == 0, done
    for host in "abcd":
        sent = values(fabric.run("perfquery", "-x", host=host).stdout)["PortXmitData"]
        assert int(sent) * 4 > 5 * 100000


def test_counters_count_the_bytes_of_programs(serve: Serve) -> None:
    """Oracle: 100 messages of 64 KiB are 32 packets of 2 KiB each, with headers."""
    fabric = serve()
    before = values(fabric.run("perfquery", "-x", host="c").stdout)
    done = pair(fabric, "ib_write_bw", "-n", "100", "-s", "65536")
    assert [one.returncode for one in done] == [0, 0], done
    after = values(fabric.run("perfquery", "-x", host="c").stdout)
    packets = int(after["PortXmitPkts"]) - int(before["PortXmitPkts"])
    assert packets >= 100 * 32
    words = int(after["PortXmitData"]) - int(before["PortXmitData"])
    assert words * 4 >= 100 * 65536


def test_a_cut_cable_ends_requests_and_a_restored_one_carries_them(serve: Serve) -> None:
    """Oracle: *transport retry counter exceeded* is completion status 12 of libibverbs."""
    fabric = serve()
    watch = fabric.popen("stdbuf", "-oL", "ibv_asyncwatch", host="a")
    both = start(fabric, "ib_send_bw", "-D", "60", "-u", "10", hosts=("a", "c"))
    moved = fabric.control("status")["simulated_s"]
    fabric.wait(lambda: fabric.control("status")["simulated_s"] > moved + 1)
    fabric.control("cut", port="a")
    printed = "".join(both[1].communicate(timeout=PATIENCE_S))
    assert "status 12" in printed, printed
    both[0].kill()
    both[0].communicate()
    fabric.control("restore", port="a")
    again = pair(fabric, "ibv_rc_pingpong", "-c", "-n", "20")
    assert [done.returncode for done in again] == [0, 0], again
    watch.terminate()
    events = re.findall(r"event_type (\S+)", watch.communicate(timeout=PATIENCE_S)[0])
    assert events == ["IBV_EVENT_PORT_ERR", "IBV_EVENT_PORT_ACTIVE"]


def test_a_killed_program_leaves_the_fabric_to_others(serve: Serve) -> None:
    fabric = serve()
    for seconds in (0.3, 0.6, 0.9):
        both = start(fabric, "ib_write_bw", "-D", "60", hosts=("a", "c"))
        fabric.pass_time(seconds)
        both[0].kill()
        both[1].kill()
        for process in both:
            process.communicate(timeout=PATIENCE_S)
    done = pair(fabric, "ibv_rc_pingpong", "-c", "-n", "20")
    assert [one.returncode for one in done] == [0, 0], done


def opened(fabric: Fabric) -> socket.socket:
    """Open the device as the preload library does."""
    program = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    program.connect(f"\0{fabric.emulation.sockname}:umad\0")
    program.send(struct.pack("=II", 6, 1) + b"a" + b"\0")
    answer, files, _, _ = socket.recv_fds(program, 100, 1)
    assert answer == bytes(4)
    socket.close(files[0])
    return program


def test_hostile_records_are_refused(serve: Serve) -> None:
    """Random records end their connection or are answered; the fabric lives on."""
    fabric = serve()
    random = Random(1)
    for _ in range(50):
        with opened(fabric) as program:
            program.settimeout(PATIENCE_S)
            try:
                for _ in range(20):
                    body = random.randbytes(random.choice([0, 4, 8, 24, 64, 200]))
                    command = struct.pack("=IHH", random.randrange(60), 20, 100) + body
                    length = random.choice([len(command), 0, 1 << 31, len(command) + 1])
                    count = random.choice([0, 0, 0, 1, 1 << 31])
                    program.send(struct.pack("=II", length, count) + command)
                    if not program.recv(1 << 16):
                        break
            except (BrokenPipeError, ConnectionResetError):
                pass
    done = pair(fabric, "ibv_rc_pingpong", "-c", "-n", "20")
    assert [one.returncode for one in done] == [0, 0], done
