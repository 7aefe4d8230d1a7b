"""The viewer of the arena shows, sorts and filters its numbers for everybody."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.test_arena_page import FACTS, tool
from tests.viewer.conftest import PATIENCE_MS
from tests.viewer.test_access import PHONE, findings

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture
def viewer(tmp_path: Path) -> Path:
    """Put the viewer next to the data of a small arena."""
    found = tool.data(FACTS, (7, 1.25), {"forest": "It is dark."})
    (tmp_path / tool.DATA).write_text(tool.script(found), encoding="utf-8")
    return Path(shutil.copy(tool.ROOT / "docs" / tool.VIEWER, tmp_path))


@pytest.fixture
def complaints() -> Iterator[list[str]]:
    """Collect what pages complain about, which is nothing."""
    said: list[str] = []
    yield said
    assert said == []


def opened(
    browser: Browser, file: Path, complaints: list[str], address: str = "", **options: Any
) -> Page:
    page = browser.new_context(accept_downloads=True, **options).new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request",
        lambda request: (
            None
            if request.url.startswith(("file:", "blob:", "data:"))
            else complaints.append(request.url)
        ),
    )
    page.goto(f"{file.as_uri()}#{address}")
    return page


def shown(page: Page) -> list[list[str]]:
    rows = page.locator("tbody tr").all()
    return [row.locator("th, td").all_inner_texts() for row in rows]


def test_all_cases_have_the_share_of_each_scheme(
    browser: Browser, viewer: Path, complaints: list[str]
) -> None:
    page = opened(browser, viewer, complaints)
    assert page.locator("thead th").all_inner_texts() == [
        "scheme",
        "mean of 1 cases",
        "incast",
        "forest",
    ]
    assert shown(page) == [
        ["pft (tuned)", "1", "1", "1"],
        ["reps", "0.75", "0.75", ""],
        ["none", "0.5", "0.5", "0"],
        ["pft", "0.25", "0.25", "1"],
    ]
    expect(page.get_by_role("status")).to_have_text("4 of 4 rows")


def test_keys_sort_filter_and_choose_columns(
    browser: Browser, viewer: Path, complaints: list[str]
) -> None:
    page = opened(browser, viewer, complaints, "case=incast")
    assert [row[0] for row in shown(page)] == ["pft (tuned)", "reps", "none", "pft"]
    button = page.get_by_role("button", name="programs end")
    button.focus()
    page.keyboard.press("Enter")
    # Less is better; never comes last.
    assert [row[0] for row in shown(page)] == ["pft (tuned)", "reps", "none", "pft"]
    expect(page.locator("th[aria-sort=ascending]")).to_have_count(1)
    page.keyboard.press("Enter")
    assert [row[0] for row in shown(page)] == ["pft", "none", "reps", "pft (tuned)"]
    page.get_by_label("Schemes that contain").fill("pf")
    page.get_by_label("Settings").select_option("published")
    assert [row[0] for row in shown(page)] == ["pft"]
    expect(page.get_by_role("status")).to_have_text("1 of 4 rows")
    page.get_by_text("Columns", exact=True).first.click()
    page.get_by_label("share of the best").uncheck()
    assert "share of the best" not in page.locator("thead").inner_text()
    # The address has the choice, so that it can be sent.
    again = opened(browser, viewer, complaints, page.url.partition("#")[2])
    assert [row[0] for row in shown(again)] == ["pft"]


def test_intervals_failures_and_absent_schemes_are_shown(
    browser: Browser, viewer: Path, complaints: list[str]
) -> None:
    page = opened(browser, viewer, complaints, "case=forest")
    page.get_by_label("95 % confidence intervals").check()
    assert shown(page)[0][1] == "2.718 ± 0.031"
    assert shown(page)[1][1] == "failed"
    text = page.locator("main").inner_text()
    assert "none: it took too long" in text
    assert "It is dark." in text
    page.get_by_label("Links").select_option("pfc")
    expect(page.get_by_role("status")).to_have_text("This case has no such links.")
    page.get_by_label("Case", exact=True).select_option("incast")
    assert "pft: it has no credits." in page.locator("main").inner_text()


def test_the_shown_table_is_saved_as_csv(
    browser: Browser, viewer: Path, complaints: list[str], tmp_path: Path
) -> None:
    page = opened(browser, viewer, complaints, "case=forest&schemes=pft")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as CSV").click()
    download.value.save_as(tmp_path / "saved.csv")
    head, row = (tmp_path / "saved.csv").read_text().splitlines()
    saved = dict(zip(head.split(","), row.split(","), strict=True))
    assert (saved["scheme"], saved["objective"], saved["objective_ci95"]) == (
        "pft",
        "2.718",
        "0.031",
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [{}, PHONE], ids=["desk", "phone"])
def test_axe_finds_nothing_serious(
    browser: Browser, viewer: Path, complaints: list[str], scheme: str, size: dict[str, Any]
) -> None:
    for address in ("", "case=incast&halves=1"):
        page = opened(browser, viewer, complaints, address, color_scheme=scheme, **size)
        assert findings(page) == []


def test_without_its_data_it_says_so(browser: Browser, viewer: Path) -> None:
    (viewer.parent / tool.DATA).unlink()
    page = opened(browser, viewer, [])
    expect(page.get_by_role("status")).to_contain_text("arena-data.js is missing")
