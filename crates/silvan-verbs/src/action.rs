use std::sync::Arc;

use crate::message::Message;
use crate::verbs::{ChannelHandle, ContextId, CqHandle, DeviceId, ProcessId};

/// Work for the caller, in the order in which it must begin.
///
/// [`Action::Copy`], [`Action::Read`] and [`Action::Atomic`] end with one call of
/// [`Verbs::finish`](crate::Verbs::finish). Callers delay the replies of DEREG_MR, DESTROY_QP and MODIFY_QP to RESET
/// until transfers into the process's memory have ended.
#[derive(Clone, Debug)]
pub enum Action {
    /// Inject `message` at the port of `message.from`; messages of one [`Flow`](crate::Flow) depart in order.
    Inject(Message),
    /// Remove what has not left the port of messages that a queue pair sends.
    Withdraw {
        /// Adapter of the queue pair.
        from: DeviceId,
        /// Its number.
        queue_pair: u32,
        /// True for its responses and acknowledgements, false for its requests.
        responds: bool,
    },
    /// Report no later [`gap`](crate::Verbs::gap) in messages that a queue pair has sent.
    Forget {
        /// Adapter of the queue pair.
        from: DeviceId,
        /// Its number.
        queue_pair: u32,
    },
    /// Copy `pieces`, whose sources and targets may be different processes.
    Copy {
        /// Transfer that [`Verbs::finish`](crate::Verbs::finish) names.
        id: TransferId,
        /// Process whose memory is written.
        to: ProcessId,
        /// Parts of the copy, each contiguous on both sides; none overlaps another in `to`.
        pieces: Vec<Piece>,
    },
    /// Read `pieces` of a process; the outcome is [`Outcome::Bytes`] with all of them, one after the other.
    Read {
        /// Transfer that [`Verbs::finish`](crate::Verbs::finish) names.
        id: TransferId,
        /// Process whose memory is read.
        from: ProcessId,
        /// Address and length of each part.
        pieces: Vec<(u64, u64)>,
    },
    /// Change 8 aligned bytes of a process atomically; the outcome is [`Outcome::Original`].
    Atomic {
        /// Transfer that [`Verbs::finish`](crate::Verbs::finish) names.
        id: TransferId,
        /// Process whose memory changes.
        at: ProcessId,
        /// Address of the 8 bytes, in the byte order of the machine.
        address: u64,
        /// Change to make.
        operation: AtomicOperation,
    },
    /// Completions wait for [`Verbs::take_completions`](crate::Verbs::take_completions) or POLL_CQ.
    Completion {
        /// Context of the queue.
        context: ContextId,
        /// Completion queue.
        cq: CqHandle,
    },
    /// A completion channel is readable: take events by [`Verbs::take_channel_event`](crate::Verbs::take_channel_event).
    ChannelEvent {
        /// Context of the channel.
        context: ContextId,
        /// Completion channel.
        channel: ChannelHandle,
    },
    /// Events wait for [`Verbs::take_async_event`](crate::Verbs::take_async_event).
    AsyncEvent {
        /// Context with the event.
        context: ContextId,
    },
    /// A port's first queue pair joins (`member`) or its last one leaves a group; the subnet manager does the
    /// forwarding.
    Multicast {
        /// Adapter whose port it is.
        device: DeviceId,
        /// MGID of the group.
        group: [u8; 16],
        /// True for the first attached queue pair, false after the last one.
        member: bool,
    },
}

/// A transfer of memory in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransferId(pub u64);

/// One contiguous part of a copy.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Origin of the bytes.
    pub from: Source,
    /// Address in the process that is written.
    pub to: u64,
    /// Length in bytes, never 0.
    pub length: u64,
}

/// Origin of copied bytes.
#[derive(Clone, Debug)]
pub enum Source {
    /// Memory of a process.
    Memory {
        /// Process that is read.
        process: ProcessId,
        /// First address.
        address: u64,
    },
    /// Bytes that the crate holds: inline data, a global route header, an atomic's old value, or unreliable data.
    Bytes {
        /// Bytes of the whole message.
        data: Arc<[u8]>,
        /// First byte of this part.
        offset: usize,
    },
}

/// Change of 8 bytes of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicOperation {
    /// Store `swap` if the value equals `compare`.
    CompareAndSwap {
        /// Value to compare with.
        compare: u64,
        /// Value to store.
        swap: u64,
    },
    /// Add a value, modulo 2^64.
    FetchAndAdd(u64),
}

/// Result of a transfer.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The copy is complete.
    Copied,
    /// Bytes that [`Action::Read`] read.
    Bytes(Arc<[u8]>),
    /// Value before [`Action::Atomic`].
    Original(u64),
    /// The memory is not there.
    Fault(Fault),
}

/// Memory that could not be accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Memory that is read.
    Source,
    /// Memory that is written.
    Target,
}
