"""The pages about reproductions state the paper's numbers, and differences that are right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from silvan.reproduce import find_paper, papers
from tests.test_documents import ROOT, load_tool

tool = load_tool("reproduction_page")
ROW = re.compile(
    r"^\| `(?P<id>[^`]+)`(?P<star>\*?) \| (?P<paper>[-\d.]+) \| (?P<measured>[-\d.e]+)[^|]* "
    r"\| (?P<diff>[-+\d.]+) % \| (?P<within_tolerance>\**\w+\**) \| (?P<steady>[-\d.e]+) "
    r"\| (?P<steady_within>\**\w+\**) \|$",
    re.MULTILINE,
)


def page(paper: str) -> Path:
    """Name the page of a paper."""
    return ROOT / "docs" / "reproductions" / f"{paper}.md"


@pytest.mark.parametrize("paper", papers())
def test_every_target_is_on_the_page_with_its_true_difference(paper: str) -> None:
    text = page(paper).read_text()
    rows = {row["id"]: row for row in ROW.finditer(text)}
    targets = find_paper(paper).targets
    left_out = set(re.findall(r"^\| `([^`]+)` \| not run \|", text, re.MULTILINE))
    assert rows.keys() == {
        name
        for name, target in targets.items()
        if target.value is not None and name not in left_out
    }
    for name, row in rows.items():
        target = targets[name]
        assert target.value is not None
        assert target.tol is not None
        assert float(row["paper"]) == pytest.approx(target.value, rel=1e-5)
        assert (row["star"] == "*") == target.calibrate
        for value, within in (
            (row["measured"], row["within_tolerance"]),
            (row["steady"], row["steady_within"]),
        ):
            difference = float(value) / target.value - 1
            # The value is rounded to four digits.
            if abs(abs(difference) - target.tol) > 1e-3:
                assert (within == "yes") == (abs(difference) <= target.tol), name
        assert float(row["diff"]) == pytest.approx(
            100 * (float(row["measured"]) / target.value - 1), abs=0.15
        )
    for name, target in targets.items():
        if target.shape is not None:
            assert re.search(
                rf"^\| `{re.escape(name)}` \| (yes|\*\*no\*\*|not run) \|", text, re.MULTILINE
            )


def test_a_page_without_a_place_is_refused() -> None:
    with pytest.raises(ValueError, match="no place for numbers"):
        tool.replaced("nothing", "text", "reproduction_page")
