"""InfiniBand's congestion control on today's links: its defaults, none, and Table I of gran2012.

    python studies/ib-cc/defaults.py

prints a table: for each fabric and each settings the receive rate of the mean victim, and the rate
of the mean root of congestion, as means over the seeds with their standard deviations. Rates are
those of the second half of a run.

The fabrics are the example `victim` on links of four generations; hosts under uniform traffic of
half load beside an incast of 32 hosts, in a leaf-spine fabric of 256; and eight forests in the fat
tree of 648 hosts. All links have 4 KiB packets.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any

import silvan
from silvan.results.receive_rates import delivered

SETTINGS = ("none", "ib-cc", "ib-cc+table1")
LINKS = ("DDR", "EDR", "HDR", "NDR")


def chain(speed: str, duration: str) -> silvan.Scenario:
    """Describe the example `victim`."""
    return silvan.Scenario(
        name=f"victim, {speed}",
        fabric={
            "generator": "chain",
            "switches": 2,
            "hosts-per-switch": 4,
            "routing": "min-hop",
        },
        link={"speed": speed},
        traffic={
            "incast": [
                {"from": [f"host-000{host}" for host in (0, 1, 5, 6)], "to": "host-0004"},
            ],
            "flow": [{"from": "host-0002", "to": "host-0007"}],
        },
        **common(duration),
    )


def leaf_spine(duration: str) -> silvan.Scenario:
    """Describe 256 hosts with uniform traffic of half load, and 32 of them that send to one."""
    return silvan.Scenario(
        name="leaf-spine, 256 hosts",
        fabric={"generator": "leaf-spine", "leaf-hosts": [16] * 16, "spine-cables": [1] * 16},
        link={"speed": "NDR"},
        traffic={
            "uniform": [{"load": 0.5}],
            "incast": [
                {"from": [f"host-{host:04}" for host in range(7, 256, 8)], "to": "host-0000"}
            ],
        },
        **common(duration),
    )


def tree(duration: str) -> silvan.Scenario:
    """Describe the fat tree of gran2012, where 80 % of 648 hosts send to eight of them."""
    return silvan.Scenario(
        name="fat tree, 648 hosts",
        fabric={"generator": "fat-tree-648"},
        link={"speed": "NDR"},
        traffic={"nodes": {"v": 0.2, "c": 0.8, "hotspots": 8}},
        **common(duration),
    )


def common(duration: str) -> dict[str, Any]:
    """State what all fabrics have in common."""
    return {
        "packet": {"mtu": "4 KiB"},
        "probe": {"interval": "100 us"},
        "run": {"duration": duration},
    }


def rates(result: silvan.Result) -> tuple[float, float]:
    """Give the receive rates of the mean victim and of the mean root, in Gbit/s."""
    times_ps, sums = delivered(result)
    half = len(times_ps) // 2
    seconds = (times_ps[-1] - times_ps[half - 1]) / 1e12
    by_host = sums[half:].sum(axis=0) * 8 / seconds / 1e9
    roots = roots_of(result)
    hosts = result.hosts["name"].to_pylist()
    received = {name: float(rate) for name, rate in zip(hosts, by_host, strict=True)}
    victims = [rate for name, rate in received.items() if rate and name not in roots]
    return statistics.fmean(victims), statistics.fmean(received[name] for name in roots)


def roots_of(result: silvan.Result) -> set[str]:
    """Name the hosts that an incast or a role of gran2012 sends to."""
    named = {entry["to"] for entry in result.scenario.to_dict()["traffic"].get("incast", [])}
    roles = zip(result.hosts["name"].to_pylist(), result.hosts["role"].to_pylist(), strict=True)
    return named | {name for name, role in roles if role.startswith("hotspot")}


def measure(scenario: silvan.Scenario, seeds: int) -> Mapping[str, tuple[list[float], list[float]]]:
    """Run a fabric with all settings; give the rates of victims and of roots by seed."""
    found = {}
    for name in SETTINGS:
        one = scenario.override({"control.scheme": name})
        pairs = [rates(silvan.run(one, seed=1 + seed)) for seed in range(seeds)]
        found[name] = ([victims for victims, _ in pairs], [roots for _, roots in pairs])
    return found


def put(cells: Iterable[str]) -> None:
    """Print a row of the table."""
    sys.stdout.write(f"| {' | '.join(cells)} |\n")
    sys.stdout.flush()


def shown(values: list[float]) -> str:
    """Write a mean with its standard deviation."""
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.fmean(values):.2f} ± {spread:.2f}"


def main() -> None:
    """Run all fabrics and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10, help="Seeds of each, by default 10.")
    parser.add_argument(
        "--short",
        action="store_true",
        help="Run a tenth of the time: how the settings begin, not how they settle.",
    )
    options = parser.parse_args()
    durations = ("5 ms", "400 us", "200 us") if options.short else ("50 ms", "4 ms", "2 ms")
    chains = [chain(speed, durations[0]) for speed in LINKS]
    fabrics = [*chains, leaf_spine(durations[1]), tree(durations[2])]
    put(("fabric", "settings", "victims, Gbit/s", "roots, Gbit/s", "victims over none", "s"))
    put(["---"] * 6)
    for scenario in fabrics:
        start = time.process_time()
        found = measure(scenario, options.seeds)
        spent = time.process_time() - start
        none = statistics.fmean(found["none"][0])
        for name, (victims, roots) in found.items():
            ratio = f"{statistics.fmean(victims) / none:.2f}"
            seconds = f"{spent:.0f}" if name == SETTINGS[-1] else ""
            put((scenario.name, f"`{name}`", shown(victims), shown(roots), ratio, seconds))


if __name__ == "__main__":
    main()
