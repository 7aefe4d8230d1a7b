"""Print the instructions that `--record view` adds to a run of 648 hosts (needs valgrind)."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SCENARIO = Path(__file__).resolve().parents[2] / "studies" / "gran2012" / "table2.toml"
PROGRAM = """
import sys, silvan
from silvan.cli.options import view_keys
path, duration, scheme, recorded = sys.argv[1:]
settings = {"run.duration": duration, "probe.interval": "1 ms", "probe.latency": "class"}
settings["control.scheme"] = scheme
scenario = silvan.Scenario.from_file(path, overrides=settings)
keys = view_keys(scenario) if recorded == "view" else {}
silvan.run(scenario.override(keys))
"""
RUN = "silvan_sim::run"
PARTS = {
    "latencies by host": "host::sink::",
    "trees": "Simulation>::forest",
    "ports": "::read_ports",
    "tables": "measure::Measurement>::tables",
}


def instructions(duration: str, scheme: str, recorded: str) -> dict[str, int]:
    """Return the instructions of a run and of each function that it calls."""
    with tempfile.TemporaryDirectory() as folder:
        profile = f"{folder}/profile"
        words = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}", sys.executable]
        arguments = [str(SCENARIO), duration, scheme, recorded]
        subprocess.run([*words, "-c", PROGRAM, *arguments], check=True, capture_output=True)
        text = subprocess.run(
            ["callgrind_annotate", "--inclusive=yes", "--auto=no", "--threshold=100", profile],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    counts: dict[str, int] = {}
    for count, name in re.findall(r"^\s*([\d,]+)\s+\([^)]*\)\s+[^:\s]+:(.+?)(?: \[|$)", text, re.M):
        counts.setdefault(name, int(count.replace(",", "")))
    return counts


def total(counts: dict[str, int], part: str) -> int:
    """Add up the functions whose names hold a part; none of them calls another one."""
    return sum(count for name, count in counts.items() if part in name)


def main() -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--duration", default="100 ms", help="Simulated time.")
    parser.add_argument("--scheme", default="none", help="Congestion control.")
    options = parser.parse_args()
    plain, view = (
        instructions(options.duration, options.scheme, recorded) for recorded in ("", "view")
    )
    before, after = plain[RUN], view[RUN]
    print("| part | million instructions | of the run |\n|---|---|---|")
    print(f"| the run without `--record view` | {before / 1e6:.0f} | |")
    added = {name: total(view, part) - total(plain, part) for name, part in PARTS.items()}
    added["all that `--record view` adds"] = after - before
    for name, count in added.items():
        print(f"| {name} | {count / 1e6:.1f} | {count / before:+.1%} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
