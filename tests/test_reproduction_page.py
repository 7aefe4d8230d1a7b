"""The pages about reproductions state the paper's numbers, and differences that are right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from silvan.reproduce import find_paper, papers
from tests.test_documents import ROOT, load_tool

tool = load_tool("reproduction_page")
ROW = re.compile(
    r"^\| `(?P<id>[^`]+)`(?P<star>\*?) \| (?P<paper>[-+\d.e]+) \| (?P<measured>[-+\d.e]+)[^|]* "
    r"\| (?P<outside>\**)(?P<diff>[-+\d.]+) %\** "
    r"\| (?P<steady_outside>\**)(?P<steady>[-+\d.e]*)\** \|$",
    re.MULTILINE,
)


def page(paper: str) -> Path:
    """Name the page of a paper."""
    return ROOT / "docs" / "reproductions" / f"{paper}.md"


GRID = re.compile(r"^\| `(?P<row>[\w.]+)` \| (?P<cells>[-+\d.e]+\*?, .*) \|$", re.MULTILINE)
CELL = re.compile(r"([-+\d.e]+)(\*?), (\**)([-+\d.e]+)\**")


def of_grid(text: str) -> dict[str, dict[str, str]]:
    """Read the rows of a table whose cells have the paper's number and the measured one."""
    head = re.search(r"^\| target \| (?!paper)(.*) \|$", text, re.MULTILINE)
    columns = head[1].split(" | ") if head else []
    found = {}
    for row in GRID.finditer(text):
        cells = row["cells"].split(" | ")
        for column, cell in zip(columns, cells, strict=True):
            parts = CELL.fullmatch(cell)
            assert parts, cell
            paper, star, outside, measured = parts.groups()
            difference = f"{100 * (float(measured) / float(paper) - 1):.1f}"
            found[f"{row['row']}.{column}"] = {
                "paper": paper,
                "star": star,
                "measured": measured,
                "outside": outside,
                "diff": difference,
                "steady": "",
                "steady_outside": "",
            }
    return found


@pytest.mark.parametrize("paper", papers())
def test_every_target_is_on_the_page_with_its_true_difference(paper: str) -> None:
    text = page(paper).read_text()
    rows = {row["id"]: row.groupdict() for row in ROW.finditer(text)} | of_grid(text)
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
        steady = (row["steady"], row["steady_outside"])
        for value, outside in ((row["measured"], row["outside"]), steady):
            if not value:
                continue
            difference = float(value) / target.value - 1
            # The value is rounded to four digits.
            if abs(abs(difference) - target.tol) > 1e-3:
                assert (outside == "") == (abs(difference) <= target.tol), name
        assert float(row["diff"]) == pytest.approx(
            100 * (float(row["measured"]) / target.value - 1), abs=0.15, rel=1e-3
        )
    for name, target in targets.items():
        if target.shape is not None:
            assert re.search(
                rf"^\| `{re.escape(name)}` \| (yes|\*\*no\*\*|not run) \|", text, re.MULTILINE
            )


def test_a_page_without_a_place_is_refused() -> None:
    with pytest.raises(ValueError, match="no place for numbers"):
        tool.replaced("nothing", "text", "reproduction_page")


def test_what_a_reproduction_measured_becomes_tables() -> None:
    """Oracle: the texts by hand, of a number outside its tolerance, a shape, and shared notes."""
    target = {
        "id": "fig5b.off",
        "paper": 2.0,
        "measured": 3.0,
        "spread": 0.5,
        "rel_diff": 0.5,
        "within_tolerance": False,
        "steady": 3.0,
        "within_tolerance_steady": False,
        "calibrated": True,
        "values": [2.5, 3.5],
        "note": "the value farthest from the paper's",
    }
    other = target | {"id": "fig5b.on", "steady": 2.0, "within_tolerance_steady": True}
    shape = {
        "id": "fig10",
        "paper": None,
        "rule": "it falls",
        "found": "yes",
        "found_steady": "no",
        "within_tolerance": True,
        "within_tolerance_steady": False,
    }
    runs = [{"packet_hops": 2e9, "wall_s": 60.0}] * 3
    reproduction = {
        "paper": "gran2012",
        "version": "1",
        "runs": runs,
        "experiments": [{"targets": [target, other, shape]}],
    }
    grid = [target | {"id": f"hpcc.{row}.{name}"} for row in "ab" for name in "abcd"]
    as_grid = tool.numbers(reproduction | {"experiments": [{"targets": grid}]})
    assert "| target | a | b | c | d |\n|---|---|---|---|---|\n| `hpcc.a` | 2*, **3** |" in as_grid
    text = tool.numbers(reproduction)
    assert "3 runs of silvan 1, 6.0 G packet-hops, 3 minutes of wall time" in text
    assert "| `fig5b.off`* | 2 | 3 ± 0.5 | **+50.0 %** |  |\n" in text
    assert "| `fig5b.on`* | 2 | 3 ± 0.5 | **+50.0 %** | 2 |\n" in text
    assert "| `fig10` | yes | **no** | it falls. Found: yes. Steady state: no. |\n" in text
    assert "- `fig5b.off`, `fig5b.on`: the value farthest from the paper's." in text
