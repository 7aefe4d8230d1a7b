"""Bandwidths of collective operations against nccl-tests' definitions and the links' rate."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import silvan

RANKS = 8


def programs(kind: str, size: int, **keys: object) -> dict[str, Any]:
    program: dict[str, Any] = {"name": kind, "kind": kind, "iterations": 3, **keys}
    if kind != "barrier":
        program["bytes"] = f"{size} B"
    scenario = silvan.Scenario(
        fabric={"generator": "single-switch", "hosts": RANKS},
        link={"rate": "100 Gbit/s"},
        traffic={"program": [program], "messaging": {"overhead": "0 s"}},
        run={"duration": "1 s"},
    )
    result = silvan.run(scenario)
    return {**result.programs.to_pylist()[0], "measures": result.measures}


# Size of the operation and share that crosses the busiest rank's link, by nccl-tests'
# doc/PERFORMANCE.md.
@pytest.mark.parametrize(
    ("kind", "messages", "factor"),
    [
        ("allreduce", 1, Fraction(2 * (RANKS - 1), RANKS)),
        ("reduce-scatter", 1, Fraction(RANKS - 1, RANKS)),
        ("allgather", 1, Fraction(RANKS - 1, RANKS)),
        ("alltoall", RANKS, Fraction(RANKS - 1, RANKS)),
        ("incast", RANKS, Fraction(RANKS - 1, RANKS)),
        ("scatter", RANKS, Fraction(RANKS - 1, RANKS)),
        ("broadcast", 1, Fraction(1)),
        ("reduce", 1, Fraction(1)),
    ],
)
def test_bandwidths_follow_nccl_tests(kind: str, messages: int, factor: Fraction) -> None:
    row = programs(kind, 65536)
    size = 65536 * messages
    assert row["algbw_gb_per_s"] == pytest.approx(size * 1e3 / row["iteration_mean_ps"], rel=1e-12)
    assert row["busbw_gb_per_s"] == pytest.approx(float(row["algbw_gb_per_s"] * factor), rel=1e-12)
    assert row["measures"]["busbw_gb_per_s"] == row["busbw_gb_per_s"]


@pytest.mark.parametrize("kind", ["allreduce", "allgather", "reduce-scatter", "alltoall"])
def test_large_operations_reach_the_links_rate(kind: str) -> None:
    row = programs(kind, (64 if kind != "alltoall" else 8) << 20)
    packet = silvan.Scenario().packet
    payload = packet.mtu.bytes / (packet.mtu.bytes + packet.header.bytes)
    assert row["busbw_gb_per_s"] == pytest.approx(12.5 * payload, rel=0.01)


def test_a_barrier_has_no_bandwidth() -> None:
    row = programs("barrier", 0)
    assert row["algbw_gb_per_s"] is None
    assert row["busbw_gb_per_s"] is None
    assert "busbw_gb_per_s" not in row["measures"]
