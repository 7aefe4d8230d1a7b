//! Any text as forwarding tables, service levels and SL to VL tables.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use silvan_fabric::Fabric;

#[allow(dead_code, reason = "other targets need the rest")]
#[path = "../../crates/silvan-fabric/tests/import/law.rs"]
mod law;

static FABRIC: LazyLock<Fabric> = LazyLock::new(law::sample);

fuzz_target!(|text: &str| law::check_routes(text, &FABRIC));
