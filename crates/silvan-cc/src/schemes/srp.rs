//! Speculative packets and reservations: SRP (N. Jiang, D. U. Becker, G. Michelogiannakis, W. J. Dally, "Network
//! congestion avoidance through speculative reservation", HPCA 2012), SMSRP and LHRP (N. Jiang, L. Dennison, W. J.
//! Dally, "Network endpoint congestion control for fine-grained communication", SC 2015).
//!
//! A host sends at once on a speculative lane of lower priority, where switches discard instead of letting wait.
//! Reserved packets use the normal lane.
//!
//! | | reserves | who has the schedule | a speculative packet is discarded |
//! |---|---|---|---|
//! | SRP | each block of a flow, as it starts | the destination | when it would be older than `timeout` |
//! | SMSRP | what has been discarded | the destination | when it would be older than `timeout` |
//! | LHRP | what has been discarded | the switch before the destination | there, behind `threshold` bytes |
//!
//! In SRP a flow is speculative until its grant or its block's end; in the others, discarded packets hold up new ones.
//! Timeouts are checked before a packet waits and before it leaves. A reservation or grant is one number: a bit tells
//! which, the rest are bytes, or a wait in ns from the grant's arrival.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use silvan_core::{Bytes, HostId, Span, Time, Vl};

use super::flows::Senders;
use crate::hooks::{
    Arrival, Flow, FlowLimit, Grant, Grants, PortVl, QueueView, Settings, SourceControl,
    SwitchControl,
};
use crate::parameters;
use crate::schemes::variant::{Cost, FabricFacts, Family, Variant, ns};
use crate::schemes::{Bounds, DataPlane, Defaults, Scheme, SchemeError, Search, Setup, SwitchPort};

/// Packets that reserve time, and the holder of the schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Each block of a flow reserves time at its destination as it starts (Jiang et al. 2012).
    #[default]
    Srp,
    /// Discarded packets reserve time at the destination (Jiang et al. 2015).
    Smsrp,
    /// The switch before the destination discards, and reserves time for it (Jiang et al. 2015).
    Lhrp,
}

parameters! {
    /// SRP, SMSRP and LHRP. The lanes are 0 for packets with a reservation, 1 for speculative ones.
    pub struct Srp {
        /// Packets that reserve time, and the holder of the schedule.
        protocol: Protocol {
            default: Protocol::Srp,
        }
        /// Largest age of a speculative packet, including the time of packets in front of it; a switch discards older
        /// packets. By default the time of a link for half the input buffer of a switch port, at least 5 us. It must be
        /// longer than the longest path without queues. For `srp` and `smsrp`.
        timeout: Option<Span> {
            default: None,
            bounds: Bounds::Time,
            example: "\"10 us\"",
            search: Search::SCALED,
        }
        /// Bytes that wait for a host, from which on its switch discards speculative packets; by default half the input
        /// buffer of a switch port. For `lhrp`.
        threshold: Option<Bytes> {
            default: None,
            bounds: Bounds::Size(MOST as u64),
            example: "\"32 KiB\"",
            search: Search::SCALED,
        }
        /// Most payload of a reservation; by default what a link carries in twice `timeout`. For `srp`.
        reservation: Option<Bytes> {
            default: None,
            bounds: Bounds::Size(MOST as u64),
            example: "\"32 KiB\"",
            search: Search::SCALED,
        }
    }
}

const RESERVED: u8 = 0;
const SPECULATIVE: u8 = 1;

/// Shortest default timeout: several times the longest path of most fabrics.
const LEAST_TIMEOUT: Span = Span::from_us(5);

/// Set in a reservation, not in a grant.
const IS_RESERVATION: u32 = 1 << 31;
const MOST: u32 = IS_RESERVATION - 1;

/// Registers: bytes that wait for a port; end of a host's schedule; for each flow, its reserved bytes, their time and
/// if it is known; for SMSRP, also the requested bytes.
const COST: Cost = Cost::new(4, 8, 13, "reservations");
const COST_OF_SMSRP: Cost = Cost::new(4, 8, 17, "reservations");
/// Bytes that wait for a port, and the end of its schedule at a port to a host; discarded bytes of a flow.
const COST_OF_LHRP: Cost = Cost::new(12, 0, 4, "refusals");

impl Scheme for Srp {
    type Switch = Discarder;
    type Source = Reservations;

    const TAKES_LINK_RATE: bool = true;

    const DEFAULTS: Defaults = Defaults::CNP;

    fn fill_in(&mut self, data_plane: &DataPlane) {
        let half = Bytes::from_bytes((data_plane.switch_buffer.as_u64() / 2).max(1));
        let timeout = *self
            .timeout
            .get_or_insert_with(|| data_plane.link_rate.span_for(half).max(LEAST_TIMEOUT));
        self.threshold.get_or_insert(half);
        self.reservation.get_or_insert_with(|| {
            let bits = data_plane.link_rate.bits_per_sec() as f64;
            let carried = 2.0 * timeout.as_secs_f64() * bits / 8.0;
            let least = data_plane.mtu.as_u64();
            Bytes::from_bytes((carried.round() as u64).clamp(least, u64::from(MOST)))
        });
    }

    const FAMILY: Family = Family::Reservations;

    /// Two lanes share one buffer. Packets with a reservation go first, but for one speculative packet in 32 KiB. The
    /// timeout is the base round trip and the link time of half the buffer.
    fn variants(facts: &FabricFacts<'_>) -> Vec<Variant> {
        let buffer = facts.switch_buffer.as_u64() / 2;
        let half_s = (buffer / 2 * 8) as f64 / (facts.link_gbps() * 1e9);
        let timeout = ((facts.base_rtt_s + half_s) * 1e9).ceil() as u64;
        let variant = |name, protocol, summary, cost| {
            Variant::new(name, summary, cost)
                .own("timeout", ns(timeout))
                .own("protocol", protocol)
                .set("vl.high", json!([[RESERVED, 255]]))
                .set("vl.low", json!([[SPECULATIVE, 255]]))
                .set("vl.limit-high", 8)
                .lanes(2)
        };
        vec![
            variant(
                "srp",
                "srp",
                "each block of a flow reserves time at its destination",
                COST,
            ),
            variant(
                "srp+smsrp",
                "smsrp",
                "what is discarded reserves time at its destination",
                COST_OF_SMSRP,
            ),
            variant(
                "srp+lhrp",
                "lhrp",
                "the last switch discards and reserves",
                COST_OF_LHRP,
            ),
        ]
    }

    fn check_setup(&self, setup: &Setup<'_>) -> Result<(), SchemeError> {
        if setup.routes_use_lanes {
            return Err(SchemeError::new(
                "protocol",
                "the routing keeps paths from deadlock by their lanes, which speculative packets would change",
                "choose a fabric that needs no lanes, such as a fat tree, or another scheme",
            ));
        }
        if setup.data_vls <= SPECULATIVE {
            return Err(SchemeError::new(
                "protocol",
                "there is one data lane, and speculative packets need a separate lane",
                "set vl.data-vls to 2 or more, and give lane 0 priority: vl.high = [[0, 255]], vl.low = [[1, 255]]",
            ));
        }
        Ok(())
    }

    fn build(&self, setup: &Setup<'_>) -> Result<(Discarder, Reservations), SchemeError> {
        let to_host = |port: &Option<SwitchPort>| port.is_some_and(|port| port.to_host);
        let byte_time = 8e12 / setup.link_rate.bits_per_sec() as f64;
        let switch = Discarder {
            protocol: self.protocol,
            lanes: u32::from(setup.data_vls),
            timeout: self.timeout.unwrap_or_default(),
            threshold: u32::try_from(self.threshold.map_or(u64::MAX, Bytes::as_u64))
                .unwrap_or(u32::MAX),
            byte_time,
            to_host: setup.ports.iter().map(to_host).collect(),
            next: match self.protocol {
                Protocol::Lhrp => vec![Time::ZERO; setup.ports.len()],
                Protocol::Srp | Protocol::Smsrp => Vec::new(),
            },
            discarded: vec![0; setup.ports.len()],
        };
        let source = Reservations {
            protocol: self.protocol,
            block: self
                .reservation
                .map_or(0, Bytes::as_u64)
                .clamp(u64::from(setup.mtu), u64::from(MOST)) as i64,
            of_link: byte_time,
            senders: Senders::new(setup.hosts),
            receivers: vec![
                Receiver {
                    next: Time::ZERO,
                    byte_time: None,
                };
                setup.hosts
            ],
        };
        Ok((switch, source))
    }
}

fn nanoseconds(wait: Span) -> u32 {
    u32::try_from(wait.as_ps().div_ceil(1_000)).map_or(MOST, |ns| ns.min(MOST))
}

fn after(now: Time, granted: u32) -> Time {
    now.saturating_add(Span::from_ns(u64::from(granted)))
}

fn takes(bytes: f64, byte_time: f64) -> Span {
    Span::from_ps((bytes * byte_time).round() as u64)
}

/// The switches.
#[derive(Clone, Debug)]
pub struct Discarder {
    protocol: Protocol,
    lanes: u32,
    timeout: Span,
    threshold: u32,
    byte_time: f64,
    to_host: Vec<bool>,
    next: Vec<Time>,
    discarded: Vec<u64>,
}

impl Discarder {
    /// Speculative packets that have been discarded instead of leaving by this port.
    pub fn discarded(&self, port: usize) -> u64 {
        self.discarded[port]
    }
}

impl SwitchControl for Discarder {
    fn watches_queues(&self) -> bool {
        false
    }

    fn needs_select_discard(&self) -> bool {
        true
    }

    #[inline]
    fn discards(&self, output: PortVl) -> bool {
        let (port, lane) = (output.0 / self.lanes, output.0 % self.lanes);
        let at_port = self.protocol != Protocol::Lhrp || self.to_host[port as usize];
        lane == u32::from(SPECULATIVE) && at_port
    }

    fn select_discard(
        &mut self,
        now: Time,
        output: PortVl,
        queue: QueueView,
        _: Flow,
        wire_bytes: u32,
        sent: Time,
        waited: bool,
    ) -> Option<u32> {
        if !self.discards(output) {
            return None;
        }
        let port = (output.0 / self.lanes) as usize;
        let notice = match self.protocol {
            Protocol::Srp | Protocol::Smsrp => {
                let ahead = if waited { 0 } else { queue.queued_bytes };
                let wait = takes(f64::from(ahead), self.byte_time);
                let age = now.since(sent).as_ps().saturating_add(wait.as_ps());
                (age > self.timeout.as_ps()).then_some(0)
            }
            Protocol::Lhrp if waited => None,
            Protocol::Lhrp => {
                let at = self.next[port].max(now);
                self.next[port] = at.saturating_add(takes(f64::from(wire_bytes), self.byte_time));
                let discards = queue.queued_bytes >= self.threshold;
                discards.then(|| nanoseconds(at.since(now)))
            }
        };
        self.discarded[port] += u64::from(notice.is_some());
        notice
    }
}

impl Settings for Discarder {}

#[derive(Clone, Copy, Debug, Default)]
struct Sender {
    /// Reserved payload that has not been sent, or has been discarded: of the block (SRP), else of discarded packets.
    reserved: i64,
    asked: i64,
    /// [`Time::MAX`] until the reservation is granted.
    start: Time,
    again: bool,
    opens: bool,
}

impl Sender {
    fn ask(&mut self, now: Time, flow: Flow, grants: &mut Grants) {
        if self.asked <= 0 && self.reserved > 0 {
            self.asked = self.reserved;
            self.start = Time::MAX;
            grants.send(reservation(now, flow, self.asked));
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Receiver {
    next: Time,
    /// Receive time of a byte of payload in ps, by the fullest packet.
    byte_time: Option<f64>,
}

impl Receiver {
    fn reserve(&mut self, now: Time, payload: u32, of_link: f64) -> Span {
        let at = self.next.max(now);
        let byte_time = self.byte_time.unwrap_or(of_link);
        self.next = at.saturating_add(takes(f64::from(payload), byte_time));
        at.since(now)
    }
}

/// The hosts.
#[derive(Clone, Debug)]
pub struct Reservations {
    protocol: Protocol,
    block: i64,
    of_link: f64,
    senders: Senders<Sender>,
    receivers: Vec<Receiver>,
}

impl Reservations {
    /// Reserved payload that has not been sent, or has been discarded.
    pub fn reserved(&self, flow: Flow) -> i64 {
        self.senders.get(flow).map_or(0, |state| state.reserved)
    }

    fn release_of(protocol: Protocol, state: &Sender, now: Time) -> Time {
        match protocol {
            Protocol::Srp if state.reserved > 0 && state.start != Time::MAX => state.start,
            Protocol::Srp if state.reserved <= 0 && state.start == Time::MAX => Time::MAX,
            Protocol::Srp => now,
            Protocol::Smsrp | Protocol::Lhrp if state.reserved > 0 => Time::MAX,
            Protocol::Smsrp | Protocol::Lhrp => now,
        }
    }
}

fn reservation(now: Time, flow: Flow, payload: i64) -> Grant {
    Grant {
        source: flow.destination,
        sl: flow.sl,
        bytes: IS_RESERVATION | payload.clamp(0, i64::from(MOST)) as u32,
        at: now,
    }
}

impl SourceControl for Reservations {
    fn separates_flows(&self) -> bool {
        true
    }

    fn keeps_lanes(&self) -> bool {
        self.protocol != Protocol::Srp
    }

    fn needs_select_vl(&self) -> bool {
        true
    }

    fn needs_started(&self) -> bool {
        self.protocol != Protocol::Lhrp
    }

    fn needs_answer_grant(&self) -> bool {
        self.protocol != Protocol::Lhrp
    }

    fn needs_receive(&self) -> bool {
        self.protocol != Protocol::Lhrp
    }

    #[inline]
    fn prefetch_feedback(&self, flow: Flow) {
        self.senders.prefetch(flow);
    }

    fn flow_limits(&self, now: Time, host: HostId) -> Vec<FlowLimit> {
        self.senders.limits(host.index(), |link, state| {
            let waits = Self::release_of(self.protocol, state, now) > now;
            if waits { 0.0 } else { link }
        })
    }

    fn release(&mut self, now: Time, flow: Flow) -> Time {
        let state = self.senders.get(flow);
        state.map_or(now, |state| Self::release_of(self.protocol, state, now))
    }

    fn select_vl(&mut self, now: Time, flow: Flow, _: Vl) -> Option<Vl> {
        let has_reservation = self.senders.get(flow).is_some_and(|state| {
            let granted = state.reserved > 0 && state.start <= now;
            state.again || self.protocol == Protocol::Srp && granted
        });
        let lane = if has_reservation {
            RESERVED
        } else {
            SPECULATIVE
        };
        Vl::try_new(lane).ok()
    }

    fn on_send(&mut self, _: Time, flow: Flow, wire_time: Span, payload: u32) {
        let protocol = self.protocol;
        let (_, state) = self
            .senders
            .sending(flow, wire_time, payload, |_, _| Sender::default());
        let again = std::mem::take(&mut state.again);
        state.opens = protocol == Protocol::Srp && !again && state.reserved <= 0;
        if again || protocol == Protocol::Srp && !state.opens {
            state.reserved -= i64::from(payload);
            state.asked -= i64::from(payload);
        }
    }

    fn on_started(
        &mut self,
        now: Time,
        flow: Flow,
        payload: u32,
        behind: u32,
        grants: &mut Grants,
    ) {
        let (protocol, block) = (self.protocol, self.block);
        let Some(state) = self.senders.get_mut(flow) else {
            return;
        };
        if state.opens {
            let whole = (i64::from(payload) + i64::from(behind)).min(block);
            state.reserved += whole - i64::from(payload);
            state.start = Time::MAX;
            grants.send(reservation(now, flow, whole));
        } else if protocol == Protocol::Smsrp {
            state.ask(now, flow, grants);
        }
    }

    fn on_nack(
        &mut self,
        now: Time,
        flow: Flow,
        payload: u32,
        _: u32,
        grants: &mut Grants,
    ) -> bool {
        let protocol = self.protocol;
        let Some(state) = self.senders.get_mut(flow) else {
            return false;
        };
        state.reserved += i64::from(payload);
        if protocol == Protocol::Smsrp {
            state.ask(now, flow, grants);
        }
        true
    }

    fn resend_time(&mut self, now: Time, flow: Flow, _: u32, notice: u32, nacked: Time) -> Time {
        let protocol = self.protocol;
        let Some(state) = self.senders.get_mut(flow) else {
            return now;
        };
        let at = match protocol {
            Protocol::Lhrp => after(nacked, notice),
            Protocol::Srp | Protocol::Smsrp => state.start,
        };
        state.again = at <= now;
        at
    }

    fn answer_grant(&mut self, now: Time, flow: Flow, granted: u32, grants: &mut Grants) -> bool {
        if granted & IS_RESERVATION != 0 {
            let receiver = &mut self.receivers[flow.source.index()];
            let wait = receiver.reserve(now, granted & MOST, self.of_link);
            grants.send(Grant {
                source: flow.destination,
                sl: flow.sl,
                bytes: nanoseconds(wait),
                at: now,
            });
            return false;
        }
        if let Some(state) = self.senders.get_mut(flow) {
            state.start = after(now, granted);
        }
        true
    }

    fn on_receive(&mut self, _: Time, flow: Flow, arrival: Arrival, _: &mut Grants) {
        let receiver = &mut self.receivers[flow.destination.index()];
        let byte_time = arrival.takes.as_ps() as f64 / f64::from(arrival.payload.max(1));
        let fullest = receiver.byte_time.get_or_insert(byte_time);
        *fullest = fullest.min(byte_time);
    }
}

impl Settings for Reservations {}

#[cfg(test)]
#[path = "srp/tests.rs"]
mod tests;
