"""Shared parts for schemes that keep flows to a hotspot apart: flows, and a victim's rate."""

from __future__ import annotations

from typing import Any

import pytest

import silvan
from tests.test_vl_mapping import rates

# Host of a victim, load and share. Host 0 sends to the hotspot, too, so that the victim has the
# rest of the host's link. Host 1 does not, so that the victim has the rest of the cable, or its
# whole load.
LEFT_BY_HOTSPOT = [(0, 1.0, 2 / 3), (1, 1.0, 2 / 3), (1, 0.6, 0.6)]
# Hosts of a hotspot and a victim behind the same spine of LEAVES. In the last case both leave it by
# one port, where OBQA's share a lane.
BEHIND_ONE_SPINE = [(3, 7), (1, 7), (3, 5)]


def flows(*ends: tuple[str, int, int], **loads: float) -> dict[str, Any]:
    """Send without end between hosts, at the rate of their links or at these parts of it."""
    return {
        "traffic.flow": [
            {
                "name": name,
                "from": f"host-{source:04}",
                "to": f"host-{to:04}",
                "load": loads.get(name, 1.0),
            }
            for name, source, to in ends
        ]
    }


def check_what_the_hotspot_leaves(
    scenario: silvan.Scenario, source: int, load: float, expected: float
) -> None:
    """
    Let a victim pass a hotspot of three senders on TREE.

    Oracle: the hotspot gives each of its three inputs a third of its link.
    """
    ends = (("hot", 0, 4), ("local-1", 5, 4), ("local-2", 7, 4), ("victim", source, 6))
    part = rates(scenario.override(flows(*ends, victim=load)))
    assert part["victim"] == pytest.approx(expected, rel=0.01)
    assert part["hot"] == pytest.approx(1 / 3, rel=0.01)
    assert part["hot"] + part["local-1"] + part["local-2"] == pytest.approx(1, rel=0.01)


def check_parting_behind_one_spine(scenario: silvan.Scenario, hot: int, victim: int) -> None:
    """
    Let one host send to a hotspot and, over the same spine, to a victim.

    Oracle: as for :func:`check_what_the_hotspot_leaves`.
    """
    first = hot // 3 * 3
    source = 3 if first == 0 else 0
    local = [host for host in range(first, first + 3) if host != hot]
    ends = [("hot", source, hot), ("victim", source, victim)]
    ends += [(f"local-{host}", host, hot) for host in local]
    part = rates(scenario.override(flows(*ends)))
    assert part["hot"] == pytest.approx(1 / 3, rel=0.01)
    assert part["victim"] == pytest.approx(2 / 3, rel=0.01)
