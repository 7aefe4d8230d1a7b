//! Whole runs and sessions, from scenario to tables, each with an oracle of its own. One binary, because each links all engines.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod estimate;
mod faults;
mod flows;
mod inference;
mod latency;
mod many_flows;
mod programs;
mod routing;
mod schemes;
mod sequences;
mod session;
mod settings;
mod sharp;
mod trees;

use silvan_scenario::Override;

/// Overrides for links of 4x DDR with packets of 2 KiB, whose numbers the oracles compute with; further overrides follow.
fn on_ddr(overrides: &[(&str, &str)]) -> Vec<Override> {
    let links = [
        ("link.speed", "DDR"),
        ("packet.mtu", "2 KiB"),
        ("switch.buffer", "64 KiB"),
        ("host.receive-buffer", "16 KiB"),
    ];
    let all = links.iter().chain(overrides);
    all.map(|(key, value)| Override::new(*key, *value))
        .collect()
}
