"""Reproduce papers at their defaults, and compare the measured numbers with the record."""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from silvan.reproduce import papers

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "docs" / "reproductions" / "record.toml"
HEADER = """\
# Measured value of each target, and if it is within its tolerance in the paper's averaging window.
# Written by `make check-papers RECORD=1`; `make check-papers` compares with it.
"""
_MOVED = 0.01

Record = dict[str, dict[str, Any]]
"""By target: ``within_tolerance``, and ``measured`` of a number."""


def measured(reproduction: Mapping[str, Any]) -> Record:
    """Take what the record contains from the manifest of a reproduction."""
    return {
        row["id"]: {"within_tolerance": row["within_tolerance"]}
        | ({} if row["measured"] is None else {"measured": float(f"{row['measured']:.6g}")})
        for one in reproduction["experiments"]
        for row in one["targets"]
    }


def regressions(recorded: Record, found: Record) -> Iterator[str]:
    """List the targets that were within their tolerance and are not any more."""
    for name, old in recorded.items():
        new = found.get(name)
        if new is None:
            yield f"{name}: recorded, but not measured"
        elif old["within_tolerance"] and not new["within_tolerance"]:
            values = f" ({old['measured']:g}, now {new['measured']:g})" if "measured" in old else ""
            yield f"{name}: no longer within its tolerance{values}"


def changes(recorded: Record, found: Record) -> Iterator[str]:
    """List what differs from the record without failing the check."""
    for name, new in found.items():
        old = recorded.get(name)
        if old is None:
            yield f"{name}: not recorded yet"
            continue
        if new["within_tolerance"] and not old["within_tolerance"]:
            yield f"{name}: within its tolerance now"
        before, after = old.get("measured", 0.0), new.get("measured", 0.0)
        if abs(after - before) > _MOVED * abs(before):
            yield f"{name}: {before:g} recorded, now {after:g}"


def as_toml(record: Mapping[str, Record]) -> str:
    """Write a record as TOML."""
    lines = [HEADER]
    for paper, targets in sorted(record.items()):
        lines.append(f"[{paper}]")
        for name, entry in targets.items():
            number = f", measured = {entry['measured']!r}" if "measured" in entry else ""
            holds = str(entry["within_tolerance"]).lower()
            lines.append(f'"{name}" = {{ within_tolerance = {holds}{number} }}')
        lines.append("")
    return "\n".join(lines)


def reproduce(paper: str, options: Sequence[str], out: Path, deadline: float) -> str:
    """Run the command of a paper, and say what went wrong, if anything did."""
    words = ["reproduce", paper, "--out", str(out), *options]
    print(f"silvan {' '.join(words)}", flush=True)
    command = [sys.executable, "-m", "silvan", *words]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            status = process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            process.wait()
            return "stopped at the time limit; finished runs are kept, repeat the command"
        except KeyboardInterrupt:
            # The terminal has sent it to the command, too.
            process.wait()
            raise
    return f"exit status {status}" if status else ""


def check(
    paper: str, recorded: Record, options: Sequence[str], out: Path, deadline: float
) -> tuple[Record, list[str]]:
    """Reproduce a paper; return what was measured, and what fails the check."""
    failure = reproduce(paper, options, out, deadline)
    if failure:
        return {}, [failure]
    folder = out / (f"{paper}-quick" if "--quick" in options else paper)
    found = measured(json.loads((folder / "reproduction.json").read_text("utf-8")))
    if not recorded:
        return found, ["no record; `make check-papers RECORD=1` writes it"]
    for line in changes(recorded, found):
        print(f"{paper}: {line}")
    return found, list(regressions(recorded, found))


def main(arguments: Sequence[str] | None = None) -> int:
    """Check papers, or write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("papers", nargs="*", default=papers(), help="by default all")
    parser.add_argument("--record", action="store_true", help="rewrite the record")
    parser.add_argument("--record-file", type=Path, default=RECORD, metavar="FILE")
    parser.add_argument("--out", type=Path, default=Path("out"), metavar="DIR")
    parser.add_argument("--minutes", type=float, default=60, help="time limit of all together")
    parser.add_argument("--quick", action="store_true", help="short runs, to try this tool")
    chosen = parser.parse_args(arguments)

    text = chosen.record_file.read_text("utf-8") if chosen.record_file.is_file() else ""
    record: dict[str, Record] = tomllib.loads(text)
    options = ["--quick"] if chosen.quick else []
    start = time.monotonic()
    failures = []
    for paper in chosen.papers:
        recorded = record.get(paper, {})
        deadline = start + 60 * chosen.minutes
        found, wrong = check(paper, recorded, options, chosen.out, deadline)
        if chosen.record and found:
            for line in wrong:
                print(f"{paper}: {line}")
            record[paper], wrong = found, []
            # At once, so that an interruption loses nothing.
            chosen.record_file.write_text(as_toml(record), encoding="utf-8")
        failures += [f"{paper}: {line}" for line in wrong]
        print(f"{paper}: {'failed' if wrong else 'ok'}, {time.monotonic() - start:.0f} s so far")
    for line in failures:
        print(f"error: {line}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
