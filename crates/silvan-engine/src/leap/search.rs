//! The search for a component's period, while the component runs alone.

use std::ops::ControlFlow;

use silvan_cc::hooks::{SourceControl, SwitchControl};
use silvan_core::HostId;

use super::paths::Members;
use super::period::Starts;
use super::state::ports_that_wait_on;
use crate::engine::Engine;
use crate::events::Head;
use crate::packet::NONE;
use crate::records::OutPort;
use crate::stats::Delivery;
use crate::variant::EngineVariant;
use crate::workload::{Progress, Workload};

const FIRST_TRY: usize = 6;
const FIRST_MULTIPLES: u64 = 32;
const MOST_MULTIPLES: u64 = 256;
/// Events per port that a leap must save.
const WORTH: u64 = 4;

#[derive(Debug, Default)]
enum Stage {
    #[default]
    Unwatched,
    Watching,
    Comparing(Box<Earlier>),
    Repeating(Box<Period>),
}

#[derive(Debug)]
struct Earlier {
    at: u64,
    words: Vec<u64>,
    waits: Vec<u64>,
    ports: Vec<[u64; 3]>,
    injected: Vec<u64>,
    events: u64,
    messages: Progress,
    step: u64,
    multiple: u64,
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
}

#[derive(Debug)]
pub(super) struct Search {
    stage: Stage,
    starts: Starts,
    watched: u32,
    next_try: usize,
    most_multiples: u64,
    /// The next comparison.
    pub cut: u64,
    may_leap: bool,
}

impl Search {
    pub fn new() -> Self {
        Self {
            stage: Stage::Unwatched,
            starts: Starts::default(),
            watched: NONE,
            next_try: FIRST_TRY,
            most_multiples: FIRST_MULTIPLES,
            cut: u64::MAX,
            may_leap: true,
        }
    }

    /// The component has run with the others.
    pub fn interrupt(&mut self) {
        if !matches!(self.stage, Stage::Repeating(_)) {
            self.stage = Stage::Unwatched;
        }
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    pub(super) fn begin_search(&mut self, search: &mut Search) {
        search.may_leap = true;
        std::mem::swap(&mut self.starts, &mut search.starts);
        self.watched = search.watched;
    }

    pub(super) fn end_search(&mut self, search: &mut Search) {
        if let Stage::Comparing(_) = search.stage {
            self.stats.take_log();
            search.stage = Stage::Watching;
        }
        search.cut = u64::MAX;
        std::mem::swap(&mut self.starts, &mut search.starts);
        self.watched = NONE;
    }

    /// Leaps, at most to `end`, if a period is known, or takes a step in its search.
    pub(super) fn look_for_leap(
        &mut self,
        members: &Members,
        search: &mut Search,
        heads: &mut Vec<Head>,
        end: u64,
    ) {
        match &mut search.stage {
            Stage::Unwatched => self.watch(members, search),
            Stage::Watching => {
                if self.starts.len() < search.next_try {
                    return;
                }
                match self.starts.period() {
                    Some(period) => self.write_down(members, search, heads, period),
                    None => search.next_try = 2 * self.starts.len(),
                }
            }
            Stage::Comparing(_) if self.now < search.cut => {}
            Stage::Comparing(_) => self.compare(members, search, heads, end),
            Stage::Repeating(_) if !search.may_leap => {}
            Stage::Repeating(_) => self.leap(members, search, end),
        }
    }

    /// The host with the most packets before its next last packet is the marker.
    fn watch(&mut self, members: &Members, search: &mut Search) {
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
        self.watched = host;
        self.starts.clear();
        search.next_try = FIRST_TRY;
        search.most_multiples = FIRST_MULTIPLES;
        search.stage = Stage::Watching;
    }

    /// Deliveries at or after the boundary are not in the log.
    fn logs_all(&self, members: &Members) -> bool {
        self.plane.received_by(members) < self.stats.boundary()
    }

    fn write_down(
        &mut self,
        members: &Members,
        search: &mut Search,
        heads: &mut Vec<Head>,
        step: u64,
    ) {
        if !self.logs_all(members) {
            return;
        }
        let mut words = Vec::new();
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
            messages: self.workload.progress(&members.senders),
            step,
            multiple: 1,
        }));
        search.cut = self.now + step;
        self.stats.start_log();
    }

    fn compare(
        &mut self,
        members: &Members,
        search: &mut Search,
        heads: &mut Vec<Head>,
        end: u64,
    ) {
        let Stage::Comparing(earlier) = &mut search.stage else {
            return;
        };
        if let Some(mut period) = self.period_since(members, earlier, heads) {
            period.deliveries = self.stats.take_log();
            search.stage = Stage::Repeating(Box::new(period));
            search.cut = u64::MAX;
            search.may_leap = true;
            self.leap(members, search, end);
        } else if earlier.multiple < search.most_multiples {
            earlier.multiple += 1;
            search.cut = earlier.at + earlier.multiple * earlier.step;
        } else {
            self.stats.take_log();
            search.most_multiples = MOST_MULTIPLES.min(2 * search.most_multiples);
            search.stage = Stage::Watching;
            search.next_try = self.starts.len() + (self.starts.len() / 2).max(1);
            search.cut = u64::MAX;
        }
    }

    /// `None` if the states differ.
    fn period_since(
        &self,
        members: &Members,
        earlier: &Earlier,
        heads: &mut Vec<Head>,
    ) -> Option<Period> {
        let plane = &self.plane;
        let mut words = earlier.words.iter();
        let compared = plane.describe(members, self.now, heads, &mut |word| match words.next() {
            Some(&earlier) if earlier == word => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        });
        if compared.is_break() || words.next().is_some() || !self.logs_all(members) {
            return None;
        }
        let (waits, then) = (&earlier.waits, earlier.at);
        let waiting_on = ports_that_wait_on(members, waits, then, &plane.outs, self.now)?;
        let messages = self.workload.progress(&members.senders);
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
        })
    }

    fn leap(&mut self, members: &Members, search: &mut Search, end: u64) {
        let Stage::Repeating(period) = &search.stage else {
            return;
        };
        search.may_leap = false;
        let now = self.now;
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
        self.workload.skip_periods(&period.messages, periods);
        self.events += period.events * periods;
        self.leapt_events += period.events * periods;
        self.now += by;
    }

    /// A time before which no last packet of a message starts.
    pub(super) fn undisturbed_until(&self, members: &Members, search: &Search, now: u64) -> u64 {
        let plane = &self.plane;
        let ends = members.senders.iter().filter_map(|&host| {
            let packets = self.workload.packets_before_last(HostId::new(host as usize))?;
            let out = &plane.outs[plane.hosts[host as usize].port as usize];
            Some(now + packets * plane.rates[usize::from(out.rate)].ser_mtu)
        });
        let at_full_rate = ends.min().unwrap_or(now);
        match &search.stage {
            Stage::Repeating(period) => {
                let periods = self.workload.most_periods(&period.messages);
                at_full_rate.max(now.saturating_add(periods.saturating_mul(period.length)))
            }
            _ => at_full_rate,
        }
    }
}

fn counters(out: &OutPort) -> [u64; 3] {
    [out.xmit_bytes, out.xmit_packets, out.wait_total]
}
