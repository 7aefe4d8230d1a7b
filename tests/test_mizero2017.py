"""mizero2017's studies in a reduced form: everything 50 times shorter."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

import silvan
from silvan.inputs.toml_text import TomlValue
from silvan.reproduce.experiment import Case
from silvan.reproduce.registry import study
from silvan_papers.mizero2017 import EXP1, EXP2
from silvan_papers.mizero2017_runs import VICTIM, actions, completion_s, course

FACTOR = 50

MANAGED: Mapping[str, TomlValue] = {
    **{f"traffic.flow.{index}.bytes": f"{140 * 128 * 2**20 // FACTOR} B" for index in range(4)},
    **{
        f"traffic.flow.{index}.start": f"{start * 1000 // FACTOR} ms"
        for index, start in enumerate((0, 2, 5, 7))
    },
    "control.dcms.interval": "25 ms",
    "control.dcms.congestion-threshold": 8_000_000 // FACTOR,
    "control.dcms.rate-reduction-threshold": 27_400_000 // FACTOR,
    "control.dcms.utilization-change-threshold": 30_000_000 // FACTOR,
    "probe.interval": "5 ms",
    "run.duration": "600 ms",
}


def managed(low_sweeps: int) -> silvan.Result:
    limit: dict[str, TomlValue] = {"control.dcms.low-duration": f"{low_sweeps * 25} ms"}
    scenario = study("mizero2017", "experiment2").override({**MANAGED, **limit})
    return silvan.run(scenario)


def test_the_manager_does_what_the_paper_tells() -> None:
    """Oracle: section 4.3, scenario 1."""
    result = managed(12)
    done, over_time = actions(result), course(result)
    # Four flows from 140 ms on; nothing was done while congestion was localized.
    assert done.lowered_s[0] == pytest.approx(0.175)
    before = over_time.mean(over_time.flows_gbps[VICTIM], 0.145, 0.175)
    held = over_time.mean(over_time.flows_gbps[VICTIM], 0.2, 0.4)
    assert before == pytest.approx(7.9 / 3, rel=0.02)
    assert held == pytest.approx(7.9, rel=0.02)
    assert completion_s(result, "Y") < done.restored_s[0]


def test_the_manager_starts_a_second_cycle() -> None:
    """Oracle: section 4.3, scenario 2."""
    result = managed(6)
    done = actions(result)
    assert done.restored_s[0] < completion_s(result, "Y")
    assert done.lowered_s[1] == pytest.approx(done.restored_s[0] + 0.025)


def test_what_was_decided_is_told() -> None:
    result = managed(12)
    log = result.tables["dcms"].to_pylist()
    first = log[0]
    assert (first["port"], first["reason"], first["victim"]) == ("S2:23", "victim-found", "S1:15")
    assert first["marking_rate"] == 0
    # 25 ms in ticks of 22 ns: the root was congested all the time.
    assert first["root_time_cong_ticks"] == pytest.approx(25e6 / 22, rel=0.01)


@pytest.mark.parametrize(
    ("name", "contributors", "victim_s"), [("75-0", 3.18, 40.3), ("75-2048", 8.0, 65.0)]
)
def test_experiment_1_agrees_with_the_paper(
    name: str, contributors: float, victim_s: float
) -> None:
    """Oracle: the numbers that section 4.2 states, within the targets' tolerances."""
    case: Case = next(one for one in EXP1.cases if one.label == name)
    scenario = study("mizero2017", case.study).override(
        {**case.overrides, **EXP1.quick, "run.duration": "3 s"}
    )
    result = silvan.run(scenario)
    over_time = course(result)
    total = over_time.mean(over_time.contributors(), 41 / FACTOR, 100 / FACTOR)
    assert total == pytest.approx(contributors, rel=0.15)
    assert completion_s(result, "Y") * FACTOR == pytest.approx(victim_s, rel=0.1)


def test_cases_are_the_papers() -> None:
    assert len(EXP1.cases) == 19
    assert [case.label for case in EXP2.cases] == ["12 sweeps", "6 sweeps"]
