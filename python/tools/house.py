"""Print the size and the structure of the project: lines, import cycles, rooms and their arrows.

Print one revision of this checkout, or two beside each other::

    python/tools/house.py HEAD
    python/tools/house.py HEAD~10 HEAD --libraries before.so after.so

Lines of code exclude blank lines, comments, docstrings and tests. A room is a crate, a
folder of a crate's sources, a Python package, or a Python module that stands beside packages. An
arrow joins two rooms if a file of one imports a file of the other. A cycle is a largest set of
rooms, or of files, each of which leads to all others. Its rooms are ordered so that few arrows
point up (P. Eades, X. Lin and W. F. Smyth, "A fast and effective heuristic for the feedback arc
set problem", 1993).

Compiled engines are the run loops in a library that is not stripped, such as
``python/silvan/_silvan.abi3.so`` after ``make install``; this needs ``nm``.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tarfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]

Arrows = Mapping[str, set[str]]

_TEST = re.compile(r"(^|/)(tests?|benches)/|(^|/)tests\.rs$|(^|/)test_\w+\.py$|\.test\.tsx?$")
_NO_CODE = re.compile(r"(^|/)(assets|node_modules)/")
_PYTHON_ROOTS = ("python/silvan/", "python/silvan_papers/")
# Examples that users copy, and studies, are no part of the structure.
_APART = re.compile(r"^python/silvan/examples/|^python/silvan_papers/studies/")


@dataclass(frozen=True)
class Count:
    """Lines of one place; those of tests include comments."""

    code: int = 0
    comments: int = 0
    tests: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(
            self.code + other.code, self.comments + other.comments, self.tests + other.tests
        )


@dataclass
class House:
    """Measurements of one revision; cycles are the largest by crate and of Python."""

    lines: dict[str, Count] = field(default_factory=dict)
    cycles: dict[str, list[str]] = field(default_factory=dict)
    top: int = 0
    rooms: dict[str, set[str]] = field(default_factory=dict)
    engines: int | None = None


def sources(revision: str, folder: Path = ROOT) -> dict[str, str]:
    """Read the sources of a revision by their paths."""
    command = ["git", "-C", str(folder), "archive", "--format=tar", revision]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"error: {done.stderr.decode().strip()}")
    found = {}
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isfile() else None
            is_code = member.name.endswith((".rs", ".py", ".ts", ".tsx"))
            if file is not None and is_code and not _NO_CODE.search(member.name):
                found[member.name] = file.read().decode()
    return found


def measured(files: Mapping[str, str], library: Path | None = None) -> House:
    """Measure one revision."""
    house = House()
    for path, text in sorted(files.items()):
        place = _place(path)
        house.lines[place] = house.lines.get(place, Count()) + counted(path, text)
    house.top = sum(PurePosixPath(path).parent == PurePosixPath("python/silvan") for path in files)
    arrows = {**rust_arrows(files), **python_arrows(files)}
    by_crate: dict[str, dict[str, set[str]]] = defaultdict(dict)
    for file, others in arrows.items():
        unit = _unit(file)
        by_crate[unit][file] = {one for one in others if _unit(one) == unit}
    for unit, inside in by_crate.items():
        largest = max(cycles(inside), key=len, default=[])
        if largest:
            house.cycles[unit] = largest
    folders = {str(parent) for path in arrows for parent in PurePosixPath(path).parents}
    house.rooms = {_room(file, folders): set() for file in arrows}
    for file, others in arrows.items():
        mine = _room(file, folders)
        house.rooms[mine] |= {_room(one, folders) for one in others} - {mine}
    house.engines = None if library is None else compiled_engines(library)
    return house


def _place(path: str) -> str:
    """Name the crate, package or folder whose lines a file counts among.

    >>> [_place(path) for path in ("crates/a/src/b.rs", "python/silvan/cli/run.py", "viewer/a.ts")]
    ['crates/a', 'python/silvan/cli', 'viewer']
    """
    folders = path.split("/")[:-1]
    return "/".join(folders[: {"crates": 2, "python": 3}.get(folders[0] if folders else "", 1)])


def _unit(file: str) -> str:
    return "python" if file.startswith("python/") else "/".join(file.split("/")[:2])


def _room(file: str, folders: set[str]) -> str:
    path = PurePosixPath(file)
    own = str(path.with_suffix(""))
    if own in folders:
        return own
    if path.suffix == ".py":
        beside = any(str(PurePosixPath(one).parent) == str(path.parent) for one in folders)
        if path.name == "__init__.py" or not beside:
            return str(path.parent)
        return own
    return str(path.parent)


def counted(path: str, text: str) -> Count:
    """Count the lines of a file."""
    kinds = {".py": _python_kinds, ".rs": _rust_kinds}
    kind_of = kinds.get(PurePosixPath(path).suffix, _script_kinds)
    kinds_of_lines = list(kind_of(text))
    if _TEST.search(path):
        return Count(tests=len(kinds_of_lines))
    return Count(*(kinds_of_lines.count(kind) for kind in ("code", "comment", "test")))


def _python_kinds(text: str) -> Iterator[str]:
    strings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            strings.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    for number, line in enumerate(text.splitlines(), 1):
        if number in strings or line.lstrip().startswith("#"):
            yield "comment"
        elif line.strip():
            yield "code"


def _rust_kinds(text: str) -> Iterator[str]:
    depth, is_next = 0, False
    for line in text.splitlines():
        words = line.strip()
        starts = is_next and re.match(r"(pub(\(.*\))? )?mod \w+ \{", words)
        if depth or starts:
            depth += line.count("{") - line.count("}")
            is_next = False
            yield "test"
            continue
        if words.startswith("#[cfg(test)]"):
            is_next = True
        if words.startswith("//"):
            yield "comment"
        elif words:
            yield "code"


def _script_kinds(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.strip():
            yield "comment" if line.strip().startswith(("//", "*", "/*")) else "code"


def python_arrows(files: Mapping[str, str]) -> dict[str, set[str]]:
    """Find the modules that each Python module imports, wherever in it the import stands."""
    paths = [path for path in files if path.startswith(_PYTHON_ROOTS) and not _APART.search(path)]
    modules = {_module(path): path for path in paths}
    arrows = {}
    for path in paths:
        named: set[str] = set()
        for node in ast.walk(ast.parse(files[path])):
            if isinstance(node, ast.Import):
                named.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    if alias.name != "_silvan":
                        named.add(inner if inner in modules else node.module)
        arrows[path] = {modules[name] for name in named if name in modules} - {path}
    return arrows


def _module(path: str) -> str:
    name = path.removeprefix("python/").removesuffix(".py").replace("/", ".")
    return name.removesuffix(".__init__")


_USE = re.compile(r"^\s*(pub(?:\([^)]*\))? )?use ([^;]+);", re.MULTILINE)
_PATH = re.compile(r"\b(?:crate|super|self|silvan_\w+)(?:::\w+)+")
_TESTS = re.compile(r"#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))? )?mod \w+ \{.*", re.DOTALL)
_COMMENT = re.compile(r"//[^\n]*")


def rust_arrows(files: Mapping[str, str]) -> dict[str, set[str]]:
    """Find the files that each file of a crate uses, also by re-exported names.

    Imports count, and paths that begin with a crate, ``self`` or ``super``, but neither ``pub use``
    nor a submodule in its parent's code: a facade may name everything below.
    """
    found = re.compile(r"^crates/([\w-]+)/src/(.+)\.rs$")
    modules: dict[tuple[str, ...], str] = {}
    for path in files:
        if (match := found.match(path)) and not _TEST.search(path):
            inner = [part for part in match[2].split("/") if part != "mod"]
            inner = [] if inner == ["lib"] else inner
            modules[match[1].replace("-", "_"), *inner] = path
    texts = {name: _TESTS.sub("", _COMMENT.sub("", files[path])) for name, path in modules.items()}
    exports = {name: dict(_exports(name, text, modules)) for name, text in texts.items()}

    def home(name: tuple[str, ...], rest: Sequence[str], steps: int = 8) -> str | None:
        """Follow a path from a module to the file that has the name."""
        while rest and (*name, rest[0]) in modules:
            name, rest = (*name, rest[0]), rest[1:]
        if rest and steps:
            target = exports.get(name, {}).get(rest[0])
            if target is not None:
                return home(target[:1], target[1:], steps - 1)
        return modules.get(name)

    arrows = {}
    for name, text in texts.items():
        used = set()
        for start, *rest in _paths(text):
            target = _absolute(name, start, rest, modules)
            if target is not None and (file := home(target[:1], target[1:])):
                used.add(file)
        arrows[modules[name]] = used - {modules[name]}
    return arrows


def _paths(text: str) -> Iterator[list[str]]:
    for match in _USE.finditer(text):
        if not match[1]:
            yield from _leaves(match[2])
    for path in _PATH.findall(_USE.sub("", text)):
        yield path.split("::")


def _leaves(tree: str) -> Iterator[list[str]]:
    """List the paths of an import.

    >>> list(_leaves("crate::{a::B, c::{self, D as E}}"))
    [['crate', 'a', 'B'], ['crate', 'c'], ['crate', 'c', 'D']]
    """
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    if not brace:
        path = re.split(r"\s+as\s+", tree)[0].split("::")
        yield [part.strip() for part in path if part.strip() not in ("self", "*", "")] or ["self"]
        return
    start = [part.strip() for part in head.split("::") if part.strip()]
    depth, piece = 0, ""
    for character in rest[: rest.rfind("}")] + ",":
        depth += (character == "{") - (character == "}")
        if character == "," and not depth:
            if piece.strip():
                yield from (
                    [*start, *leaf] if leaf != ["self"] else start for leaf in _leaves(piece)
                )
            piece = ""
        else:
            piece += character


def _absolute(
    module: tuple[str, ...], start: str, rest: Sequence[str], modules: Mapping[tuple[str, ...], str]
) -> tuple[str, ...] | None:
    if start == "crate":
        return (module[0], *rest)
    if start in ("self", "super"):
        name = module if start == "self" else module[:-1]
        while rest and rest[0] == "super":
            name, rest = name[:-1], rest[1:]
        return (*name, *rest) if name else None
    if (start,) in modules:
        return (start, *rest)
    return (*module, start, *rest) if (*module, start) in modules else None


def _exports(
    module: tuple[str, ...], text: str, modules: Mapping[tuple[str, ...], str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    for match in _USE.finditer(text):
        if match[1]:
            for start, *rest in _leaves(match[2]):
                target = _absolute(module, start, rest, modules)
                if target is not None:
                    yield target[-1], target


def cycles(arrows: Arrows) -> list[list[str]]:
    """Find the largest sets of names each of which leads to all others of its set.

    >>> cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}})
    [['b', 'c']]
    """
    order: list[str] = []
    seen: set[str] = set()
    for root in arrows:
        stack = [(root, iter(sorted(arrows[root])))] if root not in seen else []
        seen.add(root)
        while stack:
            name, others = stack[-1]
            following = next((one for one in others if one not in seen and one in arrows), None)
            if following is None:
                order.append(stack.pop()[0])
            else:
                seen.add(following)
                stack.append((following, iter(sorted(arrows[following]))))
    backwards: dict[str, set[str]] = defaultdict(set)
    for name, targets in arrows.items():
        for one in targets:
            backwards[one].add(name)
    found, taken = [], set()
    for root in reversed(order):
        todo, cycle = [root], set()
        while todo:
            name = todo.pop()
            if name not in taken:
                taken.add(name)
                cycle.add(name)
                todo += backwards[name]
        if len(cycle) > 1:
            found.append(sorted(cycle))
    return found


def up(arrows: Arrows) -> list[tuple[str, str]]:
    """List the arrows that point up in an order with few of them.

    >>> up({"a": {"b"}, "b": {"c"}, "c": set()}), up({"a": {"b"}, "b": {"a"}})
    ([], [('b', 'a')])
    """
    return sorted(
        arrow
        for cycle in cycles(arrows)
        for arrow in _up({name: arrows[name] & set(cycle) for name in cycle})
    )


def _up(arrows: Arrows) -> list[tuple[str, str]]:
    left = {name: set(targets) for name, targets in arrows.items()}
    first: list[str] = []
    last: list[str] = []
    while left:
        into: dict[str, int] = dict.fromkeys(left, 0)
        for targets in left.values():
            for one in targets:
                into[one] += 1
        sinks = sorted(name for name, targets in left.items() if not targets)
        starts = sorted(name for name in left if not into[name] and left[name])
        if sinks:
            chosen = sinks[0]
            last.append(chosen)
        else:
            ranked = sorted(left, key=lambda name: (into[name] - len(left[name]), name))
            chosen = starts[0] if starts else ranked[0]
            first.append(chosen)
        del left[chosen]
        for targets in left.values():
            targets.discard(chosen)
    position = {name: index for index, name in enumerate([*first, *reversed(last)])}
    return [
        (name, one)
        for name, targets in arrows.items()
        for one in targets
        if position[one] < position[name]
    ]


def compiled_engines(library: Path) -> int:
    """Count the run loops of engines in a library, one for each set of types."""
    command = ["nm", "--demangle", "--defined-only", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"error: {done.stderr.strip()}")
    loop = re.compile(r" silvan_engine::\S*(Engine|Partitioned)<.*>::run_to(::h[0-9a-f]{16})?$")
    return sum(bool(loop.search(line)) for line in done.stdout.splitlines())


def rows(house: House) -> dict[str, int | None]:
    """List the figures of one revision by their names."""
    cycle = max(house.cycles.values(), key=len, default=[])
    python = house.cycles.get("python", [])
    return {
        **{f"code of {place}": count.code for place, count in sorted(house.lines.items())},
        "lines of code": sum(count.code for count in house.lines.values()),
        "lines of comments": sum(count.comments for count in house.lines.values()),
        "lines of tests": sum(count.tests for count in house.lines.values()),
        "compiled engines": house.engines,
        "files in the largest cycle": len(cycle),
        "files in the largest cycle of Python": len(python),
        "Python modules at the top": house.top,
        "rooms": len(house.rooms),
        "arrows": sum(map(len, house.rooms.values())),
        "arrows that point up": len(up(house.rooms)),
        "cycles of rooms": len(cycles(house.rooms)),
        **_python_rows(house.rooms),
    }


def _python_rows(rooms: Arrows) -> dict[str, int | None]:
    inside = {name: set(to) for name, to in rooms.items() if name.startswith("python/")}
    return {
        "Python rooms": len(inside),
        "arrows of Python": sum(map(len, inside.values())),
        "arrows of Python that point up": len(up(inside)),
        "cycles of Python rooms": len(cycles(inside)),
    }


def text(houses: Sequence[House], titles: Sequence[str], *, with_arrows: bool = False) -> str:
    """Lay out the figures, and all cycles and arrows that point up of the last revision."""
    columns = [rows(house) for house in houses]
    names = list(dict.fromkeys(name for column in columns for name in column))
    lines = [f"{'':44}" + "".join(f"{title:>14.13}" for title in titles)]
    for name in names:
        values = (column.get(name) for column in columns)
        cells = "".join(f"{'-' if value is None else f'{value:,}':>14}" for value in values)
        lines.append(f"{name:44}{cells}")
    last = houses[-1]
    for unit, cycle in sorted(last.cycles.items(), key=lambda one: (-len(one[1]), one[0])):
        lines.append(f"largest cycle of {unit}: {len(cycle)} files: {_some(cycle)}")
    for cycle in cycles(last.rooms):
        lines.append(f"cycle of rooms: {_some(cycle)}")
    lines += [f"up: {name} -> {one}" for name, one in up(last.rooms)]
    if with_arrows:
        lines += [
            f"arrow: {name} -> {one}"
            for name in sorted(last.rooms)
            for one in sorted(last.rooms[name])
        ]
    return "\n".join(lines)


def _some(names: Iterable[str], most: int = 12) -> str:
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def main(words: Sequence[str] | None = None, folder: Path = ROOT) -> int:
    """Print one revision or two."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("revisions", nargs="*", default=["HEAD"], help="at most two; default: HEAD")
    parser.add_argument(
        "--libraries", nargs="+", type=Path, default=[], help="a library for each revision"
    )
    parser.add_argument(
        "--arrows", action="store_true", help="list all arrows of the last revision"
    )
    chosen = parser.parse_args(words)
    if len(chosen.revisions) > 2:
        parser.error("at most two revisions are compared")
    if chosen.libraries and len(chosen.libraries) != len(chosen.revisions):
        parser.error("give one library for each revision")
    libraries = chosen.libraries or [None] * len(chosen.revisions)
    houses = [
        measured(sources(revision, folder), library)
        for revision, library in zip(chosen.revisions, libraries, strict=True)
    ]
    print(text(houses, chosen.revisions, with_arrows=chosen.arrows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
