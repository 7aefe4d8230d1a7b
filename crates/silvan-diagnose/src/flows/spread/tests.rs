use silvan_core::Length;
use silvan_fabric::generators::{Generator, KAryNTree};
use silvan_fabric::routing::d_mod_k;
use silvan_fabric::{LinkKind, Speed, Width};

use crate::observation::{Observation, data_rate};

use super::*;

/// Rate of a host with one destination, and rate of other hosts to each host, as parts of a link.
const TO_ONE: f64 = 0.29;
const TO_EACH: f64 = 0.01;

/// Three hosts of three switches send to host 0, and all others to all. The oracle are these flows, of which the loads
/// are sums.
#[test]
fn hosts_with_one_flow_are_told_from_those_that_send_to_all() {
    let link = LinkKind::new(Width::X1, Speed::Sdr, Length::ZERO);
    let fabric = KAryNTree { k: 4, n: 2 }.build(link).unwrap();
    let tables = d_mod_k(&fabric).unwrap();
    let hosts: Vec<HostId> = fabric.host_ids().collect();
    let to_one = [hosts[4], hosts[8], hosts[12]];
    let ports = fabric.ports.len();
    let unread = IdVec::filled(Default::default(), ports);
    let ticks = IdVec::filled(None, ports);
    let mut observation = Observation::new(&fabric, &unread, &unread, ticks);
    for port in observation.ports.iter_mut() {
        port.load = Some(0.0);
    }
    let none = || IdVec::filled(false, ports);
    let mut waiting = Waiting {
        busy: none(),
        held_up: none(),
        full: none(),
    };
    let mut path = Vec::new();
    for &from in &hosts[1..] {
        let is_single = to_one.contains(&from);
        for &to in hosts.iter().filter(|&&to| to != from) {
            if is_single && to != hosts[0] {
                continue;
            }
            assert!(super::super::trace(&fabric, &tables, from, to, &mut path));
            for (step, &port) in path.iter().enumerate() {
                let load = observation.ports[port].load.unwrap();
                let more = if is_single { TO_ONE } else { TO_EACH };
                observation.ports[port].load = Some(load + more);
                if is_single {
                    waiting.busy[port] |= step > 0;
                    waiting.held_up[port] |= step + 1 < path.len();
                    waiting.full[port] |= step + 1 < path.len();
                }
            }
        }
    }
    let flows = Flows::estimate(&fabric, &tables, &observation, waiting);
    let rate = data_rate(&fabric, fabric.host_port(hosts[0])).unwrap();
    for &from in &hosts[1..] {
        let own = flows.iter().filter(|flow| flow.source == from);
        let own: Vec<(HostId, f64)> = own
            .map(|flow| {
                (
                    flow.destination,
                    flow.bits_per_s / rate.bits_per_sec() as f64,
                )
            })
            .collect();
        let all: f64 = own.iter().map(|(_, sent)| sent).sum();
        let at_root = own.iter().find(|(to, _)| *to == hosts[0]).unwrap().1;
        if to_one.contains(&from) {
            assert!((at_root - TO_ONE).abs() < 0.01, "{from:?}: {own:?}");
            assert!((all - at_root).abs() < 0.01, "{from:?}: {own:?}");
        } else {
            assert!((all - 15.0 * TO_EACH).abs() < 0.01, "{from:?}: {own:?}");
            assert!(at_root < 3.0 * TO_EACH, "{from:?}: {own:?}");
        }
    }
}
