"""A copy of the sources with all additions of the pages on extending silvan.

It is compiled once for all tests, and again only if a source or a page has changed.
"""

from __future__ import annotations

import os
import re
import subprocess
import textwrap
from collections.abc import Callable
from functools import cache
from pathlib import Path

import silvan
from tests.test_guide import ROOT, blocks

PAGES = ROOT / "docs" / "extending"
SCHEME_PAGE = ROOT / "docs" / "guide" / "add-a-scheme.md"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
COPY = TARGET / "extending"
TEST = "crates/silvan-sim/tests/extended.rs"
# Crates that a run needs.
CRATES = (
    *("core", "fabric", "cc", "workload", "model"),
    *("scenario", "engine", "instances", "sim"),
)
REGISTERED = re.compile(r'^ +(\w+)::(\w+) = "([\w-]+)", ".*";$', re.MULTILINE)
COMMANDS = "python/silvan/cli"
VIEWER = "viewer/src/ui"

Sources = dict[str, str]
"""Texts by path from the root of the repository."""


@cache
def outcome() -> str:
    """Compile the copy, run its tests, and return what cargo prints."""
    sources = extended()
    sources[TEST] = (Path(__file__).parent / "extended_sources.rs").read_text()
    result = silvan.run(silvan.Scenario.from_toml(SCHEME_RUN))
    delivered = sum(result.hosts["delivered_bytes"].to_pylist())
    assert delivered > 0
    folder = str(Path(TEST).parent)
    sources |= {f"{folder}/half.toml": SCHEME_RUN, f"{folder}/half.delivered": str(delivered)}
    write(sources)
    # Crates of others are those that all tests are compiled with.
    plain = [
        f"--config=profile.dev.package.silvan-{name}.{setting}=0"
        for name in CRATES
        for setting in ("opt-level", "debug")
    ]
    done = subprocess.run(
        ["cargo", "test", *plain, "--offline", "--package", "silvan-sim", "--test", "extended"],
        cwd=COPY,
        env={**os.environ, "CARGO_TARGET_DIR": str(TARGET), "CARGO_INCREMENTAL": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def extended() -> Sources:
    """Read the sources, and add what all pages say."""
    sources = read()
    for add in ADDED.values():
        add(sources)
    count_calls(sources)
    return sources


def touched(page: str) -> Sources:
    """Add what a page says; return the files that it makes or changes."""
    sources = read()
    before = dict(sources)
    # The sources have the scheme of the guide.
    if page == SCHEME_PAGE.name:
        before |= without_scheme(sources)
    ADDED[page](sources)
    return {name: text for name, text in sources.items() if before.get(name) != text}


def read() -> Sources:
    """Read what the pages change, and the crates of a run without tests and benchmarks."""
    manifest = (ROOT / "Cargo.toml").read_text()
    members = ", ".join(f'"crates/silvan-{name}"' for name in CRATES)
    manifest, changed = re.subn(
        r"^members = \[.*?\]", f"members = [{members}]", manifest, flags=re.DOTALL | re.MULTILINE
    )
    assert changed == 1
    sources = {"Cargo.toml": manifest, "Cargo.lock": (ROOT / "Cargo.lock").read_text()}
    for name in CRATES:
        crate = ROOT / "crates" / f"silvan-{name}"
        own = (crate / "Cargo.toml").read_text()
        if name != "sim":
            own = own.split("[dev-dependencies]")[0]
        sources[str((crate / "Cargo.toml").relative_to(ROOT))] = own
        for path in (crate / "src").rglob("*.*"):
            sources[str(path.relative_to(ROOT))] = path.read_text()
    for name in (f"{COMMANDS}/app.py", f"{VIEWER}/app.tsx"):
        sources[name] = (ROOT / name).read_text()
    return sources


def write(sources: Sources) -> None:
    """Write the files that have changed, so that cargo compiles no others."""
    kept = {COPY / path for path in sources}
    for path in COPY.rglob("*"):
        if path.is_file() and path not in kept:
            path.unlink(missing_ok=True)
    for name, text in sources.items():
        path = COPY / name
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def put(sources: Sources, path: str, before: str, lines: str) -> None:
    """Insert lines before a text that occurs once."""
    assert sources[path].count(before) == 1, f"{before!r} in {path}"
    sources[path] = sources[path].replace(before, lines + before)


def without_scheme(sources: Sources) -> Sources:
    """Take the example of the guide out of the list of schemes."""
    listed = sources[f"{SCHEMES}/mod.rs"]
    line = scheme_line()
    assert line in listed
    # The page names the list, which is not in a block.
    assert SEPARATE in listed
    without = listed.replace(f"        {line}\n", "").replace(", half::Half,", ",")
    assert "half" not in without
    return {f"{SCHEMES}/mod.rs": without, f"{SCHEMES}/half.rs": ""}


def add_scheme(sources: Sources) -> None:
    """Take the example of the guide out, and put it in as the page says."""
    without = without_scheme(sources)[f"{SCHEMES}/mod.rs"]
    last = list(REGISTERED.finditer(without))[-1].start()
    added = f"{without[:last]}        {scheme_line()}\n{without[last:]}"
    added = added.replace(SEPARATE.replace(" half::Half,", ""), SEPARATE)
    sources[f"{SCHEMES}/mod.rs"] = added
    sources[f"{SCHEMES}/half.rs"] = scheme_file()


def scheme_file() -> str:
    """Join the listings of the page, which are the file of its scheme."""
    return "\n".join(textwrap.dedent(block) for block in blocks(SCHEME_PAGE, "rust"))


def scheme_line() -> str:
    """Find the line of the page that registers its scheme."""
    (line,) = [text for text in blocks(SCHEME_PAGE, "") if REGISTERED.match("    " + text)]
    return line.strip()


def new_file(page: str) -> tuple[str, str]:
    """Return the folder and the path of the file that a page makes."""
    text = (PAGES / page).read_text()
    ((name, folder),) = re.findall(r"^Make the file `(.*)` in `(.*)`:$", text, re.MULTILINE)
    return folder, f"{folder}/{name}"


def add_registered(sources: Sources, page: str) -> None:
    """Add the file and the line of a page."""
    folder, name = new_file(page)
    file, line = blocks(PAGES / page, "rust")
    sources[name] = file
    registry = sources[f"{folder}/mod.rs"]
    end = list(REGISTERED.finditer(registry))[-1].end()
    sources[f"{folder}/mod.rs"] = f"{registry[:end]}\n{line.rstrip()}{registry[end:]}"


def add_counter(sources: Sources) -> None:
    """Add the port counter of its page."""
    declaration, field, first_value, count, report = blocks(PAGES / "port-counter.md", "rust")
    core, engine = "crates/silvan-core/src", "crates/silvan-engine/src"
    end = "}\n\nimpl PortCounters {\n    /// Number of counters"
    put(sources, f"{core}/counters.rs", end, declaration)
    put(
        sources,
        f"{engine}/records.rs",
        "    /// Start of the port's idle time with waiting packets",
        field,
    )
    put(sources, f"{engine}/records.rs", "            wait_since: u64::MAX,\n", first_value)
    head = (
        "        let plane = &mut self.plane;\n        let InPort {\n"
        "            upstream,\n            credit_delay,"
    )
    put(sources, f"{engine}/switch/credits.rs", head, count)
    reported = "            relay_errors: discards.relay_errors,\n"
    put(sources, f"{engine}/readings.rs", reported, report)


def add_setting(sources: Sources) -> None:
    """Add the congestion-control setting of its page."""
    declaration, action = blocks(PAGES / "cc-setting.md", "rust")
    folder = "crates/silvan-cc/src/schemes/ib_cc"
    last = "                datagrams: trigger_threshold,\n            }\n"
    head, tail = sources[f"{folder}/list.rs"].split(last)
    sources[f"{folder}/list.rs"] = head + last + declaration + tail
    level = f"{folder}/adapter/service_level.rs"
    replaced = re.compile(r"^        let lowered = .*;\n", re.MULTILINE)
    sources[level], count = replaced.subn(lambda _: action, sources[level])
    assert count == 1


def add_hook(sources: Sources) -> None:
    """Add the hook of its page."""
    declaration, call = blocks(PAGES / "hook.md", "rust")
    hooks = "crates/silvan-cc/src/hooks/list.rs"
    end = "        }\n\n        inspect {\n            /// Moves releases"
    put(sources, hooks, end, "\n" + declaration)
    engine = "crates/silvan-engine/src/host.rs"
    head = re.compile(r"^    pub\(crate\) fn await_host_credits\([^{]*\{\n", re.MULTILINE)
    sources[engine], count = head.subn(lambda found: found[0] + call, sources[engine])
    assert count == 1


def count_calls(sources: Sources) -> None:
    """Let the guide's scheme count the calls of the hook by host."""
    scheme = f"{SCHEMES}/half.rs"
    put(sources, scheme, "    fn release(&mut self", CALLED)
    sources[scheme] += COUNTS


def add_column(sources: Sources) -> None:
    """Add the column of its page."""
    declaration, filling = blocks(PAGES / "result-column.md", "rust")
    tables = "crates/silvan-sim/src/tables.rs"
    text = sources[tables]
    start = text.index("const HOSTS: TableSchema")
    end = text.index("    ],\n", start)
    text = text[:end] + declaration + text[end:]
    end = text.index("        table\n    }\n", text.index("    fn hosts_table("))
    sources[tables] = text[:end] + filling + text[end:]


def add_command(sources: Sources) -> None:
    """Add the command of its page."""
    _, name = new_file("command.md")
    file, line = blocks(PAGES / "command.md", "python")
    sources[name] = file
    put(sources, f"{COMMANDS}/app.py", "    plot,\n", f"    {Path(name).stem},\n")
    put(sources, f"{COMMANDS}/app.py", 'app.command("compare"', line)


def add_panel(sources: Sources) -> None:
    """Add the panel of its page."""
    _, name = new_file("panel.md")
    file, line = blocks(PAGES / "panel.md", "tsx")
    sources[name] = file
    panel = line.strip(" </>\n")
    first = f'import {{ {panel} }} from "./{Path(name).stem}";\n'
    put(sources, f"{VIEWER}/app.tsx", 'import { Limits } from "./limits";\n', first)
    put(sources, f"{VIEWER}/app.tsx", "        <Limits />\n", line)


CALLED = """\
    fn needs_blocked(&self) -> bool {
        true
    }

    fn on_blocked(&mut self, _: Time, host: HostId) {
        BLOCKED[host.index()].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }

"""
COUNTS = """
/// Calls of the hook by host.
pub static BLOCKED: [std::sync::atomic::AtomicU32; 4] =
    [const { std::sync::atomic::AtomicU32::new(0) }; 4];
"""

SCHEMES = "crates/silvan-cc/src/schemes"
SEPARATE = "recn::Recn, half::Half,\n"

ADDED: dict[str, Callable[[Sources], None]] = {
    "add-a-scheme.md": add_scheme,
    "topology.md": lambda sources: add_registered(sources, "topology.md"),
    "traffic.md": lambda sources: add_registered(sources, "traffic.md"),
    "routing.md": lambda sources: add_registered(sources, "routing.md"),
    "trace-format.md": lambda sources: add_registered(sources, "trace-format.md"),
    "collective.md": lambda sources: add_registered(sources, "collective.md"),
    "port-counter.md": add_counter,
    "cc-setting.md": add_setting,
    "hook.md": add_hook,
    "result-column.md": add_column,
    "command.md": add_command,
    "panel.md": add_panel,
}
"""By page, what it adds."""

SCHEME_RUN = """\
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
