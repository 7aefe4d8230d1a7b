"""GPT-13B on 128 GPUs of a shared fabric: alone, next to checkpoints, and next to a second job.

32 servers of eight GPUs in two pods, rails of 400 Gbit/s, half as many cables between pods as
servers have. Each job has 16 servers drawn from both pods, tensor parallel ranks inside a server.
Meanwhile the first GPU of each of its servers writes 64 MiB to one host, again and again; or a
second job of the same size runs on the other 16 servers. Every packet is simulated.

    python studies/training/shared.py

prints a table: without and with congestion control the time of one step of the first job, the
share of it in which communication is exposed, and its ratio to the time alone without control.
The default is 4 of the 40 layers of GPT-13B.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from typing import TYPE_CHECKING, Any

import silvan

if TYPE_CHECKING:
    from collections.abc import Iterable

SERVERS = 32
GPUS = 8
STORAGE = "server-31-gpu-00"
CASES = ("alone", "checkpoint incast", "second job")


def placement() -> tuple[list[int], list[int]]:
    """Draw the servers of both jobs; the one with the storage is in the second half."""
    servers = list(range(SERVERS - 1))
    random.Random(1).shuffle(servers)
    half = SERVERS // 2
    return servers[:half], [*servers[half:], SERVERS - 1]


def job(name: str, servers: list[int], layers: int) -> dict[str, Any]:
    """Return a step of training on all GPUs of some servers."""
    return {
        "name": name,
        "kind": "training",
        "hosts": [f"server-{server:02}-gpu-{gpu:02}" for server in servers for gpu in range(GPUS)],
        "operations-per-second": 1.5e14,
        "model": {"layers": layers, "hidden": 5120, "sequence": 2048, "tensor": GPUS},
    }


def scenario(case: str, scheme: str, layers: int) -> silvan.Scenario:
    """Describe a case with a scheme."""
    first, second = placement()
    traffic: dict[str, Any] = {"program": [job("first", first, layers)]}
    if case == "second job":
        traffic["program"].append(job("second", second, layers))
    if case == "checkpoint incast":
        writers = [f"server-{server:02}-gpu-00" for server in first]
        traffic["flows"] = [
            {
                "name": "checkpoint",
                "pattern": "incast",
                "from": writers,
                "to": [STORAGE],
                "senders": len(writers),
                "interval": "20 ms",
                "sizes": {"fixed": "64 MiB"},
            }
        ]
    return silvan.Scenario(
        name=f"gpt-13b {case}",
        fabric={
            "generator": "rail-optimised",
            "servers": SERVERS,
            "servers-per-pod": SERVERS // 2,
            "gpus-per-server": GPUS,
            "spines": SERVERS // 4,
            "server-link": {"rate": "3.6 Tbit/s", "latency": "100 ns"},
        },
        link={"width": "4x", "speed": "NDR", "length": "2 m"},
        packet={"mtu": "4 KiB"},
        traffic=traffic,
        control={"scheme": scheme},
        probe={"interval": "20 s", "latency": "off"},
        run={"duration": "20 s"},
    )


def put(cells: Iterable[str]) -> None:
    """Print a row of the table."""
    sys.stdout.write(f"| {' | '.join(cells)} |\n")
    sys.stdout.flush()


def main() -> None:
    """Run all cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--layers",
        type=int,
        default=4,
        help="Layers of the model (default: %(default)s; GPT-13B has 40, which take ten times as "
        "long).",
    )
    parser.add_argument(
        "--schemes",
        default="none,ib-cc,dcqcn",
        help="Schemes of congestion control, separated by commas.",
    )
    options = parser.parse_args()
    alone = None
    put(("load", "congestion control", "step, ms", "exposed, %", "ratio", "M packet-hops", "s"))
    put(["---"] * 7)
    for case in CASES:
        for scheme in options.schemes.split(","):
            start = time.process_time()
            result = silvan.run(scenario(case, scheme, options.layers))
            row = result.tables["programs"].to_pylist()[0]
            step = (row["end_ps"] - row["start_ps"]) / 1e9
            alone = alone or step
            exposed = 100 * row["exposed_share"]
            hops = result.summary["packet_hops"] / 1e6
            cells = (f"{step:.1f}", f"{exposed:.1f}", f"{step / alone:.2f}", f"{hops:,.0f}")
            seconds = f"{time.process_time() - start:.0f}"
            put((case, scheme, *cells, seconds))


if __name__ == "__main__":
    main()
