"""Python values as TOML: the standard library's parser is the oracle."""

from __future__ import annotations

import tomllib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silvan.errors import ScenarioError
from silvan.inputs.toml_text import flatten, literal, parse_assignments

# Surrogates have no UTF-8 form, so no TOML file can hold them.
_text = st.text(st.characters(exclude_categories=["Cs"]))
_scalars = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | _text
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_text, inner, max_size=4),
    max_leaves=12,
)


@given(_values)
def test_a_literal_reads_back_as_the_value_it_was_made_from(value: Any) -> None:
    assert tomllib.loads(f"value = {literal(value)}") == {"value": value}


@given(st.dictionaries(st.sampled_from(["a", "b-c", "d_e"]), _values, max_size=3))
def test_flattened_tables_read_back_as_the_tables(tables: dict[str, Any]) -> None:
    text = "\n".join(f"{key} = {literal(value)}" for key, value in flatten(tables))
    assert tomllib.loads(text) == tables


_circle: list[Any] = []
_circle.append(_circle)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (None, "NoneType"),
        (b"bytes", "type bytes"),
        ({3: "x"}, "the key 3"),
        (_circle, "64 levels"),
        (2**63, "64 bits"),
        ("\ud800", "UTF-8"),
        (np.array(["2026-01-01"], dtype="datetime64[D]"), "type date"),
    ],
    ids=["None", "bytes", "number as a key", "cycle", "large number", "surrogate", "dates"],
)
def test_a_value_without_a_toml_form_is_refused(value: object, problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem) as caught:
        literal(value)
    assert caught.value.hint is not None


@pytest.mark.parametrize(
    "value",
    [
        np.float64(0.1),
        np.float32(0.5),
        np.int64(7),
        np.uint8(255),
        np.bool_(True),
        np.str_("1 ms"),
        np.array(3),
        np.arange(4),
        np.linspace(0, 1, 5),
        np.array([[True, False], [False, True]]),
        np.array(["a", "b"]),
    ],
    ids=repr,
)
def test_numbers_and_arrays_of_numpy_are_plain_values(value: Any) -> None:
    """Oracle: NumPy's own conversion."""
    assert tomllib.loads(f"value = {literal(value)}") == {"value": value.tolist()}


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("run.duration=1 ms", "1 ms"),
        ("run.duration='1 ms'", "1 ms"),
        ("name=a=b", "a=b"),
        ("run.seed = 7", 7),
        ("traffic.nodes.p=0.5", 0.5),
        ("probe.ports=true", True),
        ("vl.sl-to-vl=[0, 1]", [0, 1]),
    ],
)
def test_an_assignment_takes_any_literal_and_plain_text(word: str, value: Any) -> None:
    assert list(parse_assignments([word]).values()) == [value]


@pytest.mark.parametrize("word", ["run.seed", "=1", " = 1", ""])
def test_a_word_that_is_no_assignment_is_refused_with_a_hint(word: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_assignments([word])
    assert caught.value.source == "--set"
    assert caught.value.hint is not None


def test_the_last_of_two_assignments_of_a_key_holds() -> None:
    assert parse_assignments(["run.seed=1", "run.seed=2"]) == {"run.seed": 2}
