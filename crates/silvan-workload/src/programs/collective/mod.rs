//! Collective operations as one rank's operations; ranks of a group call them in the same order.
//!
//! R. Thakur, R. Rabenseifner and W. Gropp, "Optimization of Collective Communication Operations in MPICH", IJHPCA
//! 19:1, 2005.

use std::ops::Range;

use schemars::JsonSchema;
use serde::de::value::StrDeserializer;
use serde::{Deserialize, Serialize};

use crate::programs::op::{Group, Op};

/// Tag of the messages of collective operations: beyond those that programs use.
pub const TAG: u32 = 0xffff_0000;

macro_rules! with_operations {
    ($next:ident $($rest:tt)*) => {
        $next! { $($rest)* {
            Barrier = "barrier", Doubling, "Barriers.",
                "No rank leaves before all have entered.";
            Allreduce = "allreduce", Ring, "Allreduces.",
                "All ranks get the sum of all vectors; `bytes` is the size of the vector.";
            ReduceScatter = "reduce-scatter", Ring, "Reduce-scatters.",
                "Every rank gets its part of the sum of all vectors; `bytes` is the size of the whole vector.";
            Allgather = "allgather", Ring, "Allgathers.",
                "All ranks get the parts of all; `bytes` is the size of all parts together.";
            Alltoall = "alltoall", Pairwise, "All-to-alls.",
                "Every rank has a message for each other; `bytes` is the size of one.";
            Broadcast = "broadcast", Tree, "Broadcasts from rank 0.",
                "All ranks get the vector of the root.";
            Reduce = "reduce", Tree, "Reductions to rank 0.",
                "The root gets the sum of all vectors.";
            Incast = "incast", Direct, "All ranks send to rank 0 at once.",
                "The root gets a message from each other rank, all sent at once; `bytes` is the size of one.";
            Scatter = "scatter", Direct, "Rank 0 sends to all ranks at once.",
                "The root has a message for each other rank; `bytes` is the size of one.";
        } }
    };
}
pub(crate) use with_operations;

macro_rules! declare_operations {
    ({ $($operation:ident = $name:literal, $default:ident, $program:literal, $summary:literal;)* }) => {
        /// Kind of a collective operation.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
        )]
        pub enum Operation {
            $(
                #[doc = $summary]
                #[serde(rename = $name)]
                $operation,
            )*
        }

        impl Operation {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$operation),*];

            /// The algorithm where none is given.
            pub const fn default_algorithm(self) -> Algorithm {
                match self {
                    $(Self::$operation => Algorithm::$default,)*
                }
            }
        }
    };
}

with_operations! { declare_operations }

macro_rules! register {
    ($($module:ident::$algorithm:ident = $name:literal, $summary:literal;)*) => {
        $(pub mod $module;)*

        /// By which algorithm.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
        )]
        pub enum Algorithm {
            $(
                #[doc = $summary]
                #[serde(rename = $name)]
                $algorithm,
            )*
        }

        impl Algorithm {
            /// All of them, in the order of their registration.
            pub const ALL: &[Self] = &[$(Self::$algorithm),*];

            /// Returns the name in scenarios.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$algorithm => $name,)*
                }
            }

            fn implementation(self) -> &'static dyn CollectiveAlgorithm {
                match self {
                    $(Self::$algorithm => &$module::$algorithm,)*
                }
            }
        }
    };
}

register! {
    ring::Ring = "ring", "Every rank sends to its right neighbour only.";
    tree::Tree = "tree", "Along a binomial tree.";
    doubling::Doubling = "doubling", "Partners at distance 1, 2, 4 and so on; an allreduce exchanges the whole vector in each step.";
    halving::Halving = "halving", "An allreduce of a reduce-scatter and an allgather with partners at distances that are powers of two.";
    direct::Direct = "direct", "All messages at once, each straight to the rank that needs it.";
    pairwise::Pairwise = "pairwise", "One partner at a time, each rank with another one.";
    sharp::Sharp = "sharp", "In the switches, over aggregation trees of `traffic.sharp`; for programs of this operation alone.";
    double_tree::DoubleTree = "double-tree", "Two binary trees, each for every second channel, in which inner ranks of the one are leaves of the other; chains within servers.";
    nccl::Nccl = "nccl", "Ring or double tree, protocol, channels and chunks as NCCL chooses by size, from `traffic.nccl`.";
    hierarchy::Hierarchical = "hierarchical", "First among the ranks of a server, then between servers, then among the ranks of a server again.";
}

/// An algorithm of collective operations.
pub trait CollectiveAlgorithm: Sync {
    /// The operations that it does.
    fn operations(&self) -> &'static [Operation];

    /// Appends the operations of the rank at place `me` of two ranks or more. `collective` is one of
    /// [`operations`](Self::operations) without [`Operation::Reduce`], which is a broadcast backwards.
    fn append(&self, out: &mut Vec<Op>, group: Group, me: u32, collective: &Collective);

    /// A bound on the operations that [`append`](Self::append) adds for a rank of so many, with one for each wait.
    fn most_ops(&self, ranks: u32) -> u64 {
        6 * (u64::from(ranks) + rounds(ranks) + 1)
    }

    /// Number of steps that [`append_steps`](Self::append_steps) tells apart; 1 where there are few.
    fn length(&self, _operation: Operation, _group: Group) -> u32 {
        1
    }

    /// Appends some steps only, so that a rank need not hold all of a long operation.
    fn append_steps(
        &self,
        out: &mut Vec<Op>,
        group: Group,
        me: u32,
        collective: &Collective,
        _steps: Range<u32>,
    ) {
        self.append(out, group, me, collective);
    }
}

fn rounds(ranks: u32) -> u64 {
    u64::from(u32::BITS - ranks.leading_zeros())
}

impl Operation {
    /// The algorithms that do it; the first one is the default.
    pub fn algorithms(self) -> Vec<Algorithm> {
        let default = self.default_algorithm();
        let others = Algorithm::ALL.iter().copied();
        let others = others.filter(|one| *one != default && self.is_done_by(*one));
        std::iter::once(default).chain(others).collect()
    }

    /// Returns true if an algorithm does it.
    pub fn is_done_by(self, algorithm: Algorithm) -> bool {
        algorithm.implementation().operations().contains(&self)
    }

    /// The operation of this name, as scenarios spell it.
    pub fn named(name: &str) -> Option<Self> {
        named(name)
    }

    /// Returns true if one rank has another part than all others.
    pub const fn has_root(self) -> bool {
        matches!(
            self,
            Self::Broadcast | Self::Reduce | Self::Incast | Self::Scatter
        )
    }

    /// Returns true if `bytes` is the size of one message instead of a vector that is split.
    pub const fn is_per_message(self) -> bool {
        matches!(self, Self::Alltoall | Self::Incast | Self::Scatter)
    }
}

impl Algorithm {
    /// The algorithm of this name, as scenarios spell it.
    pub fn named(name: &str) -> Option<Self> {
        named(name)
    }
}

fn named<'a, T: Deserialize<'a>>(name: &'a str) -> Option<T> {
    T::deserialize(StrDeserializer::<serde::de::value::Error>::new(name)).ok()
}

/// A collective operation of a group of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collective {
    /// Kind of the operation.
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
            algorithm: operation.default_algorithm(),
            bytes,
            root: 0,
            local: 1,
        }
    }

    /// Bytes of the operation, and those on the busiest rank's links (`algbw`, `busbw` of nccl-tests).
    pub fn bandwidth_bytes(&self, ranks: u32) -> Option<(f64, f64)> {
        let (bytes, n) = (self.bytes as f64, f64::from(ranks));
        let others = (n - 1.0) / n;
        match self.operation {
            Operation::Barrier => None,
            Operation::Allreduce => Some((bytes, 2.0 * others * bytes)),
            Operation::ReduceScatter | Operation::Allgather => Some((bytes, others * bytes)),
            Operation::Broadcast | Operation::Reduce => Some((bytes, bytes)),
            Operation::Alltoall | Operation::Incast | Operation::Scatter => {
                Some((n * bytes, (n - 1.0) * bytes))
            }
        }
    }

    /// Appends the operations of the rank at place `me`.
    pub fn append(&self, out: &mut Vec<Op>, group: Group, me: u32) {
        if group.size < 2 {
            return;
        }
        let algorithm = self.algorithm.implementation();
        match self.operation {
            Operation::Reduce => {
                let broadcast = Self {
                    operation: Operation::Broadcast,
                    ..*self
                };
                reversed(out, |out| algorithm.append(out, group, me, &broadcast));
            }
            _ => algorithm.append(out, group, me, self),
        }
    }

    fn part(&self, group: Group) -> impl Fn(u32) -> u64 + use<> {
        let (bytes, n) = (self.bytes, group.size);
        move |place| split(bytes, n, place)
    }

    /// A bound on the operations that [`append`](Self::append) adds for a rank in a group of so many, with one for each wait.
    pub fn most_ops(&self, ranks: u32) -> u64 {
        self.algorithm.implementation().most_ops(ranks)
    }

    /// Steps that [`append_steps`](Self::append_steps) distinguishes: the ranks of a ring or pairwise, else 1.
    pub fn length(&self, group: Group) -> u32 {
        { self.algorithm.implementation() }.length(self.operation, group)
    }

    /// Appends some steps only, so that a rank need not hold all of a long operation.
    pub fn append_steps(&self, out: &mut Vec<Op>, group: Group, me: u32, steps: Range<u32>) {
        match self.length(group) {
            1 => self.append(out, group, me),
            _ => { self.algorithm.implementation() }.append_steps(out, group, me, self, steps),
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

fn exchange(out: &mut Vec<Op>, to: u32, from: u32, sent: u64, received: u64) {
    receive(out, from, received);
    send(out, to, sent);
    out.push(Op::Wait);
}

/// A broadcast becomes a reduction, an allgather a reduce-scatter.
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
