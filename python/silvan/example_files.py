"""The scenarios and programs that silvan ships as examples, and copies of them."""

from __future__ import annotations

import ast
import os
import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from silvan.errors import OutputError, SilvanError
from silvan.folders import require_writable

_FOLDER = Path(__file__).parent / "examples"


@dataclass(frozen=True)
class Example:
    """A shipped scenario or program; its name is the file's without the ending."""

    name: str
    path: Path

    @property
    def is_scenario(self) -> bool:
        """Return true for a scenario, false for a program."""
        return self.path.suffix == ".toml"

    @property
    def comment(self) -> list[str]:
        """The lines of the comment at the start of the file, of a program its docstring."""
        text = self.path.read_text("utf-8")
        if not self.is_scenario:
            return (ast.get_docstring(ast.parse(text)) or "").splitlines()
        lines = []
        for line in text.splitlines():
            # Editors find the schema by the line that begins with "#:".
            if not line.startswith("#") or line.startswith("#:"):
                break
            lines.append(line.removeprefix("#").removeprefix(" "))
        return lines

    @property
    def description(self) -> str:
        """The first paragraph of the comment."""
        lines: list[str] = []
        for line in self.comment:
            if not line.strip() or line.startswith(" "):
                break
            lines.append(line)
        text = " ".join(lines).removeprefix(f"{self.path.name}: ")
        return text[:1].upper() + text[1:]

    @property
    def commands(self) -> list[str]:
        """The commands that the comment gives, of which the first runs the example."""
        calls = [line.split("  #")[0].strip() for line in self.comment if line.startswith("  ")]
        return calls or [f"silvan run {self.path.name}"]

    def files(self) -> list[Path]:
        """List the file and those that it or its commands name, as paths in its folder."""
        folder = self.path.parent
        words = [word for call in self.commands for word in call.split()]
        if self.is_scenario:
            words += _strings(tomllib.loads(self.path.read_text("utf-8")))
        words += [path.name for word in words for path in folder.glob(f"{word}.[0-9]*.json")]
        named = {folder / word for word in words} - {self.path}
        companions = sorted(path.relative_to(folder) for path in named if path.is_file())
        return [Path(self.path.name), *companions]


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def examples() -> list[Example]:
    """List all examples, by name."""
    scenarios = [Example(path.stem, path) for path in _FOLDER.rglob("*.toml")]
    parts = {one.path.parent / file for one in scenarios for file in one.files()}
    programs = [Example(path.stem, path) for path in _FOLDER.rglob("*.py") if path not in parts]
    return sorted([*scenarios, *programs], key=lambda one: one.name)


def example(name: str) -> Example:
    """Return the example of a name."""
    known = {one.name: one for one in examples()}
    wanted = name.removesuffix(".toml").removesuffix(".py")
    if wanted in known:
        return known[wanted]
    close = get_close_matches(wanted, known, n=1)
    raise SilvanError(
        f"there is no example {name!r}",
        hint=f"did you mean {close[0]!r}?" if close else "silvan example lists all examples",
    )


def copy_example(one: Example, folder: Path) -> list[Path]:
    """Copy an example with its files; the named one is first. Nothing is overwritten."""
    files = one.files()
    for file in files:
        if os.path.lexists(folder / file):
            raise OutputError(
                f"{folder / file} exists already",
                hint="remove it, or choose another folder with --out",
            )
    require_writable(folder)
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        # Without its permissions: the installed file may be read-only.
        shutil.copyfile(one.path.parent / file, folder / file)
    return [folder / file for file in files]
