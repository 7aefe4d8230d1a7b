"""The search for the load at which a fabric saturates, against closed forms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import silvan
from silvan.planning.saturation import LoadPoint, load_keys, saturate
from tests.conftest import Command, ddr_scenario

LINE = {"speed": "DDR", "length": "1 m"}


def permuted(fabric: dict[str, Any], shift: int) -> silvan.Scenario:
    """Make every host send to the one `shift` on, at the rate of its link of 16 Gbit/s."""
    return ddr_scenario(
        fabric=fabric,
        link=LINE,
        packet={"mtu": "2 KiB", "header": "0 B"},
        host={"injection-rate": "16 Gbit/s", "sink-rate": "unlimited"},
        vl={"data-vls": 2},
        traffic={"permutation": [{"pattern": "shift", "shift": shift, "spacing": "periodic"}]},
        run={"warm-up": "200 us", "duration": "600 us"},
    )


@pytest.mark.parametrize(
    ("fabric", "shift", "expected"),
    [
        # All hosts of a switch send to the next switch of their row, over one cable.
        ({"generator": "hyper-x", "sizes": [6], "hosts-per-switch": 4}, 4, 1 / 4),
        # A switch with twenty hosts: below the lowest load that is tried first.
        ({"generator": "hyper-x", "sizes": [3], "hosts-per-switch": 20}, 20, 1 / 20),
        # Tornado: halfway round a ring of 5 all go up, and each cable has two switches' packets.
        ({"generator": "torus", "sizes": [5], "hosts-per-switch": 1}, 2, 1 / 2),
    ],
    ids=["hyper-x", "narrow", "tornado"],
)
def test_permutations_saturate_at_the_rate_of_their_fullest_cable(
    fabric: dict[str, Any], shift: int, expected: float
) -> None:
    found = saturate(permuted(fabric, shift))
    assert found.above is not None
    assert found.above - found.load <= 0.01
    # A load that is too high by less than the tolerance is delivered up to the tolerance.
    assert found.load - 0.01 <= expected * 1.02
    assert found.above >= expected * 0.98
    loads = [point.load for point in found.points]
    assert loads == sorted(loads)


def queued(hosts: int, **switch: Any) -> silvan.Scenario:
    """Make the hosts of a switch send packets to random hosts."""
    return ddr_scenario(
        fabric={"generator": "single-switch", "hosts": hosts},
        link=LINE,
        packet={"mtu": "2 KiB", "header": "0 B"},
        host={"injection-rate": "16 Gbit/s", "sink-rate": "unlimited"},
        switch=switch,
        traffic={"uniform": [{"message": "2 KiB", "load": 0.5}]},
        run={"warm-up": "1 ms", "duration": "8 ms"},
    )


@pytest.mark.slow
def test_input_queues_saturate_where_theory_says() -> None:
    # Karol, Hluchyj and Morgan, "Input versus output queueing on a space-division packet switch",
    # IEEE Trans. Commun. 35 (1987): 2 - sqrt(2) = 0.586 for many inputs.
    found = saturate(queued(32, **{"queueing": "fifo", "read-limit": 1}))
    assert found.is_certain
    assert found.above is not None
    middle = (found.load + found.above) / 2
    assert middle == pytest.approx(0.586, abs=0.03)
    # Latencies grow with the load.
    below = [point for point in found.points if point.load <= found.load]
    means = [point.measures["latency_mean_us"] or 0 for point in below]
    assert means == sorted(means)


def test_what_never_saturates_is_said() -> None:
    tried: list[LoadPoint] = []
    found = saturate(permuted({"generator": "single-switch", "hosts": 4}, 1), on_point=tried.append)
    assert (found.load, found.above) == (1.0, None)
    # Payload is 16 Gbit/s of each host.
    assert found.most_gbps == pytest.approx(64, rel=0.01)
    more = saturate(permuted({"generator": "single-switch", "hosts": 4}, 1), curve=3)
    assert [point.load for point in more.points] == [0.25, 0.5, 0.75, 1.0]
    assert sorted(tried, key=lambda point: point.load) == list(found.points)


def overloaded(duration: str) -> silvan.Scenario:
    """Make eight hosts of a leaf send flows to those of another over one cable."""
    flows = {"name": "f", "sizes": {"fixed": "64 KiB"}, "load": 0.1, "pattern": "permutation"}
    return ddr_scenario(
        fabric={
            "generator": "leaf-spine",
            "leaf-hosts": [8, 8],
            "spine-cables": [1],
        },
        link=LINE,
        packet={"header": "0 B"},
        host={"injection-rate": "16 Gbit/s", "sink-rate": "unlimited"},
        traffic={"flows": [flows]},
        run={"duration": duration},
    )


def test_a_short_run_is_compared_with_what_arrived_in_it() -> None:
    # Loads hold on average only: of so few flows, 5 % more or less arrive by chance.
    scenario = overloaded("4 ms")
    arrivals = scenario.arrivals()["f"]
    assert arrivals is not None
    rows = silvan.run(scenario).tables["flows"].to_pylist()
    assert arrivals.messages == len(rows)
    assert arrivals.payload_bytes == sum(row["bytes"] for row in rows)
    assert arrivals.payload_bytes != scenario.offered_bytes()["f"]
    found = saturate(scenario, keys=["traffic.flows.0.load"])
    # In a permutation of 16 hosts on two leaves many flows share a cable of 16 Gbit/s.
    assert all(point.share <= 1 for point in found.points)
    assert found.above is not None
    assert found.above < 0.5


def test_runs_with_few_messages_are_uncertain(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "overloaded.toml"
    path.write_text(overloaded("300 us").to_toml())
    done = command("saturate", path, "--resolution", "0.2")
    assert done.status == 0
    assert "uncertain: a run had" in done.stdout
    assert (
        json.loads(command("saturate", path, "--json").stdout)["curves"][0]["is_certain"] is False
    )


def test_loads_are_shares_of_the_injection_rate() -> None:
    traffic = {
        "uniform": [{"load": 0.5}, {"load": "8 Gbit/s"}],
        "permutation": [{"pattern": "shift", "shift": 1}],
    }
    scenario = ddr_scenario(
        fabric={"generator": "single-switch", "hosts": 4},
        traffic=traffic,
        run={"duration": "100 us"},
    )
    assert load_keys(scenario) == ["traffic.uniform.0.load", "traffic.permutation.0.load"]


def test_the_command_prints_what_is_found(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "hyper-x.toml"
    fabric = {"generator": "hyper-x", "sizes": [6], "hosts-per-switch": 4}
    path.write_text(permuted(fabric, 4).to_toml())
    done = command("saturate", path, "--resolution", "0.1", "--out", tmp_path / "figures")
    assert done.status == 0
    assert "saturation load: 0.250 is delivered in full" in done.stdout
    assert (tmp_path / "figures" / "saturation.svg").stat().st_size > 1000
    assert (tmp_path / "figures" / "saturation.pdf").read_bytes().startswith(b"%PDF-")
    read = json.loads(command("saturate", path, "--resolution", "0.1", "--json").stdout)
    (found,) = read["curves"]
    assert found["load"] == 0.25
    assert found["values"] == {}
    assert [point["load"] for point in found["points"]] == [0.25, 0.3125, 0.375, 0.5, 1.0]


def test_a_grid_overlays_curves(command: Command, tmp_path: Path) -> None:
    """Oracle: the same search with each value alone."""
    path = tmp_path / "hyper-x.toml"
    fabric = {"generator": "hyper-x", "sizes": [6], "hosts-per-switch": 4}
    path.write_text(permuted(fabric, 4).to_toml())
    words = ("saturate", path, "--resolution", "0.1", "--json")
    grid = ("--grid", "traffic.permutation.0.shift=4,8", "--grid", "control.scheme=none,ib-cc")
    together = json.loads(command(*words, *grid, "--out", tmp_path / "figures").stdout)["curves"]
    assert [one["values"] for one in together] == [
        {"control.scheme": scheme, "traffic.permutation.0.shift": shift}
        for scheme in ("none", "ib-cc")
        for shift in (4, 8)
    ]
    for one in together:
        sets = [
            word for key, value in one["values"].items() for word in ("--set", f"{key}={value}")
        ]
        (alone,) = json.loads(command(*words, *sets).stdout)["curves"]
        assert (alone["load"], alone["above"]) == (one["load"], one["above"])
    drawn = (tmp_path / "figures" / "saturation.svg").read_text("utf-8")
    assert all(f"{scheme}, {shift}: " in drawn for scheme in ("none", "ib-cc") for shift in (4, 8))
    rows = (tmp_path / "figures" / "saturation.csv").read_text().splitlines()
    assert len(rows) == 1 + sum(len(one["points"]) for one in together)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--key", "traffic.uniform.0.laod"], "unknown key"),
        (["--tolerance", "0"], "tolerance"),
        (["--set", 'traffic.uniform.0.load="8 Gbit/s"'], "no load that could be changed"),
        (
            ["--set", 'run.duration="1 us"', "--set", 'run.warm-up="0 s"'],
            "nothing arrives at the sources",
        ),
    ],
)
def test_bad_input_is_refused(
    command: Command, tmp_path: Path, words: list[str], said: str
) -> None:
    path = tmp_path / "queued.toml"
    path.write_text(queued(4).to_toml())
    refused = command("saturate", path, *words)
    assert refused.status == 2
    assert said in refused.stderr
