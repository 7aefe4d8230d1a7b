//! Operations of a rank that wait for each other: what a GOAL schedule says.

use silvan_core::Span;

/// What an operation of a schedule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Computes for this long.
    Calc(Span),
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
}

/// An operation of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleOp {
    /// What it does.
    pub action: Action,
    /// Which processor of the rank does it. Operations of one processor follow each other.
    pub cpu: u32,
    /// Where it is in the schedule's text, from 1.
    pub line: u32,
}

/// An operation that waits for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// Number of the operation that waits.
    pub later: u32,
    /// Number of the one that it waits for.
    pub earlier: u32,
    /// Whether it waits for the start only, not for the end.
    pub start_only: bool,
}

/// The operations of one rank and what they wait for, checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    ops: Vec<ScheduleOp>,
    /// How many others each operation waits for.
    waits: Vec<u32>,
    /// Who waits for the end of each operation, and who for its start: first those of operation 0.
    by_end: Followers,
    by_start: Followers,
    cpus: u32,
}

/// Lists by operation, joined.
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
    /// Joins operations and dependencies, which name operations by their place.
    ///
    /// # Errors
    ///
    /// The place of an operation that in the end waits for itself.
    pub fn new(ops: Vec<ScheduleOp>, dependencies: &[Dependency]) -> Result<Self, usize> {
        let mut waits = vec![0; ops.len()];
        for dependency in dependencies {
            waits[dependency.later as usize] += 1;
        }
        let schedule = Self {
            by_end: Followers::new(ops.len(), dependencies, false),
            by_start: Followers::new(ops.len(), dependencies, true),
            cpus: ops.iter().map(|op| op.cpu + 1).max().unwrap_or(1),
            ops,
            waits,
        };
        match schedule.find_cycle() {
            Some(op) => Err(op),
            None => Ok(schedule),
        }
    }

    /// An operation that waits for itself in the end (Kahn 1962 leaves such ones over).
    fn find_cycle(&self) -> Option<usize> {
        let mut waits = self.waits.clone();
        let mut ready: Vec<u32> = self.first_ready().collect();
        while let Some(op) = ready.pop() {
            for later in self.after_end(op).chain(self.after_start(op)) {
                waits[later as usize] -= 1;
                if waits[later as usize] == 0 {
                    ready.push(later);
                }
            }
        }
        waits.iter().position(|left| *left > 0)
    }

    /// The operations, in the order of the text.
    pub fn ops(&self) -> &[ScheduleOp] {
        &self.ops
    }

    /// How many processors the rank uses.
    pub fn cpus(&self) -> u32 {
        self.cpus
    }

    /// How many others each operation waits for.
    pub fn waits(&self) -> &[u32] {
        &self.waits
    }

    /// Operations that wait for none.
    pub fn first_ready(&self) -> impl Iterator<Item = u32> + '_ {
        let waits = self.waits.iter().enumerate();
        waits
            .filter(|(_, waits)| **waits == 0)
            .map(|(op, _)| op as u32)
    }

    /// Operations that wait for the end of this one.
    ///
    /// # Panics
    ///
    /// When there is no operation of this number.
    pub fn after_end(&self, op: u32) -> impl Iterator<Item = u32> + '_ {
        self.by_end.later[self.by_end.range(op)].iter().copied()
    }

    /// Operations that wait for the start of this one.
    ///
    /// # Panics
    ///
    /// When there is no operation of this number.
    pub fn after_start(&self, op: u32) -> impl Iterator<Item = u32> + '_ {
        self.by_start.later[self.by_start.range(op)].iter().copied()
    }
}
