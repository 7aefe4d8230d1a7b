"""The pages and the data of the arena have the numbers of its result."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from silvan._silvan import scheme_names
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
            "note": "",
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
    assert "seeds 1, 2; 4 trials" in text
    means = text.partition("## Means")[2]
    (none, *_) = cells(means, "`none`")
    # No control has no settings to tune, and one of its two cases is common to all schemes.
    assert none == ["`none`", "0.50", "", "0/2", "0.00 `forest`", "1.00"]
    (pft, *_) = cells(means, "`pft`")
    # Published settings count where none were tuned, and the best everywhere loses nowhere.
    assert pft == ["`pft`", "0.25", "1.00", "2/2", "1.00", ""]
    # By the common case: shares in other cases do not count.
    assert means.index("`pft`") < means.index("`reps`") < means.index("`none`")


def test_findings_name_schemes_with_their_numbers() -> None:
    text = tool.summary(FACTS, (1, 1.0))
    assert "**Best means with published settings, credits (InfiniBand):** `reps` 0.75" in text
    assert "**Tuning changes most:** `pft` +0.75." in text
    assert "**`none` has a mean of 0.50.** With published settings these have less: `pft`." in text
    # Tuning loses nothing here, and no control is never among the best with credits.
    assert "can lose" not in text
    assert "reaches at least" not in text


def test_the_page_has_the_best_scheme_of_each_case() -> None:
    text = tool.page(FACTS, (1, 1.0))
    (incast,) = cells(text, "`incast`")
    assert incast[3:] == [
        "[`pft` tuned 1](arena-viewer.html#case=incast)",
        "[`none` 4](arena-viewer.html#case=incast-pfc)",
    ]
    # The other scheme of this case has failed, and there is no such case with PFC.
    (forest,) = cells(text, "`forest`")
    assert forest[3:] == ["[`pft` 2.718](arena-viewer.html#case=forest)", ""]


def test_a_case_that_no_scheme_has_run_is_in_the_page() -> None:
    (forest,) = cells(tool.page({**FACTS, "entries": []}, (0, 0.0)), "`forest`")
    assert forest[3] == "[none](arena-viewer.html#case=forest)"


def test_the_data_has_every_number_and_loads_as_documented() -> None:
    found = tool.data(FACTS, (7, 1.25), {"forest": "It is dark."})
    text = tool.script(found)
    arena = json.loads(text.partition("=")[2].rstrip().rstrip(";"))
    assert arena == json.loads(json.dumps(found))
    assert arena["about"]["runs"] == 7
    by_name = {one["name"]: one for one in arena["cases"]}
    forest = by_name["forest"]
    assert forest["note"] == "It is dark."
    pft = dict(zip(forest["columns"], forest["rows"][1], strict=True))
    # Rounded: four digits of a mean, two of an interval.
    assert (pft["objective"], pft["objective_ci95"]) == (2.718, 0.031)
    assert pft["other_receivers_gbps"] == 3
    none = dict(zip(forest["columns"], forest["rows"][0], strict=True))
    assert none["failure"] == "it took too long"
    incast = by_name["incast"]
    assert dict(zip(incast["columns"], incast["rows"][1], strict=True))["cleared_ms"] == "never"
    assert by_name["incast-pfc"]["left_out"] == {"pft": "it has no credits"}
    for one in arena["cases"]:
        own = {name.removesuffix("_ci95") for name in one["columns"]}
        assert own - {"scheme", "settings", "failure"} <= set(arena["columns"])
        assert all(len(row) == len(one["columns"]) for row in one["rows"])


def test_the_committed_pages_are_of_one_result() -> None:
    """Pages, data and the size that the documents promise agree."""
    docs = tool.ROOT / "docs"
    text = (docs / tool.DATA).read_text("utf-8")
    assert len(text.encode()) < 1_000_000
    arena = json.loads(text.partition("=")[2].rstrip().rstrip(";"))
    page = (docs / "arena.md").read_text("utf-8")
    assert len(page.split()) <= 900
    assert f"{arena['about']['runs']:,} runs" in page
    assert f"{arena['about']['runs']:,} runs" in (docs / "comparison.md").read_text("utf-8")
    for case in arena["cases"]:
        assert f"{tool.VIEWER}#case={case['name']})" in page


def test_pages_of_the_whole_arena_are_short() -> None:
    """Every case with both kinds of links, every scheme, and tuned settings everywhere."""
    arena = tomllib.loads(
        (tool.ROOT / "python/silvan/comparing/arena/arena.toml").read_text("utf-8")
    )
    cases = [
        {
            **dict(FACTS["cases"][0], title=one["title"], objective=one["objective"], link=link),
            "name": one["name"] + ("-pfc" if link == "pfc" else ""),
        }
        for one in arena["case"]
        for link in ("credits", "pfc")
    ]
    entries = [
        entry(case["name"], scheme, settings, 0.5, objective=1.234)
        for case in cases
        for scheme in scheme_names()
        for settings in ("published", "tuned")
    ]
    facts = {**FACTS, "cases": cases, "entries": entries}
    assert len(tool.page(facts, (9999, 5.0)).split()) <= 900
    assert len(tool.summary(facts, (9999, 5.0)).split()) <= 1500
    size = len(tool.script(tool.data(facts, (1, 1.0), {})))
    assert size < 1_000_000


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
