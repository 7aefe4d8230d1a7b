"""The documentation site has every page, and keeps its links where it can."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.test_documents import load_tool

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


def test_images_state_their_size_and_load_late() -> None:
    hooks = load_tool("site_hooks")
    image = SimpleNamespace(content_bytes=(ROOT / "docs" / "images" / "viewer.gif").read_bytes())
    files = {"images/viewer.gif": image}
    found = SimpleNamespace(get_file_from_path=files.get)
    page = SimpleNamespace(file=SimpleNamespace(src_uri="guide/viewing.md"))
    html = '<img alt="a" src="../images/viewer.gif" /><img src="elsewhere.svg" />'
    assert hooks.on_page_content(html, page, None, found) == (
        '<img loading="lazy" width="633" height="516" alt="a" src="../images/viewer.gif" />'
        '<img loading="lazy" src="elsewhere.svg" />'
    )


def test_versions_are_offered_where_mike_lists_them(monkeypatch: pytest.MonkeyPatch) -> None:
    hooks = load_tool("site_hooks")
    config = SimpleNamespace(extra={"version": {"provider": "mike"}})
    monkeypatch.setenv("MIKE_DOCS_VERSION", "1.0")
    assert hooks.on_config(config).extra
    monkeypatch.delenv("MIKE_DOCS_VERSION")
    assert not hooks.on_config(config).extra
