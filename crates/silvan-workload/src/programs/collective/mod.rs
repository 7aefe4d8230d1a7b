//! Collective operations by the usual algorithms, as the operations of one rank.
//!
//! Every function appends what the rank at place `me` of its group does. Ranks of a group must call them
//! in the same order. Algorithms and their names: R. Thakur, R. Rabenseifner and W. Gropp, "Optimization of
//! Collective Communication Operations in MPICH", IJHPCA 19:1, 2005.

pub mod direct;
pub mod doubling;
pub mod hierarchy;
pub mod pairwise;
pub mod ring;
pub mod tree;

use std::ops::Range;

use schemars::JsonSchema;
use serde::de::value::StrDeserializer;
use serde::{Deserialize, Serialize};

use crate::programs::op::{Group, Op};

/// Tag of the messages of collective operations: beyond those that programs use.
pub const TAG: u32 = 0xffff_0000;

/// What a collective operation does.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// No rank leaves before all have entered.
    Barrier,
    /// All ranks get the sum of all vectors; `bytes` is the size of the vector.
    Allreduce,
    /// Every rank gets its part of the sum of all vectors; `bytes` is the size of the whole vector.
    ReduceScatter,
    /// All ranks get the parts of all; `bytes` is the size of all parts together.
    Allgather,
    /// Every rank has a message for each other; `bytes` is the size of one.
    Alltoall,
    /// All ranks get the vector of the root.
    Broadcast,
    /// The root gets the sum of all vectors.
    Reduce,
    /// The root gets a message from each other rank, all sent at once; `bytes` is the size of one.
    Incast,
    /// The root has a message for each other rank; `bytes` is the size of one.
    Scatter,
}

/// By which algorithm.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Every rank sends to its right neighbour only.
    Ring,
    /// Along a binomial tree.
    Tree,
    /// Partners at distance 1, 2, 4 and so on; an allreduce exchanges the whole vector in each step.
    Doubling,
    /// An allreduce of a reduce-scatter and an allgather with partners at distances that are powers of two.
    Halving,
    /// All messages at once, each straight to the rank that needs it.
    Direct,
    /// One partner at a time, each rank with another one.
    Pairwise,
    /// First among the ranks of a server, then between servers, then among the ranks of a server again.
    Hierarchical,
}

impl Operation {
    /// The algorithms that it is offered by; the first one is the default.
    pub const fn algorithms(self) -> &'static [Algorithm] {
        use Algorithm::{Direct, Doubling, Halving, Hierarchical, Pairwise, Ring, Tree};
        match self {
            Self::Barrier => &[Doubling, Ring, Tree, Direct, Hierarchical],
            Self::Allreduce => &[
                Ring,
                Tree,
                Doubling,
                Halving,
                Direct,
                Pairwise,
                Hierarchical,
            ],
            Self::ReduceScatter | Self::Allgather => {
                &[Ring, Doubling, Direct, Pairwise, Hierarchical]
            }
            Self::Alltoall => &[Pairwise, Ring, Doubling, Direct, Hierarchical],
            Self::Broadcast => &[Tree, Ring, Direct, Hierarchical],
            Self::Reduce => &[Tree, Ring, Hierarchical],
            Self::Incast | Self::Scatter => &[Direct],
        }
    }

    /// The operation of this name, as scenarios spell it.
    pub fn named(name: &str) -> Option<Self> {
        named(name)
    }

    /// Whether one rank has another part than all others.
    pub const fn has_root(self) -> bool {
        matches!(
            self,
            Self::Broadcast | Self::Reduce | Self::Incast | Self::Scatter
        )
    }

    /// Whether `bytes` is the size of one message rather than of a vector that is split.
    pub const fn is_per_message(self) -> bool {
        matches!(self, Self::Alltoall | Self::Incast | Self::Scatter)
    }
}

impl Algorithm {
    /// Its name, as scenarios spell it.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// The algorithm of this name, as scenarios spell it.
    pub fn named(name: &str) -> Option<Self> {
        named(name)
    }
}

/// The value that scenarios spell so.
fn named<'a, T: Deserialize<'a>>(name: &'a str) -> Option<T> {
    T::deserialize(StrDeserializer::<serde::de::value::Error>::new(name)).ok()
}

/// A collective operation of a group of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collective {
    /// What it does.
    pub operation: Operation,
    /// By which of [`Operation::algorithms`].
    pub algorithm: Algorithm,
    /// Size in bytes, as the operation defines it.
    pub bytes: u64,
    /// Place of the root, for operations that have one.
    pub root: u32,
    /// Members of the group that share a server: those at places side by side.
    pub local: u32,
}

impl Collective {
    /// By the default algorithm, from or to place 0, with each rank on a server of its own.
    pub const fn new(operation: Operation, bytes: u64) -> Self {
        Self {
            operation,
            algorithm: operation.algorithms()[0],
            bytes,
            root: 0,
            local: 1,
        }
    }

    /// Appends the operations of the rank at place `me`.
    pub fn append(&self, out: &mut Vec<Op>, group: Group, me: u32) {
        use Algorithm::{Direct, Doubling, Halving, Hierarchical, Pairwise, Ring, Tree};
        let (n, bytes, root) = (group.size, self.bytes, self.root);
        if n < 2 {
            return;
        }
        let part = |place: u32| split(bytes, n, place);
        match (self.operation, self.algorithm) {
            (Operation::Barrier, Ring) => ring::barrier(out, group, me),
            (Operation::Barrier, Tree) => tree::allreduce(out, group, me, 0),
            (Operation::Barrier, Direct) => direct::barrier(out, group, me),
            (Operation::Barrier, Hierarchical) => hierarchy::barrier(out, group, me, self.local),
            (Operation::Barrier, _) => doubling::barrier(out, group, me),
            (Operation::Allreduce, Tree) => tree::allreduce(out, group, me, bytes),
            (Operation::Allreduce, Doubling) => doubling::allreduce(out, group, me, bytes),
            (Operation::Allreduce, Halving) => {
                doubling::reduce_scatter(out, group, me, &part);
                doubling::allgather(out, group, me, &part);
            }
            (Operation::Allreduce, Direct) => {
                direct::reduce_scatter(out, group, me, &part);
                direct::allgather(out, group, me, &part);
            }
            (Operation::Allreduce, Pairwise) => {
                pairwise::reduce_scatter(out, group, me, &part);
                pairwise::allgather(out, group, me, &part);
            }
            (Operation::Allreduce, Hierarchical) => {
                hierarchy::allreduce(out, group, me, self.local, bytes);
            }
            (Operation::Allreduce, _) => {
                let steps = 0..ring::allreduce_length(group);
                ring::allreduce_steps(out, group, me, bytes, steps);
            }
            (Operation::ReduceScatter, Doubling) => {
                doubling::reduce_scatter(out, group, me, &part);
            }
            (Operation::ReduceScatter, Direct) => direct::reduce_scatter(out, group, me, &part),
            (Operation::ReduceScatter, Pairwise) => pairwise::reduce_scatter(out, group, me, &part),
            (Operation::ReduceScatter, Hierarchical) => {
                hierarchy::reduce_scatter(out, group, me, self.local, &part);
            }
            (Operation::ReduceScatter, _) => ring::reduce_scatter(out, group, me, &part),
            (Operation::Allgather, Doubling) => doubling::allgather(out, group, me, &part),
            (Operation::Allgather, Direct) => direct::allgather(out, group, me, &part),
            (Operation::Allgather, Pairwise) => pairwise::allgather(out, group, me, &part),
            (Operation::Allgather, Hierarchical) => {
                hierarchy::allgather(out, group, me, self.local, &part);
            }
            (Operation::Allgather, _) => ring::allgather(out, group, me, &part),
            (Operation::Alltoall, Ring) => ring::alltoall(out, group, me, bytes),
            (Operation::Alltoall, Doubling) => doubling::alltoall(out, group, me, bytes),
            (Operation::Alltoall, Direct) => direct::alltoall(out, group, me, &|_, _| bytes),
            (Operation::Alltoall, Hierarchical) => {
                hierarchy::alltoall(out, group, me, self.local, bytes);
            }
            (Operation::Alltoall, _) => pairwise::alltoall(out, group, me, bytes),
            (Operation::Broadcast, Ring) => ring::broadcast(out, group, me, root, bytes),
            (Operation::Broadcast, Direct) => direct::scatter(out, group, me, root, bytes),
            (Operation::Broadcast, Hierarchical) => {
                hierarchy::broadcast(out, group, me, self.local, root, bytes);
            }
            (Operation::Broadcast, _) => tree::broadcast(out, group, me, root, bytes),
            (Operation::Reduce, algorithm) => {
                let broadcast = Self {
                    operation: Operation::Broadcast,
                    algorithm,
                    ..*self
                };
                reversed(out, |out| broadcast.append(out, group, me));
            }
            (Operation::Incast, _) => direct::incast(out, group, me, root, bytes),
            (Operation::Scatter, _) => direct::scatter(out, group, me, root, bytes),
        }
    }

    /// A bound on the operations that [`append`](Self::append) adds for a rank in a group of so many, with one for each wait.
    pub fn most_ops(&self, ranks: u32) -> u64 {
        let (n, rounds) = (
            u64::from(ranks),
            u64::from(u32::BITS - ranks.leading_zeros()),
        );
        match (self.operation, self.algorithm) {
            (_, Algorithm::Tree | Algorithm::Doubling | Algorithm::Halving) => 6 * (rounds + 1),
            (_, _) => 6 * (n + rounds + 1),
        }
    }

    /// Number of steps that [`append_steps`](Self::append_steps) tells apart: those of a ring or of a pairwise
    /// all-to-all, as many as ranks; 1 for the others, which have few or are held whole.
    pub fn length(&self, group: Group) -> u32 {
        match (self.operation, self.algorithm) {
            (Operation::Allreduce, Algorithm::Ring) => ring::allreduce_length(group),
            (Operation::Alltoall, Algorithm::Pairwise) => pairwise::alltoall_length(group),
            _ => 1,
        }
    }

    /// Appends some steps only, so that a rank need not hold all of a long operation.
    pub fn append_steps(&self, out: &mut Vec<Op>, group: Group, me: u32, steps: Range<u32>) {
        match (self.operation, self.algorithm) {
            (Operation::Allreduce, Algorithm::Ring) => {
                ring::allreduce_steps(out, group, me, self.bytes, steps);
            }
            (Operation::Alltoall, Algorithm::Pairwise) => {
                pairwise::alltoall_steps(out, group, me, self.bytes, steps);
            }
            _ => self.append(out, group, me),
        }
    }
}

/// The part at a place of `bytes` split among `n`: parts of one byte more first.
pub fn split(bytes: u64, n: u32, place: u32) -> u64 {
    let (size, larger) = (bytes / u64::from(n), bytes % u64::from(n));
    size + u64::from(u64::from(place) < larger)
}

fn send(out: &mut Vec<Op>, to: u32, bytes: u64) {
    out.push(Op::Send {
        to,
        bytes,
        tag: TAG,
    });
}

fn receive(out: &mut Vec<Op>, from: u32, bytes: u64) {
    out.push(Op::Receive {
        from: Some(from),
        bytes,
        tag: Some(TAG),
    });
}

/// Receives and sends at once.
fn exchange(out: &mut Vec<Op>, to: u32, from: u32, sent: u64, received: u64) {
    receive(out, from, received);
    send(out, to, sent);
    out.push(Op::Wait);
}

/// Appends an operation backwards: the last step first, and each message the other way. That makes a
/// reduction of a broadcast, and a reduce-scatter of an allgather.
fn reversed(out: &mut Vec<Op>, forwards: impl FnOnce(&mut Vec<Op>)) {
    let mut ops = Vec::new();
    forwards(&mut ops);
    for step in ops.split(|op| *op == Op::Wait).rev() {
        for op in step {
            match *op {
                Op::Send { to, bytes, .. } => receive(out, to, bytes),
                Op::Receive {
                    from: Some(from),
                    bytes,
                    ..
                } => send(out, from, bytes),
                other => out.push(other),
            }
        }
        if !step.is_empty() {
            out.push(Op::Wait);
        }
    }
}

/// Exchange with both neighbours in an order of the ranks, given by the neighbours' ranks.
pub fn neighbours(out: &mut Vec<Op>, left: u32, right: u32, bytes: u64, messages: u32) {
    let (to_left, to_right) = (TAG + 1, TAG + 2);
    for _ in 0..messages {
        out.push(Op::Receive {
            from: Some(left),
            bytes,
            tag: Some(to_right),
        });
        out.push(Op::Receive {
            from: Some(right),
            bytes,
            tag: Some(to_left),
        });
    }
    for _ in 0..messages {
        out.push(Op::Send {
            to: left,
            bytes,
            tag: to_left,
        });
        out.push(Op::Send {
            to: right,
            bytes,
            tag: to_right,
        });
    }
    out.push(Op::Wait);
}
