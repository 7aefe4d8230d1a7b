//! Priority-based flow control (PFC, IEEE 802.1Qbb): thresholds of a buffer, and headroom.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{Bytes, Rate, Span, schema};

use crate::buffers::MOST_BUFFER;
use crate::build_error::BuildError;

/// Priorities of a link, each paused separately (IEEE 802.1Q, clause 36).
pub const PRIORITIES: u8 = 8;

/// Bytes of a RoCE v2 packet beyond its payload: preamble 8, Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4, gap 12
/// (IEEE 802.3, clause 3; RFC 791; RFC 768; IBA volume 1, annex A17).
pub const ROCE_V2_OVERHEAD: Bytes = Bytes::from_bytes(8 + 14 + 20 + 8 + 12 + 4 + 4 + 12);

/// Bytes of a CNP of RoCE v2 on the wire: the overhead and 16 reserved bytes as payload (IBA volume 1, annex A17).
pub const ROCE_V2_CNP: Bytes = Bytes::from_bytes(ROCE_V2_OVERHEAD.as_u64() + 16);

/// Priority-based flow control (PFC) of all links, the same for each priority. A virtual lane is a priority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PfcSection")]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct PfcParams {
    /// Bytes in a buffer above which it pauses its sender. Default: `buffer` less the headroom, or as many as keep the link at full load.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::BytesText>")]
    pub xoff: Option<Bytes>,
    /// Bytes in a buffer at which its sender resumes. Default: two of the largest frames below `xoff`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::BytesText>")]
    pub xon: Option<Bytes>,
    /// Bytes of a buffer above `xoff`, for what arrives before a pause takes effect. Default: those of the standard's formula, by rate and
    /// length of the cable.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::BytesText>")]
    pub headroom: Option<Bytes>,
    /// Size of a buffer per port and priority, at switches and hosts. Default: `xoff` and headroom.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::BytesText>")]
    pub buffer: Option<Bytes>,
    /// Time from the arrival of a pause frame to its effect; 614.4 ns by IEEE 802.1Q, 36.1.3.3.
    #[schemars(with = "schema::SpanText")]
    pub response: Span,
    /// Time that a frame needs through the two interfaces of a link, in one direction.
    #[schemars(with = "schema::SpanText")]
    pub interface_delay: Span,
    /// Size of a pause frame on the wire: 64 B, preamble and gap.
    #[schemars(with = "schema::BytesText")]
    pub pause_frame: Bytes,
    /// Size of the largest frame on the wire, for which a pause frame can have to wait. Default: a packet of MTU size.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::BytesText>")]
    pub max_frame: Option<Bytes>,
}

impl Default for PfcParams {
    /// 614.4 ns to respond (IEEE 802.1Q, 36.1.3.3), pause frames of 64 bytes with preamble and gap.
    fn default() -> Self {
        Self {
            xoff: None,
            xon: None,
            headroom: None,
            buffer: None,
            response: Span::from_ps(614_400),
            interface_delay: Span::ZERO,
            pause_frame: Bytes::from_bytes(64 + 8 + 12),
            max_frame: None,
        }
    }
}

/// Inputs of the limits for one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PfcCable {
    /// Data rate.
    pub rate: Rate,
    /// Propagation from end to end.
    pub propagation: Span,
    /// A packet of MTU size on the wire.
    pub mtu_wire: Bytes,
    /// Time from the arrival of a packet's head at the receiver until the packet is eligible.
    pub latency: Span,
}

/// PFC of one direction of a link, per priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PfcLimits {
    /// Bytes in the buffer above which the receiver pauses the sender.
    pub xoff: Bytes,
    /// Bytes at which it lets the sender resume.
    pub xon: Bytes,
    /// Bytes above `xoff` for what arrives before the pause takes effect.
    pub headroom: Bytes,
    /// The headroom with which no byte is lost, by the formula.
    pub formula: Bytes,
    /// Size of the buffer.
    pub buffer: Bytes,
    /// Time from the crossing of a threshold to its effect at the sender.
    pub delay: Span,
}

fn bytes_in(rate: Rate, span: Span) -> u64 {
    const PS_BITS: u128 = 8_000_000_000_000;
    let bytes = u128::from(rate.bits_per_sec()) * u128::from(span.as_ps()) / PS_BITS;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

impl PfcParams {
    /// Frames between `xoff` and `xon` (Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM
    /// 2015, section 4).
    const HYSTERESIS_FRAMES: u64 = 2;

    /// Computes the limits for one direction of a link.
    ///
    /// The headroom (IEEE 802.1Q, annex "Buffer requirements for PFC") loses no byte, one byte less would: rate × (2
    /// propagation + 2 interface delay + response + time of the largest frame + time of the pause frame) + largest
    /// frame. Errors: `xon` above `xoff`, no room for `xoff` and headroom, or more than 16 MiB.
    pub fn at(&self, cable: PfcCable) -> Result<PfcLimits, BuildError> {
        let PfcCable {
            rate,
            propagation,
            mtu_wire,
            latency,
        } = cable;
        let frame = self.max_frame.unwrap_or(mtu_wire);
        let interfaces = self.interface_delay + self.interface_delay;
        let waits = rate.span_for(frame) + rate.span_for(self.pause_frame);
        let delay = waits + propagation + interfaces + self.response;
        let formula = bytes_in(rate, delay + propagation).saturating_add(frame.as_u64());
        let headroom = self.headroom.map_or(formula, Bytes::as_u64);
        let hysteresis = Self::HYSTERESIS_FRAMES * frame.as_u64();
        let xoff = match (self.xoff, self.buffer, self.xon) {
            (Some(xoff), ..) => xoff.as_u64(),
            (None, Some(buffer), _) => {
                let buffer = buffer.as_u64();
                buffer.checked_sub(headroom).ok_or(BuildError::PfcBuffer {
                    buffer,
                    xoff: 0,
                    headroom,
                })?
            }
            (None, None, Some(xon)) => xon.as_u64().saturating_add(hysteresis),
            (None, None, None) => {
                // Bytes that leave between a resume and the first packet that the resume releases.
                let covers = formula.saturating_add(bytes_in(rate, latency));
                covers.saturating_add(frame.as_u64() + hysteresis)
            }
        };
        let xon = self
            .xon
            .map_or(xoff.saturating_sub(hysteresis), Bytes::as_u64);
        if xon > xoff {
            return Err(BuildError::PfcThresholds { xon, xoff });
        }
        let needed = xoff.saturating_add(headroom);
        let buffer = self.buffer.map_or(needed, Bytes::as_u64);
        if buffer < needed {
            return Err(BuildError::PfcBuffer {
                buffer,
                xoff,
                headroom,
            });
        }
        if buffer > MOST_BUFFER.as_u64() {
            return Err(BuildError::BufferTooLarge {
                which: "PFC buffer",
                key: "link.pfc.buffer",
                bytes: buffer,
            });
        }
        Ok(PfcLimits {
            xoff: Bytes::from_bytes(xoff),
            xon: Bytes::from_bytes(xon),
            headroom: Bytes::from_bytes(headroom),
            formula: Bytes::from_bytes(formula),
            buffer: Bytes::from_bytes(buffer),
            delay,
        })
    }

    pub(crate) fn validate(&self, data_vls: u8) -> Result<(), BuildError> {
        if data_vls > PRIORITIES {
            return Err(BuildError::PfcPriorities(data_vls));
        }
        for (which, key, span) in [
            ("PFC response", "link.pfc.response", self.response),
            (
                "PFC interface delay",
                "link.pfc.interface-delay",
                self.interface_delay,
            ),
        ] {
            if span > Span::from_secs(1) {
                return Err(BuildError::DelayTooLong { which, key, span });
            }
        }
        for (which, key, bytes) in [
            (
                "pause frame",
                "link.pfc.pause-frame",
                Some(self.pause_frame),
            ),
            ("largest frame", "link.pfc.max-frame", self.max_frame),
        ] {
            let bytes = bytes.map_or(1, Bytes::as_u64);
            if !(1..=Self::MOST_FRAME).contains(&bytes) {
                return Err(BuildError::PfcFrame { which, key, bytes });
            }
        }
        Ok(())
    }

    const MOST_FRAME: u64 = 1 << 16;
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed helper is a failed test")]
mod tests {
    use super::*;

    fn cable(length_ns: u64) -> PfcCable {
        PfcCable {
            rate: Rate::from_bits_per_sec(40_000_000_000).unwrap(),
            propagation: Span::from_ns(length_ns),
            mtu_wire: Bytes::from_bytes(1_000),
            latency: Span::from_ns(100),
        }
    }

    /// 5 B/ns over 10 m: 2 × 50 ns + 600 ns + 200 ns for a frame of 1000 B + 20 ns for a pause frame of 100 B. Together
    /// 920 ns, or 4600 B, plus one frame.
    #[test]
    fn headroom_is_that_of_the_standard() {
        let params = PfcParams {
            response: Span::from_ns(600),
            pause_frame: Bytes::from_bytes(100),
            ..PfcParams::default()
        };
        let limits = params.at(cable(50)).unwrap();
        assert_eq!(limits.headroom.as_u64(), 5_600);
        assert_eq!(limits.delay, Span::from_ns(870));
        // The latency is worth 500 B.
        assert_eq!(limits.xon.as_u64(), 5_600 + 500 + 1_000);
        assert_eq!(limits.xoff.as_u64(), limits.xon.as_u64() + 2_000);
        assert_eq!(limits.buffer.as_u64(), limits.xoff.as_u64() + 5_600);
        // An interface delay of 10 ns in each direction is worth 100 B.
        let interfaces = PfcParams {
            interface_delay: Span::from_ns(10),
            ..params
        };
        assert_eq!(interfaces.at(cable(50)).unwrap().headroom.as_u64(), 5_700);
    }

    #[test]
    fn each_metre_needs_ten_nanoseconds_of_headroom() {
        let headroom = |ns| {
            PfcParams::default()
                .at(cable(ns))
                .unwrap()
                .headroom
                .as_u64()
        };
        assert_eq!(headroom(505) - headroom(500), 50);
    }

    #[test]
    fn what_is_not_given_follows_from_what_is() {
        let bytes = |bytes| Some(Bytes::from_bytes(bytes));
        let base = PfcParams {
            headroom: bytes(6_000),
            ..PfcParams::default()
        };
        let limits = |params: PfcParams| {
            let PfcLimits {
                xoff, xon, buffer, ..
            } = params.at(cable(50)).unwrap();
            (xoff.as_u64(), xon.as_u64(), buffer.as_u64())
        };
        let given = |xoff, xon, buffer| {
            limits(PfcParams {
                xoff,
                xon,
                buffer,
                ..base.clone()
            })
        };
        assert_eq!(given(bytes(9_000), None, None), (9_000, 7_000, 15_000));
        assert_eq!(given(None, bytes(9_000), None), (11_000, 9_000, 17_000));
        assert_eq!(given(None, None, bytes(9_000)), (3_000, 1_000, 9_000));
        assert_eq!(given(bytes(1_000), None, None), (1_000, 0, 7_000));
        let refused = |xoff, xon, buffer| {
            PfcParams {
                xoff,
                xon,
                buffer,
                ..base.clone()
            }
            .at(cable(50))
            .unwrap_err()
            .to_string()
        };
        assert_eq!(
            refused(bytes(1_000), bytes(1_001), None),
            "xon of 1001 bytes is above xoff, 1000 bytes"
        );
        assert_eq!(
            refused(bytes(1_000), None, bytes(6_999)),
            "a PFC buffer of 6999 bytes; xoff (1000) and headroom (6000) take 7000 bytes"
        );
        assert_eq!(
            refused(None, None, bytes(5_999)),
            "a PFC buffer of 5999 bytes; xoff (0) and headroom (6000) take 6000 bytes"
        );
    }
}
