//! Message-passing programs: a [job](JobSpec) of ranks, each with a [script](Script) of
//! [operations](Op) or a [`Schedule`], as in [GOAL](goal).
//!
//! Messages match by MPI's rules, large ones after a handshake.

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
pub mod inference;
mod load;
pub mod loops;
mod mail;
mod matching;
mod message;
pub mod nccl;
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
mod sharp;
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
pub use sharp::{Sharp, SharpMode, SharpNode, SharpPlan};
pub use spec::{Helpers, JobSpec, Script, Straggler};
pub use stream::{Stream, StreamAction, StreamRank, StreamStep};
