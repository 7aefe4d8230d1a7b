//! Service levels of paths that a subnet manager reconfigures.

use silvan_cc::hooks::NoControl;
use silvan_core::{HostId, PortNumber, Sl, Span, SwitchId};
use silvan_engine::{Engine, EngineConfig, EngineError};
use silvan_fabric::generators::Grid;
use silvan_fabric::routing::{PathLanes, PathServiceLevels, Routes, SlToVlTables, dimension_order};
use silvan_fabric::{Fabric, ForwardingTables};

use crate::common::{PlainEngine, at, cable, ddr_config, room};
use crate::script::{Flow, Script};

const SWITCHES: usize = 5;
const HOSTS: usize = 2;

/// A ring with its shortest routes.
fn ring() -> (Fabric, ForwardingTables) {
    let grid = Grid {
        sizes: vec![SWITCHES],
        wraps: true,
        hosts_per_switch: HOSTS,
    };
    let fabric = grid.build(cable("4x DDR 2 m")).unwrap();
    let (tables, _) = dimension_order(&fabric, &grid).unwrap();
    (fabric, tables)
}

/// The host two switches further on.
fn target(host: usize) -> usize {
    (host + 2 * HOSTS) % (SWITCHES * HOSTS)
}

/// All send to the one two switches further on: every buffer holds a packet that needs the next.
fn start(fabric: &Fabric, routes: Routes<'_>, sl_to_vl: [u8; 16]) -> PlainEngine {
    let mut config = EngineConfig {
        data_vls: 2,
        sl_to_vl,
        ..ddr_config()
    };
    config.switch.buffer = Some(room(1));
    let flows: Vec<Flow> = (0..fabric.host_count())
        .map(|host| Flow::saturating(host, target(host)))
        .collect();
    let script = Script::new(&flows, fabric.host_count());
    Engine::new(fabric, routes, &config, NoControl, NoControl, script).unwrap()
}

/// Level by lane.
fn alternating() -> [u8; 16] {
    std::array::from_fn(|sl| sl as u8 % 2)
}

/// The paths of the last switch on a level of their own open the cycle: on each lane some cable is
/// not waited for any more.
fn level_of(from: SwitchId) -> u8 {
    u8::from(from.index() == SWITCHES - 1)
}

fn by_level(fabric: &Fabric) -> PathLanes {
    PathLanes::by_level(
        fabric,
        PathServiceLevels::by_switch(fabric, |from, _| level_of(from)),
    )
}

fn set_levels(engine: &mut PlainEngine, fabric: &Fabric) {
    for source in fabric.host_ids() {
        let level = Sl::try_new(level_of(fabric.host_attachment(source).0)).unwrap();
        for destination in fabric.host_ids().filter(|host| *host != source) {
            engine.set_path_sl(source, destination, level);
        }
    }
}

/// Oracle: the lanes that are part of the routes from the start.
#[test]
fn reconfigured_levels_equal_levels_of_the_routes() {
    let (fabric, tables) = ring();
    let mut plain = start(&fabric, (&tables).into(), alternating());
    match plain.run_until(at(Span::from_ms(5))) {
        Err(EngineError::Deadlock(deadlock)) => assert_eq!(deadlock.cycle.len(), SWITCHES),
        other => panic!("{other:?}"),
    }

    let mut set = start(&fabric, (&tables).into(), alternating());
    set_levels(&mut set, &fabric);
    set.run_until(at(Span::from_ms(5))).unwrap();
    set.audit().unwrap();

    let lanes = by_level(&fabric);
    let routes = Routes {
        lanes: Some(&lanes),
        ..(&tables).into()
    };
    let mut routed = start(&fabric, routes, [0; 16]);
    routed.run_until(at(Span::from_ms(5))).unwrap();
    assert_eq!(set.events(), routed.events());
    for port in fabric.ports.ids() {
        assert_eq!(set.port_counters(port), routed.port_counters(port));
    }
    for (a, b) in set
        .workload()
        .records
        .iter()
        .zip(&routed.workload().records)
    {
        assert_eq!(a.delivered, b.delivered);
        assert!(set.now().since(*a.delivered.last().unwrap()) < Span::from_us(200));
    }
}

/// Oracle: tables and levels set by runtime reconfiguration. Paths from the hosts of the last
/// switch are on levels 3 and 5, which the switches map to lane 1 upwards and to lane 0 elsewhere.
/// Hosts send on lane 1.
#[test]
fn reconfigured_tables_equal_tables_of_the_routes() {
    let (fabric, tables) = ring();
    let level = |source: HostId| {
        let last = fabric.host_attachment(source).0.index() == SWITCHES - 1;
        if last { [3, 5][source.index() % 2] } else { 0 }
    };
    let on_lane_1: [u8; 16] = std::array::from_fn(|sl| u8::from(sl == 3 || sl == 5));
    let mut sl_to_vl = SlToVlTables::default();
    let mut set = start(&fabric, (&tables).into(), [0; 16]);
    for switch in fabric.switch_ids() {
        let numbers = || {
            fabric
                .switch(switch)
                .ports()
                .map(|port| fabric.ports[port].number)
        };
        for (input, output) in numbers().flat_map(|a| numbers().map(move |b| (a, b))) {
            // The last port of the switch leads upwards.
            let up = numbers().next_back() == Some(output);
            let vls = if up { on_lane_1 } else { [0; 16] };
            sl_to_vl.set_switch(switch, input, output, vls);
            set.set_sl_to_vl(fabric.node_of_switch(switch), input, output, &vls);
        }
    }
    for source in fabric.host_ids() {
        set.set_host_sl_to_vl(source, &[1; 16]);
        sl_to_vl.set_host(source, [1; 16]);
        for destination in fabric.host_ids().filter(|host| *host != source) {
            let level = Sl::try_new(level(source)).unwrap();
            set.set_path_sl(source, destination, level);
        }
    }
    let levels = PathServiceLevels::by_host(&fabric, |source, _| level(source));
    let lanes = PathLanes::by_tables(&fabric, levels, &sl_to_vl, &[0; 16], 2, []);
    let routes = Routes {
        lanes: Some(&lanes),
        ..(&tables).into()
    };
    let mut routed = start(&fabric, routes, [0; 16]);
    for engine in [&mut set, &mut routed] {
        engine.run_until(at(Span::from_us(50))).unwrap();
        engine.audit().unwrap();
    }
    assert_eq!(set.events(), routed.events());
    for port in fabric.ports.ids() {
        assert_eq!(set.port_counters(port), routed.port_counters(port));
    }
    for host in fabric.host_ids() {
        assert_eq!(routed.host_sl_to_vl(host), [1; 16]);
    }
    for switch in fabric
        .nodes
        .ids()
        .filter(|node| fabric.nodes[*node].as_switch().is_some())
    {
        for (input, output) in
            [(1, 4), (4, 1), (3, 4)].map(|(a, b)| (PortNumber::new(a), PortNumber::new(b)))
        {
            assert_eq!(
                routed.sl_to_vl(switch, input, output),
                set.sl_to_vl(switch, input, output)
            );
        }
    }
}

/// Packets under way keep their level, and one host's paths are not another's.
#[test]
fn levels_change_while_packets_move() {
    let (fabric, tables) = ring();
    let lanes = by_level(&fabric);
    let routes = Routes {
        lanes: Some(&lanes),
        ..(&tables).into()
    };
    let mut engine = start(&fabric, routes, [0; 16]);
    let [first, second] = [0, 1].map(HostId::new);
    let away = HostId::new(target(0));
    let level = |level| Sl::try_new(level).unwrap();
    for step in 1..=20 {
        engine.run_until(at(Span::from_us(100) * step)).unwrap();
        engine.audit().unwrap();
        engine.set_path_sl(first, away, level(step as u8 % 2));
        assert_eq!(engine.path_sl(first, away), level(step as u8 % 2));
        assert_eq!(engine.path_sl(second, away), level(0));
    }
    assert_eq!(engine.path_sl(HostId::new(9), away), level(1));
    let record = &engine.workload().records[0];
    assert!(engine.now().since(*record.delivered.last().unwrap()) < Span::from_us(200));
}
