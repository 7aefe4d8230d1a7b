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
        ["sweep", "FILE", "--grid", "host.sink-rat=1 Gbit/s"],
        ["sweep", "FILE", "--grid", "switch.buffer=64 KiB,1 KiB"],
        ["sweep", "FILE", "--grid", "switch.buffer=64 KiB,1 KiX"],
        ["sweep", "FILE", "--grid", "switch.buffer"],
        ["sweep", "FILE", "--grid", "run.duration=1 ms,1000 us"],
        ["sweep", "FILE", "--grid", "run.seed=1,2", "--seed", "3"],
        ["sweep", "FILE", "--seeds", "1000000"],
        ["sweep", "FILE", "--scheduler", "lokal"],
        ["reproduce", "nobody1999"],
        ["reproduce", "gran2012", "--only", "table9"],
        ["bench", "--only", "nothing"],
    ],
    ids=" ".join,
)
def test_words_that_make_no_sense(command: Command, incast_file: Path, words: list[str]) -> None:
    refused(command(*(str(incast_file) if word == "FILE" else word for word in words)))


@pytest.mark.parametrize(
    "words", [["run", "FILE"], ["sweep", "FILE"], ["reproduce", "gran2012"]], ids=" ".join
)
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


def test_a_grid_over_an_unknown_key_names_the_nearest(
    command: Command, incast_file: Path, tmp_path: Path
) -> None:
    words = ("--grid", "switch.bufer=32 KiB", "--out", tmp_path / "out")
    message, hint = refused(command("sweep", incast_file, *words))
    assert message == "grid: switch.bufer: unknown key"
    assert hint == 'did you mean "buffer"?'
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "switch.latency=50 ns"], 'switch.latency was "100 ns", is now "50 ns"'),
        (["--grid", "packet.header=30 B"], "varies switch.buffer, this one packet.header, switch"),
    ],
    ids=["another scenario", "other keys"],
)
def test_a_sweep_goes_on_only_with_what_it_was(
    command: Command, incast_file: Path, tmp_path: Path, words: list[str], message: str
) -> None:
    out = tmp_path / "out"
    same = ("sweep", incast_file, "--grid", "switch.buffer=32 KiB", "--out", out)
    assert command(*same).status == 0
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    error, _ = refused(command(*same, *words))
    assert message in error
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    # A description is for people, and a first seed only says which points there are.
    incast_file.write_text('description = "as it was"\n' + INCAST)
    assert command(*same, "--seed", "5").status == 0


def test_a_folder_of_another_build_or_use_is_refused(
    command: Command, incast_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = ("sweep", incast_file, "--out", out)
    assert command(*words).status == 0
    manifest = (out / "sweep.json").read_text()
    (out / "sweep.json").write_text(re.sub('"simulator": "', '"simulator": "0.0.', manifest))
    assert "was made by silvan 0.0." in refused(command(*words))[0]
    (out / "sweep.json").write_text("{")
    assert refused(command(*words))[0].startswith(f"{out / 'sweep.json'}: not readable")
    (out / "sweep.json").write_text(manifest)
    (out / "points.parquet").write_bytes(b"PAR1")
    assert refused(command(*words))[0].startswith(f"{out / 'points.parquet'}: not readable")
    (out / "sweep.json").unlink()
    assert "holds no sweep" in refused(command(*words))[0]
    assert (out / "points.parquet").read_bytes() == b"PAR1"
