use std::collections::VecDeque;

use super::{AhKey, CqKey, MrKey, PdKey, QpKey, SrqKey};
use crate::abi::structures::AsyncEvent;
use crate::abi::values::EventType;
use crate::errno::Errno;
use crate::verbs::{DeviceId, ProcessId};

const MOST_HANDLES: usize = 1 << 20;

/// Most memory of the queues of one context, in bytes, as if all were full.
const MOST_QUEUE_MEMORY: u64 = 256 << 20;

/// Most events that wait in one channel or context. A program that reads none loses later ones.
const MOST_EVENTS: usize = 1 << 16;

const MOST_CHANNELS: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Object {
    Pd(PdKey),
    Mr(MrKey),
    Cq(CqKey),
    Srq(SrqKey),
    Qp(QpKey),
    Ah(AhKey),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventSource {
    Cq(CqKey),
    Srq(SrqKey),
    Qp(QpKey),
    Port,
}

#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) device: DeviceId,
    pub(crate) process: ProcessId,
    pub(crate) is_ready: bool,
    queue_memory: u64,
    handles: Vec<Option<Object>>,
    free: Vec<u32>,
    channels: Vec<VecDeque<CqKey>>,
    events: VecDeque<(AsyncEvent, EventSource)>,
}

impl Context {
    pub(crate) fn new(device: DeviceId, process: ProcessId) -> Self {
        Self {
            device,
            process,
            is_ready: false,
            queue_memory: 0,
            handles: Vec::new(),
            free: Vec::new(),
            channels: Vec::new(),
            events: VecDeque::new(),
        }
    }

    pub(crate) fn reserve(&mut self) -> Result<u32, Errno> {
        if let Some(handle) = self.free.pop() {
            return Ok(handle);
        }
        if self.handles.len() == MOST_HANDLES {
            return Err(Errno::NoMemory);
        }
        self.handles.push(None);
        Ok((self.handles.len() - 1) as u32)
    }

    pub(crate) fn bind(&mut self, handle: u32, object: Object) {
        self.handles[handle as usize] = Some(object);
    }

    pub(crate) fn release(&mut self, handle: u32) {
        if let Some(object) = self.handles.get_mut(handle as usize) {
            *object = None;
            self.free.push(handle);
        }
    }

    pub(crate) fn reserve_queue(&mut self, bytes: u64) -> Result<u32, Errno> {
        self.resize_queue(0, bytes)?;
        self.reserve().inspect_err(|_| self.queue_memory -= bytes)
    }

    /// Reserves memory of a queue that replaces one of `old` bytes; ENOMEM beyond the bound.
    pub(crate) fn resize_queue(&mut self, old: u64, new: u64) -> Result<(), Errno> {
        let total = self.queue_memory - old + new;
        if new > old && total > MOST_QUEUE_MEMORY {
            return Err(Errno::NoMemory);
        }
        self.queue_memory = total;
        Ok(())
    }

    pub(crate) fn release_queue(&mut self, bytes: u64) {
        self.queue_memory -= bytes;
    }

    pub(crate) fn object(&self, handle: u32) -> Option<Object> {
        self.handles.get(handle as usize).copied().flatten()
    }

    pub(crate) fn objects(&self) -> impl Iterator<Item = Object> {
        self.handles.iter().flatten().copied()
    }

    pub(crate) fn add_channel(&mut self) -> Result<u32, Errno> {
        if self.channels.len() == MOST_CHANNELS {
            return Err(Errno::NoMemory);
        }
        self.channels.push(VecDeque::new());
        Ok((self.channels.len() - 1) as u32)
    }

    pub(crate) fn has_channel(&self, channel: u32) -> bool {
        (channel as usize) < self.channels.len()
    }

    pub(crate) fn push_completion_event(&mut self, channel: u32, cq: CqKey) {
        if let Some(events) = self.channels.get_mut(channel as usize)
            && events.len() < MOST_EVENTS
        {
            events.push_back(cq);
        }
    }

    pub(crate) fn take_completion_event(&mut self, channel: u32) -> Option<CqKey> {
        self.channels.get_mut(channel as usize)?.pop_front()
    }

    pub(crate) fn push_event(&mut self, kind: EventType, element: u64, source: EventSource) {
        let event = AsyncEvent {
            element,
            event_type: kind.number(),
            reserved: 0,
        };
        if self.events.len() < MOST_EVENTS {
            self.events.push_back((event, source));
        }
    }

    pub(crate) fn take_event(&mut self) -> Option<(AsyncEvent, EventSource)> {
        self.events.pop_front()
    }

    pub(crate) fn drop_events(&mut self, source: EventSource) {
        self.events.retain(|(_, from)| *from != source);
        if let EventSource::Cq(cq) = source {
            for events in &mut self.channels {
                events.retain(|from| *from != cq);
            }
        }
    }
}

macro_rules! searches {
    ($($name:ident, $variant:ident, $key:ty;)*) => {
        impl Context {
            $(
                /// Key of the object with this handle; EINVAL if there is none, or one of another kind.
                pub(crate) fn $name(&self, handle: u32) -> Result<$key, Errno> {
                    match self.object(handle) {
                        Some(Object::$variant(key)) => Ok(key),
                        _ => Err(Errno::Invalid),
                    }
                }
            )*
        }
    };
}

searches! {
    pd, Pd, PdKey;
    mr, Mr, MrKey;
    cq, Cq, CqKey;
    srq, Srq, SrqKey;
    qp, Qp, QpKey;
    ah, Ah, AhKey;
}
