"""Saturated fabrics deliver what closed forms say."""

from __future__ import annotations

import pytest

import silvan


def received(fabric: dict[str, object], shift: int, lanes: int = 1) -> float:
    """Mean receive rate as a part of the link, where each host sends to the one `shift` on."""
    scenario = silvan.Scenario(
        fabric=fabric,
        link={"speed": "DDR", "length": "1 m"},
        packet={"mtu": "2 KiB", "header": "0 B"},
        host={"injection-rate": "16 Gbit/s", "sink-rate": "unlimited"},
        vl={"data-vls": lanes},
        traffic={"permutation": [{"pattern": "shift", "shift": shift}]},
        run={"warm-up": "200 us", "duration": "600 us"},
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
