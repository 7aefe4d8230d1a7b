"""Schemes that know nothing without acknowledgements take no other carrier."""

from __future__ import annotations

from typing import Any

import pytest

import silvan
from tests.conftest import ddr_scenario

SCENARIO: dict[str, Any] = {
    "fabric": {"generator": "single-switch", "hosts": 4},
    "traffic": {"incast": [{"to": "host-0000"}]},
    "run": {"duration": "100 us"},
}


@pytest.mark.parametrize("carrier", ["cnp", "ack-per-message", "none"])
@pytest.mark.parametrize("scheme", ["hpcc", "nscc", "pair-backpressure", "swift", "timely"])
def test_a_carrier_that_acknowledges_no_packet_is_refused(scheme: str, carrier: str) -> None:
    """A window of packets that are never acknowledged would never open again."""
    control = {"scheme": scheme, "feedback": {"carrier": carrier}}
    with pytest.raises(silvan.ScenarioError, match="acknowledged packets") as caught:
        ddr_scenario(**SCENARIO, control=control)
    assert caught.value.key == "control.feedback.carrier"
    assert caught.value.hint == 'write "ack-per-packet", or leave it out'


@pytest.mark.parametrize("scheme", ["hpcc", "nscc", "pair-backpressure", "swift", "timely"])
def test_acknowledgements_of_packets_are_the_default(scheme: str) -> None:
    """Oracle: the same scenario with the carrier that the scheme needs."""
    stated = {"scheme": scheme, "feedback": {"carrier": "ack-per-packet"}}
    runs = [
        silvan.run(ddr_scenario(**SCENARIO, control=control))
        for control in ({"scheme": scheme}, stated)
    ]
    sent = [run.hosts["injected_bytes"].to_pylist() for run in runs]
    assert sent[0] == sent[1]
    assert sum(sent[0]) > 0
