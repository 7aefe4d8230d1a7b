use std::fmt::Write;

use silvan_cc::workload::Offer;
use silvan_core::{HostId, Sl, Time};

use crate::programs::matching::{Arrived, Posted};
use crate::programs::message::{Message, Stage};
use crate::programs::rank::Work;
use crate::programs::ranks::Programs;
use crate::programs::schedule::Action;

/// Why programs cannot go on, in words that name ranks and operations.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Ranks wait for what will never come.
    #[error("program {job:?} is stuck at {at}: {what}")]
    Stuck {
        /// Name of the job.
        job: String,
        /// Time of the last event in the program.
        at: Time,
        /// The waiting ranks, and the operations that they wait for.
        what: String,
    },
    /// A job has ended with messages that no rank has received.
    #[error("program {job:?} has ended, but {what}")]
    LeftOver {
        /// Name of the job.
        job: String,
        /// The messages.
        what: String,
    },
    /// A message is longer than its receive has room for.
    #[error("program {job:?}: {what}")]
    TooLong {
        /// Name of the job.
        job: String,
        /// The message and the receive.
        what: String,
    },
    /// A connection has given up a message after its last retry.
    #[error("program {job:?} lost its connection at {at}: {what}")]
    GivenUp {
        /// Name of the job.
        job: String,
        /// Time of the last timeout.
        at: Time,
        /// The message.
        what: String,
    },
}

impl Fault {
    /// Name of the job.
    pub fn job(&self) -> &str {
        match self {
            Self::Stuck { job, .. }
            | Self::LeftOver { job, .. }
            | Self::TooLong { job, .. }
            | Self::GivenUp { job, .. } => job,
        }
    }

    /// Returns the hint.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Stuck { .. } => {
                "each receive needs a send between the same two ranks with its tag, and no two ranks may wait for each other"
            }
            Self::LeftOver { .. } => {
                "each send needs a receive between the same two ranks with its tag"
            }
            Self::TooLong { .. } => "receive at least as many bytes as are sent",
            Self::GivenUp { .. } => {
                "repair the cable earlier, or raise timeout or retry-count of host.retry"
            }
        }
    }
}

const NAMED: usize = 4;

fn join(items: Vec<String>) -> String {
    let more = items.len().saturating_sub(NAMED);
    let mut text = items[..items.len() - more].join("; ");
    if more > 0 {
        let _ = write!(text, "; and {more} more");
    }
    text
}

impl Programs {
    fn operation(&self, rank: u32, token: u32) -> String {
        let number = rank - self.first_of(rank);
        match &self.ranks[rank as usize].work {
            Work::Sequence(_) | Work::External => format!("rank {number}, operation {token}"),
            Work::Schedule(run) => match run.schedule.ops()[token as usize].line {
                0 => format!("rank {number}, operation {token}"),
                line => format!("rank {number}, line {line}"),
            },
        }
    }

    fn waiting(&self, rank: u32, posted: &Posted) -> String {
        let from = posted
            .from
            .map_or("any rank".to_owned(), |from| format!("rank {from}"));
        let tag = posted
            .tag
            .map_or("any tag".to_owned(), |tag| format!("tag {tag}"));
        let operation = self.operation(rank, posted.token);
        if let Some(send) = self.blocked_send(rank, posted) {
            return format!(
                "{operation} waits for the message with {tag} of {send}, which has not started"
            );
        }
        format!("{operation}: no rank sends what is to be received from {from} with {tag}")
    }

    /// The send that a receive waits for, if its rank waits itself.
    fn blocked_send(&self, rank: u32, posted: &Posted) -> Option<String> {
        let first = self.first_of(rank);
        let from = first + posted.from?;
        let Work::Schedule(run) = &self.ranks[from as usize].work else {
            return None;
        };
        let ops = run.schedule.ops().iter().zip(&run.times);
        let send = ops.enumerate().find(|(_, (op, times))| {
            let is_it = matches!(op.action, Action::Send { to, tag, .. }
                if first + to == rank && posted.tag.is_none_or(|wanted| wanted == tag));
            is_it && times.0.is_none()
        });
        send.map(|(op, _)| self.operation(from, op as u32))
    }

    fn unwanted(&self, rank: u32, arrived: &Arrived) -> String {
        let sender = self.message(arrived.message);
        let operation = self.operation(sender.source, sender.source_token);
        let (to, tag, bytes) = (rank - self.first_of(rank), arrived.tag, arrived.bytes);
        format!("{operation}: rank {to} does not receive the {bytes} bytes with tag {tag}")
    }

    fn unwanted_of(&self, ranks: std::ops::Range<u32>) -> Vec<String> {
        let each = ranks.flat_map(|rank| {
            let arrived = self.ranks[rank as usize].matcher.arrived();
            arrived.map(move |message| self.unwanted(rank, message))
        });
        each.collect()
    }

    pub(crate) fn stuck(&self, job: u32, at: Time) -> Fault {
        let job = &self.jobs[job as usize];
        let ranks = job.first..job.first + job.size;
        let items: Vec<String> = ranks
            .clone()
            .flat_map(|rank| {
                let posted = self.ranks[rank as usize].matcher.posted();
                posted.map(move |receive| self.waiting(rank, receive))
            })
            .collect();
        let unwanted = self.unwanted_of(ranks);
        let parts = [items, unwanted].map(join);
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        Fault::Stuck {
            job: job.name.clone(),
            at,
            what: parts.join("; "),
        }
    }

    pub(crate) fn left_over(&self, job: u32) -> Option<Fault> {
        let job = &self.jobs[job as usize];
        let items = self.unwanted_of(job.first..job.first + job.size);
        (!items.is_empty()).then(|| Fault::LeftOver {
            job: job.name.clone(),
            what: join(items),
        })
    }

    /// A message in words that name its ranks.
    pub(crate) fn describe_message(&self, slot: u32) -> String {
        let message = self.message(slot);
        let (from, to) = message.way();
        let number = |rank: u32| rank - self.first_of(rank);
        let (from, to) = (number(from), number(to));
        let (bytes, tag) = (message.bytes, message.tag);
        let kind = match message.stage {
            Stage::RequestToSend => "the request to send",
            Stage::ClearToSend => "the clear to send",
            Stage::GetRequest => "the read request",
            Stage::Finished => "the end of the read",
            Stage::Eager | Stage::Data | Stage::Put | Stage::GetReply => {
                return format!("{bytes} bytes with tag {tag} from rank {from} to rank {to}");
            }
        };
        format!("{kind} of {bytes} bytes with tag {tag} from rank {from} to rank {to}")
    }

    pub(crate) fn given_up(&self, slot: u32, at: Time) -> Fault {
        let job = self.ranks[self.message(slot).source as usize].job;
        let message = self.describe_message(slot);
        Fault::GivenUp {
            job: self.jobs[job as usize].name.clone(),
            at,
            what: format!("{message} were not acknowledged after the last retry"),
        }
    }

    /// Job and words of a message of which packets were lost; `None` if it is not of a program.
    pub fn lost_message(
        &self,
        (from, to): (HostId, HostId),
        (sl, class, number): (Sl, u16, u16),
    ) -> Option<(usize, String)> {
        let offer = Offer {
            dst: to,
            bytes: 0,
            sl,
            class,
            last: false,
            behind: 0,
            number,
            queue: 0,
        };
        let flow = self.flows.of_packet(from, &offer, false)?;
        let slot = self.flows.sent_of(flow, number)?;
        let job = self.ranks[self.message(slot).source as usize].job as usize;
        (self.jobs[job].class == class).then(|| (job, self.describe_message(slot)))
    }

    pub(crate) fn too_long(&self, message: &Message, posted: &Posted) -> Fault {
        let job = self.ranks[message.source as usize].job;
        let send = self.operation(message.source, message.source_token);
        let receive = self.operation(message.target, posted.token);
        let (bytes, room) = (message.bytes, posted.bytes);
        Fault::TooLong {
            job: self.jobs[job as usize].name.clone(),
            what: format!("{send} sends {bytes} bytes, but {receive} has room for {room} only"),
        }
    }
}
