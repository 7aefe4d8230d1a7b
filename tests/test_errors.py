"""Errors: their text, their place, and their way between processes."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from typing import Any

import pytest

import silvan
from silvan.errors import OutputError, ScenarioError, SchemeError, SilvanError, SimulationError

ERRORS = [
    SilvanError("wrong", "mend it"),
    ScenarioError("unknown key", "a.toml", 3, "did you mean this?", "switch.this", 5),
    SimulationError("stalled", ("S1:1 VL0", "S2:1 VL0"), "break the cycle"),
    OutputError("cannot write"),
    SchemeError("no function", "half.py", 3, "write one", hook="release", time_ps=5),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_survives_the_way_from_a_worker_process(error: SilvanError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), vars(copy)) == (str(error), vars(error))


def test_each_class_of_errors_survives_the_way_from_a_worker_process() -> None:
    classes, found = [SilvanError], []
    while classes:
        one = classes.pop()
        classes += one.__subclasses__()
        error = one("wrong")
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy), vars(copy)) == (one, "wrong", vars(error))
        found.append(one)
    assert {SchemeError, SimulationError, OutputError} <= set(found)


@pytest.mark.parametrize(
    ("source", "line", "text"),
    [("a.toml", 3, "a.toml:3: bad"), ("a.toml", None, "a.toml: bad"), (None, None, "bad")],
)
def test_a_scenario_error_starts_with_its_place(
    source: str | None, line: int | None, text: str
) -> None:
    assert str(ScenarioError("bad", source, line)) == text


def test_a_hint_is_in_the_traceback_once() -> None:
    with pytest.raises(ScenarioError) as caught:
        silvan.Scenario(swich={"buffer": "64 KiB"})
    copy = pickle.loads(pickle.dumps(caught.value))
    for error in (caught.value, copy):
        text = "".join(traceback.format_exception(error))
        assert text.splitlines().count('hint: did you mean "switch"?') == 1
    assert "hint" not in "".join(traceback.format_exception(OutputError("cannot write")))


@pytest.mark.parametrize("value", ["incast.toml", 3, None])
def test_something_else_than_a_scenario_is_refused(value: object) -> None:
    with pytest.raises(ScenarioError, match=r"is not a silvan\.Scenario") as caught:
        silvan.run(value)  # type: ignore[arg-type]
    hint = caught.value.hint
    assert hint is not None
    assert ("from_file('incast.toml')" in hint) is (value == "incast.toml")
    with pytest.raises(ScenarioError, match=r"is not a silvan\.Scenario"):
        silvan.sweep(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [-1, 2**63, 1.5, "1"])
def test_what_is_no_seed_is_refused(seed: Any) -> None:
    scenario = silvan.Scenario()
    for use in (
        scenario.single_run,
        scenario.tmax_gbps,
        lambda seed: silvan.run(scenario, seed=seed),
    ):
        with pytest.raises(ScenarioError, match="is not a seed") as caught:
            use(seed)
        assert caught.value.hint == "seeds are whole numbers from 0 to 9223372036854775807"


SCENARIO = silvan.Scenario()


@pytest.mark.parametrize(
    "call",
    [
        lambda: SCENARIO.override(None),  # type: ignore[arg-type]
        lambda: SCENARIO.override({3: 4}),  # type: ignore[dict-item]
        lambda: SCENARIO.override({"run": {3: 4}}),
        lambda: silvan.Scenario.from_file(None),  # type: ignore[arg-type]
        lambda: silvan.Scenario.from_file(3),  # type: ignore[arg-type]
        lambda: silvan.Scenario.from_toml(None),  # type: ignore[arg-type]
        lambda: silvan.Scenario.from_toml("", overrides=3),  # type: ignore[arg-type]
        lambda: silvan.sweep(SCENARIO, 3),  # type: ignore[arg-type]
        lambda: silvan.sweep(SCENARIO, {3: [4]}),  # type: ignore[dict-item]
        lambda: silvan.sweep(SCENARIO, seeds="2"),  # type: ignore[arg-type]
        lambda: silvan.sweep(SCENARIO, workers="2"),  # type: ignore[arg-type]
        lambda: silvan.sweep(SCENARIO, workers=0),
        lambda: silvan.sweep(SCENARIO, workers=True),
        lambda: silvan.sweep(SCENARIO, seeds=0),
        lambda: silvan.run(SCENARIO, seed=True),
        lambda: silvan.run(SCENARIO, threads=True),
        lambda: silvan.sweep(SCENARIO, out=3),  # type: ignore[arg-type]
        lambda: silvan.sweep(SCENARIO, scheduler=3),  # type: ignore[arg-type]
        lambda: silvan.sweep(SCENARIO, point_timeout_s="2 s"),  # type: ignore[arg-type]
        lambda: silvan.sweep(SCENARIO, progress=3),  # type: ignore[arg-type]
        lambda: silvan.run(SCENARIO, control=3),  # type: ignore[arg-type]
        lambda: silvan.run(SCENARIO, progress=3),  # type: ignore[arg-type]
    ],
)
def test_arguments_of_wrong_types_are_refused(call: Callable[[], object]) -> None:
    with pytest.raises(SilvanError) as caught:
        call()
    assert caught.value.hint
