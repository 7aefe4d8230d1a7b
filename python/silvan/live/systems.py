"""Operating systems, and what each of them can run."""

from __future__ import annotations

import sys

from silvan.errors import UnsupportedSystemError


def require_linux(what: str) -> None:
    """Check that this is Linux."""
    if sys.platform != "linux":
        raise UnsupportedSystemError(
            f"{what} needs Linux, and this is {sys.platform}",
            hint="simulations, sweeps and figures work on this system",
        )
