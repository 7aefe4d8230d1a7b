"""Schemes of today in Python, each in at most 60 lines: the same tables as in Rust.

``crates/silvan-instances/tests/engines/hook_schemes`` has the same schemes, and checks bounds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import silvan

SCHEMES = Path(__file__).parent / "hook_schemes"
WIRE, MTU, BYTES_PER_US = 2074, 2048, 100_000 / 8
SCENARIOS = {
    "hpcc": "incast",
    "swift": "incast",
    "grants": "incast",
    "spraying": "transpose",
}
COLUMNS = [
    ("hosts", "delivered_bytes"),
    ("hosts", "injected_bytes"),
    ("hosts", "fecn_received"),
    ("classes", "delivered_bytes"),
    ("classes", "delivered_packets"),
    ("ports", "xmit_bytes"),
    ("ports", "xmit_wait_ps"),
    ("port_series", "queued_bytes"),
]


def run_scheme(name: str) -> silvan.Result:
    scenario = silvan.Scenario.from_file(SCHEMES / f"{SCENARIOS[name]}.toml")
    keys = {"control.scheme": "python", "control.python.file": str(SCHEMES / f"{name}.py")}
    return silvan.run(scenario.override(keys))


def digest(result: silvan.Result) -> str:
    """Tell all tables apart that a test will meet: number of values, sum, sum by place."""
    lines = []
    for table, column in COLUMNS:
        values = result.tables[table][column].to_pylist()
        places = sum(place * value for place, value in enumerate(values, 1)) % 2**64
        lines.append(f"{table}.{column} {len(values)} {sum(values)} {places}\n")
    return "".join(lines)


def incast_queue(result: silvan.Result) -> Any:
    """Bytes that wait for the receiver's port at each sample after the warm-up."""
    series = result.tables["port_series"]
    of_receiver = np.array(series["ports_row"]) == 0
    return np.array(series["queued_bytes"])[of_receiver][100:]


def incast_goodput(result: silvan.Result) -> float:
    """Payload received in 2 ms, as a part of what the link can carry."""
    delivered = result.hosts["delivered_bytes"].to_pylist()[0]
    return float(delivered / (2_000 * BYTES_PER_US * MTU / WIRE))


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_python_and_rust_give_the_same_tables(name: str) -> None:
    """Oracle: what the test in Rust compares its tables with."""
    assert digest(run_scheme(name)) == (SCHEMES / f"{name}.txt").read_text()
    assert len((SCHEMES / f"{name}.py").read_text().splitlines()) <= 60


def test_bounds_of_the_incast() -> None:
    """Oracles: HPCC's target and a packet per sender; Swift's target; what a receiver grants."""
    hpcc, swift, grants = (run_scheme(name) for name in ("hpcc", "swift", "grants"))
    assert incast_queue(hpcc).max() <= 4 * WIRE
    assert 0.92 < incast_goodput(hpcc) < 0.97
    round_trip = incast_queue(swift).mean() / BYTES_PER_US + 2 + 2 * WIRE / BYTES_PER_US + 0.2
    assert 8 < round_trip < 11
    assert incast_goodput(swift) > 0.99
    assert incast_queue(grants).max() <= 20 * WIRE
    assert incast_goodput(grants) == pytest.approx(1, abs=1e-3)


def test_spraying_splits_alike() -> None:
    """Oracle: three flows at full rate over four ways up, which carry three quarters each."""
    result = run_scheme("spraying")
    ports = result.ports.to_pylist()
    switches = {row["node"] for row in ports if not row["node"].startswith("host-")}
    up = [
        row["xmit_bytes"]
        for row in ports
        if row["node"] in switches and row["peer"].split(":")[0] in switches
    ]
    # Up and down alike: 16 cables between 4 leaves and 4 spines.
    assert len(up) == 32
    at_full_rate = 900 * 16_000 / 8
    assert len(set(up)) == 1
    assert up[0] / at_full_rate == pytest.approx(0.75, abs=0.01)


if __name__ == "__main__":
    # After a change of a scheme: writes what both tests compare with.
    for scheme in SCENARIOS:
        (SCHEMES / f"{scheme}.txt").write_text(digest(run_scheme(scheme)))
