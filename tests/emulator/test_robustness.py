"""Many tools at once, tools that are killed, bytes that are no datagrams, users who may not."""

from __future__ import annotations

import os
import random
import signal
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any

import pytest

import silvan
from silvan import _silvan
from silvan.live.emulation import Emulation, control
from tests.conftest import Command
from tests.emulator.conftest import LINE, REAL_TOOLS, Fabric, Serve, serve_udp
from tests.gate import PATIENCE_S

MAGIC = 0xDEADBEEF
UNPRIVILEGED = 65534


def connect_as(user: int, sockname: str) -> int:
    """Connect as umad2sim does, as a user, and give the type of the answer: 1 yes, 0 no."""
    address = f"\0{sockname}:"
    own = os.getuid()
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as control_socket,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as data,
    ):
        control_socket.bind(f"{address}ctl4711\0")
        data.bind(f"{address}in4711\0")
        control_socket.settimeout(PATIENCE_S)
        request = struct.pack("=IIIII60x", MAGIC, 0, 1, 44, 4711)
        # The kernel vouches for the real user id.
        os.setresuid(user, -1, -1)
        try:
            control_socket.sendto(request, f"{address}ctl\0")
        finally:
            os.setresuid(own, -1, -1)
        return int(struct.unpack("=IIII", control_socket.recv(80)[:16])[2])


@pytest.mark.needs("root")  # Only root can become another user.
def test_another_user_is_refused_unless_allowed(serve: Serve) -> None:
    fabric = serve()
    assert connect_as(os.getuid(), fabric.emulation.sockname) == 1
    assert connect_as(UNPRIVILEGED, fabric.emulation.sockname) == 0
    allowing = serve(users=[UNPRIVILEGED])
    assert connect_as(UNPRIVILEGED, allowing.emulation.sockname) == 1
    everybody = serve(everybody=True)
    assert connect_as(UNPRIVILEGED, everybody.emulation.sockname) == 1


def test_only_the_listed_users_are_served() -> None:
    name = f"test-{os.getpid()}-other"
    scenario = silvan.Scenario.from_toml(LINE)
    other = _silvan.Emulation(
        scenario._native,
        sockname=name,
        udp_port=0,
        users=[UNPRIVILEGED],
        controllers=[UNPRIVILEGED],
        time_scale=1.0,
        host=None,
        devices="emulated",
        blank=False,
        paused=False,
        faults=None,
        follows_programs=False,
    )
    assert connect_as(os.getuid(), name) == 0
    with pytest.raises(silvan.EmulationError, match="does not let this user control it"):
        control(name, "status")
    other.stop()


def test_silent_connections_do_not_lock_others_out(serve: Serve) -> None:
    fabric = serve().emulation
    silent = []
    for _ in range(200):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(f"\0{fabric.sockname}:silvan\0")
        silent.append(connection)
        assert fabric.control("status")["hosts"] == 4
    (notice,) = fabric.take_notices()
    said = "64 control connections are open: the one that was silent longest is closed"
    assert notice.startswith(said)
    # Closed clients see the end of their stream, and the last clients are open.
    silent[0].settimeout(PATIENCE_S)
    assert silent[0].recv(1) == b""
    silent[-1].setblocking(False)
    with pytest.raises(BlockingIOError):
        silent[-1].recv(1)
    for connection in silent:
        connection.close()


def control_as(user: int, sockname: str) -> dict[str, Any]:
    """Ask for the status as a user."""
    own = os.geteuid()
    # For a connection, the kernel returns the effective user id.
    os.seteuid(user)
    try:
        return dict(control(sockname, "status", server_user=own))
    finally:
        os.seteuid(own)


@pytest.mark.needs("root")  # Only root can become another user.
def test_to_attach_is_not_to_control(serve: Serve) -> None:
    fabric = serve(users=[UNPRIVILEGED]).emulation
    assert connect_as(UNPRIVILEGED, fabric.sockname) == 1
    for _ in range(3):
        with pytest.raises(silvan.EmulationError, match="does not let this user control it"):
            control_as(UNPRIVILEGED, fabric.sockname)
    # Refused once and again, and reported once.
    assert fabric.take_notices() == [f"user {UNPRIVILEGED} was refused: may not control the fabric"]
    allowing = serve(controllers=[UNPRIVILEGED]).emulation
    assert control_as(UNPRIVILEGED, allowing.sockname)["hosts"] == 4
    assert connect_as(UNPRIVILEGED, allowing.sockname) == 1
    assert allowing.take_notices() == []
    refusing = serve().emulation
    assert connect_as(UNPRIVILEGED, refusing.sockname) == 0
    assert refusing.take_notices() == [f"user {UNPRIVILEGED} was refused: may not attach"]


@contextmanager
def impostor(answer: bytes, user: int | None = None) -> Iterator[str]:
    """Listen where a fabric would, as a user, and answer each question alike."""
    name = f"test-{os.getpid()}-impostor"
    own = os.geteuid()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(f"\0{name}:silvan\0")
        os.seteuid(own if user is None else user)
        try:
            # The caller of this function answers, for the kernel.
            listener.listen()
        finally:
            os.seteuid(own)

        def serve_one() -> None:
            with suppress(OSError), listener.accept()[0] as connection:
                connection.recv(4096)
                connection.sendall(answer)

        thread = Thread(target=serve_one, daemon=True)
        thread.start()
        yield name
        thread.join(PATIENCE_S)


@pytest.mark.parametrize(
    "answer",
    [
        b"garbage\n",
        b"\xff\xfe\x00\n",
        b"[]\n",
        b"{}\n",
        b"null\n",
        b"7\n",
        b'"ok"\n',
        b"[" * 100_000 + b"\n",
        b'{"ok": ',
    ],
)
def test_answers_that_are_none_are_named(answer: bytes) -> None:
    with (
        impostor(answer) as name,
        pytest.raises(silvan.EmulationError, match="is no emulated fabric"),
    ):
        control(name, "status")


@pytest.mark.needs("root")  # Only root can become another user.
def test_another_users_fabric_is_not_trusted(command: Command) -> None:
    forged = b'{"ok": {"hosts": 4}}\n'
    for option, status in (((), 2), (("--server-user", str(UNPRIVILEGED)), 0)):
        with impostor(forged, UNPRIVILEGED) as name:
            done = command("ctl", *option, "status", "--sockname", name)
            assert done.status == status, done.stderr
            if status:
                assert "--server-user" in done.stderr


@REAL_TOOLS
def test_a_client_that_never_reads_is_disconnected(line: Fabric) -> None:
    base = line.emulation.sockname
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as control_socket,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as data,
    ):
        control_socket.bind(f"\0{base}:ctl4712\0")
        data.bind(f"\0{base}:in4712\0")
        control_socket.settimeout(PATIENCE_S)
        data.settimeout(PATIENCE_S)
        request = struct.pack("=IIIII60x", MAGIC, 0, 1, 44, 4712)
        control_socket.sendto(request, f"\0{base}:ctl\0")
        client = struct.unpack("=IIIII", control_socket.recv(80)[:20])[4]
        # A request to no node, which is returned.
        question = struct.pack(">24xQ256x", 256)
        for _ in range(1_000_000):
            try:
                data.sendto(question, f"\0{base}:out{client}\0")
            except ConnectionRefusedError:
                break
        else:
            raise AssertionError
    (notice,) = line.emulation.take_notices()
    said = "the client of process 4712 was disconnected: it does not read its answers"
    assert notice.startswith(said)
    line.wait(lambda: line.emulation.control("status")["clients"] == 0)
    assert "left" in line.tool("ibnetdiscover")


@REAL_TOOLS
def test_a_hundred_tools_at_once(line: Fabric) -> None:
    lids = line.lids()
    tools = [line.popen("perfquery", str(lids["c"]), "1") for _ in range(100)]
    for tool in tools:
        out, errors = tool.communicate(timeout=PATIENCE_S)
        assert tool.returncode == 0, errors
        assert "PortXmitPkts" in out
    line.wait(lambda: line.emulation.control("status")["clients"] == 0)


@REAL_TOOLS
def test_killed_tools_cost_nothing(line: Fabric) -> None:
    rng = random.Random(1)
    for _ in range(3):
        tools = [line.popen("ibnetdiscover") for _ in range(12)]
        time.sleep(rng.uniform(0, 0.05))
        for tool in tools:
            tool.send_signal(signal.SIGKILL)
        for tool in tools:
            tool.communicate(timeout=PATIENCE_S)
    assert "left" in line.tool("ibnetdiscover")
    line.wait(lambda: line.emulation.control("status")["clients"] == 0)


@REAL_TOOLS
def test_tools_killed_over_udp_cost_nothing(serve: Serve) -> None:
    fabric = serve_udp(serve)
    # They wait for requests without end, so that all are killed at work.
    tools = [fabric.popen("ibping", "-S") for _ in range(6)]
    fabric.wait(lambda: fabric.emulation.control("status")["clients"] == 6)
    for tool in tools:
        tool.send_signal(signal.SIGKILL)
        tool.communicate(timeout=PATIENCE_S)
    fabric.wait(lambda: fabric.emulation.control("status")["clients"] == 0)
    assert "left" in fabric.tool("ibnetdiscover")


@REAL_TOOLS
def test_a_subnet_manager_killed_at_work_leaves_the_fabric_to_the_next(serve: Serve) -> None:
    fabric = serve(blank=True)
    rng = random.Random(3)
    for _ in range(8):
        manager = fabric.popen("opensm", "--log_file", fabric.folder / "killed.log")
        time.sleep(rng.uniform(0, 0.15))
        manager.send_signal(signal.SIGKILL)
        manager.communicate(timeout=PATIENCE_S)
    fabric.wait(lambda: fabric.emulation.control("status")["clients"] == 0)
    log = fabric.folder / "opensm.log"
    fabric.tool("opensm", "--once", "--log_file", log)
    assert "SUBNET UP" in log.read_text()


@REAL_TOOLS
def test_client_that_does_not_read_answers_blocks_no_other(line: Fabric) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as lazy:
        lazy.connect(f"\0{line.emulation.sockname}:silvan\0")
        lazy.setblocking(False)
        try:
            while True:
                lazy.send(b'{"do": "status"}\n' * 100)
        except BlockingIOError:
            pass
        # The answers no longer fit between the two, and every other client is served as before.
        assert "left" in line.tool("ibnetdiscover")
        assert line.emulation.control("status")["hosts"] == 4


def test_impossible_time_scales_are_refused() -> None:
    for scale in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(silvan.EmulationError, match="time scale"):
            Emulation(silvan.Scenario.from_toml(LINE), sockname="test-scale", time_scale=scale)


@REAL_TOOLS
def test_a_stopped_tool_blocks_no_other(line: Fabric) -> None:
    lids = line.lids()
    stopped = line.popen("ibnetdiscover")
    stopped.send_signal(signal.SIGSTOP)
    for _ in range(5):
        line.tool("perfquery", str(lids["c"]), "1")
    stopped.send_signal(signal.SIGCONT)
    stopped.communicate(timeout=PATIENCE_S)


@REAL_TOOLS
def test_garbage_is_dropped(line: Fabric) -> None:
    rng = random.Random(2)
    base = line.emulation.sockname
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as mine,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as unbound,
    ):
        mine.bind(f"\0{base}:ctl1\0")
        mine.settimeout(PATIENCE_S)
        unbound.settimeout(PATIENCE_S)
        for _ in range(2000):
            kind = rng.randrange(4)
            junk = rng.randbytes(rng.randrange(1, 300))
            if kind == 0:
                message = junk
            elif kind == 1:
                message = rng.randbytes(80)
            else:
                # Right in form: some client, some request.
                head = struct.pack(
                    "=IIII", MAGIC, rng.randrange(1 << 32), rng.randrange(14), rng.randrange(99)
                )
                message = (head + rng.randbytes(64))[:80]
            (mine if kind else unbound).sendto(message, f"\0{base}:ctl\0")
            mine.setblocking(False)
            try:
                while True:
                    mine.recv(400)
            except BlockingIOError:
                mine.settimeout(PATIENCE_S)
        # Wrong magic is not answered; an unknown request without a client is refused.
        mine.sendto(struct.pack("=IIII64x", MAGIC, 9999, 4, 24), f"\0{base}:ctl\0")
        while True:
            answer = struct.unpack("=IIII", mine.recv(400)[:16])
            if answer[:2] == (MAGIC, 9999):
                break
        assert answer[2] == 0
    assert "left" in line.tool("ibnetdiscover")
    with pytest.raises(silvan.EmulationError, match="not a command"):
        line.emulation.control("dance")


def test_names_in_use_are_refused(line: Fabric) -> None:
    with pytest.raises(silvan.EmulationError, match="in use"):
        Emulation(silvan.Scenario.from_toml(LINE), sockname=line.emulation.sockname)
    with pytest.raises(silvan.EmulationError, match="unknown-host"):
        Emulation(silvan.Scenario.from_toml(LINE), sockname="test-host", host="unknown-host")


def test_a_restored_link_works_without_a_subnet_manager(serve: Serve) -> None:
    fabric = serve(LINE)
    control = fabric.emulation.control
    control("start", **{"from": "a"}, to="c", rate="1 Gbit/s")
    control("cut", port="a")
    fabric.pass_time(0.002)
    before = control("status")["delivered_bytes"]
    fabric.pass_time(0.002)
    assert control("status")["delivered_bytes"] == before
    control("restore", port="a")
    fabric.wait(lambda: control("status")["delivered_bytes"] > before)


@REAL_TOOLS
def test_time_can_be_paused_and_scaled(line: Fabric) -> None:
    line.emulation.control("pause")
    before = line.emulation.control("status")["simulated_s"]
    line.tool("ibnetdiscover")
    assert line.emulation.control("status")["simulated_s"] == before
    line.emulation.control("scale", factor=0.01)
    line.emulation.control("resume")
    line.pass_time(0.001)
    status = line.emulation.control("status")
    assert status["time_scale"] == 0.01
    assert not status["paused"]
    with pytest.raises(silvan.EmulationError, match="time scale"):
        line.emulation.control("scale", factor=-1)
