//! Explicit congestion notification for input-buffered switches (J. R. Santos, Y. Turner and G. Janakiraman,
//! "End-to-end congestion control for InfiniBand", INFOCOM 2003; *santos2003* below).
//!
//! 1. A full input buffer marks its packets ([`NaiveMarking`]), or all packets for their outputs, by a scan
//!    ([`ProposedScan`]) or counters ([`ProposedCounters`], [`ResidentCounters`]).
//! 2. The destination returns the mark in the acknowledgement.
//! 3. The source ([`EcnSource`]) raises or lowers the flow's rate by its [`Response`], within a window.
//!
//! Rates are fractions of Rmax, the host link's; times are those of a packet of MTU size at Rmax. Trec = 1/Rmin is 256
//! for Rmin = Rmax/256.
//!
//! [`conditions::check`] checks any response function against the paper's design conditions:
//!
//! ```
//! use silvan_cc::schemes::ecn::conditions::{Condition, check};
//! use silvan_cc::schemes::ecn::{Fimd, MIN_RATE};
//!
//! let fimd = Fimd::new(2.0, MIN_RATE)?;
//! assert!(check(&fimd).iter().all(|finding| finding.holds));
//! # Ok::<(), silvan_cc::schemes::ecn::EcnError>(())
//! ```

pub mod conditions;
mod error;
mod marking;
mod response;
mod scheme;
mod source;

pub use error::EcnError;
pub use marking::{
    EcnSwitch, Marking, NaiveMarking, ProposedCounters, ProposedScan, ResidentCounters,
};
pub use response::{
    Aimd, Fimd, Fixed, Increase, Lipd, MIN_RATE, RATES, RateTables, Response, ResponseFunction,
};
pub use scheme::{Ecn, RatesKind, ResponseKind};
pub use source::{EcnSource, RateModel, SourceParameters, WindowLimit};
