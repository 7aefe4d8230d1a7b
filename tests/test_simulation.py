"""Running: seeds, progress, and exceptions on the way."""

from __future__ import annotations

import threading

import pytest

import silvan
from tests.conftest import INCAST

RANDOM = silvan.Scenario.from_toml(INCAST).override(
    {"traffic.incast": [], "traffic.uniform": [{"load": 0.5}], "run.duration": "1 ms"}
)
LONG = RANDOM.override({"run.duration": "100 s", "probe.interval": "1 s"})


def test_equal_seeds_give_equal_results() -> None:
    first, second = (silvan.run(RANDOM, seed=7) for _ in range(2))
    assert first.tables == second.tables


def test_other_seeds_give_other_results() -> None:
    first, second = (silvan.run(RANDOM, seed=seed) for seed in (7, 8))
    assert first.hosts != second.hosts


def test_the_scenario_s_own_seed_is_the_default() -> None:
    result = silvan.run(RANDOM)
    assert result.seed == 3
    assert result.tables == silvan.run(RANDOM, seed=3).tables


class Enough(Exception):
    """Raised by a progress callback."""


def test_progress_grows_and_its_exception_ends_the_run() -> None:
    seen: list[silvan.Progress] = []

    def watch(state: silvan.Progress) -> None:
        seen.append(state)
        if len(seen) == 3:
            raise Enough

    with pytest.raises(Enough):
        silvan.run(LONG, progress=watch)
    assert len(seen) == 3
    assert seen[0].simulated_ps < seen[1].simulated_ps < seen[2].simulated_ps
    assert seen[0].packet_hops < seen[1].packet_hops < seen[2].packet_hops
    assert all(state.duration_ps == LONG.duration_ps for state in seen)


def test_other_threads_go_on_during_a_run() -> None:
    ticks = 0
    stop = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not stop.wait(0.001):
            ticks += 1

    ticks_between_reports: list[int] = []

    def watch(_: silvan.Progress) -> None:
        ticks_between_reports.append(ticks)
        if len(ticks_between_reports) == 4:
            raise Enough

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        with pytest.raises(Enough):
            silvan.run(LONG, progress=watch)
    finally:
        stop.set()
        thread.join()
    # With the lock held throughout, the ticks could only come in while the callback runs.
    assert ticks_between_reports[-1] - ticks_between_reports[0] > 3
