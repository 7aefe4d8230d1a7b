use silvan_core::{Span, Time};

use crate::flow_table::{FlowTable, key};
use crate::hooks::{Flow, FlowLimit};

#[derive(Clone, Debug)]
struct Sender<V> {
    /// Link rate in bytes of payload per picosecond, by the fullest packet that was started.
    payload_rate: f64,
    flows: FlowTable<V>,
}

#[derive(Clone, Debug)]
pub(super) struct Senders<V>(Vec<Sender<V>>);

impl<V: Copy + Default> Senders<V> {
    pub fn new(hosts: usize) -> Self {
        let sender = Sender {
            payload_rate: 0.0,
            flows: FlowTable::new(),
        };
        Self(vec![sender; hosts])
    }

    #[inline]
    pub fn get(&self, flow: Flow) -> Option<&V> {
        self.0[flow.source.index()].flows.get(key(flow))
    }

    #[inline]
    pub fn prefetch(&self, flow: Flow) {
        self.0[flow.source.index()].flows.prefetch(key(flow));
    }

    #[inline]
    pub fn get_mut(&mut self, flow: Flow) -> Option<&mut V> {
        self.0[flow.source.index()].flows.get_mut(key(flow))
    }

    #[inline]
    pub fn sending(
        &mut self,
        flow: Flow,
        wire_time: Span,
        payload: u32,
        first: impl FnOnce(f64, &FlowTable<V>) -> V,
    ) -> (f64, &mut V) {
        let sender = &mut self.0[flow.source.index()];
        // A packet of headers alone has no payload rate.
        let rate = f64::from(payload.max(1)) / wire_time.as_ps().max(1) as f64;
        sender.payload_rate = sender.payload_rate.max(rate);
        if sender.flows.get(key(flow)).is_none() {
            let state = first(sender.payload_rate, &sender.flows);
            sender.flows.insert(key(flow), state, |_, _| true);
        }
        match sender.flows.get_mut(key(flow)) {
            Some(state) => (sender.payload_rate, state),
            None => unreachable!("it has just been added"),
        }
    }

    /// In bytes per picosecond.
    #[inline]
    pub fn payload_rate(&self, flow: Flow) -> f64 {
        self.0[flow.source.index()].payload_rate
    }

    /// `rate` maps the link's payload rate and a state to payload bytes per picosecond.
    pub fn limits(&self, host: usize, rate: impl Fn(f64, &V) -> f64) -> Vec<FlowLimit> {
        let sender = &self.0[host];
        let link = sender.payload_rate;
        FlowLimit::of_table(&sender.flows, |key, state| {
            FlowLimit::of_rate(key, rate(link, state) / link)
        })
    }
}

#[inline]
pub(super) fn paced(now: Time, wire_time: Span, part: f64) -> Time {
    if part >= 1.0 {
        return now;
    }
    let gap = wire_time.as_ps() as f64 / part;
    now.saturating_add(Span::from_ps(gap.round() as u64))
}

#[inline]
pub(super) fn ps(span: Span) -> f64 {
    span.as_ps() as f64
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

    use silvan_core::{HostId, Rate, Sl};

    use super::*;
    use crate::hooks::{Ack, Hop, SourceControl};
    use crate::schemes::{Scheme, Setup};

    /// Wire time of a packet: no headers, so that the link carries 1,000 bytes in 80 ns.
    pub const PACKET: Span = Span::from_ns(80);

    pub fn setup() -> Setup<'static> {
        Setup {
            ports: &[None, None],
            data_vls: 1,
            hosts: 2,
            link_rate: Rate::from_bits_per_sec(100_000_000_000).unwrap(),
            mtu: 1_000,
            routes_use_lanes: false,
            has_alternatives: false,
            waits_once: true,
            seed: 1,
        }
    }

    pub fn flow() -> Flow {
        Flow {
            source: HostId::new(0),
            destination: HostId::new(1),
            sl: Sl::ZERO,
            queue: 0,
        }
    }

    pub fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    /// Sends a packet and acknowledges it after `rtt`.
    pub fn round(source: &mut impl SourceControl, sent: Time, rtt: Span, becn: bool, hops: &[Hop]) {
        source.on_send(sent, flow(), PACKET, 1_000);
        let ack = Ack {
            bytes: 1_000,
            becn,
            sent,
            endpoint: Span::ZERO,
            path: None,
            hops,
        };
        source.on_ack(sent + rtt, flow(), ack);
    }

    /// Asserts that each of these combinations of parameters is refused at its key.
    pub fn are_refused<S: Scheme>(cases: impl IntoIterator<Item = (S, &'static str)>) {
        for (case, key) in cases {
            assert_eq!(case.check().unwrap_err().key.to_string(), key, "{case:?}");
        }
        assert_eq!(S::default().check(), Ok(()));
    }

    /// Checks that a scheme keeps its window, and returns the window.
    ///
    /// Packets start below the window; none starts at the window, and the acknowledgement that opens it returns true.
    pub fn window_is_kept(source: &mut impl SourceControl) -> u64 {
        let mut sent = 0;
        let mut now = Time::ZERO;
        while source.release(now, flow()) != Time::MAX {
            source.on_send(now, flow(), PACKET, 1_000);
            sent += 1;
            now += PACKET;
            assert!(sent < 100_000, "no window at all");
        }
        // After 12 us, the shortest round trip that a scheme takes for granted.
        let after = now + Span::from_ns(1);
        let ack = Ack {
            bytes: 1_000,
            becn: false,
            sent: after.saturating_sub(Span::from_us(12)),
            endpoint: Span::ZERO,
            path: None,
            hops: &[],
        };
        assert!(source.on_ack(after, flow(), ack));
        assert!(source.release(after, flow()) <= after + PACKET);
        sent
    }

    #[test]
    fn a_pace_is_the_wire_time_over_the_part() {
        assert_eq!(paced(at(1), PACKET, 0.25), at(1) + Span::from_ns(320));
        assert_eq!(paced(at(1), PACKET, 1.0), at(1));
    }

    #[test]
    fn the_fullest_packet_says_what_a_link_carries() {
        let mut senders = Senders::<u8>::new(2);
        for payload in [10, 1_000, 20] {
            senders.sending(flow(), PACKET, payload, |_, _| 7);
        }
        assert_eq!(senders.payload_rate(flow()), 1_000.0 / 80_000.0);
        assert_eq!(senders.get(flow()), Some(&7));
    }
}
