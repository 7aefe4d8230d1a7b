"""Times of ``silvan whatif`` for fabrics."""

from __future__ import annotations

import json
import sys
import time

from silvan.bench.live import LiveBenchmark
from silvan.bench.studies import live_scenario
from silvan.child_processes import run_child
from silvan.errors import EmulationError
from silvan.scratch import scratch_folder

_FABRIC = live_scenario({"generator": "fat-tree-648"}).to_toml()


def whatif_seconds(fabric: str) -> float:
    """Return the seconds of ``silvan whatif`` with default options."""
    with scratch_folder("bench") as folder:
        file = folder / "fabric.toml"
        file.write_text(fabric)
        began = time.perf_counter()
        done = run_child([sys.executable, "-m", "silvan", "whatif", str(file), "--json"])
        seconds = time.perf_counter() - began
    if done.returncode != 0:
        raise EmulationError(f"silvan whatif has failed: {done.stderr.strip()}")
    if all(row["refused"] for row in json.loads(done.stdout)["rows"]):
        raise EmulationError("OpenSM refuses every engine")
    return seconds


WHATIF_BENCHMARKS = (
    LiveBenchmark(
        "whatif-648",
        "silvan whatif, 648 hosts: each routing engine, 1,000 permutations, a hotspot",
        "s",
        60.0,
        lambda: (whatif_seconds(_FABRIC), None),
    ),
)
