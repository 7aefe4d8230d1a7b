//! What is known of the programs before a run.

use std::sync::Arc;

use silvan_core::{Bytes, HostId, Rate, Sl, Span, Time};

use crate::programs::op::Steps;
use crate::programs::schedule::Schedule;

/// How messages become packets, and what they cost the processors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Messaging {
    /// Largest message that is sent at once; larger ones ask the receiver first (request to send, clear
    /// to send, data).
    pub eager_limit: Bytes,
    /// How many messages that were sent at once may wait for their receives at one rank, from one other.
    /// Beyond that small messages ask first too, as MPI libraries do when they run out of buffers.
    pub eager_credits: u32,
    /// Processor time to send or to receive a message: o of LogP (Culler et al., PPoPP 1993).
    pub overhead: Span,
    /// Processor time for each byte after the first of a message that is sent or received: O of LogGOPS
    /// (Hoefler, Schneider and Lumsdaine, HPDC 2010). A sender spends it while the message leaves, a
    /// receiver when the message has come. Reading and writing memory cost none.
    pub overhead_per_byte: Span,
    /// Payload of a request to send, a clear to send and a request to get.
    pub control: Bytes,
    /// Time that a message between two ranks of a host takes, in addition to that of its bytes.
    pub local_latency: Span,
    /// Rate at which a rank copies messages to others of its host.
    pub local_rate: Rate,
    /// Largest payload of a packet.
    pub mtu: Bytes,
}

impl Messaging {
    /// What the bytes of a message cost the processor at either end, in addition to [`overhead`](Self::overhead).
    pub fn bytes_overhead(&self, bytes: u64) -> Span {
        self.overhead_per_byte * bytes.saturating_sub(1)
    }
}

/// The program of one rank.
#[derive(Debug)]
pub enum Script {
    /// One operation after the other.
    Sequence(Box<dyn Steps>),
    /// Operations that wait for each other.
    Schedule(Arc<Schedule>),
}

/// Some ranks with a program, which only talk to each other.
#[derive(Debug)]
pub struct JobSpec {
    /// The name.
    pub name: String,
    /// Number of the traffic class that its packets are counted under.
    pub class: u16,
    /// Service level of its packets.
    pub sl: Sl,
    /// When the ranks begin.
    pub start: Time,
    /// Whether the run may end before this job does.
    pub background: bool,
    /// Host and program of every rank.
    pub ranks: Vec<(HostId, Script)>,
    /// Names of what is measured.
    pub labels: Vec<String>,
}
