//! Congestion trees: where they are known by hand, and against a second implementation.

mod brute;

use std::cell::Cell;

use proptest::prelude::*;
use silvan_core::{Bytes, HostId, PortId, Span, Time};
use silvan_engine::{Forest, HostShare, Member, Queueing, Role, Tree};
use silvan_fabric::generators::Generator;
use silvan_fabric::{generators, routing};

use crate::common::{PlainEngine, Routed, WIRE, at, cable, ddr_config, vl};
use crate::lossless::{case::cases, runner};
use crate::script::Flow;

const RUN: Span = Span::from_us(600);
const FAST: &str = "4x DDR 2 m";
const SLOW: &str = "4x SDR 2 m";

/// An input buffer of the default configuration, and half of it: a root fed by a single buffer cannot have more waiting
/// bytes than it holds.
fn buffer() -> Bytes {
    ddr_config().switch.buffer.unwrap()
}

fn threshold() -> Bytes {
    Bytes::from_bytes(buffer().as_u64() / 2)
}

fn forest(routed: &Routed, flows: &[Flow]) -> Forest {
    let mut engine = routed.engine(&ddr_config(), flows);
    engine.run_until(at(RUN)).unwrap();
    engine.forest(threshold())
}

fn only_tree(forest: &Forest) -> &Tree {
    assert_eq!(forest.trees.len(), 1, "{forest:?}");
    &forest.trees[0]
}

/// Port, role, depth and parent of every member.
fn shape(tree: &Tree) -> Vec<(PortId, Role, u32, Option<PortId>)> {
    let shape = |m: &Member| (m.port, m.role, m.depth, m.parent);
    tree.members.iter().map(shape).collect()
}

fn hosts(tree: &Tree, of: fn(&HostShare) -> Bytes) -> Vec<usize> {
    let shares = tree.shares.iter().filter(|share| !of(share).is_zero());
    shares.map(|share| share.host.index()).collect()
}

/// The root is all there is in the fabric; the tree has grown back to every sender.
#[test]
fn an_incast_at_one_switch_is_a_root_and_its_sources() {
    let routed = Routed::star(&[cable(FAST); 5]);
    let flows: Vec<_> = (0..4).map(|host| Flow::saturating(host, 4)).collect();
    let forest = forest(&routed, &flows);
    let tree = only_tree(&forest);
    let root = routed.port_to(4);
    let uplink = |host| routed.fabric.host_port(HostId::new(host));
    let mut expected = vec![(root, Role::Root, 0, None)];
    expected.extend((0..4).map(|host| (uplink(host), Role::Source, 1, Some(root))));
    assert_eq!(shape(tree), expected);
    assert_eq!(tree.destination, Some(HostId::new(4)));
    assert_eq!((tree.ports(), tree.sources(), tree.depth()), (1, 4, 1));
    assert_eq!(hosts(tree, |share| share.contributing), [0, 1, 2, 3]);
    assert_eq!((tree.contributing_flows, tree.victim_flows), (4, 0));
    // The buffers are full but for the packets that are just being moved.
    let full = 4 * (buffer().as_u64() / 2112) * WIRE;
    let queued = tree.queued().as_u64();
    assert!(
        queued <= full && full - queued <= 8 * WIRE,
        "{queued} of {full}"
    );
    assert_eq!(forest.waiting, tree.queued());
}

/// Depth counts the switches back from the root, and the hosts are one further.
#[test]
fn a_chain_is_a_trunk() {
    let pair = [cable(FAST); 2];
    let routed = Routed::row(&[&pair, &pair, &pair], &[cable(FAST); 2]);
    let flows: Vec<_> = [0, 2, 4].map(|host| Flow::saturating(host, 5)).to_vec();
    let forest = forest(&routed, &flows);
    let tree = only_tree(&forest);
    let uplink = |host| routed.fabric.host_port(HostId::new(host));
    let root = routed.port_to(5);
    let (near, far) = (routed.port("S1", 4), routed.port("S0", 4));
    assert_eq!(
        shape(tree),
        [
            (root, Role::Root, 0, None),
            (near, Role::Branch, 1, Some(root)),
            (uplink(4), Role::Source, 1, Some(root)),
            (far, Role::Branch, 2, Some(near)),
            (uplink(2), Role::Source, 2, Some(near)),
            (uplink(0), Role::Source, 3, Some(far)),
        ]
    );
}

/// Hosts 0 and 1 fill the buffers on the path to host 3, whose cable is slow. Host 2 shares the trunk with them on its
/// path to the idle host 4.
#[test]
fn a_victim_is_held_in_a_branch() {
    let routed = Routed::row(
        &[&[cable(FAST); 3], &[cable(SLOW), cable(FAST)]],
        &[cable(FAST)],
    );
    let flows = [(0, 3), (1, 3), (2, 4)].map(|(from, to)| Flow::saturating(from, to));
    let forest = forest(&routed, &flows);
    let tree = only_tree(&forest);
    assert_eq!(tree.root, routed.port_to(3));
    assert_eq!(tree.destination, Some(HostId::new(3)));
    assert_eq!((tree.ports(), tree.sources(), tree.depth()), (2, 3, 2));
    assert_eq!(hosts(tree, |share| share.contributing), [0, 1]);
    assert_eq!(hosts(tree, |share| share.victim), [2]);
    assert_eq!((tree.contributing_flows, tree.victim_flows), (2, 1));
}

/// FIFO input buffers: packets for host 4 wait in the second switch, too, behind packets for host 3. They are victims
/// of the same root.
#[test]
fn packets_behind_others_in_a_fifo_are_victims_of_their_root() {
    let routed = Routed::row(
        &[&[cable(FAST); 3], &[cable(SLOW), cable("4x EDR 2 m")]],
        &[cable(FAST)],
    );
    let flows = [(0, 3), (1, 3), (2, 4)].map(|(from, to)| Flow::saturating(from, to));
    let mut config = ddr_config();
    config.switch.queueing = Queueing::Fifo;
    let mut engine = routed.engine(&config, &flows);
    let (mut seen, mut behind) = (0, 0);
    for step in 0..100 {
        engine
            .run_until(at(RUN + Span::from_ns(700 * step)))
            .unwrap();
        engine.for_each_waiting(|packet| {
            behind += u32::from(packet.output == routed.port_to(4));
        });
        for tree in &engine.forest(threshold()).trees {
            // For the moment in which a packet for host 4 is first, its port holds back the others.
            if tree.root == routed.port_to(3) {
                assert_eq!(hosts(tree, |share| share.contributing), [0, 1]);
                assert_eq!(hosts(tree, |share| share.victim), [2]);
                // The trunk has credits again for moments.
                let shape = (tree.ports(), tree.sources(), tree.depth());
                seen += u32::from(shape == (2, 3, 2));
            }
        }
    }
    assert!(seen > 50, "{seen} trees have grown back to the hosts");
    assert!(
        behind > 100 * 5,
        "{behind} packets for host 4 in the second switch"
    );
}

/// Three hosts share one trunk on the way to three others: the trunk itself is the root, and all
/// that waits for it contributes.
#[test]
fn a_root_can_be_between_switches() {
    let three = [cable(FAST); 3];
    let routed = Routed::row(&[&three, &three], &[cable(FAST)]);
    let flows: Vec<_> = (0..3)
        .map(|host| Flow::saturating(host, host + 3))
        .collect();
    let forest = forest(&routed, &flows);
    let tree = only_tree(&forest);
    assert_eq!(tree.root, routed.port("S0", 5));
    assert_eq!(tree.destination, None);
    assert_eq!((tree.ports(), tree.sources(), tree.depth()), (1, 3, 1));
    assert_eq!(hosts(tree, |share| share.contributing), [0, 1, 2]);
    assert_eq!(tree.victims(), 0);
}

/// All hosts send to host 0 of a two-level fat tree of 4 leaves with 4 hosts each. One spine serves a destination. So
/// the tree has the root, that spine's port down, and one port up to it in each of the other 3 leaves. 3 sources are
/// next to the root at depth 1, and 12 behind the leaves at depth 3.
#[test]
fn a_silent_tree_in_a_fat_tree_is_three_deep() {
    let fat_tree = generators::Xgft {
        children: vec![4, 4],
        parents: vec![1, 4],
        links: Vec::new(),
    };
    let fabric = fat_tree.build(cable(FAST)).unwrap();
    let tables = routing::d_mod_k(&fabric).unwrap();
    let routed = Routed { fabric, tables };
    let flows: Vec<_> = (1..16).map(|host| Flow::saturating(host, 0)).collect();
    let forest = forest(&routed, &flows);
    let tree = only_tree(&forest);
    let count = |role, depth| {
        let members = tree.members.iter();
        members
            .filter(|m| (m.role, m.depth) == (role, depth))
            .count()
    };
    assert_eq!(count(Role::Root, 0), 1);
    assert_eq!(count(Role::Branch, 1), 1);
    assert_eq!(count(Role::Source, 1), 3);
    assert_eq!(count(Role::Branch, 2), 3);
    assert_eq!(count(Role::Source, 3), 12);
    assert_eq!(tree.members.len(), 20);
    assert_eq!(tree.contributors(), 15);
    assert_eq!(tree.victims(), 0);
}

/// A permutation that loads every link to 80 % meets no contention: nothing ever waits for long.
#[test]
fn there_is_no_tree_without_congestion() {
    let routed = Routed::star(&[cable(FAST); 8]);
    let flows: Vec<_> = (0..8)
        .map(|host| Flow {
            gap: Span::from_ns(1_300),
            ..Flow::saturating(host, (host + 3) % 8)
        })
        .collect();
    let mut engine = routed.engine(&ddr_config(), &flows);
    for step in 1..200 {
        engine.run_until(at(Span::from_us(3 * step))).unwrap();
        assert_eq!(engine.forest(Bytes::from_bytes(2 * WIRE)).trees, []);
    }
}

/// The threshold is where a queue starts to be a root, to the byte.
#[test]
fn the_threshold_is_inclusive() {
    let routed = Routed::star(&[cable(FAST); 4]);
    let flows: Vec<_> = (0..3).map(|host| Flow::burst(host, 3, 5)).collect();
    let mut engine = routed.engine(&ddr_config(), &flows);
    let mut seen = 0;
    for step in 1..40 {
        engine.run_until(at(Span::from_ns(500 * step))).unwrap();
        let queued = engine.queued(routed.port_to(3), vl(0));
        if !queued.is_zero() {
            seen += 1;
            assert_eq!(engine.forest(queued).trees.len(), 1);
            assert_eq!(engine.forest(queued + Bytes::from_bytes(1)).trees, []);
        }
    }
    assert!(seen > 10);
    // Nothing waits any more, and nothing is not congestion, however low the threshold.
    engine.run_until(at(RUN)).unwrap();
    assert_eq!(engine.forest(Bytes::ZERO).trees, []);
}

/// Follows every member to its root, and adds up every byte once.
fn check_structure(engine: &PlainEngine, forest: &Forest) -> Result<(), TestCaseError> {
    let mut seen = Vec::new();
    for tree in &forest.trees {
        prop_assert_eq!(tree.members[0].role, Role::Root);
        for member in &tree.members {
            seen.push((member.port, member.vl));
            let mut step = *member;
            while let Some(parent) = step.parent {
                let found = tree
                    .members
                    .iter()
                    .find(|m| (m.port, m.vl) == (parent, step.vl));
                let next = *found.unwrap();
                prop_assert_eq!(next.depth + 1, step.depth);
                prop_assert_ne!(next.role, Role::Source);
                step = next;
            }
            prop_assert_eq!(
                (step.port, step.vl, step.role),
                (tree.root, tree.vl, Role::Root)
            );
        }
    }
    let members = seen.len();
    seen.sort();
    seen.dedup();
    prop_assert_eq!(seen.len(), members, "a Port VL is in two trees");
    let queued: Bytes = forest.trees.iter().map(Tree::queued).sum();
    let shared: Bytes = forest
        .trees
        .iter()
        .map(|t| t.contributing() + t.victim())
        .sum();
    prop_assert_eq!(queued, shared);
    prop_assert!(queued <= forest.waiting);
    let mut waiting = Bytes::ZERO;
    engine.for_each_waiting(|packet| waiting += packet.wire);
    prop_assert_eq!(waiting, forest.waiting);
    Ok(())
}

/// Random fabrics, lanes, buffers and traffic, checked during the run.
#[test]
fn both_implementations_find_the_same_trees() {
    let (branches, deep, victims) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let result = runner(384).run(&(cases(), 0_u64..4), |(case, packets)| {
        let (routed, _) = case.build();
        let mut engine = routed.engine(&case.config, &case.flows);
        let wire = case.config.packet.mtu + case.config.packet.header;
        let threshold = wire * packets;
        for &step in &case.steps {
            engine.run_until(Time::from_ps(step)).unwrap();
            let forest = engine.forest(threshold);
            prop_assert_eq!(&forest, &engine.forest(threshold));
            check_structure(&engine, &forest)?;
            prop_assert_eq!(
                &forest.trees,
                &brute::trees(&routed, &case.config, &engine, threshold)
            );
            for tree in &forest.trees {
                branches.set(branches.get() + tree.ports() - 1);
                deep.set(deep.get() + usize::from(tree.depth() > 2));
                victims.set(victims.get() + tree.victims());
            }
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    // The drawn cases have the intended properties.
    let seen = [branches.get(), deep.get(), victims.get()];
    assert!(seen.iter().all(|&count| count > 100), "{seen:?}");
}
