"""Ask an agent of Performance Co-Pilot for values, in place of its daemon.

The agent reads and writes PDUs (protocol data units) on its standard input and output: words of
four bytes in network order, of which the first three are length, type and sender.
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Sequence
from types import TracebackType

_RESULT, _PROFILE, _FETCH, _CREDS, _ERROR = 0x7001, 0x7002, 0x7003, 0x700C, 0x7000
_VERSION = 2
_CREDENTIALS = 1 << 24 | _VERSION << 16
_DOMAIN_BITS, _CLUSTER_BITS = 22, 10

Pmid = tuple[int, int]
"""Cluster and item of a metric."""


class PmdaClient:
    """Client of an agent of this domain, which ends with the block; pipes are of bytes."""

    def __init__(self, process: subprocess.Popen[bytes], domain: int) -> None:
        self._process, self._domain = process, domain

    def __enter__(self) -> PmdaClient:
        kind, _ = self._receive()
        if kind != _CREDS:
            raise OSError(f"the agent starts with PDU {kind:#x}")
        self._send(_CREDS, struct.pack(">iI", 1, _CREDENTIALS))
        self._send(_PROFILE, struct.pack(">4i", 0, 0, 0, 0))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def fetch(self, metrics: Sequence[Pmid]) -> list[list[bytes]]:
        """Return the values of all instances of each metric, as bytes."""
        numbers = [
            self._domain << _DOMAIN_BITS | cluster << _CLUSTER_BITS | item
            for cluster, item in metrics
        ]
        body = struct.pack(">iiii", 0, 0, 0, len(numbers))
        self._send(_FETCH, body + struct.pack(f">{len(numbers)}I", *numbers))
        kind, answer = self._receive()
        if kind != _RESULT:
            raise OSError(f"the agent answers with PDU {kind:#x}")
        at = 12
        values = []
        for _ in numbers:
            _, count = struct.unpack_from(">Ii", answer, at)
            if count < 0:
                raise OSError(f"the agent has no value: error {count}")
            at += 8
            found = []
            if count:
                (by_pointer,) = struct.unpack_from(">i", answer, at)
                at += 4
                for _ in range(count):
                    _, value = struct.unpack_from(">iI", answer, at)
                    at += 8
                    found.append(_block(answer, value) if by_pointer else value.to_bytes(4, "big"))
            values.append(found)
        return values

    def _send(self, kind: int, body: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(struct.pack(">III", 12 + len(body), kind, 0) + body)
        self._process.stdin.flush()

    def _receive(self) -> tuple[int, bytes]:
        assert self._process.stdout is not None
        header = self._process.stdout.read(12)
        if len(header) < 12:
            raise OSError(f"the agent has ended with status {self._process.wait()}")
        length, kind, _ = struct.unpack(">III", header)
        body = self._process.stdout.read(length - 12)
        if kind == _ERROR:
            raise OSError(f"the agent reports error {struct.unpack('>i', body[:4])[0]}")
        return kind, body


def _block(answer: bytes, offset: int) -> bytes:
    start = 4 * offset - 12
    length = struct.unpack_from(">I", answer, start)[0] & 0xFF_FFFF
    return answer[start + 4 : start + length]
