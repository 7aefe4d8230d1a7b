"""The page "How to add a port counter" does what it says.

Its lines are put into a copy of the sources, which is then compiled and run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "extending"
COUNTERS = ROOT / "crates" / "silvan-core" / "src" / "counters.rs"


def rust_blocks(page: str) -> list[str]:
    """Give the blocks of Rust code of a page."""
    text = (PAGES / page).read_text("utf-8")
    return re.findall(r"^```rust\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def put(path: Path, before: str, lines: str) -> None:
    """Insert lines before a text that occurs once."""
    text = path.read_text("utf-8")
    assert text.count(before) == 1, f"{before!r} in {path}"
    path.write_text(text.replace(before, lines + before), encoding="utf-8")


def copy_sources(folder: Path) -> Path:
    """Copy what cargo compiles; give the folder of the crates."""
    for name in ("Cargo.toml", "Cargo.lock", "rust-toolchain.toml"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "crates", folder / "crates")
    return folder / "crates"


def run_rust_test(folder: Path, crate: str, test: str) -> None:
    """Compile and run a test of the copy; what is not silvan's is compiled once for all copies."""
    environment = {
        **os.environ,
        "CARGO_TARGET_DIR": str(ROOT / "target" / "extending"),
        "CARGO_INCREMENTAL": "0",
        "CARGO_PROFILE_DEV_DEBUG": "0",
    }
    command = ["cargo", "test", "--locked", "--offline", "--package", crate, "--test", test]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


# Oracle: once all traffic is delivered, what a switch has received has left its input buffers.
COUNTER_TEST = r"""//! The added counter.
use std::ops::ControlFlow;

use silvan_instances::Fastest;
use silvan_scenario::Scenario;
use silvan_sim::run;

const TEXT: &str = r#"
    [fabric]
    generator = "single-switch"
    hosts = 3
    [probe]
    interval = "50 us"
    ports = true
    [[traffic.flow]]
    from = "host-0001"
    to = "host-0000"
    bytes = "64 KiB"
    [[traffic.flow]]
    from = "host-0002"
    to = "host-0000"
    bytes = "40 KiB"
    [run]
    duration = "500 us"
"#;

#[test]
fn each_received_packet_is_answered_by_flow_control() {
    let scenario = Scenario::from_toml(TEXT, "added.toml", &[]).unwrap();
    let output = run(&Fastest, &scenario, 1, &mut |_| ControlFlow::Continue(())).unwrap();
    let ports = output.table("ports").unwrap();
    let nodes = ports.text_column("node").unwrap();
    let column = |name| ports.u64_column(name).unwrap();
    let (sent, received) = (column("xmit_flow_pkts"), column("rcv_pkts"));
    let rows = (0..ports.rows()).filter(|&row| !nodes[row].starts_with("host"));
    let pairs: Vec<_> = rows.map(|row| (sent[row], received[row])).collect();
    assert_eq!(pairs.len(), 3);
    assert!(pairs.iter().all(|(sent, received)| sent == received), "{pairs:?}");
    let total: u64 = pairs.iter().map(|(sent, _)| sent).sum();
    assert_eq!(total, 32 + 20);
    let series = output.table("port_series").unwrap();
    assert!(series.u64_column("xmit_flow_pkts").unwrap().iter().sum::<u64>() >= total);
}
"""


@pytest.mark.slow
def test_a_port_counter_is_added_as_described(tmp_path: Path) -> None:
    declaration, field, first_value, count, report = rust_blocks("port-counter.md")
    crates = copy_sources(tmp_path)
    core, engine = crates / "silvan-core" / "src", crates / "silvan-engine" / "src"
    put(core / "counters.rs", "}\n\nimpl PortCounters {\n    /// How many", declaration)
    put(engine / "records.rs", "    /// Since (or from) when the port is idle", field)
    put(engine / "records.rs", "            wait_since: u64::MAX,\n", first_value)
    head = (
        "        let plane = &mut self.plane;\n        let InPort {\n"
        "            upstream,\n            credit_delay,"
    )
    put(engine / "switch.rs", head, count)
    put(engine / "readings.rs", "            relay_errors: discards.relay_errors,\n", report)
    test = crates / "silvan-sim" / "tests" / "added_counter.rs"
    test.write_text(COUNTER_TEST, encoding="utf-8")
    run_rust_test(tmp_path, "silvan-sim", "added_counter")


def test_a_counter_is_declared_in_one_place() -> None:
    """Oracle: the columns of counters stand as texts nowhere else in the product's code."""
    declared = re.findall(
        r"^    (\w+): (?:Bytes|Packets|Time)\b", COUNTERS.read_text("utf-8"), re.MULTILINE
    )
    assert {"xmit_bytes", "xmit_wait", "fecn_marked"} <= set(declared)
    columns = [name + suffix for name in declared for suffix in ("", "_ps")]
    pattern = re.compile('"(?:' + "|".join(columns) + ')"')
    sources = (ROOT / "crates").glob("*/src/**/*.rs")
    found = {
        str(path.relative_to(ROOT)): hits
        for path in sources
        if path != COUNTERS
        and "tests" not in path.relative_to(ROOT).as_posix()
        and (hits := pattern.findall(path.read_text("utf-8").split("#[cfg(test)]")[0]))
    }
    # The DCMS reads three of them by name: its algorithm needs them. Telemetry of packets has a
    # field of the same name as a counter.
    assert found == {
        "crates/silvan-dcms/src/machine/counters.rs": [
            '"xmit_wait"',
            '"xmit_bytes"',
            '"xmit_cong"',
        ],
        "crates/silvan-cc/src/hooks/foreign.rs": ['"xmit_bytes"'],
    }
