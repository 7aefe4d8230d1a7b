//! A fabric on several threads: each part, neighbouring switches with their hosts, is an [`Engine`].
//!
//! All parts process one lookahead window at a time, then exchange heads, credits, notifications and deliveries, which
//! take effect after the window or at hosts. Results depend on no numbers of parts or threads.

mod assignment;
mod balance;
mod exchange;
mod inboxes;
mod meeting;
#[cfg(test)]
mod meeting_tests;
mod readings;
mod split;
mod thread_count;
mod whole;

use silvan_cc::hooks::{PerHost, PerPortVl};
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use silvan_core::Time;
use silvan_model::EngineError;

use crate::deadlock::DeadlockChecks;
use crate::engine::{AtEnd, Engine, check_independence, earliest};
use crate::linked_hosts::link_hosts;
use crate::needs::Needs;
use crate::plane::LATEST;
use crate::variant::{CompiledFabric, EngineVariant, GeneralLookahead, Lookahead};
use crate::windows::OpenWindow;
use crate::workload::Workload;
use silvan_cc::hooks::{PortMessage, SourceControl, SwitchControl};

use assignment::Assignment;
use balance::{Sample, Sums, Watch};
use exchange::{Exchange, Parcel, PartMessages};
pub(crate) use exchange::{Remote, RemoteDeparture};
use meeting::Meeting;
use thread_count::ThreadCount;
pub(crate) use whole::Whole;

/// `head_queue` of an output with a cable to another part.
pub(crate) const REMOTE: u8 = u8::MAX - 1;

/// An engine whose fabric is divided into parts on several threads, with the results of one [`Engine`] to the bit.
#[derive(Debug)]
pub struct Partitioned<S, C, W, F = Lookahead> {
    parts: Vec<Engine<S, C, W, F>>,
    exchange: Exchange,
    threads: ThreadCount,
    sums: Sums,
    now: u64,
    fault: Option<EngineError>,
    deadlock_checks: DeadlockChecks,
}

impl CompiledFabric {
    /// True if a fabric can be divided: windows, later notifications, no restored order, several switches.
    pub fn is_divisible(&self) -> bool {
        self.0.notifies_later() && !self.restores_order() && Assignment::new(&self.0, 2).parts() > 1
    }
}

impl<S: PerPortVl, C: PerHost, W: Workload + Clone> Partitioned<S, C, W> {
    /// An engine on this many threads with so many parts each. Panics unless the fabric is divisible.
    pub fn new(
        mut fabric: CompiledFabric,
        switch: S,
        source: C,
        workload: W,
        division: (usize, usize),
    ) -> Self {
        fabric.serve(&switch);
        assert!(fabric.has_lookahead(), "the fabric has no lookahead");
        Self::divide(fabric, switch, source, workload, division)
    }
}

impl<S: PerPortVl, C: PerHost, W: Workload + Clone> Partitioned<S, C, W, GeneralLookahead> {
    /// Divides any fabric with [windows](CompiledFabric::has_windows). Panics as [`Engine::general_lookahead`], and
    /// unless [divisible](CompiledFabric::is_divisible).
    pub fn general_lookahead(
        fabric: CompiledFabric,
        switch: S,
        source: C,
        workload: W,
        division: (usize, usize),
    ) -> Self {
        Self::divide(fabric, switch, source, workload, division)
    }
}

impl<S, C, W, F> Partitioned<S, C, W, F>
where
    S: PerPortVl,
    C: PerHost,
    W: Workload + Clone,
    F: EngineVariant,
{
    fn divide(
        mut fabric: CompiledFabric,
        mut switch: S,
        source: C,
        workload: W,
        (threads, parts): (usize, usize),
    ) -> Self {
        fabric.serve(&switch);
        fabric.0.notify_routes(&mut switch);
        check_independence(&fabric, &switch, &source, &workload);
        assert!(fabric.is_divisible(), "the fabric cannot be divided");
        let assignment = Assignment::new(&fabric.0, threads * parts);
        let looks_ahead = Needs::of(&switch, &source, fabric.0.vls).select_next_vl;
        let planes = fabric.0.split(&assignment, looks_ahead);
        let mut parts: Vec<_> = planes
            .into_iter()
            .map(|plane| {
                let (switch, source) = (switch.clone(), source.clone());
                Engine::of_plane(plane, switch, source, workload.clone())
            })
            .collect();
        let whole_messages = parts.iter().all(|part| part.whole_messages);
        for part in &mut parts {
            part.whole_messages = whole_messages;
            part.exchange_messages(&mut Vec::new());
        }
        Self {
            exchange: Exchange::new(parts.len()),
            threads: ThreadCount::new(threads.min(parts.len()), processors()),
            sums: Sums::default(),
            parts,
            now: 0,
            fault: None,
            deadlock_checks: DeadlockChecks::default(),
        }
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

impl<S, C, W, F> Partitioned<S, C, W, F>
where
    S: PerPortVl,
    C: PerHost,
    W: Workload + Send,
    F: EngineVariant,
{
    /// Starts the full number of threads, also with fewer processors.
    pub fn start_all_threads(&mut self) {
        self.threads = ThreadCount::new(self.threads.most(), usize::MAX);
    }

    /// Processes events before `end`. Errors as [`Engine::run_until`].
    pub fn run_until(&mut self, end: Time) -> Result<(), EngineError> {
        self.run_to(end, AtEnd::Checks)
    }

    /// Runs like [`Engine::step_until`]. Errors: same errors as [`Engine::run_until`].
    pub fn step_until(&mut self, end: Time) -> Result<(), EngineError> {
        self.run_to(end, AtEnd::Settles)
    }

    /// Runs like [`Engine::advance_until`]; nothing lags. Errors: same errors as [`Engine::run_until`].
    pub fn advance_until(&mut self, end: Time) -> Result<(), EngineError> {
        self.run_to(end, AtEnd::Lags)
    }

    fn run_to(&mut self, end: Time, at_end: AtEnd) -> Result<(), EngineError> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let end_ps = end.as_ps();
        if end_ps >= LATEST {
            return Err(EngineError::TooLate(end));
        }
        for part in &mut self.parts {
            part.stats.set_boundary(end_ps, &mut part.plane.hosts);
        }
        while self.now < end_ps {
            let mut until = end_ps.min(self.deadlock_checks.next);
            for part in &mut self.parts {
                until = until.min(part.plane.collect_credits(self.now));
            }
            self.run_windows(until);
            self.fault = earliest(self.parts.iter().map(|part| part.fault.clone()));
            if let Some(EngineError::Loss(loss)) = &self.fault {
                self.fault = self.first_loss(loss.at.as_ps());
            }
            if let Some(fault) = &self.fault {
                return Err(fault.clone());
            }
            self.now = until;
            let events = self.events();
            let lags = at_end == AtEnd::Lags;
            let at_end = at_end == AtEnd::Checks && until == end_ps;
            if at_end || self.deadlock_checks.next == until {
                self.fault = self.first_loss(until.saturating_sub(1));
                if let Some(fault) = &self.fault {
                    return Err(fault.clone());
                }
            }
            if self.deadlock_checks.is_due(until, at_end, lags, events) {
                if let Some(deadlock) = self.whole().find_deadlock(self.now) {
                    self.fault = Some(deadlock.clone().into());
                    return Err(deadlock.into());
                }
                self.deadlock_checks.found_none(events);
            }
        }
        for part in &mut self.parts {
            part.stats.count_batch();
        }
        Ok(())
    }

    fn first_loss(&self, until: u64) -> Option<EngineError> {
        let losses = self.parts.iter().map(|part| part.plane.first_loss(until));
        let (loss, _) = losses
            .flatten()
            .min_by_key(|(loss, lane)| (loss.at, *lane))?;
        Some(EngineError::Loss(loss))
    }

    fn run_windows(&mut self, end: u64) {
        // A single window: a fabric without events reaches the end before threads could start.
        self.run_slice(end, 1, Instant::now());
        let fails = |part: &Engine<S, C, W, F>| part.fault.is_some();
        while self.parts[0].now < end && !self.parts.iter().any(fails) {
            let before = self.events();
            let (threads, time) = self.threads.next();
            let started = Instant::now();
            let samples = self.run_slice(end, threads, started + time);
            self.sums.add(&samples);
            self.threads
                .record(self.events() - before, started.elapsed());
        }
    }

    fn run_slice(&mut self, end: u64, threads: usize, deadline: Instant) -> Vec<Vec<Sample>> {
        let each = self.parts.len().div_ceil(threads);
        let parts: Vec<_> = self.parts.iter_mut().map(Mutex::new).collect();
        let meeting = &Meeting::new(parts.len().div_ceil(each));
        let (parts, exchange) = (&parts[..], &self.exchange);
        let run = move |first: usize, deadline| {
            let own = first..(first + each).min(parts.len());
            run_group(parts, own, (end, deadline), exchange, meeting)
        };
        std::thread::scope(|scope| {
            let others = (0..parts.len()).step_by(each).skip(1);
            let spawn = |first| scope.spawn(move || run(first, None));
            let others: Vec<_> = others.map(spawn).collect();
            let mut samples = vec![run(0, Some(deadline))];
            for other in others {
                samples.push(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
            }
            samples
        })
    }
}

const WINDOWS_PER_CHECK: usize = 16;

type Held<'a, 'b, E> = Vec<MutexGuard<'a, &'b mut E>>;

fn hold<'a, 'b, E>(held: &mut Held<'a, 'b, E>, parts: &'a [Mutex<&'b mut E>]) {
    let lock = |part: &'a Mutex<_>| part.lock().unwrap_or_else(PoisonError::into_inner);
    held.extend(parts.iter().map(lock));
}

/// Flags of a meeting: a part has a fault, the time is over, or the workload is notified in the window.
const FAULT: usize = 1;
const STOP: usize = 2;
const LINKED: usize = 4;

fn run_group<S, C, W, F>(
    parts: &[Mutex<&mut Engine<S, C, W, F>>],
    own: Range<usize>,
    (end, deadline): (u64, Option<Instant>),
    exchange: &Exchange,
    meeting: &Meeting,
) -> Vec<Sample>
where
    S: SwitchControl,
    C: SourceControl,
    W: Workload,
    F: EngineVariant,
{
    let _guard = meeting.guard();
    let mut watch = Watch::default();
    let mut held = Vec::with_capacity(parts.len());
    hold(&mut held, &parts[own.clone()]);
    for number in 0.. {
        watch.begin(number);
        let mut flags = 0;
        // The window is equal for all parts, except for its events.
        let mut open: Option<OpenWindow> = None;
        for part in &mut held {
            let mut window = part.window_at_switches(end);
            let answers = part.exchange_messages(&mut Vec::new());
            // A part that has sent something since the last exchange does not skip the next window.
            if part.plane.remote.hand_over(exchange, number) || answers {
                window.next = window.limit;
            }
            if W::LINKS_HOSTS && part.are_hosts_linked(window.limit) {
                flags |= LINKED;
            }
            if part.fault.is_some() {
                flags |= FAULT;
            }
            let next = open.map_or(window.next, |open| open.next.min(window.next));
            open = Some(OpenWindow { next, ..window });
        }
        let Some(open) = open else {
            break;
        };
        let is_late = |deadline| Instant::now() >= deadline;
        if number % WINDOWS_PER_CHECK == 0 && deadline.is_some_and(is_late) {
            flags |= STOP;
        }
        if W::LINKS_HOSTS {
            held.clear();
        }
        let link = |flags| {
            if W::LINKS_HOSTS && flags & LINKED != 0 {
                let mut all = Vec::with_capacity(parts.len());
                hold(&mut all, parts);
                link_hosts(&mut all, open.limit);
            }
        };
        let Some((next, flags)) = watch.wait(|| meeting.wait(open.next, flags, link)) else {
            break;
        };
        if W::LINKS_HOSTS {
            hold(&mut held, &parts[own.clone()]);
        }
        for part in &mut held {
            part.receive_parcels(exchange, number);
        }
        let ends = flags & FAULT != 0;
        for part in &mut held {
            part.window_at_hosts(open);
            // Also after a fault: all parts stay at one instant.
            part.now = if ends { end } else { next };
        }
        watch.end();
        if ends || flags & STOP != 0 || next >= end {
            break;
        }
    }
    watch.into_samples()
}

impl<S: SwitchControl, C: SourceControl, W: Workload, F: EngineVariant> Engine<S, C, W, F> {
    fn receive_parcels(&mut self, exchange: &Exchange, window: usize) {
        let own = self.plane.remote.own();
        exchange.receive(window, usize::from(own), |parcel| self.unpack(parcel));
    }

    fn unpack(&mut self, parcel: &mut Parcel) {
        let sent = &mut parcel.extensions;
        for mut head in parcel.heads.drain(..) {
            self.plane.extensions.receive(&mut head.packet, sent);
            self.plane.receive_head::<F>(head);
        }
        for credits in parcel.credits.drain(..) {
            let plane = &mut self.plane;
            let lane = &mut plane.credits[credits.lane as usize];
            lane.post(&mut plane.overflow, self.now, credits.due, credits.blocks);
            if lane.starved {
                let free_at = plane.outs[credits.output as usize].free_at;
                self.wake_output(credits.output, credits.due.max(free_at));
            }
        }
        for departure in parcel.departures.drain(..) {
            self.receive_departure(departure);
        }
        for (at, mut notification) in parcel.notifications.drain(..) {
            self.plane.extensions.receive(&mut notification, sent);
            self.plane.schedule_arrival(at, notification);
        }
        for (done, packet) in parcel.deliveries.drain(..) {
            self.plane.schedule_arrived(done, packet);
        }
        for (at, host, nack) in parcel.nacks.drain(..) {
            self.plane.schedule_sending(at, host, nack);
        }
        sent.clear();
        if !parcel.messages.is_empty() {
            self.exchange_messages(&mut parcel.messages);
        }
    }

    fn exchange_messages(&mut self, arrived: &mut Vec<PortMessage>) -> bool {
        S::ACTIVE && self.needs.exchange && {
            let mut messages = PartMessages {
                remote: &mut self.plane.remote,
                own: arrived,
            };
            self.switch.exchange(Time::from_ps(self.now), &mut messages)
        }
    }
}
