"""The cases of gran2012: Table II's testbed with other traffic, and nothing else changed."""

from __future__ import annotations

from collections.abc import Mapping

from silvan.inputs.toml_text import TomlValue
from silvan.reproduce.experiment import Case

STUDY = "table2"

CONTROLS = ("off", "on")

CONTROL: Mapping[str, Mapping[str, TomlValue]] = {"off": {"control.scheme": "none"}, "on": {}}

P_PERCENT = tuple(range(0, 101, 10))
"""Shares of a B node's traffic to its hotspot, in per cent (figures 5 to 8)."""

MOVES = tuple(range(10, 101, 10))
"""Moves of the hotspots in 0.1 s (figures 9 and 10)."""

OFF_SEEDS = 5
"""Seeds without congestion control behind a number of the paper: rates of non-hotspots differ by 16
% by placement.
"""

_OTHER_OFF_SEEDS = 3
_ON_SEEDS = 1


def seeds_of(control: str, *, stated: bool, is_ratio: bool = False) -> int:
    """Return the number of seeds of a point.

    With congestion control and fixed hotspots rates differ by less than 1 % by placement, so one
    seed is enough. A ratio needs the same seeds for both.
    """
    if control == "off":
        return OFF_SEEDS if stated else _OTHER_OFF_SEEDS
    return OFF_SEEDS if is_ratio else _ON_SEEDS


_SLOT_PS = 100_000_000_000  # 0.1 s, the time slot of section V-C


def lifetime_ms(moves: int) -> float:
    """Convert a number of moves in 0.1 s to the lifetime of a hotspot, in milliseconds."""
    return 100 / moves


def windy_label(b_percent: int, p_percent: int, control: str) -> str:
    """Name a point of figures 5 to 8."""
    return f"{b_percent} % B, p = {p_percent}, CC {control}"


def windy(
    b_percent: int, p_percent: int, control: str, *, seeds: int = 1, quick: bool = True
) -> Case:
    """Make a point of figures 5 to 8: some B nodes; 80 % of the others are C, 20 % V nodes."""
    nodes: dict[str, TomlValue] = {
        "name": "gran2012-windy",
        **_node_shares(b_percent, v_percent=20),
        "traffic.nodes.p": p_percent,
    }
    label = windy_label(b_percent, p_percent, control)
    return Case(label, STUDY, seeds, {**nodes, **CONTROL[control]}, quick=quick)


def silent_label(v_percent: int, moves: int, control: str) -> str:
    """Name a point of figure 9."""
    return f"{v_percent} % V, {moves} moves, CC {control}"


def moving_silent(
    v_percent: int, moves: int, control: str, *, seeds: int = 1, quick: bool = True
) -> Case:
    """Make a point of figure 9: V and C nodes only, hotspots moving."""
    nodes: dict[str, TomlValue] = {
        "name": "gran2012-moving",
        **_node_shares(0, v_percent=v_percent),
        "traffic.nodes.hotspot-lifetime": _lifetime(moves),
    }
    label = silent_label(v_percent, moves, control)
    return Case(label, STUDY, seeds, {**nodes, **CONTROL[control]}, quick=quick)


def windy_moving_label(p_percent: int, moves: int, control: str) -> str:
    """Name a point of figure 10."""
    return f"100 % B, p = {p_percent}, {moves} moves, CC {control}"


def moving_windy(
    p_percent: int, moves: int, control: str, *, seeds: int = 1, quick: bool = True
) -> Case:
    """Make a point of figure 10: B nodes only, hotspots moving."""
    nodes: dict[str, TomlValue] = {
        "name": "gran2012-moving",
        **_node_shares(100, v_percent=20),
        "traffic.nodes.p": p_percent,
        "traffic.nodes.hotspot-lifetime": _lifetime(moves),
    }
    label = windy_moving_label(p_percent, moves, control)
    return Case(label, STUDY, seeds, {**nodes, **CONTROL[control]}, quick=quick)


def _node_shares(b_percent: int, *, v_percent: int) -> dict[str, TomlValue]:
    others = 100 - b_percent
    return {
        "traffic.nodes.b": b_percent / 100,
        "traffic.nodes.v": others * v_percent / 10_000,
        "traffic.nodes.c": others * (100 - v_percent) / 10_000,
    }


def _lifetime(moves: int) -> str:
    # Rounded up, so that no move falls on the very end.
    return f"{-(-_SLOT_PS // moves)} ps"
