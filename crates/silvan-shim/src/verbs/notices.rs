use std::collections::{BTreeMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};

use super::{COMPLETION, lock, raw};
use crate::clock;

const ROUND_NS: u64 = 100_000_000;
const PATIENT_POLLS: u32 = 16;
const POLL_WAIT_NS: u64 = 50_000;
/// Polls without a completion after which a program sleeps even if nothing is in the fabric.
const EAGER_POLLS: u32 = 10_000;
/// A program whose fabric's clock stands still cannot expect anything.
const LONG_POLL_WAIT_NS: u64 = 500_000;
const NOTICE_WAIT_NS: u64 = 5_000_000_000;
/// Polls without a completion after which a program waits.
const WAITING_POLLS: u32 = 8;
/// Processor time after which a program that neither polls nor sends is not about to react.
const REACTION_NS: u64 = 100_000;
/// Most processor time of a program that sleeps, between two probes.
const REST_NS: u64 = 20_000;

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
    /// Polls without a completion, of all queues, since the last command or notice.
    empty_polls: u32,
    has_reported: bool,
    /// Processor time of the program at its last command or notice, and at the last probe.
    acted_at: u64,
    probed_at: u64,
    own_ns: u64,
    has_ended: bool,
}

#[derive(Debug)]
pub(super) struct Notices {
    state: Mutex<State>,
    changed: AtomicU32,
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
            changed: AtomicU32::new(0),
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

    pub fn poll(&self, handle: u32, most: u32, report: &mut dyn FnMut(u64)) -> Option<Vec<u8>> {
        let mut state = lock(&self.state);
        let queue = state.queues.get_mut(&handle)?;
        if queue.completions.is_empty() && most > 0 {
            queue.empty_polls = queue.empty_polls.saturating_add(1);
            let queue_polls = queue.empty_polls;
            let is_patient = queue_polls > PATIENT_POLLS;
            state.empty_polls = state.empty_polls.saturating_add(1);
            let follows = clock::is_simulated();
            if follows && state.empty_polls >= WAITING_POLLS && !state.has_reported {
                state.has_reported = true;
                let seen = state.count;
                drop(state);
                report(seen);
                state = lock(&self.state);
            } else if is_patient {
                let is_eager = queue_polls < EAGER_POLLS;
                state = match follows {
                    // Programs that poll between their own steps, such as MPI_Test, go on.
                    true if is_eager && clock::runs() => state,
                    true => self.wait(state, LONG_POLL_WAIT_NS),
                    false => self.wait(state, POLL_WAIT_NS),
                };
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
        let mut state = lock(&self.state);
        let mut rounds = 0;
        while state.count < count && !state.has_ended && rounds * ROUND_NS < NOTICE_WAIT_NS {
            state = self.wait(state, ROUND_NS);
            rounds += 1;
        }
    }

    /// Waits for a change, or for a time. The standard library's way would compute an instant of a simulated clock.
    fn wait<'a>(&'a self, state: MutexGuard<'a, State>, ns: u64) -> MutexGuard<'a, State> {
        let seen = self.changed.load(Ordering::Acquire);
        drop(state);
        let time = libc::timespec {
            tv_sec: 0,
            tv_nsec: ns as _,
        };
        // SAFETY: the word and the time outlive the call.
        unsafe {
            let what = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
            libc::syscall(
                libc::SYS_futex,
                self.changed.as_ptr(),
                what,
                seen,
                &raw const time,
            );
        }
        lock(&self.state)
    }

    fn wake(&self) {
        self.changed.fetch_add(1, Ordering::AcqRel);
        // SAFETY: the word outlives the call.
        unsafe {
            let what = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
            libc::syscall(libc::SYS_futex, self.changed.as_ptr(), what, i32::MAX);
        }
    }

    /// Notes that the program has sent a command.
    pub fn commanded(&self) {
        if clock::is_simulated() {
            lock(&self.state).acts();
        }
    }

    /// Notes that the server has changed the program's memory.
    pub fn changed_memory(&self) {
        let mut state = lock(&self.state);
        state.hears();
        drop(state);
        self.wake();
    }

    /// Returns the count of notices if the program waits for the fabric: it has had time to react, or sleeps.
    pub fn probe(&self) -> Option<u64> {
        let mut state = lock(&self.state);
        state.own_ns = clock::thread_ns();
        let now = state.program_ns();
        let before = std::mem::replace(&mut state.probed_at, now);
        let has_reacted = now.saturating_sub(state.acted_at) >= REACTION_NS;
        let count = state.count;
        // A thread that waits for the lock would seem to sleep.
        drop(state);
        let rests = || now.saturating_sub(before) < REST_NS && sleeps();
        (has_reacted || rests()).then_some(count)
    }

    pub fn completed(&self, handle: u32, completions: &[u8]) {
        let mut state = lock(&self.state);
        state.hears();
        if let Some(queue) = state.queues.get_mut(&handle) {
            let each = completions.chunks_exact(COMPLETION);
            let each = each.filter_map(|completion| completion.first_chunk().copied());
            queue.completions.extend(each);
        }
        drop(state);
        self.wake();
    }

    pub fn event(&self, channel: Option<u32>, event: [u8; 16]) {
        let mut state = lock(&self.state);
        state.hears();
        if let Some(channel) = state.channels.get_mut(&channel) {
            channel.events.push_back(event);
            channel.signal();
        }
        drop(state);
        self.wake();
    }

    pub fn end(&self) {
        let mut state = lock(&self.state);
        state.has_ended = true;
        state.channels.clear();
        drop(state);
        self.wake();
    }
}

impl State {
    /// Processor time of the program without this library's thread.
    fn program_ns(&self) -> u64 {
        clock::process_ns().saturating_sub(self.own_ns)
    }

    /// Notes something that the server has sent.
    fn hears(&mut self) {
        self.count += 1;
        if clock::is_simulated() {
            self.own_ns = clock::thread_ns();
        }
        self.acts();
    }

    fn acts(&mut self) {
        self.empty_polls = 0;
        self.has_reported = false;
        if clock::is_simulated() {
            self.acted_at = self.program_ns();
            self.probed_at = 0;
        }
    }
}

/// Returns true if no other thread of this process runs or could.
fn sleeps() -> bool {
    // SAFETY: the call has no other effect.
    let own = unsafe { libc::syscall(libc::SYS_gettid) };
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else {
        return true;
    };
    let states = threads.flatten().filter_map(|thread| {
        if thread.file_name().to_str()?.parse() == Ok(own) {
            return None;
        }
        let text = std::fs::read_to_string(thread.path().join("stat")).ok()?;
        text.rsplit_once(") ")?.1.chars().next()
    });
    states.into_iter().all(|state| !matches!(state, 'R' | 'D'))
}
