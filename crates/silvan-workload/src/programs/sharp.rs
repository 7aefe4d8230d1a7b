//! Allreduces in the network (SHARP): hosts send to the aggregation node of their switch, aggregation nodes reduce
//! along a tree of switches, and the root's result goes down the same tree.
//!
//! R. L. Graham et al., "Scalable Hierarchical Aggregation Protocol (SHArP)", COMHPC 2016 (low latency), and "SHARP
//! Streaming-Aggregation Hardware Design and Evaluation", ISC 2020.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{Bytes, HostId, Rate, Span, Time, schema};

use crate::programs::collective::{Collective, Operation, TAG, ring, split};
use crate::programs::op::{Group, Op, Steps};
use crate::programs::spec::{Helpers, Script};

/// Aggregation trees (SHARP) of programs with the algorithm `sharp`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Sharp {
    /// Kind of aggregation.
    pub mode: SharpMode,
    /// Largest part of an operation in a tree that `mode = "auto"` does with low latency. 4 KiB are the largest of the 2016 paper.
    #[schemars(with = "schema::BytesText")]
    pub streaming_above: Bytes,
    /// Data in a packet of low-latency aggregation; larger operations take several. Switch-IB 2 has 256 bytes, the library of SHARP
    /// 2.6 takes at most 1,024.
    #[schemars(with = "schema::BytesText")]
    pub payload: Bytes,
    /// Packets that a host has in low-latency aggregation at once (outstanding transactions, OST). The library of SHARP chooses at
    /// least 2.
    #[schemars(range(min = 1, max = 65536))]
    pub transactions: u32,
    /// Data that is reduced at once when streaming. Default: `packet.mtu`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::BytesText>")]
    pub segment: Option<Bytes>,
    /// Data that a host has sent when streaming, and whose result has not arrived. The buffers of switches are not published.
    #[schemars(with = "schema::BytesText")]
    pub window: Bytes,
    /// Time from the arrival of a packet at an aggregation node to its reduction, or to its copies on the way down. By default an
    /// allreduce of 8 bytes on 128 hosts takes about the 2.8 us of the 2016 paper, with 0.6 us in adapters.
    #[schemars(with = "schema::SpanText")]
    pub latency: Span,
    /// Rate of the port between a switch and its aggregation node. Default: the sum of the switch's cables, because
    /// switches reduce at the rate of all ports.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::RateText>")]
    pub rate: Option<Rate>,
    /// Names of the switches that have an aggregation node. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switches: Option<Vec<String>>,
}

/// Kind of aggregation in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SharpMode {
    /// Low latency up to `streaming-above`, streaming beyond.
    #[default]
    Auto,
    /// Packets of `payload` bytes (LLT).
    LowLatency,
    /// Segments that follow each other through the tree at the rate of the links (SAT).
    Streaming,
}

impl Default for Sharp {
    fn default() -> Self {
        Self {
            mode: SharpMode::default(),
            streaming_above: Bytes::from_bytes(4 << 10),
            payload: Bytes::from_bytes(1 << 10),
            transactions: 16,
            segment: None,
            window: Bytes::from_bytes(256 << 10),
            latency: Span::from_ns(300),
            rate: None,
            switches: None,
        }
    }
}

impl Sharp {
    /// Data of a segment of an operation of this size, and segments that a host has under way.
    pub fn pieces(&self, bytes: u64, mtu: Bytes) -> (u64, u32) {
        let is_short = match self.mode {
            SharpMode::Auto => bytes <= self.streaming_above.as_u64(),
            SharpMode::LowLatency => true,
            SharpMode::Streaming => false,
        };
        if is_short {
            return (self.payload.as_u64(), self.transactions);
        }
        let segment = self.segment.unwrap_or(mtu).as_u64();
        let window = (self.window.as_u64() / segment).clamp(1, 1 << 20);
        (segment, window as u32)
    }
}

/// An aggregation node of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharpNode {
    /// The host that stands for it.
    pub host: HostId,
    /// Place of the parent in the tree, before this one; `None` for the root.
    pub parent: Option<usize>,
    /// Ranks at its switch.
    pub ranks: Vec<u32>,
}

/// A repeated collective operation over aggregation trees.
#[derive(Clone, Debug, PartialEq)]
pub struct SharpPlan {
    /// The operation: a barrier or an allreduce.
    pub collective: Collective,
    /// Trees: one for each place of a rank on its server. The root of a tree is its first node.
    pub trees: Vec<Vec<SharpNode>>,
    /// Ranks of hosts.
    pub ranks: u32,
    /// Data of a segment.
    pub segment: u64,
    /// Segments that a host has under way.
    pub window: u32,
    /// Processor time to start and to end an operation.
    pub overhead: Span,
    /// Time of a packet in an aggregation node.
    pub latency: Span,
    /// Computing before each operation.
    pub compute: Span,
    /// Number of operations; `None` is without end.
    pub iterations: Option<u64>,
}

/// Direction of a rank in a switch: from its children to its parent, or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

/// Segments of an operation that a rank starts at a time.
const AT_A_TIME: u64 = 32;

impl SharpPlan {
    /// Hosts of the ranks in switches, in the order of these ranks: each node has one up, and one down unless it is the root.
    pub fn switch_hosts(&self) -> Vec<HostId> {
        let nodes = self.trees.iter().flatten();
        let hosts = nodes.flat_map(|node| {
            let count = 1 + usize::from(node.parent.is_some());
            std::iter::repeat_n(node.host, count)
        });
        hosts.collect()
    }

    /// The ranks in switches.
    pub fn helpers(&self) -> Helpers {
        Helpers {
            ranks: self.switch_hosts().len() as u32,
            in_switches: Some(self.latency),
        }
    }

    /// The programs of all ranks, those in switches last.
    pub fn scripts(plan: &Arc<Self>) -> Vec<Script> {
        let hosts = (0..plan.ranks).map(|rank| {
            let steps = HostSteps::new(Arc::clone(plan), rank);
            Script::Sequence(Box::new(steps))
        });
        let mut scripts: Vec<Script> = hosts.collect();
        for tree in 0..plan.trees.len() {
            for node in 0..plan.trees[tree].len() {
                let is_root = plan.trees[tree][node].parent.is_none();
                for direction in [Direction::Up, Direction::Down] {
                    if direction == Direction::Down && is_root {
                        continue;
                    }
                    let steps = NodeSteps::new(plan, tree, node, direction);
                    scripts.push(Script::Sequence(Box::new(steps)));
                }
            }
        }
        scripts
    }

    fn local(&self) -> u32 {
        self.trees.len() as u32
    }

    fn tree_bytes(&self, tree: u32) -> u64 {
        split(self.collective.bytes, self.local(), tree)
    }

    fn segments(&self, tree: u32) -> u64 {
        self.tree_bytes(tree).div_ceil(self.segment).max(1)
    }

    fn segment_bytes(&self, tree: u32, number: u64) -> u64 {
        let left = self.tree_bytes(tree) - (number * self.segment).min(self.tree_bytes(tree));
        left.min(self.segment)
    }

    /// The rank of a node in a direction; the root has one for both.
    fn rank_of(&self, tree: usize, node: usize, direction: Direction) -> u32 {
        let ranks = |nodes: &[SharpNode]| {
            let count = nodes
                .iter()
                .map(|node| 1 + u32::from(node.parent.is_some()));
            count.sum::<u32>()
        };
        let before: u32 = self.trees[..tree].iter().map(|nodes| ranks(nodes)).sum();
        let first = self.ranks + before + ranks(&self.trees[tree][..node]);
        let has_two = self.trees[tree][node].parent.is_some();
        first + u32::from(has_two && direction == Direction::Down)
    }

    fn node_of(&self, rank: u32) -> (usize, usize) {
        let tree = (rank % self.local()) as usize;
        let node = self.trees[tree]
            .iter()
            .position(|node| node.ranks.contains(&rank));
        (tree, node.expect("every rank is at a switch of its tree"))
    }
}

#[derive(Debug)]
struct HostSteps {
    plan: Arc<SharpPlan>,
    me: u32,
    tree: u32,
    up: u32,
    down: u32,
    operation: u64,
    segment: u64,
}

impl HostSteps {
    fn new(plan: Arc<SharpPlan>, me: u32) -> Self {
        let (tree, node) = plan.node_of(me);
        Self {
            up: plan.rank_of(tree, node, Direction::Up),
            down: plan.rank_of(tree, node, Direction::Down),
            me,
            tree: tree as u32,
            operation: 0,
            segment: 0,
            plan,
        }
    }

    /// The ranks of the same server, which first reduce their parts among each other.
    fn server(&self) -> (Group, u32) {
        let local = self.plan.local();
        (
            Group::range(self.me - self.me % local, local),
            self.me % local,
        )
    }

    fn within_server(&self, is_before: bool, out: &mut Vec<Op>) {
        let (server, place) = self.server();
        if server.size < 2 {
            return;
        }
        let Collective {
            operation, bytes, ..
        } = self.plan.collective;
        let part = |place| match operation {
            Operation::Barrier => 0,
            _ => split(bytes, server.size, place),
        };
        match is_before {
            true => ring::reduce_scatter(out, server, place, &part),
            false => ring::allgather(out, server, place, &part),
        }
    }
}

impl Steps for HostSteps {
    fn step(&mut self, _step: u64, _now: Time, out: &mut Vec<Op>) -> bool {
        let plan = Arc::clone(&self.plan);
        if plan.iterations.is_some_and(|all| self.operation >= all) {
            return false;
        }
        if self.segment == 0 {
            out.extend([Op::Compute(plan.compute), Op::Begin]);
            self.within_server(true, out);
            out.push(Op::Pause(plan.overhead));
        }
        let all = plan.segments(self.tree);
        let end = all.min(self.segment + AT_A_TIME);
        for number in self.segment..end {
            let bytes = plan.segment_bytes(self.tree, number);
            out.push(Op::WaitFor(plan.window - 1));
            out.push(Op::Receive {
                from: Some(self.down),
                bytes,
                tag: Some(TAG),
            });
            out.push(Op::Segment {
                to: self.up,
                bytes,
                tag: TAG,
            });
        }
        self.segment = end;
        if end == all {
            out.extend([Op::Wait, Op::Pause(plan.overhead)]);
            self.within_server(false, out);
            out.push(Op::End {
                label: 0,
                index: self.operation as u32,
            });
            self.segment = 0;
            self.operation += 1;
        }
        true
    }
}

#[derive(Debug)]
struct NodeSteps {
    plan: Arc<SharpPlan>,
    tree: u32,
    sources: Vec<u32>,
    targets: Vec<u32>,
    operation: u64,
    segment: u64,
}

impl NodeSteps {
    fn new(plan: &Arc<SharpPlan>, tree: usize, node: usize, direction: Direction) -> Self {
        let nodes = &plan.trees[tree];
        let children = |direction| {
            let below = (0..nodes.len()).filter(|below| nodes[*below].parent == Some(node));
            let below = below.map(|below| plan.rank_of(tree, below, direction));
            nodes[node]
                .ranks
                .iter()
                .copied()
                .chain(below)
                .collect::<Vec<u32>>()
        };
        let parent = |direction| {
            let parent = nodes[node].parent;
            parent.map(|parent| vec![plan.rank_of(tree, parent, direction)])
        };
        let (sources, targets) = match direction {
            Direction::Up => (
                children(Direction::Up),
                parent(Direction::Up).unwrap_or_else(|| children(Direction::Down)),
            ),
            Direction::Down => (
                parent(Direction::Down).unwrap_or_default(),
                children(Direction::Down),
            ),
        };
        Self {
            plan: Arc::clone(plan),
            tree: tree as u32,
            sources,
            targets,
            operation: 0,
            segment: 0,
        }
    }
}

impl Steps for NodeSteps {
    fn step(&mut self, _step: u64, _now: Time, out: &mut Vec<Op>) -> bool {
        let all = self.plan.segments(self.tree);
        if self
            .plan
            .iterations
            .is_some_and(|all| self.operation >= all)
        {
            return false;
        }
        let bytes = self.plan.segment_bytes(self.tree, self.segment);
        out.extend(self.sources.iter().map(|from| Op::Receive {
            from: Some(*from),
            bytes,
            tag: Some(TAG),
        }));
        out.push(Op::Wait);
        out.extend(self.targets.iter().map(|to| Op::Segment {
            to: *to,
            bytes,
            tag: TAG,
        }));
        self.segment += 1;
        if self.segment == all {
            self.segment = 0;
            self.operation += 1;
        }
        true
    }
}
