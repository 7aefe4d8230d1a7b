"""Address of a page: values out of range, empty values, and texts that are no values."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import silvan
from silvan.viewer import write_page
from tests.viewer.conftest import Opener, wait_until_idle

pytestmark = pytest.mark.needs("chromium")


def _words(page: Page) -> dict[str, str]:
    wait_until_idle(page)
    words: dict[str, str] = page.evaluate(
        "Object.fromEntries(new URLSearchParams(location.hash.slice(1)))"
    )
    return words


@pytest.mark.parametrize(
    ("window", "marked"),
    [
        ("0.1-0.3", "0.1-0.3"),
        ("0.1-9", "0.1-0.4"),
        ("0-1e300", "0-0.4"),
        ("1e-1-2e-1", "0.1-0.2"),
        ("0.5-0.9", None),
        ("0.3-0.1", None),
        ("-0.5-0.1", None),
        ("-1--5", None),
        ("0.1-", None),
        ("-", None),
        ("a-b", None),
    ],
)
def test_a_window_is_one_of_the_run(
    open_page: Opener, page_file: Path, window: str, marked: str | None
) -> None:
    """Oracle: the run lasts 0.4 ms; titles name what numbers are of."""
    page = open_page(page_file, f"window={window}")
    assert _words(page).get("window") == marked
    first, last = (marked or "0-0.4").split("-")
    expect(page.get_by_role("region", name=f"Ports, {first} ms to {last} ms")).to_be_visible()


@pytest.mark.parametrize(
    "words", ["t=", "t=x", "camera=,,", "camera=", "camera=1,2", "select=tree:"]
)
def test_what_is_empty_or_no_value_changes_nothing(
    open_page: Opener, page_file: Path, words: str
) -> None:
    assert _words(open_page(page_file, words)) == _words(open_page(page_file))


def test_events_near_the_instant_begin_with_those_of_it(open_page: Opener, tmp_path: Path) -> None:
    """Oracle: flows start every 2 us, so 11 of them start within a fiftieth of 500 us."""
    flows = "".join(
        f'[[traffic.flow]]\nname = "f{at}"\nfrom = "host-0001"\nto = "host-0000"\n'
        f'bytes = "100 B"\nstart = "{2 * at} us"\n'
        for at in range(1, 200)
    )
    scenario = silvan.Scenario.from_toml(
        'name = "starts"\n[fabric]\ngenerator = "single-switch"\nhosts = 4\n'
        f'[probe]\ninterval = "10 us"\n[run]\nduration = "500 us"\n{flows}'
    )
    page = open_page(write_page([silvan.run(scenario)], tmp_path / "page.html"), "t=0.2")
    near = page.locator(".events").inner_text().split("; ")
    assert near[0] == "0.2 ms: f100 starts"
    assert {text.split()[2] for text in near[1:3]} == {"f99", "f101"}
    assert near[-1] == "7 more near this instant"
