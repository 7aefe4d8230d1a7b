"""Messages of the live page, read as the page reads them."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np

from silvan.viewer.samples import Column


def unpacked(data: bytes) -> tuple[dict[str, Any], dict[str, Column]]:
    """Read a message: its header and its columns."""
    (length,) = struct.unpack_from("<I", data)
    header: dict[str, Any] = json.loads(data[4 : 4 + length])
    first = -(-(4 + length) // 8) * 8
    columns: dict[str, Column] = {
        name: np.frombuffer(data, f"<{kind[0]}{int(kind[1:]) // 8}", count, first + start)
        for name, (kind, start, count) in header.pop("columns").items()
    }
    return header, columns
