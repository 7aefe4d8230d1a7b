"""Move the fragments in changes/ into CHANGELOG.md, under a version and its date."""

from __future__ import annotations

import argparse
import datetime
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("added", "changed", "deprecated", "removed", "fixed", "security")
_NAME = re.compile(r"[\w-]+\.([a-z]+)\.md")
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_HEADING = re.compile(r"^## (\S+)(?: \((.*)\))?$", re.MULTILINE)
_UNRELEASED = "unreleased"


def fragments(root: Path) -> list[Path]:
    """List the fragments."""
    return sorted(path for path in (root / "changes").glob("*") if path.name != "README.md")


def problems(root: Path) -> Iterator[str]:
    """Say which fragments have a wrong name or no text."""
    for path in fragments(root):
        match = _NAME.fullmatch(path.name)
        if match is None or match[1] not in KINDS:
            yield f"changes/{path.name}: name it NAME.KIND.md, KIND of {', '.join(KINDS)}"
        elif not path.read_text("utf-8").strip():
            yield f"changes/{path.name}: it has no text"


def released(root: Path) -> tuple[str, str | None]:
    """Return the version of the first section, and its date if it has one."""
    match = _HEADING.search((root / "CHANGELOG.md").read_text("utf-8"))
    if match is None:
        raise SystemExit("error: CHANGELOG.md has no section of a version")
    return match[1], None if match[2] in (None, _UNRELEASED) else match[2]


def section(root: Path, version: str, date: str) -> str:
    """Write the section of a version from the fragments."""
    return "\n".join([f"## {version} ({date})", "", *_items(root)])


def _items(root: Path) -> list[str]:
    """List the lines of the fragments, by kind."""
    lines = []
    for kind in KINDS:
        found = [path for path in fragments(root) if path.name.endswith(f".{kind}.md")]
        if found:
            items = [" ".join(path.read_text("utf-8").split()) for path in found]
            lines += [f"### {kind.capitalize()}", "", *(f"- {item}" for item in items), ""]
    return lines


def collect(root: Path, version: str, date: str) -> None:
    """Write the section, and remove the fragments; a section without a date gets both."""
    path = root / "CHANGELOG.md"
    text = path.read_text("utf-8")
    first, dated = released(root)
    if first == version and dated is None:
        before, _, after = text.partition(f"## {version}")
        own, rest, others = after.partition("\n## ")
        own = "\n".join([f" ({date})", *own.strip().splitlines()[1:], "", *_items(root)])
        path.write_text(f"{before}## {version}{own}{rest}{others}", "utf-8")
    elif first == version:
        raise SystemExit(f"error: CHANGELOG.md has {version} already, of {dated}")
    else:
        added = section(root, version, date)
        path.write_text(text.replace("\n## ", f"\n{added}\n## ", 1), "utf-8")
    for fragment in fragments(root):
        fragment.unlink()


def main() -> int:
    """Check fragments, or collect them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version", nargs="?", help="by default, only check the fragments")
    parser.add_argument("--date", default=datetime.datetime.now(datetime.UTC).date().isoformat())
    chosen = parser.parse_args()
    found = list(problems(ROOT))
    for line in found:
        print(f"error: {line}", file=sys.stderr)
    if found:
        return 1
    if chosen.version is not None:
        if not _VERSION.fullmatch(chosen.version):
            print(f"error: {chosen.version} is no version such as 1.1.0", file=sys.stderr)
            return 2
        collect(ROOT, chosen.version, chosen.date)
    return 0


if __name__ == "__main__":
    sys.exit(main())
