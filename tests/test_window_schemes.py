"""Schemes that set windows or rates by acknowledgements, against what their papers derive.

Links are as full as headers let them be, queues are as long as the papers' fixed points say.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import silvan
from silvan.inputs.toml_text import TomlValue
from tests.conftest import ddr_scenario
from tests.published import AS_THE_REFERENCE, FORWARDING_US, LAST_ACK_US, baseline

ROOT = Path(__file__).parent.parent
WIRE, MTU = 2074, 2048
# EDR: 100 Gbit/s are 12,500 bytes in a microsecond.
BYTES_PER_US = 12_500
SCHEMES = ["timely", "timely+patched", "hpcc", "swift", "nscc"]


def incast(senders: int, **sections: Any) -> silvan.Scenario:
    """Let hosts send to host-0000 over one switch without end, 1 ms of warm-up and 2 ms more."""
    base: dict[str, Any] = {
        "fabric": {"generator": "single-switch", "hosts": senders + 1},
        "link": {"speed": "EDR"},
        "switch": {"buffer": "512 KiB"},
        "traffic": {"incast": [{"to": "host-0000"}]},
        "control": {"feedback": {"carrier": "ack-per-packet"}},
        "probe": {"interval": "10 us", "ports": True},
        "run": {"warm-up": "1 ms", "duration": "3 ms"},
    }
    return ddr_scenario(**{**base, **sections})


def queue(result: silvan.Result) -> Any:
    """Bytes that wait for the receiver's port, at each sample after the warm-up."""
    series = result.tables["port_series"]
    of_receiver = np.array(series["ports_row"]) == 0
    times = np.array(series["time_ps"])[of_receiver]
    return np.array(series["queued_bytes"])[of_receiver][times >= result.scenario.warm_up_ps]


def goodput(result: silvan.Result) -> float:
    """Payload received after the warm-up, as a part of what the link can carry."""
    scenario = result.scenario
    us = (scenario.duration_ps - scenario.warm_up_ps) / 1e6
    most = us * scenario.link_gbps * 1e3 / 8 * MTU / WIRE
    return float(result.hosts["delivered_bytes"].to_pylist()[0] / most)


def shares(result: silvan.Result) -> Any:
    """Bytes of each sender, as a share of the mean."""
    sent = np.array(result.hosts["injected_bytes"].to_pylist()[1:], dtype=float)
    return sent / sent.mean()


@pytest.mark.parametrize("senders", [2, 8, 16])
def test_hpcc_keeps_the_link_at_its_aim_without_a_queue(senders: int) -> None:
    """
    Oracle: HPCC, section 3.2 and appendix A.

    The busiest link comes to eta, and to what additive increase adds in its five stages and the
    one after: senders W_AI / (B T) of the link in each. No queue is left but packets that start at
    the same time.
    """
    base = 3e-6
    keys: dict[str, TomlValue] = {
        "control.scheme": "hpcc",
        "control.hpcc.base-rtt": "3 us",
        # Packets are as long as the oracle's: nothing is added to them.
        "control.hpcc.telemetry": "0 B",
    }
    result = silvan.run(incast(senders).override(keys))
    extra = senders * 80 / (BYTES_PER_US * base * 1e6)
    assert 0.95 * 0.98 < goodput(result) < 0.95 + 6 * extra + 0.01
    assert queue(result).max() <= 2 * senders * WIRE
    assert shares(result).min() > 0.9


@pytest.mark.parametrize(("senders", "target_us"), [(2, 10), (8, 10), (8, 25), (16, 25)])
def test_swift_keeps_the_round_trip_at_its_target(senders: int, target_us: int) -> None:
    """
    Oracle: Swift, section 3.1, the target of one switch and of this window.

    A window is what a sender's share of the link carries in the round trip.
    """
    result = silvan.run(
        incast(senders).override(
            {
                "control.scheme": "swift",
                "control.swift.base-target": f"{target_us} us",
                # First windows are the largest; each round trip halves them at most.
                "run.warm-up": "4 ms",
                "run.duration": "6 ms",
            }
        )
    )
    waiting_us = queue(result).mean() / BYTES_PER_US
    # The base round trip, which ends when the sink is done, has a packet's time at the port in it.
    round_trip_us = waiting_us + result.scenario.base_rtt_s * 1e6 - WIRE / BYTES_PER_US
    window = round_trip_us * BYTES_PER_US / WIRE / senders
    alpha = 40 / (0.1**-0.5 - 0.1)
    expected_us = target_us + 1 + max(0.0, alpha * (window**-0.5 - 0.1))
    # Windows swing between the decrease and the target.
    assert round_trip_us == pytest.approx(expected_us, rel=0.05)
    assert goodput(result) > 0.99
    assert shares(result).min() > 0.8


@pytest.mark.parametrize("senders", [2, 8])
@pytest.mark.parametrize(("fabric_us", "endpoint_us"), [(25, 25), (10, 25), (25, 10)])
def test_swift_keeps_the_delay_at_a_slow_receiver_at_its_target(
    senders: int, fabric_us: int, endpoint_us: int
) -> None:
    """
    Oracle: Swift, section 3.2: the endpoint's target, which nothing adds to.

    The receiver's buffer has room for all windows, so that packets wait nowhere else. Before it
    they take the time of two cables, a switch and a packet.
    """
    result = silvan.run(
        incast(
            senders,
            host={"sink-rate": "50 Gbit/s", "receive-buffer": "1 MiB"},
            run={"warm-up": "4 ms", "duration": "6 ms"},
        ).override(
            {
                "control.scheme": "swift",
                "control.swift.base-target": f"{fabric_us} us",
                "control.swift.endpoint-target": f"{endpoint_us} us",
            }
        )
    )
    delivered = result.hosts["delivered_bytes"].to_pylist()[0]
    assert delivered * 8 / 2e-3 == pytest.approx(50e9, rel=0.001)
    (row,) = result.classes.to_pylist()
    in_fabric_us = 0.12 + 2 * WIRE / BYTES_PER_US
    assert row["latency_mean_ns"] / 1e3 - in_fabric_us == pytest.approx(endpoint_us, rel=0.06)
    assert shares(result).min() > 0.8


@pytest.mark.parametrize("senders", [2, 4, 8])
def test_patched_timely_comes_to_its_fixed_point(senders: int) -> None:
    """
    Oracle: Zhu et al. 2016, section 4.3.

    The round trip is T_low (1 + n delta / (beta C)), and rates are equal. For 8 Gbit/s, near the 10
    that the parameters are for. The published one has no such point (section 4.2).
    """
    scenario = incast(
        senders,
        link={"speed": "SDR"},
        switch={"buffer": "1 MiB"},
        probe={"interval": "100 us", "ports": True},
        run={"warm-up": "200 ms", "duration": "300 ms"},
    ).override(
        {
            "control.scheme": "timely",
            "control.timely.patched": True,
            # The settings of the papers, which are for 10 Gbit/s.
            "control.timely.beta": 0.008,
            "control.timely.t-low": "50 us",
            "control.timely.t-high": "500 us",
            "control.timely.min-rtt": "20 us",
            "control.timely.delta": "10 Mbit/s",
            "control.timely.min-rate": "10 Mbit/s",
        }
    )
    result = silvan.run(scenario)
    expected_us = 50 * (1 + senders * 10e6 / (0.008 * 8e9))
    # The packet's own time on the sender's link is not part of TIMELY's round trip.
    wire_us = WIRE / 1_000
    round_trip_us = queue(result).mean() / 1_000 + scenario.base_rtt_s * 1e6 - 2 * wire_us
    assert round_trip_us == pytest.approx(expected_us, rel=0.02)
    assert shares(result) == pytest.approx(1, abs=0.01)


def nscc(senders: int, target_us: float) -> silvan.Result:
    keys = {"control.scheme": "nscc", "control.nscc.base-rtt": f"{target_us} us"}
    return silvan.run(incast(senders).override(keys))


def test_two_windows_of_nscc_fill_what_they_may() -> None:
    """
    Oracle: the largest window, 1.5 bandwidth-delay products.

    Two of them are three products: one is on its way, two wait, less than the target. Nothing is
    marked.
    """
    result = nscc(2, 6)
    base_us = result.scenario.base_rtt_s * 1e6
    assert queue(result).mean() / BYTES_PER_US == pytest.approx(2 * base_us, rel=0.05)
    assert goodput(result) > 0.99
    assert sum(result.hosts["becn_received"].to_pylist()) == 0


def test_nscc_lets_packets_wait_between_its_marks() -> None:
    """
    Oracle: windows grow while packets wait less than the target and none is marked.

    The limit is Kmin, a target's worth. At four times as much all are marked, and windows fall.
    """
    target_us = 6
    result = nscc(8, target_us)
    waiting_us = queue(result) / BYTES_PER_US
    assert target_us < waiting_us.min() < waiting_us.max() < 4 * target_us
    assert goodput(result) > 0.99
    assert shares(result).min() > 0.7


@pytest.mark.parametrize("name", SCHEMES)
def test_nobody_starves_and_a_burst_is_forgotten(name: str) -> None:
    """
    Oracle: the link's rate.

    Seven hosts send to one that an eighth sends to all the time. Each gets something; after they
    have ended the eighth gets the link back.
    """
    scenario = ddr_scenario(
        fabric={"generator": "single-switch", "hosts": 9},
        link={"speed": "EDR"},
        switch={"buffer": "256 KiB"},
        traffic={
            "flow": [
                {"from": f"host-{number:04}", "to": "host-0000", "end": f"{stop} ms"}
                for number, stop in zip(range(1, 9), [30, *[2] * 7], strict=True)
            ],
        },
        run={"duration": "30 ms", "warm-up": "25 ms"},
    )
    found = baseline(scenario, name)
    result = silvan.run(scenario.override(found.overrides))
    sent = result.hosts["injected_bytes"].to_pylist()
    assert goodput(result) > 0.9
    assert sent[1] > 0.9 * sum(sent)
    burst = silvan.run(
        scenario.override({**found.overrides, "run.duration": "2 ms", "run.warm-up": "0 ms"})
    )
    # TIMELY's rates differ by what they have started with.
    assert min(burst.hosts["injected_bytes"].to_pylist()[1:]) > 8 * MTU


@pytest.mark.parametrize("name", SCHEMES)
def test_settings_are_those_of_the_base_round_trip(name: str) -> None:
    """Oracle: an idle flow, whose acknowledgement says when its packet was sent."""
    scenario = incast(1, traffic={"flow": [{"from": "host-0001", "to": "host-0000", "load": 0.01}]})
    found = baseline(scenario, name)
    result = silvan.run(scenario.override(found.overrides))
    # Nothing waits, so nothing is held back.
    assert goodput(result) == pytest.approx(0.01, rel=0.1)
    assert queue(result).max() <= WIRE + 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("transfers", "bound_us", "senders", "size"),
    [
        ("one", 177, 1, 2_000_000),
        ("incast-16", 2_460, 15, 2_000_000),
        ("incast-128", 20_900, 127, 2_000_000),
        ("incast-1024", 8_950, 1_023, 100_000),
    ],
)
def test_nscc_ends_when_the_reference_simulator_does(
    transfers: str, bound_us: float, senders: int, size: int
) -> None:
    """Oracles: the reference's published bounds; what the receiver's link carries."""
    scenario = silvan.Scenario.from_file(ROOT / "studies" / "nscc" / "bounds.toml")
    text = (ROOT / "studies" / "nscc" / f"{transfers}.cm").read_text()
    assert text.splitlines()[1:3] == [f"Connections {senders}", f"0->1023 start 0 size {size}"]
    file = str(ROOT / "studies" / "nscc" / f"{transfers}.cm")
    result = silvan.run(scenario.override({"traffic.program.0.file": file}))
    end_us = max(result.tables["program_ops"]["end_ps"].to_pylist()) / 1e6
    packets = senders * -(-size // 4096)
    least_us = (senders * size + packets * 64) * 8 / 100e3
    assert least_us < end_us < 1.1 * bound_us
    assert end_us == pytest.approx(bound_us, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("transfers", "result_us", "within"),
    [("one", 176.2, 0.005), ("incast-16", 2_478.5, 0.01), ("incast-128", 21_029.3, 0.02)],
)
def test_nscc_ends_as_the_reference_simulator_did(
    transfers: str, result_us: float, within: float
) -> None:
    """Oracle: results in the reference's repository (validate_uec_sender.out)."""
    scenario = silvan.Scenario.from_file(ROOT / "studies" / "nscc" / "bounds.toml")
    file = str(ROOT / "studies" / "nscc" / f"{transfers}.cm")
    result = silvan.run(scenario.override({"traffic.program.0.file": file, **AS_THE_REFERENCE}))
    end_us = max(result.tables["program_ops"]["end_ps"].to_pylist()) / 1e6
    assert end_us + LAST_ACK_US + FORWARDING_US == pytest.approx(result_us, rel=within)
