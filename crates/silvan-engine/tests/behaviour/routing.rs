//! Lanes that change along the way keep tori moving; switches that choose share the load.

use proptest::prelude::*;
use silvan_cc::hooks::NoControl;
use silvan_core::{HostId, PortNumber, Span, SwitchId};
use silvan_engine::{BecnCarrier, BuildError, Engine, EngineConfig, EngineError, OnWire};
use silvan_fabric::generators::{Generator, Grid, Xgft};
use silvan_fabric::routing::{
    Alternatives, PathChoice, PathLanes, Routes, computed_d_mod_k, d_mod_k, dimension_order,
    minimal_alternatives,
};
use silvan_fabric::{Fabric, ForwardingTables};

use crate::common::{PlainEngine, Routed, at, cable, ddr_config, room};
use crate::script::{Flow, Script};

fn torus(sizes: &[usize], hosts_per_switch: usize) -> (Fabric, ForwardingTables, PathLanes) {
    let grid = Grid {
        sizes: sizes.to_vec(),
        wraps: true,
        hosts_per_switch,
    };
    let fabric = grid.build(cable("4x DDR 2 m")).unwrap();
    let (tables, lanes) = dimension_order(&fabric, &grid).unwrap();
    (fabric, tables, lanes.unwrap())
}

/// Room for one packet behind each cable, and two lanes.
fn tight() -> EngineConfig {
    let mut config = EngineConfig {
        data_vls: 2,
        ..ddr_config()
    };
    config.switch.buffer = Some(room(1));
    config
}

fn start(
    fabric: &Fabric,
    routes: Routes<'_>,
    config: &EngineConfig,
    flows: &[Flow],
) -> PlainEngine {
    let script = Script::new(flows, fabric.host_count());
    Engine::new(fabric, routes, config, NoControl, NoControl, script).unwrap()
}

fn with_lanes<'a>(tables: &'a ForwardingTables, lanes: &'a PathLanes) -> Routes<'a> {
    Routes {
        lanes: Some(lanes),
        ..tables.into()
    }
}

fn adaptive<'a>(tables: &'a ForwardingTables, alternatives: &'a Alternatives) -> Routes<'a> {
    Routes {
        alternatives: Some(alternatives),
        choice: PathChoice::Adaptive,
        ..tables.into()
    }
}

/// Hosts of each switch of a ring send to the one two switches further on, all at once: every
/// buffer holds a packet that needs the next. Datelines open the cycle.
#[test]
fn a_full_torus_deadlocks_without_datelines_and_moves_with_them() {
    for sizes in [&[5][..], &[6], &[7], &[5, 3], &[3, 6]] {
        let (fabric, tables, lanes) = torus(sizes, 1);
        // The row that is long enough.
        let dimension = sizes.iter().position(|size| *size > 4).unwrap();
        let stride: usize = sizes[..dimension].iter().product();
        let flows: Vec<_> = (0..fabric.host_count())
            .map(|host| {
                let place = host / stride % sizes[dimension];
                let target = (place + 2) % sizes[dimension];
                Flow::saturating(host, host + target * stride - place * stride)
            })
            .collect();

        let mut without = start(&fabric, (&tables).into(), &tight(), &flows);
        match without.run_until(at(Span::from_ms(5))) {
            Err(EngineError::Deadlock(deadlock)) => {
                assert_eq!(deadlock.cycle.len(), sizes[dimension])
            }
            other => panic!("{other:?}"),
        }

        let mut laned = start(&fabric, with_lanes(&tables, &lanes), &tight(), &flows);
        laned.run_until(at(Span::from_ms(5))).unwrap();
        laned.audit().unwrap();
        for record in &laned.workload().records {
            let last = *record.delivered.last().unwrap();
            assert!(laned.now().since(last) < Span::from_us(200), "{last}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Saturated tori of any shape and tight buffers keep moving, in order and without loss.
    #[test]
    fn tori_never_stop(
        sizes in prop::collection::vec(3_usize..6, 1..3),
        targets in prop::collection::vec((0_usize..50, 1_usize..50), 8..60),
        packets in 1_u64..3,
        classes in 1_u8..3,
    ) {
        let (fabric, tables, lanes) = torus(&sizes, 2);
        let hosts = fabric.host_count();
        let flows: Vec<_> = targets
            .iter()
            .enumerate()
            .map(|(index, (source, step))| Flow {
                sl: index as u8 % classes,
                // Equal on each lane: a small packet could take the room that a large one waits for.
                sizes: vec![[2048, 700][index % usize::from(classes)]],
                ..Flow::saturating(source % hosts, (source % hosts + 1 + step % (hosts - 1)) % hosts)
            })
            .collect();
        let mut config = tight();
        config.data_vls = 2 * classes;
        config.sl_to_vl = std::array::from_fn(|sl| 2 * (sl as u8 % classes));
        config.switch.buffer = Some(room(packets));
        let mut engine = start(&fabric, with_lanes(&tables, &lanes), &config, &flows);
        for step in 1..=4 {
            engine.run_until(at(Span::from_us(700) * step)).unwrap();
            engine.audit().unwrap();
        }
        // Turns among the flows of a host are the script's; each of its lanes has to move.
        let records = &engine.workload().records;
        for flow in &flows {
            let peers = flows.iter().zip(records);
            let peers = peers.filter(|(peer, _)| (peer.source, peer.sl) == (flow.source, flow.sl));
            let last = peers.filter_map(|(_, record)| record.delivered.last()).max();
            prop_assert!(last.is_some_and(|last| engine.now().since(*last) < Span::from_us(700)));
        }
    }
}

#[test]
fn classes_need_lanes_of_their_own() {
    let (fabric, tables, lanes) = torus(&[3], 1);
    let build = |data_vls, first: u8| {
        let mut config = tight();
        config.data_vls = data_vls;
        config.sl_to_vl = [first; 16];
        let script = Script::new(&[], fabric.host_count());
        let routes = with_lanes(&tables, &lanes);
        Engine::new(&fabric, routes, &config, NoControl, NoControl, script).map(|_| ())
    };
    assert_eq!(build(2, 0), Ok(()));
    assert_eq!(build(4, 2), Ok(()));
    for (data_vls, first) in [(1, 0), (2, 1), (3, 2)] {
        let error = build(data_vls, first).unwrap_err();
        assert!(
            matches!(
                error,
                BuildError::PathLanes {
                    sl: 0,
                    lanes: 2,
                    ..
                }
            ),
            "{error}"
        );
    }
}

/// Leaves with four hosts each under two spines.
fn two_spines(leaves: usize, trunk: &str) -> Routed {
    let tree = Xgft {
        children: vec![4, leaves],
        parents: vec![1, 2],
        links: Vec::new(),
    };
    let fabric = tree.build(cable(trunk)).unwrap();
    let tables = d_mod_k(&fabric).unwrap();
    Routed { fabric, tables }
}

/// Packets that a leaf has sent to each of the spines.
fn sent_up(routed: &Routed, engine: &PlainEngine) -> [u64; 2] {
    let leaf = routed.fabric.switch(SwitchId::new(0));
    [5, 6].map(|number| {
        let port = leaf.port(PortNumber::new(number)).unwrap();
        engine.port_counters(port).xmit_pkts
    })
}

/// d-mod-k reaches hosts 4 and 6 over spine 0, so two flows share one cable. A leaf that chooses gives each flow a
/// separate cable, and both are twice as fast.
#[test]
fn choosing_doubles_an_unlucky_pair() {
    let routed = two_spines(2, "4x DDR 2 m");
    let alternatives = minimal_alternatives(&routed.fabric).unwrap();
    let flows = [Flow::saturating(0, 4), Flow::saturating(1, 6)];
    let config = ddr_config();
    let delivered = |routes| {
        let mut engine = start(&routed.fabric, routes, &config, &flows);
        engine.run_until(at(Span::from_ms(4))).unwrap();
        engine.audit().unwrap();
        let records = &engine.workload().records;
        let window = |record: &crate::script::Record| {
            record.delivered_in(at(Span::from_ms(1)), at(Span::from_ms(4)))
        };
        (
            [window(&records[0]), window(&records[1])],
            sent_up(&routed, &engine),
        )
    };
    let (fixed, fixed_up) = delivered((&routed.tables).into());
    let (chosen, chosen_up) = delivered(adaptive(&routed.tables, &alternatives));
    assert_eq!(fixed_up[1], 0);
    assert!(chosen_up[0].abs_diff(chosen_up[1]) <= 2, "{chosen_up:?}");
    for (fixed, chosen) in fixed.into_iter().zip(chosen) {
        assert!((2 * fixed).abs_diff(chosen) <= 2, "{fixed} {chosen}");
    }
}

/// All hosts of a leaf send to hosts below the same spine. Four flows over two cables instead of
/// one are twice as fast, and no cable carries more than two packets above its share.
#[test]
fn an_adversarial_permutation_is_spread() {
    let routed = two_spines(5, "4x DDR 2 m");
    let alternatives = minimal_alternatives(&routed.fabric).unwrap();
    let flows: Vec<_> = (0..4)
        .map(|host| Flow::saturating(host, 4 * (host + 1)))
        .collect();
    let config = ddr_config();
    let delivered = |routes| {
        let mut engine = start(&routed.fabric, routes, &config, &flows);
        engine.run_until(at(Span::from_ms(4))).unwrap();
        engine.audit().unwrap();
        (engine.delivered_packets(), sent_up(&routed, &engine))
    };
    let (fixed, fixed_up) = delivered((&routed.tables).into());
    let (chosen, chosen_up) = delivered(adaptive(&routed.tables, &alternatives));
    assert_eq!(fixed_up[1], 0);
    assert!(chosen_up[0].abs_diff(chosen_up[1]) <= 2, "{chosen_up:?}");
    let ratio = chosen as f64 / fixed as f64;
    assert!((ratio - 2.0).abs() < 0.01, "{ratio}");
}

/// Without alternatives the run is equal to the picosecond.
#[test]
fn without_alternatives_nothing_changes() {
    let routed = Routed::row(
        &[&[cable("4x DDR 2 m"); 3], &[cable("1x SDR 5 m"); 2]],
        &[cable("4x QDR 2 m")],
    );
    let alternatives = minimal_alternatives(&routed.fabric).unwrap();
    let flows: Vec<_> = (0..5)
        .map(|host| Flow::saturating(host, (host + 2) % 5))
        .collect();
    let run = |routes| {
        let mut engine = start(&routed.fabric, routes, &ddr_config(), &flows);
        engine.run_until(at(Span::from_ms(1))).unwrap();
        (engine.events(), engine.workload().records.clone())
    };
    assert_eq!(
        run((&routed.tables).into()),
        run(adaptive(&routed.tables, &alternatives))
    );
}

#[test]
fn settings_incompatible_with_adaptive_routing_are_refused() {
    let (fabric, tables, lanes) = torus(&[3], 1);
    let alternatives = minimal_alternatives(&fabric).unwrap();
    let build = |lanes, config: &EngineConfig| {
        let routes = Routes {
            lanes,
            alternatives: Some(&alternatives),
            choice: PathChoice::Adaptive,
            ..(&tables).into()
        };
        let script = Script::new(&[], fabric.host_count());
        Engine::new(&fabric, routes, config, NoControl, NoControl, script).map(|_| ())
    };
    assert_eq!(
        build(Some(&lanes), &tight()),
        Err(BuildError::LanesAndAlternatives)
    );
    let mut config = tight();
    config.feedback.carrier = Some(BecnCarrier::AckPerMessage);
    assert_eq!(build(None, &config), Err(BuildError::MessagesOutOfOrder));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Each packet is delivered at the same picosecond whether outputs are computed or read from tables, also where a route
    /// and a port change during the run. With an odd number of ports that three does not divide, engines that are tested compute.
    #[test]
    fn computed_routes_deliver_as_tables_do(
        children in prop::collection::vec(1_usize..4, 2..4),
        parents in prop::collection::vec(1_usize..4, 2),
        targets in prop::collection::vec((0_usize..50, 1_usize..50), 4..40),
        changes in any::<bool>(),
    ) {
        let mut parents = parents;
        parents.insert(0, 1);
        parents.truncate(children.len());
        let xgft = Xgft { children, parents, links: Vec::new() };
        let fabric = xgft.build(cable("4x DDR 2 m")).unwrap();
        let hosts = fabric.host_count();
        prop_assume!(hosts > 1);
        let tables = d_mod_k(&fabric).unwrap();
        let computed = ForwardingTables::computed(&fabric, computed_d_mod_k(&fabric).unwrap());
        let flows: Vec<_> = targets
            .iter()
            .map(|(source, step)| {
                let source = source % hosts;
                Flow::saturating(source, (source + 1 + step % (hosts - 1)) % hosts)
            })
            .collect();
        let config = ddr_config();
        let run = |tables: &ForwardingTables| {
            let mut engine = start(&fabric, tables.into(), &config, &flows);
            engine.discard_unroutable(true);
            engine.run_until(at(Span::from_us(40))).unwrap();
            if changes {
                let (leaf, port) = fabric.host_attachment(HostId::new(0));
                engine.set_route(fabric.node_of_switch(leaf), HostId::new(hosts - 1), None);
                engine.run_until(at(Span::from_us(60))).unwrap();
                engine.close_port(port, OnWire::Lost);
                engine.run_until(at(Span::from_us(80))).unwrap();
                engine.open_port(port);
            }
            engine.run_until(at(Span::from_us(150))).unwrap();
            engine.audit().unwrap();
            let records = engine.workload().records.iter();
            let delivered = records.map(|record| record.delivered.clone());
            (delivered.collect::<Vec<_>>(), engine.discarded_bytes())
        };
        prop_assert_eq!(run(&computed), run(&tables));
    }
}
