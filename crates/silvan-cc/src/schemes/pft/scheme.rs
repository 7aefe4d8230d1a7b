use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use silvan_core::{Bytes, Rate, Span};

use super::parameters::{PftError, PftParameters, Sending, Shift, Spell, Threshold};
use super::source::PftSource;
use crate::hooks::NoControl;
use crate::parameters;
use crate::schemes::ib_cc::by_hosts;
use crate::schemes::variant::{Cost, FabricFacts, Family, Variant};
use crate::schemes::{Bounds, Scheme, SchemeError, Search, Setup};

const STREAM: u64 = 0x5448_524f_5454;

/// Detection of congestion at a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ThresholdKind {
    /// By the credits taken now (FT, Algorithm 1).
    Fixed,
    /// By how long they have been beyond the threshold (AT, Algorithm 2).
    #[default]
    Average,
}

/// Sending of a congested host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SendingKind {
    /// f(c) idle cycles between two flits (FI).
    Fixed,
    /// Only in cycles in which a random number is at least f(c) (RI).
    #[default]
    Random,
}

parameters! {
    /// Proactive flow throttling at the host's interface (pft2021): f(c) = 2^(m - n) c + k. The
    /// host has taken c credits of its switch. A cycle is the time of a flit on the link.
    // The defaults are the best configuration that pft2021 found: m, n, k and the thresholds.
    pub struct Pft {
        /// Detection of congestion.
        threshold: ThresholdKind {
            default: ThresholdKind::default(),
        }
        /// A host finds congestion with more credits taken than that.
        enter: u32 {
            default: 0x250,
            unit: "credits",
            search: Search::whole(0x80, 0x400).late(),
        }
        /// Number of credits below which the congestion ends.
        escape: u32 {
            default: 0x2a0,
            unit: "credits",
        }
        /// Te, the time in which credits must be above `enter` for `enter-count` (`average`).
        enter_window: u32 {
            default: 1024,
            unit: "cycles",
        }
        /// Te'.
        enter_count: u32 {
            default: 512,
            unit: "cycles",
        }
        /// Ts, the time in which credits must be below `escape` for `escape-count` (`average`).
        escape_window: u32 {
            default: 1024,
            unit: "cycles",
        }
        /// Ts'.
        escape_count: u32 {
            default: 512,
            unit: "cycles",
        }
        /// Sending of a congested host.
        interval: SendingKind {
            default: SendingKind::default(),
        }
        /// Bits by which c is shifted left.
        m: u8 {
            default: 18,
            bounds: Bounds::Whole(0, 31),
            search: Search::whole(0, 12),
        }
        /// Bits by which that is shifted right.
        n: u8 {
            default: 0,
            bounds: Bounds::Whole(0, 31),
            search: Search::whole(0, 12),
        }
        /// Increment of it.
        k: u32 {
            default: 0,
        }
        /// Bits of a random number (`random`).
        random_bits: u8 {
            default: 32,
            bounds: Bounds::Whole(1, 32),
        }
        /// Data of a flit; its time on a link of the section `link` is a cycle.
        flit: Bytes {
            default: Bytes::from_bytes(16),
            bounds: Bounds::SOME_BYTES,
        }
        /// Buffer space of a credit.
        credit: Bytes {
            default: Bytes::from_bytes(64),
            bounds: Bounds::Size(u32::MAX as u64),
        }
    }
}

/// Four counters, and registers for thresholds, windows, m, n and k.
const COST: Cost = Cost::new(0, 40, 0, "none");

const READS_CREDITS: &str = "it reads the credits of its host, and links with PFC have none";

fn best() -> [(&'static str, Value); 8] {
    [
        ("threshold", "average".into()),
        ("interval", "fixed".into()),
        ("enter", 0x100.into()),
        ("escape", 0x80.into()),
        ("m", 0.into()),
        ("n", 6.into()),
        ("k", 0.into()),
        ("credit", "16 B".into()),
    ]
}

/// The variants of InfiniBand's congestion control with proactive throttling.
pub fn with_ib_cc(facts: &FabricFacts<'_>) -> Vec<Variant> {
    let cost = Cost::new(8, 258 + 40, 1, "notifications");
    vec![
        Variant::new("ib-cc+pft", "both, as they are above", cost)
            .part("ib-cc", by_hosts(facts.hosts))
            .part("pft", best())
            .unless(|facts| facts.lacks_credits(READS_CREDITS)),
    ]
}

impl Scheme for Pft {
    type Switch = NoControl;
    type Source = PftSource;

    const TAKES_LINK_RATE: bool = true;

    const FAMILY: Family = Family::Credits;

    fn variants(_: &FabricFacts<'_>) -> Vec<Variant> {
        let variant = Variant::new("pft", "the best found for pft2021", COST);
        vec![
            variant
                .all(best())
                .unless(|facts| facts.lacks_credits(READS_CREDITS)),
        ]
    }

    fn check(&self) -> Result<(), SchemeError> {
        let flit_time = Span::from_ps(self.flit.as_u64());
        self.with_flit_time(flit_time).map(|_| ())
    }

    fn idle_reason(&self) -> Option<String> {
        let enter = self.enter;
        Some(format!("no host had enter, {enter} credits, in use"))
    }

    fn build(&self, setup: &Setup<'_>) -> Result<(NoControl, PftSource), SchemeError> {
        let parameters = self.interface(setup.link_rate)?;
        let source = PftSource::new(parameters, setup.hosts, setup.seed ^ STREAM);
        let source = source.map_err(|error| refused(error, &parameters))?;
        Ok((NoControl, source))
    }
}

impl Pft {
    /// The registers of an interface at a link of this rate. Errors: the first parameter at fault.
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
