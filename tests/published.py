"""Schemes with published settings on EDR links, and the part of a link that a host receives."""

from __future__ import annotations

from typing import Any

import silvan
from silvan.comparing.baselines import Baseline, fitting
from tests.conftest import ddr_scenario

# Ultra Ethernet's reference simulator has a queue for acknowledgements before that of data, and a
# random path for each packet.
AS_THE_REFERENCE: dict[str, Any] = {
    "fabric.path-choice": "spray-random",
    "vl.data-vls": 2,
    "control.feedback.sl": 1,
    "vl.high": [[1, 255]],
    "vl.low": [[0, 255]],
    "vl.limit-high": 255,
}
# The last acknowledgement ends the message: six cables of 1 us. The five switches store and forward
# packets of 4160 bytes.
LAST_ACK_US = 6.0
FORWARDING_US = 5 * 4160 * 8 / 100e3


def baseline(scenario: silvan.Scenario, name: str) -> Baseline:
    """Find a scheme among those that suit a scenario."""
    (found,) = (one for one in fitting(scenario).every if one.name == name)
    return found


def controlled(scenario: silvan.Scenario, name: str) -> silvan.Scenario:
    """Choose a scheme with its published settings."""
    return scenario.override(baseline(scenario, name).overrides)


def edr_switch(hosts: int, buffer: str, **sections: Any) -> silvan.Scenario:
    """Put hosts around one switch."""
    base: dict[str, Any] = {
        "fabric": {"generator": "single-switch", "hosts": hosts},
        "link": {"speed": "EDR"},
        "switch": {"buffer": buffer},
        "probe": {"interval": "10 us", "ports": True},
        "run": {"warm-up": "1 ms", "duration": "3 ms"},
    }
    return ddr_scenario(**{**base, **sections})


def part_of_link(result: silvan.Result, host: int) -> float:
    """Payload that a host has received after the warm-up, as a part of what its link can carry.

    A packet has 26 bytes besides its payload.
    """
    scenario = result.scenario
    us = (scenario.duration_ps - scenario.warm_up_ps) / 1e6
    mtu: int = scenario.packet.mtu.bytes
    most = us * scenario.link_gbps * 1e3 / 8 * mtu / (mtu + 26)
    return float(result.hosts["delivered_bytes"].to_pylist()[host] / most)
