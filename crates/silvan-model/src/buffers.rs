//! Input buffers with credits: the round trip of a credit, and the bytes that a cable needs.

use silvan_core::{Bytes, Rate, Span};
use silvan_fabric::LinkKind;

use crate::config::{HostParams, PacketParams, SwitchParams};

const BLOCK: u64 = 64;
/// Largest input buffer.
pub const MOST_BUFFER: Bytes = Bytes::from_bytes(16 << 20);

/// The way of a credit: with a packet over a cable into a buffer, and back when the packet has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditLoop {
    /// Data rate of the cable.
    pub rate: Rate,
    /// Propagation from end to end.
    pub propagation: Span,
    /// Sizes of packets.
    pub packet: PacketParams,
    /// Time between the head of a packet in the buffer and the credit on the cable, beyond the serialisation of the packet.
    pub delay: Span,
}

impl CreditLoop {
    const ROUND_TRIPS: u128 = 2;
    const SPARE_PACKETS: u64 = 4;

    fn wire(&self) -> Bytes {
        self.packet.mtu + self.packet.header
    }

    /// Time from the start of a packet to the next use of its credits, in picoseconds.
    fn round_trip_ps(&self) -> u128 {
        let spans = [
            self.rate.span_for(self.wire()),
            self.propagation,
            self.propagation,
            self.delay,
        ];
        spans.iter().map(|span| u128::from(span.as_ps())).sum()
    }

    fn packet_bytes(&self) -> u64 {
        self.wire().as_u64().div_ceil(BLOCK).max(1) * BLOCK
    }

    fn room(&self, packets: u64) -> Bytes {
        Bytes::from_bytes(packets.saturating_mul(self.packet_bytes()))
    }

    fn packets_in(&self, round_trips: u128) -> u64 {
        let each = u128::from(self.rate.span_for(self.wire()).as_ps()).max(1);
        let packets = (round_trips * self.round_trip_ps()).div_ceil(each);
        u64::try_from(packets).unwrap_or(u64::MAX)
    }

    /// The smallest buffer with which the link carries its rate.
    pub fn needed(&self) -> Bytes {
        self.room(self.packets_in(1))
    }

    /// The rate of payload that the link carries into a buffer.
    pub fn carried(&self, buffer: Bytes) -> Rate {
        let packets = buffer.as_u64() / self.packet_bytes();
        let in_full = self.packets_in(1) <= packets;
        let (packets, time) = match in_full {
            true => (1, u128::from(self.rate.span_for(self.wire()).as_ps())),
            false => (packets, self.round_trip_ps()),
        };
        let bits = u128::from(packets) * u128::from(self.packet.mtu.as_u64()) * 8;
        let per_s = bits * 1_000_000_000_000 / time.max(1);
        let per_s = u64::try_from(per_s).unwrap_or(u64::MAX).max(1);
        Rate::from_bits_per_sec(per_s).unwrap_or(self.rate)
    }

    /// The default size: two round trips and four packets, at least `least`.
    ///
    /// The second round trip keeps the rate while packets wait for others; a short cable's trip is little more than a
    /// packet.
    pub fn by_default(&self, least: Bytes) -> Bytes {
        let packets = self.packets_in(Self::ROUND_TRIPS);
        let room = self.room(packets.saturating_add(Self::SPARE_PACKETS));
        least.max(room).min(MOST_BUFFER)
    }
}

impl SwitchParams {
    /// The smallest input buffer where none is written.
    pub const LEAST_BUFFER: Bytes = Bytes::from_bytes(64 << 10);

    /// The way of credits for the input buffer of a switch at the end of a cable.
    pub fn credit_loop(&self, cable: LinkKind, packet: PacketParams) -> CreditLoop {
        CreditLoop {
            rate: cable.data_rate(),
            propagation: cable.propagation(),
            packet,
            delay: self.latency + self.credit_delay,
        }
    }

    /// The input buffer at the end of a cable, per virtual lane.
    pub fn buffer_behind(&self, cable: LinkKind, packet: PacketParams) -> Bytes {
        let credits = self.credit_loop(cable, packet);
        match self.buffer {
            Some(buffer) => self.lane_part(buffer),
            None => {
                let shared = credits.by_default(Self::LEAST_BUFFER);
                self.lane_part(shared).max(credits.room(1))
            }
        }
    }

    pub(crate) fn lane_part(&self, buffer: Bytes) -> Bytes {
        Bytes::from_bytes(buffer.as_u64() / u64::from(self.lanes_per_buffer.max(1)))
    }
}

impl HostParams {
    /// The smallest receive buffer where none is written.
    pub const LEAST_RECEIVE_BUFFER: Bytes = Bytes::from_bytes(16 << 10);

    /// The way of credits for the receive buffer of a host at the end of a cable, with a sink that takes no time.
    pub fn credit_loop(&self, cable: LinkKind, packet: PacketParams) -> CreditLoop {
        CreditLoop {
            rate: cable.data_rate(),
            propagation: cable.propagation(),
            packet,
            delay: self.credit_delay,
        }
    }

    /// The receive buffer at the end of a cable, per virtual lane.
    pub fn buffer_behind(&self, cable: LinkKind, packet: PacketParams) -> Bytes {
        let by_default = || {
            let credits = self.credit_loop(cable, packet);
            credits.by_default(Self::LEAST_RECEIVE_BUFFER)
        };
        self.receive_buffer.unwrap_or_else(by_default)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed helper is a failed test")]
mod tests {
    use proptest::prelude::*;
    use silvan_fabric::{Speed, Width};

    use super::*;

    fn cable(gbps: f64, latency_ns: u64) -> LinkKind {
        LinkKind {
            width: Width::X4,
            speed: Speed::Ndr,
            rate: Rate::from_bits_per_sec((gbps * 1e9) as u64),
            length: silvan_core::Length::from_mm(0),
            latency: Some(Span::from_ns(latency_ns)),
        }
    }

    fn packet(mtu: u64) -> PacketParams {
        PacketParams {
            mtu: Bytes::from_bytes(mtu),
            header: Bytes::from_bytes(26),
        }
    }

    fn gbps(rate: Rate) -> f64 {
        rate.bits_per_sec() as f64 / 1e9
    }

    /// Three cables with packets of 4 KiB: 3.6 Tbit/s over 100 ns, XDR over 2 m, NDR over 20 m. A packet has 4122 B on
    /// the wire and 65 credits. A credit takes the serialisation, twice the propagation and 100 ns; in a switch it
    /// takes another 100 ns.
    #[test]
    fn fast_and_long_cables_need_what_the_closed_form_says() {
        let (switch, host) = (SwitchParams::default(), HostParams::default());
        for (rate, ns, receive, input, of_16_kib) in [
            (3_600.0, 100, 34 * 4160, 45 * 4160, 3.0 * 32.768 / 0.30916),
            (800.0, 10, 4 * 4160, 7 * 4160, 3.0 * 32.768 / 0.16122),
            (400.0, 100, 5 * 4160, 6 * 4160, 3.0 * 32.768 / 0.38244),
        ] {
            let cable = cable(rate, ns);
            let to_host = host.credit_loop(cable, packet(4096));
            assert_eq!(to_host.needed().as_u64(), receive, "{rate}");
            let needed = switch.credit_loop(cable, packet(4096)).needed();
            assert_eq!(needed.as_u64(), input, "{rate}");
            let carried = gbps(to_host.carried(Bytes::from_bytes(16 << 10)));
            assert!((carried - of_16_kib).abs() < 1e-3, "{carried} {of_16_kib}");
            let full = gbps(to_host.carried(to_host.needed()));
            assert!(
                (full / (rate * 4096.0 / 4122.0) - 1.0).abs() < 1e-3,
                "{full}"
            );
        }
    }

    /// A short cable of 16 Gbit/s with packets of 2 KiB needs no more than the least buffers.
    #[test]
    fn slow_and_short_cables_have_the_least_buffers() {
        let cable = cable(16.0, 10);
        let switch = SwitchParams::default().buffer_behind(cable, packet(2048));
        let host = HostParams::default().buffer_behind(cable, packet(2048));
        assert_eq!((switch.as_u64(), host.as_u64()), (65_536, 16_384));
    }

    #[test]
    fn written_buffers_are_taken() {
        let written = Some(Bytes::from_bytes(5_000));
        let switch = SwitchParams {
            buffer: written,
            ..SwitchParams::default()
        };
        let host = HostParams {
            receive_buffer: written,
            ..HostParams::default()
        };
        let cable = cable(3_600.0, 100);
        assert_eq!(Some(switch.buffer_behind(cable, packet(4096))), written);
        assert_eq!(Some(host.buffer_behind(cable, packet(4096))), written);
    }

    proptest! {
        /// The closed form in floating point is the oracle. A default carries the rate of its cable, and lies between the least and
        /// twice the round trip with four packets.
        #[test]
        fn defaults_cover_the_round_trip_and_not_much_more(
            rate in 1.0_f64..10_000.0, ns in 0_u64..20_000, mtu in 256_u64..10_240, delay_ns in 0_u64..2_000,
            buffer in 0_u64..(4 << 20),
        ) {
            let kind = cable(rate, ns);
            let switch = SwitchParams { latency: Span::from_ns(delay_ns), ..SwitchParams::default() };
            let one = switch.credit_loop(kind, packet(mtu));
            let wire = (mtu + 26) as f64;
            let (ser, each) = (wire * 8.0 / rate, (wire / 64.0).ceil() * 64.0);
            let trip = ser + 2.0 * ns as f64 + (delay_ns + 100) as f64;
            let by_default = switch.buffer_behind(kind, packet(mtu)).as_u64() as f64;
            // A picosecond of a packet that takes less than a nanosecond is a part in some hundreds.
            let covered = (trip / ser * 0.99).ceil() * each;
            let at_most = 2.0 * (trip / ser * 1.01).ceil() * each + 4.0 * each;
            prop_assert!(by_default >= covered.clamp(65_536.0, 16_777_216.0));
            prop_assert!(by_default <= at_most.max(65_536.0));
            let packets = (buffer as f64 / each).floor();
            let full = mtu as f64 * 8.0 / ser;
            let expected = full.min(packets * mtu as f64 * 8.0 / trip);
            let carried = gbps(one.carried(Bytes::from_bytes(buffer)));
            prop_assert!((carried - expected).abs() <= 1e-6 + 0.01 * expected, "{} {}", carried, expected);
        }
    }
}
