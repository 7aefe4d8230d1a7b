"""InfiniBand's congestion control with the defaults of the vendor's manager, against its manual."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

import silvan
from silvan.comparing.baselines import fitting
from tests.conftest import ddr_scenario
from tests.published import baseline, part_of_link

TREE = {"generator": "xgft", "children": [4, 2], "parents": [1, 2], "routing": "d-mod-k"}
TORUS = {"generator": "torus", "sizes": [3, 3], "hosts-per-switch": 1}


def as_sold(
    name: str = "ib-cc", hosts: int = 9, keys: Mapping[str, Any] = MappingProxyType({})
) -> silvan.Scenario:
    """Let all other hosts send to host-0000 over one switch."""
    scenario = ddr_scenario(
        fabric={"generator": "single-switch", "hosts": hosts},
        link={"speed": "EDR"},
        traffic={"incast": [{"to": "host-0000"}]},
        run={"warm-up": "1 ms", "duration": "3 ms"},
    )
    return scenario.override({**baseline(scenario, name).overrides, **keys})


def marked(result: silvan.Result) -> float:
    """Share of the packets that the switch has marked."""
    (row,) = result.classes.to_pylist()
    return float(row["marked_packets"] / row["delivered_packets"])


def test_values_are_those_of_the_manual() -> None:
    """Oracle: the manual's options: 0xf, 0xa, 0x200 bytes, 1, 0, trigger 2, by queue pair."""
    section = as_sold().to_dict()["control"]["ib-cc"]
    switch, adapter = section["switch"], section["adapter"]
    assert (switch["threshold"], switch["marking-rate"]) == (0xF, 0xA)
    assert switch["packet-size"] * 64 == 0x200
    assert (adapter["ccti-increase"], adapter["ccti-min"], adapter["trigger-threshold"]) == (
        1,
        0,
        2,
    )
    assert adapter["level"] == "qp"


def test_one_packet_of_eleven_is_marked_where_all_are_eligible() -> None:
    """Oracle: the mean number of packets between two marked ones is 10. Hosts do not react."""
    result = silvan.run(as_sold(keys={"control.ib-cc.adapter.ccti-increase": 0}))
    assert part_of_link(result, 0) == pytest.approx(1, abs=0.01)
    assert marked(result) == pytest.approx(1 / 11, rel=0.001)


@pytest.mark.parametrize(("mtu", "expected"), [(256, 0), (512, 1 / 11)])
def test_packets_of_less_than_512_bytes_are_not_marked(mtu: int, expected: float) -> None:
    """Oracle: 0x200 bytes, headers included. Counted gaps make the share exact."""
    keys = {
        "packet.mtu": f"{mtu} B",
        "control.ib-cc.adapter.ccti-increase": 0,
        "control.ib-cc.switch.marking": "counter",
    }
    assert marked(silvan.run(as_sold(keys=keys))) == pytest.approx(expected, rel=0.001)


@pytest.mark.parametrize("hosts", [5, 17, 33])
def test_the_last_entry_leaves_each_host_its_share(hosts: int) -> None:
    """
    Oracle: n hosts to one, each at 1/n of its link, leave (n - 1)/n of the hotspot's.

    The index is held at its end; entries are eighths of a packet time.
    """
    result = silvan.run(as_sold(hosts=hosts, keys={"control.ib-cc.adapter.ccti-min": 127}))
    assert part_of_link(result, 0) == pytest.approx((hosts - 1) / hosts, rel=0.01)
    sent = result.hosts["injected_bytes"].to_pylist()[1:]
    assert min(sent) > 0.99 * max(sent)


def test_no_sender_starves_and_the_table_suffices() -> None:
    """
    Oracle: no sender is slower than the last entry lets it be, and the link of the hotspot is full.

    With 8 senders the sum of the rates meets the link before the end of the table.
    """
    result = silvan.run(as_sold(keys={"run.warm-up": "4 ms", "run.duration": "8 ms"}))
    assert part_of_link(result, 0) > 8 / 9 * 0.99
    sent = result.hosts["injected_bytes"].to_pylist()[1:]
    us = 4e3
    assert min(sent) > 0.99 * us * 12_500 / 9 * 2048 / 2074


def test_adaptive_routing_is_offered_where_switches_can_choose() -> None:
    """Oracle: a tree of two ways up has paths to choose from; one switch and a torus have none."""
    names = {
        generator: {one.name for one in fitting(ddr_scenario(fabric=fabric)).every}
        for generator, fabric in (
            ("tree", TREE),
            ("switch", {"generator": "single-switch", "hosts": 4}),
            ("torus", {**TORUS, "routing": "dimension-order"}),
        )
    }
    adaptive = "ib-cc+adaptive"
    assert adaptive in names["tree"]
    assert adaptive not in names["switch"] | names["torus"]
    assert "ib-cc" in names["tree"] & names["switch"] & names["torus"]


def test_adaptive_routing_uses_both_spines() -> None:
    """
    Oracle: two flows whose destinations the tables put behind one spine.

    The tables leave them one cable; switches that choose leave both the whole of theirs.
    """
    scenario = ddr_scenario(
        fabric=TREE,
        link={"speed": "EDR"},
        traffic={
            "flow": [
                {"from": "host-0000", "to": "host-0004"},
                {"from": "host-0001", "to": "host-0006"},
            ]
        },
        run={"warm-up": "1 ms", "duration": "2 ms"},
    )
    for one in fitting(scenario).every:
        if one.name in {"ib-cc", "ib-cc+adaptive"}:
            result = silvan.run(scenario.override(one.overrides))
            received = sum(result.hosts["delivered_bytes"].to_pylist()) / (12_500e3 * 2048 / 2074)
            if one.name.endswith("adaptive"):
                assert received == pytest.approx(2, rel=0.01)
            else:
                assert received < 1.01
