"""`silvan example` lists every example and copies it with what it names."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from silvan.example_files import Example, examples
from tests.conftest import Command

EXAMPLES = examples()


def test_all_examples_are_listed(command: Command) -> None:
    listed = json.loads(command("example", "--json").stdout)
    names = [one["name"] for one in listed]
    assert names == sorted(set(names)), "the name of an example is the name of one file"
    assert {"incast", "real-fabric", "trace"} <= set(names)
    assert all(one["description"] for one in listed)
    table = command("example")
    assert table.status == 0
    assert all(name in table.stdout for name in names)


@pytest.mark.slow
@pytest.mark.parametrize("one", EXAMPLES, ids=lambda one: one.name)
def test_a_copy_stands_alone(command: Command, tmp_path: Path, one: Example) -> None:
    done = command("example", one.name, cwd=tmp_path)
    assert done.status == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(
        str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()
    )
    if one.is_scenario:
        valid = command("validate", f"{one.name}.toml", cwd=tmp_path)
        assert valid.status == 0, valid.stderr
    written: list[str] = []
    for call in one.commands:
        words = shlex.split(call)
        assert words[0] in ("silvan", "python")
        # Each command is about a file of the example, or the folder of an earlier command.
        files = [word for word in words if (tmp_path / word).is_file()]
        assert files or any(word.startswith(f"{folder}/") for word in words for folder in written)
        written += [words[i + 1] for i, word in enumerate(words) if word == "--out"]


def test_an_example_runs_where_it_was_copied(command: Command, tmp_path: Path) -> None:
    assert command("example", "incast", cwd=tmp_path).stderr == "next: silvan run incast.toml\n"
    done = command("run", "incast.toml", "--json", cwd=tmp_path)
    assert done.status == 0, done.stderr


def test_no_file_is_overwritten(command: Command, tmp_path: Path) -> None:
    # The scenario could be written, but a file that it names is there.
    (tmp_path / "trace.goal").write_text("mine")
    done = command("example", "trace", "--out", tmp_path)
    assert done.status == 2
    error, hint = done.stderr.splitlines()
    assert error == f"error: {tmp_path / 'trace.goal'} exists already"
    assert hint.startswith("hint: ")
    assert (tmp_path / "trace.goal").read_text() == "mine"
    assert not (tmp_path / "trace.toml").exists()


def test_an_unknown_name_has_a_hint(command: Command, tmp_path: Path) -> None:
    done = command("example", "incats", cwd=tmp_path)
    assert done.status == 2
    assert done.stderr == "error: there is no example 'incats'\nhint: did you mean 'incast'?\n"
    assert "silvan example lists" in command("example", "zzz", cwd=tmp_path).stderr
