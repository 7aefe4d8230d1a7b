//! The scheme `pft`: throttling by the host's own credits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{Bytes, Rate, Span, schema};

use super::parameters::{PftError, PftParameters, Sending, Shift, Spell, Threshold};
use super::source::PftSource;
use crate::hooks::NoControl;
use crate::schemes::{Scheme, SchemeError, Setup};

/// Random numbers of the throttle are drawn from a stream of their own.
const STREAM: u64 = 0x5448_524f_5454;

/// How a host finds out whether there is congestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ThresholdKind {
    /// By the credits taken now (FT, Algorithm 1).
    Fixed,
    /// By how long they have been beyond the threshold (AT, Algorithm 2).
    #[default]
    Average,
}

/// How a congested host sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SendingKind {
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
pub struct Pft {
    /// How congestion is found out.
    pub threshold: ThresholdKind,
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
    pub interval: SendingKind,
    /// Bits by which c is shifted left.
    #[schemars(range(max = 31))]
    pub m: u8,
    /// Bits by which that is shifted right.
    #[schemars(range(max = 31))]
    pub n: u8,
    /// Increment of it.
    pub k: u32,
    /// Bits of a random number (`random`).
    #[schemars(range(min = 1, max = 32))]
    pub random_bits: u8,
    /// Data of a flit; its time on a link of the section `link` is a cycle.
    #[schemars(with = "schema::BytesText")]
    pub flit: Bytes,
    /// Buffer space of a credit.
    #[schemars(with = "schema::BytesText")]
    pub credit: Bytes,
}

impl Default for Pft {
    fn default() -> Self {
        Self {
            threshold: ThresholdKind::default(),
            // The best configuration that pft2021 found: m, n, k and the thresholds.
            enter: 0x250,
            escape: 0x2a0,
            enter_window: 1024,
            enter_count: 512,
            escape_window: 1024,
            escape_count: 512,
            interval: SendingKind::default(),
            m: 18,
            n: 0,
            k: 0,
            random_bits: 32,
            flit: Bytes::from_bytes(16),
            credit: Bytes::from_bytes(64),
        }
    }
}

impl Scheme for Pft {
    type Switch = NoControl;
    type Source = PftSource;

    const TAKES_LINK_RATE: bool = true;

    fn check(&self) -> Result<(), SchemeError> {
        // Whatever the link, a flit takes some time if it has any bytes.
        let flit_time = Span::from_ps(self.flit.as_u64());
        self.with_flit_time(flit_time).map(|_| ())
    }

    fn build(&self, setup: &Setup<'_>) -> Result<(NoControl, PftSource), SchemeError> {
        let parameters = self.interface(setup.link_rate)?;
        let source = PftSource::new(parameters, setup.hosts, setup.seed ^ STREAM);
        let source = source.map_err(|error| refused(error, &parameters))?;
        Ok((NoControl, source))
    }
}

impl Pft {
    /// The registers of an interface at a link of this rate.
    ///
    /// # Errors
    /// The first parameter at fault.
    pub fn interface(&self, link_rate: Rate) -> Result<PftParameters, SchemeError> {
        self.with_flit_time(link_rate.span_for(self.flit))
    }

    fn with_flit_time(&self, flit_time: Span) -> Result<PftParameters, SchemeError> {
        let credit_bytes = u32::try_from(self.credit.as_u64()).map_err(|_| {
            let message = format!("{} is not below 4 GiB", self.credit);
            SchemeError::new("credit", message, "write e.g. \"64 B\"")
        })?;
        let parameters = PftParameters {
            threshold: match self.threshold {
                ThresholdKind::Fixed => Threshold::Fixed,
                ThresholdKind::Average => Threshold::Average {
                    enter: Spell {
                        window: self.enter_window,
                        count: self.enter_count,
                    },
                    escape: Spell {
                        window: self.escape_window,
                        count: self.escape_count,
                    },
                },
            },
            enter: self.enter,
            escape: self.escape,
            shift: Shift {
                m: self.m,
                n: self.n,
                k: self.k,
            },
            sending: match self.interval {
                SendingKind::Fixed => Sending::Interval,
                SendingKind::Random => Sending::Random {
                    bits: self.random_bits,
                },
            },
            flit_time,
            credit_bytes,
        };
        parameters
            .validate()
            .map_err(|error| refused(error, &parameters))?;
        Ok(parameters)
    }
}

/// A parameter that the scheme refuses, at its key.
fn refused(error: PftError, parameters: &PftParameters) -> SchemeError {
    let (key, hint) = match error {
        PftError::Shift(bits) if bits == parameters.shift.m => ("m", "write e.g. 18"),
        PftError::Shift(_) => ("n", "write e.g. 8"),
        PftError::RandomBits(_) => ("random-bits", "write 32"),
        PftError::EscapeAboveEnter { .. } => (
            "escape",
            "lower it to enter or less, or write threshold = \"average\"",
        ),
        PftError::Spell(spell) => match parameters.threshold {
            Threshold::Average { enter, .. } if enter == spell => {
                ("enter-count", "write a number from 1 to enter-window")
            }
            _ => ("escape-count", "write a number from 1 to escape-window"),
        },
        PftError::NoCredit => ("credit", "write e.g. \"64 B\""),
        PftError::NoFlitTime => ("flit", "write e.g. \"16 B\""),
    };
    SchemeError::new(key, error.to_string(), hint)
}
