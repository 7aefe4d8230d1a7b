//! Congestion trees over time: births, deaths, moves, and what congestion control does to them.

use std::ops::ControlFlow;

use silvan_core::{Span, Time};
use silvan_instances::Fastest;
use silvan_scenario::Scenario;
use silvan_sim::{ColumnData, RunOutput, Table, run};
use silvan_workload::traffic::Traffic;

use crate::on_ddr;

/// A silent tree in a fat tree of 16 hosts. Twelve C nodes send to host 0, whose sink is slower than its link, and two
/// V nodes to all hosts.
const SILENT: &str = r#"
    [fabric]
    generator = "xgft"
    children = [4, 4]
    parents = [1, 4]
    routing = "d-mod-k"
    [host]
    injection-rate = "13.5 Gbit/s"
    sink-rate = "13.6 Gbit/s"
    [traffic.nodes]
    v = ["host-0006", "host-0013"]
    c = [
        "host-0001", "host-0002", "host-0003", "host-0004", "host-0005", "host-0007",
        "host-0008", "host-0009", "host-0010", "host-0011", "host-0012", "host-0014",
    ]
    hotspots = ["host-0000"]
    [control.ib-cc.switch]
    victim-mask = "hosts"
    [control.ib-cc.adapter]
    cct = { shape = "linear", slope = 0.3 }
    [probe.trees]
    interval = "250 us"
    [run]
    duration = "20 ms"
"#;

/// Hosts 0 to 2 share the trunk to hosts 6 to 8. From 1 ms to 2 ms hosts 9 to 11 overload the link of host 6. Each of
/// its four inputs then gets 4 Gbit/s, less than host 6's third of the trunk.
const TRUNK: &str = r#"
    [fabric]
    generator = "chain"
    switches = 2
    hosts-per-switch = 6
    routing = "min-hop"
    [[traffic.flow]]
    from = "host-0000"
    to = "host-0006"
    [[traffic.flow]]
    from = "host-0001"
    to = "host-0007"
    [[traffic.flow]]
    from = "host-0002"
    to = "host-0008"
    [[traffic.incast]]
    to = "host-0006"
    from = ["host-0009", "host-0010", "host-0011"]
    start = "1 ms"
    end = "2 ms"
    [probe.trees]
    interval = "100 us"
    [run]
    duration = "4 ms"
"#;

fn scenario(text: &str, overrides: &[(&str, &str)]) -> Scenario {
    Scenario::from_toml(text, "trees.toml", &on_ddr(overrides)).unwrap()
}

fn output(scenario: &Scenario) -> RunOutput {
    run(&Fastest, scenario, scenario.seed(), &mut |_| {
        ControlFlow::Continue(())
    })
    .unwrap()
}

fn numbers(table: &Table, column: &str) -> Vec<u64> {
    match table.column(column).unwrap() {
        ColumnData::U32(values) => values.iter().map(|&value| value.into()).collect(),
        ColumnData::U64(values) => values.clone(),
        other => panic!("{column} holds {other:?}"),
    }
}

fn last(table: &Table, column: &str) -> u64 {
    *numbers(table, column).last().unwrap()
}

/// Looking is optional, and changes nothing else.
#[test]
fn looking_for_trees_changes_no_other_table() {
    let looked = output(&scenario(SILENT, &[("run.duration", "2 ms")]));
    let plain = SILENT.replace("[probe.trees]\n    interval = \"250 us\"", "");
    let plain = output(&scenario(&plain, &[("run.duration", "2 ms")]));
    assert!(
        plain
            .tables
            .iter()
            .all(|table| !table.name.contains("tree"))
    );
    for table in &plain.tables {
        assert_eq!(looked.table(table.name), Some(table));
    }
    assert_eq!(looked.tables.len(), plain.tables.len() + 5);
    assert_eq!(
        output(&scenario(SILENT, &[("run.duration", "2 ms")])).tables,
        looked.tables
    );
}

#[test]
fn tables_of_trees_agree_with_each_other() {
    let output = output(&scenario(SILENT, &[("run.duration", "2 ms")]));
    let table = |name| output.table(name).unwrap();
    let forest = table("forest");
    assert_eq!(forest.rows(), 8);
    assert_eq!(numbers(forest, "time_ps")[0], 250_000_000);
    let sum = |name, column| numbers(table(name), column).iter().sum::<u64>();
    assert_eq!(sum("forest", "trees"), table("trees").rows() as u64);
    assert_eq!(
        sum("forest", "ports") + sum("forest", "sources"),
        table("tree_ports").rows() as u64
    );
    for column in ["queued_bytes", "contributing_bytes", "victim_bytes"] {
        assert_eq!(sum("forest", column), sum("trees", column), "{column}");
    }
    assert_eq!(
        sum("tree_ports", "queued_bytes"),
        sum("forest", "queued_bytes")
    );
    for column in ["contributing_bytes", "victim_bytes"] {
        assert_eq!(sum("tree_hosts", column), sum("forest", column), "{column}");
    }
    assert_eq!(
        sum("tree_lifetimes", "samples"),
        table("trees").rows() as u64
    );
}

/// Two leaves have a V node each, whose packets for the hotspot's spine wait in the tree's branches. Congestion control
/// dissolves the tree and frees them (gran2012, section V-A).
#[test]
fn congestion_control_dissolves_a_silent_tree() {
    let off = output(&scenario(SILENT, &[]));
    let trees = off.table("trees").unwrap();
    assert_eq!(last(trees, "time_ps"), 20_000_000_000);
    assert_eq!(
        trees.text_column("destination").unwrap().last().unwrap(),
        "host-0000"
    );
    assert_eq!(last(trees, "depth"), 3);
    assert_eq!(last(trees, "ports"), 5);
    // A V node sends to the hotspot too, now and then.
    assert!((12..=14).contains(&last(trees, "contributors")));
    assert_eq!(last(trees, "victims"), 2);

    let on = output(&scenario(SILENT, &[("control.scheme", "ib-cc+table1")]));
    let forest = on.table("forest").unwrap();
    let late = |column| *numbers(forest, column)[40..].iter().max().unwrap();
    assert!(
        numbers(forest, "ports")[0] == 5,
        "it grows before it is pruned"
    );
    assert!(late("ports") <= 1, "no branch is left after 10 ms");
    assert_eq!(late("victims"), 0);
}

/// V nodes alone leave the links at a fifth of their rate.
#[test]
fn light_uniform_traffic_grows_nothing() {
    let alone = [
        ("traffic.nodes.c", "[]"),
        ("traffic.nodes.hotspots", "0"),
        ("probe.trees.interval", "50 us"),
    ];
    let output = output(&scenario(SILENT, &alone));
    assert_eq!(output.table("forest").unwrap().rows(), 400);
    assert_eq!(output.table("trees").unwrap().rows(), 0);
    assert_eq!(output.table("tree_lifetimes").unwrap().rows(), 0);
}

/// Every hotspot of the schedule has its tree, born at once and dead when it has drained. Each tree has moved from the
/// tree before: one lineage.
#[test]
fn a_moving_hotspot_is_one_lineage() {
    let moving = [
        ("traffic.nodes.v", "0.0"),
        ("traffic.nodes.c", "1.0"),
        ("traffic.nodes.hotspots", "1"),
        ("traffic.nodes.hotspot-lifetime", "2 ms"),
        ("probe.trees.interval", "100 us"),
        ("run.duration", "10 ms"),
        // With this seed, no two consecutive hotspots are equal.
        ("run.seed", "3"),
    ];
    let scenario = scenario(SILENT, &moving);
    let output = output(&scenario);
    let lives = output.table("tree_lifetimes").unwrap();
    let traffic = Traffic::new(scenario.traffic(), &scenario.environment(scenario.seed())).unwrap();
    let hotspot = |period: u64| {
        let at = Time::ZERO + Span::from_us(2_000 * period + 1);
        scenario.fabric().host(traffic.hotspots(at)[0]).name.clone()
    };
    let expected: Vec<String> = (0..5).map(hotspot).collect();
    assert!(
        expected.windows(2).all(|pair| pair[0] != pair[1]),
        "{expected:?}"
    );
    assert_eq!(lives.text_column("destination").unwrap(), expected);
    assert_eq!(numbers(lives, "moved_from"), [0, 0, 1, 2, 3]);
    assert_eq!(numbers(lives, "lineage"), [0; 5]);
    assert_eq!(numbers(lives, "died"), [1, 1, 1, 1, 0]);
    let after = |column| -> Vec<u64> {
        let after = (0..).zip(numbers(lives, column));
        after.map(|(tree, at)| at - 2_000_000_000 * tree).collect()
    };
    assert!(after("birth_ps").iter().all(|&at| at <= 200_000_000));
    // The hotspot has gone, but what waits for it in the tree's 19 buffers still has to be taken in.
    let drained = 19 * 66 * 1024 * 8 * 1_000_000 / 13_600;
    let gone = 2_000_000_000..=2_000_000_000 + drained + 100_000_000;
    let died = after("death_ps");
    assert!(died[..4].iter().all(|at| gone.contains(at)), "{died:?}");
}

/// The trunk is a root until the crowd behind it makes it a branch, and again afterwards.
#[test]
fn trees_merge_and_split() {
    let output = output(&scenario(TRUNK, &[]));
    let lives = output.table("tree_lifetimes").unwrap();
    assert_eq!(
        lives.text_column("destination").unwrap(),
        ["", "host-0006", ""]
    );
    assert_eq!(numbers(lives, "split_from"), [0, 1, 1]);
    assert_eq!(numbers(lives, "merged_into"), [1, 1, 2]);
    let roots = numbers(lives, "root_row");
    assert_eq!(roots[0], roots[2]);
    assert_ne!(roots[0], roots[1]);
    // Trees that face no host move from none.
    assert_eq!(numbers(lives, "moved_from"), [0, 1, 2]);
}
