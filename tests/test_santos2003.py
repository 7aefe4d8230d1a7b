"""santos2003: the rules of its shapes, and what has a closed form."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import silvan
from silvan.reproduce import ClauseResult, Verdict, experiments, find_paper
from silvan.reproduce.registry import study
from silvan_papers import santos2003_curves
from silvan_papers.santos2003_scene import STUDY, Shares


def shares(*, root: float = 1.0, local: float = 0.5, victim: float = 0.0) -> Shares:
    """Make the shares of static flows; a dynamic flow has none."""
    zero = np.zeros(())
    return Shares(
        static_local=np.array(root * local),
        dynamic_local=zero,
        static_remote=np.array(root * (1 - local)),
        dynamic_remote=zero,
        victim=np.array(victim),
        jain=np.array(1.0),
    )


def verdicts(
    figure: str, of: Callable[[str], Shares], monkeypatch: pytest.MonkeyPatch
) -> dict[str, ClauseResult]:
    """Judge a figure by shares that a function of the case's label gives."""
    (one,) = experiments("santos2003", figure)
    monkeypatch.setattr(santos2003_curves, "_shares", lambda _results, label, _window: of(label))
    found = one.measure({case.label: [] for case in one.cases})
    return {item.id: item.whole for item in found if isinstance(item, Verdict)}


@pytest.mark.parametrize(
    ("worst", "at", "holds"), [(0.96, 4, True), (0.94, 4, False), (0.5, 3, True), (0.94, 10, False)]
)
def test_figure_6_is_judged_from_four_packets_on(
    worst: float, at: int, holds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of(label: str) -> Shares:
        response, _, buffer = label.split()
        root = (worst if int(buffer) == at else 0.97) if response == "LIPD" else 0.8
        local = 0.9 - 0.03 * int(buffer)
        used = 0.5 if response == "AIMD" and int(buffer) <= 4 else 0.95
        return shares(root=root, local=local, victim=used - root * (1 - local))

    found = verdicts("fig6", of, monkeypatch)["fig6"]
    assert found.holds is holds, found.facts
    assert "not judged: " in found.facts
    assert "at 2 packets, " in found.facts


@pytest.mark.parametrize(("packets", "holds"), [(4, False), (5.1, True), (9.9, True), (11, False)])
def test_packets_of_a_time_on_are_counted(
    packets: float, holds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Oracle: twenty flows, each on for half of the time, share the link."""
    root = 20 * packets * 2068 * 8 / 8e9 / (2 * 0.2e-3)

    def of(_label: str) -> Shares:
        one = shares(root=root)
        return Shares(
            static_local=one.dynamic_local,
            dynamic_local=one.static_local,
            static_remote=one.dynamic_remote,
            dynamic_remote=one.static_remote,
            victim=one.victim,
            jain=one.jain,
        )

    found = verdicts("fig7b", of, monkeypatch)["fig7b.packets"]
    assert found.holds is holds
    assert f"LIPD {packets:.1f}" in found.facts


def test_a_window_of_one_packet_has_a_closed_form() -> None:
    """Oracle: a packet for each round trip of a packet and its acknowledgement, alone."""
    (window,) = experiments("santos2003", "window")
    case = window.cases[0]
    scenario = study("santos2003", STUDY).override(case.overrides)
    result = silvan.run(scenario.override({"run.duration": "4 ms", "probe.interval": "4 ms"}))
    (delivered,) = result.classes["delivered_packets"].to_pylist()
    # Three cables of 10 ns and two switches of 40 ns each way, at 1 GB/s.
    round_trip_ns = 2068 + 20 + 2 * (3 * 10 + 2 * 40)
    assert delivered == pytest.approx(4e6 / round_trip_ns, abs=1)


def test_every_target_is_measured_or_has_a_reason() -> None:
    paper = find_paper("santos2003")
    ids = {one.id for one in experiments("santos2003")}
    for name in paper.targets:
        assert any(name.startswith(one) for one in ids), name
    for one in paper.unmeasured:
        assert one.id not in paper.targets
        assert one.what
        assert one.why
