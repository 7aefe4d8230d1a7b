//! Nothing is lost, nothing overtaken, and everything drains: random fabrics, parameters, traffic.

pub mod case;

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use silvan_control::seam::{NoControl, SourceControl, SwitchControl};
use silvan_engine::Engine;
use silvan_fabric::Fabric;
use silvan_units::{PortId, Time, Vl};

use self::case::{Case, cases};
use crate::common::{Routed, at};
use crate::script::Script;
use silvan_units::Span;

/// The same cases in every run.
pub fn runner(cases: u32) -> TestRunner {
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[11; 32]))
}

/// Blocks of the buffer at the far end of a port's cable.
fn capacity(case: &Case, fabric: &Fabric, port: PortId) -> Option<u32> {
    let peer = fabric.ports[port].peer?;
    let to_host = fabric.nodes[fabric.ports[peer].node].as_host().is_some();
    let buffer = if to_host {
        case.config.host.receive_buffer
    } else {
        case.config.switch.buffer
    };
    Some(u32::try_from(buffer.as_u64() / 64).unwrap())
}

fn check<S: SwitchControl, C: SourceControl>(
    case: &Case,
    routed: &Routed,
    mut engine: Engine<S, C, Script>,
) -> Result<(), TestCaseError> {
    for &step in &case.steps {
        engine.run_until(Time::from_ps(step)).unwrap();
        prop_assert_eq!(engine.audit(), Ok(()));
    }
    engine.run_until(at(Span::from_ms(40))).unwrap();
    prop_assert_eq!(engine.audit(), Ok(()));
    prop_assert_eq!(engine.notifications_inside(), 0);
    let mut injected = 0;
    for (flow, record) in engine.workload().records.iter().enumerate() {
        let sent = record.injected.len();
        prop_assert_eq!(record.delivered.len(), sent, "flow {}", flow);
        injected += engine.workload().payload(flow, sent);
    }
    prop_assert!(injected > 0);
    let delivered: u64 = routed
        .fabric
        .host_ids()
        .map(|host| engine.host_counters(host).delivered_bytes)
        .sum();
    prop_assert_eq!(delivered, injected);
    for port in routed.fabric.ports.ids() {
        for vl in Vl::all().take(usize::from(case.config.data_vls)) {
            prop_assert!(engine.queued(port, vl).is_zero());
            if let Some(capacity) = capacity(case, &routed.fabric, port) {
                prop_assert_eq!(engine.credits(port, vl), capacity);
            }
        }
    }
    Ok(())
}

#[test]
fn without_congestion_control() {
    let result = runner(256).run(&cases(), |case| {
        let (routed, _) = case.build();
        let engine = routed.engine(&case.config, &case.flows);
        check(&case, &routed, engine)
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

#[test]
fn with_congestion_control_and_notifications_in_band() {
    let (marks, meshes) = (Cell::new(0), Cell::new(0));
    let result = runner(256).run(&cases(), |case| {
        let (routed, is_mesh) = case.build();
        let (switch, adapter) = case.control(&routed);
        let engine = routed.controlled(&case.config, switch, adapter, &case.flows);
        meshes.set(meshes.get() + u32::from(is_mesh));
        let mut probe = routed.controlled(
            &case.config,
            case.control(&routed).0,
            NoControl,
            &case.flows,
        );
        probe.run_until(Time::from_ps(case.steps[0])).unwrap();
        let marked = |host| probe.host_counters(host).fecn_received;
        marks.set(marks.get() + routed.fabric.host_ids().map(marked).sum::<u64>());
        check(&case, &routed, engine)
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    // The cases are what they are meant to be.
    assert!(marks.get() > 0);
    assert!(
        meshes.get() > 10,
        "{} fabrics with extra cables",
        meshes.get()
    );
}
