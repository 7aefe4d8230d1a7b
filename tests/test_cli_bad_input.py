"""Bad input: one line with file, line and hint, status 2, no traceback, nothing written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import INCAST, Command, Outcome

ERROR = re.compile(r"\Aerror: (?P<text>[^\n]+)\n(hint: (?P<hint>[^\n]+)\n)?\Z")


def refused(outcome: Outcome) -> tuple[str, str]:
    """Check that a command was refused as it should be; give the message and the hint."""
    assert outcome.status == 2
    assert outcome.stdout == ""
    match = ERROR.match(outcome.stderr)
    assert match, outcome.stderr
    assert match["hint"], outcome.stderr
    return match["text"], match["hint"]


BROKEN = {
    "a rate without a unit": ("[host]\ninjection-rate = 13.5\n", 2, "in quotes with its unit"),
    "a unit of another quantity": ('[host]\ninjection-rate = "13.5 ms"\n', 2, "Gbit/s"),
    "an unknown key": ('[switch]\nbufer = "64 KiB"\n', 2, "buffer"),
    "an unknown section": ('[swich]\nbuffer = "64 KiB"\n', 1, "switch"),
    "an unknown choice": ('[control]\nscheme = "ib_cc"\n', 2, "ib-cc"),
    "a zero-byte MTU": ('[packet]\nmtu = "0 B"\n', 2, "2 KiB is usual"),
    "a buffer smaller than a packet": ('[switch]\nbuffer = "1 KiB"\n', 2, "at least 2112 B"),
    "a hotspot outside the fabric": (
        '[traffic.nodes]\nc = 0.5\nhotspots = ["host-9999"]\n',
        3,
        "host-",
    ),
    "a receiver outside the fabric": ('[[traffic.incast]]\nto = "nobody"\n', 2, "host-0000"),
    "a truncated file": ('[fabric]\ngenerator = "sing', 2, "cut short"),
    "a table that is a value": ("switch = 3\n", 1, "[switch]"),
    "a host without a cable": (
        '[[fabric.switch]]\nname = "S1"\nports = 4\n'
        '[[fabric.host]]\nname = "A"\n[[fabric.host]]\nname = "B"\n'
        '[[fabric.cable]]\nfrom = "A:1"\nto = "S1:1"\n',
        None,
        'from "B:1"',
    ),
}


@pytest.mark.parametrize("case", BROKEN, ids=list(BROKEN))
@pytest.mark.parametrize("name", ["validate", "run"])
def test_a_broken_scenario_is_located(
    command: Command, tmp_path: Path, case: str, name: str
) -> None:
    text, line, advice = BROKEN[case]
    path = tmp_path / "broken.toml"
    path.write_text(text)
    message, hint = refused(command(name, path))
    place = str(path) if line is None else f"{path}:{line}"
    assert message.startswith(f"{place}: " if line is not None else place)
    assert advice in hint
    # The advice for errors that know no better is for none of these.
    assert not hint.startswith("silvan schema")
    assert [entry.name for entry in tmp_path.iterdir()] == ["broken.toml"]


def test_a_missing_file(command: Command, tmp_path: Path) -> None:
    message, _ = refused(command("run", tmp_path / "none.toml"))
    assert (
        message == f"{tmp_path / 'none.toml'}: cannot read the scenario: no such file or directory"
    )


def test_a_folder_instead_of_a_file(command: Command, tmp_path: Path) -> None:
    message, _ = refused(command("show", tmp_path))
    assert message.startswith(f"{tmp_path}: cannot read")


def test_an_assignment_that_is_wrong(command: Command, incast_file: Path) -> None:
    message, hint = refused(command("run", incast_file, "--set", "switch.bufer=64 KiB"))
    assert "--set" in message
    assert "buffer" in hint


@pytest.mark.parametrize(
    "words",
    [
        ["run"],
        ["runn"],
        ["run", "FILE", "--colour"],
        ["run", "FILE", "--seeds", "0"],
        ["run", "FILE", "--seed", "-1"],
        ["reproduce", "nobody1999"],
        ["reproduce", "gran2012", "--only", "table9"],
        ["bench", "--only", "nothing"],
    ],
    ids=" ".join,
)
def test_words_that_make_no_sense(command: Command, incast_file: Path, words: list[str]) -> None:
    refused(command(*(str(incast_file) if word == "FILE" else word for word in words)))


@pytest.mark.parametrize("words", [["run", "FILE"], ["reproduce", "gran2012"]], ids=" ".join)
def test_an_output_folder_that_is_not_writable_is_noticed_before_the_run(
    command: Command, tmp_path: Path, words: list[str]
) -> None:
    # A run of a thousand simulated seconds does not end within the time limit of the command, so
    # an answer shows that it did not start.
    long = tmp_path / "long.toml"
    long.write_text(INCAST.replace('"200 us"', '"1000 s"').replace('"50 us"', '"1 s"'))
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    outcome = command(*(str(long) if w == "FILE" else w for w in words), "--out", blocked / "out")
    message, _ = refused(outcome)
    assert message.startswith(f"{blocked / 'out'}")
    assert blocked.read_text() == "not a folder"


def test_an_output_folder_of_another_use_is_refused_before_the_run(
    command: Command, tmp_path: Path
) -> None:
    long = tmp_path / "long.toml"
    long.write_text(INCAST.replace('"200 us"', '"1000 s"').replace('"50 us"', '"1 s"'))
    taken = tmp_path / "out" / "seed-3"
    taken.mkdir(parents=True)
    (taken / "thesis.tex").write_text("years of work")
    message, _ = refused(command("run", long, "--out", tmp_path / "out"))
    assert "holds no result" in message
    assert (taken / "thesis.tex").read_text() == "years of work"
