"""A program that uses the kernel's umad interface as its documentation says, and nothing of silvan.

It prints what it has found as JSON. Numbers and layouts are those of the kernel's
``include/uapi/rdma/ib_user_mad.h``.
"""

import errno
import fcntl
import json
import os
import resource
import select
import struct
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

REGISTER, UNREGISTER, ENABLE_PKEY, REGISTER2 = 0xC01C1B01, 0x40041B02, 0x00001B03, 0xC0281B04
PERF, SUBN, VENDOR = 0x04, 0x01, 0x30
HEADER = 64


def error_of(call: Callable[..., object], *arguments: object) -> str:
    """Name the error of a call; empty if it succeeds."""
    try:
        call(*arguments)
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))
    return ""


def register(
    fd: int,
    mgmt_class: int,
    *,
    methods: Sequence[int] = (),
    version: int = 1,
    qpn: int = 1,
    rmpp: int = 0,
    oui: Sequence[int] = (0, 0, 0),
) -> int:
    """Register an agent by the first form."""
    mask = 0
    for method in methods:
        mask |= 1 << method
    request = bytearray(
        struct.pack(
            "=I16s8B", 0, mask.to_bytes(16, "little"), qpn, mgmt_class, version, *oui, rmpp, 0
        )
    )
    fcntl.ioctl(fd, REGISTER, request)
    return int(struct.unpack_from("=I", request)[0])


def register2(fd: int, mgmt_class: int, *, flags: int = 0, version: int = 1) -> int:
    """Register an agent by the second form."""
    request = bytearray(
        struct.pack("=IIBBHI16sIB3x", 0, 1, mgmt_class, version, 0, flags, bytes(16), 0, 0)
    )
    fcntl.ioctl(fd, REGISTER2, request)
    return int(struct.unpack_from("=I", request)[0])


def packet(
    agent: int,
    lid: int,
    mgmt_class: int,
    attribute: int,
    *,
    timeout: int = 1000,
    retries: int = 0,
    tid: int = 1,
    data: bytes = b"",
    grh: int = 0,
) -> bytes:
    """Make a header and a datagram."""
    qpn = 0 if mgmt_class == SUBN else 1
    header = struct.pack("=5I", agent, 0, timeout, retries, 0)
    header += struct.pack(">IIHBB", qpn, 0x80010000, lid, 0, 0)
    header += struct.pack(">4B16sI", grh, 0, 1, 0, bytes(range(16)), 0)
    mad = struct.pack(">4BHHQHHI", 1, mgmt_class, 1, 1, 0, 0, tid, attribute, 0, 0)
    return header.ljust(HEADER, b"\0") + (mad.ljust(64, b"\0") + data).ljust(256, b"\0")


def wait(fd: int, seconds: float = 60.0) -> bool:
    """Wait with poll until there is something to read."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def main() -> None:
    lid = int(Path("/sys/class/infiniband/silvan0/ports/1/lid").read_text(), 16)
    found: dict[str, Any] = {}
    fd = os.open("/dev/infiniband/umad0", os.O_RDWR | os.O_NONBLOCK)
    found["empty"] = error_of(os.read, fd, 320)
    fcntl.ioctl(fd, ENABLE_PKEY)
    perf = register(fd, PERF)
    smi = register(fd, SUBN, qpn=0)
    found["agents"] = [perf, smi, register2(fd, 0x21, version=2)]
    found["too late"] = error_of(fcntl.ioctl, fd, ENABLE_PKEY)
    found["unknown flags"] = error_of(lambda: register2(fd, PERF, flags=8))
    found["wrong queue pair"] = error_of(lambda: register(fd, SUBN))
    found["no OUI"] = error_of(lambda: register(fd, VENDOR))
    found["unknown agent"] = error_of(fcntl.ioctl, fd, UNREGISTER, struct.pack("=I", 31))
    found["short"] = error_of(os.write, fd, bytes(32))
    found["unknown ioctl"] = error_of(fcntl.ioctl, fd, 0x1B77)

    # A request, read by a copy of the descriptor, with a buffer that is too small first.
    os.write(fd, packet(perf, lid, PERF, 0x12, tid=77, data=b"\0\1", grh=1))
    copy = os.dup(fd)
    assert wait(copy)
    found["small buffer"] = error_of(os.read, copy, 100)
    answer = os.read(copy, 1000)
    agent, status, _, _, length = struct.unpack_from("=5I", answer)
    found["answer"] = [agent, status, length, len(answer)]
    found["source"] = [*struct.unpack_from(">I", answer, 20), *struct.unpack_from(">H", answer, 28)]
    found["grh"] = [answer[32], answer[36:52].hex()]
    found["method"] = answer[HEADER + 3]
    found["transaction"] = struct.unpack_from(">I", answer, HEADER + 12)[0]
    os.close(copy)

    # No node has this LID: the request comes back, after its time and its retries.
    began = time.monotonic()
    os.write(fd, packet(perf, 0xBFF0, PERF, 0x12, timeout=40, retries=2, tid=78))
    assert wait(fd)
    took = time.monotonic() - began
    back = os.read(fd, 1000)
    found["timeout"] = [*struct.unpack_from("=II", back), len(back) - HEADER, back[HEADER + 3]]
    found["timed out too early"] = took < 3 * 0.04
    # Without a timeout nothing waits for the answer.
    os.write(fd, packet(perf, lid, PERF, 0x12, timeout=0, tid=79, data=b"\0\1"))
    os.write(fd, packet(perf, lid, PERF, 0x12, tid=80, data=b"\0\1"))
    assert wait(fd)
    found["only the second"] = struct.unpack_from(">I", os.read(fd, 1000), HEADER + 12)[0]

    # A program's own agent answers another one at the same port.
    other = os.open("/dev/infiniband/umad0", os.O_RDWR)
    server = register(other, VENDOR, methods=[1], oui=(0, 0x14, 0x05), rmpp=1)
    found["methods are taken"] = error_of(
        lambda: register(fd, VENDOR, methods=[1, 2], oui=(0, 0x14, 0x05))
    )
    client = register(fd, VENDOR, oui=(0, 0x14, 0x05), rmpp=1)
    os.write(fd, packet(client, lid, VENDOR, 1, tid=81))
    assert wait(other)
    # This file has headers without the P_Key's index.
    request = os.read(other, 1000)
    found["request"] = [struct.unpack_from("=I", request)[0] == server, len(request)]
    # An answer of several packets: 40 bytes of headers, 216 of data in each.
    long = bytearray(request[:56] + request[56:96] + bytes(index % 251 for index in range(100_000)))
    struct.pack_into("=I", long, 0, server)
    struct.pack_into("=II", long, 8, 0, 0)
    long[56 + 3] = 0x81
    long[56 + 24 : 56 + 36] = bytes([0, 0, 1]) + bytes(9)
    os.write(other, bytes(long))
    assert wait(fd)
    found["does not fit"] = error_of(os.read, fd, HEADER + 256)
    whole = os.read(fd, 1 << 20)
    kind, flags = whole[HEADER + 25], whole[HEADER + 26] & 7
    segment, payload = struct.unpack_from(">II", whole, HEADER + 28)
    found["several packets"] = [len(whole) - HEADER, kind, flags, segment, payload]
    found["data"] = whole[HEADER + 40 :] == bytes(index % 251 for index in range(100_000))

    # More descriptors than FD_SETSIZE.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    spare = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
    high = os.open("/dev/infiniband/umad0", os.O_RDWR)
    agent = register(high, PERF)
    old = packet(agent, lid, PERF, 0x12, tid=82, data=b"\0\1")
    os.write(high, old[:56] + old[HEADER:])
    assert wait(high)
    found["high descriptor"] = [high > 1024, len(os.read(high, 1000))]
    for one in [*spare, high]:
        os.close(one)

    # The port has a subnet manager for as long as issm is open.
    mask = Path("/sys/class/infiniband/silvan0/ports/1/cap_mask")
    before = int(mask.read_text(), 16)
    issm = os.open("/dev/infiniband/issm0", os.O_RDWR)
    within = int(mask.read_text(), 16)
    os.close(issm)
    found["issm"] = [before & 2, within & 2]
    found["no such port"] = error_of(os.open, "/dev/infiniband/umad7", os.O_RDWR)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
