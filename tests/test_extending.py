"""The pages on extending silvan do what they say, and a registered name is in one place."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CRATES = ROOT / "crates"
TOPOLOGIES = CRATES / "silvan-fabric/src/generators"
TRAFFIC = CRATES / "silvan-workload/src/traffic/kinds"
LINE = re.compile(r'^ +(\w+)::(\w+) = "([\w-]+)", ".*";$', re.MULTILINE)

# Words that name something else as well: where, and what.
HOMONYMS = {
    ("incast", "silvan-workload/src/programs"): "a collective operation",
    ("incast", "silvan-dcms/src/fake"): "what a fake subnet shows",
    ("flow", "silvan-emulator/src"): "a flow that is started on the live fabric",
    ("flow", "silvan-workload/src/traffic/live.rs"): "a flow that is started on the live fabric",
    ("flow", "silvan-python/src"): "an argument of the functions of a scheme",
}


def registered(folder: Path) -> list[tuple[str, str, str]]:
    """Module, type and name of each registered line."""
    lines = LINE.findall((folder / "mod.rs").read_text())
    assert len(lines) > 4, "the registry has another form"
    return lines


def code(path: Path) -> str:
    """A source without comments, and without the tests at its end."""
    text = path.read_text().split("#[cfg(test)]")[0]
    return re.sub(r"//.*", "", text)


@pytest.mark.parametrize("folder", [TOPOLOGIES, TRAFFIC], ids=["topologies", "traffic"])
def test_a_registered_name_is_in_its_line_alone(folder: Path) -> None:
    """Oracle: the registry. What knew a name elsewhere would be another place to change."""
    found = []
    sources = [path for path in CRATES.glob("*/src/**/*.rs") if "tests" not in str(path)]
    texts = {path.relative_to(CRATES): code(path) for path in sources}
    registry = (folder / "mod.rs").relative_to(CRATES)
    for module, kind, name in registered(folder):
        own = registry.parent / f"{module}.rs"
        for path, text in texts.items():
            other = any(word == name and str(path).startswith(at) for word, at in HOMONYMS)
            expected = 1 if path == registry else 0
            if path != own and not other and text.count(f'"{name}"') != expected:
                found.append(f"{path}: {name!r}")
            if path not in {own, registry} and f"Topology::{kind}" in text:
                found.append(f"{path}: Topology::{kind}")
    assert not found


def page(name: str) -> tuple[str, str, str]:
    """The path of the file that a page makes, the file, and the line."""
    text = (ROOT / "docs/extending" / name).read_text()
    ((file_name, folder),) = re.findall(r"^Make the file `(.*)` in `(.*)`:$", text, re.MULTILINE)
    file, line = re.findall(r"^```rust\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return f"{folder}/{file_name}", file, line


PROGRAM = """
use silvan_core::{HostId, Sl, Time};
use silvan_cc::workload::{Gate, Poll, Workload};
use silvan_scenario::{Scenario, reference_markdown};
use silvan_workload::traffic::Traffic;

struct Open;

impl Gate for Open {
    fn release(&mut self, _: HostId, _: Sl) -> Time { Time::ZERO }
    fn lane_open(&mut self, _: Sl, _: u32) -> bool { true }
}

const TEXT: &str = r#"
[fabric]
generator = "dumbbell"
hosts-per-switch = 3
trunks = 2
[[traffic.neighbours]]
reach = 2
load = 1
"#;

fn refused(from: &str, to: &str) -> String {
    let text = TEXT.replace(from, to);
    Scenario::from_toml(&text, "added.toml", &[]).unwrap_err().to_string()
}

#[test]
fn both_are_there() {
    let scenario = Scenario::from_toml(TEXT, "added.toml", &[]).unwrap();
    let fabric = scenario.fabric();
    assert_eq!((fabric.switch_count(), fabric.host_count()), (2, 6));
    assert_eq!(fabric.links.len(), 6 + 2);
    // Of the 30 pairs, 12 are at one switch, and 18 are apart by one cable more.
    let routes = scenario.routes();
    assert_eq!(routes.pairs, 30);
    let nearest = f64::from(routes.max_hops) - 1.0;
    assert!((routes.mean_hops - (nearest + 18.0 / 30.0)).abs() < 1e-9);

    let mut traffic = Traffic::new(scenario.traffic(), &scenario.environment(1)).unwrap();
    assert_eq!(traffic.classes(), ["neighbours-1"]);
    let mut receivers = Vec::new();
    for _ in 0..8 {
        let now = Time::from_ps(1_000_000);
        let Poll::Send(offer) = traffic.poll(HostId::new(5), now, &mut Open) else {
            panic!("it saturates");
        };
        receivers.push(offer.dst.index());
    }
    receivers.sort_unstable();
    receivers.dedup();
    assert_eq!(receivers, [0, 1]);

    let reference = reference_markdown();
    for key in ["hosts-per-switch", "trunks", "reach"] {
        assert!(reference.contains(&format!("| `{key}` |")), "{key}");
    }
    assert_eq!(
        refused("trunks", "trunk"),
        "added.toml:5: fabric.trunk: unknown key (hint: did you mean \\"trunks\\"?)"
    );
    let error = refused("reach = 2", "reach = 6");
    assert!(error.starts_with("added.toml:7: traffic.neighbours.0.reach: "), "{error}");
}
"""


@pytest.mark.slow
def test_the_pages_add_a_topology_and_a_kind_of_traffic() -> None:
    """Oracle: closed forms of what the pages add, in a copy of the crates that it takes."""
    target = ROOT / "target/extending"
    copy = target / "workspace"
    shutil.rmtree(copy, ignore_errors=True)
    crates = ["core", "fabric", "cc", "workload", "model", "mad", "dcms", "scenario"]
    for name in crates:
        shutil.copytree(CRATES / f"silvan-{name}", copy / f"crates/silvan-{name}")
    manifest = (ROOT / "Cargo.toml").read_text()
    members = ", ".join(f'"crates/silvan-{name}"' for name in crates)
    manifest, changed = re.subn(
        r"^members = \[.*?\]", f"members = [{members}]", manifest, flags=re.DOTALL | re.MULTILINE
    )
    assert changed == 1
    (copy / "Cargo.toml").write_text(manifest)
    shutil.copy(ROOT / "Cargo.lock", copy)
    for name in crates:
        path = copy / f"crates/silvan-{name}/Cargo.toml"
        path.write_text(path.read_text().split("[dev-dependencies]")[0])
        for tests in ("tests", "examples", "benches"):
            shutil.rmtree(path.parent / tests, ignore_errors=True)
    for name in ("topology.md", "traffic.md"):
        at, file, line = page(name)
        (copy / at).write_text(file)
        registry = (copy / at).parent / "mod.rs"
        text = registry.read_text()
        end = list(LINE.finditer(text))[-1].end()
        registry.write_text(f"{text[:end]}\n{line.rstrip()}{text[end:]}")
    test = copy / "crates/silvan-scenario/tests/added.rs"
    test.parent.mkdir()
    test.write_text(PROGRAM)
    settings = {
        "CARGO_TARGET_DIR": str(target / "build"),
        "CARGO_PROFILE_TEST_DEBUG": "0",
        "CARGO_PROFILE_TEST_OPT_LEVEL": "0",
        "CARGO_PROFILE_DEV_DEBUG": "0",
        "CARGO_PROFILE_DEV_OPT_LEVEL": "0",
        "CARGO_INCREMENTAL": "0",
    }
    outcome = subprocess.run(
        ["cargo", "test", "--offline", "-p", "silvan-scenario", "--test", "added"],
        cwd=copy,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stderr + outcome.stdout
