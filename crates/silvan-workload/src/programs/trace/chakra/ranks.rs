//! Nodes of all ranks as they are read.

use std::collections::{BTreeMap, BTreeSet};

use super::{Node, Trace};

/// Nodes of all ranks together, of some 100 bytes each.
const MOST_NODES: usize = 1 << 22;

/// Nodes of all ranks together that others wait for.
pub(super) const MOST_WAITS: usize = 1 << 25;

const FEWER: &str = "leave out ranks, or nodes that take no time";

/// What is wrong with a node, and what to do about it.
pub(super) type Wrong = (String, &'static str);

/// The ranks so far.
#[derive(Debug, Default)]
pub(super) struct Ranks {
    trace: Trace,
    /// Nodes of the last rank.
    ids: BTreeSet<u64>,
    nodes: usize,
    waits: usize,
}

impl Ranks {
    /// Begins the next rank.
    pub fn begin(&mut self) {
        self.trace.ranks.push(Vec::new());
        self.ids.clear();
    }

    /// The number of the last rank.
    pub fn rank(&self) -> usize {
        self.trace.ranks.len().saturating_sub(1)
    }

    /// Adds a node to the last rank.
    pub fn add(&mut self, mut node: Node) -> Result<(), Wrong> {
        if !self.ids.insert(node.id) {
            let message = format!("rank {}: two nodes have the id {}", self.rank(), node.id);
            return Err((message, "give each node its own"));
        }
        node.after.sort_unstable();
        node.after.dedup();
        node.after.shrink_to_fit();
        self.nodes += 1;
        self.waits += node.after.len();
        if self.nodes > MOST_NODES {
            let message = format!("the trace has more than {MOST_NODES} nodes");
            return Err((message, FEWER));
        }
        if self.waits > MOST_WAITS {
            let message = format!("nodes of the trace wait for more than {MOST_WAITS} others");
            return Err((message, FEWER));
        }
        if let Some(nodes) = self.trace.ranks.last_mut() {
            nodes.push(node);
        }
        Ok(())
    }

    /// Adds groups of ranks that a node names.
    pub fn name(&mut self, groups: BTreeMap<String, Vec<u32>>) {
        self.trace.groups.extend(groups);
    }

    /// The whole trace.
    pub fn end(self) -> Trace {
        self.trace
    }
}
