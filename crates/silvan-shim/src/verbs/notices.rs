use std::collections::{BTreeMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use super::{COMPLETION, lock, raw};

const PATIENT_POLLS: u32 = 16;
const POLL_WAIT: Duration = Duration::from_micros(50);
const NOTICE_WAIT: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
struct Queue {
    user: u64,
    completions: VecDeque<[u8; COMPLETION]>,
    polled: u32,
    empty_polls: u32,
    reported: u32,
}

#[derive(Debug)]
struct Channel {
    socket: OwnedFd,
    events: VecDeque<[u8; 16]>,
    /// Events without a byte, because the socket was full.
    unsent: usize,
}

#[derive(Debug, Default)]
struct State {
    queues: BTreeMap<u32, Queue>,
    channels: BTreeMap<Option<u32>, Channel>,
    reported: BTreeMap<u64, u32>,
    count: u64,
    has_ended: bool,
}

#[derive(Debug)]
pub(super) struct Notices {
    state: Mutex<State>,
    changed: Condvar,
}

impl Channel {
    fn signal(&mut self) {
        self.unsent += 1;
        while self.unsent > 0 {
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            // SAFETY: one byte.
            let sent = unsafe { libc::send(raw(&self.socket), [1_u8].as_ptr().cast(), 1, flags) };
            if sent != 1 {
                return;
            }
            self.unsent -= 1;
        }
    }
}

fn user_of(event: &[u8; 16]) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = *event;
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

impl Notices {
    pub fn new() -> Self {
        Self {
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    pub fn add_queue(&self, handle: u32, user: u64) {
        let queue = Queue {
            user,
            ..Queue::default()
        };
        lock(&self.state).queues.insert(handle, queue);
    }

    pub fn add_channel(&self, handle: Option<u32>, socket: OwnedFd) {
        let channel = Channel {
            socket,
            events: VecDeque::new(),
            unsent: 0,
        };
        lock(&self.state).channels.insert(handle, channel);
    }

    pub fn remove_queue(&self, handle: u32) -> (u32, u32) {
        let mut state = lock(&self.state);
        let Some(queue) = state.queues.remove(&handle) else {
            return (0, 0);
        };
        for channel in state.channels.values_mut() {
            channel.events.retain(|event| user_of(event) != queue.user);
        }
        let asynchronous = state.reported.remove(&queue.user).unwrap_or(0);
        (queue.reported, asynchronous)
    }

    pub fn remove_element(&self, user: u64) -> u32 {
        let mut state = lock(&self.state);
        if let Some(channel) = state.channels.get_mut(&None) {
            channel.events.retain(|event| user_of(event) != user);
        }
        state.reported.remove(&user).unwrap_or(0)
    }

    pub fn poll(&self, handle: u32, most: u32) -> Option<Vec<u8>> {
        let mut state = lock(&self.state);
        let queue = state.queues.get_mut(&handle)?;
        if queue.completions.is_empty() && most > 0 {
            queue.empty_polls = queue.empty_polls.saturating_add(1);
            if queue.empty_polls > PATIENT_POLLS {
                let waited = self.changed.wait_timeout(state, POLL_WAIT);
                state = waited.map_or_else(|error| error.into_inner().0, |(state, _)| state);
            }
        }
        let queue = state.queues.get_mut(&handle)?;
        let count = queue.completions.len().min(most as usize);
        let mut response = Vec::with_capacity(8 + count * COMPLETION);
        response.extend((count as u32).to_ne_bytes());
        response.extend([0; 4]);
        for completion in queue.completions.drain(..count) {
            response.extend(completion);
        }
        queue.polled += count as u32;
        if count > 0 {
            queue.empty_polls = 0;
        }
        Some(response)
    }

    pub fn take_polled(&self) -> Vec<(u32, u32)> {
        let mut state = lock(&self.state);
        let queues = state
            .queues
            .iter_mut()
            .filter(|(_, queue)| queue.polled > 0);
        queues
            .map(|(&handle, queue)| (handle, std::mem::take(&mut queue.polled)))
            .collect()
    }

    pub fn take_event(&self, channel: Option<u32>) -> Option<[u8; 16]> {
        let mut state = lock(&self.state);
        let event = state.channels.get_mut(&channel)?.events.pop_front()?;
        let user = user_of(&event);
        if channel.is_none() {
            *state.reported.entry(user).or_default() += 1;
        } else if let Some(queue) = state.queues.values_mut().find(|queue| queue.user == user) {
            queue.reported += 1;
        }
        Some(event)
    }

    pub fn wait_for(&self, count: u64) {
        let state = lock(&self.state);
        let waits = |state: &mut State| state.count < count && !state.has_ended;
        drop(self.changed.wait_timeout_while(state, NOTICE_WAIT, waits));
    }

    pub fn completed(&self, handle: u32, completions: &[u8]) {
        let mut state = lock(&self.state);
        state.count += 1;
        if let Some(queue) = state.queues.get_mut(&handle) {
            let each = completions.chunks_exact(COMPLETION);
            let each = each.filter_map(|completion| completion.first_chunk().copied());
            queue.completions.extend(each);
        }
        drop(state);
        self.changed.notify_all();
    }

    pub fn event(&self, channel: Option<u32>, event: [u8; 16]) {
        let mut state = lock(&self.state);
        state.count += 1;
        if let Some(channel) = state.channels.get_mut(&channel) {
            channel.events.push_back(event);
            channel.signal();
        }
        drop(state);
        self.changed.notify_all();
    }

    pub fn end(&self) {
        let mut state = lock(&self.state);
        state.has_ended = true;
        state.channels.clear();
        drop(state);
        self.changed.notify_all();
    }
}
