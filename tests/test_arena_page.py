"""The pages about the arena: what the tool writes is what the arena has, and the pages have it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from silvan.comparing.comparison import COMPARED
from tests.test_documents import load_tool

tool = load_tool("arena_page")


def entry(case: str, scheme: str, settings: str, share: float, **numbers: Any) -> dict[str, Any]:
    names = [one.name for one in COMPARED]
    return {
        "case": case,
        "link": "pfc" if case.endswith("-pfc") else "credits",
        "scheme": scheme,
        "settings": settings,
        "objective": None,
        "objective_interval": None,
        "share_of_best": share,
        "failure": None,
        **dict.fromkeys(names),
        **numbers,
    }


FACTS: dict[str, Any] = {
    "version": "1.2.3",
    "command": "silvan compare --arena",
    "seeds": [1, 2],
    "tuning": {"trials": 4, "seeds": [9]},
    "cases": [
        {
            "name": name,
            "title": name.title(),
            "note": "It is dark." if name == "forest" else "",
            "link": "pfc" if name.endswith("-pfc") else "credits",
            "objective": "minimize programs_end_ms",
            "command": f"silvan compare --arena --cases {name}",
            "left_out": {"pft": "it has no credits"} if name.endswith("-pfc") else {},
        }
        for name in ("incast", "forest", "incast-pfc")
    ],
    "entries": [
        entry("incast", "none", "published", 0.5, programs_end_ms=2.0, objective=2.0),
        entry("incast", "pft", "published", 0.25, programs_end_ms="never", cleared_ms="never"),
        entry("incast", "pft", "tuned", 1.0, programs_end_ms=1.0, objective=1.0),
        entry("incast", "reps", "published", 0.75, programs_end_ms=1.5, objective=1.5),
        entry("forest", "none", "published", 0.0, failure="it took too long"),
        entry(
            *("forest", "pft", "published", 1.0),
            other_receivers_gbps=3.0,
            objective=2.71828,
            objective_interval=0.0314,
        ),
        entry("incast-pfc", "none", "published", 1.0, programs_end_ms=4.0, objective=4.0),
    ],
}


def cells(text: str, scheme: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith(f"| {scheme} |")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_summary_has_means_counts_and_losses() -> None:
    text = tool.summary(FACTS, (1234, 5.678))
    assert "1,234 runs, 5.7 hours of processor time" in text
    assert "Seeds 1, 2; 4 trials" in text
    none, none_pfc = cells(text, "`none`")
    # It has no settings to tune, and one of its two cases is common to all schemes.
    assert none == ["`none`", "2", "0.50", "0.25", "0", "0.00", "`forest`", *[""] * 5]
    assert none_pfc == ["`none`", "1", "1.00", "1.00", "1", "1.00", ""]
    ((*published, common, mean, best, smallest, case),) = cells(text, "`pft`")
    assert published == ["`pft`", "2", "0.25", f"{5 / 8:.2f}", "1", "0.25", "`incast`"]
    # Published settings stand where none were tuned.
    assert (common, mean, best, smallest) == ("1.00", "1.00", "2", "1.00")
    # The best everywhere loses nowhere.
    assert case == ""
    # By the common case: what a scheme has in another one counts for nothing.
    assert text.index("`pft`") < text.index("`reps`") < text.index("`none`")


def test_a_case_has_what_was_reached_the_best_first() -> None:
    text = tool.cases(FACTS)
    of = {part.split("\n", 1)[0]: part for part in re.split(r"^## ", text, flags=re.MULTILINE)}
    assert cells(of["forest"], "`pft`") == [["`pft`", "2.718 ± 0.031", "1.00", "3.000"]]
    assert cells(of["forest"], "`none`") == [["`none`", "failed", "0.00", ""]]
    assert cells(of["incast"], "`pft`") == [["`pft`", "not reached", "0.25", "never", "never"]]
    assert of["incast"].index("`pft`, tuned") < of["incast"].index("`none`")
    assert "Takes no part, as it has no credits: pft." in of["incast-pfc"]
    assert [name for name, part in of.items() if "\n\nIt is dark.\n\n" in part] == ["forest"]
    for case in FACTS["cases"]:
        assert case["command"] in of[case["name"]]


def test_the_cost_is_that_of_all_runs(tmp_path: Path) -> None:
    runs = tmp_path / "a-build"
    runs.mkdir()
    for number in range(3):
        (runs / f"{number}.json").write_text('{"numbers": {}, "processor_s": 1200}')
    assert tool.cost(runs) == (3, pytest.approx(1.0))


def test_without_an_arena_it_says_what_to_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tool.main(str(tmp_path)) == 1
    assert "run `silvan compare --arena` first" in capsys.readouterr().out
