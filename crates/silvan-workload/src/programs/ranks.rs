use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use silvan_cc::workload::{Offer, Transit};
use silvan_core::{Bytes, HostId, Sl, Span, Time};

use crate::programs::collective::split;
use crate::programs::detail::Detail;
use crate::programs::error::Fault;
use crate::programs::external::{External, SendQueue};
use crate::programs::flows::{Flows, Part, Sent};
use crate::programs::mail::Letter;
use crate::programs::matching::{Arrived, Matcher, Posted};
use crate::programs::message::{Message, Messages, Stage};
use crate::programs::rank::{Rank, RankTotals, Reads, Work};
use crate::programs::record::{Mark, OpTimes};
use crate::programs::section::{Messaging, Rendezvous, Striping};
use crate::programs::senders::{Launch, Payload, QueuePair};
use crate::programs::shares::Shares;
use crate::programs::spec::{Helpers, JobSpec};

#[derive(Debug)]
pub(crate) struct Job {
    pub name: String,
    pub class: u16,
    pub sl: Sl,
    pub start: Time,
    pub background: bool,
    pub labels: Vec<String>,
    pub first: u32,
    pub size: u32,
    /// The last of `size` ranks, which are in adapters or switches.
    pub helpers: u32,
    pub running: u32,
    /// Timers and messages in flight.
    pub pending: u32,
    pub done_at: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TimerKind {
    GoOn,
    /// The overhead of the current operation is paid.
    Start,
    Begin,
    Task(u32),
    /// A message within a host has arrived.
    Local(u32),
    /// The gap of the host is over.
    Leave(u32),
    /// A message from another host is in memory.
    Passed(u32),
    /// A rank is ready for an announced message.
    Answer(u32),
    External(u32),
}

/// Ordered by time, rank, and order of setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Timer {
    at: Time,
    rank: u32,
    set: u64,
    due: TimerKind,
}

/// Message-passing programs in progress: timers and deliveries drive them, polls in any order.
#[derive(Debug)]
pub struct Programs {
    pub(crate) messaging: Messaging,
    pub(crate) jobs: Vec<Job>,
    pub(crate) ranks: Vec<Rank>,
    messages: Messages,
    shares: Shares,
    pub(crate) payload: Payload,
    pub(crate) flows: Flows,
    timers: BinaryHeap<Reverse<Timer>>,
    timers_set: u64,
    /// By sending host.
    pub(crate) launched: Vec<(HostId, Letter)>,
    pub(crate) ready: VecDeque<(u32, u32)>,
    pub(crate) marks: Vec<Mark>,
    pub(crate) detail: Option<Box<Detail>>,
    pub(crate) external: Option<Box<External>>,
    fault: Option<Fault>,
    running: u32,
}

impl Programs {
    /// Starts all ranks of all jobs at time zero, on a fabric with this many hosts.
    pub fn new(jobs: Vec<JobSpec>, messaging: Messaging, payload: Payload, hosts: usize) -> Self {
        Self::with_detail(jobs, messaging, payload, hosts, false)
    }

    /// Creates the programs, and records single messages and steps.
    pub fn recorded(
        jobs: Vec<JobSpec>,
        messaging: Messaging,
        payload: Payload,
        hosts: usize,
    ) -> Self {
        Self::with_detail(jobs, messaging, payload, hosts, true)
    }

    fn with_detail(
        jobs: Vec<JobSpec>,
        messaging: Messaging,
        payload: Payload,
        hosts: usize,
        detail: bool,
    ) -> Self {
        let mut programs = Self {
            messaging,
            jobs: Vec::with_capacity(jobs.len()),
            ranks: Vec::new(),
            messages: Messages::default(),
            shares: Shares::new(hosts),
            payload,
            flows: Flows::new(hosts),
            timers: BinaryHeap::new(),
            timers_set: 0,
            launched: Vec::new(),
            ready: VecDeque::new(),
            marks: Vec::new(),
            detail: detail.then(Box::default),
            external: None,
            fault: None,
            running: 0,
        };
        for spec in jobs {
            programs.add(spec);
        }
        for rank in 0..programs.ranks.len() as u32 {
            programs.start_rank(rank);
        }
        programs.fire_timers(Time::ZERO);
        for job in 0..programs.jobs.len() as u32 {
            programs.check_job(job, Time::ZERO);
        }
        programs
    }

    pub(crate) fn add(&mut self, spec: JobSpec) {
        let job = self.jobs.len() as u32;
        let size = spec.ranks.len() as u32;
        self.running += u32::from(!spec.background);
        self.jobs.push(Job {
            name: spec.name,
            class: spec.class,
            sl: spec.sl,
            start: spec.start,
            background: spec.background,
            labels: spec.labels,
            first: self.ranks.len() as u32,
            size,
            helpers: spec.helpers.ranks,
            running: size,
            pending: 0,
            done_at: None,
        });
        let mut rails = spec.rails.into_iter();
        for (host, script) in spec.ranks {
            self.ranks.push(Rank {
                host,
                rails: rails.next().unwrap_or_default(),
                next_rail: 0,
                reads: Reads::default(),
                job,
                work: Work::new(script),
                matcher: Matcher::default(),
                unmet: BTreeMap::new(),
                copies_end: Time::ZERO,
                computes_until: Time::ZERO,
                done_at: None,
                totals: RankTotals::default(),
                delay: Span::ZERO,
                compute_factor: None,
                is_helper: false,
                in_switch: None,
            });
        }
        let ranks = self.ranks.len() - size as usize;
        let Helpers {
            ranks: helpers,
            in_switches,
        } = spec.helpers;
        for rank in self.ranks.iter_mut().rev().take(helpers as usize) {
            rank.is_helper = true;
            rank.in_switch = in_switches;
        }
        for slow in spec.stragglers {
            let rank = &mut self.ranks[ranks + slow.rank as usize];
            rank.delay = slow.delay;
            rank.compute_factor = Some(slow.compute_factor);
        }
    }

    fn start_rank(&mut self, rank: u32) {
        let state = &self.ranks[rank as usize];
        let start = self.jobs[state.job as usize].start + state.delay;
        match self.ranks[rank as usize].work {
            Work::External => {}
            Work::Sequence(_) if start == Time::ZERO => self.go_on(rank, start),
            Work::Schedule(_) if start == Time::ZERO => self.start_schedule(rank, start),
            Work::Sequence(_) => self.set_timer(rank, start, TimerKind::GoOn),
            Work::Schedule(_) => self.set_timer(rank, start, TimerKind::Begin),
        }
    }

    /// Returns true if all jobs that the run waits for are done.
    pub fn is_finished(&self) -> bool {
        self.running == 0
    }

    /// Returns the fault, if there is one.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// Start and end of every operation of ranks with schedules, by rank.
    pub fn op_times(&self) -> Vec<OpTimes> {
        crate::programs::record::op_times(self)
    }

    /// The next instant at which something happens by itself.
    pub fn next_timer(&self) -> Option<Time> {
        self.timers.peek().map(|timer| timer.0.at)
    }

    pub(crate) fn note_sent(&mut self, sent: &mut Vec<Sent>, now: Time) {
        for sent in sent.drain(..) {
            if sent.part == Part::Whole {
                self.flows.note_sent(sent);
                self.note_departed(sent.message, now);
                continue;
            }
            if sent.part == Part::Some {
                self.flows.end(sent.flow, sent.number);
            }
            self.note_withdrawn(sent.message, now);
        }
    }

    /// Ends a driver's message that does not arrive.
    pub(crate) fn end_message(&mut self, slot: u32, now: Time) {
        self.tell_lost(slot, now);
        let job = self.ranks[self.messages.at(slot).source as usize].job;
        self.take_lost(slot);
        self.messages.remove(slot);
        self.jobs[job as usize].pending -= 1;
        self.check_job(job, now);
    }

    /// Counts a lost packet, in order of sending where its queue tells gaps.
    pub(crate) fn count_lost(&mut self, flow: u32, number: u16, now: Time) {
        if let Some(message) = self.flows.delivered_of(flow, number) {
            self.end_message(message, now);
        }
    }

    /// The packet completes its message or is counted. `under_way` finds the message that a flow is sending.
    pub(crate) fn delivered(
        &mut self,
        from: HostId,
        offer: &Offer,
        transit: Transit,
        under_way: impl FnOnce(u32) -> Option<u32>,
        now: Time,
    ) {
        let of_driver = self.is_of_driver(offer.class);
        if let Some(number) = transit.number {
            let flow = self.flows.of_packet(from, offer, of_driver);
            if let Some(flow) = flow.filter(|_| of_driver && self.has_gaps()) {
                let sent = self.flows.sent_of(flow, number);
                if let Some(place) = sent.or_else(|| under_way(flow)) {
                    self.tell_gaps(place, transit.sent, now);
                }
            }
            let whole = flow.and_then(|flow| self.flows.delivered_of(flow, number));
            if let Some(message) = whole {
                self.arrived(message, now);
            }
            return;
        }
        let completes = transit.completes;
        let flow = self.flows.delivered(from, offer, of_driver, completes);
        self.take_whole(flow, now);
    }

    /// Messages with a discarded packet never arrive. `under_way` finds the message that a flow is sending.
    pub(crate) fn lost(
        &mut self,
        from: HostId,
        offer: &Offer,
        transit: Transit,
        under_way: impl FnOnce(u32) -> Option<u32>,
        now: Time,
    ) {
        if !self.is_of_driver(offer.class) {
            return;
        }
        let flow = self.flows.of_packet(from, offer, true);
        if let (Some(flow), Some(number)) = (flow, transit.number) {
            return self.lose_packet(flow, number, transit.sent, under_way, now);
        }
        if let Some(flow) = flow {
            self.lose_flow(flow);
        }
        let in_order = transit.completes;
        if offer.last || !in_order {
            let flow = self.flows.delivered(from, offer, true, in_order);
            self.take_whole(flow, now);
        }
    }

    fn lose_packet(
        &mut self,
        flow: u32,
        number: u16,
        sent: Time,
        under_way: impl FnOnce(u32) -> Option<u32>,
        now: Time,
    ) {
        let message = self.flows.sent_of(flow, number);
        let message = message.or_else(|| under_way(flow));
        if message.is_some_and(|message| self.note_gap(message, (flow, number), sent)) {
            self.count_lost(flow, number, now);
        }
    }

    /// A connection has given up: the message that its first packet is of fails, and the job with it.
    pub(crate) fn failed(
        &mut self,
        from: HostId,
        offer: &Offer,
        under_way: impl FnOnce(u32) -> Option<u32>,
        now: Time,
    ) {
        let flow = self.flows.of_packet(from, offer, false);
        let message = flow.and_then(|flow| {
            let sent = self.flows.sent_of(flow, offer.number);
            sent.or_else(|| under_way(flow))
        });
        if let Some(message) = message.filter(|_| self.fault.is_none()) {
            self.fault = Some(self.given_up(message, now));
        }
    }

    fn take_whole(&mut self, flow: Option<u32>, now: Time) {
        if let Some(flow) = flow {
            while let Some(message) = self.flows.take_whole(flow) {
                self.arrived(message, now);
            }
        }
    }

    pub(crate) fn set_timer(&mut self, rank: u32, at: Time, due: TimerKind) {
        let set = self.timers_set;
        self.timers_set += 1;
        self.jobs[self.ranks[rank as usize].job as usize].pending += 1;
        self.timers.push(Reverse(Timer { at, rank, set, due }));
    }

    pub(crate) fn fire_timers(&mut self, now: Time) {
        while let Some(Reverse(timer)) = self.timers.peek().copied() {
            if timer.at > now || self.is_stopped() {
                return;
            }
            self.timers.pop();
            let job = self.ranks[timer.rank as usize].job;
            match timer.due {
                TimerKind::GoOn => self.go_on(timer.rank, timer.at),
                TimerKind::Start => self.start_paid(timer.rank, timer.at),
                TimerKind::Begin => self.start_schedule(timer.rank, timer.at),
                TimerKind::Task(cpu) => self.task_done(timer.rank, cpu, timer.at),
                TimerKind::Local(message) => self.advance_message(message, timer.at),
                TimerKind::Leave(message) => self.leave(message, timer.at),
                TimerKind::Passed(message) => self.advance_message(message, timer.at),
                TimerKind::Answer(message) => self.answer(message, timer.at),
                TimerKind::External(token) => self.notify_driver(token, timer.at),
            }
            self.jobs[job as usize].pending -= 1;
            self.check_job(job, timer.at);
        }
    }

    fn stage_bytes(&self, message: &Message) -> u64 {
        if message.stage.is_control() {
            self.messaging.control.as_u64()
        } else {
            message.bytes
        }
    }

    pub(crate) fn launch(&mut self, slot: u32, now: Time) {
        if self.messaging.gap.is_zero() {
            return self.leave(slot, now);
        }
        let (from, _) = self.messages.at(slot).way();
        let host = self.ranks[from as usize].host;
        match self.shares.start(host, now, self.messaging.gap) {
            start if start > now => self.set_timer(from, start, TimerKind::Leave(slot)),
            _ => self.leave(slot, now),
        }
    }

    fn copied(&mut self, slot: u32, now: Time) -> Time {
        let message = self.messages.at(slot);
        let bytes = self.stage_bytes(message);
        let is_control = message.stage.is_control();
        let (from, _) = message.way();
        let sender = &mut self.ranks[from as usize];
        let copied = self.messaging.local_rate.span_for(Bytes::from_bytes(bytes));
        sender.copies_end = sender.copies_end.max(now).saturating_add(copied);
        let mut end = sender.copies_end;
        if let Some(rate) = self.messaging.memory_rate.filter(|_| !is_control) {
            end = end.max(self.shares.copy(sender.host, now, bytes, rate));
        }
        end.saturating_add(self.messaging.local_latency)
    }

    fn leave(&mut self, slot: u32, now: Time) {
        let responds = self.messages.at(slot).stage == Stage::GetReply;
        let queue = SendQueue {
            responds,
            ..SendQueue::default()
        };
        self.launch_on(slot, (None, queue), now);
    }

    /// Copies a stage within the host, or gives it to the adapter with this service level (or the job's) and queue.
    fn launch_on(&mut self, slot: u32, (sl, queue): (Option<Sl>, SendQueue), now: Time) {
        let message = self.messages.at(slot);
        let bytes = self.stage_bytes(message);
        let (from, to) = message.way();
        let (sender, receiver) = (&self.ranks[from as usize], &self.ranks[to as usize]);
        if sender.host == receiver.host {
            let at = self.copied(slot, now);
            return self.set_timer(from, at, TimerKind::Local(slot));
        }
        let is_control = message.stage.is_control();
        let mut moved = now;
        if let Some(rate) = self.messaging.memory_rate.filter(|_| !is_control) {
            for end in [sender, receiver]
                .into_iter()
                .filter(|end| end.in_switch.is_none())
            {
                moved = moved.max(self.shares.go_through(end.host, now, bytes, rate));
            }
        }
        let job = &mut self.jobs[sender.job as usize];
        job.pending += 1;
        let (sl, class) = (sl.unwrap_or(job.sl), job.class);
        let of_driver = self.is_of_driver(class);
        let (first, parts) = self.rails_for(slot, bytes);
        let message = self.messages.at_mut(slot);
        message.parts = parts;
        message.moved = moved;
        let queue_pair = QueuePair { from, to, queue };
        for part in 0..parts {
            let rail = (first + part) as usize;
            let adapter = |rank: u32| self.ranks[rank as usize].adapter(rail);
            let (source, target) = (adapter(from), adapter(to));
            let launch = Launch {
                at: now,
                message: slot,
                queue_pair,
                bytes: split(bytes, parts, part),
                flow: self.flows.number(source, target, sl, of_driver),
                to: target,
                sl,
                class,
            };
            if of_driver {
                self.note_launched(slot, launch.flow, queue_pair);
            }
            self.launched.push((source, Letter::Launch(launch)));
        }
    }

    /// Withdraws what a driver's rank has not sent from its queues with this number.
    pub(crate) fn withdraw(&mut self, from: u32, queue: SendQueue, now: Time) {
        let host = self.ranks[from as usize].adapter(0);
        let letter = Letter::Withdraw {
            at: now,
            from,
            queue,
        };
        self.launched.push((host, letter));
    }

    fn rails_for(&mut self, slot: u32, bytes: u64) -> (u32, u32) {
        let message = self.messages.at(slot);
        let (from, to) = message.way();
        let rails = |rank: u32| self.ranks[rank as usize].rails.len().max(1) as u32;
        let rails = rails(from).min(rails(to));
        let Messaging {
            eager_limit,
            stripe_above,
            ..
        } = self.messaging;
        let most = stripe_above.unwrap_or(eager_limit).as_u64();
        let is_short = message.stage.is_control() || bytes <= most;
        match self.messaging.striping {
            _ if rails == 1 => (0, 1),
            Striping::Split if is_short => (0, 1),
            Striping::Split => (0, rails),
            Striping::ByRank => ((from + to) % rails, 1),
            Striping::ByMessage => {
                let next = &mut self.ranks[from as usize].next_rail;
                let rail = *next % rails;
                *next = rail + 1;
                (rail, 1)
            }
        }
    }

    fn arrived(&mut self, slot: u32, now: Time) {
        let message = self.messages.at_mut(slot);
        message.parts -= 1;
        if message.parts > 0 {
            return;
        }
        let message = *self.messages.at(slot);
        let bytes = self.stage_bytes(&message);
        let passage = self.passage(&message, bytes);
        let job = self.ranks[message.source as usize].job;
        let (_, receiver) = message.way();
        let at = now.max(message.moved).saturating_add(passage);
        if self.is_lost(slot) {
            self.tell_lost(slot, now);
            self.take_lost(slot);
            self.messages.remove(slot);
        } else if at > now {
            self.set_timer(receiver, at, TimerKind::Passed(slot));
        } else {
            self.advance_message(slot, now);
        }
        self.fire_timers(now);
        self.jobs[job as usize].pending -= 1;
        self.check_job(job, now);
    }

    /// Time between the fabric and the ranks: in adapters, half of it at either end, and in aggregation nodes.
    fn passage(&self, message: &Message, bytes: u64) -> Span {
        let adapters = self.messaging.passage(bytes, self.payload.most());
        if !message.is_segment {
            return adapters;
        }
        let half = Span::from_ps(adapters.as_ps() / 2);
        let in_switch = |rank: u32| self.ranks[rank as usize].in_switch;
        match (in_switch(message.source), in_switch(message.target)) {
            (Some(_), Some(latency)) => latency,
            (None, Some(latency)) => half + latency,
            (Some(_), None) => adapters.saturating_sub(half),
            (None, None) => adapters,
        }
    }

    fn advance_message(&mut self, slot: u32, now: Time) {
        let message = *self.messages.at(slot);
        if self.detail.is_some() && !message.stage.is_control() {
            self.note_message(slot, now);
        }
        match message.stage {
            Stage::Eager | Stage::RequestToSend => {
                let target = &mut self.ranks[message.target as usize];
                let first = self.jobs[target.job as usize].first;
                let arrived = Arrived {
                    from: message.source - first,
                    tag: message.tag,
                    message: slot,
                    bytes: message.bytes,
                };
                if let Some(posted) = target.matcher.arrive(arrived) {
                    self.matched(posted, arrived, now);
                }
            }
            Stage::ClearToSend => self.next_stage(slot, Stage::Data, now),
            Stage::GetRequest => self.next_stage(slot, Stage::GetReply, now),
            Stage::Data => {
                self.messages.remove(slot);
                self.complete(message.source, message.source_token, None, now);
                let overhead = self.overhead_of(message.bytes);
                self.complete(message.target, message.target_token, Some(overhead), now);
            }
            Stage::Put => {
                self.messages.remove(slot);
                self.complete(message.source, message.source_token, None, now);
            }
            Stage::GetReply if message.is_read => {
                self.next_stage(slot, Stage::Finished, now);
                self.next_read(message.target, now);
                let overhead = self.overhead_of(message.bytes);
                self.complete(message.target, message.target_token, Some(overhead), now);
            }
            Stage::GetReply => {
                self.messages.remove(slot);
                self.complete(message.target, message.target_token, None, now);
            }
            Stage::Finished => {
                self.messages.remove(slot);
                self.complete(message.source, message.source_token, None, now);
            }
        }
    }

    fn next_stage(&mut self, slot: u32, stage: Stage, now: Time) {
        self.messages.at_mut(slot).stage = stage;
        self.launch(slot, now);
    }

    fn matched(&mut self, posted: Posted, arrived: Arrived, now: Time) {
        let message = *self.messages.at(arrived.message);
        if arrived.bytes > posted.bytes && self.fault.is_none() {
            self.fault = Some(self.too_long(&message, &posted));
        }
        self.ranks[message.target as usize].totals.receives += 1;
        if message.stage == Stage::Eager {
            self.messages.remove(arrived.message);
            self.give_credit(message.source, message.target);
            let overhead = match message.is_segment {
                true => Span::ZERO,
                false => self.overhead_of(message.bytes),
            };
            self.complete(message.target, posted.token, Some(overhead), now);
        } else {
            self.messages.at_mut(arrived.message).target_token = posted.token;
            self.prepare(arrived.message, now);
        }
    }

    fn prepare(&mut self, slot: u32, now: Time) {
        let target = self.messages.at(slot).target;
        if self.messages.at(slot).is_read {
            let reads = &mut self.ranks[target as usize].reads;
            if reads.under_way == self.messaging.reads_in_flight {
                reads.waiting.push_back(slot);
                return;
            }
            reads.under_way += 1;
        }
        match self.messaging.rendezvous_delay {
            Span::ZERO => self.answer(slot, now),
            delay => self.set_timer(target, now + delay, TimerKind::Answer(slot)),
        }
    }

    fn answer(&mut self, slot: u32, now: Time) {
        let stage = match self.messages.at(slot).is_read {
            true => Stage::GetRequest,
            false => Stage::ClearToSend,
        };
        self.next_stage(slot, stage, now);
    }

    fn next_read(&mut self, rank: u32, now: Time) {
        let reads = &mut self.ranks[rank as usize].reads;
        reads.under_way -= 1;
        if let Some(slot) = reads.waiting.pop_front() {
            self.prepare(slot, now);
        }
    }

    pub(crate) fn send(
        &mut self,
        rank: u32,
        token: u32,
        to: u32,
        bytes: u64,
        tag: u32,
        now: Time,
    ) -> bool {
        let target = self.first_of(rank) + to;
        let eager = bytes <= self.messaging.eager_limit.as_u64() && self.take_credit(rank, target);
        let stage = if eager {
            Stage::Eager
        } else {
            Stage::RequestToSend
        };
        let slot = self.messages.add(Message {
            stage,
            source: rank,
            target,
            tag,
            bytes,
            source_token: token,
            target_token: 0,
            begin: now,
            parts: 1,
            moved: now,
            is_read: !eager && self.messaging.rendezvous == Rendezvous::Read,
            is_segment: false,
        });
        self.count_send(rank, bytes);
        self.launch(slot, now);
        eager
    }

    /// Sends a segment at once, past credits and the gap of the host.
    pub(crate) fn send_segment(&mut self, rank: u32, to: u32, bytes: u64, tag: u32, now: Time) {
        let slot = self.messages.add(Message {
            stage: Stage::Eager,
            source: rank,
            target: self.first_of(rank) + to,
            tag,
            bytes,
            source_token: 0,
            target_token: 0,
            begin: now,
            parts: 1,
            moved: now,
            is_read: false,
            is_segment: true,
        });
        self.count_send(rank, bytes);
        self.leave(slot, now);
    }

    fn take_credit(&mut self, rank: u32, target: u32) -> bool {
        let unmet = self.ranks[rank as usize].unmet.entry(target).or_insert(0);
        let may = *unmet < self.messaging.eager_credits;
        *unmet += u32::from(may);
        may
    }

    fn give_credit(&mut self, rank: u32, target: u32) {
        let unmet = &mut self.ranks[rank as usize].unmet;
        if let Some(count) = unmet.get_mut(&target) {
            *count -= 1;
            if *count == 0 {
                unmet.remove(&target);
            }
        }
    }

    pub(crate) fn access(
        &mut self,
        rank: u32,
        token: u32,
        other: u32,
        bytes: u64,
        read: bool,
        now: Time,
    ) {
        let other = self.first_of(rank) + other;
        if !read {
            return self.put((rank, other), token, bytes, None, now);
        }
        let slot = self.messages.add(Message {
            stage: Stage::GetRequest,
            source: other,
            target: rank,
            tag: 0,
            bytes,
            source_token: token,
            target_token: token,
            begin: now,
            parts: 1,
            moved: now,
            is_read: false,
            is_segment: false,
        });
        self.count_send(rank, bytes);
        self.launch(slot, now);
    }

    /// A driver sets service level and queue, and its messages wait for no gap.
    pub(crate) fn put(
        &mut self,
        (source, target): (u32, u32),
        token: u32,
        bytes: u64,
        way: Option<(Option<Sl>, SendQueue)>,
        now: Time,
    ) {
        let slot = self.messages.add(Message {
            stage: Stage::Put,
            source,
            target,
            tag: 0,
            bytes,
            source_token: token,
            target_token: token,
            begin: now,
            parts: 1,
            moved: now,
            is_read: false,
            is_segment: false,
        });
        self.count_send(source, bytes);
        match way {
            Some(way) => self.launch_on(slot, way, now),
            None => self.launch(slot, now),
        }
    }

    fn count_send(&mut self, rank: u32, bytes: u64) {
        let totals = &mut self.ranks[rank as usize].totals;
        totals.sends += 1;
        totals.sent_bytes += bytes;
    }

    pub(crate) fn receive(&mut self, rank: u32, posted: Posted, now: Time) {
        if let Some(arrived) = self.ranks[rank as usize].matcher.post(posted) {
            self.matched(posted, arrived, now);
        }
    }

    /// The rank has to pay an overhead for what it received.
    fn complete(&mut self, rank: u32, token: u32, to_pay: Option<Span>, now: Time) {
        match self.ranks[rank as usize].work {
            Work::Sequence(_) => self.sequence_complete(rank, to_pay, now),
            Work::Schedule(_) => self.schedule_complete(rank, token, to_pay, now),
            Work::External => self.notify_driver(token, now),
        }
    }

    fn overhead_of(&self, bytes: u64) -> Span {
        let messaging = &self.messaging;
        messaging.overhead + messaging.bytes_overhead(bytes)
    }

    pub(crate) fn first_of(&self, rank: u32) -> u32 {
        self.jobs[self.ranks[rank as usize].job as usize].first
    }

    pub(crate) fn rank_done(&mut self, rank: u32, now: Time) {
        self.ranks[rank as usize].done_at = Some(now);
        let job = self.ranks[rank as usize].job;
        self.jobs[job as usize].running -= 1;
    }

    fn check_job(&mut self, job: u32, now: Time) {
        let state = &mut self.jobs[job as usize];
        if state.pending > 0 || state.done_at.is_some() {
            return;
        }
        if state.running == 0 {
            state.done_at = Some(now);
            self.running -= u32::from(!state.background);
            if self.fault.is_none() {
                self.fault = self.left_over(job);
            }
        } else if self.fault.is_none() {
            self.fault = Some(self.stuck(job, now));
        }
    }

    pub(crate) fn message(&self, slot: u32) -> &Message {
        self.messages.at(slot)
    }
}
