"""Check that pages spell out abbreviations at first use, and link the glossary."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GLOSSARY = ROOT / "docs" / "guide" / "glossary.md"

ABBREVIATIONS = {
    "BECN": "backward explicit congestion notification",
    "CC": "congestion control",
    "CCT": "congestion control table",
    "CCTI": "index into the congestion control table",
    "CNP": "congestion notification packet",
    "DCMS": "dynamic congestion management system",
    "FECN": "forward explicit congestion notification",
    "GUID": "globally unique identifier",
    "HCA": "host channel adapter",
    "IBA": "InfiniBand Architecture Specification",
    "LFT": "linear forwarding table",
    "LID": "local identifier",
    "MAD": "management datagram",
    "MTU": "maximum transmission unit",
    "PMA": "performance management agent",
    "QP": "queue pair",
    "RMPP": "reliable multi-packet transaction protocol",
    "SA": "subnet administration",
    "SL": "service level",
    "SM": "subnet manager",
    "VL": "virtual lane",
    "VOQ": "virtual output queue",
}
"""Abbreviations of the glossary, and what they abbreviate."""

_FENCE = re.compile(r"^(```|~~~).*?^\1[^\S\n]*$", re.MULTILINE | re.DOTALL)
_NO_PROSE = re.compile(r"^(#|\||    ).*$", re.MULTILINE)
_CODE = re.compile(r"`[^`\n]*`")
_TARGET = re.compile(r"\]\([^)\s]*\)")
_NEAR = 80
"""Characters between an abbreviation and its long form, at most, where the short one is first."""


def blank(pattern: re.Pattern[str], text: str) -> str:
    """Replace matches by as many blanks, so that positions stay."""
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def prose(text: str) -> str:
    """Leave the prose of a page: no listings, headings, tables, code and addresses of links."""
    for pattern in (_FENCE, _NO_PROSE, _CODE, _TARGET):
        text = blank(pattern, text)
    return text


def spelled_out(text: str, long: str) -> int | None:
    """Find where the long form of an abbreviation is first, across line ends."""
    words = r"\s+".join(re.escape(word).replace(r"\-", "[- ]") for word in long.split())
    found = re.search(words, text, re.IGNORECASE)
    return found.start() if found else None


def problems(text: str, *, link: bool = True) -> Iterator[str]:
    """Find abbreviations that a page does not spell out, and a missing link to the glossary."""
    plain = prose(text)
    unfenced = blank(_CODE, blank(_FENCE, text))
    used = False
    for short, long in ABBREVIATIONS.items():
        pattern = rf"(?<![\w-]){short}s?(?![\w-])"
        used = used or re.search(pattern, unfenced) is not None
        first = re.search(pattern, plain)
        if first is None:
            continue
        at = spelled_out(text, long)
        if at is None or at > first.end() + _NEAR:
            yield f"{first[0]} is not spelled out at its first use: {long}"
    if link and used and "glossary.md" not in text:
        yield "uses abbreviations without a link to the glossary"


def pages() -> Iterator[tuple[Path, str]]:
    """List the pages that people write, with their text; a notebook's text is its Markdown."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "docs", "README.md"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path == GLOSSARY or "reference" in path.parts or not path.is_file():
            continue
        if path.suffix == ".md":
            yield path, path.read_text("utf-8")
        elif path.suffix == ".ipynb":
            cells = json.loads(path.read_text("utf-8"))["cells"]
            texts = ("".join(one["source"]) for one in cells if one["cell_type"] == "markdown")
            yield path, "\n\n".join(texts)


def main() -> int:
    """Check all pages, print the errors, and fail if there is one."""
    checked = wrong = 0
    for path, text in pages():
        checked += 1
        for problem in problems(text):
            print(f"{path.relative_to(ROOT)}: {problem}", file=sys.stderr)
            wrong += 1
    print(f"{checked} pages checked, {wrong} abbreviations or links to add")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
