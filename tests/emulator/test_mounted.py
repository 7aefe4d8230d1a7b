"""Programs without the preload library see the fabric's files by private mounts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from silvan import mounted
from tests.emulator.conftest import Fabric, Serve, values

pytestmark = [pytest.mark.slow, pytest.mark.needs("infiniband-diags", "root")]
PORT = "/sys/class/infiniband/silvan0/ports/1"
BARE = ("env", "-u", "LD_PRELOAD")


def shown(fabric: Fabric, *words: str, host: str = "a") -> str:
    """Run a program with the mounts alone."""
    done = fabric.run(*BARE, *words, host=host, mount=True)
    assert not done.stderr
    return done.stdout


def test_files_have_the_text_of_the_instant(serve: Serve) -> None:
    """Oracle: what the preload library shows, and perfquery, while the clock is paused."""
    fabric = serve()
    fabric.control("start", **{"from": "a"}, to="c", rate="1 Gbit/s")
    for _ in range(2):
        fabric.pass_time(0.01)
        fabric.control("pause")
        names = shown(fabric, "ls", f"{PORT}/counters").split()
        assert len(names) > 20
        files = [f"{PORT}/counters/{name}" for name in names] + [
            f"{PORT}/{x}" for x in ("state", "rate", "lid")
        ]
        assert shown(fabric, "cat", *files) == fabric.run("cat", *files, host="a").stdout
        counted = values(fabric.run("perfquery", "-x", host="a").stdout)
        sent = shown(fabric, "cat", f"{PORT}/counters/port_xmit_data").strip()
        assert sent == counted["PortXmitData"] != "0"
        fabric.control("resume")


def test_the_same_open_file_is_the_same_text_and_a_new_one_is_not(serve: Serve) -> None:
    fabric = serve()
    fabric.control("start", **{"from": "a"}, to="c", rate="1 Gbit/s")
    program = (
        "import os, time\n"
        f"path = '{PORT}/counters/port_xmit_data'\n"
        "file = os.open(path, os.O_RDONLY)\n"
        "first = os.pread(file, 3, 0), os.pread(file, 100, 3)\n"
        "while open(path, 'rb').read() == b''.join(first): time.sleep(0.01)\n"
        "assert (os.pread(file, 3, 0), os.pread(file, 100, 3)) == first\n"
        "try: open(path, 'w')\n"
        "except PermissionError: print('read-only')\n"
    )
    assert shown(fabric, sys.executable, "-c", program) == "read-only\n"


def test_other_classes_and_other_programs_keep_their_files(serve: Serve) -> None:
    before = sorted(path.name for path in Path("/sys/class").iterdir())
    fabric = serve()
    inside = shown(fabric, "sh", "-c", "ls /sys/class; cat /sys/class/net/lo/address; mount")
    classes = set(inside.split("00:00")[0].split())
    assert classes == set(before) | set(mounted.CLASSES)
    assert "00:00:00:00:00:00" in inside
    assert sorted(path.name for path in Path("/sys/class").iterdir()) == before
    assert "silvan" not in Path("/proc/mounts").read_text("utf-8")


def test_the_command_has_the_mounts_and_its_status_is_returned(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "silvan", "emulate", "--example", "incast", "--mount", "--"]
    words += [*BARE, "sh", "-c", f"cat {PORT}/state; exit 7"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (7, "4: ACTIVE\n"), done.stderr


def test_an_unprivileged_user_gets_an_error_or_the_mounts(serve: Serve) -> None:
    """If users may make namespaces, they see the fabric; otherwise they get the reason."""
    fabric = serve(everybody=True)
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    user += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    words = [*user, *mounted.command(["cat", f"{PORT}/state"])]
    done = fabric.run(*words, host="a", check=False)
    if done.returncode:
        assert re.search("cannot be opened|is not possible here", done.stderr), done.stderr
        assert "docker run --privileged" in done.stderr
    else:
        assert done.stdout == "4: ACTIVE\n"


def test_without_a_fabric_there_is_one_clear_error(tmp_path: Path) -> None:
    words = mounted.command(["true"])
    variables = os.environ | {"IBSIM_SOCKNAME": "no-such-fabric"}
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, cwd=tmp_path, env=variables
    )
    assert done.returncode == 2
    assert "no emulated fabric can be read (Connection refused)" in done.stderr


def test_the_file_system_refuses_what_it_does_not_have(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/file").write_text("old")
    files = mounted.FileSystem(tmp_path, lambda name: f"now {name}".encode())

    def ask(operation: int, node: int, data: bytes = b"") -> tuple[int, bytes]:
        header = mounted._IN.pack(40 + len(data), operation, 9, node, 0, 0, 0, 0)
        reply = files.answer(header + data)
        assert reply is not None
        size, error, unique = mounted._OUT.unpack_from(reply)
        assert (size, unique) == (len(reply), 9)
        return error, reply[16:]

    error, entry = ask(1, 1, b"folder\0")
    folder = int.from_bytes(entry[:8], sys.byteorder)
    _, entry = ask(1, folder, b"file\0")
    file = int.from_bytes(entry[:8], sys.byteorder)
    assert error == 0
    assert len({1, folder, file}) == 3
    assert ask(1, 1, b"none\0")[0] == -2
    assert ask(4711, 1)[0] == -38
    _, opened = ask(14, file, bytes(8))
    handle = opened[:8]
    assert (
        ask(15, file, handle + bytes(8) + (100).to_bytes(4, sys.byteorder))[1] == b"now folder/file"
    )
    assert ask(14, file, (os.O_RDWR).to_bytes(4, sys.byteorder) + bytes(4))[0] == -13
    # FORGET has no answer.
    assert files.answer(mounted._IN.pack(40, 2, 9, 1, 0, 0, 0, 0)) is None
