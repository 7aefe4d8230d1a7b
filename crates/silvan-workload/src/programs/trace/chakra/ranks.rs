use std::collections::{BTreeMap, BTreeSet};

use super::{ControlDependencies, Node, Trace};

/// Over all ranks, at some 100 bytes each.
const MOST_NODES: usize = 1 << 22;

pub(super) const MOST_WAITS: usize = 1 << 25;

const FEWER: &str = "leave out ranks, or nodes that take no time";

pub(super) type Wrong = (String, &'static str);

#[derive(Debug, Default)]
pub(super) struct Ranks {
    trace: Trace,
    ids: BTreeSet<u64>,
    nodes: usize,
    waits: usize,
    /// Of the last rank; `None` before the first.
    control: Option<ControlDependencies>,
}

impl Ranks {
    pub fn begin(&mut self, control: ControlDependencies) {
        self.resolve();
        self.trace.ranks.push(Vec::new());
        self.ids.clear();
        self.control = Some(control);
    }

    fn resolve(&mut self) {
        let keeps = self.control == Some(ControlDependencies::Existing);
        for node in self.trace.ranks.last_mut().into_iter().flatten() {
            for id in std::mem::take(&mut node.control) {
                match self.ids.contains(&id) {
                    true if keeps => node.after.push(id),
                    false if keeps => self.trace.dangling += 1,
                    _ => {}
                }
            }
            node.after.sort_unstable();
            node.after.dedup();
            node.after.shrink_to_fit();
        }
    }

    pub fn rank(&self) -> usize {
        self.trace.ranks.len().saturating_sub(1)
    }

    pub fn add(&mut self, mut node: Node) -> Result<(), Wrong> {
        if !self.ids.insert(node.id) {
            let message = format!("rank {}: two nodes have the id {}", self.rank(), node.id);
            return Err((message, "give each node its own"));
        }
        for list in [&mut node.after, &mut node.control] {
            list.sort_unstable();
            list.dedup();
            list.shrink_to_fit();
        }
        self.nodes += 1;
        self.waits += node.after.len() + node.control.len();
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

    pub fn name(&mut self, groups: BTreeMap<String, Vec<u32>>) {
        self.trace.groups.extend(groups);
    }

    pub fn end(mut self) -> Trace {
        self.resolve();
        self.trace
    }
}
