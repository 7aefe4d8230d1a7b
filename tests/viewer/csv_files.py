"""The files in CSV that a page offers, and how their values are compared."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Page

SMALL_VIEW: dict[str, Any] = {"viewport": {"width": 600, "height": 500}}
"""A view whose map is drawn quickly."""

FLOAT32 = 2**-22
"""Relative error of what pages have as 32-bit floats: counters of live fabrics and of subnets."""

_OPEN_TAB = "(name) => document.getElementById(`tab-${name}`).click()"
_PRESS_ALL = """
async () => {
  const files = [];
  const { createObjectURL } = URL;
  const { click } = HTMLAnchorElement.prototype;
  let saved = null;
  URL.createObjectURL = (blob) => ((saved = blob), "blob:");
  HTMLAnchorElement.prototype.click = () => {};
  for (const button of document.querySelectorAll("button")) {
    if (button.textContent !== "CSV") continue;
    button.click();
    files.push([button.getAttribute("aria-label"), await saved.text()]);
  }
  URL.createObjectURL = createObjectURL;
  HTMLAnchorElement.prototype.click = click;
  return files;
}
"""
"""Presses every button for CSV, and keeps what would be saved."""


@dataclass(frozen=True)
class CsvFile:
    """A table that the page has downloaded.

    Attributes
    ----------
    header : list of str
        Names of the columns.
    rows : list of list of str
        Its cells.
    """

    header: list[str]
    rows: list[list[str]]

    def texts(self, name: str) -> list[str]:
        """Return a column."""
        assert self.header.count(name) == 1, f"{name!r} in {self.header}"
        place = self.header.index(name)
        return [row[place] for row in self.rows]

    def numbers(self, name: str) -> list[float | None]:
        """Return a column of numbers; an empty cell has none."""
        return [float(text) if text else None for text in self.texts(name)]

    def by(self, *names: str) -> dict[str, dict[str, str]]:
        """Return the rows as dictionaries, by the cells of some columns, joined by a colon."""
        keys = [":".join(words) for words in zip(*map(self.texts, names), strict=True)]
        assert len(set(keys)) == len(keys)
        rows = (dict(zip(self.header, row, strict=True)) for row in self.rows)
        return dict(zip(keys, rows, strict=True))


def csv_files(page: Page) -> dict[str, CsvFile]:
    """Download all data that a page offers as CSV, by title; each must conform to RFC 4180."""
    found = {}
    for label, text in page.evaluate(_PRESS_ALL):
        title = label.removeprefix("Download ").removesuffix(" as CSV")
        assert title not in found, f"two files are named {title}"
        found[title] = _read(text)
    return found


def csv_of_rankings(page: Page) -> dict[str, CsvFile]:
    """Download all that a page offers, with the ranking of each tab."""
    found: dict[str, CsvFile] = {}
    for tab in ("ports", "trees", "victims", "culprits"):
        page.evaluate(_OPEN_TAB, tab)
        page.wait_for_selector(f"#tab-{tab}[aria-selected=true]")
        found |= csv_files(page)
    return found


def _read(text: str) -> CsvFile:
    """Read CSV, and check that Python would quote and end the same cells in the same way."""
    header, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    again = io.StringIO(newline="")
    csv.writer(again).writerows([header, *rows])
    assert text == again.getvalue()
    assert {len(row) for row in rows} <= {len(header)}
    return CsvFile(header, rows)


def assert_equal(
    shown: Sequence[float | None], expected: Iterable[float | None], rel: float = 1e-12
) -> None:
    """Compare numbers with what they should be; what is not known must be empty."""
    wanted = list(expected)
    assert len(shown) == len(wanted)
    for place, (one, other) in enumerate(zip(shown, wanted, strict=True)):
        if other is None or math.isnan(other):
            assert one is None, f"{one} at {place}, where nothing is known"
        else:
            assert one is not None, f"nothing at {place}, not {other}"
            assert math.isclose(one, other, rel_tol=rel), f"{one} at {place}, not {other}"


def plain(value: Any) -> str:
    """Write a value of a table of a result, whose whole numbers JavaScript prints alike."""
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
