//! TIMELY (R. Mittal et al., "TIMELY: RTT-based congestion control for the datacenter", SIGCOMM 2015, algorithm 1), and
//! its patch (Y. Zhu et al., "ECN or delay: lessons learnt from analysis of DCQCN and TIMELY", CoNEXT 2016, algorithm
//! 2).
//!
//! The rate rises below T_low, falls above T_high, and follows the round trip's gradient in between, without a unique
//! fixed point. The patch counts the distance from T_low: `n` flows reach equal rates and `T_low (1 + n delta / (beta
//! C))`.
//!
//! The round trip is that of a segment's last packet, without its time on the sender's link.

use silvan_core::{Bytes, HostId, Rate, Span, Time};

use super::flows::{Senders, paced, ps};
use crate::hooks::{Ack, Flow, FlowLimit, NoControl, Settings, SourceControl};
use crate::parameters;
use crate::schemes::variant::{Cost, FabricFacts, Family, Variant, mbit_per_s, nearest, ns};
use crate::schemes::{Bounds, DataPlane, Defaults, Scheme, SchemeError, Search, Setup};

parameters! {
    /// TIMELY; the defaults are those that its authors recommend for 10 Gbit/s, as Zhu et al. 2016 give them.
    pub struct Timely {
        /// True for the patched version of Zhu et al. 2016.
        patched: bool {
            default: false,
        }
        /// Round trip below which the rate always rises (T_low).
        t_low: Span {
            default: Span::from_us(50),
            bounds: Bounds::Time,
            search: Search::SCALED,
        }
        /// Round trip above which the rate always falls (T_high).
        t_high: Span {
            default: Span::from_us(500),
            above: t_low,
            source: "T_high of Mittal et al. 2015, above which rates always fall, is above T_low",
            search: Search::SCALED,
        }
        /// Round trip that the gradient is related to (minRTT).
        min_rtt: Span {
            default: Span::from_us(20),
            bounds: Bounds::Time,
            source: "Mittal et al. 2015 divide the gradient by minRTT",
        }
        /// Step of additive increase (delta).
        delta: Rate {
            default: TEN_MBIT,
            search: Search::SCALED,
        }
        /// Weight of the newest difference of two round trips (alpha).
        alpha: f64 {
            default: 0.875,
            bounds: Bounds::PART,
            source: "alpha of Mittal et al. 2015 is the weight of the newest difference",
        }
        /// Factor of a decrease (beta); by default 0.8, or 0.008 if it is patched.
        beta: Option<f64> {
            default: None,
            bounds: Bounds::PART,
            example: "0.8",
            source: "beta of Mittal et al. 2015 is the factor of a decrease",
            search: Search::numbers(0.005, 1.0).log(),
        }
        /// Payload between two measurements (Seg).
        segment: Bytes {
            default: Bytes::from_bytes(16_000),
            bounds: Bounds::SOME_BYTES,
            source: "Seg of Mittal et al. 2015 is the payload between two measurements",
        }
        /// Segments in a row without a rising round trip from which on the step is five times as large (N).
        hyper_after: u32 {
            default: 5,
            bounds: Bounds::Above(0.0, 1e6),
            source: "N of Mittal et al. 2015 is a number of round trips in a row",
        }
        /// Smallest rate of a flow. The sources have none; a steep gradient would never let a flow recover.
        min_rate: Rate {
            default: TEN_MBIT,
        }
    }
}

const TEN_MBIT: Rate = match Rate::from_bits_per_sec(10_000_000) {
    Some(rate) => rate,
    None => unreachable!(),
};

impl Timely {
    fn beta(&self) -> f64 {
        self.beta.unwrap_or(if self.patched { 0.008 } else { 0.8 })
    }
}

/// Rate, round trip, smoothed difference, segments, acknowledged bytes, next start.
const COST: Cost = Cost::new(0, 0, 21, "acknowledgements");

const PUBLISHED_RTT_NS: f64 = 20_000.0;
const PUBLISHED_GBPS: f64 = 10.0;

impl Scheme for Timely {
    type Switch = NoControl;
    type Source = Rates;

    const DEFAULTS: Defaults = Defaults {
        carrier_required: Some("rates follow the round-trip times of acknowledged packets"),
        ..Defaults::ACK_PER_PACKET
    };

    fn fill_in(&mut self, _: &DataPlane) {
        self.beta = Some(self.beta());
    }

    const FAMILY: Family = Family::Acknowledgements;

    fn variants(facts: &FabricFacts<'_>) -> Vec<Variant> {
        let base = facts.base_rtt_ns();
        let longer = base as f64 / PUBLISHED_RTT_NS;
        let step = mbit_per_s(nearest(10.0 * facts.link_gbps() / PUBLISHED_GBPS).max(1));
        let variant = |name, which, patched: bool, beta: f64| {
            let summary =
                format!("{which}, times in proportion to the base round trip, steps to the link");
            Variant::new(name, summary, COST)
                .own("patched", patched)
                .own("beta", beta)
                .own("t-low", ns(nearest(50_000.0 * longer)))
                .own("t-high", ns(nearest(500_000.0 * longer)))
                .own("min-rtt", ns(base))
                .own("delta", step.as_str())
                .own("min-rate", step.as_str())
        };
        vec![
            variant("timely", "as published", false, 0.8),
            variant("timely+patched", "patched by Zhu et al.", true, 0.008),
        ]
    }

    fn idle_reason(&self) -> Option<String> {
        Some(format!("no flow's rate fell, and t-low is {}", self.t_low))
    }

    fn build(&self, setup: &Setup<'_>) -> Result<(NoControl, Rates), SchemeError> {
        let rates = Rates {
            patched: self.patched,
            t_low: ps(self.t_low),
            t_high: ps(self.t_high),
            min_rtt: ps(self.min_rtt),
            delta: bytes_per_ps(self.delta),
            alpha: self.alpha,
            beta: self.beta(),
            segment: self.segment.as_u64(),
            hyper_after: self.hyper_after,
            min_rate: bytes_per_ps(self.min_rate),
            senders: Senders::new(setup.hosts),
        };
        Ok((NoControl, rates))
    }
}

fn bytes_per_ps(rate: Rate) -> f64 {
    rate.bits_per_sec() as f64 / 8e12
}

/// Rates are bytes of payload per picosecond.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    rate: f64,
    in_flight: u64,
    acknowledged: u64,
    /// Last round trip, 0 before the first, and smoothed difference, in ps.
    rtt: f64,
    difference: f64,
    falling: u32,
    next: Time,
}

/// The hosts.
#[derive(Clone, Debug)]
pub struct Rates {
    patched: bool,
    t_low: f64,
    t_high: f64,
    min_rtt: f64,
    delta: f64,
    alpha: f64,
    beta: f64,
    segment: u64,
    hyper_after: u32,
    min_rate: f64,
    senders: Senders<State>,
}

/// Steps of the additive increase after several segments without a rising round trip (section 4.3).
const HYPER_STEPS: f64 = 5.0;

impl Rates {
    /// In bytes of payload per picosecond.
    pub fn rate(&self, flow: Flow) -> Option<f64> {
        self.senders.get(flow).map(|state| state.rate)
    }

    fn measured(&self, state: &mut State, rtt: f64, link: f64) {
        if state.rtt > 0.0 {
            let newest = rtt - state.rtt;
            state.difference = (1.0 - self.alpha) * state.difference + self.alpha * newest;
        }
        state.rtt = rtt;
        let gradient = state.difference / self.min_rtt;
        let rate = if rtt < self.t_low {
            state.falling = 0;
            state.rate + self.delta
        } else if rtt > self.t_high {
            state.falling = 0;
            state.rate * (1.0 - self.beta * (1.0 - self.t_high / rtt))
        } else if self.patched {
            // Between a quarter of minRTT down and up per round trip, both parts count.
            let weight = (2.0 * gradient + 0.5).clamp(0.0, 1.0);
            let error = (rtt - self.t_low) / self.t_low;
            self.delta * (1.0 - weight) + state.rate * (1.0 - self.beta * weight * error)
        } else if gradient <= 0.0 {
            state.falling += 1;
            let hyper = state.falling >= self.hyper_after;
            state.rate + if hyper { HYPER_STEPS } else { 1.0 } * self.delta
        } else {
            state.falling = 0;
            state.rate * (1.0 - self.beta * gradient)
        };
        state.rate = rate.max(self.min_rate).min(link);
    }
}

impl SourceControl for Rates {
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
        self.senders.limits(host.index(), |_, state| state.rate)
    }

    #[inline]
    fn release(&mut self, now: Time, flow: Flow) -> Time {
        self.senders.get(flow).map_or(now, |state| state.next)
    }

    fn on_send(&mut self, now: Time, flow: Flow, wire_time: Span, payload: u32) {
        let (link, state) = self
            .senders
            .sending(flow, wire_time, payload, |link, others| {
                // A new flow starts at its share of the link among active flows (section 4.2).
                let is_active = |(_, state): &(u32, &State)| state.in_flight > 0;
                let active = others.iter().filter(is_active).count();
                State {
                    rate: link / (active + 1) as f64,
                    ..State::default()
                }
            });
        state.in_flight += u64::from(payload);
        state.next = paced(now, wire_time, state.rate / link);
    }

    fn on_ack(&mut self, now: Time, flow: Flow, ack: Ack<'_>) -> bool {
        let link = self.senders.payload_rate(flow);
        let Some(&(mut state)) = self.senders.get(flow) else {
            return false;
        };
        let bytes = u64::from(ack.bytes);
        state.in_flight = state.in_flight.saturating_sub(bytes);
        state.acknowledged += bytes;
        if state.acknowledged >= self.segment {
            state.acknowledged = 0;
            let rtt = ps(now.since(ack.sent)) - bytes as f64 / link;
            self.measured(&mut state, rtt, link);
        }
        if let Some(place) = self.senders.get_mut(flow) {
            *place = state;
        }
        false
    }
}

impl Settings for Rates {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

    use super::super::flows::tests::{PACKET, at, flow, round, setup};
    use super::*;

    /// Bytes of the link per picosecond, and delta in the same unit.
    const LINK: f64 = 1_000.0 / 80_000.0;
    const DELTA: f64 = 10e6 / 8e12;

    fn rates(timely: Timely) -> Rates {
        let timely = Timely {
            segment: Bytes::from_bytes(1_000),
            ..timely
        };
        timely.build(&setup()).unwrap().1
    }

    /// Measures a round trip of so many microseconds, to which the packet's own time on the link is added.
    fn measure(source: &mut Rates, us: u64) -> f64 {
        round(source, at(0), Span::from_us(us) + PACKET, false, &[]);
        source.rate(flow()).unwrap()
    }

    fn is(found: f64, expected: f64) {
        assert!(
            (found / expected - 1.0).abs() < 1e-9,
            "{found} is not {expected}"
        );
    }

    /// Algorithm 1 of Mittal et al. by hand: T_high, then the gradient, then T_low.
    #[test]
    fn rates_follow_the_round_trip() {
        let mut source = rates(Timely::default());
        is(measure(&mut source, 1_000), LINK * (1.0 - 0.8 * 0.5));
        let mut expected = LINK * 0.6;
        // 1,000 us to 100 us: falling. To 110 us: the smoothed difference is still negative. Then it is not.
        let mut difference = 0.875 * -900.0;
        is(measure(&mut source, 100), expected + DELTA);
        expected += DELTA;
        difference = 0.125 * difference + 0.875 * 10.0;
        assert!(difference < 0.0);
        is(measure(&mut source, 110), expected + DELTA);
        difference = 0.125 * difference + 0.875 * 10.0;
        difference = 0.125 * difference + 0.875 * 10.0;
        measure(&mut source, 120);
        let before = source.rate(flow()).unwrap();
        is(
            measure(&mut source, 130),
            before * (1.0 - 0.8 * difference / 20.0),
        );
        let before = source.rate(flow()).unwrap();
        is(measure(&mut source, 10), before + DELTA);
    }

    #[test]
    fn the_fifth_segment_without_a_rise_takes_five_steps() {
        let mut source = rates(Timely::default());
        measure(&mut source, 1_000);
        let mut expected = source.rate(flow()).unwrap();
        for segment in 1..=6 {
            expected += if segment < 5 { DELTA } else { 5.0 * DELTA };
            is(measure(&mut source, 100), expected);
        }
    }

    /// Zhu et al., algorithm 2: at gradient 0 both parts have half their weight. So the rate stays where delta = beta
    /// rate (rtt - T_low) / T_low.
    #[test]
    fn the_patched_one_has_a_point_where_it_stays() {
        let patched = Timely {
            patched: true,
            ..Timely::default()
        };
        let mut source = rates(patched);
        measure(&mut source, 1_000);
        // Equal round trips until the gradient is zero.
        (0..30).for_each(|_| {
            measure(&mut source, 100);
        });
        let before = source.rate(flow()).unwrap();
        is(
            measure(&mut source, 100),
            before * (1.0 - 0.008 * 0.5) + DELTA / 2.0,
        );
        (0..20_000).for_each(|_| {
            measure(&mut source, 100);
        });
        is(source.rate(flow()).unwrap(), DELTA / 0.008);
    }

    #[test]
    fn a_new_flow_starts_at_its_share_and_none_falls_below_the_smallest_rate() {
        let mut source = rates(Timely::default());
        source.on_send(Time::ZERO, flow(), PACKET, 1_000);
        let second = Flow {
            destination: HostId::new(0),
            ..flow()
        };
        source.on_send(Time::ZERO, second, PACKET, 1_000);
        is(source.rate(second).unwrap(), LINK / 2.0);
        // The packet that waits 80 ns at half the rate lets the next one start after 160.
        assert_eq!(source.release(Time::ZERO, second), Time::ZERO + PACKET * 2);
        for us in [100, 5_000, 50_000, 500_000] {
            (0..9).for_each(|_| {
                measure(&mut source, us);
            });
        }
        is(source.rate(flow()).unwrap(), 10e6 / 8e12);
    }
}
