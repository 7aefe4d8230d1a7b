"""Leaps over what repeats: results do not depend on them, and the command line speaks of them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import silvan
from tests.conftest import Command

if TYPE_CHECKING:
    from collections.abc import Iterator

EXCHANGE = """
name = "exchange"
[fabric]
generator = "xgft"
children = [4, 4]
parents = [1, 4]
[[traffic.program]]
name = "exchange"
kind = "alltoall"
algorithm = "pairwise"
bytes = "1 MiB"
[run]
duration = "20 ms"
"""


def exchange(setting: str, **overrides: object) -> silvan.Result:
    """Run the exchange with a setting of fast-forward."""
    scenario = silvan.Scenario.from_toml(EXCHANGE)
    return silvan.run(scenario.override({"run.fast-forward": setting, **overrides}))


def test_results_do_not_depend_on_it() -> None:
    """Oracle: the run that simulates each packet; at most 100 packets of a message are left."""
    with_leaps, without = exchange("auto"), exchange("off")
    for name, table in without.tables.items():
        assert table.equals(with_leaps.tables[name]), name
    summary, other = with_leaps.summary, without.summary
    assert summary["packet_hops"] == other["packet_hops"]
    assert summary["delivered_packets"] == other["delivered_packets"]
    assert summary["hash"] == other["hash"]
    assert other["leapt_packet_hops"] == 0
    messages = 16 * 15
    most_hops = 4
    left = summary["packet_hops"] - summary["leapt_packet_hops"]
    assert left < 100 * messages * most_hops
    assert summary["leapt_packet_hops"] > summary["packet_hops"] / 2


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        ({"control.scheme": "dcqcn"}, "the run has congestion control other than ib-cc"),
        ({"link.flow-control": "pfc"}, "links have PFC"),
        ({"fabric.path-choice": "adaptive"}, "switches choose among paths"),
        ({"run.threads": 2}, "the run has several threads"),
        ({"traffic.uniform": [{"load": 0.1}]}, "the traffic is not programs alone"),
        ({"switch.queueing": "fifo"}, "outputs of a switch depend on each other"),
        ({"switch.latency": "1 ns", "switch.credit-delay": "1 ns"}, "event by event"),
    ],
)
def test_what_cannot_leap_says_why(overrides: dict[str, object], reason: str) -> None:
    """Each reason is that of the run, which leaps over nothing."""
    summary = exchange("on", **overrides).summary
    assert reason in summary["no_leaps"]
    assert summary["leapt_packet_hops"] == 0


def test_the_command_prints_the_share(tmp_path: Path, command: Command) -> None:
    """The command prints the share that is leapt over once, and the reason only if requested."""
    path = tmp_path / "exchange.toml"
    path.write_text(EXCHANGE)
    summary = exchange("auto").summary
    share = summary["leapt_packet_hops"] / summary["packet_hops"]
    auto = command("run", path)
    assert f"fast-forward: {share:.1%} of the packet-hops repeat others" in auto.stderr
    controlled = ("run", path, "--scheme", "dcqcn")
    assert "fast-forward" not in command(*controlled).stderr
    asked = command(*controlled, "--set", "run.fast-forward=on").stderr
    assert asked.count("run.fast-forward has no effect: the run has congestion control other than ib-cc") == 1
    wrong = command("run", path, "--set", "run.fast-forward=maybe")
    assert wrong.status == 2
    assert "run.fast-forward" in wrong.stderr


def driven(setting: str, seed: int) -> Iterator[object]:
    """Send long messages at odd instants, and give arrivals and counters."""
    scenario = silvan.Scenario(
        fabric={"generator": "xgft", "children": [4, 3], "parents": [1, 2]},
        run={"fast-forward": setting},
    )
    net = silvan.Network(scenario)
    draw = random.Random(seed)
    for tag in range(60):
        if draw.random() < 0.8:
            src, dst = draw.sample(range(12), 2)
            net.send(src, dst, draw.choice([1, 70_000, 1 << 20, 3_000_001]), tag=tag)
        yield from net.run_until(net.now + draw.choice([1, 77_777, 5_000_003, 90_000_000]))
        yield net.now, [net.host_counters(host) for host in range(12)]
    yield list(net.run_until())
    yield net.now, net.totals()


@pytest.mark.parametrize("seed", range(8))
def test_a_driven_run_does_not_depend_on_it(seed: int) -> None:
    """Messages start within other messages' periods. Oracle: the run that simulates each packet."""
    for with_leaps, without in zip(driven("auto", seed), driven("off", seed), strict=True):
        assert with_leaps == without
