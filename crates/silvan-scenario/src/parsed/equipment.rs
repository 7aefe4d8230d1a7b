use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{Length, Rate, Span};
use silvan_fabric::{LinkKind, Speed, Width};
use silvan_model::{PfcParams, VlArbitration};

use crate::schema;

/// Flow control of a link, which keeps a sender from overfilling a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlowControl {
    /// Credits of InfiniBand: a sender starts a packet only if the buffer has room for it.
    #[default]
    Credits,
    /// Priority-based flow control of Ethernet (IEEE 802.1Qbb): a buffer pauses its sender, and has headroom for what still arrives.
    /// `switch.buffer`, `switch.credit-delay`, `host.receive-buffer` and `host.credit-delay` have no effect then.
    Pfc,
}

/// Defaults of cables. Schemes that compute windows, thresholds or rates from the rate of a link use this rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct LinkSection {
    /// Number of lanes.
    pub width: Width,
    /// Speed of each lane, which also decides the line coding.
    pub speed: Speed,
    /// Rate of data in each direction. Default: that of width and speed. InfiniBand's tools show width and speed all the
    /// same.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::RateText>")]
    pub rate: Option<Rate>,
    /// Length of a cable; a signal needs 5 ns per metre.
    #[schemars(with = "schema::LengthText")]
    pub length: Length,
    /// Time that a signal needs from one end of a cable to the other. Default: that of the length.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::SpanText>")]
    pub latency: Option<Span>,
    /// Flow control of all links, which keeps a sender from overfilling a buffer.
    #[serde(skip_serializing_if = "is_credits")]
    pub flow_control: FlowControl,
    /// Thresholds and delays with `flow-control = "pfc"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pfc: Option<PfcParams>,
}

fn is_credits(flow_control: &FlowControl) -> bool {
    *flow_control == FlowControl::Credits
}

impl LinkSection {
    /// Priority-based flow control, if links have it.
    pub fn pfc_params(&self) -> Option<PfcParams> {
        let params = || self.pfc.clone().unwrap_or_default();
        (self.flow_control == FlowControl::Pfc).then(params)
    }

    /// Returns the properties of a cable without keys.
    pub fn kind(&self) -> LinkKind {
        LinkKind {
            width: self.width,
            speed: self.speed,
            rate: self.rate,
            length: self.length,
            latency: self.latency,
        }
    }
}

impl Default for LinkSection {
    /// 4x NDR, 400 Gbit/s, over 2 m.
    fn default() -> Self {
        Self {
            width: Width::X4,
            speed: Speed::Ndr,
            rate: None,
            length: Length::from_mm(2_000),
            latency: None,
            flow_control: FlowControl::default(),
            pfc: None,
        }
    }
}

/// An entry of a VL arbitration table: `[vl, weight]`, the weight in units of 64 bytes.
pub type VlWeight = (u8, u8);

/// Virtual lanes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct VlSection {
    /// Number of data virtual lanes of every port, 1 to 15. Default: as many as the routes need, with
    /// `fabric.allow-credit-loops` 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_vls: Option<u8>,
    /// True if the data VLs share `switch.buffer` in equal parts; otherwise each VL has a buffer of that size. No
    /// effect with PFC.
    pub share_buffer: bool,
    /// Virtual lane of each of the 16 service levels. Default: the service level modulo the number
    /// of lanes. On a torus with datelines each service level has two lanes, the one given, which is
    /// even, and the next; the default counts pairs then. The lower bits of the service level in
    /// a packet's header are taken, one per dimension, so that 16 / 2^dimensions service levels
    /// are left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sl_to_vl: Option<Vec<u8>>,
    /// High-priority VL arbitration table (IBA 7.6.9): pairs of VL and weight in 64-byte units.
    pub high: Vec<VlWeight>,
    /// Low-priority VL arbitration table. With both tables empty, all lanes have the same weight
    /// here.
    pub low: Vec<VlWeight>,
    /// Limit of High Priority: units of 4096 bytes that the high table sends before a waiting low-priority packet; 0 is
    /// one packet, 255 no limit.
    pub limit_high: u8,
}

impl VlSection {
    /// Data virtual lanes of every port.
    pub fn lanes(&self) -> u8 {
        self.data_vls.unwrap_or(1)
    }
}

impl Default for VlSection {
    fn default() -> Self {
        Self {
            data_vls: None,
            share_buffer: false,
            sl_to_vl: None,
            high: Vec::new(),
            low: Vec::new(),
            limit_high: VlArbitration::default().limit_high,
        }
    }
}
