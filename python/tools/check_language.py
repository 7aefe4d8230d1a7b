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
    r"\bnobody\b": "no user, no host, no program",
    r"\bwhoever\b": "the user, the host or the program that",
    r"\bin (a|the) circle\b|\bin circles\b": "in a cycle, in a loop",
    r"\blooks? (for a deadlock|at a run)\b|\bbetween two looks\b": "check, sample",
    r"(?-i:\bLOOK_\w+|\blook_(at|again|every|if_due)\b)": "check_*, sample_*",
    r"\bforesee_\w+|\bexpect_(poll|host)\b": "prefetch_*",
    r"(?-i:\bReach::(Near|Middle|Far)\b|\benum Reach\b)": "WorkingSet",
    r"(?-i:\bWindowed\b|\bWINDOWED\b)|\bis_windowed\w*": "lookahead",
    r"(?-i:\b(trait|type) Form\b|\bF: Form\b)": "EngineVariant",
    r"(?-i:\b(struct|enum|class|type) (Both|Due|Finding|Late|Outside|Own|Place)\b)"
    r"|(?-i:\b(struct|enum|class|type) (Plain|Standing|Turn|What)\b)": (
        "the term in the list of renames, as TimerKind, Location, Diagnosis, Routing"
    ),
    r"(?-i:\b(Ways|Spill|Stash|Contender|NoWay|WrongWay|Desks?)\b)|\bserve_desk\b": (
        "routes, overflow, slab, baseline, control session"
    ),
    r"\b(un)?stash(es|ed)?\b|\bspill(s|ed)?\b": "slab, overflow",
    r"\bhead lanes?\b|\blanes? of the event queue\b": "fixed-delay queue",
    r"\b(fn|def) (give|settle|take_in|let_go)\b|\b(self|credits)\.(give|settle)\(": (
        "post, collect, receive, release"
    ),
    r"\b(fn|def|self\.)\s?(tell|ask)_\w+": "notify_*, query_*",
    r"\bforget_\w+|\bdoubt_\w+|\b(fn|def) (forget|doubt)\b": "invalidate_*, mark_stale_*",
    r"\bpath[-_]levels\b": "path-sl, PathServiceLevels",
    r"\bstart[-_ ]phases?\b": "random start offset",
    r"\bcontrol\.own\b": "control.python",
    r"\bhotspots[ _]used\b": "hotspot link utilisation",
    r"\btrees[ _]gone\b": "congestion cleared after",
    r"\bvictims[ _]back\b": "victims recovered after",
    r"\blate (averaging )?windows?\b|\b(within|found)_late\b|\blate_(rate|mean|ms|window)\b": (
        "steady state"
    ),
    r"\bwithin (its|their|the) aims?\b": "within tolerance",
    r"\b(dice|Dice)\b": "random seed, random numbers",
}
"""Words by pattern, and what to write instead. Identifiers are whole words with their case."""

GUIDE_PLAINER = {
    r"\bbeside\b": "next to, together with, as well as",
    r"\bthe circle\b|\bin a circle\b": "cycle",
    r"\bstands? (in|for|behind|at|below)\b": "is in, means, follows",
    r"\btold (with|by)\b": "printed with",
}
"""Further patterns for documents, which include the help texts of the generated reference."""


def files() -> list[Path]:
    """List the text files of the project that people write."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    kinds = {".ipynb", ".md", ".py", ".pyi", ".rs", ".toml", ".ts", ".tsx"}
    paths = (ROOT / name for name in listed.stdout.splitlines())
    own = Path(__file__).resolve()
    # The tests of this tool spell the words out, too.
    spared = {own, ROOT / "tests" / "test_language.py"}
    return [
        path for path in paths if path.suffix in kinds and path.is_file() and path not in spared
    ]


def words_for(path: Path) -> dict[str, str]:
    """Return the words that a file must not have."""
    is_document = path.suffix == ".ipynb" or (
        path.suffix == ".md" and (path.parent == ROOT or ROOT / "docs" in path.parents)
    )
    return PLAINER | GUIDE_PLAINER if is_document else PLAINER


def findings(text: str, words: dict[str, str] = PLAINER) -> Iterator[tuple[int, str, str]]:
    """Find words with a plainer one: line, word, and what to write instead."""
    for number, line in enumerate(text.splitlines(), start=1):
        for pattern, plainer in words.items():
            for match in re.finditer(pattern, line, re.IGNORECASE):
                yield number, match[0], plainer


def main() -> int:
    """Check all files, print the errors, and fail if there is one."""
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
