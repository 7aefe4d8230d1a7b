"""Register a service, a subscription and a member of a multicast group with the subnet manager.

A program that runs attached to a fabric, and speaks the kernel's umad interface: no packaged tool
leaves such records behind. Layouts are those of IBA chapter 15.2.5 (ServiceRecord, InformInfo,
MCMemberRecord) and of the kernel's ``include/uapi/rdma/ib_user_mad.h``.
"""

from __future__ import annotations

import fcntl
import os
import select
import struct
import sys
from pathlib import Path

SERVICE_ID = 0x1000_0000_0000_0042
SERVICE_NAME = "check-tools"
LEASE_S = 3600
GROUP = bytes.fromhex("ff12401bffff000000000000ffffffff")

_REGISTER, _ENABLE_PKEY = 0xC01C1B01, 0x1B03
_SA_CLASS, _SET = 0x03, 0x02
_QKEY = 0x8001_0000
_PORT = Path("/sys/class/infiniband/silvan0/ports/1")
_HEADER = 64
_TIMEOUT_MS = 20_000


class SaClient:
    """An agent of the class of subnet administration at the port of this host."""

    def __init__(self) -> None:
        self._fd = os.open("/dev/infiniband/umad0", os.O_RDWR)
        fcntl.ioctl(self._fd, _ENABLE_PKEY)
        request = bytearray(struct.pack("=I16s8B", 0, bytes(16), 1, _SA_CLASS, 2, 0, 0, 0, 0, 0))
        fcntl.ioctl(self._fd, _REGISTER, request)
        self._agent = struct.unpack_from("=I", request)[0]
        self._lid = int((_PORT / "sm_lid").read_text(), 16)
        self._sent = 0

    def set(self, attribute: int, mask: int, record: bytes) -> None:
        """Send SubnAdmSet with this record; raise an error unless the answer has status 0."""
        self._sent += 1
        header = struct.pack("=5I", self._agent, 0, _TIMEOUT_MS, 0, 0)
        header += struct.pack(">IIHBB", 1, _QKEY, self._lid, 0, 0)
        mad = struct.pack(">4BHHQHHI", 1, _SA_CLASS, 2, _SET, 0, 0, self._sent, attribute, 0, 0)
        mad += bytes(12) + struct.pack(">QHHQ", 0, 0, 0, mask) + record
        os.write(self._fd, header.ljust(_HEADER, b"\0") + mad.ljust(256, b"\0"))
        if not select.select([self._fd], [], [], 2 * _TIMEOUT_MS / 1000)[0]:
            raise TimeoutError(f"attribute {attribute:#x}: no answer")
        answer = os.read(self._fd, _HEADER + 256)
        status = struct.unpack_from("=I", answer, 4)[0], struct.unpack_from(">H", answer, 68)[0]
        if status != (0, 0):
            raise OSError(f"attribute {attribute:#x}: status {status}")


def main() -> None:
    """Register what the arguments name: ``service``, ``subscription``, ``member``."""
    gid = bytes.fromhex((_PORT / "gids/0").read_text().strip().replace(":", ""))
    client = SaClient()
    for what in sys.argv[1:]:
        if what == "service":
            name = SERVICE_NAME.encode().ljust(64, b"\0")
            record = struct.pack(">Q16sHHI16s", SERVICE_ID, gid, 0xFFFF, 0, LEASE_S, bytes(16))
            client.set(0x31, 0b101_0111, (record + name).ljust(176, b"\0"))
        elif what == "subscription":
            words = (0xFFFF, 0, 0, 1, 1, 0xFFFF, 0xFFFF, 1 << 8, 0x00FF_FFFF)
            client.set(0x03, 0, bytes(16) + struct.pack(">HHHBBHHII", *words))
        elif what == "member":
            record = GROUP + gid + bytes(16) + bytes([0x21, 0, 0, 0])
            client.set(0x38, 1 << 0 | 1 << 1 | 1 << 16, record)


if __name__ == "__main__":
    main()
