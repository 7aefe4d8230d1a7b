//! The engine against the reference model, on random small fabrics.

mod buffers;
mod case;
mod pfc;
mod topologies;
mod traffic;

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use silvan_cc::hooks::{NoControl, SwitchControl};
use silvan_core::{Sl, Span, Time};
use silvan_engine::{self as engine, Engine, EngineConfig, EngineError};
use silvan_fabric::routing::{PathLanes, PathServiceLevels, Routes};
use silvan_reference::{Arbitration, FlitModel, HostArbitration, Parameters, Pfc, Queueing, Sink};

use self::case::{Case, Load, cases};
use self::traffic::{Flows, Record};
use crate::common::{Routed, at};

type TestEngine<S = NoControl> = Engine<S, NoControl, Flows>;

/// The engine's form of the same parameters.
fn config(case: &Case) -> EngineConfig {
    let Parameters {
        data_vls,
        sl_to_vl,
        tables: _,
        header,
        pfc,
        switch,
        host,
    } = case.parameters.clone();
    EngineConfig {
        data_vls,
        sl_to_vl,
        vl_arbitration: engine::VlArbitration {
            high: switch.vl_arbitration.high,
            low: switch.vl_arbitration.low,
            limit_high: switch.vl_arbitration.limit_high,
        },
        switch: engine::SwitchParams {
            latency: switch.latency,
            credit_delay: switch.credit_delay,
            buffer: Some(switch.buffer),
            lanes_per_buffer: 1,
            read_limit: switch.read_limit,
            read_speedup_percent: switch.read_speedup_percent,
            queueing: match switch.queueing {
                Queueing::Voq => engine::Queueing::Voq,
                Queueing::Fifo => engine::Queueing::Fifo,
            },
            arbitration: match switch.arbitration {
                Arbitration::RoundRobin => engine::Arbitration::RoundRobin,
                Arbitration::OldestFirst => engine::Arbitration::OldestFirst,
            },
            bypass_limit: None,
            output_buffer: switch.output_buffer.map(|buffer| engine::OutputBuffer {
                size: buffer.size,
                speedup_percent: buffer.speedup_percent,
                crossbar: match buffer.cut_through {
                    true => engine::CrossbarFeed::CutThrough,
                    false => engine::CrossbarFeed::FullRate,
                },
            }),
        },
        host: engine::HostParams {
            injection_rate: host.injection_rate,
            arbitration: match host.arbitration {
                HostArbitration::HeadOfLine => engine::HostArbitration::HeadOfLine,
                HostArbitration::WorkConserving => engine::HostArbitration::WorkConserving,
            },
            sink_rate: host.sink_rate,
            sink: match host.sink {
                Sink::StoreAndForward => engine::Sink::StoreAndForward,
                Sink::CutThrough => engine::Sink::CutThrough,
            },
            receive_buffer: Some(host.receive_buffer),
            credit_delay: host.credit_delay,
            ..engine::HostParams::default()
        },
        packet: engine::PacketParams {
            mtu: case.mtu,
            header,
        },
        pfc: pfc.map(engine_pfc),
        ..EngineConfig::default()
    }
}

/// The engine's form of PFC. It is given the thresholds and the buffer, and takes what is between them for headroom.
fn engine_pfc(pfc: Pfc) -> engine::PfcParams {
    engine::PfcParams {
        xoff: Some(pfc.xoff),
        xon: Some(pfc.xon),
        headroom: Some(pfc.buffer.saturating_sub(pfc.xoff)),
        buffer: Some(pfc.buffer),
        response: pfc.response,
        interface_delay: pfc.interface_delay,
        pause_frame: pfc.pause_frame,
        max_frame: Some(pfc.max_frame),
    }
}

fn run_model_and_engine(case: &Case, routed: &Routed, until: Time) -> (FlitModel, TestEngine) {
    run_with(case, routed, NoControl, until)
}

/// Runs model and engine, with a scheme at the switches that has no effect.
fn run_with<S: SwitchControl>(
    case: &Case,
    routed: &Routed,
    switch: S,
    until: Time,
) -> (FlitModel, TestEngine<S>) {
    let parameters = case.parameters(&routed.fabric);
    let model = routed.run(&parameters, &case.flows, until);
    let lanes = parameters.tables.as_ref().map(|tables| {
        // Levels of paths are for others to test; these flows have their own.
        let levels = PathServiceLevels::by_switch(&routed.fabric, |_, _| 0);
        let (other, data_vls) = (&parameters.sl_to_vl, parameters.data_vls);
        PathLanes::by_tables(&routed.fabric, levels, tables, other, data_vls, Sl::all())
    });
    let routes = Routes {
        lanes: lanes.as_ref(),
        ..(&routed.tables).into()
    };
    let mut engine = Engine::new(
        &routed.fabric,
        routes,
        &config(case),
        switch,
        NoControl,
        Flows::new(&case.flows, routed.fabric.host_count()),
    )
    .unwrap();
    let result = engine.run_until(until);
    assert!(
        agrees_on_loss(&model, &result),
        "{:?}, {result:?}",
        model.first_loss()
    );
    engine.audit().unwrap();
    (model, engine)
}

/// Returns true if the engine has found the loss of the reference.
fn agrees_on_loss(model: &FlitModel, result: &Result<(), EngineError>) -> bool {
    match (model.first_loss(), result) {
        (Some(seen), Err(EngineError::Loss(found))) => {
            (found.at, found.port, found.priority) == (seen.at, seen.port, seen.vl)
                && found.over == seen.over.as_u64()
        }
        (None, Ok(())) => true,
        _ => false,
    }
}

/// The reference model's deliveries, by flow and sequence number.
fn reference_records(model: &FlitModel) -> BTreeSet<Record> {
    let deliveries = model.deliveries().iter();
    deliveries
        .map(|delivery| Record {
            flow: delivery.flow,
            sequence: delivery.sequence,
            injected: delivery.injected,
            done: delivery.done,
        })
        .collect()
}

/// The packet on which the two models differ first, with what the reference says of it and what
/// the engine says.
fn first_difference<S: SwitchControl>(model: &FlitModel, engine: &TestEngine<S>) -> Option<String> {
    let reference = reference_records(model);
    let engine: BTreeSet<Record> = engine.workload().records.iter().copied().collect();
    let first = reference
        .symmetric_difference(&engine)
        .min_by_key(|record| (record.injected, record.done))?;
    let same = |record: &&Record| (record.flow, record.sequence) == (first.flow, first.sequence);
    Some(format!(
        "of {} packets first {:?} against {:?}",
        reference.len(),
        reference.iter().find(same),
        engine.iter().find(same),
    ))
}

/// Checks cases that are equal in every run with one `PROPTEST_RNG_SEED`.
fn check(cases_count: u32, load: Load, test: impl Fn(Case) -> Result<(), TestCaseError>) {
    check_drawn(cases_count, &cases(load), test);
}

fn check_drawn(
    cases_count: u32,
    cases: &impl Strategy<Value = Case>,
    test: impl Fn(Case) -> Result<(), TestCaseError>,
) {
    let config = ProptestConfig {
        cases: cases_count,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let drawn = std::env::var("PROPTEST_RNG_SEED").map_or(1, |seed| seed.parse().unwrap());
    let mut seed = [7; 32];
    seed[..8].copy_from_slice(&u64::to_le_bytes(drawn));
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(config, rng);
    if let Err(error) = runner.run(cases, test) {
        panic!("{error}");
    }
}

#[test]
fn packets_that_meet_no_other_arrive_at_the_same_picosecond() {
    check(64, Load::Alone, |case| {
        let routed = case.build();
        let (model, engine) = run_model_and_engine(&case, &routed, at(Span::from_ms(20)));
        prop_assert_eq!(model.deliveries().len(), case.flows.len());
        prop_assert_eq!(first_difference(&model, &engine), None);
        Ok(())
    });
}

/// Every packet at the same picosecond, and in the end the same totals at every port.
fn drains_alike(case: &Case) -> Result<(), TestCaseError> {
    let routed = case.build();
    let (model, engine) = run_model_and_engine(case, &routed, at(Span::from_ms(100)));
    prop_assert_eq!(model.packets_under_way(), 0);
    let total: u64 = case.flows.iter().filter_map(|flow| flow.packets).sum();
    prop_assert_eq!(model.deliveries().len() as u64, total);
    prop_assert_eq!(first_difference(&model, &engine), None);
    for port in routed.fabric.ports.ids() {
        let counters = engine.port_counters(port);
        let Some(report) = model.port(port) else {
            prop_assert_eq!(counters.xmit_bytes, 0);
            continue;
        };
        prop_assert_eq!(counters.xmit_bytes, report.xmit_bytes.as_u64());
        prop_assert_eq!(counters.xmit_pkts, report.xmit_packets);
        // Waiting of hosts depends on their traffic; the reference knows the flows.
        let node = &routed.fabric.nodes[routed.fabric.ports[port].node];
        if node.as_switch().is_some() {
            let name = routed.fabric.port_name(port).to_string();
            prop_assert_eq!(counters.xmit_wait, report.xmit_wait, "{}", name);
        }
        prop_assert_eq!(counters.pause_rcv, report.pause_frames);
        prop_assert_eq!(counters.xmit_paused, report.pause_time);
        let peer = routed.fabric.ports[port]
            .peer
            .and_then(|peer| model.port(peer));
        prop_assert_eq!(
            peer.map(|peer| peer.pause_frames),
            Some(counters.pause_sent)
        );
    }
    Ok(())
}

#[test]
fn finite_flows_drain_alike() {
    check(64, Load::Bursts(40), |case| drains_alike(&case));
}

/// Equal cables and packets, started together: the order of simultaneous events decides.
#[test]
fn finite_flows_in_step_drain_alike() {
    check(64, Load::Bursts(40), |case| drains_alike(&case.in_step()));
}

/// Throughputs are equal, as every packet is.
#[test]
fn endless_flows_share_alike() {
    check(64, Load::Endless, |case| {
        let routed = case.build();
        let (model, engine) = run_model_and_engine(&case, &routed, at(Span::from_us(150)));
        prop_assert_eq!(first_difference(&model, &engine), None);
        Ok(())
    });
}
