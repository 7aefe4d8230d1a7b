//! An engine of one's own is faster, and nothing else.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::ops::ControlFlow;

use silvan_instances::{Fastest, Shared};
use silvan_model::Engines;
use silvan_scenario::{Override, Scenario};
use silvan_sim::{RunOutput, run};

const TWO_VL: &str = include_str!("../../../examples/two-vl.toml");
const PARKING_LOT: &str = include_str!("../../../examples/parking-lot.toml");

/// Three hosts send to one across two switches, faster than it can take.
const INCAST: &str = r#"
[fabric]
generator = "chain"
switches = 2
hosts-per-switch = 4
routing = "min-hop"
[[traffic.incast]]
to = "host-0000"
[[traffic.uniform]]
load = 0.3
[control]
scheme = "ib-cc"
[control.ib-cc.switch]
threshold = 15
threshold-lowest = "6222 B"
victim-mask = "hosts"
[probe]
interval = "100 us"
ports = true
classes = true
latency = "host"
[probe.trees]
interval = "100 us"
[run]
duration = "1 ms"
"#;

/// Hotspots that move at instants which no window begins at, and hosts that send so seldom that they wait
/// for many windows.
const MOVING: &str = r#"
[fabric]
generator = "k-ary-n-tree"
k = 4
n = 2
[traffic.nodes]
v = 0.3
c = 0.3
b = 0.4
p = 50
hotspots = 2
hotspot-lifetime = "77777777 ps"
[[traffic.uniform]]
load = 0.02
[control]
scheme = "none"
[probe]
interval = "30 us"
ports = true
classes = true
latency = "host"
[run]
duration = "900 us"
"#;

fn run_with(engines: &dyn Engines, scenario: &Scenario) -> RunOutput {
    run(engines, scenario, 1, &mut |_| ControlFlow::Continue(())).unwrap()
}

#[test]
fn the_shared_engine_gives_the_same_to_the_last_bit() {
    let none = [Override::new("control.scheme", "\"none\"")];
    let random = [Override::new("control.ib-cc.switch.marking", "\"random\"")];
    let adaptive = [Override::new("fabric.path-choice", "\"adaptive\"")];
    let dcqcn = [Override::new("control.scheme", "\"dcqcn\"")];
    for (text, overrides) in [
        (TWO_VL, &none[..]),
        (PARKING_LOT, &none[..]),
        (INCAST, &none[..]),
        (MOVING, &[]),
        (INCAST, &[]),
        (INCAST, &random[..]),
        (MOVING, &adaptive[..]),
        (INCAST, &dcqcn[..]),
    ] {
        let scenario = Scenario::from_toml(text, "test.toml", overrides).unwrap();
        let (fastest, shared) = (run_with(&Fastest, &scenario), run_with(&Shared, &scenario));
        assert_eq!(fastest.tables, shared.tables);
        assert_eq!(fastest.summary.packet_hops, shared.summary.packet_hops);
        let marked = fastest.table("ports").unwrap();
        let marked: u64 = marked.u64_column("fecn_marked").unwrap().iter().sum();
        assert_eq!(marked > 0, scenario.scheme().acts());
    }
}
