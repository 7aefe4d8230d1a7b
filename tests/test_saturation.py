"""Saturated fabrics deliver what closed forms say."""

from __future__ import annotations

from typing import Any

import pytest

import silvan
from tests.conftest import ddr_scenario

LONG = {"warm-up": "1 ms", "duration": "2 ms"}


def received(fabric: dict[str, object], shift: int, lanes: int = 1) -> float:
    """Mean receive rate as a part of the link, where each host sends to the one `shift` on."""
    return received_of(fabric, {"permutation": [{"pattern": "shift", "shift": shift}]}, lanes)


def received_of(
    fabric: dict[str, Any],
    traffic: dict[str, Any],
    lanes: int = 1,
    switch: dict[str, Any] | None = None,
    run: dict[str, Any] | None = None,
) -> float:
    """Mean receive rate of all hosts as a part of the link."""
    scenario = ddr_scenario(
        fabric=fabric,
        link={"speed": "DDR", "length": "1 m"},
        packet={"mtu": "2 KiB", "header": "0 B"},
        host={"injection-rate": "16 Gbit/s", "sink-rate": "unlimited"},
        switch=switch or {},
        vl={"data-vls": lanes},
        traffic=traffic,
        run=run or {"warm-up": "200 us", "duration": "600 us"},
    )
    result = silvan.run(scenario)
    hosts = result.hosts.to_pylist()
    delivered = sum(row["delivered_bytes"] for row in hosts) / len(hosts)
    # DDR carries 16 Gbit/s of data.
    return float(delivered * 8 / (16 * (scenario.duration_ps - scenario.warm_up_ps) / 1000))


@pytest.mark.parametrize(
    ("fabric", "shift", "expected"),
    [
        # All hosts of a switch send to the next switch of their row, over its K cables.
        ({"generator": "hyper-x", "sizes": [6], "hosts-per-switch": 4}, 4, 1 / 4),
        ({"generator": "hyper-x", "sizes": [6], "cables": [3], "hosts-per-switch": 3}, 3, 1),
        # Tornado: halfway round a ring of 5 all go up, and each cable has two switches' packets.
        ({"generator": "torus", "sizes": [5], "hosts-per-switch": 1}, 2, 1 / 2),
    ],
    ids=["hyper-x", "parallel", "tornado"],
)
def test_permutations_have_the_rate_of_their_fullest_cable(
    fabric: dict[str, object], shift: int, expected: float
) -> None:
    assert received(fabric, shift, lanes=2) == pytest.approx(expected, rel=0.02)


def transposed(side: int, hosts: int) -> list[dict[str, object]]:
    """Hosts of switch (i, j) send to those of (j, i), those of the diagonal nothing."""
    return [
        {
            "from": f"host-{hosts * (i + side * j) + host:04}",
            "to": f"host-{hosts * (j + side * i) + host:04}",
        }
        for j in range(side)
        for i in range(side)
        for host in range(hosts)
        if i != j
    ]


@pytest.mark.parametrize(
    ("fabric", "side", "hosts", "of_senders"),
    [
        # Along each dimension, the hosts of a switch have a separate cable.
        ({"generator": "hyper-x", "sizes": [4, 4], "hosts-per-switch": 3}, 4, 3, 1 / 3),
        # Two hosts share the cable into the switch of the diagonal, and the one out of it.
        ({"generator": "torus", "sizes": [5, 5], "hosts-per-switch": 1}, 5, 1, 1 / 2),
    ],
    ids=["hyper-x", "torus"],
)
def test_transposes_have_the_rate_of_their_fullest_cable(
    fabric: dict[str, object], side: int, hosts: int, of_senders: float
) -> None:
    """Oracle: the most hosts on a cable, each dimension after the other."""
    expected = of_senders * (1 - 1 / side)
    traffic = {"flow": transposed(side, hosts)}
    assert received_of(fabric, traffic, lanes=2) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(
    "fabric",
    [
        {"generator": "single-switch", "hosts": 16},
        {"generator": "k-ary-n-tree", "k": 4, "n": 2},
        {"generator": "leaf-spine", "leaf-hosts": [4] * 4, "spine-cables": [2, 2]},
        {"generator": "hyper-x", "sizes": [4, 4], "hosts-per-switch": 2},
    ],
    ids=["switch", "tree", "leaf-spine", "hyper-x"],
)
def test_uniform_load_is_delivered_at_the_rate_of_the_link(fabric: dict[str, object]) -> None:
    """Oracle: all cables can carry what hosts send uniformly at the rate of their links."""
    traffic = {"uniform": [{"load": "saturating"}]}
    rate = received_of(fabric, traffic, switch={"buffer": "512 KiB"}, run=LONG)
    assert rate == pytest.approx(1, rel=0.02)


@pytest.mark.slow
def test_paths_through_a_dragonfly_carry_what_closed_forms_say() -> None:
    """Hosts of each group send to the next: a = 4 switches, p = h = 2, g = a h + 1 = 9 groups.

    By the tables a group's a p hosts share one cable: 1 / (a h). Over random hosts they share all
    cables, each of which is used by 2 / g of two groups' hosts: at most g / (2 a p), 0.5 for many
    groups (J. Kim, W. J. Dally, S. Scott, D. Abts, "Technology-driven, highly-scalable dragonfly
    topology", ISCA 2008, section 4.2).
    """
    fabric = {
        "generator": "dragonfly",
        "switches-per-group": 4,
        "hosts-per-switch": 2,
        "global-per-switch": 2,
        "routing": "group-minimal",
    }
    loads: dict[str, dict[str, Any]] = {
        "adversarial": {"permutation": [{"pattern": "shift", "shift": 8}]},
        "uniform": {"uniform": [{"load": "saturating"}]},
    }
    rates = {
        (name, choice): received_of({**fabric, "path-choice": choice}, traffic, lanes=5)
        for name, traffic in loads.items()
        for choice in ("table", "valiant", "ugal-l", "ugal-g", "par")
    }
    assert rates["adversarial", "table"] == pytest.approx(1 / 8, rel=0.02)
    assert 0.98 / 2 <= rates["adversarial", "valiant"] <= 9 / 16
    # Half of the way is wasted.
    assert rates["uniform", "valiant"] == pytest.approx(9 / 16, rel=0.06)
    for name in loads:
        better = max(rates[name, "table"], rates[name, "valiant"])
        for choice in ("ugal-l", "ugal-g", "par"):
            assert rates[name, choice] >= 0.95 * better, (name, choice, rates)
