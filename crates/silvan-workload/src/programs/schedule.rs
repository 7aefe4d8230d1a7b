use silvan_core::Span;

/// Action of an operation of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Computes for this long.
    Calc(Span),
    /// Waits for this long, without computing.
    Delay(Span),
    /// Sends a message.
    Send {
        /// The receiving rank.
        to: u32,
        /// Size in bytes.
        bytes: u64,
        /// Tag.
        tag: u32,
    },
    /// Receives a message.
    Receive {
        /// The sending rank; `None` is any.
        from: Option<u32>,
        /// Room in bytes.
        bytes: u64,
        /// Tag; `None` is any.
        tag: Option<u32>,
    },
    /// Writes into the memory of another rank, and ends when the bytes have arrived.
    Put {
        /// The rank written to.
        to: u32,
        /// Size in bytes.
        bytes: u64,
    },
}

/// An operation of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleOp {
    /// Action of the operation.
    pub action: Action,
    /// Processor of the rank. Operations of one processor follow each other.
    pub cpu: u32,
    /// Line in the schedule's text, from 1.
    pub line: u32,
}

/// An operation that waits for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// Number of the operation that waits.
    pub later: u32,
    /// Number of the operation that it waits for.
    pub earlier: u32,
    /// True if the operation waits only for the start, not for the end.
    pub start_only: bool,
}

/// Finds a cycle among edges (waiting, awaited) by topological sorting (A. B. Kahn, CACM 5:11, 1962).
pub(crate) fn cycle(
    nodes: usize,
    edges: impl Iterator<Item = (u32, u32)> + Clone,
) -> Option<Vec<u32>> {
    let mut waits = vec![0_u32; nodes];
    let mut first = vec![0_u32; nodes + 1];
    for (later, earlier) in edges.clone() {
        waits[later as usize] += 1;
        first[earlier as usize + 1] += 1;
    }
    for node in 0..nodes {
        first[node + 1] += first[node];
    }
    let mut place = first.clone();
    let mut after = vec![0; first[nodes] as usize];
    for (later, earlier) in edges.clone() {
        let place = &mut place[earlier as usize];
        after[*place as usize] = later;
        *place += 1;
    }
    let mut ready: Vec<u32> = (0..nodes as u32)
        .filter(|node| waits[*node as usize] == 0)
        .collect();
    while let Some(node) = ready.pop() {
        let range = first[node as usize] as usize..first[node as usize + 1] as usize;
        for later in &after[range] {
            waits[*later as usize] -= 1;
            if waits[*later as usize] == 0 {
                ready.push(*later);
            }
        }
    }
    let start = waits.iter().position(|left| *left > 0)?;
    let mut next = vec![u32::MAX; nodes];
    for (later, earlier) in edges {
        if waits[later as usize] > 0 && waits[earlier as usize] > 0 {
            next[later as usize] = earlier;
        }
    }
    let mut seen = vec![false; nodes];
    let mut node = start as u32;
    while !std::mem::replace(&mut seen[node as usize], true) {
        node = next[node as usize];
    }
    let mut cycle = vec![node];
    let mut at = next[node as usize];
    while at != node {
        cycle.push(at);
        at = next[at as usize];
    }
    Some(cycle)
}

/// The operations of a rank and their dependencies, without cycles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    ops: Vec<ScheduleOp>,
    /// By operation: number of awaited operations.
    waits: Vec<u32>,
    /// By operation: operations that wait for its end, and for its start.
    by_end: Followers,
    by_start: Followers,
    /// Operations of other ranks that wait for an end: operation, rank, operation there, sorted.
    remote: Vec<(u32, u32, u32)>,
    cpus: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Followers {
    first: Vec<u32>,
    later: Vec<u32>,
}

impl Followers {
    fn new(ops: usize, dependencies: &[Dependency], start_only: bool) -> Self {
        let mut chosen: Vec<(u32, u32)> = dependencies
            .iter()
            .filter(|dependency| dependency.start_only == start_only)
            .map(|dependency| (dependency.earlier, dependency.later))
            .collect();
        chosen.sort_unstable();
        let mut first = vec![0; ops + 1];
        for (earlier, _) in &chosen {
            first[*earlier as usize + 1] += 1;
        }
        for op in 0..ops {
            first[op + 1] += first[op];
        }
        let later = chosen.into_iter().map(|(_, later)| later).collect();
        Self { first, later }
    }

    fn range(&self, op: u32) -> std::ops::Range<usize> {
        self.first[op as usize] as usize..self.first[op as usize + 1] as usize
    }
}

impl Schedule {
    /// Joins operations and dependencies by index, or returns the indexes of a cycle.
    pub fn new(ops: Vec<ScheduleOp>, dependencies: &[Dependency]) -> Result<Self, Vec<u32>> {
        let mut waits = vec![0; ops.len()];
        for dependency in dependencies {
            waits[dependency.later as usize] += 1;
        }
        let schedule = Self {
            by_end: Followers::new(ops.len(), dependencies, false),
            by_start: Followers::new(ops.len(), dependencies, true),
            remote: Vec::new(),
            cpus: ops.iter().map(|op| op.cpu + 1).max().unwrap_or(1),
            ops,
            waits,
        };
        let edges = dependencies.iter();
        match cycle(
            schedule.ops.len(),
            edges.map(|edge| (edge.later, edge.earlier)),
        ) {
            Some(cycle) => Err(cycle),
            None => Ok(schedule),
        }
    }

    /// Lets the second (rank, operation) of each pair wait for the first, at no cost.
    pub fn link(ranks: &mut [Self], pairs: impl IntoIterator<Item = ((u32, u32), (u32, u32))>) {
        for (earlier, later) in pairs {
            let entry = (earlier.1, later.0, later.1);
            ranks[earlier.0 as usize].remote.push(entry);
            ranks[later.0 as usize].waits[later.1 as usize] += 1;
        }
        for rank in ranks {
            rank.remote.sort_unstable();
        }
    }

    /// Operations of other ranks that wait for the end of this one: rank and operation.
    pub fn remote_after_end(&self, op: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let first = self.remote.partition_point(|entry| entry.0 < op);
        let same = self.remote[first..]
            .iter()
            .take_while(move |entry| entry.0 == op);
        same.map(|&(_, rank, later)| (rank, later))
    }

    /// The operations, in the order of the text.
    pub fn ops(&self) -> &[ScheduleOp] {
        &self.ops
    }

    /// Returns the number of processors that the rank uses.
    pub fn cpus(&self) -> u32 {
        self.cpus
    }

    /// Returns the number of other operations that each operation waits for.
    pub fn waits(&self) -> &[u32] {
        &self.waits
    }

    /// Operations that wait for no other.
    pub fn first_ready(&self) -> impl Iterator<Item = u32> + '_ {
        let waits = self.waits.iter().enumerate();
        waits
            .filter(|(_, waits)| **waits == 0)
            .map(|(op, _)| op as u32)
    }

    /// Operations that wait for the end of this one. Panics when there is no operation of this number.
    pub fn after_end(&self, op: u32) -> impl Iterator<Item = u32> + '_ {
        self.by_end.later[self.by_end.range(op)].iter().copied()
    }

    /// Operations that wait for the start of this one. Panics when there is no operation of this number.
    pub fn after_start(&self, op: u32) -> impl Iterator<Item = u32> + '_ {
        self.by_start.later[self.by_start.range(op)].iter().copied()
    }
}
