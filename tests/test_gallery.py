"""Every example is in the gallery, and its number there is what a run gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from silvan.example_files import Example
from silvan.execution.estimate import estimate
from tests.test_documents import load_tool

tool = load_tool("gallery")
SLOW = ("gpcnet", "half")
# Phases of round trips take longer than their bytes; a scheme in Python may hold back anything.
NOT_ESTIMATED = ("gpcnet", "half")


def test_every_example_has_a_number() -> None:
    assert sorted(tool.EXPECTED) == [one.name for one in tool.scenarios()]
    assert all(expected["because"] for expected in tool.EXPECTED.values())


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(one, marks=[pytest.mark.slow] if one.name in SLOW else [], id=one.name)
        for one in tool.scenarios()
    ],
)
def test_the_number_is_what_a_run_gives(one: Example) -> None:
    shown = tool.show(one)
    assert shown.is_met, f"{shown.number}; expected {shown.expected}"
    if one.name in NOT_ESTIMATED:
        return
    # The estimate before a run is within a factor of two of the run.
    hops = shown.result.summary["packet_hops"]
    estimated = estimate(shown.result.scenario).packet_hops
    assert hops / 2 <= estimated <= 2 * hops, f"estimated {estimated:.3g}, run {hops:.3g}"


def test_the_page_names_command_picture_and_number(tmp_path: Path) -> None:
    (one,) = (one for one in tool.scenarios() if one.name == "victim")
    shown = tool.show(one)
    picture = tool.draw(shown, tmp_path)
    assert picture.stat().st_size > 1000
    text = tool.page([(shown, picture)])
    assert "silvan example victim\nsilvan run victim.toml\n" in text
    assert f"(gallery/{picture.name})" in text
    assert "**victim: 66.26 Gbit/s received.**" in text
