//! Backpressure on pairs of endpoints, like Slingshot (D. De Sensi, S. Di Girolamo, K. H. McMahon, D. Roweth, T.
//! Hoefler, "An in-depth analysis of the Slingshot interconnect", SC 2020; US patent 12,267,229).
//!
//! The last switch marks packets while a host's queue exceeds a threshold. The first mark of a round trip halves the
//! pair's window; without marks it grows, twice as fast after each round trip. Adaptive routing handles congestion
//! inside the fabric.

use silvan_core::{Bytes, HostId, Span, Time};

use super::flows::{Senders, ps};
use crate::hooks::{
    Ack, Flow, FlowLimit, PacketView, PortVl, QueueView, Settings, SourceControl, SwitchControl,
};
use crate::parameters;
use crate::schemes::variant::{Cost, FabricFacts, Family, Variant, bytes};
use crate::schemes::{Bounds, DataPlane, Defaults, Scheme, SchemeError, Search, Setup};

parameters! {
    /// Slingshot's backpressure on pairs. Its rule is not published; the rule here is silvan's.
    pub struct PairBackpressure {
        /// Most payload that a pair has in flight; by default what a link carries in 4 us. At least a round trip without queues, or
        /// a pair alone does not fill its link.
        window: Option<Bytes> {
            default: None,
            bounds: Bounds::SOME_BYTES,
            example: "\"50 kB\"",
        }
        /// Bytes that wait for a host, from which on its switch marks packets for it; by default as much as `window`. With less than a
        /// round trip carries, the link may run dry after a decrease.
        threshold: Option<Bytes> {
            default: None,
            bounds: Bounds::SOME_BYTES,
            example: "\"50 kB\"",
            search: Search::SCALED,
        }
        /// Smallest window, in packets of MTU size.
        least_window: u32 {
            default: 2,
            bounds: Bounds::Whole(1, u32::MAX as u64),
            message: "0 packets would stop a pair",
            search: Search::whole(1, 8).log(),
        }
        /// Packets of MTU size by which a window grows in the first round trip without a mark.
        increase: f64 {
            default: 1.0,
            bounds: Bounds::Above(0.0, 1e6),
            search: Search::numbers(0.25, 8.0).log(),
        }
    }
}

const ROUND_TRIP: Span = Span::from_us(4);

/// Registers: threshold and queue length of a port to a host; bytes in flight of a pair, its window and step, the start
/// of its round trip, and the time of the window's last decrease.
const COST: Cost = Cost::new(8, 0, 20, "acknowledgements");

impl Scheme for PairBackpressure {
    type Switch = LastHop;
    type Source = Pairs;

    const TAKES_LINK_RATE: bool = true;

    const DEFAULTS: Defaults = Defaults {
        carrier_required: Some("windows count acknowledged packets"),
        ..Defaults::ACK_PER_PACKET
    };

    fn fill_in(&mut self, data_plane: &DataPlane) {
        let bits = data_plane.link_rate.bits_per_sec() as f64;
        let carried = (bits / 8.0 * ROUND_TRIP.as_secs_f64()).round() as u64;
        let least = data_plane.mtu.as_u64() * u64::from(self.least_window);
        let window = *self
            .window
            .get_or_insert(Bytes::from_bytes(carried.max(least)));
        self.threshold.get_or_insert(window);
    }

    fn check_setup(&self, setup: &Setup<'_>) -> Result<(), SchemeError> {
        let least = u64::from(setup.mtu) * u64::from(self.least_window);
        let window = self.window.unwrap_or(Bytes::ZERO);
        if window.as_u64() >= least {
            return Ok(());
        }
        let message = format!(
            "{window} is less than least-window, {} packets of {} B: {least} B",
            self.least_window, setup.mtu
        );
        let hint = format!("write at least \"{least} B\", or a smaller least-window");
        Err(SchemeError::new("window", message, hint))
    }

    const FAMILY: Family = Family::Acknowledgements;

    fn variants(facts: &FabricFacts<'_>) -> Vec<Variant> {
        let carried = facts.base_rtt_ns() as f64 * facts.link_gbps() / 8.0;
        let product = bytes(carried.ceil() as u64 + facts.mtu.as_u64());
        let summary = "a window and a threshold of what a link carries in the base round trip";
        vec![
            Variant::new("pair-backpressure", summary, COST)
                .own("window", product.as_str())
                .own("threshold", product.as_str()),
        ]
    }

    fn idle_reason(&self) -> Option<String> {
        Some(format!(
            "no queue at a last switch exceeded threshold, {}",
            self.threshold?
        ))
    }

    fn build(&self, setup: &Setup<'_>) -> Result<(LastHop, Pairs), SchemeError> {
        let bytes = |bytes: Option<Bytes>| bytes.map_or(u64::MAX, Bytes::as_u64);
        let ports = setup.ports.iter();
        let last_hop = LastHop {
            threshold: bytes(self.threshold),
            to_host: ports
                .map(|port| port.is_some_and(|port| port.to_host))
                .collect(),
            vls: u32::from(setup.data_vls),
            marked: vec![0; setup.ports.len() * usize::from(setup.data_vls)],
        };
        let mtu = f64::from(setup.mtu);
        let pairs = Pairs {
            most: bytes(self.window) as f64,
            least: f64::from(self.least_window) * mtu,
            increase: self.increase * mtu,
            mtu,
            senders: Senders::new(setup.hosts),
        };
        Ok((last_hop, pairs))
    }
}

/// The switches.
#[derive(Clone, Debug)]
pub struct LastHop {
    threshold: u64,
    to_host: Vec<bool>,
    vls: u32,
    marked: Vec<u64>,
}

impl SwitchControl for LastHop {
    #[inline]
    fn on_departure(&mut self, _: Time, output: PortVl, queue: QueueView, _: PacketView) -> bool {
        let mark = u64::from(queue.queued_bytes) > self.threshold
            && self.to_host[(output.0 / self.vls) as usize];
        self.marked[output.0 as usize] += u64::from(mark);
        mark
    }

    fn marked(&self, output: PortVl) -> u64 {
        self.marked[output.0 as usize]
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    /// In bytes of payload.
    window: f64,
    in_flight: u64,
    /// Growth in this round trip, in bytes.
    step: f64,
    round: Time,
    /// Last decrease. Marks of packets sent before do not count.
    fell: Time,
    rtt: Span,
}

/// The hosts: windows of pairs that have sent something.
#[derive(Clone, Debug)]
pub struct Pairs {
    most: f64,
    least: f64,
    /// In bytes.
    increase: f64,
    mtu: f64,
    senders: Senders<Pair>,
}

impl Pairs {
    /// In bytes; `None` before the first packet.
    pub fn window(&self, flow: Flow) -> Option<f64> {
        self.senders.get(flow).map(|pair| pair.window)
    }

    fn is_open(&self, pair: &Pair) -> bool {
        pair.in_flight == 0 || pair.in_flight as f64 + self.mtu <= pair.window
    }
}

impl SourceControl for Pairs {
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
        self.senders.limits(host.index(), |link, pair| {
            if pair.window >= self.most || pair.rtt == Span::ZERO {
                return link;
            }
            pair.window / ps(pair.rtt)
        })
    }

    #[inline]
    fn release(&mut self, now: Time, flow: Flow) -> Time {
        match self.senders.get(flow) {
            Some(pair) if !self.is_open(pair) => Time::MAX,
            _ => now,
        }
    }

    fn on_send(&mut self, now: Time, flow: Flow, wire_time: Span, payload: u32) {
        let first = Pair {
            window: self.most,
            step: self.increase,
            round: now,
            ..Pair::default()
        };
        let (_, pair) = self.senders.sending(flow, wire_time, payload, |_, _| first);
        pair.in_flight += u64::from(payload);
    }

    fn on_ack(&mut self, now: Time, flow: Flow, ack: Ack<'_>) -> bool {
        let Some(&(mut pair)) = self.senders.get(flow) else {
            return false;
        };
        let was_open = self.is_open(&pair);
        pair.in_flight = pair.in_flight.saturating_sub(u64::from(ack.bytes));
        pair.rtt = now.since(ack.sent);
        if ack.becn {
            if ack.sent >= pair.fell {
                pair.window = (pair.window / 2.0).max(self.least);
                pair.fell = now;
            }
            (pair.step, pair.round) = (self.increase, now);
        } else if pair.window < self.most {
            if ack.sent >= pair.round {
                (pair.step, pair.round) = (2.0 * pair.step, now);
            }
            let grown = pair.window + pair.step * f64::from(ack.bytes) / pair.window;
            pair.window = grown.min(self.most);
        }
        let opens = !was_open && self.is_open(&pair);
        if let Some(place) = self.senders.get_mut(flow) {
            *place = pair;
        }
        opens
    }
}

impl Settings for LastHop {}

impl Settings for Pairs {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

    use silvan_core::{PortId, PortNumber, SwitchId, Vl};

    use super::super::flows::tests::{PACKET, at, flow, round, setup, window_is_kept};
    use super::*;
    use crate::schemes::SwitchPort;

    /// A window of 16 packets of 1,000 bytes, of which two are left at least.
    fn scheme() -> PairBackpressure {
        PairBackpressure {
            window: Some(Bytes::from_bytes(16_000)),
            threshold: Some(Bytes::from_bytes(8_000)),
            ..PairBackpressure::default()
        }
    }

    fn pairs() -> Pairs {
        scheme().build(&setup()).unwrap().1
    }

    const RTT: Span = Span::from_us(10);

    #[test]
    fn the_first_window_is_the_largest() {
        assert_eq!(window_is_kept(&mut pairs()), 16);
    }

    #[test]
    fn a_window_is_halved_once_in_a_round_trip_down_to_the_least() {
        let mut source = pairs();
        for (sent, window) in [(0, 8e3), (5, 8e3), (10, 4e3), (20, 2e3), (30, 2e3)] {
            round(&mut source, at(sent), RTT, true, &[]);
            assert_eq!(source.window(flow()), Some(window), "sent at {sent} us");
        }
    }

    #[test]
    fn it_grows_by_a_packet_then_by_two_then_by_four_until_it_is_the_largest() {
        let mut source = pairs();
        for sent in [0, 10, 20] {
            round(&mut source, at(sent), RTT, true, &[]);
        }
        // Acknowledgements of packets that were sent before the window fell.
        for sent in [25, 26] {
            round(&mut source, at(sent), Span::from_us(6), false, &[]);
        }
        // Each adds the step times its part of the window: 2,000 bytes, then 2,500.
        let grown = 2_500.0 + 1e3 * 1e3 / 2_500.0;
        assert_eq!(source.window(flow()), Some(grown));
        let mut window = grown;
        for (place, sent) in (40..100).step_by(10).enumerate() {
            round(&mut source, at(sent), RTT, false, &[]);
            window += f64::from(2_000 << place) * 1e3 / window;
            assert_eq!(source.window(flow()), Some(window.min(16e3)));
        }
        assert_eq!(source.window(flow()), Some(16e3));
        assert_eq!(source.flow_limits(at(110), flow().source), []);
    }

    #[test]
    fn a_window_limits_its_pair_alone() {
        let mut source = pairs();
        for sent in [0, 10, 20] {
            round(&mut source, at(sent), RTT, true, &[]);
        }
        for _ in 0..2 {
            assert_eq!(source.release(at(30), flow()), at(30));
            source.on_send(at(30), flow(), PACKET, 1_000);
        }
        assert_eq!(source.release(at(30), flow()), Time::MAX);
        let other = Flow {
            destination: HostId::new(0),
            ..flow()
        };
        assert_eq!(source.release(at(30), other), at(30));
        // Two packets in a round trip of 10 us, of a link that carries 125.
        let [limit] = source.flow_limits(at(30), flow().source)[..] else {
            panic!("one pair is limited");
        };
        assert!((limit.rate - 2.0 / 125.0).abs() < 1e-9, "{limit:?}");
    }

    #[test]
    fn only_a_queue_for_a_host_above_the_threshold_is_marked() {
        let port = |to_host| {
            Some(SwitchPort {
                switch: SwitchId::new(0),
                number: PortNumber::new(1),
                to_host,
                peer: None,
            })
        };
        let ports = [port(false), port(true)];
        let setup = Setup {
            ports: &ports,
            data_vls: 2,
            ..setup()
        };
        let (mut switch, _) = scheme().build(&setup).unwrap();
        let mut marks = |port_vl, queued_bytes| {
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
            switch.on_departure(at(0), PortVl(port_vl), queue, packet)
        };
        assert_eq!(
            [0, 1, 2, 3].map(|lane| marks(lane, 8_001)),
            [false, false, true, true]
        );
        assert!(!marks(3, 8_000));
        assert_eq!(
            [0, 1, 2, 3].map(|lane| switch.marked(PortVl(lane))),
            [0, 0, 1, 1]
        );
    }

    #[test]
    fn what_it_cannot_work_with_is_refused() {
        let more = PairBackpressure {
            least_window: 17,
            ..scheme()
        };
        let refused = more.check_setup(&setup()).unwrap_err();
        assert_eq!(refused.key.to_string(), "window");
        assert!(refused.message.contains("17000 B"), "{refused}");
        assert_eq!(scheme().check_setup(&setup()), Ok(()));
    }
}
