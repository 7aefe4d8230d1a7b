//! Message-passing programs on the hosts of a fabric.
//!
//! A [job](JobSpec) is a group of ranks, each with a [script](Script): a sequence of [operations](Op), made while it
//! runs, or a [`Schedule`] of operations that wait for each other, as in [GOAL](goal). Messages match by MPI's rules;
//! large messages use a handshake. [`Programs`] is driven by time and deliveries; [`Load`] runs it next to other
//! traffic. A [`Driver`] requests messages at run time.
//!
//! [`collective`] has the usual algorithms, [`trace`] the formats of traces, [`gpcnet`] and [`hpcc`] two benchmarks.

pub mod collective;
mod demand;
mod detail;
pub mod draft;
mod error;
mod external;
mod flows;
pub mod goal;
pub mod gpcnet;
pub mod hpcc;
mod load;
pub mod loops;
mod mail;
mod matching;
mod message;
mod op;
mod pattern;
mod plan;
mod rank;
mod ranks;
mod record;
mod schedule;
mod scheduled;
pub mod section;
mod senders;
mod sequence;
mod shares;
mod spec;
mod stream;
pub mod trace;
pub mod training;

pub use detail::{MessageRecord, StepRecord};
pub use error::Fault;
pub use external::{Driver, LARGEST_MESSAGE, Request, SendQueue};
pub use load::Load;
pub use matching::{Arrived, Matcher, Posted};
pub use op::{Group, Op, Repeated, Steps};
pub use pattern::{Burst, Bursts, KindWork, Looped, ProgramKind};
pub use plan::{JobPlan, Placement, Plan, Work};
pub use rank::RankTotals;
pub use ranks::Programs;
pub use record::{JobRecord, Mark, OpTimes, RankRecord};
pub use schedule::{Action, Dependency, Schedule, ScheduleOp};
pub use section::{Messaging, Rendezvous, Striping};
pub use senders::Payload;
pub use spec::{JobSpec, Script};
pub use stream::{Stream, StreamAction, StreamRank, StreamStep};
