"""Switches that choose among paths: what the tables and the summary count."""

import pytest

import silvan
from silvan.inputs.toml_text import TomlValue
from tests.conftest import ddr_scenario

LEAVES: dict[str, TomlValue] = {
    "generator": "leaf-spine",
    "leaf-hosts": [4, 4],
    "spine-cables": [2, 2],
}


def run(choice: str, **host: TomlValue) -> silvan.Result:
    scenario = ddr_scenario(
        fabric={**LEAVES, "path-choice": choice},
        host=host,
        traffic={"uniform": [{"load": 0.8}]},
        run={"warm-up": "20 us", "duration": "200 us"},
    )
    return silvan.run(scenario)


@pytest.mark.parametrize("choice", ["table", "ecmp"])
def test_what_keeps_the_order_of_packets_counts_no_reordering(choice: str) -> None:
    result = run(choice, **{"in-order": True})
    assert "reordered_packets" not in result.hosts.column_names
    assert "most_held_bytes" not in result.hosts.column_names
    assert result.summary["reordered_packets"] == 0


@pytest.mark.parametrize("choice", ["adaptive", "spray-random", "spray-round-robin"])
def test_reordered_packets_are_counted_and_can_be_held(choice: str) -> None:
    result = run(choice)
    counted = sum(result.hosts["reordered_packets"].to_pylist())
    # The summary has those of the warm-up, too.
    assert 0 < counted <= result.summary["reordered_packets"]
    assert "most_held_bytes" not in result.hosts.column_names
    ordered = run(choice, **{"in-order": True})
    assert max(ordered.hosts["most_held_bytes"].to_pylist()) > 0
    # Packets arrive at equal times, and some are delivered later.
    assert ordered.hosts["reordered_packets"] == result.hosts["reordered_packets"]
    mean = [part.classes["latency_mean_ns"][0].as_py() for part in (result, ordered)]
    assert mean[0] < mean[1]


def test_the_seed_decides_random_paths() -> None:
    results = [run("spray-random") for _ in range(2)]
    assert results[0].tables == results[1].tables
    scenario = results[0].scenario.override({"run.seed": 2})
    assert silvan.run(scenario).tables != results[0].tables


def test_paths_over_other_switches_double_an_adversarial_load() -> None:
    """By the tables four hosts share a cable; over other switches each delivers 5/8."""
    text: dict[str, TomlValue] = {
        "generator": "dragonfly",
        "switches-per-group": 4,
        "hosts-per-switch": 1,
        "global-per-switch": 1,
    }
    received = {}
    for choice in ("table", "valiant"):
        result = silvan.run(
            ddr_scenario(
                fabric={**text, "routing": "group-minimal", "path-choice": choice},
                vl={"data-vls": 4},
                traffic={"permutation": [{"pattern": "shift", "shift": 4}]},
                run={"warm-up": "200 us", "duration": "400 us"},
            )
        )
        received[choice] = result.summary["delivered_bytes"]
    assert received["valiant"] / received["table"] == pytest.approx(2.5, rel=0.03)
