//! Swift (G. Kumar et al., "Swift: delay is simple and effective for congestion control in the datacenter", SIGCOMM
//! 2020, algorithm 1).
//!
//! A window in packets grows by `additive-increase` per round trip below the target, and falls in proportion to the
//! excess above, once per round trip. The target grows with the path's switches and for small windows (section 3.1);
//! below one packet it is a pace. Fabric and endpoint have a window each, the smaller counts (section 3.2).

use silvan_core::{HostId, Span, Time};

use super::flows::{Senders, ps};
use super::stamping::Stamping;
use crate::hooks::{Ack, Flow, FlowLimit, Settings, SourceControl};
use crate::parameters;
use crate::schemes::variant::{Cost, FabricFacts, Family, Variant};
use crate::schemes::{Bounds, Defaults, Scheme, SchemeError, Search, Setup};

parameters! {
    /// Swift. The base target and the smallest window are those of the paper. The rest is from the simulator csg-htsim
    /// (`sim/swift.cpp`): ai, beta and max_mdf, which it calls guesses, and the bounds of the flow's part.
    pub struct Swift {
        /// Target of the fabric's part of the round trip, without what follows.
        base_target: Span {
            default: Span::from_us(25),
            bounds: Bounds::Time,
            search: Search::SCALED,
        }
        /// Target of the delay at the receiver, which neither switches nor small windows add to.
        endpoint_target: Span {
            default: Span::from_us(25),
            bounds: Bounds::Time,
        }
        /// Added to it for each switch on the path (h-bar).
        hop_target: Span {
            default: Span::from_us(1),
        }
        /// Most that is added to it for a small window (fs_range).
        flow_range: Span {
            default: Span::from_us(40),
            search: Search::SCALED,
        }
        /// Window from which on nothing is added, in packets (fs_max_cwnd).
        flow_max_window: f64 {
            default: 100.0,
            above: flow_min_window to 1e6,
            source: "fs_max_cwnd of Kumar et al. 2020 is above fs_min_cwnd",
        }
        /// Window up to which `flow-range` is added, in packets (fs_min_cwnd).
        flow_min_window: f64 {
            default: 0.1,
            bounds: Bounds::Above(0.0, 1e6),
        }
        /// Packets that the window grows by in a round trip (ai).
        additive_increase: f64 {
            default: 1.0,
            bounds: Bounds::Above(0.0, 1e3),
            source: "ai of Kumar et al. 2020 is the number of packets by which windows grow",
            search: Search::numbers(0.1, 8.0).log(),
        }
        /// Part of the excess by which the window falls (beta).
        beta: f64 {
            default: 0.8,
            bounds: Bounds::PART,
            source: "beta of Kumar et al. 2020 is a part of the excess over the target",
            search: Search::numbers(0.1, 0.95),
        }
        /// Largest part of the window that is lost at once (max_mdf).
        max_decrease: f64 {
            default: 0.5,
            bounds: Bounds::PART,
            source: "max_mdf of Kumar et al. 2020 is the largest part of the window that is lost at once",
        }
        /// Smallest window, in packets.
        min_window: f64 {
            default: 0.001,
            bounds: Bounds::PART,
        }
        /// Largest window, in packets; the first one.
        max_window: f64 {
            default: 256.0,
            above: min_window to 1e6,
            source: "the windows of Kumar et al. 2020 go from min_cwnd to max_cwnd",
        }
    }
}

/// Two windows, times of their last decreases, round trip, packets in progress, next start.
const COST: Cost = Cost::new(0, 0, 28, "acknowledgements");

impl Scheme for Swift {
    type Switch = Stamping;
    type Source = Windows;

    const DEFAULTS: Defaults = Defaults {
        carrier_required: Some("windows count acknowledged packets"),
        ..Defaults::ACK_PER_PACKET
    };

    const FAMILY: Family = Family::Acknowledgements;

    fn variants(_: &FabricFacts<'_>) -> Vec<Variant> {
        let summary = "the published base target, for the receiver, too";
        vec![Variant::new("swift", summary, COST)]
    }

    fn idle_reason(&self) -> Option<String> {
        let (target, hop) = (self.base_target, self.hop_target);
        Some(format!(
            "no round trip exceeded base-target, {target}, and hop-target, {hop} for each switch"
        ))
    }

    fn build(&self, setup: &Setup<'_>) -> Result<(Stamping, Windows), SchemeError> {
        let range = ps(self.flow_range);
        let alpha = range / (1.0 / self.flow_min_window.sqrt() - 1.0 / self.flow_max_window.sqrt());
        let windows = Windows {
            base_target: ps(self.base_target),
            endpoint_target: ps(self.endpoint_target),
            hop_target: ps(self.hop_target),
            range,
            alpha,
            offset: -alpha / self.flow_max_window.sqrt(),
            steps: Steps {
                additive: self.additive_increase,
                beta: self.beta,
                least_kept: 1.0 - self.max_decrease,
                min: self.min_window,
                max: self.max_window,
            },
            mtu: f64::from(setup.mtu),
            senders: Senders::new(setup.hosts),
        };
        Ok((Stamping, windows))
    }
}

/// Windows are packets.
#[derive(Clone, Copy, Debug)]
struct Steps {
    additive: f64,
    beta: f64,
    least_kept: f64,
    min: f64,
    max: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Window {
    packets: f64,
    decreased: Time,
}

impl Window {
    /// Acknowledges `packets` packets with this delay (algorithm 1).
    fn adjust(
        &mut self,
        steps: &Steps,
        now: Time,
        rtt: f64,
        (delay, target): (f64, f64),
        packets: f64,
    ) {
        if delay < target {
            self.packets += steps.additive * packets / self.packets.max(1.0);
        } else if ps(now.since(self.decreased)) >= rtt {
            let kept = 1.0 - steps.beta * (delay - target) / delay;
            self.packets *= kept.max(steps.least_kept);
            self.decreased = now;
        }
        self.packets = self.packets.clamp(steps.min, steps.max);
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    fabric: Window,
    endpoint: Window,
    /// In bytes of payload.
    in_flight: u64,
    /// Last round trip, in ps.
    rtt: f64,
    next: Time,
}

impl State {
    fn window(&self) -> f64 {
        self.fabric.packets.min(self.endpoint.packets)
    }
}

/// The hosts.
#[derive(Clone, Debug)]
pub struct Windows {
    base_target: f64,
    endpoint_target: f64,
    hop_target: f64,
    range: f64,
    alpha: f64,
    offset: f64,
    steps: Steps,
    mtu: f64,
    senders: Senders<State>,
}

impl Windows {
    /// In packets of MTU size.
    pub fn window(&self, flow: Flow) -> Option<f64> {
        self.senders.get(flow).map(State::window)
    }

    fn target(&self, switches: usize, window: f64) -> f64 {
        let by_flow = (self.alpha / window.sqrt() + self.offset).clamp(0.0, self.range);
        self.base_target + self.hop_target * switches as f64 + by_flow
    }

    fn is_open(&self, state: &State) -> bool {
        state.in_flight == 0 || state.in_flight as f64 + self.mtu <= state.window() * self.mtu
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
        self.senders.limits(host.index(), |link, state| {
            let rtt = if state.rtt > 0.0 {
                state.rtt
            } else {
                self.mtu / link
            };
            state.window() * self.mtu / rtt
        })
    }

    #[inline]
    fn release(&mut self, now: Time, flow: Flow) -> Time {
        match self.senders.get(flow) {
            None => now,
            Some(state) if self.is_open(state) => state.next,
            Some(_) => Time::MAX,
        }
    }

    fn on_send(&mut self, now: Time, flow: Flow, wire_time: Span, payload: u32) {
        let first = Window {
            packets: self.steps.max,
            decreased: Time::ZERO,
        };
        let (_, state) = self
            .senders
            .sending(flow, wire_time, payload, |_, _| State {
                fabric: first,
                endpoint: first,
                ..State::default()
            });
        state.in_flight += u64::from(payload);
        let window = state.window();
        if window < 1.0 {
            let gap = Span::from_ps((state.rtt / window).round() as u64);
            state.next = now.saturating_add(gap);
        }
    }

    fn on_ack(&mut self, now: Time, flow: Flow, ack: Ack<'_>) -> bool {
        let Some(&(mut state)) = self.senders.get(flow) else {
            return false;
        };
        let before = (self.is_open(&state), state.next);
        state.in_flight = state.in_flight.saturating_sub(u64::from(ack.bytes));
        state.rtt = ps(now.since(ack.sent));
        let (rtt, packets) = (state.rtt, f64::from(ack.bytes) / self.mtu);
        let at_endpoint = ps(ack.endpoint);
        let target = self.target(ack.hops.len(), state.fabric.packets);
        let in_fabric = (rtt - at_endpoint, target);
        state
            .fabric
            .adjust(&self.steps, now, rtt, in_fabric, packets);
        let at_endpoint = (at_endpoint, self.endpoint_target);
        state
            .endpoint
            .adjust(&self.steps, now, rtt, at_endpoint, packets);
        if state.window() >= 1.0 {
            state.next = Time::ZERO;
        }
        let sooner = self.is_open(&state) && (!before.0 || state.next < before.1);
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

    fn windows() -> Windows {
        Swift::default().build(&setup()).unwrap().1
    }

    fn is(found: f64, expected: f64) {
        assert!(
            (found / expected - 1.0).abs() < 1e-9,
            "{found} is not {expected}"
        );
    }

    /// Section 3.1: the full range at the smallest window of the scale, and zero at the largest. In between, the range
    /// is linear in the inverse root of the window.
    #[test]
    fn the_target_grows_with_switches_and_small_windows() {
        let source = windows();
        for (switches, window, us) in [
            (0, 100.0, 25.0),
            (5, 1_000.0, 30.0),
            (2, 0.1, 67.0),
            (0, 0.01, 65.0),
        ] {
            is(source.target(switches, window), us * 1e6);
        }
        // 1 / sqrt(w) half-way between 1 / sqrt(0.1) and 1 / sqrt(100).
        let middle = f64::powi(2.0 / (0.1f64.powf(-0.5) + 0.1), 2);
        is(source.target(0, middle), 45e6);
    }

    #[test]
    fn the_first_window_is_the_largest() {
        assert_eq!(window_is_kept(&mut windows()), 256);
    }

    /// Algorithm 1: one packet for a window's worth of acknowledgements; a decrease in proportion to the excess, at most
    /// by half, once in a round trip.
    #[test]
    fn windows_follow_algorithm_1() {
        let mut source = windows();
        // 100 us, four times the target and more: half of the window is left.
        round(&mut source, at(0), Span::from_us(1_000), false, &[]);
        is(source.window(flow()).unwrap(), 128.0);
        // Sent before, so it must not count again.
        round(&mut source, at(1), Span::from_us(1_001), false, &[]);
        is(source.window(flow()).unwrap(), 128.0);
        // 40 us is 15 us too long.
        round(&mut source, at(2_000), Span::from_us(40), false, &[]);
        is(
            source.window(flow()).unwrap(),
            128.0 * (1.0 - 0.8 * 15.0 / 40.0),
        );
        let before = source.window(flow()).unwrap();
        round(&mut source, at(3_000), Span::from_us(10), false, &[]);
        is(source.window(flow()).unwrap(), before + 1.0 / before);
    }

    /// Section 3.2: 40 us at the endpoint are 15 us too long, for any fabric delay. The fabric's window grows as
    /// before, and the smaller window counts.
    #[test]
    fn the_endpoint_has_a_window_of_its_own() {
        let mut source = windows();
        round(&mut source, at(0), Span::from_us(1_000), false, &[]);
        source.on_send(at(2_000), flow(), Span::from_ns(80), 1_000);
        let ack = Ack {
            bytes: 1_000,
            becn: false,
            sent: at(2_000),
            endpoint: Span::from_us(40),
            path: None,
            hops: &[],
        };
        source.on_ack(at(2_050), flow(), ack);
        let state = source.senders.get(flow()).unwrap();
        is(state.fabric.packets, 128.0 + 1.0 / 128.0);
        is(state.endpoint.packets, 256.0 * (1.0 - 0.8 * 15.0 / 40.0));
        is(source.window(flow()).unwrap(), 128.0 + 1.0 / 128.0);
        // The second decrease waits for a round trip.
        for now in [2_060, 2_100, 2_200] {
            source.on_send(at(now - 50), flow(), Span::from_ns(80), 1_000);
            let ack = Ack {
                sent: at(now - 50),
                ..ack
            };
            source.on_ack(at(now), flow(), ack);
        }
        is(
            source.window(flow()).unwrap(),
            256.0 * f64::powi(1.0 - 0.8 * 15.0 / 40.0, 3),
        );
    }

    /// Below one packet the window is a pace: a packet in each `rtt / window`.
    #[test]
    fn a_window_below_a_packet_is_a_pace() {
        let mut source = windows();
        let mut now = at(0);
        while source.window(flow()).is_none_or(|window| window > 0.3) {
            round(&mut source, now, Span::from_us(200), false, &[]);
            now += Span::from_us(200);
        }
        let window = source.window(flow()).unwrap();
        source.on_send(now, flow(), Span::from_ns(80), 1_000);
        let ack = Ack {
            bytes: 1_000,
            becn: false,
            sent: now,
            endpoint: Span::ZERO,
            path: None,
            hops: &[],
        };
        source.on_ack(now + Span::from_us(200), flow(), ack);
        let release = source.release(now, flow());
        assert!((ps(release.since(now)) - 200e6 / window).abs() < 1.0);
        // A few short round trips, and the window is a packet again: nothing holds the flow back.
        for _ in 0..9 {
            round(&mut source, now, Span::from_us(20), false, &[]);
        }
        assert!(source.window(flow()).unwrap() > 1.0);
        assert!(source.release(now, flow()) <= now);
    }
}
