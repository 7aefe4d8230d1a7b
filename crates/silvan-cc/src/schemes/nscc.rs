//! NSCC of Ultra Ethernet ("network-signaled congestion control", UE Specification 1.0, section 3.6.13), as in the
//! consortium's reference simulator.
//!
//! | | waited less than the target | waited longer |
//! |---|---|---|
//! | no mark | the window grows by the distance; fast, if nothing waits | it grows by a fair share |
//! | mark | nothing | it falls by the excess of the smoothed delay, once in a round trip |
//!
//! If far less than the largest window arrives in a round trip, and packets wait for four targets, the window is set to
//! the arrived bytes (quick adapt). Without trimming, the target is one base round trip. Switches mark from one
//! bandwidth-delay product on, all packets from four; the reference has a fifth and four fifths of five.

use silvan_core::{Bytes, HostId, Span, Time};

use super::flows::{Senders, ps};
use super::red::RedMarker;
use crate::hooks::{Ack, Flow, FlowLimit, Settings, SourceControl};
use crate::parameters;
use crate::schemes::variant::{Cost, FabricFacts, Family, Variant, ns};
use crate::schemes::{Bounds, DataPlane, Defaults, Scheme, SchemeError, Search, Setup};

parameters! {
    /// NSCC; the defaults are the reference's, for its base round trip.
    pub struct Nscc {
        /// The longest round trip of the fabric without queues. A flow uses the shortest that it has seen, if that is
        /// shorter.
        base_rtt: Span {
            default: Span::from_us(12),
            bounds: Bounds::Time,
        }
        /// Time that packets may wait in queues; by default `base-rtt`.
        target_delay: Option<Span> {
            default: None,
            bounds: Bounds::Time,
            example: "\"12 us\"",
            search: Search::SCALED,
        }
        /// Queue of an output up to which nothing is marked; by default what a link carries in `base-rtt`.
        k_min: Option<Bytes> {
            default: None,
            search: Search::SCALED,
        }
        /// Queue from which on all packets are marked; by default four times as much.
        k_max: Option<Bytes> {
            default: None,
            above: k_min,
            source: "Ultra Ethernet's reference marks from k-min on, and all packets from k-max on",
            search: Search::SCALED,
        }
        /// True to set the window to the arrived bytes if far less arrives than the window allows.
        quick_adapt: bool {
            default: true,
        }
    }
}

/// Bytes in the base round trip of the reference: 12 us at 100 Gbit/s.
const REFERENCE_BDP: f64 = 150_000.0;
const REFERENCE_RTT_PS: f64 = 12e6;
const LARGEST: f64 = 1.5;
const NO_DELAY_PS: f64 = 1e6;
const DELAY_WEIGHT: f64 = 0.0125;
const GAMMA: f64 = 0.8;
const LEAST_KEPT: f64 = 0.5;
/// Quick adapt: targets that a packet has waited, and the part of the largest window that must not have arrived.
const ADAPT_TARGETS: f64 = 4.0;
const ADAPT_PART: f64 = 1.0 / 8.0;

/// Kmin, Kmax, slope and queue length; window, packets in progress, shortest round trip, smoothed delay, three sums with their
/// times, and quick adapt's three with its time.
const COST: Cost = Cost::new(14, 0, 53, "acknowledgements");

impl Scheme for Nscc {
    type Switch = RedMarker;
    type Source = Windows;

    const TAKES_LINK_RATE: bool = true;

    const DEFAULTS: Defaults = Defaults {
        carrier_required: Some("windows count acknowledged packets"),
        ..Defaults::ACK_PER_PACKET
    };

    fn fill_in(&mut self, data_plane: &DataPlane) {
        let bits = data_plane.link_rate.bits_per_sec() as f64;
        let bdp = (self.base_rtt.as_secs_f64() * bits / 8.0).round().max(1.0) as u64;
        self.target_delay.get_or_insert(self.base_rtt);
        let k_min = *self.k_min.get_or_insert(Bytes::from_bytes(bdp));
        self.k_max
            .get_or_insert(Bytes::from_bytes(k_min.as_u64().saturating_mul(4)));
    }

    const FAMILY: Family = Family::Acknowledgements;

    fn variants(facts: &FabricFacts<'_>) -> Vec<Variant> {
        let summary = "the base round trip is the fabric's, as in the reference without trimming";
        vec![Variant::new("nscc", summary, COST).own("base-rtt", ns(facts.base_rtt_ns()))]
    }

    fn idle_reason(&self) -> Option<String> {
        let (target, k_min) = (self.target_delay?, self.k_min?);
        Some(format!(
            "no flow had a delay of target-delay, {target}, with a mark from a queue of k-min, {k_min}"
        ))
    }

    fn build(&self, setup: &Setup<'_>) -> Result<(RedMarker, Windows), SchemeError> {
        let mut filled_in = self.clone();
        filled_in.fill_in(&DataPlane {
            mtu: Bytes::from_bytes(u64::from(setup.mtu)),
            header: Bytes::ZERO,
            switch_buffer: Bytes::ZERO,
            link_rate: setup.link_rate,
        });
        let (Some(target), Some(k_min), Some(k_max)) =
            (filled_in.target_delay, filled_in.k_min, filled_in.k_max)
        else {
            unreachable!("they have just been filled in")
        };
        let windows = Windows {
            base_rtt: ps(self.base_rtt),
            target: ps(target),
            mtu: f64::from(setup.mtu),
            quick_adapt: self.quick_adapt,
            senders: Senders::new(setup.hosts),
        };
        Ok((RedMarker::new(k_min, k_max, 1.0, setup), windows))
    }
}

/// Amounts are bytes of payload, delays picoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    window: f64,
    in_flight: u64,
    base_rtt: f64,
    smoothed_delay: f64,
    increase: f64,
    received: f64,
    adjusted: Time,
    decreased: Time,
    unhindered: f64,
    fast: bool,
    /// Payload in this period of quick adapt, and its end; zero before the first.
    achieved: f64,
    period_end: Time,
    to_ignore: f64,
    ignored: f64,
}

/// The hosts.
#[derive(Clone, Debug)]
pub struct Windows {
    base_rtt: f64,
    target: f64,
    mtu: f64,
    quick_adapt: bool,
    senders: Senders<State>,
}

#[derive(Clone, Copy)]
struct Scale {
    link: f64,
    /// In bandwidth-delay products of the reference.
    size: f64,
}

impl Windows {
    /// The window of a flow that has sent something, in bytes of payload.
    pub fn window(&self, flow: Flow) -> Option<f64> {
        self.senders.get(flow).map(|state| state.window)
    }

    fn scale(&self, link: f64) -> Scale {
        let size = link * self.base_rtt / REFERENCE_BDP;
        Scale { link, size }
    }

    fn largest(&self, state: &State, scale: Scale) -> f64 {
        (LARGEST * scale.link * state.base_rtt).max(self.mtu)
    }

    fn is_open(&self, state: &State) -> bool {
        state.in_flight == 0 || state.in_flight as f64 + self.mtu <= state.window
    }

    /// A long delay without a mark counts for a quarter of a base round trip.
    fn smooth(&self, state: &mut State, delay: f64, marked: bool) {
        let counted = if !marked && delay > self.target {
            state.base_rtt / 4.0
        } else {
            delay
        };
        state.smoothed_delay = DELAY_WEIGHT * counted + (1.0 - DELAY_WEIGHT) * state.smoothed_delay;
    }

    /// Returns true if the acknowledgement must not change the window, because of quick adapt.
    fn adapts(&self, state: &mut State, now: Time, delay: f64, marked: bool, scale: Scale) -> bool {
        let mut done = false;
        if state.ignored < state.to_ignore && marked {
            done = true;
        } else if now > state.period_end {
            let is_first = state.period_end == Time::ZERO;
            let waits = delay > ADAPT_TARGETS * self.target;
            if !is_first && waits && state.achieved < self.largest(state, scale) * ADAPT_PART {
                state.window = state.achieved.max(self.mtu);
                state.to_ignore = state.in_flight as f64;
                state.ignored = 0.0;
                done = true;
            }
            state.achieved = 0.0;
            let period = Span::from_ps((state.base_rtt + self.target) as u64);
            state.period_end = now.saturating_add(period);
        }
        if done {
            state.increase = 0.0;
            state.received = 0.0;
        }
        done
    }

    fn acknowledged(
        &self,
        state: &mut State,
        now: Time,
        bytes: f64,
        delay: f64,
        marked: bool,
        scale: Scale,
    ) {
        if self.quick_adapt && self.adapts(state, now, delay, marked, scale) {
            return;
        }
        match (marked, delay >= self.target) {
            (false, true) => state.increase += 5.0 * self.mtu * scale.size * bytes,
            (false, false) => self.grow(state, bytes, delay, scale),
            (true, true) => self.shrink(state, now),
            (true, false) => {}
        }
        let bounds = (self.mtu, self.largest(state, scale));
        state.window = state.window.clamp(bounds.0, bounds.1);
        let waited = ps(now.since(state.adjusted));
        if state.received > 8.0 * self.mtu || waited > self.base_rtt {
            state.window += state.increase / state.window;
            if waited >= self.base_rtt {
                state.window += 0.15 * self.mtu * scale.size;
                state.adjusted = now;
            }
            state.increase = 0.0;
            state.received = 0.0;
        }
        state.window = state.window.clamp(bounds.0, bounds.1);
    }

    fn grow(&self, state: &mut State, bytes: f64, delay: f64, scale: Scale) {
        if delay < NO_DELAY_PS {
            state.unhindered += bytes;
            state.fast = state.fast || state.unhindered > state.window;
        } else {
            state.unhindered = 0.0;
            state.fast = false;
        }
        if state.fast {
            state.window += bytes * 0.25 * scale.size;
        } else {
            let by_target = self.target / REFERENCE_RTT_PS;
            let alpha = 4.0 * self.mtu * scale.size * by_target / self.target;
            state.increase += alpha * bytes * (self.target - delay);
        }
    }

    fn shrink(&self, state: &mut State, now: Time) {
        state.fast = false;
        state.unhindered = 0.0;
        let delay = state.smoothed_delay;
        if delay > self.target && ps(now.since(state.decreased)) > state.base_rtt {
            let kept = 1.0 - GAMMA * (delay - self.target) / delay;
            state.window *= kept.max(LEAST_KEPT);
            state.decreased = now;
        }
    }
}

impl SourceControl for Windows {
    fn separates_flows(&self) -> bool {
        true
    }

    fn needs_ack(&self) -> bool {
        true
    }

    #[inline]
    fn prefetch_feedback(&self, flow: Flow) {
        self.senders.prefetch(flow);
    }

    fn flow_limits(&self, _: Time, host: HostId) -> Vec<FlowLimit> {
        self.senders.limits(host.index(), |_, state| {
            state.window / (state.base_rtt + state.smoothed_delay)
        })
    }

    #[inline]
    fn release(&mut self, now: Time, flow: Flow) -> Time {
        match self.senders.get(flow) {
            Some(state) if !self.is_open(state) => Time::MAX,
            _ => now,
        }
    }

    fn on_send(&mut self, now: Time, flow: Flow, wire_time: Span, payload: u32) {
        let base_rtt = self.base_rtt;
        let (_, state) = self
            .senders
            .sending(flow, wire_time, payload, |link, _| State {
                window: LARGEST * link * base_rtt,
                base_rtt,
                adjusted: now,
                ..State::default()
            });
        state.in_flight += u64::from(payload);
    }

    fn on_ack(&mut self, now: Time, flow: Flow, ack: Ack<'_>) -> bool {
        let scale = self.scale(self.senders.payload_rate(flow));
        let Some(&(mut state)) = self.senders.get(flow) else {
            return false;
        };
        let was_open = self.is_open(&state);
        let bytes = f64::from(ack.bytes);
        state.in_flight = state.in_flight.saturating_sub(u64::from(ack.bytes));
        state.achieved += bytes;
        state.received += bytes;
        state.ignored += bytes;
        let rtt = ps(now.since(ack.sent));
        state.base_rtt = state.base_rtt.min(rtt);
        let delay = rtt - state.base_rtt;
        self.smooth(&mut state, delay, ack.becn);
        self.acknowledged(&mut state, now, bytes, delay, ack.becn, scale);
        let sooner = self.is_open(&state) && !was_open;
        if let Some(place) = self.senders.get_mut(flow) {
            *place = state;
        }
        sooner
    }
}

impl Settings for Windows {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

    use super::super::flows::tests::{at, flow, round, setup, window_is_kept};
    use super::*;

    fn windows(quick_adapt: bool) -> Windows {
        let nscc = Nscc {
            quick_adapt,
            ..Nscc::default()
        };
        nscc.build(&setup()).unwrap().1
    }

    fn is(found: f64, expected: f64) {
        assert!(
            (found / expected - 1.0).abs() < 1e-9,
            "{found} is not {expected}"
        );
    }

    #[test]
    fn the_first_window_is_one_and_a_half_products() {
        // 12 us at 12,500 bytes in a microsecond: 150 packets.
        assert_eq!(window_is_kept(&mut windows(true)), 225);
    }

    /// A flow that has seen a round trip of 12 us, with a window of so many bytes.
    fn started(window: f64) -> Windows {
        let mut source = windows(false);
        round(&mut source, at(0), Span::from_us(12), true, &[]);
        let state = source.senders.get_mut(flow()).unwrap();
        assert_eq!(state.base_rtt, 12e6);
        state.window = window;
        state.received = 0.0;
        state.increase = 0.0;
        source
    }

    /// The four cases of an acknowledgement. An adjustment follows each case after a base round trip, and adds 0.15
    /// packets.
    #[test]
    fn marks_and_delay_make_four_cases() {
        let window = 100_000.0;
        let adjusted = |increase: f64| window + increase / window + 150.0;
        // No mark, 6 us of 12 waited: alpha is 4 packets a target for each byte.
        let mut source = started(window);
        round(&mut source, at(100), Span::from_us(18), false, &[]);
        is(
            source.window(flow()).unwrap(),
            adjusted(4_000.0 / 12e6 * 1_000.0 * 6e6),
        );
        // No mark, 14 us waited: 5 packets for each byte.
        let mut source = started(window);
        round(&mut source, at(100), Span::from_us(26), false, &[]);
        is(source.window(flow()).unwrap(), adjusted(5_000.0 * 1_000.0));
        // A mark, 6 us waited: nothing.
        let mut source = started(window);
        round(&mut source, at(100), Span::from_us(18), true, &[]);
        is(source.window(flow()).unwrap(), adjusted(0.0));
        // A mark, 24 us waited, again and again: the smoothed delay goes to 24 us, and the window falls by 0.8 of a half.
        let mut source = started(window);
        source.senders.get_mut(flow()).unwrap().smoothed_delay = 24e6;
        round(&mut source, at(100), Span::from_us(36), true, &[]);
        is(source.window(flow()).unwrap(), window * 0.6 + 150.0);
    }

    #[test]
    fn a_window_grows_fast_when_nothing_has_waited_for_a_window() {
        let mut source = started(3_000.0);
        let state = |source: &Windows| *source.senders.get(flow()).unwrap();
        let mut number = 0;
        while !state(&source).fast {
            assert!(state(&source).unhindered <= state(&source).window);
            number += 1;
            round(&mut source, at(100 + number), Span::from_us(12), false, &[]);
        }
        let mut last = state(&source);
        assert!(last.unhindered > last.window - 250.0);
        last.increase = 0.0;
        *source.senders.get_mut(flow()).unwrap() = last;
        round(&mut source, at(101 + number), Span::from_us(12), false, &[]);
        // A quarter of what is acknowledged, and no more than that.
        is(source.window(flow()).unwrap(), last.window + 250.0);
    }

    /// Five targets waited and a packet arrived in a period: the window is that packet, and what was in flight does
    /// not count.
    #[test]
    fn quick_adapt_sets_the_window_to_what_arrived() {
        let mut source = windows(true);
        round(&mut source, at(0), Span::from_us(12), true, &[]);
        (0..50).for_each(|_| source.on_send(at(20), flow(), Span::from_ns(80), 1_000));
        let ack = |sent| Ack {
            bytes: 1_000,
            becn: true,
            sent,
            endpoint: Span::ZERO,
            path: None,
            hops: &[],
        };
        source.on_ack(at(92), flow(), ack(at(20)));
        is(source.window(flow()).unwrap(), 1_000.0);
        let state = *source.senders.get(flow()).unwrap();
        is(state.to_ignore, 49_000.0);
        (0..48).for_each(|_| {
            source.on_ack(at(93), flow(), ack(at(20)));
        });
        is(source.window(flow()).unwrap(), 1_000.0);
    }

    #[test]
    fn defaults_scale_with_the_link() {
        let mut nscc = Nscc::default();
        let plane = DataPlane {
            mtu: Bytes::from_bytes(4_096),
            header: Bytes::ZERO,
            switch_buffer: Bytes::ZERO,
            link_rate: setup().link_rate,
        };
        nscc.fill_in(&plane);
        assert_eq!(nscc.k_min, Some(Bytes::from_bytes(150_000)));
        assert_eq!(nscc.k_max, Some(Bytes::from_bytes(600_000)));
        assert_eq!(nscc.target_delay, Some(Span::from_us(12)));
        let filled_in = nscc.clone();
        nscc.fill_in(&plane);
        assert_eq!(nscc, filled_in);
    }
}
