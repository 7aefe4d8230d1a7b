"""Digest every table of scenarios drawn at random, to compare the results of two builds.

Write the digests of one build, and compare those of another with them::

    python/tools/digest_tables.py --write before.json
    python/tools/digest_tables.py --compare before.json

The scenarios are a function of ``--seed`` and of this file alone. A change that must not move any
result gives the same digests, and so does another number of threads (``--threads``). A scenario
that a build refuses counts with the text of the refusal.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import silvan

FABRICS: list[dict[str, Any]] = [
    {"generator": "single-switch", "hosts": 6},
    {"generator": "xgft", "children": [3, 4], "parents": [1, 2]},
    {"generator": "k-ary-n-tree", "k": 2, "n": 3},
    {"generator": "chain", "switches": 3, "hosts-per-switch": 2, "routing": "min-hop"},
    {"generator": "ring", "switches": 4, "hosts-per-switch": 2, "routing": "min-hop"},
    {"generator": "mesh", "sizes": [3, 2], "hosts-per-switch": 2, "routing": "dimension-order"},
    {"generator": "torus", "sizes": [3, 3], "hosts-per-switch": 1, "routing": "dimension-order"},
    {
        "generator": "dragonfly",
        "routing": "group-minimal",
        "switches-per-group": 2,
        "hosts-per-switch": 2,
        "global-per-switch": 1,
    },
]
FIRST_SWITCH = {
    "single-switch": "switch-00",
    "xgft": "leaf-00",
    "k-ary-n-tree": "leaf-00",
    "chain": "switch-00",
    "ring": "switch-00",
    "mesh": "switch-0-0",
    "torus": "switch-0-0",
    "dragonfly": "group-00-switch-00",
}
SCHEMES = [
    *("none", "ib-cc", "ib-cc+pft", "pft", "ecn", "dcqcn"),
    *("timely", "hpcc", "swift", "nscc", "half", "pair-backpressure"),
]
# Settings that a scheme would take from the fabric, so that builds compute from equal ones.
SETTINGS: dict[str, dict[str, Any]] = {
    "ib-cc": {
        "switch": {"packet-size": 0},
        "adapter": {
            "ccti-increase": 1,
            "ccti-limit": 127,
            "ccti-min": 0,
            "ccti-timer": 150,
            "trigger-threshold": 0,
            "cct": {"shape": "linear", "slope": 1.0},
        },
    },
    "pft": {
        "threshold": "average",
        "enter": 592,
        "escape": 672,
        "interval": "random",
        "m": 18,
        "n": 0,
        "k": 0,
        "credit": "64 B",
    },
    "ecn": {"marking": "proposed-counters", "response": "lipd", "window": 1},
    "dcqcn": {
        "k-min": "5 kB",
        "k-max": "200 kB",
        "rate-ai": "40 Mbit/s",
        "rate-hai": "400 Mbit/s",
    },
    "timely": {
        "patched": False,
        "beta": 0.8,
        "t-low": "50 us",
        "t-high": "500 us",
        "min-rtt": "20 us",
        "delta": "10 Mbit/s",
        "min-rate": "10 Mbit/s",
    },
    "hpcc": {"base-rtt": "13 us", "telemetry": "0 B"},
    "nscc": {"base-rtt": "12 us"},
    "pair-backpressure": {"window": "64 KiB", "threshold": "64 KiB"},
}
OUTPUT_BUFFER = {"output-buffer": {"size": "16 KiB", "speedup": 2.0}}
EQUAL = {"sizes": {"fixed": "20 KiB"}}
PACES: list[dict[str, Any]] = [
    {"outstanding": 3, "sl": 1},
    {"outstanding": 1, "pause": "7 us"},
    {"pattern": "incast", "senders": 3, "interval": "30 us"},
]
ALLTOALL = {"kind": "alltoall", "bytes": "4 KiB", "iterations": 2}
ALLREDUCE = {"kind": "allreduce", "bytes": "64 KiB", "iterations": 2}


def drawn(rng: random.Random) -> dict[str, Any]:
    """Draw the sections of a scenario."""
    fabric = dict(rng.choice(FABRICS))
    torus, dragonfly = (fabric["generator"] == name for name in ("torus", "dragonfly"))
    if fabric["generator"] in {"xgft", "k-ary-n-tree"} and rng.random() < 0.2:
        fabric["path-choice"] = "adaptive"
    if dragonfly:
        fabric["path-choice"] = rng.choice(["valiant", "ugal-l", "ugal-g", "par"])
    if fabric["generator"] == "ring":
        fabric["allow-credit-loops"] = True
    scheme = rng.choice(SCHEMES)
    sections: dict[str, Any] = {
        "fabric": fabric,
        "link": {
            "width": "4x",
            "speed": rng.choice(["DDR", "QDR", "EDR", "HDR"]),
            "length": "2 m",
        },
        "switch": {
            "buffer": rng.choice(["16 KiB", "32 KiB", "64 KiB"]),
            "queueing": rng.choice(["voq", "fifo"]),
            "arbitration": rng.choice(["round-robin", "oldest-first"]),
        },
        "host": {"receive-buffer": "16 KiB"},
        "packet": {"mtu": rng.choice(["256 B", "1 KiB", "2 KiB"])},
        "vl": {"data-vls": 5 if dragonfly else 2 if torus else rng.choice([1, 1, 2])},
        "control": control(scheme),
        "traffic": traffic(rng),
        "probe": {
            "interval": "50 us",
            "ports": rng.random() < 0.5,
            "classes": rng.random() < 0.5,
            "latency": rng.choice(["class", "host", "off"]),
        },
        "run": {"duration": "300 us", "warm-up": "50 us", "seed": rng.randrange(1000)},
    }
    if sections["vl"]["data-vls"] == 2 and not torus:
        sections["vl"]["sl-to-vl"] = [0, 1] * 8
    if rng.random() < 0.3:
        sections["probe"]["trees"] = {"interval": "20 us", "threshold": "8 KiB"}
    if scheme in {"ib-cc", "ib-cc+pft"}:
        switch = {
            "threshold": rng.randrange(1, 16),
            "marking-rate": rng.choice([0, 3, 128]),
        }
        sections["control"]["ib-cc"]["switch"].update(switch)
        if rng.random() < 0.3:
            sections["control"]["ib-cc"]["switch"]["marking-rate"] = 128
            sections["control"]["dcms"] = {
                "interval": "40 us",
                "tick": "4 ns",
                "congestion-threshold": 100,
                "rate-reduction-threshold": 100,
                "utilization-change-threshold": 100,
                "low-duration": "100 us",
            }
        if rng.random() < 0.3:
            switch_name = FIRST_SWITCH[fabric["generator"]]
            sections["control"]["ib-cc"]["port"] = [{"switch": switch_name, **port_setting(rng)}]
            sections["control"]["ib-cc"]["change"] = [
                {"at": "80 us", **port_setting(rng)},
                {"at": "120 us", "ccti-timer": 20, "ccti-increase": 4, "sl": rng.randrange(2)},
            ]
    if rng.random() < 0.3:
        sections["link"]["flow-control"] = "pfc"
    if rng.random() < 0.4:
        limits = ["read-limit", "bypass-limit"] if sections["switch"]["queueing"] == "voq" else []
        sections["switch"].update(rng.choice([{one: 1} for one in limits] + [OUTPUT_BUFFER]))
    return sections


def control(scheme: str) -> dict[str, Any]:
    """Write a scheme with its settings."""
    parts = ("ib-cc", "pft") if scheme == "ib-cc+pft" else (scheme,)
    settings = {part: SETTINGS[part] for part in parts if part in SETTINGS}
    return {"scheme": scheme, **copy.deepcopy(settings)}


def port_setting(rng: random.Random) -> dict[str, Any]:
    """Draw two of the settings that single ports of a switch can have."""
    settings = {
        "threshold": 12,
        "packet-size": 20,
        "marking-rate": 2,
        "victim-mask": False,
        "credit-mask": True,
        "credit-threshold": 14,
        "credit-return-delay": 2.5,
    }
    return {name: settings[name] for name in sorted(rng.sample(sorted(settings), 2))}


def traffic(rng: random.Random) -> dict[str, Any]:
    """Draw one to three kinds of traffic."""
    kinds: dict[str, Any] = {
        "uniform": [{"load": rng.choice([0.2, 0.6, 1.0]), "sl": rng.choice([0, 1])}],
        "incast": [{"to": "host-0000", "load": rng.choice([0.3, 1.0])}],
        "permutation": [{"pattern": "shift", "shift": 1, "spacing": "periodic", "load": 0.5}],
        "flow": [{"from": "host-0001", "to": "host-0003", "bytes": "64 KiB"}],
        "flows": [{"sizes": "web-search", "load": 0.4}, {**EQUAL, **rng.choice(PACES)}],
        "sequence": [{"from": "host-0002", "to": ["host-0000", "host-0003"], "iterations": 2}],
        "nodes": {"v": 0.3, "c": 0.4, "b": 0.3, "p": 40, "hotspots": 1},
        "program": [{"name": "job", "background": True, **rng.choice([ALLTOALL, ALLREDUCE])}],
    }
    return {kind: kinds[kind] for kind in sorted(rng.sample(sorted(kinds), rng.randint(1, 3)))}


def digest(
    sections: dict[str, Any], ignored: Sequence[str] = (), threads: int = 1
) -> dict[str, str]:
    """Run a scenario and digest its tables, but for columns in ``ignored`` (``TABLE.COLUMN``)."""
    try:
        run = {**sections["run"], "threads": threads}
        result = silvan.run(silvan.Scenario(**{**sections, "run": run}))
    except silvan.SilvanError as error:
        return {"error": str(error)}
    digests = {}
    for name, table in sorted(result.tables.items()):
        without = [column for column in table.column_names if f"{name}.{column}" in ignored]
        table = table.drop_columns(without)
        state = hashlib.sha256(str(table.schema.remove_metadata()).encode())
        for column in table.columns:
            values = column.to_pylist()
            state.update(repr(values).encode())
        digests[name] = state.hexdigest()[:16]
    return digests


def main() -> int:
    """Write or compare digests."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200, help="number of scenarios")
    parser.add_argument("--seed", type=int, default=1, help="random seed of the scenarios")
    parser.add_argument(
        "--ignore", nargs="*", default=[], metavar="TABLE.COLUMN", help="columns to leave out"
    )
    parser.add_argument("--threads", type=int, default=1, help="threads of each run")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", type=Path, metavar="FILE", help="write the digests")
    action.add_argument("--compare", type=Path, metavar="FILE", help="compare with these digests")
    options = parser.parse_args()
    digests = []
    for number in range(options.count):
        rng = random.Random(f"{options.seed}/{number}")
        digests.append(digest(drawn(rng), options.ignore, options.threads))
    refused = sum("error" in tables for tables in digests)
    print(f"{len(digests)} scenarios, {refused} of them refused, {sum(map(len, digests))} digests")
    if options.write:
        options.write.write_text(json.dumps(digests, indent=1) + "\n")
        return 0
    before = json.loads(options.compare.read_text())
    if len(before) != len(digests):
        print(f"{options.compare} has {len(before)} scenarios", file=sys.stderr)
        return 2
    differing = 0
    for number, (old, new) in enumerate(zip(before, digests, strict=True)):
        for name in sorted(old.keys() | new.keys()):
            if old.get(name) != new.get(name):
                differing += 1
                print(f"scenario {number}: table {name} differs", file=sys.stderr)
    print(f"{differing} digests differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
