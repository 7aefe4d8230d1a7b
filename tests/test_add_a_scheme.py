"""A scheme is one file and one line, as the guide says, and no other source names a scheme."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

import silvan
from silvan._silvan import schemes
from tests.test_guide import ROOT, blocks

PAGE = ROOT / "docs" / "guide" / "add-a-scheme.md"
SCHEMES = ROOT / "crates" / "silvan-cc" / "src" / "schemes"
LIST = SCHEMES / "mod.rs"
LINE = re.compile(r'^ +(\w+)::(\w+) = "([\w-]+)", ".*\.";$', re.MULTILINE)
CHAIN = re.compile(r'^ +(\w+): \w+::\w+, \w+::\w+\s+= "([\w-]+)"', re.MULTILINE)

# Sources that may name a scheme, and which.
ALLOWED = {
    # What the live fabric and the DCMS change are the settings of InfiniBand's scheme.
    "crates/silvan-emulator/src/agent/congestion.rs": {"ib-cc"},
    "crates/silvan-emulator/src/plane/mod.rs": {"ib-cc"},
    "crates/silvan-model/src/meter.rs": {"ib-cc"},
    "crates/silvan-scenario/src/build/dcms.rs": {"ib-cc"},
    "crates/silvan-dcms/src/section.rs": {"ib-cc"},
    # No control is what a program alone runs with, and has engines of its own.
    "crates/silvan-cc/src/schemes/register.rs": {"none"},
    # Tools of one scheme: its response functions, and a throttled interface alone.
    "crates/silvan-python/src/response.rs": {"ecn"},
    "python/silvan/response.py": {"ecn"},
    "python/silvan/cli/inspect.py": {"ecn"},
    "crates/silvan-python/src/pft.rs": {"pft"},
    "crates/silvan-python/src/lib.rs": {"pft"},
    # The file of a scheme in Python is read where files are read, and run where Python is.
    "crates/silvan-scenario/src/build/python.rs": {"python"},
    "crates/silvan-scenario/src/scenario.rs": {"python"},
    "crates/silvan-python/src/scenario.rs": {"python"},
    "python/silvan/scheme_file.py": {"python"},
    "python/silvan/cli/options.py": {"python"},
    # Published settings; any other scheme is compared with its defaults.
    "python/silvan/baselines.py": {"ib-cc", "ecn", "pft", "dcqcn", "ib-cc-pft"},
    # Examples in documentation.
    "crates/silvan-cc/src/lib.rs": {"ib-cc", "ecn", "pft"},
    "crates/silvan-cc/src/hooks/list.rs": {"ib-cc", "ecn"},
    "python/silvan/toml_text.py": {"ib-cc"},
    "python/silvan/cli/compare.py": {"pft"},
}


def registered() -> list[tuple[str, str, str]]:
    """Read module, type and name of every scheme in the list."""
    return [(match[1], match[2], match[3]) for match in LINE.finditer(LIST.read_text())]


def mention(module: str | None, kind: str, name: str) -> re.Pattern[str]:
    """Match what names a scheme: its module, its type as that of a scheme, its keys, its name."""
    patterns = [
        rf"\b(?:SchemeName|AnySwitch|AnySource)::{kind}\b",
        rf"\bcontrol\.{name}\b",
    ]
    if module is not None:
        patterns += [rf"\b{module}::", rf"\bparameters(?:\(\))?\.{module}\b"]
    # These are words of the language, too.
    if name not in {"none", "python"}:
        patterns.append(rf"""["']{name}["']""")
    if name not in {"none", "python", "half"}:
        patterns.append(rf"\b{module or name}\b")
    return re.compile("|".join(patterns))


def product() -> list[Path]:
    """List the sources of the product without tests and examples."""
    sources = [*ROOT.glob("crates/*/src/**/*.rs"), *ROOT.glob("python/silvan/**/*.py")]
    left_out = re.compile(r"/tests(\.rs|/)|^python/silvan/examples/")
    return [path for path in sources if not left_out.search(path.relative_to(ROOT).as_posix())]


def code(path: Path) -> str:
    """Read a source without the tests at its end."""
    return path.read_text().split("#[cfg(test)]")[0]


def test_the_commands_list_what_is_registered() -> None:
    names = [name for _, _, name in registered()]
    names += [match[2] for match in CHAIN.finditer(LIST.read_text())]
    assert [name for name, _ in schemes()] == names
    assert len(names) >= 8


def test_no_other_source_names_a_scheme() -> None:
    rows: list[tuple[str | None, str, str]] = [*registered()]
    rows += [(None, match[1], match[2]) for match in CHAIN.finditer(LIST.read_text())]
    found: dict[str, set[str]] = {}
    for path in product():
        place, text = path.relative_to(ROOT).as_posix(), code(path)
        for module, kind, name in rows:
            home = (SCHEMES / f"{module}.rs", SCHEMES / f"{module}")
            if path in (LIST, home[0]) or home[1] in path.parents:
                continue
            if mention(module, kind, name).search(text):
                found.setdefault(place, set()).add(name)
    surplus = {place: names - ALLOWED.get(place, set()) for place, names in found.items()}
    assert not {place: names for place, names in surplus.items() if names}
    # What is allowed and not needed any more is removed from the list.
    assert {place: names - found.get(place, set()) for place, names in ALLOWED.items()} == {
        place: set() for place in ALLOWED
    }


def page_file() -> str:
    """Join the listings of the page, which are the file of its scheme."""
    return "\n".join(textwrap.dedent(block) for block in blocks(PAGE, "rust"))


def page_line() -> str:
    """Find the line of the page that registers its scheme."""
    (line,) = [text for text in blocks(PAGE, "") if LINE.match("    " + text)]
    return line.strip()


def test_the_page_lists_the_file_and_the_line_that_are_compiled() -> None:
    def lines(text: str) -> list[str]:
        return [line for line in text.splitlines() if line]

    assert lines(page_file()) == lines((SCHEMES / "half.rs").read_text())
    assert page_line() in LIST.read_text()


@pytest.mark.slow
def test_the_file_and_the_line_of_the_page_add_a_scheme(tmp_path: Path) -> None:
    """Oracle: the scheme is unknown without them; the run is that of the installed package."""
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copy(ROOT / name, tmp_path / name)
    for folder in ("crates", "python/silvan/examples"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "examples").symlink_to(tmp_path / "python" / "silvan" / "examples")
    program = tmp_path / "crates" / "silvan-sim" / "examples" / "delivered.rs"
    program.parent.mkdir(exist_ok=True)
    program.write_text(DELIVERED)
    # The crates of others are built already for the tests in Rust.
    environment = {**os.environ, "CARGO_TARGET_DIR": str(ROOT / "target")}
    command = ["cargo", "run", "--quiet", "--offline", "-p", "silvan-sim", "--example", "delivered"]

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    file = tmp_path / SCHEMES.relative_to(ROOT) / "half.rs"
    listed = tmp_path / LIST.relative_to(ROOT)
    with_line = listed.read_text()
    file.unlink()
    listed.write_text(with_line.replace(page_line(), ""))
    without = run()
    assert 'unknown value "half"' in without.stderr, without.stderr

    # What the page says: one file and one line.
    file.write_text(page_file())
    listed.write_text(with_line)
    added = run()
    assert added.returncode == 0, added.stderr
    installed = silvan.run(silvan.Scenario.from_toml(SCENARIO))
    assert int(added.stdout) == sum(installed.hosts["delivered_bytes"].to_pylist()) > 0


SCENARIO = """\
[fabric]
generator = "single-switch"
hosts = 4
[[traffic.incast]]
to = "host-0000"
[control]
scheme = "half"
[control.half]
step = 0.01
[run]
duration = "200 us"
"""

DELIVERED = f"""\
//! Prints the bytes that are delivered in a run with the added scheme.
use std::ops::ControlFlow;

fn main() {{
    let text = r#"{SCENARIO}"#;
    let scenario = silvan_scenario::Scenario::from_toml(text, "test.toml", &[]);
    let scenario = scenario.unwrap_or_else(|error| panic!("{{error}}"));
    let mut observe = |_| ControlFlow::Continue(());
    let output = silvan_sim::run(&silvan_instances::Fastest, &scenario, 1, &mut observe);
    let output = output.expect("a run");
    let hosts = output.table("hosts").expect("every run has it");
    let delivered = hosts.u64_column("delivered_bytes").expect("a column");
    println!("{{}}", delivered.iter().sum::<u64>());
}}
"""
