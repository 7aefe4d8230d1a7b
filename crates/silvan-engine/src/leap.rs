//! Leaps over repeating states: exact fast-forward.
//!
//! If a state repeats without message starts or ends, the engine adds the period's counts as often
//! as they fit before one.

mod period;
mod state;

use std::ops::ControlFlow;

use silvan_cc::hooks::{SourceControl, SwitchControl};

use crate::engine::Engine;
use crate::events::Head;
use crate::packet::NONE;
use crate::records::OutPort;
use crate::stats::Delivery;
use crate::variant::EngineVariant;
use crate::workload::{Progress, Workload};
pub(crate) use period::Starts;
use state::ports_that_wait_on;

const FIRST_TRY: usize = 6;
const FIRST_MULTIPLES: u64 = 32;
const MOST_MULTIPLES: u64 = 256;
/// Events per host before a search begins, and per port that a leap must save.
const WORTH: u64 = 4;

#[derive(Debug, Default)]
enum Stage {
    #[default]
    Changed,
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

#[derive(Debug)]
struct Period {
    length: u64,
    ports: Vec<(u32, [u64; 3])>,
    waiting_on: Vec<u32>,
    injected: Vec<(u32, u64)>,
    deliveries: Vec<Delivery>,
    events: u64,
    messages: Progress,
}

#[derive(Debug)]
pub(crate) struct Leaps {
    stage: Stage,
    next_try: usize,
    most_multiples: u64,
    message_changes: u64,
    events: u64,
    cut: u64,
    retry_at: u64,
    heads: Vec<Head>,
}

impl Leaps {
    pub fn new() -> Self {
        Self {
            stage: Stage::Changed,
            next_try: FIRST_TRY,
            most_multiples: FIRST_MULTIPLES,
            message_changes: 0,
            events: 0,
            cut: u64::MAX,
            retry_at: 0,
            heads: Vec::new(),
        }
    }

    fn begin_again(&mut self, events: u64) {
        self.stage = Stage::Changed;
        self.cut = u64::MAX;
        self.events = events;
    }
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    #[inline(always)]
    pub(crate) fn has_leaps() -> bool {
        W::RECURS && F::LOOKAHEAD && !S::ACTIVE && !C::ACTIVE
    }

    pub(crate) fn prepare_leaps(&mut self) {
        let may_leap = self.no_leaps().is_none();
        self.leaps = may_leap.then(|| Box::new(Leaps::new()));
    }

    /// Reason for a run without leaps; `None` if it may leap.
    pub fn no_leaps(&self) -> Option<&'static str> {
        if !self.plane.config.fast_forward {
            return Some("fast-forward is off");
        }
        if !F::LOOKAHEAD {
            return Some("the run is simulated event by event");
        }
        if S::ACTIVE || C::ACTIVE {
            return Some("the run has congestion control");
        }
        if !W::RECURS || !self.workload.can_recur() {
            return Some("the traffic is not programs alone");
        }
        let hidden = self.plane.hidden_state();
        hidden
            .or_else(|| (!self.whole_messages).then_some("the traffic is notified of each packet"))
    }

    pub(crate) fn note_change(&mut self) {
        if let Some(leaps) = &mut self.leaps {
            leaps.begin_again(self.events);
            self.stats.take_log();
            self.watched = NONE;
        }
    }

    #[inline(always)]
    pub(crate) fn note_start(&mut self, now: u64, host: u32, destination: u32) {
        if Self::has_leaps() && host == self.watched {
            self.starts.note(now, destination);
        }
    }

    #[inline(never)]
    pub(crate) fn run_windows_with_leaps(&mut self, mut leaps: Box<Leaps>, end: u64) {
        leaps.retry_at = 0;
        while self.fault.is_none() && self.now < end {
            self.look_for_leap(&mut leaps, end);
            if self.now < end {
                self.now = self.run_window(end.min(leaps.cut));
            }
        }
        self.leaps = Some(leaps);
    }

    fn look_for_leap(&mut self, leaps: &mut Leaps, end: u64) {
        let changes = self.workload.message_changes();
        if changes != leaps.message_changes {
            leaps.message_changes = changes;
            self.stats.take_log();
            self.watched = NONE;
            leaps.begin_again(self.events);
            return;
        }
        match &mut leaps.stage {
            Stage::Changed
                if self.events - leaps.events < self.plane.hosts.len() as u64 / WORTH => {}
            Stage::Changed => self.watch(leaps),
            Stage::Watching => {
                if self.starts.len() < leaps.next_try {
                    return;
                }
                match self.starts.period() {
                    Some(period) => self.write_down(leaps, period),
                    None => leaps.next_try = 2 * self.starts.len(),
                }
            }
            Stage::Comparing(_) if self.now < leaps.cut => {}
            Stage::Comparing(_) => self.compare(leaps, end),
            Stage::Repeating(_) if self.now < leaps.retry_at => {}
            Stage::Repeating(_) => self.leap(leaps, end),
        }
    }

    fn watch(&mut self, leaps: &mut Leaps) {
        leaps.events = self.events;
        let Some(host) = self.workload.busiest_host() else {
            return;
        };
        self.watched = host.index() as u32;
        self.starts.clear();
        leaps.next_try = FIRST_TRY;
        leaps.most_multiples = FIRST_MULTIPLES;
        leaps.stage = Stage::Watching;
    }

    fn write_down(&mut self, leaps: &mut Leaps, step: u64) {
        if !self.stats.has_counted_all() || self.plane.events.next_delivery().is_none() {
            return;
        }
        let mut words = Vec::new();
        let plane = &self.plane;
        let described = plane.describe(self.now, &mut leaps.heads, &mut |word| {
            words.push(word);
            ControlFlow::Continue(())
        });
        debug_assert!(described.is_continue(), "all words are taken");
        let counters = |out: &OutPort| [out.xmit_bytes, out.xmit_packets, out.wait_total];
        leaps.stage = Stage::Comparing(Box::new(Earlier {
            at: self.now,
            words,
            waits: plane.outs.iter().map(|out| out.wait_since).collect(),
            ports: plane.outs.iter().map(counters).collect(),
            injected: plane.hosts.iter().map(|host| host.injected).collect(),
            events: self.events,
            messages: self.workload.progress(),
            step,
            multiple: 1,
        }));
        leaps.cut = self.now + step;
        self.stats.start_log();
    }

    fn compare(&mut self, leaps: &mut Leaps, end: u64) {
        let Stage::Comparing(earlier) = &mut leaps.stage else {
            return;
        };
        let period = self.period_since(earlier, &mut leaps.heads);
        if let Some(mut period) = period {
            period.deliveries = self.stats.take_log();
            leaps.stage = Stage::Repeating(Box::new(period));
            leaps.cut = u64::MAX;
            leaps.retry_at = 0;
            self.watched = NONE;
            self.leap(leaps, end);
        } else if earlier.multiple < leaps.most_multiples {
            earlier.multiple += 1;
            leaps.cut = earlier.at + earlier.multiple * earlier.step;
        } else {
            self.stats.take_log();
            leaps.most_multiples = MOST_MULTIPLES.min(2 * leaps.most_multiples);
            leaps.stage = Stage::Watching;
            leaps.next_try = self.starts.len() + (self.starts.len() / 2).max(1);
            leaps.cut = u64::MAX;
        }
    }

    /// `None` if the states differ.
    fn period_since(&self, earlier: &Earlier, heads: &mut Vec<Head>) -> Option<Period> {
        let plane = &self.plane;
        let mut words = earlier.words.iter();
        let compared = plane.describe(self.now, heads, &mut |word| match words.next() {
            Some(&earlier) if earlier == word => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        });
        if compared.is_break() || words.next().is_some() || !self.stats.has_counted_all() {
            return None;
        }
        let waiting_on = ports_that_wait_on(&earlier.waits, earlier.at, &plane.outs, self.now)?;
        let messages = self.workload.progress().since(&earlier.messages)?;
        plane.events.next_delivery()?;
        let outs = plane.outs.iter().zip(&earlier.ports).enumerate();
        let ports = outs.filter_map(|(output, (out, before))| {
            let [bytes, packets, wait] = *before;
            let grown = [
                out.xmit_bytes - bytes,
                out.xmit_packets - packets,
                out.wait_total - wait,
            ];
            (grown != [0; 3]).then_some((output as u32, grown))
        });
        let hosts = plane.hosts.iter().zip(&earlier.injected).enumerate();
        let injected = hosts.filter_map(|(number, (host, before))| {
            let grown = host.injected - before;
            (grown != 0).then_some((number as u32, grown))
        });
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

    fn leap(&mut self, leaps: &mut Leaps, end: u64) {
        let Stage::Repeating(period) = &leaps.stage else {
            return;
        };
        let now = self.now;
        // Deliveries are counted when the last switch starts the packet.
        let known_ahead = (self.plane.received_by() + 1).saturating_sub(now);
        let counted = self.stats.boundary().saturating_sub(known_ahead);
        let call_ends = end.min(counted);
        let mut outside = self.timer_at.min(self.change_at);
        leaps.retry_at = outside.saturating_add(1);
        if call_ends.min(outside).saturating_sub(now) < period.length {
            return;
        }
        outside = outside.min(self.plane.events.next_delivery().unwrap_or(0));
        leaps.retry_at = outside.saturating_add(1);
        let latest = call_ends.min(outside);
        let fits = latest.saturating_sub(now) / period.length;
        let periods = fits.min(self.workload.most_periods(&period.messages));
        if periods * period.events < self.plane.outs.len() as u64 / WORTH {
            return;
        }
        let by = periods * period.length;
        let plane = &mut self.plane;
        let mut waiting_on = period.waiting_on.iter().copied().peekable();
        for (output, out) in plane.outs.iter_mut().enumerate() {
            let waits_on = waiting_on.next_if_eq(&(output as u32)).is_some();
            if out.wait_since != u64::MAX && !waits_on {
                out.wait_since += by;
            }
        }
        for &(output, [bytes, packets, wait]) in &period.ports {
            let out = &mut plane.outs[output as usize];
            out.xmit_bytes += bytes * periods;
            out.xmit_packets += packets * periods;
            out.wait_total += wait * periods;
        }
        for &(host, bytes) in &period.injected {
            plane.hosts[host as usize].injected += bytes * periods;
        }
        plane.shift(now, by);
        let deliveries = &period.deliveries;
        self.stats
            .count_again(deliveries, periods, by, &mut plane.hosts);
        self.workload.skip_periods(&period.messages, periods);
        self.events += period.events * periods;
        self.now += by;
    }
}
