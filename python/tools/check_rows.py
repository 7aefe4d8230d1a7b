"""Reproduce the cheap experiments of each paper, and fail where a row differs from its record."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from check_papers import HEADER, RECORD, Record, as_toml, measured, reproduce

QUICK_RECORD = RECORD.with_name("quick.toml")
QUICK_HEADER = """\
# Rows of experiments in their quick form, which reproduces nothing.
# Written by `make check-rows RECORD=1`; `make check-rows` compares with it.
"""
_SAME = 1e-5


@dataclass(frozen=True, slots=True)
class Cheap:
    """An experiment of seconds; an empty prefix means all."""

    paper: str
    prefix: str = ""
    quick: bool = False

    def options(self) -> list[str]:
        """List the options of the command."""
        only = ["--only", self.prefix] if self.prefix else []
        return [*only, *(["--quick"] if self.quick else [])]

    def manifest(self, out: Path) -> Path:
        """Name the file of its numbers."""
        folder = out / (f"{self.paper}-quick" if self.quick else self.paper)
        return folder / ("-".join(filter(None, ("reproduction", self.prefix))) + ".json")

    def record(self) -> Path:
        """Name the file of its record."""
        return QUICK_RECORD if self.quick else RECORD

    def write(self, record: Mapping[str, Record]) -> None:
        """Write the record."""
        header = QUICK_HEADER if self.quick else HEADER
        text = as_toml(record).replace(HEADER, header, 1)
        self.record().write_text(text, encoding="utf-8")


CHEAP = (
    Cheap("gran2010"),
    Cheap("gran2012", "table2"),
    Cheap("mizero2017", "exp1", quick=True),
    Cheap("pft2021", "fig1"),
    Cheap("santos2003", "fig2"),
    Cheap("santos2003", "fig4"),
    Cheap("santos2003", "fig5"),
)


def differences(recorded: Record, found: Record) -> Iterator[str]:
    """List the rows that are not as they were recorded."""
    for name, new in found.items():
        old = recorded.get(name)
        if old is None:
            yield f"{name}: not recorded"
        elif old["within_tolerance"] != new["within_tolerance"]:
            was, now = old["within_tolerance"], new["within_tolerance"]
            yield f"{name}: within its tolerance {was}, now {now}"
        elif not math.isclose(old.get("measured", 0.0), new.get("measured", 0.0), rel_tol=_SAME):
            yield f"{name}: {old.get('measured')} recorded, now {new.get('measured')}"


def read(file: Path) -> dict[str, Record]:
    """Read a record; one that does not exist is empty."""
    content: dict[str, Any] = tomllib.loads(file.read_text("utf-8")) if file.is_file() else {}
    return content


def find(one: Cheap, out: Path, deadline: float) -> tuple[Record, str]:
    """Run an experiment; return its rows, and what went wrong."""
    failure = reproduce(one.paper, one.options(), out, deadline)
    if failure:
        return {}, failure
    manifest: Mapping[str, Any] = json.loads(one.manifest(out).read_text("utf-8"))
    return measured(manifest), ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the cheap rows, or record them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="rewrite these rows of the record")
    parser.add_argument("--out", type=Path, default=Path("out"), metavar="DIR")
    parser.add_argument("--minutes", type=float, default=10, help="time limit of all together")
    chosen = parser.parse_args(arguments)

    deadline = time.monotonic() + 60 * chosen.minutes
    failures = []
    for one in CHEAP:
        name = " ".join([one.paper, *one.options()])
        found, failure = find(one, chosen.out, deadline)
        if failure:
            failures.append(f"{name}: {failure}")
            continue
        record = read(one.record())
        rows = record.setdefault(one.paper, {})
        if chosen.record:
            rows.update(found)
            one.write(record)
        failures += [f"{name}: {line}" for line in differences(rows, found)]
    for line in failures:
        print(f"error: {line}", file=sys.stderr)
    if failures:
        print("hint: make check-papers RECORD=1, then make pages", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
