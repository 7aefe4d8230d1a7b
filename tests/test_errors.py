"""Errors: their text, their place, and their way between processes."""

from __future__ import annotations

import pickle

import pytest

from silvan.errors import OutputError, ScenarioError, SilvanError, SimulationError

ERRORS = [
    SilvanError("wrong", "mend it"),
    ScenarioError("unknown key", "a.toml", 3, "did you mean this?"),
    SimulationError("stalled", ("S1:1 VL0", "S2:1 VL0"), "break the cycle"),
    OutputError("cannot write"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_survives_the_way_from_a_worker_process(error: SilvanError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), vars(copy)) == (str(error), vars(error))


@pytest.mark.parametrize(
    ("source", "line", "text"),
    [("a.toml", 3, "a.toml:3: bad"), ("a.toml", None, "a.toml: bad"), (None, None, "bad")],
)
def test_a_scenario_error_starts_with_its_place(
    source: str | None, line: int | None, text: str
) -> None:
    assert str(ScenarioError("bad", source, line)) == text
