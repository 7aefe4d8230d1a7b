"""Write the version of Cargo.toml into other files; ``--check`` prints what differs."""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Location:
    """A text that states the version; the pattern has one group."""

    file: str
    pattern: str


SPACK = "recipes/spack/spack_repo/silvan/packages"

LOCATIONS = (
    Location("CITATION.cff", r"^version: (\S+)$"),
    Location("codemeta.json", r'^  "version": "([^"]+)",$'),
    Location(".zenodo.json", r'^  "version": "([^"]+)",$'),
    Location("recipes/conda/recipe.yaml", r'^  version: "([^"]+)"$'),
    Location("debian/changelog", r"\Asilvan \(([^)]+)-1\) "),
    Location(
        "recipes/spack/spack_repo/silvan/packages/py_silvan/package.py",
        r'^    version\("([^"]+)", sha256=',
    ),
    Location("action/action.yml", r"^    default: silvan==(\S+)$"),
    Location("docs/guide/installing.md", r"prints `silvan ([^`]+)`"),
)
LOCKS = ("Cargo.lock", "fuzz/Cargo.lock")
_LOCKED = re.compile(r'^name = "(silvan-(?!fuzz")[a-z]+)"\nversion = "([^"]+)"$', re.MULTILINE)


def version(root: Path = ROOT) -> str:
    """Return the version of the workspace."""
    cargo = tomllib.loads((root / "Cargo.toml").read_text("utf-8"))
    return str(cargo["workspace"]["package"]["version"])


def stated(root: Path = ROOT) -> Iterator[tuple[str, str | None]]:
    """List the files that state the version, and what each states; None where it states none."""
    for location in LOCATIONS:
        path = root / location.file
        text = path.read_text("utf-8") if path.is_file() else ""
        match = re.search(location.pattern, text, re.MULTILINE)
        yield location.file, match[1] if match else None
    for file in LOCKS:
        found = {of for _, of in _LOCKED.findall((root / file).read_text("utf-8"))}
        yield file, " and ".join(sorted(found)) or None


def problems(root: Path = ROOT) -> Iterator[str]:
    """Say which files state another version."""
    wanted = version(root)
    for file, found in stated(root):
        if found != wanted:
            yield f"{file}: {found or 'no version'}, Cargo.toml has {wanted}"


def write(root: Path = ROOT) -> None:
    """Write the version into each file."""
    wanted = version(root)
    for location in LOCATIONS:
        path = root / location.file

        def replaced(match: re.Match[str]) -> str:
            start, end = match.start(1) - match.start(), match.end(1) - match.start()
            return match[0][:start] + wanted + match[0][end:]

        text = path.read_text("utf-8")
        path.write_text(
            re.sub(location.pattern, replaced, text, count=1, flags=re.MULTILINE), "utf-8"
        )
    for file in LOCKS:
        path = root / file
        text = path.read_text("utf-8")
        path.write_text(_LOCKED.sub(rf'name = "\1"\nversion = "{wanted}"', text), "utf-8")


def main() -> int:
    """Write, or check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="print what differs, write nothing")
    if not parser.parse_args().check:
        write()
    found = list(problems())
    for line in found:
        print(f"error: {line}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
