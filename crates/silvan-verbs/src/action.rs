//! Actions: work that [`Verbs`](crate::Verbs) asks of its caller.

use std::sync::Arc;

use crate::message::Message;
use crate::verbs::{ChannelHandle, ContextId, CqHandle, DeviceId, ProcessId};

/// Work for the caller, in the order in which it must begin.
///
/// A transfer of memory ([`Action::Copy`], [`Action::Read`], [`Action::Atomic`]) ends with one call of
/// [`Verbs::finish`](crate::Verbs::finish), at once or later. Completions that depend on it follow that call, and so do flushes.
///
/// A program may use its memory again after DEREG_MR, DESTROY_QP, or MODIFY_QP to RESET. A caller whose transfers take time
/// delays the replies of these commands until transfers into the memory of the process have ended.
#[derive(Clone, Debug)]
pub enum Action {
    /// Inject `message` into the fabric at the port of `message.from`.
    ///
    /// Messages of one [`Flow`](crate::Flow) must depart in the order of their actions.
    Inject(Message),
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
    /// Completions wait in a queue: take them by [`Verbs::take_completions`](crate::Verbs::take_completions), or leave them
    /// for the command POLL_CQ.
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
    /// The asynchronous descriptor of a context is readable: take events by
    /// [`Verbs::take_async_event`](crate::Verbs::take_async_event).
    AsyncEvent {
        /// Context with the event.
        context: ContextId,
    },
    /// A port joins (`member`) or leaves a multicast group: its first queue pair attached, or its last one detached.
    ///
    /// The group's forwarding is the subnet manager's, so a caller may ignore this.
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
    /// Bytes that the crate holds: inline data, a global route header, a value that an atomic operation returned, or data of
    /// an unreliable message, which were read before it departed.
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
