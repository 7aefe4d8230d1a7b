//! A fabric in parts, on several threads, behaves as in one engine that processes event after event.

use std::cell::Cell;

use proptest::prelude::*;
use silvan_cc::hooks::{NoControl, PerHost, PerPortVl};
use silvan_core::{Bytes, HostId, Span, SwitchId, Time, Vl};
use silvan_engine::{CompiledFabric, Engine, EngineError, EngineVariant, Partitioned};

use crate::common::{Routed, at, ddr_config, room};
use crate::deadlock::one_way_ring;
use crate::lossless::case::{Case, cases};
use crate::lossless::runner;
use crate::script::{Flow, Script};

/// Threads, and parts for each.
const DIVISIONS: [(usize, usize); 12] = [
    (1, 1),
    (1, 2),
    (1, 7),
    (2, 1),
    (2, 2),
    (2, 7),
    (3, 1),
    (3, 2),
    (3, 7),
    (7, 1),
    (7, 2),
    (7, 7),
];

/// Makes an engine with so many threads and parts for each.
type Make<S, C, F, const TOLD: bool> =
    fn(CompiledFabric, S, C, Script<TOLD>, (usize, usize)) -> Partitioned<S, C, Script<TOLD>, F>;

/// Runs both engines step by step; they must agree after each. Returns the number of parts.
fn compare<const TOLD: bool, S: PerPortVl, C: PerHost, F: EngineVariant>(
    (case, routed): (&Case, &Routed),
    make: Make<S, C, F, TOLD>,
    control: impl Fn() -> (S, C),
    division: (usize, usize),
) -> Result<usize, TestCaseError> {
    let compiled = || case.compile(routed);
    if !compiled().has_windows() || !compiled().is_divisible() {
        return Ok(0);
    }
    let script = || case.script(routed).by_windows::<TOLD>();
    let (switch, source) = control();
    let mut ordered = Engine::general(compiled(), switch, source, script());
    let (switch, source) = control();
    let mut divided = make(compiled(), switch, source, script(), division);
    divided.start_all_threads();
    let last = Span::from_ms(40).as_ps();
    for end in case.steps.iter().copied().chain([last]) {
        ordered.run_until(Time::from_ps(end)).unwrap();
        divided.run_until(Time::from_ps(end)).unwrap();
        prop_assert_eq!(divided.audit(), Ok(()));
        prop_assert_eq!(divided.packet_hops(), ordered.packet_hops());
        prop_assert_eq!(divided.delivered_packets(), ordered.delivered_packets());
        for (flow, record) in ordered.workload().records.iter().enumerate() {
            let source = HostId::new(case.flows[flow].source);
            let own = divided.workload_of(source);
            prop_assert_eq!(&own.records[flow], record);
            prop_assert_eq!(&own.arrived[flow], &ordered.workload().arrived[flow]);
            let class = u16::try_from(flow).unwrap();
            let delivered = divided.class(class).map(|class| class.delivered_bytes);
            let expected = ordered.class(class).map(|class| class.delivered_bytes);
            prop_assert_eq!(delivered, expected);
        }
        for host in routed.fabric.host_ids() {
            prop_assert_eq!(divided.host_counters(host), ordered.host_counters(host));
            if S::ACTIVE {
                let polls = &divided.workload_of(host).polls[host.index()];
                prop_assert_eq!(polls, &ordered.workload().polls[host.index()]);
            }
        }
        for port in routed.fabric.ports.ids() {
            prop_assert_eq!(divided.port_counters(port), ordered.port_counters(port));
            for vl in Vl::all().take(usize::from(case.config.data_vls)) {
                prop_assert_eq!(divided.credits(port, vl), ordered.credits(port, vl));
                prop_assert_eq!(divided.queued(port, vl), ordered.queued(port, vl));
                let free = ordered.free_blocks(port, vl);
                prop_assert_eq!(divided.free_blocks(port, vl), free);
            }
        }
        let threshold = Bytes::from_bytes(2000);
        prop_assert_eq!(divided.forest(threshold), ordered.forest(threshold));
    }
    prop_assert!(divided.packet_hops() > 0);
    Ok(divided.parts())
}

/// Runs the cases, each with two of the divisions in turn.
fn with_divisions(
    restrict: fn(Case) -> Case,
    mut each: impl FnMut(&Case, &Routed, (usize, usize)) -> Result<usize, TestCaseError>,
) {
    let (turn, divided) = (Cell::new(0), Cell::new([0; 3]));
    let each = std::cell::RefCell::new(&mut each);
    let result = runner(64).run(&cases(), |case| {
        let case = restrict(case);
        let (routed, _) = case.build();
        for _ in 0..2 {
            let division = DIVISIONS[turn.get() % DIVISIONS.len()];
            turn.set(turn.get() + 1);
            let parts = (each.borrow_mut())(&case, &routed, division)?;
            let mut counts = divided.get();
            counts[parts.min(3).saturating_sub(1)] += 1;
            divided.set(counts);
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    // The cases are what they are meant to be.
    let [_, two, more] = divided.get();
    assert!(two > 10 && more > 10, "{:?}", divided.get());
}

/// Oracle: the engine that processes event after event, at each step of the run.
#[test]
fn partitioned_engine_equals_general_engine() {
    with_divisions(Case::lookahead, |case, routed, division| {
        let none = || (NoControl, NoControl);
        compare::<false, _, _, _>((case, routed), Partitioned::new, none, division)
    });
}

/// Oracle: the general engine, with InfiniBand's congestion control.
#[test]
fn partitioned_engine_with_congestion_control_equals_general_engine() {
    with_divisions(Case::lookahead, |case, routed, division| {
        let control = || case.control(routed);
        compare::<false, _, _, _>((case, routed), Partitioned::new, control, division)
    });
}

/// Oracle: the general engine, with notifications of deliveries at the sending hosts.
#[test]
fn partitioned_engine_that_tells_of_deliveries_equals_general_engine() {
    with_divisions(Case::lookahead, |case, routed, division| {
        let control = || case.control(routed);
        compare::<true, _, _, _>((case, routed), Partitioned::new, control, division)
    });
    with_divisions(Case::general_lookahead, |case, routed, division| {
        let none = || (NoControl, NoControl);
        let make = Partitioned::general_lookahead;
        compare::<true, _, _, _>((case, routed), make, none, division)
    });
}

/// Oracle: the general engine, with lanes, links of different speed, and chosen paths.
#[test]
fn partitioned_engine_of_any_kind_equals_general_engine() {
    with_divisions(Case::general_lookahead, |case, routed, division| {
        let none = || (NoControl, NoControl);
        compare::<false, _, _, _>(
            (case, routed),
            Partitioned::general_lookahead,
            none,
            division,
        )
    });
    with_divisions(Case::general_lookahead, |case, routed, division| {
        let control = || case.control(routed);
        compare::<false, _, _, _>(
            (case, routed),
            Partitioned::general_lookahead,
            control,
            division,
        )
    });
}

/// Oracle: the general engine, with bad packets that are discarded or replayed.
#[test]
fn partitioned_engine_with_bit_errors_equals_general_engine() {
    let plain = |case: Case| case.lookahead().with_bit_errors();
    with_divisions(plain, |case, routed, division| {
        let none = || (NoControl, NoControl);
        compare::<false, _, _, _>((case, routed), Partitioned::new, none, division)
    });
    let any = |case: Case| case.general_lookahead().with_bit_errors();
    with_divisions(any, |case, routed, division| {
        let control = || case.control(routed);
        let make = Partitioned::general_lookahead;
        compare::<true, _, _, _>((case, routed), make, control, division)
    });
}

/// Oracle: the general engine, with PFC in the place of credits.
#[test]
fn partitioned_engine_with_pauses_equals_general_engine() {
    let paused = |case: Case| case.general_lookahead().paused();
    with_divisions(paused, |case, routed, division| {
        let none = || (NoControl, NoControl);
        let make = Partitioned::general_lookahead;
        compare::<false, _, _, _>((case, routed), make, none, division)
    });
    with_divisions(paused, |case, routed, division| {
        let control = || case.control(routed);
        let make = Partitioned::general_lookahead;
        compare::<false, _, _, _>((case, routed), make, control, division)
    });
}

/// Oracle: the general engine; resumed outputs wait for other conditions than the end of a pause.
#[test]
fn partitioned_engine_with_pauses_and_limits_equals_general_engine() {
    let crowded = |case: Case| case.general_lookahead().paused_and_crowded();
    with_divisions(crowded, |case, routed, division| {
        let control = || case.control(routed);
        let make = Partitioned::general_lookahead;
        compare::<false, _, _, _>((case, routed), make, control, division)
    });
}

/// Buffers of several parts may overflow in one window: the first loss ends the run.
#[test]
fn partitioned_engine_finds_the_loss_that_the_general_engine_finds() {
    let lost = Cell::new(0);
    let short = |case: Case| case.general_lookahead().short_of_headroom();
    with_divisions(short, |case, routed, division| {
        let compiled = || case.compile(routed);
        if !compiled().has_windows() || !compiled().is_divisible() {
            return Ok(0);
        }
        let script = || case.script(routed).by_windows::<false>();
        let mut ordered = Engine::general(compiled(), NoControl, NoControl, script());
        let (fabric, script) = (compiled(), script());
        let mut divided =
            Partitioned::general_lookahead(fabric, NoControl, NoControl, script, division);
        for &step in &case.steps {
            let ended = ordered.run_until(Time::from_ps(step));
            prop_assert_eq!(&divided.run_until(Time::from_ps(step)), &ended);
            lost.set(lost.get() + u32::from(ended.is_err()));
        }
        Ok(divided.parts())
    });
    assert!(lost.get() > 20, "{} losses", lost.get());
}

/// Oracle: the general engine, with schemes that read the fill level of input buffers.
#[test]
fn partitioned_engine_with_full_buffers_equals_general_engine() {
    with_divisions(Case::general_lookahead, |case, routed, division| {
        let control = || case.starving_control(routed);
        compare::<false, _, _, _>(
            (case, routed),
            Partitioned::general_lookahead,
            control,
            division,
        )
    });
    let acknowledged = |case: Case| case.general_lookahead().acknowledged();
    with_divisions(acknowledged, |case, routed, division| {
        let control = || case.control_by_buffers(routed);
        compare::<false, _, _, _>(
            (case, routed),
            Partitioned::general_lookahead,
            control,
            division,
        )
    });
}

/// A credit loop whose buffers are in different parts.
#[test]
fn partitioned_engine_finds_the_deadlock_of_a_ring() {
    let routed = one_way_ring(7, 1);
    let flows: Vec<_> = (0..7)
        .map(|host| Flow::saturating(host, (host + 3) % 7))
        .collect();
    let mut config = ddr_config();
    config.switch.buffer = Some(room(1));
    let compiled = || CompiledFabric::new(&routed.fabric, &routed.tables, &config).unwrap();
    let script = || {
        let mut script = Script::new(&flows, 7);
        script.follows = false;
        script
    };
    let end = at(Span::from_ms(5));
    let mut ordered = Engine::general(compiled(), NoControl, NoControl, script());
    let expected = ordered.run_until(end).unwrap_err();
    assert!(matches!(&expected, EngineError::Deadlock(found) if found.stuck == 7));
    for division in DIVISIONS {
        let mut divided = Partitioned::new(compiled(), NoControl, NoControl, script(), division);
        assert_eq!(divided.run_until(end), Err(expected.clone()));
        assert_eq!(divided.run_until(end), Err(expected.clone()));
        assert_eq!(divided.audit(), Ok(()));
    }
}

/// Hosts at all switches send to one that two switches have no route to.
#[test]
fn the_earliest_error_ends_a_partitioned_run() {
    let mut routed = one_way_ring(7, 1);
    for switch in [2, 5] {
        let switch = SwitchId::new(switch);
        let lid = routed.fabric.host(HostId::new(0)).lid;
        routed.tables.set(switch, lid, None);
    }
    let flows: Vec<_> = (1..7_usize)
        .map(|host| Flow {
            start: at(Span::from_ns(1000 - 7 * host as u64)),
            ..Flow::saturating(host, 0)
        })
        .collect();
    let config = ddr_config();
    let compiled = || CompiledFabric::new(&routed.fabric, &routed.tables, &config).unwrap();
    let script = || {
        let mut script = Script::new(&flows, 7);
        script.follows = false;
        script
    };
    let end = at(Span::from_ms(1));
    let mut ordered = Engine::general(compiled(), NoControl, NoControl, script());
    let expected = ordered.run_until(end).unwrap_err();
    assert!(matches!(expected, EngineError::NoRoute { .. }));
    for division in DIVISIONS {
        let mut divided = Partitioned::new(compiled(), NoControl, NoControl, script(), division);
        assert_eq!(
            divided.run_until(end),
            Err(expected.clone()),
            "{division:?}"
        );
    }
}
