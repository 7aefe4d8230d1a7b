"""The documentation site has every page, and keeps its links where it can."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAV = re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)


def test_every_page_is_in_the_navigation_once() -> None:
    docs = ROOT / "docs"
    pages = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    notes = {page for page in pages if re.match(r"decisions/\d", page)}
    notebooks = {f"notebooks/{path.stem}.md" for path in docs.glob("notebooks/*.ipynb")}
    outside = {"contributing.md", "security.md", "changelog.md", "action.md", "fuzz.md"}
    added = {"index.md", "gallery.md", "api.md", *outside}
    assert sorted(NAV) == sorted((pages - notes) | notebooks | added)


def test_warnings_are_errors() -> None:
    assert "\nstrict: true\n" in (ROOT / "mkdocs.yml").read_text("utf-8")
    # MkDocs counts warnings only where it prints them.
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert re.search(r"mkdocs build$", makefile, re.MULTILINE)
