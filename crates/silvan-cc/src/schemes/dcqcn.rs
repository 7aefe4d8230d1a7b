//! DCQCN (Y. Zhu et al., "Congestion control for large-scale RDMA deployments", SIGCOMM 2015).
//!
//! - **CP**: marks by the output's queue, as in RED: 0 up to Kmin, Pmax at Kmax, 1 beyond (figure 5).
//! - **NP**: one notification per flow in N us of marks (figure 6): `control.feedback.coalesce`.
//! - **RP**: a notification cuts the rate by alpha / 2 and raises alpha. A timer and a byte counter raise the rate, in
//!   five steps of fast recovery, then additively, then faster (section 3.1, figure 7).
//!
//! A flow that is back at its link's rate loses its state.

use silvan_core::{Bytes, HostId, Rate, Span, Time};

use super::red::RedMarker;
use crate::flow_table::{FlowTable, key};
use crate::hooks::{Feedback, Flow, FlowLimit, PerHost, Settings, SourceControl};
use crate::parameters;
use crate::schemes::variant::{Cost, FabricFacts, Family, Variant, bytes, mbit_per_s, nearest};
use crate::schemes::{Bounds, Defaults, Scheme, SchemeError, Search, Setup};

parameters! {
    /// DCQCN; the defaults are those of the paper (section 5.2), for links of 40 Gbit/s.
    pub struct Dcqcn {
        /// Queue of an output up to which nothing is marked (Kmin).
        k_min: Bytes {
            default: Bytes::from_bytes(5_000),
            search: Search::SCALED,
        }
        /// Queue from which on all packets are marked (Kmax).
        k_max: Bytes {
            default: Bytes::from_bytes(200_000),
            above: k_min,
            source: "Zhu et al. 2015 mark from Kmin on, and all packets from Kmax on",
            search: Search::SCALED,
        }
        /// Probability of a mark just below `k-max` (Pmax).
        p_max: f64 {
            default: 0.01,
            bounds: Bounds::PART,
            source: "Pmax of Zhu et al. 2015 is the probability of a mark",
            search: Search::numbers(0.001, 1.0).log(),
        }
        /// Weight of a notification in alpha (g).
        g: f64 {
            default: 1.0 / 256.0,
            bounds: Bounds::PART,
            example: "0.01",
            source: "g of Zhu et al. 2015 is the weight of a notification",
        }
        /// Time without a notification after which alpha falls (K).
        alpha_timer: Span {
            default: Span::from_us(55),
            bounds: Bounds::Time,
            search: Search::SCALED.late(),
        }
        /// Time between two raises of the rate (T).
        rate_timer: Span {
            default: Span::from_us(55),
            bounds: Bounds::Time,
            search: Search::SCALED.late(),
        }
        /// Payload between two raises of the rate (B).
        byte_counter: Bytes {
            default: Bytes::from_bytes(10_000_000),
            bounds: Bounds::SOME_BYTES,
            source: "B of Zhu et al. 2015 is the payload between two raises",
        }
        /// Raises of fast recovery (F).
        fast_recovery: u32 {
            default: 5,
        }
        /// Step of additive increase (R_AI).
        rate_ai: Rate {
            default: mbit(40),
            search: Search::SCALED,
        }
        /// Step of hyper increase (R_HAI).
        rate_hai: Rate {
            default: mbit(400),
        }
        /// Smallest rate of a flow.
        min_rate: Rate {
            default: mbit(10),
        }
    }
}

fn mbit(rate: u64) -> Rate {
    Rate::from_bits_per_sec(rate * 1_000_000).expect("a rate above zero")
}

/// Kmin, Kmax, slope and queue length; both rates, alpha, two timers, three counters, and the receiver's time of the last
/// notification.
const COST: Cost = Cost::new(14, 0, 30, "notifications");

const PUBLISHED_GBPS: f64 = 40.0;

impl Scheme for Dcqcn {
    type Switch = RedMarker;
    type Source = ReactionPoint;

    const TAKES_LINK_RATE: bool = true;

    const DEFAULTS: Defaults = Defaults {
        coalesce: Some(Span::from_us(50)),
        ..Defaults::CNP
    };

    const FAMILY: Family = Family::RandomMarks;

    fn variants(facts: &FabricFacts<'_>) -> Vec<Variant> {
        let faster = facts.link_gbps() / PUBLISHED_GBPS;
        let k_min = nearest(5_000.0 * faster).max(2 * facts.mtu.as_u64());
        let k_max = nearest(200_000.0 * faster).max(10 * k_min);
        vec![
            Variant::new("dcqcn", "thresholds in proportion to the link", COST)
                .own("k-min", bytes(k_min))
                .own("k-max", bytes(k_max))
                .own("rate-ai", mbit_per_s(nearest(40.0 * faster).max(1)))
                .own("rate-hai", mbit_per_s(nearest(400.0 * faster).max(10))),
        ]
    }

    fn idle_reason(&self) -> Option<String> {
        Some(format!("no queue reached k-min, {}", self.k_min))
    }

    fn build(&self, setup: &Setup<'_>) -> Result<(RedMarker, ReactionPoint), SchemeError> {
        let switch = RedMarker::new(self.k_min, self.k_max, self.p_max, setup);
        let link = setup.link_rate.bits_per_sec() as f64;
        let part = |rate: Rate| (rate.bits_per_sec() as f64 / link).min(1.0);
        let source = ReactionPoint {
            g: self.g,
            alpha_timer: self.alpha_timer,
            rate_timer: self.rate_timer,
            byte_counter: self.byte_counter.as_u64(),
            fast_recovery: self.fast_recovery,
            additive: part(self.rate_ai),
            hyper: part(self.rate_hai),
            min_rate: part(self.min_rate),
            flows: vec![FlowTable::new(); setup.hosts],
        };
        Ok((switch, source))
    }
}

/// State of a notified flow until it is at its link's rate again. Rates are parts of the link's.
#[derive(Clone, Copy, Debug, Default)]
struct Limiter {
    /// R_C, at which it sends.
    current: f64,
    /// R_T, the target of the recovery.
    target: f64,
    alpha: f64,
    alpha_due: Time,
    rate_due: Time,
    bytes: u64,
    by_timer: u32,
    by_bytes: u32,
    next: Time,
}

/// The hosts.
#[derive(Clone, Debug)]
pub struct ReactionPoint {
    g: f64,
    alpha_timer: Span,
    rate_timer: Span,
    byte_counter: u64,
    fast_recovery: u32,
    additive: f64,
    hyper: f64,
    min_rate: f64,
    flows: Vec<FlowTable<Limiter>>,
}

impl ReactionPoint {
    /// The rate of a flow, as a part of its link's, when it was last read.
    pub fn rate(&self, flow: Flow) -> f64 {
        let known = self.flows[flow.source.index()].get(key(flow));
        known.map_or(1.0, |limiter| limiter.current)
    }

    fn catch_up(&self, limiter: &mut Limiter, now: Time) {
        while limiter.current < 1.0 && limiter.alpha_due.min(limiter.rate_due) <= now {
            if limiter.alpha_due <= limiter.rate_due {
                limiter.alpha *= 1.0 - self.g;
                limiter.alpha_due += self.alpha_timer;
            } else {
                limiter.by_timer += 1;
                limiter.rate_due += self.rate_timer;
                self.raise(limiter);
            }
        }
    }

    /// Raises the rate once (figure 7 of the paper).
    fn raise(&self, limiter: &mut Limiter) {
        let (least, most) = if limiter.by_timer < limiter.by_bytes {
            (limiter.by_timer, limiter.by_bytes)
        } else {
            (limiter.by_bytes, limiter.by_timer)
        };
        if least > self.fast_recovery {
            limiter.target += f64::from(least - self.fast_recovery) * self.hyper;
        } else if most >= self.fast_recovery {
            limiter.target += self.additive;
        }
        limiter.target = limiter.target.min(1.0);
        limiter.current = (limiter.target + limiter.current) / 2.0;
        if limiter.current > 1.0 - 1e-6 {
            limiter.current = 1.0;
        }
    }

    /// A notification (equation (1) of the paper).
    fn cut(&self, limiter: &mut Limiter, now: Time) {
        limiter.target = limiter.current;
        limiter.current = (limiter.current * (1.0 - limiter.alpha / 2.0)).max(self.min_rate);
        limiter.alpha = (1.0 - self.g) * limiter.alpha + self.g;
        limiter.alpha_due = now.saturating_add(self.alpha_timer);
        limiter.rate_due = now.saturating_add(self.rate_timer);
        limiter.bytes = 0;
        limiter.by_timer = 0;
        limiter.by_bytes = 0;
    }
}

impl SourceControl for ReactionPoint {
    fn separates_flows(&self) -> bool {
        true
    }

    fn flow_limits(&self, now: Time, host: HostId) -> Vec<FlowLimit> {
        FlowLimit::of_table(&self.flows[host.index()], |key, limiter| {
            let mut limiter = *limiter;
            self.catch_up(&mut limiter, now);
            FlowLimit::of_rate(key, limiter.current)
        })
    }

    #[inline]
    fn release(&mut self, now: Time, flow: Flow) -> Time {
        match self.flows[flow.source.index()].get(key(flow)) {
            None => now,
            Some(limiter) => limiter.next,
        }
    }

    fn on_send(&mut self, now: Time, flow: Flow, wire_time: Span, payload: u32) {
        let host = flow.source.index();
        let Some(mut limiter) = self.flows[host].get(key(flow)).copied() else {
            return;
        };
        self.catch_up(&mut limiter, now);
        limiter.bytes += u64::from(payload);
        if limiter.bytes >= self.byte_counter && limiter.current < 1.0 {
            limiter.bytes -= self.byte_counter;
            limiter.by_bytes += 1;
            self.raise(&mut limiter);
        }
        if limiter.current >= 1.0 {
            self.flows[host].remove(key(flow));
            return;
        }
        let gap = wire_time.as_ps() as f64 / limiter.current;
        limiter.next = now.saturating_add(Span::from_ps(gap.round() as u64));
        if let Some(known) = self.flows[host].get_mut(key(flow)) {
            *known = limiter;
        }
    }

    fn on_feedback(&mut self, now: Time, flow: Flow, feedback: Feedback) -> bool {
        if matches!(feedback, Feedback::Ack { becn: false, .. }) {
            return false;
        }
        let host = flow.source.index();
        // The first notification starts with alpha at 1.
        let mut limiter = Limiter {
            current: 1.0,
            alpha: 1.0,
            next: now,
            ..Limiter::default()
        };
        let known = self.flows[host].get(key(flow)).copied();
        if let Some(found) = known {
            limiter = found;
            self.catch_up(&mut limiter, now);
        }
        self.cut(&mut limiter, now);
        match self.flows[host].get_mut(key(flow)) {
            Some(place) => *place = limiter,
            None => {
                self.flows[host].insert(key(flow), limiter, |_, _| true);
            }
        }
        false
    }
}

impl Settings for ReactionPoint {}

impl PerHost for ReactionPoint {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

    use silvan_core::{PortId, Sl, Vl};

    use crate::hooks::{PacketView, PortVl, QueueView, SwitchControl};

    use super::*;

    fn setup(link_rate: Rate) -> Setup<'static> {
        Setup {
            ports: &[None, None],
            data_vls: 1,
            hosts: 2,
            link_rate,
            mtu: 1_000,
            routes_use_lanes: false,
            has_alternatives: false,
            waits_once: true,
            seed: 1,
        }
    }

    fn flow() -> Flow {
        Flow {
            source: HostId::new(0),
            destination: HostId::new(1),
            sl: Sl::ZERO,
            queue: 0,
        }
    }

    /// A part of departures that are marked with so many bytes waiting.
    fn marked_part(queued_bytes: u32) -> f64 {
        let (mut switch, _) = Dcqcn::default().build(&setup(mbit(40_000))).unwrap();
        let queue = QueueView {
            queued_bytes,
            has_credit: true,
        };
        let packet = PacketView {
            wire_bytes: 1_000,
            marked: false,
            input: PortId::new(0),
            vl: Vl::ZERO,
        };
        let draws = 200_000;
        let port = PortVl(1);
        let marked = (0..draws)
            .filter(|_| switch.on_departure(Time::ZERO, port, queue, packet))
            .count();
        assert_eq!(switch.marked(port), marked as u64);
        marked as f64 / f64::from(draws)
    }

    #[test]
    fn marks_follow_figure_5() {
        assert_eq!(marked_part(5_000), 0.0);
        assert_eq!(marked_part(200_000), 1.0);
        // Half-way from Kmin to Kmax half of Pmax, and nearly Pmax before the step to 1; five
        // standard deviations of 200,000 draws.
        for (queued, expected) in [(102_500, 0.005), (199_999, 0.01)] {
            let part = marked_part(queued);
            let deviation = (expected * (1.0 - expected) / 200_000f64).sqrt();
            assert!(
                (part - expected).abs() < 5.0 * deviation,
                "{queued}: {part}"
            );
        }
    }

    #[test]
    fn the_first_notification_halves_the_rate() {
        let (_, mut source) = Dcqcn::default().build(&setup(mbit(40_000))).unwrap();
        let now = Time::ZERO + Span::from_us(10);
        assert_eq!(source.flow_limits(now, flow().source), []);
        source.on_feedback(now, flow(), Feedback::Cnp);
        assert_eq!(source.rate(flow()), 0.5);
        let [limit] = source.flow_limits(now, flow().source)[..] else {
            panic!("one flow is limited")
        };
        assert_eq!(
            (limit.destination, limit.rate),
            (Some(flow().destination), 0.5)
        );
        // After five expiries of the timer a 64th is missing.
        let later = now + Span::from_us(55) * 5;
        assert_eq!(source.flow_limits(later, flow().source)[0].rate, 0.984_375);
        // alpha was 1 and stays 1: (1 - g) + g.
        source.on_feedback(now, flow(), Feedback::Cnp);
        assert_eq!(source.rate(flow()), 0.25);
        // A packet of one microsecond now takes four.
        source.on_send(now, flow(), Span::from_us(1), 1_000);
        assert_eq!(source.release(now, flow()), now + Span::from_us(4));
        // An acknowledgement without a mark means nothing, one with a mark is a notification.
        let ack = |becn| Feedback::Ack { bytes: 1_000, becn };
        source.on_feedback(now, flow(), ack(false));
        assert_eq!(source.rate(flow()), 0.25);
        source.on_feedback(now, flow(), ack(true));
        assert_eq!(source.rate(flow()), 0.125);
    }

    #[test]
    fn five_raises_of_fast_recovery_halve_the_distance() {
        let (_, mut source) = Dcqcn::default().build(&setup(mbit(40_000))).unwrap();
        source.on_feedback(Time::ZERO, flow(), Feedback::Cnp);
        // Of the rate 1/2 before, 1/64 is missing after five expiries of the timer. From the fifth on, additive
        // increase raises the target, which is at the link's rate already.
        for (expiries, rate) in [(1, 0.75), (2, 0.875), (4, 0.968_75), (5, 0.984_375)] {
            let at = Time::ZERO + Span::from_us(55) * expiries;
            source.on_send(at, flow(), Span::from_ps(1), 0);
            assert_eq!(source.rate(flow()), rate, "after {expiries}");
        }
        // The flow loses its state in the end.
        let late = Time::ZERO + Span::from_us(55) * 30;
        source.on_send(late, flow(), Span::from_us(1), 0);
        assert!(source.flows[0].is_empty());
        assert_eq!(source.release(late, flow()), late);
    }

    #[test]
    fn additive_and_hyper_increase_raise_the_target() {
        let dcqcn = Dcqcn {
            byte_counter: Bytes::from_bytes(1_000),
            ..Dcqcn::default()
        };
        let (_, mut source) = dcqcn.build(&setup(mbit(40_000))).unwrap();
        // Two cuts: the target is 1/2, the rate 1/4.
        source.on_feedback(Time::ZERO, flow(), Feedback::Cnp);
        source.on_feedback(Time::ZERO, flow(), Feedback::Cnp);
        let mut expected = (0.25, 0.5);
        // R_AI is 1/1000 of the link, R_HAI 1/100. Byte counter alone: additive from the fifth raise on.
        for raise in 1..=7 {
            if raise >= 5 {
                expected.1 += 0.001;
            }
            expected.0 = (expected.0 + expected.1) / 2.0;
            source.on_send(Time::ZERO, flow(), Span::from_ps(1), 1_000);
            assert!(
                (source.rate(flow()) - expected.0).abs() < 1e-12,
                "raise {raise}"
            );
        }
        // Seven expiries of the timer: additive up to the fifth, then 1 and 2 steps of hyper increase.
        for expiry in 1..=7u64 {
            expected.1 += match expiry {
                6 => 0.01,
                7 => 0.02,
                _ => 0.001,
            };
            expected.0 = (expected.0 + expected.1) / 2.0;
            let at = Time::ZERO + Span::from_us(55) * expiry;
            source.on_send(at, flow(), Span::from_ps(1), 0);
            assert!(
                (source.rate(flow()) - expected.0).abs() < 1e-12,
                "expiry {expiry}"
            );
        }
    }

    #[test]
    fn alpha_falls_while_nothing_is_notified() {
        // A rate timer so slow that only alpha moves.
        let dcqcn = Dcqcn {
            rate_timer: Span::from_ms(100),
            ..Dcqcn::default()
        };
        let (_, mut source) = dcqcn.build(&setup(mbit(40_000))).unwrap();
        source.on_feedback(Time::ZERO, flow(), Feedback::Cnp);
        let later = Time::ZERO + Span::from_us(55) * 256;
        source.on_feedback(later, flow(), Feedback::Cnp);
        let alpha = (255.0f64 / 256.0).powi(256);
        let expected = 0.5 * (1.0 - alpha / 2.0);
        assert!((source.rate(flow()) - expected).abs() < 1e-12);
    }

    #[test]
    fn a_flow_never_falls_below_the_smallest_rate() {
        let (_, mut source) = Dcqcn::default().build(&setup(mbit(40_000))).unwrap();
        (0..100).for_each(|_| {
            source.on_feedback(Time::ZERO, flow(), Feedback::Cnp);
        });
        assert_eq!(source.rate(flow()), 10.0 / 40_000.0);
    }
}
