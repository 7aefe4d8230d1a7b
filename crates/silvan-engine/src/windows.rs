//! Events by lookahead windows: within the shortest flight, outputs and hosts are independent
//! (Chandy and Misra, "Distributed simulation", 1979).
//!
//! Heads come first, each after its output's earlier arbitrations. Then come remaining outputs,
//! notifications, and hosts. Credits arrive after the window.

use std::ops::Range;

use silvan_cc::hooks::{SourceControl, SwitchControl};

use crate::engine::Engine;
use crate::events::{Calendar, Event, HEAD_WINDOWS, Head, WindowLength, phase};
use crate::linked_hosts::link_hosts;
use crate::packet::NONE;
use crate::plane::{Plane, time};
use crate::prefetching::WorkingSet;
use crate::records::{Next, OutPort};
use crate::variant::EngineVariant;
use crate::workload::Workload;
use silvan_core::HostId;
use silvan_core::prefetch::prefetch;

/// In ps.
const SHORTEST: u64 = 1 << 14;
/// Length in ps up to which a window may exceed half the time of a full packet. In longer windows, heads share outputs
/// more often: they are sorted and come last, when their records have left the caches.
const ROOMY: u64 = 1 << 15;
/// In heads.
const TABLES_AHEAD: usize = 16;

impl Plane {
    /// In ps; `None` if no window is worth opening.
    pub fn window(&self) -> Option<u64> {
        self.window_and_flight().map(|(window, _)| window)
    }

    fn window_and_flight(&self) -> Option<(u64, u64)> {
        let outs = self.outs.iter().zip(self.head_delay.iter());
        // Traffic between a switch and its output buffers stays within the switch.
        let leaves =
            |out: &OutPort| out.kind == Next::Input && (out.next as usize) < self.fabric_ports;
        let delays = || {
            let to_switches = outs.clone().filter(|(out, _)| leaves(out));
            to_switches.map(|(_, &delay)| delay)
        };
        let inputs = self.ins.iter().take(self.fabric_ports);
        let cabled = inputs.filter(|port| port.upstream != NONE);
        let credit_delay = cabled.map(|port| {
            let pause_delay = self.pause_delay(port.upstream as usize);
            pause_delay.unwrap_or(self.credit_delays[usize::from(port.credit_delay)])
        });
        let lookahead = delays().chain(credit_delay).min()?;
        let longest = delays().max().unwrap_or(0) + self.longest_wait() + self.longest_replays();
        let packets = outs.clone().filter(|(out, _)| leaves(out));
        let packets = packets.map(|(out, _)| self.rates[usize::from(out.rate)].ser_mtu);
        let short = packets.min().unwrap_or(u64::MAX) / 2;
        let short = lookahead.min(short.max(ROOMY));
        let fits = |window| window >= SHORTEST && longest / window < HEAD_WINDOWS;
        let window = [short, lookahead]
            .into_iter()
            .find(|&window| fits(window))?;
        Some((window, longest))
    }

    pub fn notifies_later(&self) -> bool {
        let Some(delay) = self.config.feedback.delay_past_fabric() else {
            return true;
        };
        let shortest = self.shortest_to_host().unwrap_or(0) + delay.as_ps();
        self.window().is_some_and(|window| shortest >= window)
    }

    /// Returns true if a grant past the fabric arrives after the window that follows its own.
    ///
    /// A host may send it after the parts of a divided fabric have exchanged data.
    pub fn grants_later(&self) -> bool {
        let Some(delay) = self.config.feedback.delay_past_fabric() else {
            return true;
        };
        self.window()
            .is_some_and(|window| delay.as_ps() >= 2 * window)
    }

    fn shortest_to_host(&self) -> Option<u64> {
        let outs = self.outs.iter().zip(self.propagation.iter());
        let to_hosts = outs.filter(|(out, _)| out.kind == Next::Host);
        to_hosts.map(|(_, &propagation)| propagation).min()
    }

    pub fn knows_feedback(&self) -> bool {
        self.sink_cnp == 0 || self.notifies_later()
    }

    fn resolve_heads(&self, heads: &mut [Head]) {
        for index in 0..heads.len() {
            if let Some(head) = heads.get(index + TABLES_AHEAD) {
                prefetch(&self.ins, head.port as usize);
                self.prefetch_entry(head.output);
            }
            let head = &mut heads[index];
            head.output = self.resolve(head.port, head.output, &head.packet);
            self.events.calendar.prefetch_seen(head.output);
        }
    }

    pub fn make_windows(&mut self) {
        if let Some((window, longest)) = self.window_and_flight() {
            let length = WindowLength::new(window);
            self.events.calendar =
                Calendar::new(length, longest, self.outs.len(), self.hosts.len());
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenWindow {
    pub limit: u64,
    pub end: u64,
    /// Equal to `limit`, or the next window that may have events.
    pub next: u64,
}

/// In a window with deliveries or timers of programs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Point {
    /// Programs have received their messages, and have not started others.
    Linked,
    /// Messages have started, but not their packets.
    Started,
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    /// Processes every event before `end`. `now` is the start of the window: all earlier events have been processed.
    pub(crate) fn run_windows(&mut self, end: u64) {
        while self.fault.is_none() && self.now < end {
            self.now = self.run_window(end);
        }
    }

    pub(crate) fn run_window(&mut self, end: u64) -> u64 {
        self.run_window_then(end, |_, _, _| {})
    }

    /// Calls `at` between switches and hosts if programs have received messages or timers have gone off.
    #[inline(always)]
    pub(crate) fn run_window_then(
        &mut self,
        end: u64,
        mut at: impl FnMut(&mut Self, OpenWindow, Point),
    ) -> u64 {
        let window = self.window_at_switches(end);
        if window.next != window.limit {
            return window.next;
        }
        if W::LINKS_HOSTS && self.are_hosts_linked(window.limit) {
            let mut alone = &mut *self;
            link_hosts(&mut [&mut alone], window.limit);
            at(self, window, Point::Linked);
            self.window_of_deliveries(window);
            at(self, window, Point::Started);
            self.window_of_hosts(window.limit, window.end);
        } else {
            self.window_at_hosts(window);
        }
        window.limit
    }

    #[inline(never)]
    pub(crate) fn window_at_switches(&mut self, end: u64) -> OpenWindow {
        let window_end = self.plane.events.calendar.open(self.now);
        self.fill_window(window_end);
        if self.change_at == self.now {
            self.window_for_hosts(self.now + 1);
            self.events += 1;
            self.traffic_change(self.now);
        }
        let limit = window_end.min(end).min(self.change_at);
        let fires = W::LINKS_HOSTS && self.timer_at < limit;
        let mut window = OpenWindow {
            limit,
            end: window_end,
            next: limit,
        };
        if self.plane.events.calendar.is_empty() && !fires {
            let end = end.min(self.change_at).min(self.timer_at);
            window.next = self.plane.events.next_window(end);
            return window;
        }
        if !F::PLAIN && self.plane.orders_ports() {
            self.window_of_switches(limit, window_end);
        } else {
            self.window_of_heads(limit);
            self.window_of_outputs(limit, window_end);
        }
        if S::ACTIVE || C::ACTIVE || W::LINKS_HOSTS {
            self.fill_window(window_end);
        }
        window
    }

    #[inline(never)]
    pub(crate) fn window_at_hosts(&mut self, window: OpenWindow) {
        self.window_of_deliveries(window);
        self.window_of_hosts(window.limit, window.end);
    }

    #[inline(never)]
    fn window_of_deliveries(&mut self, window: OpenWindow) {
        if self.needs_select_discard() || W::LINKS_HOSTS && self.plane.remote.is_part() {
            // Switches of other parts may have discarded or delivered packets of hosts of this part.
            self.fill_window(window.end);
        }
        if S::ACTIVE || C::ACTIVE {
            self.add_posted();
        }
        if S::ACTIVE || C::ACTIVE || W::LINKS_HOSTS {
            self.window_for_hosts(window.limit);
            self.plane.events.calendar.posted().clear();
        }
    }

    #[inline]
    pub(crate) fn fill_window(&mut self, end: u64) {
        let known = self.plane.events.calendar.for_hosts().len();
        self.plane.events.fill_window(end);
        if !S::ACTIVE {
            return;
        }
        let events = std::mem::take(self.plane.events.calendar.for_hosts());
        self.note_sink_charges(&events[known..]);
        *self.plane.events.calendar.for_hosts() = events;
    }

    pub(crate) fn window_of_heads(&mut self, limit: u64) {
        let mut heads = std::mem::take(self.plane.events.calendar.heads());
        self.resolve_window_heads(&mut heads);
        let mut together = std::mem::take(self.plane.events.calendar.together());
        let mut later = Vec::new();
        self.prefetch_first_heads(&heads);
        let (mut index, mut ordered) = (0, 0);
        // The head path fills a third of L1i: keep a single copy.
        loop {
            let head = if let Some(&head) = heads.get(index) {
                self.prefetch_window_head(&heads, index);
                index += 1;
                if head.time >= limit {
                    later.push(head);
                    continue;
                }
                if self.plane.events.calendar.is_contended(head.output)
                    || !F::PLAIN && self.plane.routing.choices.is_alternative(head.output)
                {
                    together.push(self.order_of(&head, index - 1));
                    continue;
                }
                head
            } else {
                if ordered == 0 {
                    together.sort_unstable();
                }
                let Some(&order) = together.get(ordered) else {
                    break;
                };
                ordered += 1;
                heads[order as u32 as usize]
            };
            self.window_head(head);
        }
        together.clear();
        *self.plane.events.calendar.together() = together;
        heads.clear();
        heads.append(&mut later);
        *self.plane.events.calendar.heads() = heads;
    }

    /// Sort key of heads that may depend on each other: switch, time and port; the low 32 bits are the index. A window
    /// is shorter than 2^56 ps.
    #[inline]
    fn order_of(&self, head: &Head, index: usize) -> u128 {
        let input = &self.plane.ins[head.port as usize];
        let within = head.time - self.now;
        u128::from(input.element) << 96
            | u128::from(within << 8 | u64::from(input.local)) << 32
            | index as u128
    }

    pub(crate) fn resolve_window_heads(&mut self, heads: &mut [Head]) {
        let plane = &mut self.plane;
        if plane.working_set == WorkingSet::ExceedsCaches {
            plane.resolve_heads(heads);
        }
        if !F::PLAIN && plane.routing.detours.is_some() {
            plane.direct_heads(heads);
        }
        let calendar = &mut plane.events.calendar;
        calendar.begin_heads();
        for head in heads {
            calendar.see(head.output);
        }
    }

    #[inline(always)]
    fn window_head(&mut self, head: Head) {
        self.events += 1;
        if head.output != NONE {
            self.catch_up(head.time, head.output);
        }
        self.head(head);
    }

    #[inline(always)]
    pub(crate) fn catch_up(&mut self, now: u64, output: u32) {
        loop {
            let at = self.plane.outs[output as usize].wake_at;
            if at >= now {
                break;
            }
            self.output_event(at, output);
        }
    }

    pub(crate) fn window_of_outputs(&mut self, limit: u64, window_end: u64) {
        let mut index = 0;
        let mut later = Vec::new();
        self.prefetch_first_outputs();
        while let Some(&output) = self.plane.events.calendar.outputs().get(index) {
            index += 1;
            self.prefetch_window_output(index);
            let at = self.plane.outs[output as usize].wake_at;
            if at < limit {
                self.output_event(at, output);
            } else if at < window_end {
                later.push(output);
            }
        }
        self.events += index as u64;
        let outputs = self.plane.events.calendar.outputs();
        outputs.clear();
        outputs.append(&mut later);
    }

    fn add_posted(&mut self) {
        let plane = &mut self.plane;
        let posted = std::mem::take(plane.events.calendar.posted());
        let mut events = std::mem::take(plane.events.calendar.for_hosts());
        let calendar = &mut plane.events.calendar;
        calendar.mark_fed(&events);
        for (place, post) in posted.iter().enumerate() {
            if plane.credits[post.lane as usize].starved
                || plane.hosts[post.host as usize].wake_at < post.at
                || plane.events.calendar.is_fed(post.host)
            {
                let place = place as u32;
                events.push(Event::new(post.at, phase::ARBITRATE, post.host, place));
            }
        }
        *plane.events.calendar.for_hosts() = events;
        *plane.events.calendar.posted() = posted;
    }

    /// Processes events of hosts before `limit`, each after the host's earlier events and credits.
    fn window_for_hosts(&mut self, limit: u64) {
        let mut events = std::mem::take(self.plane.events.calendar.for_hosts());
        events.sort_unstable();
        if self.orders_feedback() {
            self.order_window_feedback(&mut events);
        }
        let mut due = events.partition_point(|event| event.time < limit);
        let mut index = 0;
        while index < due {
            self.prefetch_window_feedback(&events, index);
            let event = events[index];
            let (now, host) = (event.time, event.id());
            let at = self.plane.hosts[host as usize].wake_at;
            if at < now {
                self.host_event(at, host);
                if self.needs_started() {
                    due += self.add_granted(&mut events, index..due, limit);
                }
                continue;
            }
            index += 1;
            match event.phase() {
                phase::FEEDBACK => {
                    self.events += 1;
                    self.feedback_event(now, host, event.argument());
                    if self.orders_feedback() {
                        due += self.add_granted(&mut events, index..due, limit);
                    }
                }
                phase::CREDIT => {
                    self.events += 1;
                    self.host_credit(now, host);
                }
                phase::RECEIVED => {
                    self.events += 1;
                    let packet = self.plane.events.remove_packet(event.argument());
                    self.receive(now, host, event.argument(), &packet);
                    due += self.add_granted(&mut events, index..due, limit);
                }
                phase::ARRIVED => {
                    self.events += 1;
                    self.arrived(now, event.argument());
                }
                phase::DELIVERED => {
                    self.workload
                        .on_woken(HostId::new(host as usize), time(now));
                    self.wake_host(host, now);
                }
                _ => {
                    let posted = self.plane.events.calendar.posted()[event.argument() as usize];
                    let lane = posted.lane as usize;
                    let due = match F::PFC && self.plane.is_under_pfc(lane) {
                        true => self.plane.when_resumes_by(lane, posted.due),
                        false => self.plane.credits[lane].starved.then_some(posted.due),
                    };
                    if let Some(due) = due {
                        self.wake_host(host, due);
                    }
                }
            }
        }
        events.drain(..due);
        *self.plane.events.calendar.for_hosts() = events;
    }

    fn order_window_feedback(&self, events: &mut [Event]) {
        let are_alike = |one: &Event, next: &Event| {
            (one.time, one.phase(), one.id()) == (next.time, next.phase(), next.id())
        };
        for alike in events.chunk_by_mut(are_alike) {
            if alike[0].phase() == phase::FEEDBACK {
                self.plane.order_feedback(alike);
            }
        }
    }

    fn add_granted(&mut self, events: &mut Vec<Event>, to_come: Range<usize>, limit: u64) -> usize {
        self.plane.events.fill_window(limit);
        let mut end = to_come.end;
        while let Some(event) = self.plane.events.calendar.for_hosts().pop() {
            let before = events[to_come.start..end].partition_point(|other| *other < event);
            events.insert(to_come.start + before, event);
            end += 1;
        }
        end - to_come.end
    }

    fn window_of_granted(&mut self, limit: u64) {
        let known = self.plane.events.calendar.for_hosts().len();
        self.plane.events.fill_window(limit);
        if self.plane.events.calendar.for_hosts().len() > known {
            self.window_for_hosts(limit);
        }
    }

    fn window_of_hosts(&mut self, limit: u64, window_end: u64) {
        let mut index = 0;
        let mut later = Vec::new();
        self.prefetch_first_hosts();
        while let Some(&host) = self.plane.events.calendar.hosts().get(index) {
            index += 1;
            self.prefetch_window_host(index);
            let at = self.plane.hosts[host as usize].wake_at;
            if at < limit {
                self.host_event(at, host);
                if self.needs_started() {
                    self.window_of_granted(limit);
                }
            } else if at < window_end {
                later.push(host);
            }
        }
        self.events += index as u64;
        let hosts = self.plane.events.calendar.hosts();
        hosts.clear();
        hosts.append(&mut later);
    }
}
