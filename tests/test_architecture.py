"""The crates are those of docs/architecture.md, and depend on no more than it says.

Crates of this project are compared by their manifests, crates of others as cargo resolves them.
"""

from __future__ import annotations

import json
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.test_guide import ROOT

# Crates that a simulation may link, its own included.
MOST_LINKED = 55
PAGE = ROOT / "docs" / "architecture.md"
CRATE = re.compile(r"`(?:crates/)?(silvan-\w+)`")


@cache
def dependencies() -> dict[str, set[str]]:
    """Ask cargo what each crate links, without what only its tests need."""
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return {
        package["name"]: {
            dependency["name"]
            for dependency in package["dependencies"]
            if dependency["kind"] is None
        }
        for package in json.loads(done.stdout)["packages"]
    }


@cache
def resolved() -> dict[str, set[str]]:
    """Ask cargo for the packages that each package links here, with the features in force."""
    version = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    (host,) = re.findall(r"^host: (.*)$", version, re.MULTILINE)
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", host]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return {
        node["id"]: {
            dependency["pkg"]
            for dependency in node["deps"]
            if any(kind["kind"] is None for kind in dependency["dep_kinds"])
        }
        for node in json.loads(done.stdout)["resolve"]["nodes"]
    }


def linked(crate: str) -> set[str]:
    """Return the packages that a crate links, itself included, as `name version`."""
    (root,) = [package for package in resolved() if named(package).split()[0] == crate]
    seen = {root}
    todo = [root]
    while todo:
        for package in resolved()[todo.pop()] - seen:
            seen.add(package)
            todo.append(package)
    return {named(package) for package in seen}


def named(package: str) -> str:
    """Return name and version of a package by its id: `...#name@version` or `.../name#version`."""
    path, _, version = package.rpartition("#")
    name, _, version = version.rpartition("@")
    return f"{name or path.rpartition('/')[2]} {version}"


def rows(heading: str) -> list[list[str]]:
    """Return the rows of the table under a heading, cell by cell."""
    section = PAGE.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_the_page_lists_every_crate_with_its_dependencies() -> None:
    listed = {
        CRATE.findall(place)[0]: set(re.findall(r"\w+", uses))
        for place, _, uses in rows("Crates")
        if CRATE.search(place)
    }
    linked = {
        crate: {name.removeprefix("silvan-") for name in names if name.startswith("silvan-")}
        for crate, names in dependencies().items()
    }
    assert listed == linked


def test_dependencies_point_downwards_only() -> None:
    order = [CRATE.findall(place)[0] for place, _, _ in rows("Crates") if CRATE.search(place)]
    for position, crate in enumerate(order):
        assert dependencies()[crate] <= set(order[position + 1 :]) | (
            dependencies()[crate] - dependencies().keys()
        ), crate


def test_no_crate_links_what_it_must_not_know() -> None:
    forbidden = rows("Forbidden dependencies")
    assert len(forbidden) >= 10
    for crate, names, _ in forbidden:
        (name,) = CRATE.findall(crate)
        others = re.findall(r"`([\w-]+)`", names)
        unknown = {other for other in others if other.startswith("silvan-")} - dependencies().keys()
        assert others, crate
        assert not unknown, crate
        assert not {package.split()[0] for package in linked(name)} & set(others), crate


@pytest.mark.parametrize("crate", ["silvan-scenario", "silvan-capi"])
def test_simulations_link_few_crates(crate: str) -> None:
    """A driver of the simulator builds these crates."""
    packages = linked(crate)
    assert {"silvan-core", "serde", "toml_edit"} <= {package.split()[0] for package in packages}
    assert len(packages) <= MOST_LINKED, sorted(packages)


def defines(path: Path, item: str) -> bool:
    """Decide whether a source defines a function, type or trait of this name."""
    word = r"(?:fn|struct|enum|trait|def|class)"
    return re.search(rf"\b{word} {item}\b", path.read_text("utf-8")) is not None


@pytest.mark.parametrize("walk", ["A scenario", "A management datagram"])
def test_steps_of_a_walk_name_items_of_their_files(walk: str) -> None:
    steps = rows(walk)
    assert len(steps) == 10
    for _, file, items in steps:
        path = ROOT / file.strip("`")
        named = re.findall(r"`(\w+)`", items)
        assert named, file
        assert [item for item in named if not defines(path, item)] == [], file


def test_steps_of_a_packet_name_functions_of_the_engine() -> None:
    """The page on the engine has this walk."""
    page = (ROOT / "docs" / "engine.md").read_text("utf-8")
    walk = page.partition("## The life of a packet\n")[2].partition("\n## ")[0]
    steps = re.findall(r"^\| \w[\w ]* \| `(\w+)` \(`([\w/.]+)`\) \|", walk, re.MULTILINE)
    assert len(steps) == 6
    for item, file in steps:
        assert defines(ROOT / "crates" / "silvan-engine" / "src" / file, item), (item, file)


def test_the_data_plane_names_no_scheme_and_no_traffic() -> None:
    """The engine links both, but its sources use the hook traits alone."""
    hooks = {"hooks", "workload", "notification"}
    for source in sorted((ROOT / "crates" / "silvan-engine" / "src").rglob("*.rs")):
        text = source.read_text()
        assert "silvan_workload" not in text, source
        for line in re.findall(r"^\s*(?:pub )?use silvan_cc::(.*)", text, re.MULTILINE):
            assert any(line.startswith(hook) for hook in hooks), f"{source}: {line}"


def features(crate: str) -> dict[str, str]:
    """List the features of each package below a crate as cargo builds the crate alone."""
    line = ["cargo", "tree", "--locked", "--package", crate, "--edges", "normal,build"]
    command = [*line, "--format", "{p} [{f}]", "--prefix", "none"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    found: dict[str, set[str]] = {}
    for text in done.stdout.splitlines():
        name, version, *_ = text.split()
        found.setdefault(f"{name} {version}", set()).update(re.findall(r"\[(.*)\]", text))
    return {name: ";".join(sorted(several)) for name, several in found.items()}


def test_the_c_library_and_the_extension_share_one_build() -> None:
    """Packages with other features are compiled again, and with them all engines."""
    library, extension = features("silvan-capi"), features("silvan-python")
    shared = library.keys() & extension.keys()
    assert any(name.startswith("silvan-instances ") for name in shared)
    assert {one: library[one] for one in shared} == {one: extension[one] for one in shared}
