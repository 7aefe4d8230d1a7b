use std::collections::{BTreeMap, BTreeSet, VecDeque};

use silvan_core::Time;

use crate::abi::Layout;
use crate::abi::structures::CompletionEvent;
use crate::abi::values::EventType;
use crate::action::{Action, Outcome, TransferId};
use crate::arena::Arena;
use crate::device::{Device, DeviceAttributes, PortAttributes, PortState};
use crate::errno::Errno;
use crate::message::{Destination, Message};
use crate::objects::address::AddressHandle;
use crate::objects::completion::CompletionQueue;
use crate::objects::context::{Context, EventSource};
use crate::objects::memory::{MemoryRegion, ProtectionDomain};
use crate::objects::queue_pair::QueuePair;
use crate::objects::receive::SharedReceiveQueue;
use crate::objects::{CqKey, QpKey};
use crate::transport::Transfer;

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
    pub(crate) devices: Vec<Device>,
    pub(crate) contexts: BTreeMap<ContextId, Context>,
    last_context: u64,
    pub(crate) pds: Arena<ProtectionDomain>,
    pub(crate) mrs: Arena<MemoryRegion>,
    pub(crate) cqs: Arena<CompletionQueue>,
    pub(crate) srqs: Arena<SharedReceiveQueue>,
    pub(crate) qps: Arena<QueuePair>,
    pub(crate) ahs: Arena<AddressHandle>,
    pub(crate) numbers: BTreeMap<u32, QpKey>,
    pub(crate) last_number: u32,
    pub(crate) transfers: BTreeMap<TransferId, Transfer>,
    pub(crate) last_transfer: u64,
    pub(crate) timers: BTreeSet<(Time, u32)>,
    pub(crate) overflowed: Vec<CqKey>,
    pub(crate) actions: VecDeque<Action>,
}

impl Verbs {
    /// A fabric without adapters.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an adapter with its port.
    pub fn add_device(&mut self, device: DeviceAttributes, port: PortAttributes) -> DeviceId {
        self.devices.push(Device::new(device, port));
        DeviceId((self.devices.len() - 1) as u32)
    }

    /// Attributes of an adapter's port.
    pub fn port(&self, device: DeviceId) -> Option<&PortAttributes> {
        let device = self.devices.get(device.0 as usize)?;
        Some(&device.port)
    }

    pub(crate) fn node_guid(&self, device: DeviceId) -> [u8; 8] {
        let device = self.devices.get(device.0 as usize);
        device.map_or([0; 8], |device| {
            device.attributes.node_guid.as_u64().to_be_bytes()
        })
    }

    /// Sets a port's attributes and reports changes as asynchronous events; unknown adapters are ignored.
    pub fn set_port(&mut self, device: DeviceId, port: PortAttributes) {
        let Some(owner) = self.devices.get_mut(device.0 as usize) else {
            return;
        };
        let old = std::mem::replace(&mut owner.port, port);
        let new = &owner.port;
        let (was_active, is_active) = (
            old.state == PortState::Active,
            new.state == PortState::Active,
        );
        let changes = [
            (EventType::PortError, was_active && !is_active),
            (
                EventType::LidChange,
                (old.lid, old.lmc) != (new.lid, new.lmc),
            ),
            (
                EventType::SmChange,
                (old.sm_lid, old.sm_sl) != (new.sm_lid, new.sm_sl),
            ),
            (EventType::PkeyChange, old.pkeys != new.pkeys),
            (EventType::GidChange, old.gids != new.gids),
            (EventType::PortActive, is_active && !was_active),
        ];
        for (kind, _) in changes.into_iter().filter(|(_, holds)| *holds) {
            self.raise_of_port(device, kind);
        }
    }

    /// Reports CLIENT_REREGISTER: a subnet manager asked for it by PortInfo.
    pub fn reregister_clients(&mut self, device: DeviceId) {
        self.raise_of_port(device, EventType::ClientReregister);
    }

    /// Opens an adapter for a process. Panics if [`add_device`](Self::add_device) has not returned `device`.
    pub fn open(&mut self, device: DeviceId, process: ProcessId) -> ContextId {
        assert!(
            (device.0 as usize) < self.devices.len(),
            "an unknown adapter"
        );
        self.last_context += 1;
        let id = ContextId(self.last_context);
        self.contexts.insert(id, Context::new(device, process));
        id
    }

    /// Closes a context and destroys its objects, as the kernel does for a dead process; unknown contexts are ignored.
    pub fn close(&mut self, _now: Time, context: ContextId) {
        self.destroy_objects(context);
        self.contexts.remove(&context);
    }

    /// Executes the bytes of one `write()`. `inline` has the data of IBV_SEND_INLINE requests, one after the other,
    /// read before the call returns.
    pub fn execute(
        &mut self,
        now: Time,
        context: ContextId,
        command: &[u8],
        inline: &[u8],
    ) -> Reply {
        let reply = self.execute_command(now, context, command, inline);
        self.fail_overflowed();
        reply
    }

    /// The last byte of `message` has left its adapter; a caller without this notice calls it at injection.
    ///
    /// Timers of RC start here, and sends of UC and UD complete.
    pub fn departed(&mut self, now: Time, message: &Message) {
        self.message_departed(now, message);
        if matches!(message.destination, Destination::Multicast(_)) {
            self.distribute(now, message.from, message);
        }
        self.fail_overflowed();
    }

    /// The last byte of `message` has arrived at the port of `device`; wrong destinations are dropped.
    pub fn arrived(&mut self, now: Time, device: DeviceId, message: Message) {
        self.message_arrived(now, device, message);
        self.fail_overflowed();
    }

    /// Packet `index` of `message` was discarded, and one behind it, of `next`, has arrived at the port of `device`.
    ///
    /// Lost packets of a queue are told in order. The message arrives with its last packet, if that is not lost.
    pub fn gap(
        &mut self,
        now: Time,
        device: DeviceId,
        (message, index): (&Message, u32),
        next: &Message,
    ) {
        self.packet_missing(now, device, (message, index), next);
        self.fail_overflowed();
    }

    /// `message` will not arrive: it was discarded, or has no path.
    pub fn lost(&mut self, now: Time, message: &Message) {
        self.message_departed(now, message);
        self.fail_overflowed();
    }

    /// A transfer of memory ended.
    pub fn finish(&mut self, now: Time, id: TransferId, outcome: Outcome) {
        self.transfer_finished(now, id, outcome);
        self.fail_overflowed();
    }

    /// Time of the next call of [`run_timers`](Self::run_timers).
    pub fn next_timer(&self) -> Option<Time> {
        self.timers.first().map(|(time, _)| *time)
    }

    /// Runs timers that are due at `now`.
    pub fn run_timers(&mut self, now: Time) {
        while let Some(&(time, number)) = self.timers.first()
            && time <= now
        {
            match self.numbers.get(&number) {
                Some(&key) => self.run_timer(now, key),
                None => {
                    self.timers.pop_first();
                }
            }
        }
        self.fail_overflowed();
    }

    /// Takes the next action.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Takes up to `most` completions of 48 bytes, which fill the queue until [`consumed`](Self::consumed).
    pub fn take_completions(
        &mut self,
        context: ContextId,
        cq: CqHandle,
        most: usize,
    ) -> Vec<[u8; 48]> {
        let Some(queue) = self.cq_of(context, cq) else {
            return Vec::new();
        };
        let bytes = |completion: crate::abi::structures::WorkCompletion| {
            let mut bytes = [0; 48];
            bytes.copy_from_slice(&completion.to_bytes());
            bytes
        };
        queue.take(most).map(bytes).collect()
    }

    /// The process has polled `count` of the completions that were taken.
    pub fn consumed(&mut self, context: ContextId, cq: CqHandle, count: u32) {
        if let Some(queue) = self.cq_of(context, cq) {
            queue.consume(count);
        }
    }

    /// Takes an event of a channel (8 bytes); DESTROY_CQ reports taken events and drops others.
    pub fn take_channel_event(
        &mut self,
        context: ContextId,
        channel: ChannelHandle,
    ) -> Option<[u8; 8]> {
        let owner = self.contexts.get_mut(&context)?;
        let cq = owner.take_completion_event(channel.0)?;
        let queue = self.cqs.get_mut(cq)?;
        queue.completion_events += 1;
        let event = CompletionEvent {
            cq_handle: queue.user_handle,
        };
        event.to_bytes().try_into().ok()
    }

    /// Takes an asynchronous event (`ib_uverbs_async_event_desc`, 16 bytes); DESTROY_* commands report taken ones.
    pub fn take_async_event(&mut self, context: ContextId) -> Option<[u8; 16]> {
        let owner = self.contexts.get_mut(&context)?;
        let (event, source) = owner.take_event()?;
        let count = match source {
            EventSource::Cq(key) => self.cqs.get_mut(key).map(|cq| &mut cq.async_events),
            EventSource::Srq(key) => self.srqs.get_mut(key).map(|srq| &mut srq.async_events),
            EventSource::Qp(key) => self.qps.get_mut(key).map(|qp| &mut qp.async_events),
            EventSource::Port => None,
        };
        if let Some(count) = count {
            *count += 1;
        }
        event.to_bytes().try_into().ok()
    }

    fn cq_of(&mut self, context: ContextId, cq: CqHandle) -> Option<&mut CompletionQueue> {
        let key = self.contexts.get(&context)?.cq(cq.0).ok()?;
        self.cqs.get_mut(key)
    }

    /// Commands of closed contexts are invalid.
    pub(crate) fn context(&mut self, id: ContextId) -> Result<&mut Context, Errno> {
        self.contexts.get_mut(&id).ok_or(Errno::Invalid)
    }

    pub(crate) fn raise(
        &mut self,
        context: ContextId,
        kind: EventType,
        element: u64,
        source: EventSource,
    ) {
        if let Some(owner) = self.contexts.get_mut(&context) {
            owner.push_event(kind, element, source);
            self.actions.push_back(Action::AsyncEvent { context });
        }
    }

    fn raise_of_port(&mut self, device: DeviceId, kind: EventType) {
        for (&context, owner) in &mut self.contexts {
            if owner.device == device && owner.is_ready {
                owner.push_event(kind, 1, EventSource::Port);
                self.actions.push_back(Action::AsyncEvent { context });
            }
        }
    }
}
