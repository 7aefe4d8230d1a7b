use super::window_length::WindowLength;
use super::{Event, Head};
use crate::packet::NONE;
use crate::table::Table;
use silvan_core::prefetch::prefetch;

const WINDOWS: u64 = 256;
pub(crate) const HEAD_WINDOWS: u64 = WINDOWS - 2;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Posted {
    pub at: u64,
    pub due: u64,
    pub host: u32,
    pub lane: u32,
}

/// Events of the next windows, in no order. A note of an output or host is stale if its `wake_at` has changed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calendar {
    length: WindowLength,
    window: u64,
    /// A ring by window; its length is a power of two.
    heads: Table<Vec<Head>>,
    outputs: Table<Vec<u32>>,
    hosts: Table<Vec<u32>>,
    together: Vec<u128>,
    for_hosts: Vec<Event>,
    posted: Vec<Posted>,
    deliveries: Vec<Event>,
    read_ends: Vec<Event>,
    /// By host: the last window in which feedback reached it.
    fed: Table<u64>,
    /// Stamp of the last window with a head for each output, plus one if there was more than one. The last place is for
    /// heads without an output.
    seen: Table<u32>,
    stamp: u32,
}

impl Calendar {
    pub fn new(length: WindowLength, longest: u64, outputs: usize, hosts: usize) -> Self {
        // The window that is open, and the one that a head from its end may just reach.
        let heads = (length.window_of(longest) + 2).next_power_of_two();
        let lists = |count| vec![Vec::new(); count as usize];
        Self {
            length,
            window: 0,
            heads: vec![Vec::new(); heads as usize].into(),
            outputs: lists(WINDOWS).into(),
            hosts: lists(WINDOWS).into(),
            together: Vec::new(),
            for_hosts: Vec::new(),
            posted: Vec::new(),
            deliveries: Vec::new(),
            read_ends: Vec::new(),
            fed: vec![u64::MAX; hosts].into(),
            seen: vec![0; outputs + 1].into(),
            stamp: 0,
        }
    }

    #[inline]
    pub fn open(&mut self, now: u64) -> u64 {
        self.window = self.length.window_of(now);
        self.length.start_of(self.window + 1)
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.open_events().next().is_none() && self.is_empty_at(self.window)
    }

    #[inline(always)]
    pub fn has_switch_events(&self) -> bool {
        let place = (self.window % WINDOWS) as usize;
        let heads = &self.heads[self.window as usize & (self.heads.len() - 1)];
        !self.outputs[place].is_empty() || !heads.is_empty() || !self.read_ends.is_empty()
    }

    pub fn next_noted(&self) -> Option<u64> {
        let mut ahead = self.window + 1..self.window + WINDOWS;
        let window = ahead.find(|&window| !self.is_empty_at(window))?;
        Some(self.length.start_of(window))
    }

    #[inline]
    fn is_empty_at(&self, window: u64) -> bool {
        let place = (window % WINDOWS) as usize;
        let heads = &self.heads[window as usize & (self.heads.len() - 1)];
        self.outputs[place].is_empty() && self.hosts[place].is_empty() && heads.is_empty()
    }

    #[inline(always)]
    pub fn add_head(&mut self, head: Head) {
        let window = self.length.window_of(head.time);
        debug_assert!(window - self.window < self.heads.len() as u64);
        let place = window as usize & (self.heads.len() - 1);
        self.heads[place].push(head);
    }

    #[inline(always)]
    fn place(&self, time: u64) -> Option<usize> {
        let window = self.length.window_of(time);
        debug_assert!(window >= self.window, "an event in the past");
        (window - self.window < WINDOWS).then_some((window % WINDOWS) as usize)
    }

    #[inline(always)]
    pub fn add_output(&mut self, time: u64, output: u32) -> bool {
        let Some(place) = self.place(time) else {
            return false;
        };
        self.outputs[place].push(output);
        true
    }

    /// Returns false if the time is too far ahead to have a place.
    #[inline(always)]
    pub fn add_host(&mut self, time: u64, host: u32) -> bool {
        let Some(place) = self.place(time) else {
            return false;
        };
        self.hosts[place].push(host);
        true
    }

    #[inline]
    pub fn heads(&mut self) -> &mut Vec<Head> {
        let place = self.window as usize & (self.heads.len() - 1);
        &mut self.heads[place]
    }

    #[inline]
    pub fn together(&mut self) -> &mut Vec<u128> {
        &mut self.together
    }

    #[inline]
    pub fn outputs(&mut self) -> &mut Vec<u32> {
        &mut self.outputs[(self.window % WINDOWS) as usize]
    }

    #[inline]
    pub fn hosts(&mut self) -> &mut Vec<u32> {
        &mut self.hosts[(self.window % WINDOWS) as usize]
    }

    #[inline]
    pub fn for_hosts(&mut self) -> &mut Vec<Event> {
        &mut self.for_hosts
    }

    #[inline]
    pub fn posted(&mut self) -> &mut Vec<Posted> {
        &mut self.posted
    }

    #[inline]
    pub fn deliveries(&mut self) -> &mut Vec<Event> {
        &mut self.deliveries
    }

    #[inline]
    pub fn read_ends(&mut self) -> &mut Vec<Event> {
        &mut self.read_ends
    }

    /// Returns false if the read ends after the open window.
    #[inline]
    pub fn add_read_end(&mut self, event: Event) -> bool {
        let is_now = self.length.window_of(event.time) == self.window;
        if is_now {
            self.read_ends.push(event);
        }
        is_now
    }

    pub fn mark_fed(&mut self, events: &[Event]) {
        for event in events {
            self.fed[event.id() as usize] = self.window;
        }
    }

    #[inline]
    pub fn is_fed(&self, host: u32) -> bool {
        self.fed[host as usize] == self.window
    }

    #[inline]
    pub fn begin_heads(&mut self) {
        self.stamp = self.stamp.wrapping_add(2);
    }

    #[inline(always)]
    fn seen(&mut self, output: u32) -> &mut u32 {
        let last = self.seen.len() - 1;
        let place = if output == NONE {
            last
        } else {
            output as usize
        };
        &mut self.seen[place]
    }

    #[inline(always)]
    pub fn prefetch_seen(&self, output: u32) {
        prefetch(&self.seen, output as usize);
    }

    #[inline(always)]
    pub fn see(&mut self, output: u32) {
        let stamp = self.stamp;
        let seen = self.seen(output);
        *seen = stamp | u32::from(*seen | 1 == stamp | 1);
    }

    /// Returns true if several heads need this output. After a wrap-around of the stamps, also for one head.
    #[inline(always)]
    pub fn is_contended(&mut self, output: u32) -> bool {
        let contended = self.stamp | 1;
        *self.seen(output) == contended
    }

    pub fn open_events(&self) -> impl Iterator<Item = &Event> {
        let lists = [&self.for_hosts, &self.deliveries, &self.read_ends];
        lists.into_iter().flatten()
    }

    pub fn shift(&mut self, now: u64, by: u64) {
        let mut moved = Vec::new();
        self.take_heads(&mut moved);
        self.restart(now + by);
        for mut head in moved {
            head.time += by;
            head.packet.shift(by);
            self.add_head(head);
        }
    }

    /// In ps.
    pub fn window_length(&self) -> u64 {
        self.length.start_of(1)
    }

    pub fn window_of(&self, time: u64) -> u64 {
        self.length.window_of(time)
    }

    pub fn start_of(&self, window: u64) -> u64 {
        self.length.start_of(window)
    }

    /// Drops each head that `takes` takes, and returns the number of heads that it saw.
    pub fn extract_heads(&mut self, mut takes: impl FnMut(&Head) -> Option<()>) -> u64 {
        let mut seen = 0;
        for list in self.heads.iter_mut() {
            seen += list.len() as u64;
            list.retain(|head| takes(head).is_none());
        }
        seen
    }

    pub fn take_heads(&mut self, heads: &mut Vec<Head>) {
        for list in self.heads.iter_mut() {
            heads.append(list);
        }
    }

    /// Forgets all notes, and opens the window of `now`. There must be no heads.
    pub fn restart(&mut self, now: u64) {
        for list in self.outputs.iter_mut().chain(self.hosts.iter_mut()) {
            list.clear();
        }
        self.window = self.length.window_of(now);
    }

    pub fn heads_in_flight(&self) -> impl Iterator<Item = &Head> {
        self.heads.iter().flatten()
    }

    pub fn events_for_hosts(&self) -> impl Iterator<Item = &Event> {
        self.for_hosts.iter()
    }

    pub fn bytes(&self) -> usize {
        let heads: usize = self.heads.iter().map(Vec::capacity).sum();
        let lists = self.outputs.iter().chain(self.hosts.iter());
        let noted: usize = lists.map(Vec::capacity).sum();
        heads * size_of::<Head>()
            + self.together.capacity() * size_of::<u128>()
            + (self.for_hosts.capacity() + self.deliveries.capacity() + self.read_ends.capacity())
                * size_of::<Event>()
            + self.posted.capacity() * size_of::<Posted>()
            + self.fed.capacity() * 8
            + (noted + self.seen.capacity()) * 4
    }
}
