"""Check Markdown documents: links, anchors and quoted paths exist, and the words do not grow."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^(```|~~~).*?^\1[^\S\n]*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*$", re.MULTILINE)
_QUOTED = re.compile(r"`([^`\s]+)`")
_WEB = ("http://", "https://", "mailto:")

MOST_WORDS = 60_000
"""Only lower it."""
SLACK = 2_000


def documents() -> list[Path]:
    """List the Markdown files that git knows, and new ones that it does not ignore."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return [path for name in listed.stdout.splitlines() if (path := ROOT / name).is_file()]


def anchors(text: str) -> set[str]:
    """Name the anchors that a page's headings make."""
    headings = _HEADING.findall(_FENCE.sub("", text))
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


def broken_links(page: Path, text: str) -> Iterator[str]:
    """Find links to files or headings that are not there."""
    for target in _LINK.findall(_FENCE.sub("", text)):
        if target.startswith(_WEB):
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        if not linked.exists():
            yield f"link to {target}: no such file"
        elif anchor and linked.suffix == ".md" and anchor not in anchors(linked.read_text("utf-8")):
            yield f"link to {target}: no such heading"


def missing_paths(page: Path, text: str, top: set[str]) -> Iterator[str]:
    """Find quoted paths that start in a folder of this project and lead nowhere."""
    for quoted in _QUOTED.findall(_FENCE.sub("", text)):
        head, slash, _ = quoted.partition("/")
        # A path with a placeholder (studies/PAPER, crates/*) names a pattern.
        if not slash or head not in top or re.search(r"[*<>{}$]|[A-Z]{3,}$|[A-Z]{4,}/", quoted):
            continue
        if not any((base / quoted).exists() for base in (ROOT, page.parent)):
            yield f"path {quoted}: no such file"


def is_counted(page: Path) -> bool:
    """Decide whether people write a page; ``make reference`` writes those of the reference."""
    return ROOT / "docs" / "reference" not in page.parents


def count_words(text: str) -> int:
    """Count the words of a page, code included: what has a letter or a digit between blanks."""
    return sum(any(map(str.isalnum, word)) for word in text.split())


def wrong_ceiling(words: int, most: int = MOST_WORDS) -> Iterator[str]:
    """Find documents that are longer than the ceiling, or a ceiling that is too high for them."""
    if words > most:
        yield f"{words:,} words, at most {most:,} are allowed: cut as much as you add"
    elif words < most - SLACK:
        yield f"{words:,} words: lower MOST_WORDS of check_documents.py to that"


def main() -> int:
    """Check all documents, print the errors, and fail if there is one."""
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    top = {name.split("/")[0] for name in tracked.stdout.splitlines() if "/" in name}
    pages = documents()
    problems = 0
    for page in pages:
        text = page.read_text("utf-8")
        for problem in (*broken_links(page, text), *missing_paths(page, text, top)):
            print(f"{page.relative_to(ROOT)}: {problem}", file=sys.stderr)
            problems += 1
    words = sum(count_words(page.read_text("utf-8")) for page in pages if is_counted(page))
    for problem in wrong_ceiling(words):
        print(f"documents: {problem}", file=sys.stderr)
        problems += 1
    print(f"{len(pages)} documents checked, {words:,} words, {problems} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
