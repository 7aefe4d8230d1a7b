"""Run a program with a fabric's sysfs files without the preload library.

Static programs and those of Go call the kernel without libc. For them this module makes a mount
namespace in which ``/sys/class/infiniband`` and others are a FUSE file system (kernel's
``Documentation/filesystems/fuse``). Only this program sees the mounts, which end with it.

``python -m silvan.mounted COMMAND ...`` runs a command in an attached environment.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import socket
import stat
import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from silvan.errors import EmulationError
from silvan.scratch import mount_point

CLASSES = ("infiniband", "infiniband_mad", "infiniband_verbs")

_CLASS = Path("/sys/class")
_LIBC = ctypes.CDLL(None, use_errno=True)

# Numbers of linux/sched.h, linux/mount.h and linux/prctl.h.
_CLONE_NEWNS = 0x0002_0000
_CLONE_NEWUSER = 0x1000_0000
_MS_BIND_RECURSIVE = 0x1000 | 0x4000
_MS_PRIVATE_RECURSIVE = 0x4_0000 | 0x4000
_PR_SET_PDEATHSIG = 1

_TREE, _READ = 4, 5
_ANSWER = 64 << 10
_PATIENCE_S = 60

# Layouts and numbers of linux/fuse.h, version 7.31.
_VERSION = (7, 31)
_IN = struct.Struct("=IIQQIIII")
_OUT = struct.Struct("=IiQ")
_ATTRIBUTES = struct.Struct("=6Q10I")
_ENTRY = struct.Struct("=4Q2I")
_INIT = struct.Struct("=4I2H2I2H8I")
_OPENED = struct.Struct("=QIi")
_READ_REQUEST = struct.Struct("=QQI")
_DIRENT = struct.Struct("=QQII")
_STATFS = struct.Struct("=5Q10I")
_DIRECT_IO = 1
_REQUEST = 1 << 17
_NO_REPLY = {2, 36, 42}
"""FORGET, INTERRUPT, BATCH_FORGET."""


def ask(operation: int, data: bytes = b"") -> bytes:
    """Send a request to the server of the fabric that the environment names."""
    name = os.environ.get("IBSIM_SOCKNAME", "sim")
    node = os.environ.get("SIM_HOST", "").encode()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.settimeout(_PATIENCE_S)
        connection.connect(f"\0{name}:umad\0")
        connection.send(struct.pack("=II", operation, len(node)) + node + data)
        answer = connection.recv(_ANSWER)
    (error,) = struct.unpack_from("=i", answer)
    if error:
        raise OSError(error, os.strerror(error))
    return answer[4:]


@dataclass(slots=True)
class _Node:
    name: str
    parent: int
    children: dict[str, int] = field(default_factory=dict)
    is_folder: bool = False


class FileSystem:
    """The files of a node of the fabric, as FUSE has them."""

    def __init__(self, root: Path, read: Callable[[str], bytes]) -> None:
        self._read = read
        self._nodes = {1: _Node("", 1, is_folder=True)}
        self._open: dict[int, bytes] = {}
        self._handle = 0
        for path in sorted(root.rglob("*")):
            self._add(path.relative_to(root), is_folder=path.is_dir())

    def _add(self, path: Path, *, is_folder: bool) -> None:
        parent = 1
        for part in path.parts[:-1]:
            parent = self._nodes[parent].children[part]
        number = len(self._nodes) + 1
        self._nodes[number] = _Node(str(path), parent, is_folder=is_folder)
        self._nodes[parent].children[path.name] = number

    def answer(self, request: bytes) -> bytes | None:
        """Answer a request of the kernel; ``None`` where it expects nothing."""
        _, operation, unique, number, *_ = _IN.unpack_from(request)
        if operation in _NO_REPLY:
            return None
        try:
            data, error = self._do(operation, number, request[_IN.size :]), 0
        except OSError as problem:
            data, error = b"", problem.errno or errno.EIO
        return _OUT.pack(_OUT.size + len(data), -error, unique) + data

    def _do(self, operation: int, number: int, data: bytes) -> bytes:
        handlers: dict[int, Callable[[int, bytes], bytes]] = {
            1: self._look_up,
            3: self._attributes,
            14: self._open_file,
            15: self._read_file,
            17: self._statistics,
            18: self._release,
            26: self._start,
            27: lambda _number, _data: _OPENED.pack(0, 0, 0),
            28: self._list,
            29: lambda _number, _data: b"",
        }
        if operation not in handlers:
            raise OSError(errno.ENOSYS, "not supported")
        return handlers[operation](number, data)

    def _start(self, _number: int, data: bytes) -> bytes:
        _major, minor, read_ahead, _flags = struct.unpack_from("=4I", data)
        version = (_VERSION[0], min(_VERSION[1], minor))
        return _INIT.pack(*version, read_ahead, 0, 12, 9, _ANSWER, 1, 1, *[0] * 9)

    def _packed(self, number: int) -> bytes:
        node = self._nodes[number]
        mode = stat.S_IFDIR | 0o755 if node.is_folder else stat.S_IFREG | 0o444
        # As in sysfs, files have the size of a page.
        return _ATTRIBUTES.pack(number, 4096, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def _look_up(self, number: int, data: bytes) -> bytes:
        name = data.split(b"\0")[0].decode(errors="replace")
        found = self._nodes[number].children.get(name)
        if found is None:
            raise OSError(errno.ENOENT, "no such file")
        return _ENTRY.pack(found, 0, 1, 1, 0, 0) + self._packed(found)

    def _attributes(self, number: int, _data: bytes) -> bytes:
        return struct.pack("=QII", 1, 0, 0) + self._packed(number)

    def _open_file(self, number: int, data: bytes) -> bytes:
        (flags,) = struct.unpack_from("=I", data)
        if flags & os.O_ACCMODE != os.O_RDONLY:
            raise OSError(errno.EACCES, "read-only")
        self._handle += 1
        self._open[self._handle] = self._read(self._nodes[number].name)
        return _OPENED.pack(self._handle, _DIRECT_IO, 0)

    def _read_file(self, _number: int, data: bytes) -> bytes:
        handle, offset, size = _READ_REQUEST.unpack_from(data)
        return self._open.get(handle, b"")[offset : offset + size]

    def _release(self, _number: int, data: bytes) -> bytes:
        (handle,) = struct.unpack_from("=Q", data)
        self._open.pop(handle, b"")
        return b""

    def _list(self, number: int, data: bytes) -> bytes:
        _handle, offset, size = _READ_REQUEST.unpack_from(data)
        node = self._nodes[number]
        entries = [(".", number), ("..", node.parent), *node.children.items()]
        listed = b""
        for position, (name, child) in enumerate(entries[offset:], offset + 1):
            kind = stat.S_IFDIR if self._nodes[child].is_folder else stat.S_IFREG
            raw = name.encode()
            entry = _DIRENT.pack(child, position, len(raw), kind >> 12) + raw
            entry += bytes(-len(entry) % 8)
            if len(listed) + len(entry) > size:
                break
            listed += entry
        return listed

    def _statistics(self, _number: int, _data: bytes) -> bytes:
        return _STATFS.pack(0, 0, 0, len(self._nodes), 0, 4096, 255, 4096, *[0] * 7)

    def serve(self, device: int) -> None:
        """Answer the kernel until the file system is no longer mounted."""
        while True:
            try:
                request = os.read(device, _REQUEST)
            except InterruptedError:
                continue
            except OSError as error:
                # ENOENT: the request was interrupted before it was read.
                if error.errno in {errno.ENOENT, errno.EAGAIN}:
                    continue
                return
            reply = self.answer(request)
            if reply is not None:
                try:
                    os.write(device, reply)
                except OSError as error:
                    if error.errno != errno.ENOENT:
                        return


def _call(what: str, result: int) -> None:
    if result:
        error = ctypes.get_errno()
        raise EmulationError(
            f"{what} is not possible here ({os.strerror(error)})",
            "mounting needs root, or namespaces for users, and /dev/fuse: in a container,"
            " docker run --privileged",
        )


def _mount(source: str, target: Path, kind: str, flags: int = 0, options: str = "") -> None:
    result = _LIBC.mount(
        source.encode(), os.fsencode(target), kind.encode(), flags, options.encode()
    )
    _call(f"mounting {target}", result)


def _own_namespace() -> None:
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        _call("a mount namespace", _LIBC.unshare(_CLONE_NEWNS))
    else:
        _call("a mount namespace", _LIBC.unshare(_CLONE_NEWUSER | _CLONE_NEWNS))
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    _mount("none", Path("/"), "", _MS_PRIVATE_RECURSIVE)


def _serve_apart(files: FileSystem, device: int) -> None:
    parent = os.getpid()
    if os.fork() == 0:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:
            os.setsid()
            files.serve(device)
        os._exit(0)
    # If the other process ends, reads fail and do not wait.
    os.close(device)


def mount_fabric() -> None:
    """Mount the fabric of the environment over ``/sys/class``, for this process."""
    try:
        root = Path(os.fsdecode(ask(_TREE)), "sys/class")
    except OSError as error:
        raise EmulationError(
            f"no emulated fabric can be read ({error.strerror})",
            "start one with silvan emulate, and let this user attach with --allow-user",
        ) from error
    files = FileSystem(root, lambda name: ask(_READ, name.encode()))
    _own_namespace()
    try:
        device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise EmulationError(
            f"/dev/fuse cannot be opened ({error.strerror})",
            "load the kernel's module with modprobe fuse, and run this as root; in a container,"
            " docker run --privileged",
        ) from error
    with mount_point() as scratch:
        try:
            _mount_classes(files, device, scratch)
        finally:
            # The mounts stay; in other namespaces the folder is empty.
            _LIBC.umount2(os.fsencode(scratch), 2)


def _mount_classes(files: FileSystem, device: int, scratch: Path) -> None:
    _mount("silvan", scratch, "tmpfs", 0, "mode=755")
    served, classes = scratch / "served", scratch / "class"
    served.mkdir()
    classes.mkdir()
    owner = f"user_id={os.getuid()},group_id={os.getgid()}"
    others = ",allow_other" if os.geteuid() == 0 else ""
    _mount("silvan", served, "fuse", 0, f"fd={device},rootmode=40000,{owner}{others}")
    _serve_apart(files, device)
    sources = {path.name: path for path in _CLASS.iterdir() if path.is_dir()}
    sources |= {name: served / name for name in CLASSES if (served / name).is_dir()}
    for name, source in sources.items():
        target = classes / name
        target.mkdir()
        _mount(str(source), target, "", _MS_BIND_RECURSIVE)
    _mount(str(classes), _CLASS, "", _MS_BIND_RECURSIVE)


def command(words: Sequence[str]) -> list[str]:
    """Give the words that run a command with the fabric mounted, in an attached environment."""
    return [sys.executable, "-m", "silvan.mounted", *words]


def main(words: Sequence[str]) -> int:
    """Mount the fabric, and become the command."""
    try:
        mount_fabric()
        os.execvp(words[0], list(words))
    except EmulationError as error:
        sys.stderr.write(f"error: {error}\nhint: {error.hint}\n")
    except OSError as error:
        sys.stderr.write(f"error: {words[0]}: {error.strerror}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
