"""Manual pages and completion know every command and option, as ``--help`` does."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer

from silvan.cli.app import app
from silvan.cli.manual import manual_pages
from tests.conftest import silvan_command

ROOT = Path(__file__).resolve().parents[1]
PAGES = manual_pages()


def walk(command: Any, name: str) -> list[tuple[str, Any]]:
    below = getattr(command, "commands", {}).items()
    return [(name, command), *(one for word, sub in below for one in walk(sub, f"{name}-{word}"))]


def test_every_command_has_a_page_with_all_its_options() -> None:
    commands = walk(typer.main.get_command(app), "silvan")
    assert sorted(PAGES) == sorted(f"{name}.1" for name, _ in commands)
    for name, command in commands:
        page = PAGES[f"{name}.1"].replace("\\-", "-")
        for parameter in command.params:
            for option in parameter.opts:
                assert parameter.param_type_name == "argument" or option in page, (name, option)


def test_the_shipped_pages_are_these() -> None:
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["maturin"]
    folder = ROOT / tool["data"] / "data" / "share" / "man" / "man1"
    assert {path.name: path.read_text("utf-8") for path in folder.iterdir()} == PAGES


@pytest.mark.needs("groff-base")
def test_groff_has_no_complaint() -> None:
    for name, page in PAGES.items():
        done = subprocess.run(
            ["groff", "-man", "-Tutf8", "-ww", "-Kutf8"],
            input=page,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == "", name
        shown = re.sub("\x1b\\[[0-9;]*m|.\b", "", done.stdout)
        for title in ("NAME", "SYNOPSIS", "OPTIONS", "EXIT STATUS"):
            assert f"\n{title}\n" in shown, (name, title)


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("silvan swe", "sweep"),
        ("silvan run --see", "--seed\n--seeds"),
        ("silvan example inca", "incast"),
    ],
)
def test_bash_completes(words: str, completed: str) -> None:
    environment = {
        "_SILVAN_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    done = subprocess.run(
        silvan_command(), env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert sorted(done.stdout.split()) == completed.split()


def test_the_shipped_completion_of_bash_completes(tmp_path: Path) -> None:
    """Oracle: bash itself, with ``silvan`` in the path."""
    script = ROOT / "packaging" / "data" / "share" / "bash-completion" / "completions" / "silvan"
    words = silvan_command()
    program = tmp_path / "silvan"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    program.chmod(0o755)
    lines = f"""
        . {shlex.quote(str(script))}
        COMP_WORDS=(silvan exp); COMP_CWORD=1
        _silvan_completion silvan
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", lines],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["export", "exporter"]


def test_the_shipped_completion_of_zsh_answers_when_it_is_loaded() -> None:
    script = ROOT / "packaging" / "data" / "share" / "zsh" / "site-functions" / "_silvan"
    lines = script.read_text("utf-8").splitlines()
    assert lines[0] == "#compdef silvan"
    loaded = lines.index("if [[ ${zsh_eval_context[-1]} == loadautofunc ]]; then")
    assert lines[loaded + 1].strip() == "_silvan_completion"
