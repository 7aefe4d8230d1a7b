//! [`Verbs`]: the adapters of a fabric and the processes that use them.

use std::collections::VecDeque;

use silvan_core::Time;

use crate::action::{Action, Outcome, TransferId};
use crate::device::{DeviceAttributes, PortAttributes};
use crate::message::Message;

/// An adapter of a host; each has one port, number 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(pub u32);

/// A process, as the caller names it: memory belongs to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(pub u64);

/// An open device file of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(pub u64);

/// Handle of a completion channel within its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelHandle(pub u32);

/// Handle of a completion queue within its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CqHandle(pub u32);

/// Answer to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// 0, or the error that `write()` sets. POST commands have a response in either case.
    pub errno: i32,
    /// Bytes for the address `response` of the command; empty if there is none.
    pub response: Vec<u8>,
}

/// The adapters of all hosts of a fabric, and the processes that use them.
#[derive(Debug, Default)]
pub struct Verbs {
    actions: VecDeque<Action>,
}

impl Verbs {
    /// A fabric without adapters.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an adapter with its port.
    pub fn add_device(&mut self, device: DeviceAttributes, port: PortAttributes) -> DeviceId {
        let _ = (device, port);
        todo!()
    }

    /// Sets the attributes of an adapter's port, and reports what changed as asynchronous events: PORT_ACTIVE, PORT_ERR,
    /// LID_CHANGE, SM_CHANGE, PKEY_CHANGE, GID_CHANGE.
    pub fn set_port(&mut self, device: DeviceId, port: PortAttributes) {
        let _ = (device, port);
        todo!()
    }

    /// Reports CLIENT_REREGISTER: a subnet manager asked for it by PortInfo.
    pub fn reregister_clients(&mut self, device: DeviceId) {
        let _ = device;
        todo!()
    }

    /// Opens an adapter for a process.
    pub fn open(&mut self, device: DeviceId, process: ProcessId) -> ContextId {
        let _ = (device, process);
        todo!()
    }

    /// Closes a context and destroys its objects, as the kernel does when a process closes the file or dies.
    /// Unknown contexts are ignored.
    pub fn close(&mut self, now: Time, context: ContextId) {
        let _ = (now, context);
        todo!()
    }

    /// Executes the bytes of one `write()`.
    ///
    /// `inline` has the data of all work requests of POST_SEND with IBV_SEND_INLINE, one after the other: the caller reads them
    /// from the process before it returns, because the program may change them afterwards. It is empty for other commands.
    pub fn execute(
        &mut self,
        now: Time,
        context: ContextId,
        command: &[u8],
        inline: &[u8],
    ) -> Reply {
        let _ = (now, context, command, inline);
        todo!()
    }

    /// The last byte of `message` has left its adapter.
    ///
    /// Timers of RC start here, and sends of UC and UD complete. A caller without this notice calls it when it injects.
    pub fn departed(&mut self, now: Time, message: &Message) {
        let _ = (now, message);
        todo!()
    }

    /// The last byte of `message` has arrived at the port of `device`.
    ///
    /// A message that does not belong there, or whose sender no longer exists, is dropped.
    pub fn arrived(&mut self, now: Time, device: DeviceId, message: Message) {
        let _ = (now, device, message);
        todo!()
    }

    /// `message` will not arrive: it was discarded, or has no path.
    pub fn lost(&mut self, now: Time, message: &Message) {
        let _ = (now, message);
        todo!()
    }

    /// A transfer of memory ended.
    pub fn finish(&mut self, now: Time, id: TransferId, outcome: Outcome) {
        let _ = (now, id, outcome);
        todo!()
    }

    /// Time of the next call of [`run_timers`](Self::run_timers).
    pub fn next_timer(&self) -> Option<Time> {
        todo!()
    }

    /// Runs timers that are due at `now`.
    pub fn run_timers(&mut self, now: Time) {
        let _ = now;
        todo!()
    }

    /// Takes the next action.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Takes up to `most` completions, each as the 48 bytes of `ib_uverbs_wc`.
    ///
    /// They count towards the queue's size until [`consumed`](Self::consumed). POLL_CQ takes and consumes at once.
    pub fn take_completions(
        &mut self,
        context: ContextId,
        cq: CqHandle,
        most: usize,
    ) -> Vec<[u8; 48]> {
        let _ = (context, cq, most);
        todo!()
    }

    /// The process has polled `count` of the completions that were taken.
    pub fn consumed(&mut self, context: ContextId, cq: CqHandle, count: u32) {
        let _ = (context, cq, count);
        todo!()
    }

    /// Takes an event of a completion channel: the 8 bytes of `ib_uverbs_comp_event_desc`.
    ///
    /// Taken events count as reported in the response of DESTROY_CQ; those not yet taken vanish with the queue.
    pub fn take_channel_event(
        &mut self,
        context: ContextId,
        channel: ChannelHandle,
    ) -> Option<[u8; 8]> {
        let _ = (context, channel);
        todo!()
    }

    /// Takes an asynchronous event: the 16 bytes of `ib_uverbs_async_event_desc`.
    ///
    /// Taken events count as reported in the responses of DESTROY_CQ, DESTROY_QP and DESTROY_SRQ.
    pub fn take_async_event(&mut self, context: ContextId) -> Option<[u8; 16]> {
        let _ = context;
        todo!()
    }
}
