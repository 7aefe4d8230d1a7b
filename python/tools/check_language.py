"""Check that no word is used that has a standard or plainer one; see docs/guide/glossary.md."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PLAINER = {
    r"\banew\b": "again",
    r"\bfor ever\b": "permanently, without end",
    r"\bin vain\b": "without effect",
    r"\bthe dice\b": "random seed",
    r"\btell_\w*change\b": "notify_*",
    r"\bgive_back\b": "return_*",
    r"\bforget_(releases|times)\b": "invalidate_*",
    r"\bseam\b": "hooks, interface",
    r"\bIB CC\b": "ib-cc",
    r"\bone_of_(switches|sources)\b": "dispatch_*",
    r"\bmatters not\b": "has no effect",
    r"\bshall\b": "must, will; or the imperative",
    r"\bowes?\b": "has left to send",
    r"\btwigs?\b": "branch",
    r"\bstrangled?\b": "slow down",
    r"\bsenders? with victims\b": "host with blocked packets",
    r"\b(hereby|hitherto|therein|thereof|wherein|whereof)\b": "a plain word",
}
"""Words by pattern, and what to write instead."""

GUIDE_PLAINER = {
    r"\bnobody\b": "no user, no host, no program",
    r"\bwhoever\b": "the user, the host or the program that",
    r"\bbeside\b": "next to, together with, as well as",
    r"\bthe circle\b|\bin a circle\b": "cycle",
    r"\bstands? (in|for|behind|at|below)\b": "is in, means, follows",
    r"\btold (with|by)\b": "printed with",
}
"""The same for the user guide and the documents at the top."""


def files() -> list[Path]:
    """List the text files of the project that people write."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    kinds = {".md", ".rs", ".py", ".pyi", ".toml"}
    paths = (ROOT / name for name in listed.stdout.splitlines())
    own = Path(__file__).resolve()
    return [path for path in paths if path.suffix in kinds and path.is_file() and path != own]


def words_for(path: Path) -> dict[str, str]:
    """Return the words that a file must not have."""
    is_guide = path.suffix == ".md" and path.parent in (
        ROOT,
        ROOT / "docs",
        ROOT / "docs" / "guide",
    )
    return PLAINER | GUIDE_PLAINER if is_guide else PLAINER


def findings(text: str, words: dict[str, str] = PLAINER) -> Iterator[tuple[int, str, str]]:
    """Find words with a plainer one: line, word, and what to write instead."""
    for number, line in enumerate(text.splitlines(), start=1):
        for pattern, plainer in words.items():
            for match in re.finditer(pattern, line, re.IGNORECASE):
                yield number, match[0], plainer


def main() -> int:
    """Check all files; print what is wrong, and fail if anything is."""
    checked = files()
    wrong = 0
    for path in checked:
        for number, word, plainer in findings(path.read_text("utf-8"), words_for(path)):
            print(f"{path.relative_to(ROOT)}:{number}: {word!r}: write {plainer}")
            wrong += 1
    print(f"{len(checked)} files checked, {wrong} words to replace")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
