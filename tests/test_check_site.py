"""The check of the site finds each mistake in a small site, and none in a good one."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.test_documents import load_tool

PAGE = (
    '<!DOCTYPE html><html lang="en"><head><title>a</title>'
    '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,"></head>'
    "<body><main>{}</main></body></html>"
)
GOOD = '<h1 id="top">Silvan</h1><p><a href="sub/b.html#end">on</a> <a href="#top">up</a></p>'


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.html").write_text(PAGE.format(GOOD))
    (tmp_path / "sub" / "b.html").write_text(PAGE.format('<p id="end">end</p>'))
    return tmp_path


@pytest.mark.parametrize(
    ("link", "words"),
    [("c.html", "no such page"), ("sub/b.html#no", "no such anchor"), ("#no", "no such anchor")],
)
def test_a_link_to_nothing_is_named(site: Path, link: str, words: str) -> None:
    tool = load_tool("check_site")
    assert list(tool.broken_links(site)) == []
    (site / "a.html").write_text(PAGE.format(f'<a href="{link}">x</a><a href="http://e.org">y</a>'))
    assert list(tool.broken_links(site)) == [f"a.html: {link}: {words}"]


@pytest.mark.slow
@pytest.mark.needs("chromium")
def test_chromium_finds_what_is_wrong_with_a_page(site: Path) -> None:
    tool = load_tool("check_site")
    assert list(tool.problems(site, ["a.html"])) == []
    bad = '<script>no()</script><img src="absent.png"><p style="width: 2000px">wide</p>'
    bad += '<script src="b.js"></script>'
    # Random, so that the server cannot compress it. Chromium cancels images that are none.
    (site / "b.js").write_text(f"// {random.Random(1).randbytes(1_500_000).hex()}")
    (site / "a.html").write_text(PAGE.format(bad))
    found = "\n".join(tool.problems(site, ["a.html"]))
    for words in ("a script fails", "404", "bytes", "pixels wide on a screen of 360", "image-alt"):
        assert words in found
