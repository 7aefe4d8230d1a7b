//! The search for a component's period, while the component runs alone.

use std::ops::ControlFlow;

use silvan_cc::hooks::{PortVl, SourceControl, SwitchControl};
use silvan_core::{HostId, Span};

use super::paths::Members;
use super::period::Starts;
use super::state::ports_that_wait_on;
use crate::engine::Engine;
use crate::events::Head;
use crate::packet::NONE;
use crate::plane::time;
use crate::records::OutPort;
use crate::stats::Delivery;
use crate::variant::EngineVariant;
use crate::workload::{Progress, Workload};

/// Starts of the marker before a first step is known.
const FIRST_TRY: usize = 6;
/// Steps that a component may take to settle; doubles with each round.
const SETTLES: u64 = 8;
/// Steps over which a state is compared with later ones after a round; doubles with it.
const MULTIPLES: u64 = 32;
const MOST_ROUNDS: u32 = 6;
/// Events per port that a leap must save.
const WORTH: u64 = 4;

#[derive(Debug, Default)]
enum Stage {
    #[default]
    Unwatched,
    Watching,
    /// Until the state looks as it did a step ago; other hosts may have longer periods than the marker.
    Settling(Settling),
    Comparing(Box<Earlier>),
    Repeating(Box<Period>),
}

#[derive(Clone, Copy, Debug)]
struct Settling {
    step: u64,
    /// That have been taken.
    steps: u64,
    looks: u64,
    /// Simulated events at the last look, which costs as much as an event for each port.
    events: u64,
}

#[derive(Debug)]
struct Earlier {
    at: u64,
    words: Vec<u64>,
    waits: Vec<u64>,
    ports: Vec<[u64; 3]>,
    injected: Vec<u64>,
    /// Number of events then; of those since then while another component runs.
    events: u64,
    /// Since then, while another component runs.
    deliveries: Vec<Delivery>,
    messages: Progress,
    control: Control,
    settling: Settling,
    /// Steps since then, and most of them.
    multiple: u64,
    most_multiples: u64,
}

/// Growth in a period.
#[derive(Debug)]
struct Period {
    length: u64,
    /// By place in the component's ports, if not zero.
    ports: Vec<(u32, [u64; 3])>,
    waiting_on: Vec<u32>,
    /// By place in the component's senders.
    injected: Vec<u64>,
    deliveries: Vec<Delivery>,
    events: u64,
    messages: Progress,
    /// Before and after.
    control: Control,
}

/// State of congestion control in a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Control {
    /// Grows with each notification, and with each change at a switch.
    changes: u64,
    /// The control holds flows back as now up to this instant.
    until: u64,
}

#[derive(Debug)]
pub(super) struct Search {
    stage: Stage,
    starts: Starts,
    watched: u32,
    next_try: usize,
    rounds: u32,
    /// The marker's last period; 0 for none.
    hint: u64,
    /// The next comparison.
    pub cut: u64,
    ended_at: u64,
    may_leap: bool,
}

impl Search {
    pub fn new() -> Self {
        Self {
            stage: Stage::Unwatched,
            starts: Starts::default(),
            watched: NONE,
            next_try: FIRST_TRY,
            rounds: 0,
            hint: 0,
            cut: u64::MAX,
            ended_at: u64::MAX,
            may_leap: true,
        }
    }

    /// The marker and its period, if it is known.
    pub fn period(&self) -> Option<(u32, u64)> {
        match &self.stage {
            Stage::Repeating(period) => Some((self.watched, period.length)),
            _ => None,
        }
    }

    /// Deliveries between two calls are in no log.
    pub fn interrupt(&mut self) {
        self.ended_at = u64::MAX;
        if matches!(self.stage, Stage::Comparing(_)) {
            self.stage = Stage::Unwatched;
            self.cut = u64::MAX;
        }
    }

    /// Continues at `now`, unless the component has run with the others in between.
    pub fn resume(&mut self, now: u64) {
        if !matches!(self.stage, Stage::Repeating(_)) && self.ended_at != now {
            self.stage = Stage::Unwatched;
            self.cut = u64::MAX;
        }
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    pub(super) fn begin_search(&mut self, search: &mut Search) {
        search.may_leap = true;
        std::mem::swap(&mut self.starts, &mut search.starts);
        self.watched = search.watched;
        if let Stage::Comparing(earlier) = &mut search.stage {
            self.stats
                .resume_log(std::mem::take(&mut earlier.deliveries));
            earlier.events = self.events - earlier.events;
        }
    }

    pub(super) fn end_search(&mut self, search: &mut Search) {
        if let Stage::Comparing(earlier) = &mut search.stage {
            earlier.deliveries = self.stats.take_log();
            earlier.events = self.events - earlier.events;
        }
        search.ended_at = self.now;
        std::mem::swap(&mut self.starts, &mut search.starts);
        self.watched = NONE;
    }

    /// Leaps, at most to `end`, if a period is known, or takes a step in its search.
    pub(super) fn look_for_leap(
        &mut self,
        members: &Members,
        search: &mut Search,
        heads: &mut Vec<Head>,
        hints: &[u64],
        end: u64,
    ) {
        match &mut search.stage {
            Stage::Unwatched => self.watch(members, search, hints),
            Stage::Watching => {
                let hint = std::mem::take(&mut search.hint);
                if hint > 0 {
                    self.begin_settling(members, search, hint);
                } else if self.starts.len() >= search.next_try {
                    match self.starts.period() {
                        Some(period) => self.begin_settling(members, search, period),
                        None => search.next_try = 2 * self.starts.len(),
                    }
                }
            }
            Stage::Settling(_) | Stage::Comparing(_) if self.now < search.cut => {}
            Stage::Settling(settling) => {
                let settling = *settling;
                self.look_at_step(members, search, settling, heads);
            }
            Stage::Comparing(_) => self.compare(members, search, heads, end),
            Stage::Repeating(period) if self.now > period.control.until => {
                search.stage = Stage::Unwatched;
            }
            Stage::Repeating(_) if !search.may_leap => {}
            Stage::Repeating(_) => self.leap(members, search, end),
        }
    }

    /// The host with the most packets before its next last packet is the marker.
    fn watch(&mut self, members: &Members, search: &mut Search, hints: &[u64]) {
        let longest = members.senders.iter().filter_map(|&host| {
            let packets = self
                .workload
                .packets_before_last(HostId::new(host as usize));
            Some((packets?, std::cmp::Reverse(host)))
        });
        let Some((_, std::cmp::Reverse(host))) = longest.max() else {
            return;
        };
        search.watched = host;
        search.hint = hints.get(host as usize).copied().unwrap_or(0);
        self.watched = host;
        self.starts.clear();
        search.next_try = FIRST_TRY;
        search.rounds = 0;
        search.stage = Stage::Watching;
    }

    /// `None` if it is not known, or a notification is under way. Adds words of its state, with times relative to now.
    fn control(&self, members: &Members, words: &mut Vec<u64>) -> Option<Control> {
        let (mut changes, mut until) = (self.changes_at(members), u64::MAX);
        if !self.is_quiet(members) {
            return None;
        }
        if C::ACTIVE {
            for &host in &members.senders {
                let host = HostId::new(host as usize);
                let state = self.source.recurring(time(self.now), host)?;
                changes += state.changes;
                words.push(state.words.len() as u64);
                words.extend(state.words);
                until = until.min(state.until.as_ps());
            }
        }
        Some(Control { changes, until })
    }

    /// Grows with each change of what congestion control at switches knows of these ports.
    pub(super) fn changes_at(&self, members: &Members) -> u64 {
        if !S::ACTIVE {
            return 0;
        }
        let lanes = members.ports.iter();
        let lanes = lanes.flat_map(|&port| self.plane.lanes_of(port as usize));
        lanes
            .map(|lane| self.switch.changes(PortVl(lane as u32)))
            .sum()
    }

    /// Deliveries at or after the boundary are not in the log.
    fn logs_all(&self, members: &Members) -> bool {
        self.plane.received_by(members) < self.stats.boundary()
    }

    /// Takes steps of at least a quarter of a window, so that few windows are cut.
    fn begin_settling(&mut self, members: &Members, search: &mut Search, period: u64) {
        let window = self.plane.events.calendar.window_length();
        let step = period * (window / 4).max(1).div_ceil(period);
        search.stage = Stage::Settling(Settling {
            step,
            steps: 0,
            looks: self.plane.looks(members, self.now),
            events: self.simulated_events(),
        });
        search.cut = self.now + step;
    }

    fn look_at_step(
        &mut self,
        members: &Members,
        search: &mut Search,
        mut settling: Settling,
        heads: &mut Vec<Head>,
    ) {
        search.cut = self.now + settling.step;
        if self.simulated_events() < settling.events + members.ports.len() as u64 {
            return;
        }
        settling.events = self.simulated_events();
        settling.steps += 1;
        let looks = self.plane.looks(members, self.now);
        let is_alike = looks == std::mem::replace(&mut settling.looks, looks);
        let is_late = settling.steps >= SETTLES << search.rounds;
        search.stage = Stage::Settling(settling);
        if is_late || is_alike {
            let most_multiples = if is_late {
                MULTIPLES << search.rounds
            } else {
                1
            };
            self.write_down(members, search, heads, settling, most_multiples);
        }
    }

    fn write_down(
        &mut self,
        members: &Members,
        search: &mut Search,
        heads: &mut Vec<Head>,
        settling: Settling,
        most_multiples: u64,
    ) {
        let mut words = Vec::new();
        let control = self.control(members, &mut words);
        let Some(control) = control.filter(|_| self.logs_all(members)) else {
            return;
        };
        let plane = &self.plane;
        let described = plane.describe(members, self.now, heads, &mut |word| {
            words.push(word);
            ControlFlow::Continue(())
        });
        debug_assert!(described.is_continue(), "all words are taken");
        let outs = members.ports.iter().map(|&port| &plane.outs[port as usize]);
        let hosts = members.senders.iter();
        let hosts = hosts.map(|&host| plane.hosts[host as usize].injected);
        search.stage = Stage::Comparing(Box::new(Earlier {
            at: self.now,
            words,
            waits: outs.clone().map(|out| out.wait_since).collect(),
            ports: outs.map(counters).collect(),
            injected: hosts.collect(),
            events: self.events,
            deliveries: Vec::new(),
            messages: self.workload.progress(&members.senders, time(self.now)),
            control,
            settling,
            multiple: 1,
            most_multiples,
        }));
        self.stats.resume_log(Vec::new());
    }

    fn compare(&mut self, members: &Members, search: &mut Search, heads: &mut Vec<Head>, end: u64) {
        let Stage::Comparing(earlier) = &mut search.stage else {
            return;
        };
        if let Some(mut period) = self.period_since(members, earlier, heads) {
            period.deliveries = self.stats.take_log();
            search.stage = Stage::Repeating(Box::new(period));
            search.cut = u64::MAX;
            search.may_leap = true;
            self.leap(members, search, end);
            return;
        }
        let mut settling = earlier.settling;
        search.cut = self.now + settling.step;
        if earlier.multiple < earlier.most_multiples {
            earlier.multiple += 1;
            return;
        }
        self.stats.take_log();
        if earlier.most_multiples == 1 {
            settling.steps += 1;
            settling.looks = self.plane.looks(members, self.now);
            search.stage = Stage::Settling(settling);
            return;
        }
        search.rounds = MOST_ROUNDS.min(search.rounds + 1);
        search.next_try = 0;
        search.cut = u64::MAX;
        search.stage = Stage::Watching;
    }

    /// `None` if the states differ.
    fn period_since(
        &self,
        members: &Members,
        earlier: &Earlier,
        heads: &mut Vec<Head>,
    ) -> Option<Period> {
        let plane = &self.plane;
        let mut of_control = Vec::new();
        let control = self.control(members, &mut of_control)?;
        let is_same = control == earlier.control && self.now <= control.until;
        let mut words = earlier.words.iter();
        if !is_same || !of_control.iter().all(|word| words.next() == Some(word)) {
            return None;
        }
        let compared = plane.describe(members, self.now, heads, &mut |word| match words.next() {
            Some(&earlier) if earlier == word => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        });
        let is_alike = compared.is_continue() && words.next().is_none();
        if !is_alike || !self.logs_all(members) {
            return None;
        }
        let (waits, then) = (&earlier.waits, earlier.at);
        let waiting_on = ports_that_wait_on(members, waits, then, &plane.outs, self.now)?;
        let messages = self.workload.progress(&members.senders, time(self.now));
        let messages = messages.since(&earlier.messages)?;
        let outs = members.ports.iter().map(|&port| &plane.outs[port as usize]);
        let ports = outs.zip(&earlier.ports).enumerate();
        let ports = ports.filter_map(|(place, (out, before))| {
            let now = counters(out);
            let grown = [0, 1, 2].map(|index| now[index] - before[index]);
            (grown != [0; 3]).then_some((place as u32, grown))
        });
        let hosts = members.senders.iter().zip(&earlier.injected);
        let injected = hosts.map(|(&host, before)| plane.hosts[host as usize].injected - before);
        Some(Period {
            length: self.now - earlier.at,
            ports: ports.collect(),
            waiting_on,
            injected: injected.collect(),
            deliveries: Vec::new(),
            events: self.events - earlier.events,
            messages,
            control,
        })
    }

    fn leap(&mut self, members: &Members, search: &mut Search, end: u64) {
        let Stage::Repeating(period) = &search.stage else {
            return;
        };
        search.may_leap = false;
        let now = self.now;
        let is_same = |control: Control| control == period.control && now < control.until;
        if !self.control(members, &mut Vec::new()).is_some_and(is_same) {
            search.stage = Stage::Unwatched;
            return;
        }
        let end = end.min(period.control.until);
        // Deliveries are counted when the last switch starts the packet.
        let known_ahead = (self.plane.received_by(members) + 1).saturating_sub(now);
        let counted = self.stats.boundary().saturating_sub(known_ahead);
        let fits = end.min(counted).saturating_sub(now) / period.length;
        let periods = fits.min(self.workload.most_periods(&period.messages));
        if periods * period.events * WORTH < members.ports.len() as u64 {
            return;
        }
        let by = periods * period.length;
        let plane = &mut self.plane;
        let mut waiting_on = period.waiting_on.iter().copied().peekable();
        for (place, &port) in members.ports.iter().enumerate() {
            let out = &mut plane.outs[port as usize];
            let waits_on = waiting_on.next_if_eq(&(place as u32)).is_some();
            if out.wait_since != u64::MAX && !waits_on {
                out.wait_since += by;
            }
        }
        for &(place, [bytes, packets, wait]) in &period.ports {
            let out = &mut plane.outs[members.ports[place as usize] as usize];
            out.xmit_bytes += bytes * periods;
            out.xmit_packets += packets * periods;
            out.wait_total += wait * periods;
        }
        for (&host, bytes) in members.senders.iter().zip(&period.injected) {
            plane.hosts[host as usize].injected += bytes * periods;
        }
        plane.shift(members, now, by);
        self.stats
            .count_again(&period.deliveries, periods, by, &mut plane.hosts);
        let (from, span) = (time(now), Span::from_ps(by));
        self.workload
            .skip_periods(&period.messages, periods, from, span);
        if C::ACTIVE {
            for &host in &members.senders {
                self.source.shift(from, HostId::new(host as usize), span);
            }
        }
        self.events += period.events * periods;
        self.leapt_events += period.events * periods;
        self.now += by;
    }

    /// A time before which no last packet of a message starts.
    pub(super) fn undisturbed_until(&self, members: &Members, search: &Search, now: u64) -> u64 {
        let plane = &self.plane;
        let ends = members.senders.iter().filter_map(|&host| {
            let packets = self
                .workload
                .packets_before_last(HostId::new(host as usize))?;
            let out = &plane.outs[plane.hosts[host as usize].port as usize];
            Some(now + packets * plane.rates[usize::from(out.rate)].ser_mtu)
        });
        let at_full_rate = ends.min().unwrap_or(now);
        match &search.stage {
            Stage::Repeating(period) => {
                let periods = self.workload.most_periods(&period.messages);
                let repeats = now.saturating_add(periods.saturating_mul(period.length));
                // Later, congestion control may let the messages go faster.
                at_full_rate.max(repeats.min(period.control.until))
            }
            _ => at_full_rate,
        }
    }
}

fn counters(out: &OutPort) -> [u64; 3] {
    [out.xmit_bytes, out.xmit_packets, out.wait_total]
}
