"""Names of nodes for programs that allow letters, digits, dots, hyphens and underscores only."""

from __future__ import annotations

import re
from collections.abc import Iterable

from silvan.errors import SilvanError, shown

_OTHER = re.compile(r"[^A-Za-z0-9._-]+")
_ADAPTER_PORT = re.compile(r"/P\d+$")


def plain(name: str) -> str:
    """Return a name with an underscore in place of each run of other characters.

    >>> plain("MF0;spine:SX6036/U1")
    'MF0_spine_SX6036_U1'
    """
    return _OTHER.sub("_", name).strip("_") or "_"


def computer(name: str) -> str:
    """Return the name of the computer that has an adapter: the first word of the adapter's name.

    >>> computer("node-1 mlx5_0"), computer("Hca1/P2")
    ('node-1', 'Hca1')
    """
    words = _ADAPTER_PORT.sub("", name).split()
    return plain(words[0] if words else name)


def plain_names(names: Iterable[str]) -> dict[str, str]:
    """Return the plain name of each switch."""
    taken: dict[str, str] = {}
    for name in names:
        first = taken.setdefault(plain(name), name)
        if first != name:
            raise SilvanError(
                f"switches {shown(first)} and {shown(name)} have the same name"
                f" {shown(plain(name))} in letters, digits, dots, hyphens and underscores",
                "rename one of them in the fabric's file",
            )
    return {name: short for short, name in taken.items()}
