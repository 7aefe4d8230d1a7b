"""Compare two wheels byte by byte, and name the files that differ."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path


def differences(one: Path, other: Path) -> Iterator[str]:
    """List what differs between two archives: files, their contents, times and modes."""
    with zipfile.ZipFile(one) as first, zipfile.ZipFile(other) as second:
        names = [set(archive.namelist()) for archive in (first, second)]
        for name in sorted(names[0] ^ names[1]):
            yield f"{name}: only in {one if name in names[0] else other}"
        for name in sorted(names[0] & names[1]):
            entries = [archive.getinfo(name) for archive in (first, second)]
            if first.read(name) != second.read(name):
                yield f"{name}: contents"
            elif entries[0].date_time != entries[1].date_time:
                yield f"{name}: time"
            elif entries[0].external_attr != entries[1].external_attr:
                yield f"{name}: mode"
        if first.namelist() != second.namelist():
            yield "order of the files"


def main() -> int:
    """Compare the two files of the command line."""
    one, other = (Path(name) for name in sys.argv[1:])
    if one.read_bytes() == other.read_bytes():
        print(f"{one.name}: equal")
        return 0
    for line in differences(one, other):
        print(line, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
