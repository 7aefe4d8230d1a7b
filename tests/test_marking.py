"""Marking_Rate is a mean. Oracle: marking at random."""

import math
from typing import Any

import pytest

import silvan

# Two switches at NDR: four contributors, two of them behind the cable, and a victim behind it. The
# table and the late threshold give two steady states: in one of them the victim is throttled by
# marks of the cable.
_CCT = [[0, 0]] * 6 + [[3, step // 4] for step in range(4, 4 + 122)]
_SCENARIO: dict[str, Any] = {
    "fabric": {
        "generator": "chain",
        "switches": 2,
        "hosts-per-switch": 4,
        "routing": "min-hop",
    },
    "link": {"speed": "NDR"},
    "traffic": {
        "incast": [
            {"to": "host-0004", "from": ["host-0000", "host-0001", "host-0005", "host-0006"]}
        ],
        "flow": [{"from": "host-0002", "to": "host-0007"}],
    },
    "control": {
        "scheme": "ib-cc",
        "ib-cc": {
            "switch": {"threshold": 3, "marking-rate": 1},
            "adapter": {
                "ccti-increase": 2,
                "ccti-timer": 45,
                "cct": {"shape": "given", "entries": _CCT},
            },
        },
    },
    "run": {"warm-up": "10 ms", "duration": "20 ms"},
}
_SEEDS = 32
# Gbit/s of the victim between the two states; without control it has 66.
_BETWEEN = 150


def _held_back(marking: str) -> int:
    overrides = {"control.ib-cc.switch.marking": marking}
    scenario = silvan.Scenario(**_SCENARIO).override(overrides)
    results = (silvan.run(scenario, seed=seed) for seed in range(1, _SEEDS + 1))
    return sum(result.measures["other_receivers_gbps"] < _BETWEEN for result in results)


@pytest.mark.slow
def test_dithered_marks_lead_to_the_states_of_random_marks() -> None:
    """The counts differ by at most three standard deviations of two binomial counts."""
    dithered, random = _held_back("dithered"), _held_back("random")
    share = (dithered + random) / (2 * _SEEDS)
    assert 0 < share < 1
    bound = 3 * math.sqrt(2 * _SEEDS * share * (1 - share))
    assert abs(dithered - random) <= bound, (dithered, random)
