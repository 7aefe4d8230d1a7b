//! RCCC of Ultra Ethernet ("receiver-credit congestion control", UE Specification 1.0, section 3.6), as in the
//! consortium's reference simulator, over lossless links.
//!
//! A flow sends while it has credit; packets carry their backlog. The receiver returns credit in pulls, a little below
//! its rate: credit at the sender + packets and pulls on their way + returnable credit = the window.
//!
//! Pulls go to flows with less credit than a packet, then to flows with more backlog than credit, in turn or least
//! backlog first (Homa: Montazeri et al. 2018, section 3.4), then to flows at rest, up to the window.
//!
//! Lossless links let bursts of first windows in: unrequested packets take time from the pulls, unless the base round
//! trip before had time. Each arrival decides on the pulls of the next base round trip. With `marks`, pulls slow down
//! above a target ([`marks`]).

mod flow;
mod marks;

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{Bytes, HostId, Span, Time};

use flow::{Remote, Sender, key_of};

use super::flows::{Senders, ps};
use super::red::RedMarker;
use crate::flow_table::FlowTable;
use crate::hooks::{Arrival, Flow, FlowLimit, Grant, Grants, PerHost, Settings, SourceControl};
use crate::parameters;
use crate::schemes::variant::{Cost, FabricFacts, Family, Variant, ns};
use crate::schemes::{Bounds, DataPlane, Declared, Scheme, SchemeError, Search, Setup};

/// Order of pulls among flows with a backlog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Each in turn, as in RCCC.
    #[default]
    RoundRobin,
    /// The one with the least behind it, as in Homa.
    ShortestFirst,
}

parameters! {
    /// RCCC; the defaults are the reference's, for its base round trip.
    pub struct Rccc {
        /// The longest round trip of the fabric without queues.
        base_rtt: Span {
            default: Span::from_us(12),
            bounds: Bounds::Time,
        }
        /// Payload that a flow at rest may send without a pull, and the most that is on its way; by default what a link
        /// carries in `base-rtt`. At least a packet.
        window: Option<Bytes> {
            default: None,
            bounds: Bounds::SOME_BYTES,
            example: "\"150 kB\"",
            search: Search::SCALED,
        }
        /// Rate of the pulls, as a part of what the receiver takes: its link, or its sink if that is slower.
        pull_rate: f64 {
            default: 0.99,
            bounds: Bounds::PART,
            source: "pulls take a part of what the receiver takes",
            search: Search::numbers(0.7, 1.0),
        }
        /// Order of pulls among flows with a backlog.
        order: Order {
            default: Order::RoundRobin,
        }
        /// True if switches mark packets, and receivers pull more slowly because of marks. `control.feedback.carrier`
        /// is best `none` with it.
        marks: bool {
            default: false,
        }
        /// Queue of an output up to which nothing is marked; by default what a link carries in `base-rtt`. For `marks`.
        #[serde(skip_serializing_if = "Option::is_none")]
        k_min: Option<Bytes> {
            default: None,
        }
        /// Queue from which on all packets are marked; by default four times as much. For `marks`.
        #[serde(skip_serializing_if = "Option::is_none")]
        k_max: Option<Bytes> {
            default: None,
            above: k_min,
            source: "Ultra Ethernet's reference marks from k-min on, and all packets from k-max on",
        }
    }
}

/// Registers: time of the next pull and spare time; a flow's credit; at its receiver, its returnable credit,
/// unrequested bytes, backlog and place in the queue.
const COST: Cost = Cost::new(0, 12, 16, "pulls");
/// Further registers with marks: part of the rate, smoothed part of marks, three counts, end of the interval, time of
/// the next pull; Kmin, Kmax, slope and queue length at a port.
const COST_OF_MARKS: Cost = Cost::new(14, 12 + 22, 16, "pulls");

impl Scheme for Rccc {
    type Switch = RedMarker;
    type Source = Credits;

    const TAKES_LINK_RATE: bool = true;

    fn fill_in(&mut self, data_plane: &DataPlane) {
        let bits = data_plane.link_rate.bits_per_sec() as f64;
        let bytes = (self.base_rtt.as_secs_f64() * bits / 8.0).round() as u64;
        let least = data_plane.mtu.as_u64();
        self.window
            .get_or_insert(Bytes::from_bytes(bytes.max(least)));
        if self.marks {
            let k_min = *self.k_min.get_or_insert(Bytes::from_bytes(bytes.max(1)));
            self.k_max
                .get_or_insert(Bytes::from_bytes(k_min.as_u64().saturating_mul(4)));
        }
    }

    fn check(&self) -> Result<(), SchemeError> {
        self.check_bounds()?;
        for (key, given) in [("k-min", self.k_min), ("k-max", self.k_max)] {
            if given.is_some() && !self.marks {
                let message = "switches mark nothing without marks";
                return Err(SchemeError::new(key, message, "set marks to true"));
            }
        }
        Ok(())
    }

    const FAMILY: Family = Family::Receivers;

    fn variants(facts: &FabricFacts<'_>) -> Vec<Variant> {
        let variant = |name, which, order, marks: bool| {
            let cost = if marks { COST_OF_MARKS } else { COST };
            let summary = format!("the base round trip is the fabric's, {which}");
            let variant = Variant::new(name, summary, cost)
                .own("base-rtt", ns(facts.base_rtt_ns()))
                .own("order", order)
                .own("marks", marks);
            match marks {
                // Receivers see the marks; no notification is needed.
                true => variant.carrier("none"),
                false => variant,
            }
        };
        let shortest = "the shortest backlog first, as in Homa";
        vec![
            variant("rccc", "flows in turn", "round-robin", false),
            variant("rccc+shortest", shortest, "shortest-first", false),
            variant(
                "rccc+marks",
                "pulls slow down by marks",
                "round-robin",
                true,
            ),
        ]
    }

    fn idle_reason(&self) -> Option<String> {
        let window = self.window?;
        Some(format!(
            "no flow had to wait for more than its window, {window}"
        ))
    }

    fn build(&self, setup: &Setup<'_>) -> Result<(RedMarker, Credits), SchemeError> {
        let mut filled_in = self.clone();
        filled_in.fill_in(&DataPlane {
            mtu: Bytes::from_bytes(u64::from(setup.mtu)),
            header: Bytes::ZERO,
            switch_buffer: Bytes::ZERO,
            link_rate: setup.link_rate,
        });
        let window = filled_in.window.map_or(0, Bytes::as_u64);
        let rules = Rules {
            horizon: self.base_rtt,
            window: i64::try_from(window)
                .unwrap_or(i64::MAX)
                .max(i64::from(setup.mtu)),
            mtu: i64::from(setup.mtu),
            pull_rate: self.pull_rate,
            order: self.order,
            marks: self.marks,
        };
        let switch = match (filled_in.k_min, filled_in.k_max) {
            (Some(k_min), Some(k_max)) if self.marks => RedMarker::new(k_min, k_max, 1.0, setup),
            _ => RedMarker::off(setup),
        };
        let credits = Credits {
            rules,
            senders: Senders::new(setup.hosts),
            receivers: vec![Receiver::new(&rules); setup.hosts],
        };
        Ok((switch, credits))
    }
}

/// Amounts are bytes of payload.
#[derive(Clone, Copy, Debug)]
struct Rules {
    horizon: Span,
    window: i64,
    mtu: i64,
    pull_rate: f64,
    order: Order,
    marks: bool,
}

#[derive(Clone, Debug, Default)]
struct Receiver {
    flows: FlowTable<Remote>,
    active: VecDeque<u32>,
    resting: VecDeque<u32>,
    next: Time,
    slowed: Time,
    /// A flow with a packet to come, if [`Remote::will_arrive`] is true. Only with marks.
    witness: u32,
    holds: bool,
    /// Time without pulls at the end of the past schedule, at most a base round trip, for unrequested packets.
    spare: Span,
    /// Receive time of a byte of payload in ps, by the fullest packet.
    byte_time: f64,
    marks: marks::PullRate,
}

impl Receiver {
    fn new(rules: &Rules) -> Self {
        Self {
            spare: rules.horizon,
            ..Self::default()
        }
    }

    fn takes(&self, rules: &Rules, bytes: i64) -> Span {
        let takes = bytes as f64 * self.byte_time / rules.pull_rate;
        Span::from_ps(takes.round() as u64)
    }

    fn due(&self) -> Time {
        self.next.max(self.slowed)
    }

    /// Time of the full rate if no packet arrives. No pull is sent later, because it could not be brought forward.
    fn latest(rules: &Rules, now: Time) -> Time {
        now.saturating_add(marks::whole_after(rules.horizon))
    }

    fn has_witness(&self, rules: &Rules) -> bool {
        let witness = self.flows.get(self.witness);
        witness.is_some_and(|flow| flow.will_arrive(rules))
    }

    /// Returns true if marks leave no time for another pull, and a packet to come ends this state.
    fn waits_for_rate(&self, rules: &Rules, now: Time) -> bool {
        rules.marks && self.slowed > Self::latest(rules, now) && self.has_witness(rules)
    }

    /// Records a mark. The new rate holds for pulls that are not due, too: else a moment at a hundredth of the rate
    /// would last a hundred times as long.
    fn note_mark(&mut self, rules: &Rules, now: Time, marked: bool) {
        let before = self.marks.part();
        self.marks.arrived(rules.horizon, now, marked);
        if self.slowed > now {
            let ahead = ps(self.slowed.since(now)) * before / self.marks.part();
            self.slowed = now.saturating_add(Span::from_ps(ahead.round() as u64));
        }
    }

    fn catch_up(&mut self, rules: &Rules, now: Time) {
        if self.next < now {
            let spare = self
                .spare
                .as_ps()
                .saturating_add(now.since(self.next).as_ps());
            self.spare = Span::from_ps(spare).min(rules.horizon);
            self.next = now;
        }
    }

    fn make_up(&mut self, rules: &Rules, now: Time, bytes: i64) {
        self.catch_up(rules, now);
        let takes = self.takes(rules, bytes).as_ps();
        let spare = self.spare.as_ps().min(takes);
        self.spare = Span::from_ps(self.spare.as_ps() - spare);
        self.next = self.next.saturating_add(Span::from_ps(takes - spare));
    }

    fn pull(&mut self, rules: &Rules, now: Time, key: u32, asked: bool, grants: &mut Grants) {
        let Some(flow) = self.flows.get_mut(key) else {
            return;
        };
        let bytes = flow.owed.clamp(0, rules.mtu);
        flow.owed -= bytes;
        if !asked {
            flow.unasked += bytes;
        }
        let Ok(sl) = ((key & 0xf) as u8).try_into() else {
            return;
        };
        let at = match asked {
            true => {
                self.catch_up(rules, now);
                let at = self.next.max(self.slowed.min(Self::latest(rules, now)));
                let takes = self.takes(rules, bytes);
                self.next = self.next.saturating_add(takes);
                let slowed = ps(takes) / self.marks.part();
                self.slowed = at.saturating_add(Span::from_ps(slowed.round() as u64));
                if rules.marks && !self.has_witness(rules) {
                    self.witness = key;
                }
                at
            }
            false => now,
        };
        grants.send(Grant {
            source: HostId::new((key >> 4) as usize),
            sl,
            bytes: bytes as u32,
            at,
        });
    }

    fn queue(&mut self, rules: &Rules, key: u32) {
        let Some(flow) = self.flows.get_mut(key) else {
            return;
        };
        if flow.has_backlog(rules) {
            if !flow.queued {
                flow.queued = true;
                self.active.push_back(key);
            }
        } else if flow.owed > 0 && !flow.resting {
            flow.resting = true;
            self.resting.push_back(key);
        }
    }

    fn next_active(&mut self, rules: &Rules, now: Time) -> Option<u32> {
        while let Some(place) = self.place_of(|flow| !flow.has_backlog(rules)) {
            let key = self.active.remove(place)?;
            self.flows.get_mut(key)?.queued = false;
            self.queue(rules, key);
        }
        let key = match rules.order {
            Order::RoundRobin => {
                let place = self.place_of(|flow| flow.owed > 0)?;
                self.active.rotate_left(place + 1);
                *self.active.back()?
            }
            Order::ShortestFirst => {
                let flows = self
                    .active
                    .iter()
                    .filter_map(|&key| Some((key, self.flows.get(key)?)));
                let flows = flows.map(|(key, flow)| (flow.behind, key, flow.owed));
                let (shortest, _, _) = flows.clone().min_by_key(|&(behind, ..)| behind)?;
                let owed = flows.filter(|&(.., owed)| owed > 0);
                let (behind, key, _) = owed.min_by_key(|&(behind, ..)| behind)?;
                // A longer backlog gets the rest of the shortest, and must not be ahead of its next packet.
                let packet = self.takes(rules, rules.mtu);
                if behind > shortest && self.due() > now.saturating_add(packet) {
                    return None;
                }
                key
            }
        };
        Some(key)
    }

    fn place_of(&self, is_like: impl Fn(&Remote) -> bool) -> Option<usize> {
        self.active
            .iter()
            .position(|&key| self.flows.get(key).is_some_and(&is_like))
    }

    fn take_resting(&mut self) -> Option<u32> {
        loop {
            let key = self.resting.pop_front()?;
            let flow = self.flows.get_mut(key)?;
            flow.resting = false;
            if flow.owed > 0 && !flow.queued {
                return Some(key);
            }
        }
    }

    fn note(&mut self, rules: &Rules, key: u32, arrival: Arrival) -> (Remote, i64) {
        let byte_time = ps(arrival.takes) / f64::from(arrival.payload.max(1));
        if self.byte_time == 0.0 || byte_time < self.byte_time {
            self.byte_time = byte_time;
        }
        if self.flows.get(key).is_none() {
            let first = Remote {
                unasked: rules.window,
                ..Remote::default()
            };
            self.flows.insert(key, first, |_, _| true);
        }
        let Some(flow) = self.flows.get_mut(key) else {
            unreachable!("it has just been added")
        };
        let payload = i64::from(arrival.payload);
        flow.owed += payload;
        let unasked = payload.min(flow.unasked);
        flow.unasked -= unasked;
        // On several paths, an older packet may arrive later.
        if arrival.sent >= flow.reported {
            flow.reported = arrival.sent;
            flow.behind = i64::from(arrival.behind);
        }
        (*flow, unasked)
    }

    fn arrive(
        &mut self,
        rules: &Rules,
        now: Time,
        key: u32,
        arrival: Arrival,
        grants: &mut Grants,
    ) {
        if rules.marks {
            self.note_mark(rules, now, arrival.marked);
        }
        let (flow, unasked) = self.note(rules, key, arrival);
        self.make_up(rules, now, unasked);
        if !flow.has_credit(rules) {
            let waits = self.waits_for_rate(rules, now);
            self.holds |= waits;
            if !waits {
                self.pull(rules, now, key, true, grants);
            }
        }
        self.queue(rules, key);
        let until = now.saturating_add(rules.horizon);
        while self.due() <= until {
            let Some(key) = self.next_active(rules, now) else {
                break;
            };
            self.pull(rules, now, key, true, grants);
        }
        while self.holds && !self.has_witness(rules) {
            let held = self.place_of(|flow| flow.owed > 0 && !flow.has_credit(rules));
            match held.and_then(|place| self.active.get(place).copied()) {
                Some(key) => self.pull(rules, now, key, true, grants),
                None => self.holds = false,
            }
        }
        if self.active.is_empty() && self.due() <= until {
            if let Some(key) = self.take_resting() {
                self.pull(rules, now, key, false, grants);
                self.queue(rules, key);
            }
        }
    }
}

/// The hosts.
#[derive(Clone, Debug)]
pub struct Credits {
    rules: Rules,
    senders: Senders<Sender>,
    receivers: Vec<Receiver>,
}

impl Credits {
    /// Returns the credit of a flow that has sent packets, in bytes of payload.
    pub fn credit(&self, flow: Flow) -> Option<i64> {
        self.senders.get(flow).map(|state| state.credit)
    }

    /// Part of the pull rate that marks leave.
    pub fn pull_rate(&self, host: HostId) -> f64 {
        self.receivers[host.index()].marks.part()
    }

    /// Returnable credit at the destination, in bytes of payload.
    pub fn owed(&self, flow: Flow) -> Option<i64> {
        let receiver = &self.receivers[flow.destination.index()];
        receiver.flows.get(key_of(flow)).map(|state| state.owed)
    }
}

impl SourceControl for Credits {
    fn separates_flows(&self) -> bool {
        true
    }

    fn needs_receive(&self) -> bool {
        true
    }

    #[inline]
    fn prefetch_feedback(&self, flow: Flow) {
        self.senders.prefetch(flow);
    }

    fn flow_limits(&self, _: Time, host: HostId) -> Vec<FlowLimit> {
        self.senders.limits(host.index(), |link, state| {
            if state.credit > 0 { link } else { state.rate() }
        })
    }

    #[inline]
    fn release(&mut self, now: Time, flow: Flow) -> Time {
        match self.senders.get(flow) {
            Some(state) if state.credit <= 0 => Time::MAX,
            _ => now,
        }
    }

    fn on_send(&mut self, now: Time, flow: Flow, wire_time: Span, payload: u32) {
        let window = self.rules.window;
        let (_, state) = self
            .senders
            .sending(flow, wire_time, payload, |_, _| Sender {
                credit: window,
                pulled: now,
                ..Sender::default()
            });
        state.credit -= i64::from(payload);
    }

    fn on_grant(&mut self, now: Time, flow: Flow, bytes: u32) -> bool {
        let Some(state) = self.senders.get_mut(flow) else {
            return false;
        };
        // Two may arrive at one instant, in any order.
        if now > state.pulled {
            (state.gap, state.granted) = (now.since(state.pulled), 0);
            state.pulled = now;
        }
        state.granted += i64::from(bytes);
        let was_open = state.credit > 0;
        state.credit += i64::from(bytes);
        state.credit > 0 && !was_open
    }

    fn on_receive(&mut self, now: Time, flow: Flow, arrival: Arrival, grants: &mut Grants) {
        let receiver = &mut self.receivers[flow.destination.index()];
        receiver.arrive(&self.rules, now, key_of(flow), arrival, grants);
    }
}

impl Settings for Credits {}

impl PerHost for Credits {}

#[cfg(test)]
#[path = "rccc/tests.rs"]
mod tests;
