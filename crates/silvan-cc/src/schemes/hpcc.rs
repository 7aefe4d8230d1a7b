//! HPCC (Y. Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, algorithm 1).
//!
//! Switches write queue, sent bytes and time into packets. The sender sets its window so that the busiest link's bytes
//! in flight reach eta, in proportion or by a small step for `max-stage` round trips. Times replace sequence numbers; a
//! link is measured from its second packet on.

use silvan_core::prefetch::prefetch;
use silvan_core::{Bytes, HostId, Span, Time};

use super::flows::{Senders, paced, ps};
use super::stamping::Stamping;
use crate::hooks::{Ack, Flow, FlowLimit, Hop, PortVl, Settings, SourceControl};
use crate::parameters;
use crate::schemes::variant::{Cost, FabricFacts, Family, Variant, bytes, ns};
use crate::schemes::{Bounds, Defaults, Scheme, SchemeError, Search, Setup};

parameters! {
    /// HPCC; the defaults are those of the paper (section 5.1).
    pub struct Hpcc {
        /// Utilisation that the windows aim at (eta).
        eta: f64 {
            default: 0.95,
            bounds: Bounds::PART,
            source: "eta of Li et al. 2019 is the part of a link that windows aim at",
            search: Search::numbers(0.7, 0.99),
        }
        /// Round trips of additive increase before the window is set in proportion again (maxStage).
        max_stage: u32 {
            default: 5,
            search: Search::whole(0, 10).late(),
        }
        /// Step of additive increase (W_AI).
        additive_increase: Bytes {
            default: Bytes::from_bytes(80),
            bounds: Bounds::SOME_BYTES,
            source: "W_AI of Li et al. 2019 is the step by which windows grow",
            search: Search::SCALED,
        }
        /// The longest round trip of the fabric without queues (T).
        base_rtt: Span {
            default: Span::from_us(13),
            bounds: Bounds::Time,
            source: "T of Li et al. 2019 is the longest round trip without queues",
        }
        /// Bytes that packets and acknowledgements carry in addition, for what switches write into them.
        telemetry: Bytes {
            default: Bytes::from_bytes(0),
        }
    }
}

/// Sent bytes and queue length; both windows, load, stage, round, packets in progress, next start, and eight bytes for each of
/// five hops.
const COST: Cost = Cost::new(12, 0, 64, "acknowledgements");

impl Scheme for Hpcc {
    type Switch = Stamping;
    type Source = Windows;

    const DEFAULTS: Defaults = Defaults {
        carrier_required: Some("windows count acknowledged packets"),
        ..Defaults::ACK_PER_PACKET
    };

    const FAMILY: Family = Family::Acknowledgements;

    fn variants(facts: &FabricFacts<'_>) -> Vec<Variant> {
        let telemetry = 2 + 8 * u64::from(facts.max_hops.saturating_sub(1));
        let summary = format!(
            "the base round trip is the fabric's, {telemetry} bytes of telemetry in each packet"
        );
        vec![
            Variant::new("hpcc", summary, COST)
                .own("base-rtt", ns(facts.base_rtt_ns()))
                .own("telemetry", bytes(telemetry)),
        ]
    }

    fn wire_bytes(&self) -> Bytes {
        self.telemetry
    }

    fn idle_reason(&self) -> Option<String> {
        let (eta, base_rtt) = (self.eta, self.base_rtt);
        Some(format!(
            "no link was busy for eta, {eta}, of a base round trip of {base_rtt}"
        ))
    }

    fn build(&self, setup: &Setup<'_>) -> Result<(Stamping, Windows), SchemeError> {
        let windows = Windows {
            eta: self.eta,
            max_stage: self.max_stage,
            additive: self.additive_increase.as_u64() as f64,
            base_rtt: ps(self.base_rtt),
            senders: Senders::new(setup.hosts),
            links: vec![Vec::new(); setup.hosts],
        };
        Ok((Stamping, windows))
    }
}

#[derive(Clone, Copy, Debug)]
struct Link {
    output: PortVl,
    at: Time,
    queued_bytes: u32,
    xmit_bytes: u64,
}

impl Link {
    fn of(hop: &Hop) -> Self {
        Self {
            output: hop.output,
            at: hop.at,
            queued_bytes: hop.queued_bytes,
            xmit_bytes: hop.xmit_bytes,
        }
    }
}

/// Amounts are bytes of payload.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// W and W^c of the paper.
    window: f64,
    reference: f64,
    /// U: bytes in flight relative to the busiest link's capacity in a base round trip.
    utilisation: f64,
    stage: u32,
    in_flight: u64,
    round: Time,
    next: Time,
    first_link: u32,
    links: u32,
}

/// The hosts.
#[derive(Clone, Debug)]
pub struct Windows {
    eta: f64,
    max_stage: u32,
    additive: f64,
    base_rtt: f64,
    senders: Senders<State>,
    links: Vec<Vec<Link>>,
}

impl Windows {
    /// In bytes of payload; `None` before the first packet.
    pub fn window(&self, flow: Flow) -> Option<f64> {
        self.senders.get(flow).map(|state| state.window)
    }

    fn measure(&self, before: &[Link], hops: &[Hop]) -> Option<(f64, f64)> {
        let mut busiest = None;
        for (hop, last) in hops.iter().zip(before) {
            let passed = hop.at.checked_since(last.at).map_or(0.0, ps);
            if hop.output != last.output || passed == 0.0 {
                continue;
            }
            let bytes_per_ps = hop.rate.bits_per_sec() as f64 / 8e12;
            let queued = f64::from(hop.queued_bytes.min(last.queued_bytes));
            let sent = (hop.xmit_bytes - last.xmit_bytes) as f64;
            let load = queued / (bytes_per_ps * self.base_rtt) + sent / passed / bytes_per_ps;
            if busiest.is_none_or(|(most, _)| load > most) {
                busiest = Some((load, passed));
            }
        }
        busiest
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

    #[inline]
    fn prefetch_feedback_data(&self, flow: Flow) {
        if let Some(state) = self.senders.get(flow) {
            let links = &self.links[flow.source.index()][state.first_link as usize..];
            for index in (0..state.links as usize).step_by(64 / size_of::<Link>()) {
                prefetch(links, index);
            }
        }
    }

    fn flow_limits(&self, _: Time, host: HostId) -> Vec<FlowLimit> {
        self.senders
            .limits(host.index(), |_, state| state.window / self.base_rtt)
    }

    #[inline]
    fn release(&mut self, now: Time, flow: Flow) -> Time {
        match self.senders.get(flow) {
            None => now,
            Some(state) if state.in_flight as f64 >= state.window => Time::MAX,
            Some(state) => state.next,
        }
    }

    fn on_send(&mut self, now: Time, flow: Flow, wire_time: Span, payload: u32) {
        let base_rtt = self.base_rtt;
        let (link, state) = self.senders.sending(flow, wire_time, payload, |link, _| {
            let window = link * base_rtt;
            State {
                window,
                reference: window,
                ..State::default()
            }
        });
        state.in_flight += u64::from(payload);
        state.next = paced(now, wire_time, state.window / (link * base_rtt));
    }

    fn on_ack(&mut self, now: Time, flow: Flow, ack: Ack<'_>) -> bool {
        let most = self.senders.payload_rate(flow) * self.base_rtt;
        let Some(&(mut state)) = self.senders.get(flow) else {
            return false;
        };
        let was_open = (state.in_flight as f64) < state.window;
        state.in_flight = state.in_flight.saturating_sub(u64::from(ack.bytes));
        let links = &self.links[flow.source.index()];
        let known = &links[state.first_link as usize..][..state.links as usize];
        if let Some((load, passed)) = self.measure(known, ack.hops) {
            let weight = passed.min(self.base_rtt) / self.base_rtt;
            state.utilisation = (1.0 - weight) * state.utilisation + weight * load;
            let new_round = ack.sent >= state.round;
            let in_proportion = state.utilisation >= self.eta || state.stage >= self.max_stage;
            let factor = if in_proportion {
                self.eta / state.utilisation
            } else {
                1.0
            };
            state.window = (state.reference * factor + self.additive).min(most);
            if new_round {
                state.stage = if in_proportion { 0 } else { state.stage + 1 };
                state.reference = state.window;
                state.round = now;
            }
        }
        let links = &mut self.links[flow.source.index()];
        if ack.hops.len() != state.links as usize {
            state.first_link = links.len() as u32;
            state.links = ack.hops.len() as u32;
            links.extend(ack.hops.iter().map(Link::of));
        } else {
            for (link, hop) in links[state.first_link as usize..].iter_mut().zip(ack.hops) {
                if hop.output != link.output || hop.at > link.at {
                    *link = Link::of(hop);
                }
            }
        }
        let is_open = (state.in_flight as f64) < state.window;
        if let Some(place) = self.senders.get_mut(flow) {
            *place = state;
        }
        is_open && !was_open
    }
}

impl Settings for Windows {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

    use silvan_core::Rate;

    use super::super::flows::tests::{at, flow, round, setup, window_is_kept};
    use super::*;

    fn windows() -> Windows {
        Hpcc::default().build(&setup()).unwrap().1
    }

    /// Returns the record of a 100 Gbit/s link (12,500 bytes per microsecond).
    fn hop(us: u64, queued_bytes: u32, xmit_bytes: u64) -> Hop {
        Hop {
            output: PortVl(3),
            at: at(us),
            queued_bytes,
            xmit_bytes,
            rate: Rate::from_bits_per_sec(100_000_000_000).unwrap(),
        }
    }

    #[test]
    fn the_first_window_is_what_the_link_carries_in_a_base_round_trip() {
        // 13 us at 12,500 bytes in a microsecond are 162.5 packets.
        assert_eq!(window_is_kept(&mut windows()), 163);
    }

    /// Algorithm 1 by hand: U, then W = W_c eta / U + W_AI, or W_c + W_AI.
    #[test]
    fn the_window_follows_algorithm_1() {
        let mut source = windows();
        let full = 162_500.0;
        round(
            &mut source,
            at(0),
            Span::from_us(13),
            false,
            &[hop(5, 0, 0)],
        );
        assert_eq!(source.window(flow()), Some(full));
        // In 13 us the link sent at its full rate, with half a base round trip in its queue at both ends.
        let busy = hop(18, 81_250, 162_500);
        round(&mut source, at(13), Span::from_us(13), false, &[busy]);
        // The smaller of the two queues counts, so U is 1.
        let first = full * 0.95 + 80.0;
        assert!((source.window(flow()).unwrap() - first).abs() < 1e-6);
        let busy = hop(31, 81_250, 325_000);
        round(&mut source, at(26), Span::from_us(13), false, &[busy]);
        let second = first * 0.95 / 1.5 + 80.0;
        assert!((source.window(flow()).unwrap() - second).abs() < 1e-6);
        // Half the load and no queue: additive increase, five rounds long, and then in proportion.
        let mut expected = second;
        for number in 0..6 {
            let idle = hop(44 + 13 * number, 0, 325_000 + 81_250 * (number + 1));
            round(
                &mut source,
                at(39 + 13 * number),
                Span::from_us(13),
                false,
                &[idle],
            );
            expected = if number < 5 {
                expected + 80.0
            } else {
                (expected * 1.9 + 80.0).min(full)
            };
            let window = source.window(flow()).unwrap();
            assert!((window - expected).abs() < 1e-6, "{number}: {window}");
        }
    }

    #[test]
    fn a_path_that_has_changed_is_measured_from_its_second_packet_on() {
        let mut source = windows();
        round(
            &mut source,
            at(0),
            Span::from_us(13),
            false,
            &[hop(5, 0, 0)],
        );
        let other = Hop {
            output: PortVl(4),
            ..hop(18, 1 << 20, 1 << 20)
        };
        round(&mut source, at(13), Span::from_us(13), false, &[other]);
        assert_eq!(source.window(flow()), Some(162_500.0));
        // A longer path, and an acknowledgement that another one has overtaken.
        round(
            &mut source,
            at(26),
            Span::from_us(13),
            false,
            &[hop(30, 0, 0), other],
        );
        round(
            &mut source,
            at(26),
            Span::from_us(13),
            false,
            &[hop(29, 0, 0), other],
        );
        assert_eq!(source.window(flow()), Some(162_500.0));
    }
}
