//! Prints how long the analysis of large fabrics takes: `cargo run --release -p silvan-diagnose --example speed`.
//!
//! Every host sends to a few others, and groups of hosts to one; waiting ports follow from the paths of these flows.
#![allow(clippy::print_stdout, reason = "it prints a table")]

use std::time::Instant;

use silvan_core::{HostId, IdVec, Length, PortId, Span};
use silvan_diagnose::counters::TrafficGrowth;
use silvan_diagnose::logs::Logs;
use silvan_diagnose::observation::{Observation, PortLoad};
use silvan_diagnose::report::{Input, Report};
use silvan_fabric::generators::{FatTree648, FatTree11664, Generator};
use silvan_fabric::routing::d_mod_k;
use silvan_fabric::{Fabric, ForwardingTables, LinkKind, Speed, Width};

fn path(fabric: &Fabric, tables: &ForwardingTables, from: HostId, to: HostId) -> Vec<PortId> {
    let mut path = vec![fabric.host_port(from)];
    let (mut switch, _) = fabric.host_attachment(from);
    while let Some(number) = tables.get(switch, fabric.host(to).lid) {
        let Some(port) = fabric.switch(switch).port(number) else {
            break;
        };
        path.push(port);
        match fabric.peer_switch(port) {
            Some((next, _)) => switch = next,
            None => break,
        }
    }
    path
}

/// Loads of so many flows of each host to others, each of this part of a link, and of incasts of 40 hosts.
fn observed(
    fabric: &Fabric,
    tables: &ForwardingTables,
    flows: usize,
    incasts: usize,
) -> Observation {
    let mut ports = IdVec::filled(
        PortLoad {
            load: Some(0.0),
            wait: Some(0.0),
            ..PortLoad::default()
        },
        fabric.ports.len(),
    );
    let hosts = fabric.host_count();
    let mut send = |from: usize, to: usize, part: f64, blocks: bool| {
        let path = path(fabric, tables, HostId::new(from), HostId::new(to));
        for (step, &port) in path.iter().enumerate() {
            let load = ports[port].load.unwrap_or(0.0);
            ports[port].load = Some((load + part).min(0.9995));
            if blocks && step + 1 < path.len() {
                ports[port].wait = Some(0.5);
            }
        }
    };
    for from in 0..hosts {
        for flow in 1..=flows {
            send(from, (from + flow * 37) % hosts, 0.4 / flows as f64, false);
        }
    }
    for incast in 0..incasts {
        let to = incast * hosts / incasts;
        for sender in 1..=40 {
            send((to + sender * 53) % hosts, to, 0.03, true);
        }
    }
    Observation {
        growth: IdVec::filled(TrafficGrowth::UNREAD, fabric.ports.len()),
        ticks: IdVec::filled(None, fabric.ports.len()),
        ports,
        span: Span::from_secs(1),
        logs: Logs::default(),
    }
}

fn measure(name: &str, fabric: &Fabric, flows: usize) {
    let tables = d_mod_k(fabric).expect("it is a fat tree");
    let observation = observed(fabric, &tables, flows, 4);
    let capable = IdVec::filled(None, fabric.ports.len());
    let mut seconds: Vec<f64> = (0..3)
        .map(|_| {
            let began = Instant::now();
            let report = Report::new(Input {
                fabric,
                tables: Some(&tables),
                assumed: &tables,
                capable: &capable,
                observation: &observation,
                facts: None,
            });
            assert!(!report.trees.is_empty(), "the incasts are found");
            began.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    println!("{name:<24}{flows:>4} flows per host{:>8.3} s", seconds[1]);
}

fn main() {
    let link = LinkKind::new(Width::X4, Speed::Hdr, Length::ZERO);
    let small = FatTree648 {}.build(link).expect("the generator works");
    let large = FatTree11664 {}.build(link).expect("the generator works");
    for flows in [1, 4, 40] {
        measure("648 hosts", &small, flows);
        measure("11,664 hosts", &large, flows);
    }
}
