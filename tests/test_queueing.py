"""Order of reading the input buffers of a switch, against the theory of input-queued switches."""

from __future__ import annotations

import math

import pytest

import silvan

HOSTS = 32

SATURATED = silvan.Scenario.from_toml(
    f"""
    [fabric]
    generator = "single-switch"
    hosts = {HOSTS}

    [link]
    speed = "DDR"

    [packet]
    header = "0 B"
    mtu = "2 KiB"

    [switch]
    buffer = "64 KiB"

    [host]
    receive-buffer = "16 KiB"

    [[traffic.uniform]]
    message = "2 KiB"

    [run]
    warm-up = "500 us"
    duration = "4 ms"
    """
)


def throughput(**switch: str | float) -> float:
    """Measure the mean use of the links to the hosts, of 1."""
    changes = {f"switch.{key.replace('_', '-')}": value for key, value in switch.items()}
    scenario = SATURATED.override(changes)
    result = silvan.run(scenario, seed=1)
    seconds = (scenario.duration_ps - scenario.warm_up_ps) * 1e-12
    delivered = sum(result.hosts["delivered_bytes"].to_pylist())
    return float(delivered * 8e-9 / seconds / HOSTS / scenario.link_gbps)


def test_fifo_buffers_saturate_where_theory_says() -> None:
    # Karol, Hluchyj and Morgan, "Input versus output queueing on a space-division packet switch",
    # IEEE Trans. Commun. 35 (1987): 2 - sqrt(2) for many inputs, one packet of each at a time.
    assert throughput(queueing="fifo", read_limit=1) == pytest.approx(2 - math.sqrt(2), abs=0.02)


def test_virtual_output_queues_use_the_whole_link() -> None:
    assert throughput() > 0.97


def test_faster_reads_lie_between_one_read_and_any_number() -> None:
    one, faster, fastest, any_number = (
        throughput(queueing="fifo", **reads)
        for reads in (
            {"read_limit": 1},
            {"read_limit": 1, "read_speedup": 1.5},
            {"read_limit": 1, "read_speedup": 1000.0},
            {},
        )
    )
    assert one + 0.03 < faster < fastest - 0.03
    assert fastest == pytest.approx(any_number, abs=0.01)
