"""A copy of the Rust sources with everything added that the pages on extending silvan add.

It is compiled once for all tests, and again only if a source or a page has changed.
"""

from __future__ import annotations

import os
import re
import subprocess
import textwrap
from functools import cache
from pathlib import Path

import silvan
from tests.test_guide import ROOT, blocks

PAGES = ROOT / "docs" / "extending"
SCHEME_PAGE = ROOT / "docs" / "guide" / "add-a-scheme.md"
TARGET = ROOT / "target" / "extending"
COPY = TARGET / "workspace"
TEST = "crates/silvan-sim/tests/extended.rs"
# What a run needs.
CRATES = (
    *("core", "fabric", "cc", "workload", "model"),
    *("scenario", "engine", "instances", "sim"),
)
REGISTERED = re.compile(r'^ +(\w+)::(\w+) = "([\w-]+)", ".*";$', re.MULTILINE)

Sources = dict[str, str]
"""Texts by path from the root of the repository."""


@cache
def outcome() -> str:
    """Compile the copy, run its tests, and return what cargo prints."""
    sources = read()
    add_scheme(sources)
    for page in ("topology.md", "traffic.md"):
        add_registered(sources, page)
    add_counter(sources)
    add_setting(sources)
    add_hook(sources)
    sources[TEST] = (Path(__file__).parent / "extended_sources.rs").read_text()
    result = silvan.run(silvan.Scenario.from_toml(SCHEME_RUN))
    delivered = sum(result.hosts["delivered_bytes"].to_pylist())
    assert delivered > 0
    folder = str(Path(TEST).parent)
    sources |= {f"{folder}/half.toml": SCHEME_RUN, f"{folder}/half.delivered": str(delivered)}
    write(sources)
    settings = {
        "CARGO_TARGET_DIR": str(TARGET / "build"),
        "CARGO_PROFILE_TEST_DEBUG": "0",
        "CARGO_PROFILE_DEV_DEBUG": "0",
        "CARGO_PROFILE_TEST_OPT_LEVEL": "0",
        "CARGO_PROFILE_DEV_OPT_LEVEL": "0",
        "CARGO_INCREMENTAL": "0",
    }
    done = subprocess.run(
        ["cargo", "test", "--offline", "--package", "silvan-sim", "--test", "extended"],
        cwd=COPY,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def check(test: str) -> None:
    """Expect that a test of the copy has passed."""
    printed = outcome()
    assert re.search(rf"^test {test} \.\.\. ok$", printed, re.MULTILINE), printed


def read() -> Sources:
    """Read what is compiled: no tests, benchmarks and examples of other crates."""
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


def add_scheme(sources: Sources) -> None:
    """Take the example of the guide out, and put it in as the page says."""
    folder = "crates/silvan-cc/src/schemes"
    line = scheme_line()
    listed = sources[f"{folder}/mod.rs"]
    assert line in listed
    # The page names the list, which is not in a block.
    separate = "recn::Recn, half::Half,\n"
    assert separate in listed
    without = listed.replace(f"        {line}\n", "").replace(", half::Half,", ",")
    del sources[f"{folder}/half.rs"]
    assert "half" not in without
    last = list(REGISTERED.finditer(without))[-1].start()
    added = f"{without[:last]}        {line}\n{without[last:]}"
    sources[f"{folder}/mod.rs"] = added.replace(separate.replace(" half::Half,", ""), separate)
    sources[f"{folder}/half.rs"] = scheme_file()


def scheme_file() -> str:
    """Join the listings of the page, which are the file of its scheme."""
    return "\n".join(textwrap.dedent(block) for block in blocks(SCHEME_PAGE, "rust"))


def scheme_line() -> str:
    """Find the line of the page that registers its scheme."""
    (line,) = [text for text in blocks(SCHEME_PAGE, "") if REGISTERED.match("    " + text)]
    return line.strip()


def add_registered(sources: Sources, page: str) -> None:
    """Add the file and the line of a page."""
    text = (PAGES / page).read_text()
    ((name, folder),) = re.findall(r"^Make the file `(.*)` in `(.*)`:$", text, re.MULTILINE)
    file, line = blocks(PAGES / page, "rust")
    sources[f"{folder}/{name}"] = file
    registry = sources[f"{folder}/mod.rs"]
    end = list(REGISTERED.finditer(registry))[-1].end()
    sources[f"{folder}/mod.rs"] = f"{registry[:end]}\n{line.rstrip()}{registry[end:]}"


def add_counter(sources: Sources) -> None:
    """Add the port counter of its page."""
    declaration, field, first_value, count, report = blocks(PAGES / "port-counter.md", "rust")
    core, engine = "crates/silvan-core/src", "crates/silvan-engine/src"
    end = "}\n\nimpl PortCounters {\n    /// How many"
    put(sources, f"{core}/counters.rs", end, declaration)
    put(sources, f"{engine}/records.rs", "    /// Since (or from) when the port is idle", field)
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
    """Add the hook of its page, and to the guide's scheme a counter of its calls by host."""
    declaration, call = blocks(PAGES / "hook.md", "rust")
    hooks = "crates/silvan-cc/src/hooks/list.rs"
    put(sources, hooks, "        }\n\n        inspect {}\n", "\n" + declaration)
    engine = "crates/silvan-engine/src/host.rs"
    head = re.compile(r"^    fn await_host_credits\([^{]*\{\n", re.MULTILINE)
    sources[engine], count = head.subn(lambda found: found[0] + call, sources[engine])
    assert count == 1
    scheme = "crates/silvan-cc/src/schemes/half.rs"
    put(sources, scheme, "    fn release(&mut self", CALLED)
    sources[scheme] += COUNTS


CALLED = """\
    fn needs_blocked(&self) -> bool {
        true
    }

    fn on_blocked(&mut self, _: Time, host: silvan_core::HostId) {
        BLOCKED[host.index()].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }

"""
COUNTS = """
/// Calls of the hook by host.
pub static BLOCKED: [std::sync::atomic::AtomicU32; 4] =
    [const { std::sync::atomic::AtomicU32::new(0) }; 4];
"""

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
