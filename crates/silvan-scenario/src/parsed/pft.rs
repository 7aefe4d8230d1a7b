//! The scheme `pft`: throttling by the host's own credits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::Bytes;

use crate::schema;

/// How a host finds out whether there is congestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PftThreshold {
    /// By the credits taken now (FT, Algorithm 1).
    Fixed,
    /// By how long they have been beyond the threshold (AT, Algorithm 2).
    #[default]
    Average,
}

/// How a congested host sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PftInterval {
    /// With f(c) idle cycles between two flits (FI).
    Fixed,
    /// In cycles in which a random number is at least f(c) (RI).
    #[default]
    Random,
}

/// Proactive flow throttling at the host's interface (pft2021): f(c) = 2^(m - n) c + k of the c
/// credits that the host has taken of the switch next to it. A cycle is the time of a flit on the
/// link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct PftSection {
    /// How congestion is found out.
    pub threshold: PftThreshold,
    /// A host finds congestion with more credits taken than that.
    #[schemars(extend("x-unit" = "credits"))]
    pub enter: u32,
    /// It finds that it is over with fewer.
    #[schemars(extend("x-unit" = "credits"))]
    pub escape: u32,
    /// Te, the time in which credits must be above `enter` for `enter-count` (`average`).
    #[schemars(extend("x-unit" = "cycles"))]
    pub enter_window: u32,
    /// Te'.
    #[schemars(extend("x-unit" = "cycles"))]
    pub enter_count: u32,
    /// Ts, the time in which credits must be below `escape` for `escape-count` (`average`).
    #[schemars(extend("x-unit" = "cycles"))]
    pub escape_window: u32,
    /// Ts'.
    #[schemars(extend("x-unit" = "cycles"))]
    pub escape_count: u32,
    /// How a congested host sends.
    pub interval: PftInterval,
    /// Bits by which c is shifted left.
    #[schemars(range(max = 31))]
    pub m: u8,
    /// Bits by which that is shifted right.
    #[schemars(range(max = 31))]
    pub n: u8,
    /// What is added to it.
    pub k: u32,
    /// Bits of a random number (`random`).
    #[schemars(range(min = 1, max = 32))]
    pub random_bits: u8,
    /// What a flit carries; its time on a link of the section `link` is a cycle.
    #[schemars(with = "schema::BytesText")]
    pub flit: Bytes,
    /// Buffer space that a credit stands for.
    #[schemars(with = "schema::BytesText")]
    pub credit: Bytes,
}

impl Default for PftSection {
    fn default() -> Self {
        Self {
            threshold: PftThreshold::default(),
            // The best configuration that pft2021 found: m, n, k and the thresholds.
            enter: 0x250,
            escape: 0x2a0,
            enter_window: 1024,
            enter_count: 512,
            escape_window: 1024,
            escape_count: 512,
            interval: PftInterval::default(),
            m: 18,
            n: 0,
            k: 0,
            random_bits: 32,
            flit: Bytes::from_bytes(16),
            credit: Bytes::from_bytes(64),
        }
    }
}
