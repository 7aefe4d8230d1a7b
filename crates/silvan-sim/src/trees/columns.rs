use silvan_core::{Bytes, HostId, Time};
use silvan_model::{Forest, HostShare, Role, Tree};

use crate::table::{Table, TableSchema};

#[derive(Default)]
pub(super) struct ForestColumns {
    time_ps: Vec<u64>,
    trees: Vec<u32>,
    ports: Vec<u32>,
    sources: Vec<u32>,
    queued_bytes: Vec<u64>,
    contributors: Vec<u32>,
    victims: Vec<u32>,
    contributing_bytes: Vec<u64>,
    victim_bytes: Vec<u64>,
    waiting_bytes: Vec<u64>,
}

#[derive(Default)]
pub(super) struct TreeColumns {
    time_ps: Vec<u64>,
    tree: Vec<u32>,
    root: Vec<u32>,
    vl: Vec<u32>,
    destination: Vec<String>,
    depth: Vec<u32>,
    ports: Vec<u32>,
    sources: Vec<u32>,
    queued_bytes: Vec<u64>,
    contributors: Vec<u32>,
    victims: Vec<u32>,
    contributing_flows: Vec<u32>,
    victim_flows: Vec<u32>,
    contributing_bytes: Vec<u64>,
    victim_bytes: Vec<u64>,
}

#[derive(Default)]
pub(super) struct PortColumns {
    time_ps: Vec<u64>,
    tree: Vec<u32>,
    row: Vec<u32>,
    vl: Vec<u32>,
    role: Vec<String>,
    depth: Vec<u32>,
    parent: Vec<u32>,
    queued_bytes: Vec<u64>,
}

#[derive(Default)]
pub(super) struct HostColumns {
    time_ps: Vec<u64>,
    tree: Vec<u32>,
    host: Vec<u32>,
    contributing_bytes: Vec<u64>,
    victim_bytes: Vec<u64>,
}

impl ForestColumns {
    pub fn push(&mut self, forest: &Forest) {
        let trees = || forest.trees.iter();
        // A host can have a share in several trees, but counts once.
        let hosts = |of: fn(&HostShare) -> Bytes| -> u32 {
            let shares = trees().flat_map(|tree| &tree.shares);
            let mut hosts: Vec<HostId> = shares
                .filter(|share| !of(share).is_zero())
                .map(|share| share.host)
                .collect();
            hosts.sort_unstable();
            hosts.dedup();
            hosts.len() as u32
        };
        self.time_ps.push(forest.at.as_ps());
        self.trees.push(forest.trees.len() as u32);
        self.ports
            .push(trees().map(|tree| tree.ports() as u32).sum());
        self.sources
            .push(trees().map(|tree| tree.sources() as u32).sum());
        self.queued_bytes
            .push(trees().map(|tree| tree.queued().as_u64()).sum());
        self.contributors.push(hosts(|share| share.contributing));
        self.victims.push(hosts(|share| share.victim));
        let contributing = trees().map(|tree| tree.contributing().as_u64());
        self.contributing_bytes.push(contributing.sum());
        self.victim_bytes
            .push(trees().map(|tree| tree.victim().as_u64()).sum());
        self.waiting_bytes.push(forest.waiting.as_u64());
    }

    pub fn table(self) -> Table {
        let mut table = Table::new(&FOREST);
        table.push("time_ps", self.time_ps);
        table.push("trees", self.trees);
        table.push("ports", self.ports);
        table.push("sources", self.sources);
        table.push("queued_bytes", self.queued_bytes);
        table.push("contributors", self.contributors);
        table.push("victims", self.victims);
        table.push("contributing_bytes", self.contributing_bytes);
        table.push("victim_bytes", self.victim_bytes);
        table.push("waiting_bytes", self.waiting_bytes);
        table
    }
}

impl TreeColumns {
    pub fn push(&mut self, now: Time, id: u32, tree: &Tree, rows: &[u32], destination: String) {
        self.time_ps.push(now.as_ps());
        self.tree.push(id);
        self.root.push(rows[tree.root.index()]);
        self.vl.push(u32::from(tree.vl.as_u8()));
        self.destination.push(destination);
        self.depth.push(tree.depth());
        self.ports.push(tree.ports() as u32);
        self.sources.push(tree.sources() as u32);
        self.queued_bytes.push(tree.queued().as_u64());
        self.contributors.push(tree.contributors() as u32);
        self.victims.push(tree.victims() as u32);
        self.contributing_flows.push(tree.contributing_flows);
        self.victim_flows.push(tree.victim_flows);
        self.contributing_bytes.push(tree.contributing().as_u64());
        self.victim_bytes.push(tree.victim().as_u64());
    }

    pub fn table(self) -> Table {
        let mut table = Table::new(&TREES);
        table.push("time_ps", self.time_ps);
        table.push("tree", self.tree);
        table.push("root_row", self.root);
        table.push("vl", self.vl);
        table.push("destination", self.destination);
        table.push("depth", self.depth);
        table.push("ports", self.ports);
        table.push("sources", self.sources);
        table.push("queued_bytes", self.queued_bytes);
        table.push("contributors", self.contributors);
        table.push("victims", self.victims);
        table.push("contributing_flows", self.contributing_flows);
        table.push("victim_flows", self.victim_flows);
        table.push("contributing_bytes", self.contributing_bytes);
        table.push("victim_bytes", self.victim_bytes);
        table
    }
}

impl PortColumns {
    pub fn push(&mut self, now: Time, id: u32, tree: &Tree, rows: &[u32]) {
        for member in &tree.members {
            let role = match member.role {
                Role::Root => "root",
                Role::Branch => "branch",
                Role::Source => "source",
            };
            self.time_ps.push(now.as_ps());
            self.tree.push(id);
            self.row.push(rows[member.port.index()]);
            self.vl.push(u32::from(member.vl.as_u8()));
            self.role.push(role.to_owned());
            self.depth.push(member.depth);
            let parent = member.parent.unwrap_or(member.port);
            self.parent.push(rows[parent.index()]);
            self.queued_bytes.push(member.queued.as_u64());
        }
    }

    pub fn table(self) -> Table {
        let mut table = Table::new(&TREE_PORTS);
        table.push("time_ps", self.time_ps);
        table.push("tree", self.tree);
        table.push("ports_row", self.row);
        table.push("vl", self.vl);
        table.push("role", self.role);
        table.push("depth", self.depth);
        table.push("parent_row", self.parent);
        table.push("queued_bytes", self.queued_bytes);
        table
    }
}

impl HostColumns {
    pub fn push(&mut self, now: Time, id: u32, tree: &Tree) {
        for share in &tree.shares {
            self.time_ps.push(now.as_ps());
            self.tree.push(id);
            self.host.push(share.host.index() as u32);
            self.contributing_bytes.push(share.contributing.as_u64());
            self.victim_bytes.push(share.victim.as_u64());
        }
    }

    pub fn table(self) -> Table {
        let mut table = Table::new(&TREE_HOSTS);
        table.push("time_ps", self.time_ps);
        table.push("tree", self.tree);
        table.push("host", self.host);
        table.push("contributing_bytes", self.contributing_bytes);
        table.push("victim_bytes", self.victim_bytes);
        table
    }
}

pub(crate) const FOREST: TableSchema = TableSchema {
    name: "forest",
    rows: "One row per sample of the [congestion trees](../guide/trees.md), with `[probe.trees]`: all trees together.",
    columns: &[
        (&["time_ps"], "Time of the sample."),
        (&["trees"], "Number of trees."),
        (
            &["ports"],
            "Port VLs of switches in trees. A Port VL is a port and one of its virtual lanes (VL).",
        ),
        (&["sources"], "Hosts that a tree blocks."),
        (&["queued_bytes"], "Bytes that wait for ports of trees."),
        (
            &["contributors", "victims"],
            "Hosts with packets that go through a root; hosts with packets that a tree blocks, but that do not.",
        ),
        (
            &["contributing_bytes", "victim_bytes"],
            "Bytes of these packets.",
        ),
        (
            &["waiting_bytes"],
            "Bytes that wait in all switches, in trees or not.",
        ),
    ],
    has_counters: false,
};

pub(crate) const TREES: TableSchema = TableSchema {
    name: "trees",
    rows: "One row per sample and tree.",
    columns: &[
        (&["time_ps"], "Time of the sample."),
        (&["tree"], "Number of the tree."),
        (
            &["root_row", "vl"],
            "Row of `ports` of the root, and its virtual lane.",
        ),
        (
            &["destination"],
            "Name of the host behind the root; empty where the root is inside the fabric.",
        ),
        (
            &["depth"],
            "Largest number of cables from a port of the tree to the root.",
        ),
        (
            &["ports", "sources"],
            "Port VLs of switches in the tree, and hosts that it blocks.",
        ),
        (&["queued_bytes"], "Bytes that wait for its ports."),
        (&["contributors", "victims"], "Hosts, as in `forest`."),
        (
            &["contributing_flows", "victim_flows"],
            "Flows of these packets.",
        ),
        (
            &["contributing_bytes", "victim_bytes"],
            "Bytes of these packets.",
        ),
    ],
    has_counters: false,
};

pub(crate) const TREE_PORTS: TableSchema = TableSchema {
    name: "tree_ports",
    rows: "One row per sample and Port VL of a tree.",
    columns: &[
        (&["time_ps"], "Time of the sample."),
        (&["tree"], "Number of the tree."),
        (
            &["ports_row", "vl"],
            "Row of `ports`, and the virtual lane.",
        ),
        (&["role"], "`root`, `branch` or `source`."),
        (&["depth"], "Number of cables to the root."),
        (
            &["parent_row"],
            "Row of `ports` of the next port towards the root.",
        ),
        (&["queued_bytes"], "Bytes that wait for the Port VL."),
    ],
    has_counters: false,
};

pub(crate) const TREE_HOSTS: TableSchema = TableSchema {
    name: "tree_hosts",
    rows: "One row per sample, tree and host with packets in it.",
    columns: &[
        (&["time_ps"], "Time of the sample."),
        (&["tree"], "Number of the tree."),
        (&["host"], "Row of `hosts`."),
        (
            &["contributing_bytes", "victim_bytes"],
            "Bytes of the host in the tree that go through its root, and that do not.",
        ),
    ],
    has_counters: false,
};
