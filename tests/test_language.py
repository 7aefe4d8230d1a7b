"""The checks of words and abbreviations find what they are written for."""

from __future__ import annotations

import pytest

from tests.test_documents import ROOT, language, load_tool

abbreviations = load_tool("check_abbreviations")

WRITTEN = (
    "It starts anew.",
    "It waits for ever.",
    "It waits in vain.",
    "Of the dice that decide.",
    "fn tell_link_change(&self);",
    "self.give_back(credits)",
    "fn forget_releases(&mut self)",
    "The seam of the engine.",
    "title = 'IB CC'",
    "one_of_switches!(switch)",
    "It matters not.",
    "The packet shall wait.",
    "The packet owes two bytes.",
    "Members of trees, trunks over twigs.",
    "A strangled flow.",
    "The sender with victims.",
    "The page and what is therein.",
    "nobody is throttled",
    "whoever starts a run",
    "Packets wait in a circle.",
    "Packets go in circles.",
    "Time between two looks.",
    "const LOOK_EVERY: u64 = 1;",
    "self.look_at(now)",
    "self.foresee_heads(lane)",
    "self.workload.expect_poll(host)",
    "plane.reach == Reach::Far",
    "enum Reach {",
    "Engine<S, C, W, Windowed>",
    "if F::WINDOWED {",
    "fabric.is_windowed_with_control()",
    "pub trait Form: Sealed {",
    "fn head<F: Form>(&self)",
    "struct Both<A, B>(A, B);",
    "enum Due {",
    "class Finding:",
    "struct Late {",
    "struct Own(Scheme);",
    "struct Place {",
    "struct Plain;",
    "class Standing:",
    "struct Turn {",
    "enum What {",
    "struct Outside {",
    "pub ways: Ways,",
    "spill: Spill::default(),",
    "stash: Stash,",
    "contender = Contender(name)",
    "Err(NoWay::NotAList)",
    "RouteError::WrongWay { port }",
    "let mut desk = Desk {",
    "self.serve_desk(number)",
    "It is stashed for later.",
    "Entries that spill over.",
    "First of this head lane.",
    "A lane of the event queue.",
    "pub fn give(&mut self)",
    "credits.settle(now)",
    "fn let_go(&mut self)",
    "fn take_in(&mut self)",
    "self.tell_link(now)",
    "def ask_paths():",
    "plane.forget_paths(host)",
    "plane.doubt_paths(host)",
    "pub fn forget(&mut self, port: PortId)",
    "path-levels = {}",
    "The start phase of a host.",
    "[control.own]",
    "hotspots used",
    "numbers['hotspots_used']",
    "trees gone, ms",
    "victims back, ms",
    "The late averaging window.",
    "row.within_late",
    "It is within its aim.",
)
"""Words of the list of renames, as they were written."""

STANDARD = (
    "prefetch_heads(queue)",
    "What happens here depends on what is asked, and where the place is.",
    "Both engines give the same, late or not, within a second.",
    "The turn of the tide and the way of the packet.",
    "let place = queue.place(now);",
    "The packet takes a lane.",
    "A circle around the root.",
    "tell(&self) and self.finding",
)
"""Homonyms, and the standard terms."""


@pytest.mark.parametrize("text", WRITTEN)
def test_word_with_a_standard_term_is_found(text: str) -> None:
    assert list(language.findings(text))


@pytest.mark.parametrize("text", STANDARD)
def test_homonym_is_not_found(text: str) -> None:
    assert list(language.findings(text)) == []


def test_every_pattern_is_tested() -> None:
    for pattern in language.PLAINER:
        assert any(list(language.findings(text, {pattern: ""})) for text in WRITTEN), pattern


@pytest.mark.parametrize(
    "text",
    [
        "A key beside the others.",
        "An entry stands in a table.",
        "It goes in a circle.",
        "told by the shell",
    ],
)
def test_documents_have_further_words(text: str) -> None:
    for page in ("guide/trees.md", "decisions/0001-lazy-events.md", "reference/cli.md"):
        assert list(language.findings(text, language.words_for(ROOT / "docs" / page)))
    notebook = ROOT / "docs" / "notebooks" / "own-scheme.ipynb"
    assert list(language.findings(text, language.words_for(notebook)))


def test_viewer_and_notebooks_are_checked() -> None:
    assert {path.suffix for path in language.files()} >= {".ts", ".tsx", ".ipynb", ".rs", ".py"}


LINK = "\nThe [glossary](guide/glossary.md) explains the abbreviations.\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A LID (local identifier) is 16 bits long." + LINK, []),
        ("A local\nidentifier (LID) is 16 bits long." + LINK, []),
        ("LIDs are 16 bits long." + LINK, ["LIDs is not spelled out"]),
        ("LIDs are 16 bits long. " + "x " * 60 + "A local identifier." + LINK, ["LIDs is not"]),
        ("A LID (local identifier) is 16 bits long.", ["without a link"]),
        ("# LIDs\n\n| LID | 5 |\n\n`LID`\n\n```\nLID\n```" + LINK, []),
        ("| LID | 5 |", ["without a link"]),
        ("```\nLID\n```", []),
        ("SLID and LID-1 are other words.", []),
    ],
)
def test_abbreviations_are_spelled_out(text: str, expected: list[str]) -> None:
    found = list(abbreviations.problems(text))
    assert len(found) == len(expected)
    assert all(part in problem for part, problem in zip(expected, found, strict=True))


def test_abbreviations_are_those_of_the_glossary() -> None:
    glossary = abbreviations.GLOSSARY.read_text()
    for short in abbreviations.ABBREVIATIONS:
        assert short in glossary, short
