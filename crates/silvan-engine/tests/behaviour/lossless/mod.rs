//! Nothing is lost, nothing overtaken, and everything drains: random fabrics, parameters, traffic.

pub mod case;

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use silvan_cc::hooks::{NoControl, PerHost, PerPortVl, SourceControl, SwitchControl};
use silvan_core::{Length, PortId, Time, Vl};
use silvan_engine::{
    Arbitration, CompiledFabric, CrossbarFeed, Engine, EngineConfig, EngineVariant, FeedbackPath,
    OutputBuffer, Queueing, SwitchParams,
};
use silvan_fabric::{Fabric, LinkKind, Speed, Width};

use self::case::{Case, cases};
use crate::common::{Routed, at, ddr_config, two_lanes};
use crate::script::Script;
use silvan_core::Span;

/// Returns a runner with equal cases in every run with one `PROPTEST_RNG_SEED`.
pub fn runner(cases: u32) -> TestRunner {
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let drawn = std::env::var("PROPTEST_RNG_SEED").map_or(1, |seed| seed.parse().unwrap());
    let mut seed = [11; 32];
    seed[..8].copy_from_slice(&u64::to_le_bytes(drawn));
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed))
}

/// Blocks of the buffer at the far end of a port's cable.
fn capacity(case: &Case, fabric: &Fabric, port: PortId) -> Option<u32> {
    let (peer, link) = (fabric.ports[port].peer?, fabric.ports[port].link?);
    let (cable, config) = (fabric.links[link].kind, &case.config);
    let to_host = fabric.nodes[fabric.ports[peer].node].as_host().is_some();
    let buffer = if to_host {
        config.host.buffer_behind(cable, config.packet)
    } else {
        config.switch.buffer_behind(cable, config.packet)
    };
    Some(u32::try_from(buffer.as_u64() / 64).unwrap())
}

fn check<S: SwitchControl, C: SourceControl, F: EngineVariant>(
    case: &Case,
    routed: &Routed,
    mut engine: Engine<S, C, Script, F>,
) -> Result<Engine<S, C, Script, F>, TestCaseError> {
    for &step in &case.steps {
        engine.run_until(Time::from_ps(step)).unwrap();
        prop_assert_eq!(engine.audit(), Ok(()));
        for port in routed.fabric.ports.ids() {
            let Some(peer) = routed.fabric.ports[port].peer else {
                continue;
            };
            let of = |port| engine.port_counters(port);
            let received = (of(port).rcv_bytes, of(port).rcv_pkts);
            prop_assert_eq!(received, (of(peer).xmit_bytes, of(peer).xmit_pkts));
        }
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
    Ok(engine)
}

#[test]
fn without_congestion_control() {
    let result = runner(256).run(&cases(), |case| {
        let (routed, _) = case.build();
        let engine = routed.engine(&case.config, &case.flows);
        check(&case, &routed, engine).map(|_| ())
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
        check(&case, &routed, engine).map(|_| ())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    // The drawn cases have the intended properties.
    assert!(marks.get() > 0);
    assert!(
        meshes.get() > 10,
        "{} fabrics with extra cables",
        meshes.get()
    );
}

/// A run window by window, and a run event by event.
type EnginePair<S, C, F, const TOLD: bool> =
    (Engine<S, C, Script<TOLD>, F>, Engine<S, C, Script<TOLD>>);

/// Makes an engine with windows.
type Make<S, C, F, const TOLD: bool> =
    fn(CompiledFabric, S, C, Script<TOLD>) -> Engine<S, C, Script<TOLD>, F>;

/// Runs both engines step by step; they must agree after each.
fn compare<const TOLD: bool, S: PerPortVl, C: PerHost, F: EngineVariant>(
    case: &Case,
    routed: &Routed,
    make: Make<S, C, F, TOLD>,
    control: impl Fn() -> (S, C),
) -> Result<EnginePair<S, C, F, TOLD>, TestCaseError> {
    let compiled = || case.compile(routed);
    let script = || case.script(routed).by_windows::<TOLD>();
    let (switch, source) = control();
    let mut general = Engine::general(compiled(), switch, source, script());
    let (switch, source) = control();
    let mut lookahead = make(compiled(), switch, source, script());
    let last = Span::from_ms(40).as_ps();
    for end in case.steps.iter().copied().chain([last]) {
        general.run_until(Time::from_ps(end)).unwrap();
        lookahead.run_until(Time::from_ps(end)).unwrap();
        prop_assert_eq!(lookahead.audit(), Ok(()));
        prop_assert_eq!(&lookahead.workload().records, &general.workload().records);
        prop_assert_eq!(&lookahead.workload().arrived, &general.workload().arrived);
        prop_assert_eq!(lookahead.packet_hops(), general.packet_hops());
        for host in routed.fabric.host_ids() {
            prop_assert_eq!(lookahead.host_counters(host), general.host_counters(host));
        }
        for port in routed.fabric.ports.ids() {
            prop_assert_eq!(lookahead.port_counters(port), general.port_counters(port));
            for vl in Vl::all().take(usize::from(case.config.data_vls)) {
                prop_assert_eq!(lookahead.credits(port, vl), general.credits(port, vl));
                prop_assert_eq!(lookahead.queued(port, vl), general.queued(port, vl));
                let free = general.free_blocks(port, vl);
                prop_assert_eq!(lookahead.free_blocks(port, vl), free);
            }
        }
    }
    prop_assert!(lookahead.packet_hops() > 0);
    // All has been drained. Of the buffers of hosts no account is kept.
    let of_switches = routed
        .fabric
        .switch_ids()
        .flat_map(|switch| routed.fabric.switch(switch).ports());
    for port in of_switches {
        let peer = routed.fabric.ports[port].peer;
        let empty = peer.and_then(|peer| capacity(case, &routed.fabric, peer));
        let empty = empty.unwrap_or(0);
        for vl in Vl::all().take(usize::from(case.config.data_vls)) {
            let free = lookahead.free_blocks(port, vl);
            prop_assert!(free.is_none_or(|free| free == empty));
        }
    }
    Ok((lookahead, general))
}

/// Oracle: the engine that processes events one by one, at each step of the run.
#[test]
fn lookahead_engine_equals_general_engine() {
    let result = runner(512).run(&cases(), |case| {
        let case = case.lookahead();
        let (routed, _) = case.build();
        compare::<false, _, _, _>(&case, &routed, Engine::lookahead, || (NoControl, NoControl))
            .map(|_| ())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

/// Oracle: the general engine, with InfiniBand's congestion control. It compares marks, notifications in and out of
/// band, their charges, and their effects on the flows.
#[test]
fn lookahead_engine_with_congestion_control_equals_general_engine() {
    let (becns, charged) = (Cell::new(0), Cell::new(0));
    let result = runner(512).run(&cases(), |case| {
        let case = case.lookahead();
        let (routed, _) = case.build();
        let (engine, general) =
            compare::<false, _, _, _>(&case, &routed, Engine::lookahead, || case.control(&routed))?;
        // A workload's answer to a poll may depend on congestion control's answers at that time.
        prop_assert_eq!(&engine.workload().polls, &general.workload().polls);
        let received = |host| engine.host_counters(host).becn_received;
        let received: u64 = routed.fabric.host_ids().map(received).sum();
        becns.set(becns.get() + received);
        let is_charged = case.config.feedback.path == FeedbackPath::OutOfBand
            && case.config.host.sink_rate.is_some()
            && !case.config.feedback.charge.is_zero();
        charged.set(charged.get() + u64::from(is_charged && received > 0));
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    // The drawn cases have the intended properties.
    assert!(becns.get() > 1000, "{} BECNs", becns.get());
    assert!(charged.get() > 10, "{} cases with charges", charged.get());
}

/// Oracle: the general engine, with notifications of deliveries at the sending hosts.
#[test]
fn lookahead_engines_that_tell_of_deliveries_equal_general_engine() {
    let told = Cell::new(0);
    let result = runner(256).run(&cases(), |case| {
        let plain = case.clone().lookahead();
        let (routed, _) = plain.build();
        let control = || plain.control(&routed);
        let (engine, general) =
            compare::<true, _, _, _>(&plain, &routed, Engine::lookahead, control)?;
        prop_assert_eq!(&engine.workload().polls, &general.workload().polls);
        let delivered = engine.workload().records.iter();
        told.set(
            told.get()
                + delivered
                    .map(|record| record.delivered.len())
                    .sum::<usize>(),
        );

        let case = case.general_lookahead();
        let (routed, _) = case.build();
        let compiled = case.compile(&routed);
        // Packets that are put in order are delivered several at one instant.
        if compiled.has_windows() && !compiled.restores_order() {
            let none = || (NoControl, NoControl);
            compare::<true, _, _, _>(&case, &routed, Engine::general_lookahead, none)?;
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    assert!(told.get() > 10_000, "{} deliveries", told.get());
}

/// Oracle: the general engine, on fabrics of every kind that has windows. They have lanes, links of different speed,
/// chosen paths, and ports of a switch with immediate effects on each other.
#[test]
fn general_lookahead_engine_equals_general_engine() {
    let (served, reordered, longer) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let ordered = Cell::new([0; 4]);
    let result = runner(512).run(&cases(), |case| {
        let case = case.general_lookahead();
        let (routed, _) = case.build();
        if !case.compile(&routed).has_windows() {
            // The slowest link takes very many windows for a packet.
            return Ok(());
        }
        served.set(served.get() + 1);
        let switch = &case.config.switch;
        let mut counts = ordered.get();
        for (count, is_drawn) in counts.iter_mut().zip([
            switch.read_limit.is_some(),
            switch.bypass_limit.is_some(),
            switch.queueing == Queueing::Fifo,
            switch.output_buffer.is_some(),
        ]) {
            *count += u32::from(is_drawn);
        }
        ordered.set(counts);
        let (engine, _) =
            compare::<false, _, _, _>(&case, &routed, Engine::general_lookahead, || {
                (NoControl, NoControl)
            })?;
        let late = |host| engine.host_counters(host).reordered_packets;
        let late: u64 = routed.fabric.host_ids().map(late).sum();
        reordered.set(reordered.get() + late);
        if let Some(straight) = case.without_waypoints() {
            let mut script = Script::new(&case.flows, routed.fabric.host_count());
            script.follows = false;
            let fabric = straight.compile(&routed);
            let mut straight = Engine::general(fabric, NoControl, NoControl, script);
            straight.run_until(at(Span::from_ms(40))).unwrap();
            // More cables for each packet.
            let is_longer = engine.packet_hops() * straight.delivered_packets()
                > straight.packet_hops() * engine.delivered_packets();
            longer.set(longer.get() + u32::from(is_longer));
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    assert!(served.get() > 300, "{} cases", served.get());
    // Paths are chosen in some of the drawn cases.
    assert!(reordered.get() > 100, "{} reordered", reordered.get());
    assert!(longer.get() > 50, "{} with detours", longer.get());
    let counts = ordered.get();
    assert!(counts.iter().all(|&count| count > 20), "{counts:?}");
}

/// Oracle: the general engine, with InfiniBand's congestion control.
#[test]
fn general_lookahead_engine_with_congestion_control_equals_general_engine() {
    let becns = Cell::new(0);
    let result = runner(512).run(&cases(), |case| {
        let case = case.general_lookahead();
        let (routed, _) = case.build();
        if !case.compile(&routed).has_windows() {
            return Ok(());
        }
        let (engine, general) =
            compare::<false, _, _, _>(&case, &routed, Engine::general_lookahead, || {
                case.control(&routed)
            })?;
        prop_assert_eq!(&engine.workload().polls, &general.workload().polls);
        let received = |host| engine.host_counters(host).becn_received;
        let received: u64 = routed.fabric.host_ids().map(received).sum();
        becns.set(becns.get() + received);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    assert!(becns.get() > 1000, "{} BECNs", becns.get());
}

/// Oracle: the general engine, with PFC in the place of credits.
#[test]
fn general_lookahead_engine_with_pauses_equals_general_engine() {
    let (frames, polls) = (Cell::new(0), Cell::new(0));
    let result = runner(512).run(&cases(), |case| {
        let case = case.general_lookahead().paused();
        let (routed, _) = case.build();
        if !case.compile(&routed).has_windows() {
            return Ok(());
        }
        let make = Engine::general_lookahead;
        let none = || (NoControl, NoControl);
        let (engine, _) = compare::<false, _, _, _>(&case, &routed, make, none)?;
        let paused = |port| engine.port_counters(port).pause_rcv;
        let paused: u64 = routed.fabric.ports.ids().map(paused).sum();
        frames.set(frames.get() + paused);
        let make = Engine::general_lookahead;
        let control = || case.control(&routed);
        let (engine, general) = compare::<false, _, _, _>(&case, &routed, make, control)?;
        prop_assert_eq!(&engine.workload().polls, &general.workload().polls);
        let of_hosts = engine.workload().polls.iter();
        polls.set(polls.get() + of_hosts.map(Vec::len).sum::<usize>());
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    assert!(frames.get() > 10_000, "{} frames", frames.get());
    assert!(polls.get() > 10_000, "{} polls", polls.get());
}

/// Oracle: the general engine; resumed outputs wait for other conditions than the end of a pause.
#[test]
fn general_lookahead_engine_with_pauses_and_limits_equals_general_engine() {
    let result = runner(96).run(&cases(), |case| {
        let case = case.general_lookahead().paused_and_crowded();
        let (routed, _) = case.build();
        if !case.compile(&routed).has_windows() {
            return Ok(());
        }
        let make = Engine::general_lookahead;
        let none = || (NoControl, NoControl);
        compare::<false, _, _, _>(&case, &routed, make, none)?;
        let make = Engine::general_lookahead;
        let control = || case.control(&routed);
        let (engine, general) = compare::<false, _, _, _>(&case, &routed, make, control)?;
        prop_assert_eq!(&engine.workload().polls, &general.workload().polls);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

/// A buffer that overflows ends the run with the same error.
#[test]
fn general_lookahead_engine_finds_the_loss_that_the_general_engine_finds() {
    let lost = Cell::new(0);
    let result = runner(512).run(&cases(), |case| {
        let case = case.general_lookahead().short_of_headroom();
        let (routed, _) = case.build();
        if !case.compile(&routed).has_windows() {
            return Ok(());
        }
        let (compiled, script) = (
            || case.compile(&routed),
            || case.script(&routed).by_windows::<false>(),
        );
        let mut general = Engine::general(compiled(), NoControl, NoControl, script());
        let mut engine = Engine::general_lookahead(compiled(), NoControl, NoControl, script());
        for &step in &case.steps {
            let ended = general.run_until(Time::from_ps(step));
            prop_assert_eq!(&engine.run_until(Time::from_ps(step)), &ended);
            lost.set(lost.get() + u32::from(ended.is_err()));
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    assert!(lost.get() > 100, "{} losses", lost.get());
}

/// Oracle: the general engine, with schemes that read the fill level of input buffers.
#[test]
fn general_lookahead_engine_with_full_buffers_equals_general_engine() {
    let (marked, starved) = (Cell::new(0), Cell::new(0));
    let result = runner(512).run(&cases(), |case| {
        let case = case.general_lookahead();
        let (routed, _) = case.build();
        if !case.compile(&routed).has_windows() {
            return Ok(());
        }
        let (engine, general) =
            compare::<false, _, _, _>(&case, &routed, Engine::general_lookahead, || {
                case.starving_control(&routed)
            })?;
        prop_assert_eq!(&engine.workload().polls, &general.workload().polls);
        let mut script = Script::new(&case.flows, routed.fabric.host_count());
        script.follows = false;
        let (switch, source) = case.control(&routed);
        let mut free = Engine::general(case.compile(&routed), switch, source, script);
        free.run_until(at(Span::from_ms(40))).unwrap();
        let is_later = free.workload().records != engine.workload().records;
        starved.set(starved.get() + u32::from(is_later));

        let case = case.acknowledged();
        let (engine, general) =
            compare::<false, _, _, _>(&case, &routed, Engine::general_lookahead, || {
                case.control_by_buffers(&routed)
            })?;
        prop_assert_eq!(&engine.workload().polls, &general.workload().polls);
        let received = |host| engine.host_counters(host).fecn_received;
        let received: u64 = routed.fabric.host_ids().map(received).sum();
        marked.set(marked.get() + received);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    assert!(marked.get() > 1000, "{} marks", marked.get());
    assert!(
        starved.get() > 100,
        "{} cases with late credits",
        starved.get()
    );
}

fn cable(speed: Speed) -> LinkKind {
    LinkKind::new(Width::X4, speed, Length::from_mm(1000))
}

/// Each setting that makes a fabric one that is not plain.
#[test]
fn settings_make_fabrics_less_plain() {
    let alike = Routed::star(&[cable(Speed::Ddr); 3]);
    let is_plain = |routed: &Routed, config: &EngineConfig| {
        let fabric = CompiledFabric::new(&routed.fabric, &routed.tables, config);
        fabric.unwrap().is_plain()
    };
    let defaults = ddr_config();
    assert!(is_plain(&alike, &defaults));
    let speeds = [cable(Speed::Sdr), cable(Speed::Ddr)];
    assert!(!is_plain(&Routed::star(&speeds), &defaults));
    assert!(!is_plain(
        &Routed::star(&[cable(Speed::Ddr); 80]),
        &defaults
    ));
    assert!(!is_plain(&alike, &two_lanes(defaults.clone())));
    let with = |change: fn(&mut SwitchParams)| {
        let mut config = defaults.clone();
        change(&mut config.switch);
        config
    };
    for config in [
        with(|switch| switch.read_limit = Some(1)),
        with(|switch| switch.bypass_limit = Some(1)),
        with(|switch| switch.queueing = Queueing::Fifo),
        with(|switch| switch.arbitration = Arbitration::OldestFirst),
    ] {
        assert!(!is_plain(&alike, &config));
    }
}

/// Each setting by which ports would have an immediate effect on each other, within a switch or beyond it.
#[test]
fn immediate_effects_prevent_lookahead() {
    let star = Routed::star(&[cable(Speed::Ddr); 3]);
    let has_lookahead = |config: &EngineConfig| {
        let fabric = CompiledFabric::new(&star.fabric, &star.tables, config);
        let fabric = fabric.unwrap();
        (fabric.has_lookahead(), fabric.has_windows())
    };
    let lookahead = ddr_config();
    assert_eq!(has_lookahead(&lookahead), (true, true));
    assert_eq!(has_lookahead(&two_lanes(lookahead.clone())), (false, true));
    let with = |change: fn(&mut EngineConfig)| {
        let mut config = lookahead.clone();
        change(&mut config);
        config
    };
    for config in [
        with(|config| config.switch.read_limit = Some(1)),
        with(|config| config.switch.queueing = Queueing::Fifo),
        with(|config| {
            config.switch.output_buffer = Some(OutputBuffer {
                crossbar: CrossbarFeed::FullRate,
                size: SwitchParams::LEAST_BUFFER,
                speedup_percent: 100,
            });
        }),
    ] {
        assert_eq!(has_lookahead(&config), (false, true), "{config:?}");
    }
    for config in [
        with(|config| config.switch.latency = Span::ZERO),
        with(|config| config.switch.credit_delay = Span::ZERO),
        with(|config| config.switch.latency = Span::from_us(50)),
    ] {
        assert_eq!(has_lookahead(&config), (false, false), "{config:?}");
    }
}
