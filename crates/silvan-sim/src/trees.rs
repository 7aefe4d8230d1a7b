//! Congestion trees over time, each identified by the Port VL of its root, from its first to its last sample.
//!
//! - A root that was a branch of another tree at the sample before has split from that tree.
//! - A tree whose root is a branch of another one at its death has merged into that tree.
//! - A tree has moved from another one if it faces another host, and at least half of either one's contributors, each
//!   at its maximum, contributed to both (gran2012, footnote 4).

mod columns;

use std::collections::BTreeMap;

use silvan_core::{Bytes, HostId, PortId, Time, Vl};
use silvan_model::Simulation;
use silvan_model::{Forest, Role, Tree};
use silvan_scenario::Scenario;

pub(crate) use columns::{FOREST, TREE_HOSTS, TREE_PORTS, TREES};
use columns::{ForestColumns, HostColumns, PortColumns, TreeColumns};

use crate::table::{Table, TableSchema};

type PortVl = (PortId, Vl);

/// Reads in any run, under a millisecond: small fabrics keep all samples.
const FEW_READS: u64 = 4096;

pub(super) struct TreeLog<'a> {
    scenario: &'a Scenario,
    threshold: Bytes,
    rows: Vec<u32>,
    forests: ForestColumns,
    trees: TreeColumns,
    ports: PortColumns,
    hosts: HostColumns,
    lives: Vec<Life>,
    standing: BTreeMap<PortVl, u32>,
    branches: BTreeMap<PortVl, u32>,
    last: Option<Time>,
    due_at_hops: u64,
}

struct Life {
    root: PortVl,
    destination: Option<HostId>,
    birth: Time,
    before_birth: Time,
    death: Option<Time>,
    last_seen: Time,
    samples: u32,
    peak_ports: u32,
    peak_depth: u32,
    peak_queued: Bytes,
    peak_victims: u32,
    contributors: Vec<HostId>,
    split_from: Option<u32>,
    merged_into: Option<u32>,
}

impl Life {
    fn new(tree: &Tree, now: Time, last: Option<Time>, split_from: Option<u32>) -> Self {
        Self {
            root: (tree.root, tree.vl),
            destination: tree.destination,
            birth: now,
            before_birth: last.unwrap_or(Time::ZERO),
            death: None,
            last_seen: now,
            samples: 0,
            peak_ports: 0,
            peak_depth: 0,
            peak_queued: Bytes::ZERO,
            peak_victims: 0,
            contributors: Vec::new(),
            split_from,
            merged_into: None,
        }
    }

    fn sample(&mut self, tree: &Tree, now: Time) {
        self.last_seen = now;
        self.samples += 1;
        self.peak_ports = self.peak_ports.max(tree.ports() as u32);
        self.peak_depth = self.peak_depth.max(tree.depth());
        self.peak_queued = self.peak_queued.max(tree.queued());
        self.peak_victims = self.peak_victims.max(tree.victims() as u32);
        if tree.contributors() > self.contributors.len() {
            let shares = tree.shares.iter();
            let contributing = shares.filter(|share| !share.contributing.is_zero());
            self.contributors = contributing.map(|share| share.host).collect();
        }
    }

    /// Hosts that contributed to both, if they are at least half of those that did to either.
    fn common(&self, other: &Self) -> Option<usize> {
        let both = self
            .contributors
            .iter()
            .filter(|host| other.contributors.binary_search(host).is_ok())
            .count();
        let either = self.contributors.len() + other.contributors.len() - both;
        (both > 0 && 2 * both >= either).then_some(both)
    }
}

impl<'a> TreeLog<'a> {
    pub fn new(scenario: &'a Scenario, ports: &[PortId]) -> Option<Self> {
        let section = scenario.file().probe.trees.as_ref()?;
        let mut rows = vec![u32::MAX; scenario.fabric().ports.len()];
        for (row, port) in (0..).zip(ports) {
            rows[port.index()] = row;
        }
        Some(Self {
            scenario,
            threshold: section.threshold.unwrap_or(Bytes::ZERO),
            rows,
            forests: ForestColumns::default(),
            trees: TreeColumns::default(),
            ports: PortColumns::default(),
            hosts: HostColumns::default(),
            lives: Vec::new(),
            standing: BTreeMap::new(),
            branches: BTreeMap::new(),
            last: None,
            due_at_hops: 0,
        })
    }

    /// Unless it is too early; `is_last` means that no sample follows.
    pub fn sample(&mut self, engine: &dyn Simulation, is_last: bool) {
        if engine.packet_hops() < self.due_at_hops && !is_last {
            return;
        }
        let forest = engine.forest(self.threshold);
        self.delay_next(engine.packet_hops(), &forest);
        let ids = self.identify(&forest);
        self.forests.push(&forest);
        for (tree, &id) in forest.trees.iter().zip(&ids) {
            self.lives[id as usize].sample(tree, forest.at);
            let destination = host_name(self.scenario, tree.destination);
            self.trees
                .push(forest.at, id, tree, &self.rows, destination);
            self.ports.push(forest.at, id, tree, &self.rows);
            self.hosts.push(forest.at, id, tree);
        }
    }

    /// Keeps to `probe.trees.reads-per-hop`, in packets of the largest size, except after few reads.
    fn delay_next(&mut self, packet_hops: u64, forest: &Forest) {
        let packet = self.scenario.engine_config().packet;
        let section = self.scenario.file().probe.trees.as_ref();
        let Some(limit) = section.and_then(|section| section.reads_per_hop) else {
            return;
        };
        let held: Bytes = forest.trees.iter().map(Tree::queued).sum();
        let largest = packet.mtu.as_u64() + packet.header.as_u64();
        let packets = held.as_u64() / largest.max(1);
        if packets <= FEW_READS {
            return;
        }
        self.due_at_hops = packet_hops.saturating_add((packets as f64 / limit) as u64);
    }

    fn identify(&mut self, forest: &Forest) -> Vec<u32> {
        let mut standing = BTreeMap::new();
        let mut branches = BTreeMap::new();
        let mut ids = Vec::with_capacity(forest.trees.len());
        for tree in &forest.trees {
            let root = (tree.root, tree.vl);
            let id = self.standing.remove(&root).unwrap_or_else(|| {
                let split_from = self.branches.get(&root).copied();
                self.lives
                    .push(Life::new(tree, forest.at, self.last, split_from));
                (self.lives.len() - 1) as u32
            });
            standing.insert(root, id);
            let others = tree
                .members
                .iter()
                .filter(|member| member.role == Role::Branch);
            branches.extend(others.map(|member| ((member.port, member.vl), id)));
            ids.push(id);
        }
        for (root, id) in std::mem::replace(&mut self.standing, standing) {
            let life = &mut self.lives[id as usize];
            life.death = Some(forest.at);
            life.merged_into = branches.get(&root).copied();
        }
        self.branches = branches;
        self.last = Some(forest.at);
        ids
    }

    /// Among older trees of the sample before its birth, by common contributors, then the youngest.
    fn moved_from(&self, id: usize) -> Option<u32> {
        let life = &self.lives[id];
        life.destination?;
        let older = (0..).zip(&self.lives[..id]).filter(|(_, other)| {
            other.birth < life.birth
                && other.last_seen >= life.before_birth
                && other.destination.is_some()
                && other.destination != life.destination
        });
        older
            .filter_map(|(other, before)| Some((life.common(before)?, other)))
            .max()
            .map(|(_, other)| other)
    }

    pub fn tables(self, end: Time) -> Vec<Table> {
        let lifetimes = self.lifetimes(end);
        vec![
            self.forests.table(),
            self.trees.table(),
            self.ports.table(),
            self.hosts.table(),
            lifetimes,
        ]
    }

    fn lifetimes(&self, end: Time) -> Table {
        let ids = || 0..self.lives.len() as u32;
        let moved_from: Vec<u32> = ids()
            .map(|id| self.moved_from(id as usize).unwrap_or(id))
            .collect();
        // Trees come after those that they have moved from.
        let mut lineage: Vec<u32> = Vec::with_capacity(moved_from.len());
        for (id, &before) in (0..).zip(&moved_from) {
            lineage.push(lineage.get(before as usize).copied().unwrap_or(id));
        }
        let column = |read: fn(&Life) -> u32| -> Vec<u32> { self.lives.iter().map(read).collect() };
        let times = |read: &dyn Fn(&Life) -> Time| -> Vec<u64> {
            self.lives.iter().map(|life| read(life).as_ps()).collect()
        };
        let other = |read: fn(&Life) -> Option<u32>| -> Vec<u32> {
            let lives = ids().zip(&self.lives);
            lives.map(|(id, life)| read(life).unwrap_or(id)).collect()
        };
        let destinations = self
            .lives
            .iter()
            .map(|life| host_name(self.scenario, life.destination));
        let roots = self.lives.iter().map(|life| self.rows[life.root.0.index()]);
        let peak_queued = self.lives.iter().map(|life| life.peak_queued.as_u64());
        let mut table = Table::new(&TREE_LIFETIMES);
        table.push("tree", ids().collect::<Vec<_>>());
        table.push("root_row", roots.collect::<Vec<_>>());
        table.push("vl", column(|life| u32::from(life.root.1.as_u8())));
        table.push("destination", destinations.collect::<Vec<_>>());
        table.push("birth_ps", times(&|life| life.birth));
        table.push("death_ps", times(&|life| life.death.unwrap_or(end)));
        table.push("died", column(|life| u32::from(life.death.is_some())));
        table.push("samples", column(|life| life.samples));
        table.push("peak_ports", column(|life| life.peak_ports));
        table.push("peak_depth", column(|life| life.peak_depth));
        table.push("peak_queued_bytes", peak_queued.collect::<Vec<_>>());
        table.push(
            "peak_contributors",
            column(|life| life.contributors.len() as u32),
        );
        table.push("peak_victims", column(|life| life.peak_victims));
        table.push("split_from", other(|life| life.split_from));
        table.push("merged_into", other(|life| life.merged_into));
        table.push("moved_from", moved_from);
        table.push("lineage", lineage);
        table
    }
}

fn host_name(scenario: &Scenario, host: Option<HostId>) -> String {
    host.map_or_else(String::new, |host| {
        scenario.fabric().host(host).name.clone()
    })
}

pub(crate) const TREE_LIFETIMES: TableSchema = TableSchema {
    name: "tree_lifetimes",
    rows: "One row per tree.",
    columns: &[
        (&["tree"], "Number of the tree."),
        (
            &["root_row", "vl"],
            "Row of `ports` of the root, and its virtual lane.",
        ),
        (&["destination"], "As in `trees`."),
        (
            &["birth_ps", "death_ps"],
            "First sample with the tree, and first one without it; the end of the run if it still exists.",
        ),
        (&["died"], "1 if the tree has ended, otherwise 0."),
        (&["samples"], "Number of samples with the tree."),
        (
            &[
                "peak_ports",
                "peak_depth",
                "peak_queued_bytes",
                "peak_contributors",
                "peak_victims",
            ],
            "Largest values of these columns of `trees`.",
        ),
        (
            &["split_from", "merged_into", "moved_from"],
            "Number of the tree that it split from, merged into or moved from; its own number if there is none.",
        ),
        (&["lineage"], "First tree of a chain of moves."),
    ],
    has_counters: false,
};
